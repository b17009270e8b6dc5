"""Choosing a question to ask: type one, or pick one of the conversation's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from memreplay.conversations.models import Question
from memreplay.engine.probes import typed_question
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.text import one_line


class AskScreen(ModalScreen[Question | None]):
    """Returns the question to ask, or None. Typing narrows the list; enter asks what is typed, or picked."""

    PLACE: ClassVar[Place] = "ask"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, title: str, questions: Sequence[Question]) -> None:
        super().__init__()
        self._title = title
        self._questions = tuple(questions)

    def compose(self) -> ComposeResult:
        with Vertical(id="asking"):
            yield Input(
                placeholder="your own question; enter asks it, ↓ goes to the list", id="typed", compact=True
            )
            yield OptionList(id="questions-to-ask", compact=True)

    def on_mount(self) -> None:
        self.query_one("#asking").border_title = Content(one_line(self._title))
        self._list("")

    def _list(self, typed: str) -> None:
        """The questions that hold every typed word."""
        words = typed.casefold().split()
        listed = [
            Option(Content(one_line(question.text)), id=str(place))
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

    def action_leave(self) -> None:
        self.dismiss(None)
