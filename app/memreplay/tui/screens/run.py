"""The results of a whole run: every question of every conversation, and from each into the replay of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.binding import BindingType
from textual.content import Content

from memreplay.errors import MemreplayError
from memreplay.timeline.timeline import Answer, AskKey
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.housekeeping import QuietGarbage
from memreplay.tui.panels.answers import AnswersTable, Labels, Posed, key_of
from memreplay.tui.requests import Evidence, VisitWanted
from memreplay.tui.screens.listing import Listing
from memreplay.tui.screens.results import QuestionsScreen
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.sources import RecordedRun, ReplaySource, labels_in, newest_run, recorded
from memreplay.tui.text import Span, one_line
from memreplay.tui.widgets.bars import Bar

_NO_QUESTION = "No question was asked in this run. The results of tests are listed in their conversation, by r."
_ANOTHER_RUN = "Another run was recorded in this file meanwhile: open the list anew."


class RunScreen(QuestionsScreen[None]):
    """Reads the answers of a recording's newest run while it stands; then where each fact was lost."""

    PLACE: ClassVar[Place] = "run"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, path: Path) -> None:
        super().__init__(AnswersTable((), (), ()))
        self._path = path
        self._garbage = QuietGarbage()

    @property
    def picture_name(self) -> str:
        """What an exported picture is called."""
        return f"{self._path.stem}-run"

    def on_mount(self) -> None:
        """Name it; the rest is read meanwhile."""
        self._head("")
        self._say("reading the answers …")
        self._garbage.begin()
        self._read()

    def on_unmount(self) -> None:
        """Let everything be collected again."""
        self._garbage.end()

    def _head(self, extent: str) -> None:
        self.query_one("#header", Bar).say(
            Span(" RUN ", "recorded"),
            Span(f"  {one_line(self._path.name)}", "strong"),
            Span(f"  {extent}", "dim"),
        )

    def _say(self, progress: str) -> None:
        """Tell how far the reading has come."""
        self._progress = progress
        self.query_one(Listing).border_subtitle = Content(progress)

    @work(group="reading", exclusive=True)
    async def _read(self) -> None:
        try:
            run = await asyncio.to_thread(newest_run, self._path)
            if self.was_left:
                return
            if len(run.table):
                self._show_run(run)
                await self._attribute(run)
            else:
                self._say("")
                self.notify(_NO_QUESTION, markup=False)
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)
            if not self.was_left:
                self._say("")

    def _show_run(self, run: RecordedRun) -> None:
        count = len(run.conversations)
        of = f"{count} conversations" if count > 1 else "one conversation"
        self._head(f"{len(run.table.questions):,} questions of {of}")
        self._take(run.table)
        self.show_table()

    async def _attribute(self, run: RecordedRun) -> None:
        """One conversation after the other: each has to be opened. The list is laid out anew when all are known."""
        labels: Labels = {}
        for done, conversation in enumerate(run.conversations):
            self._say(f"where facts were lost: {done} of {len(run.conversations)} conversations read")
            labels = {**labels, **await asyncio.to_thread(labels_in, self._path, run.id, conversation)}
            if self.was_left:
                return
            self._garbage.rest()
        self._say("")
        self.take_labels(labels)

    # ---- into a conversation -------------------------------------------------------------------------------

    def explain(self, answer: Answer) -> None:
        """Open the page that says why an answer is what it is; where that ends with a place, go there."""
        self._explain(answer.asked.conversation, key_of(answer))

    def action_jump(self) -> None:
        """Into the replay of the conversation, at the evidence of this question."""
        if self._document.posed is not None:
            self._jump(self._document.posed)

    @work(group="opening", exclusive=True)
    async def _explain(self, conversation: str, key: AskKey) -> None:
        source = await self._opened(conversation)
        if source is None:
            return
        answer = next((one for one in source.timeline.answers() if key_of(one) == key), None)
        if answer is None:
            self.notify(_ANOTHER_RUN, markup=False)
            return
        destination = await self.app.push_screen_wait(WhyScreen(source.timeline, answer))
        if destination is not None:
            self.post_message(VisitWanted(source, destination))

    @work(group="opening", exclusive=True)
    async def _jump(self, posed: Posed) -> None:
        source = await self._opened(posed.conversation)
        if source is not None:
            self.post_message(VisitWanted(source, Evidence(posed.question)))

    async def _opened(self, conversation: str) -> ReplaySource | None:
        """A conversation of the run; None where it cannot be read, which is told."""
        listing = self.query_one(Listing)
        listing.border_subtitle = Content(f"opening {one_line(conversation)} …")
        try:
            source = await asyncio.to_thread(recorded, self._path, conversation)
            return None if self.was_left else source
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)
            return None
        finally:
            listing.border_subtitle = Content(self._progress)

    def action_leave(self) -> None:
        """Back to where the user came from."""
        self.dismiss()
