"""Asking by hand: one question to every architecture, as memory stood at the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memreplay.conversations.models import Question
from memreplay.engine.probes import typed_question
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.tui.controllers.host import ReplayHost
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from memreplay.tui.widgets.workers import HandAsker

_TYPE_ONE = "type a question …"


class Asking:
    """Picks the question, and has ``explain`` show the first answers to arrive in full."""

    def __init__(
        self,
        timeline: Timeline,
        backends: Sequence[str],
        asker: HandAsker,
        explain: Callable[[Answer], None],
        host: ReplayHost,
    ) -> None:
        self.progress = ""
        self._timeline = timeline
        self._backends = backends
        self._asker = asker
        self._explain = explain
        self._host = host

    def ask(self) -> None:
        """Choose a question of the conversation, or type one."""
        if self._timeline.conversation.conversing:
            self._host.report("Tests ask their own questions: another would change what they find.")
            return
        questions = self._timeline.conversation.questions

        def typed(text: str | None) -> None:
            if text:
                self._put(typed_question(text))

        def chosen(place: int | None) -> None:
            if place == 0:
                self._host.open_screen(TypingScreen("ask", "a question in your own words; enter asks"), typed)
            elif place is not None:
                self._put(questions[place - 1])

        names = [_TYPE_ONE, *(question.text for question in questions)]
        self._host.open_screen(PickScreen(f"ask as memory stands at turn {self._host.cursor}", names), chosen)

    def _put(self, question: Question) -> None:
        position = min(self._host.cursor, self._timeline.last_turn)
        self._asker.ask(position, question, self._backends)

    def on_progress(self, progress: str) -> None:
        self.progress = progress
        self._host.paint_header()

    def on_answered(self, position: int, question: Question) -> None:
        """Every architecture has answered: explain the last answer."""
        self._host.paint_progress()
        answers = [answer for answer in self._timeline.answers() if _is_to(answer, position, question)]
        if answers:
            self._explain(answers[-1])


def _is_to(answer: Answer, position: int, question: Question) -> bool:
    asked = answer.asked
    return asked.by_hand and asked.turn == position and asked.question_id == question.id
