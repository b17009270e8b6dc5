"""The results: the scores of each architecture, and every question of a conversation with every answer."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import work
from textual.binding import BindingType

from app.replay.asks import Answer
from app.replay.timeline import Timeline
from app.tui.actions import Place, bindings_of
from app.tui.destinations import Destination, Evidence, WholeRun
from app.tui.screens.questions import QuestionsScreen
from app.tui.screens.why import WhyScreen
from app.tui.text import Span, one_line
from app.tui.views.answers import AnswersTable
from app.tui.views.filters import labels_of
from app.tui.widgets.bars import Bar


class ResultsScreen(QuestionsScreen[Destination | None]):
    """Ends with where the user wants to look, or with None."""

    PLACE: ClassVar[Place] = "results"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, timeline: Timeline, table: AnswersTable) -> None:
        super().__init__(table)
        self._timeline = timeline
        self._conversation = timeline.conversation

    @property
    def picture_name(self) -> str:
        """What an exported picture is called."""
        return f"{self._conversation.id}-results"

    def on_mount(self) -> None:
        """Name it; where each fact was lost is worked out meanwhile."""
        self.query_one("#header", Bar).say(
            Span(" RESULTS ", "recorded"),
            Span(f"  {one_line(self._conversation.id)}", "strong"),
        )
        self._attribute()

    @work(group="attribution", exclusive=True)
    async def _attribute(self) -> None:
        labels = await asyncio.to_thread(labels_of, self._timeline, self._table)
        if not self.was_left:
            self.take_labels(labels)

    def explain(self, answer: Answer) -> None:
        """Open the page that says why an answer is what it is."""
        self.app.push_screen(WhyScreen(self._timeline, answer), self._left_why)

    def _left_why(self, destination: Destination | None) -> None:
        if destination is not None:
            self.dismiss(destination)

    def action_jump(self) -> None:
        """Into the replay, at the evidence of this question."""
        if self._document.posed is not None:
            self.dismiss(Evidence(self._document.posed.question))

    def action_run(self) -> None:
        """Every question of the whole run."""
        self.dismiss(WholeRun())

    def action_leave(self) -> None:
        """Back to where the replay was."""
        self.dismiss(None)
