"""Asking by hand: one question to every architecture, as memory stood at the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memreplay.conversations.models import Question
from memreplay.timeline.timeline import Answer, AskKey, Timeline
from memreplay.tui.controllers.host import ReplayHost
from memreplay.tui.panels.answers import key_of
from memreplay.tui.panels.why import answers_beside
from memreplay.tui.screens.ask import AskScreen
from memreplay.tui.screens.duel import DuelScreen
from memreplay.tui.widgets.workers import HandAsker


class Asking:
    """Picks the question, and shows all answers side by side; ``explain`` opens one of them in full."""

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
        title = f"ask as memory stands at turn {self._host.cursor}"
        self._host.open_screen(AskScreen(title, self._timeline.conversation.questions), self._chosen)

    def _chosen(self, question: Question | None) -> None:
        """Ask a question, or show the answers that were given at this position."""
        if question is None:
            return
        given = self._answers_at(min(self._host.cursor, self._timeline.last_turn), question, by_hand=False)
        if given:
            self._compare(question, given)
        else:
            self._put(question)

    def _put(self, question: Question) -> None:
        position = min(self._host.cursor, self._timeline.last_turn)
        self._asker.ask(position, question, self._backends)

    def on_progress(self, progress: str) -> None:
        self.progress = progress
        self._host.paint_header()

    def on_answered(self, position: int, question: Question) -> None:
        """Every architecture has answered: show all replies side by side."""
        self._host.paint_progress()
        answers = self._answers_at(position, question, by_hand=True)
        if answers:
            self._compare(question, answers)

    def _answers_at(self, position: int, question: Question, *, by_hand: bool) -> list[Answer]:
        """The answers to a question that was asked at a position, in the order of the architectures."""
        last = next(
            (
                answer
                for answer in reversed([*self._timeline.answers()])
                if (answer.asked.by_hand, answer.asked.turn, answer.asked.question_id)
                == (by_hand, position, question.id)
            ),
            None,
        )
        return [] if last is None else answers_beside(self._timeline, key_of(last))

    def _compare(self, question: Question, answers: Sequence[Answer]) -> None:
        def chosen(key: AskKey | None) -> None:
            answer = next((one for one in answers if key_of(one) == key), None)
            if answer is not None:
                self._explain(answer)

        self._host.minimize()
        self._host.open_screen(DuelScreen(self._timeline, question, answers), chosen)
