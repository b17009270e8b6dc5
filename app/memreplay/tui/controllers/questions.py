"""Questions at the cursor: asking one by hand of every architecture, and when each memory knew its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from memreplay.conversations.models import Question, Turn
from memreplay.debugger.lifetime import Lifetime
from memreplay.engine.probes import typed_question
from memreplay.text import occurs_in
from memreplay.timeline.timeline import Answer, AskKey, Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.controllers import ReplayHost
from memreplay.tui.requests import MarkWanted
from memreplay.tui.screens import Dialog
from memreplay.tui.screens.dialogs import PickList, PickScreen, TypingScreen
from memreplay.tui.screens.duel import DuelScreen
from memreplay.tui.sources import ReplaySource
from memreplay.tui.widgets.strip import TimelineStrip
from memreplay.tui.widgets.workers import HandAsker
from memreplay.views.panels.answers import key_of
from memreplay.views.panels.why import answers_beside
from memreplay.views.subjects import is_end
from memreplay.views.text import one_line


def _named(question: Question, among: Sequence[Question]) -> str:
    """Return the text of a question, with its kind where there are several."""
    several = len({each.kind for each in among}) > 1
    return one_line(f"{question.text} ({question.kind})" if several else question.text)


class Asking:
    """Picks the question, and shows all answers side by side; ``explain`` opens one of them in full."""

    def __init__(
        self,
        timeline: Timeline,
        backends: Sequence[str],
        asker: HandAsker,
        explain: Callable[[Answer], None],
        settings: Mapping[str, Any],
        host: ReplayHost,
    ) -> None:
        self.progress = ""
        self._settings = settings
        self._timeline = timeline
        self._backends = backends
        self._asker = asker
        self._explain = explain
        self._host = host

    def ask(self) -> None:
        """Choose a question of the conversation, or type one."""
        if not self._timeline.conversation.can_be_replayed:
            self._host.report("Tests ask their own questions: another would change what they find.")
            return
        here = self._host.cursor
        when = "the end" if is_end(self._timeline, here) else f"turn {here}"
        title = f"ask as memory stands at {when}"
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
        """Return the answers to a question that was asked at a position, in the order of the architectures."""
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
        self._host.open_screen(DuelScreen(self._timeline, question, answers, self._settings), chosen)


class Marking:
    """Asks what the memory of a running agent should have returned at the cursor, and which turn says it."""

    def __init__(self, source: ReplaySource, host: ReplayHost) -> None:
        self._source, self._timeline, self._host = source, source.timeline, host

    def mark(self) -> None:
        """Type the expected answer; choose the turn that says it where several do."""
        turn = min(self._host.cursor, self._timeline.last_turn)

        def typed(expected: str | None) -> None:
            if expected:
                self._choose_evidence(turn, expected)

        title = f"what should memory have returned at turn {turn}?"
        note = "the answer in a few words, such as: lead engineer"
        self._host.open_screen(TypingScreen(title, note), typed)

    def _choose_evidence(self, turn: int, expected: str) -> None:
        said = self._timeline.conversation.turns[: max(turn - 1, 1)]
        found = [each for each in said if occurs_in(expected, each.text)] or [*said]
        if len(found) == 1:
            self._post(turn, expected, found[0])
            return

        def chosen(place: int | None) -> None:
            if place is not None:
                self._post(turn, expected, found[place])

        label = self._timeline.conversation.label_of
        names = [one_line(f"{each.number} {label(each)}: {each.text}") for each in found]
        self._host.open_screen(PickScreen("which turn says it first?", names), chosen)

    def _post(self, turn: int, expected: str, evidence: Turn) -> None:
        self._host.post_message(MarkWanted(self._source, turn, expected, evidence.id))


class QuestionInput(Input):
    """A line that takes a pasted text of several lines as one."""

    def _on_paste(self, event: events.Paste) -> None:
        super()._on_paste(events.Paste(" ".join(event.text.split())))
        event.stop()
        event.prevent_default()


class AskScreen(Dialog[Question | None]):
    """Returns the question to ask, or None. Typing narrows the list; enter asks what is typed, or picked."""

    PLACE: ClassVar[Place] = "ask"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, title: str, questions: Sequence[Question]) -> None:
        super().__init__()
        self._title = title
        self._questions = tuple(questions)

    def parts(self) -> ComposeResult:
        with Vertical(id="asking"):
            yield QuestionInput(
                placeholder="your own question; enter asks it, ↓ goes to the list", id="typed", compact=True
            )
            yield PickList(id="questions-to-ask", compact=True)

    def on_mount(self) -> None:
        self.query_one("#asking").border_title = Content(one_line(self._title))
        self._list("")

    def _list(self, typed: str) -> None:
        """List the questions that hold every typed word."""
        words = typed.casefold().split()
        listed = [
            Option(Content(_named(question, self._questions)), id=str(place))
            for place, question in enumerate(self._questions)
            if all(word in question.text.casefold() for word in words)
        ]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(listed)
        options.highlighted = None

    @on(Input.Changed)
    def _typing(self, message: Input.Changed) -> None:
        self._list(message.value)

    @on(Input.Submitted)
    def _typed(self, message: Input.Submitted) -> None:
        message.stop()
        if message.value.strip():
            self.dismiss(typed_question(message.value.strip()))

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        assert message.option.id is not None
        self.dismiss(self._questions[int(message.option.id)])

    def on_key(self, event: events.Key) -> None:
        """Down and up lead from the line to the list and back."""
        options, line = self.query_one(OptionList), self.query_one(Input)
        if event.key == "down" and line.has_focus and options.option_count:
            options.focus()
            options.highlighted = 0
            event.stop()
        elif event.key == "up" and options.has_focus and not options.highlighted:
            line.focus()
            event.stop()


class Lifetimes:
    """Picks a question and shows the bars; the recording alone decides, and no model is asked."""

    def __init__(self, source: ReplaySource, strip: TimelineStrip, host: ReplayHost) -> None:
        self._timeline, self._place, self._strip, self._host = source.timeline, source.place, strip, host

    def choose(self) -> None:
        """Choose a question, or none to remove the bars."""
        questions = self._timeline.conversation.questions
        if not questions:
            self._host.report("This conversation has no questions.")
            return

        removing = ["remove the bars"] if self._strip.lives else []

        def chosen(place: int | None) -> None:
            if place is None:
                return
            if place < len(removing):
                self._strip.show_lifetimes({})
                self._place.lives = {}
                self._host.paint_progress()
            else:
                found = self._find(questions[place - len(removing)])
                self._host.run_worker(found, group="lifetimes", exclusive=True)

        listed = [_named(question, questions) for question in questions]
        self._host.open_screen(PickScreen("from when to when is this known?", [*removing, *listed]), chosen)

    async def _find(self, question: Question) -> None:
        from memreplay.runtime.bisecting import lifetimes, memories_in

        backends = memories_in(self._timeline)

        def found() -> Mapping[str, Lifetime]:
            lives = asyncio.run(lifetimes(self._timeline, question, backends, "stored", None))
            return {name: life for name, life in lives.items() if isinstance(life, Lifetime)}

        lives = await asyncio.to_thread(found)
        if not lives:
            self._host.report("What these memories wrote is not recorded, or not all of it.")
            return
        self._strip.show_lifetimes(lives)
        self._place.lives = lives
        self._host.paint_progress()
        self._host.announce(f"stored: {one_line(question.text)}")
