"""The tests of two recordings compared; from each the user can open either recording where it was scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Footer

from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.panels.answers import ANSWER_LEGEND
from memreplay.tui.panels.compare import ComparedTests
from memreplay.tui.requests import OneOfTwoWanted
from memreplay.tui.screens.listing import Listing, ListingScreen
from memreplay.tui.sources import ReplaySource
from memreplay.tui.text import Span, one_line
from memreplay.tui.widgets.bars import Bar


@dataclass(frozen=True)
class Opened:
    """A conversation of a recording, with the name of the file."""

    name: str
    source: ReplaySource


class CompareScreen(ListingScreen[None]):
    """The tests of two recordings, those with the largest difference in points first."""

    PLACE: ClassVar[Place] = "compare"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, left: Opened, right: Opened) -> None:
        super().__init__()
        self._sides = left, right
        timelines = left.source.timeline, right.source.timeline
        self._compared = ComparedTests(*timelines)
        self.document = self._compared.document

    @property
    def picture_name(self) -> str:
        return f"{self._sides[0].name}-against-{self._sides[1].name}"

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        yield Listing(id="questions")
        yield Bar(id="legend")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        left, right = self._sides
        self.query_one("#header", Bar).say(
            Span(" COMPARED ", "recorded"),
            Span(f"  1 {one_line(left.name)}", "strong"),
            Span("  against", "dim"),
            Span(f"  2 {one_line(right.name)}", "strong"),
            Span(f"  {self._compared.turns_in_both} turns in both", "dim"),
        )
        questions = self.query_one(Listing)
        questions.border_title = Content(self._compared.tally)
        questions.show(self.document)
        self.query_one("#legend", Bar).say(Span(f" {ANSWER_LEGEND}", "dim"))

    def action_open_left(self) -> None:
        self._open(0)

    def action_open_right(self) -> None:
        self._open(1)

    def action_leave(self) -> None:
        self.dismiss(None)

    def _open(self, side: int) -> None:
        position = self._compared.positions(self.document.cursor)[side] if len(self.document) else 1
        self.post_message(OneOfTwoWanted(self._sides[side].source, position))
