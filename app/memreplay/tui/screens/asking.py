"""Asking by hand: a question of every architecture, as memory stands at the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import on

from memreplay.conversations.models import Question
from memreplay.engine.events import AnswerScored, ReplayEvent, ReplyReceived
from memreplay.engine.probes import typed_question
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.tui.launch import RunHandle
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from memreplay.tui.screens.marking import MarkingScreen
from memreplay.tui.widgets.workers import HandAsker

_TYPE_ONE = "type a question …"


class AskingScreen(MarkingScreen):
    """Puts questions by hand. ``assemble`` builds what answers them, when it is first needed."""

    def __init__(
        self,
        timeline: Timeline,
        seconds_a_turn: float,
        assemble: Callable[[], RunHandle],
        tell: Callable[[ReplayEvent], None] | None,
    ) -> None:
        super().__init__(timeline, seconds_a_turn)
        self.asker = HandAsker(timeline.conversation, assemble, tell)
        self.asking = ""

    def action_ask(self) -> None:
        """Choose a question, or type one."""
        if self.timeline.conversation.conversing:
            self.notify("Tests ask their own questions: another would change what they find.", markup=False)
            return
        questions = self.timeline.conversation.questions
        names = [_TYPE_ONE, *(question.text for question in questions)]
        self.app.push_screen(PickScreen(f"ask as memory stands at turn {self.cursor}", names), self._chosen)

    def _chosen(self, place: int | None) -> None:
        if place == 0:
            self.app.push_screen(TypingScreen("ask", "a question in your own words; enter asks"), self._typed)
        elif place is not None:
            self._ask(self.timeline.conversation.questions[place - 1])

    def _typed(self, text: str | None) -> None:
        if text:
            self._ask(typed_question(text))

    def _ask(self, question: Question) -> None:
        position = min(self.cursor, self.timeline.last_turn)
        self.asker.ask(position, question, self._backends())

    def _backends(self) -> Sequence[str]:
        return [pane.backend for pane in self.architectures.panes]

    @on(HandAsker.Happened)
    def _asked_by_hand(self, message: HandAsker.Happened) -> None:
        self.timeline.append(message.event)
        if isinstance(message.event, ReplyReceived | AnswerScored):
            self.strip_changed()

    @on(HandAsker.Progressed)
    def _progressed(self, message: HandAsker.Progressed) -> None:
        self.asking = message.words
        self.paint_header()

    @on(HandAsker.Answered)
    def _answered(self, message: HandAsker.Answered) -> None:
        self.strip_changed()
        given = [answer for answer in self.timeline.answers() if _is_to(answer, message.position, message.question)]
        if given:
            self.explain(given[-1])

    @on(HandAsker.Failed)
    def _not_asked(self, message: HandAsker.Failed) -> None:
        self.notify(message.sentence, severity="error", markup=False)

    def strip_changed(self) -> None:
        """Something was asked: the strip and the answers show it."""


def _is_to(answer: Answer, position: int, question: Question) -> bool:
    asked = answer.asked
    return asked.by_hand and asked.turn == position and asked.question_id == question.id
