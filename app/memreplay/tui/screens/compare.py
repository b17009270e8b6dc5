"""Two recordings against each other; from a question into either of them, at the same turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Footer

from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.document import ListedDocument
from memreplay.tui.panels.answers import LEGEND
from memreplay.tui.panels.compare import ComparedQuestions, ComparedTests
from memreplay.tui.requests import OneOfTwoWanted
from memreplay.tui.screens.listing import Listing, ListingScreen
from memreplay.tui.sources import ReplaySource
from memreplay.tui.text import Span, one_line
from memreplay.tui.widgets.bars import Bar


@dataclass(frozen=True)
class Opened:
    """A recording's conversation and the name of its file."""

    name: str
    source: ReplaySource


class CompareScreen(ListingScreen[None]):
    """The questions, or tests, of two recordings, those first on which they disagree most."""

    PLACE: ClassVar[Place] = "compare"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, left: Opened, right: Opened) -> None:
        super().__init__()
        self._sides = left, right
        timelines = left.source.timeline, right.source.timeline
        conversing = all(timeline.conversation.conversing for timeline in timelines)
        self._compared = ComparedTests(*timelines) if conversing else ComparedQuestions(*timelines)
        self._document = self._compared.document

    @property
    def listed(self) -> ListedDocument:
        """What is listed."""
        return self._document

    @property
    def picture_name(self) -> str:
        """What an exported picture is called."""
        return f"{self._sides[0].name}-against-{self._sides[1].name}"

    def compose(self) -> ComposeResult:
        """The two names, the questions, the signs."""
        yield Bar(id="header")
        yield Listing(id="questions")
        yield Bar(id="legend")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Fill it."""
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
        questions.show(self._document)
        self.query_one("#legend", Bar).say(Span(f" {LEGEND}", "dim"))

    def action_open_left(self) -> None:
        """Into the first recording, at what is pointed at."""
        self._open(0)

    def action_open_right(self) -> None:
        """Into the second, at what goes with that."""
        self._open(1)

    def action_leave(self) -> None:
        """Back to the start."""
        self.dismiss(None)

    def _open(self, side: int) -> None:
        position = self._compared.positions(self._document.cursor)[side] if len(self._document) else 1
        self.post_message(OneOfTwoWanted(self._sides[side].source, position))
