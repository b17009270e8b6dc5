"""The results of a whole run: every question of every conversation, each with a way into its replay."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import work
from textual.binding import BindingType
from textual.content import Content

from memreplay.errors import MemreplayError
from memreplay.timeline.timeline import Answer, AskKey
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.requests import Evidence, OtherAnswer, VisitWanted
from memreplay.tui.screens import Listing
from memreplay.tui.screens.results import QuestionsScreen, asked_of_all
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.sources import RecordedRun, ReplaySource, labels_in, recorded, recorded_run
from memreplay.views.panels.answers import AnswersTable, Labels, ListedQuestion, key_of
from memreplay.views.panels.results import ResultsChoice
from memreplay.views.text import one_line

_NO_QUESTION = "This run asked no questions. To list the results of tests, open their conversation and press r."
_ANOTHER_RUN = "This file has a newer run now: reopen the list."


class RunScreen(QuestionsScreen[None]):
    """Reads the answers of a recording's newest run in the background, then attributes them."""

    PLACE: ClassVar[Place] = "run"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, path: Path, choice: ResultsChoice) -> None:
        super().__init__(AnswersTable((), (), ()), choice)
        self._path = path
        self._extent = ""

    @property
    def picture_name(self) -> str:
        return f"{self._path.stem}-run"

    @property
    def header(self) -> tuple[str, str, str]:
        return "RUN", self._path.name, self._extent

    def on_mount(self) -> None:
        self.say_header()
        self._say("reading the answers …")
        self._read()

    def _say(self, progress: str) -> None:
        self._progress = progress
        self.query_one(Listing).border_subtitle = Content(progress)

    @work(group="reading", exclusive=True)
    async def _read(self) -> None:
        try:
            run = await self.in_thread(recorded_run, self._path)
            if len(run.table):
                self._show_run(run)
                await self._attribute(run)
            else:
                self._say("")
                self.notify(_NO_QUESTION, markup=False)
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)
            self._say("")

    def _show_run(self, run: RecordedRun) -> None:
        count = len(run.conversations)
        of = f"{count} conversations" if count > 1 else "one conversation"
        parts = [f"{len(run.table.questions):,} questions of {of}", asked_of_all(run.table)]
        state = "" if run.status == "finished" else run.status
        self._extent = " · ".join(part for part in (*parts, state) if part)
        self.show_table(run.table)

    async def _attribute(self, run: RecordedRun) -> None:
        """Show the labels on record; if there are none, attribute one conversation after the other."""
        if run.labels is not None:
            self._say("")
            self.show_labels(run.labels)
            return
        labels: Labels = {}
        for done, conversation in enumerate(run.conversations):
            self._say(f"attributing failures: {done} of {len(run.conversations)} conversations")
            labels = {**labels, **await self.in_thread(labels_in, self._path, run.id, conversation)}
            self.show_labels(labels)
        self._say("")

    # ---- into a conversation -------------------------------------------------------------------------------

    def explain(self, answer: Answer, *, to_write: bool = False) -> None:
        self._explain(answer.asked.conversation, key_of(answer), to_write)

    def action_jump(self) -> None:
        if self.document.selected_question is not None:
            self._jump(self.document.selected_question)

    @work(group="opening", exclusive=True)
    async def _explain(self, conversation: str, key: AskKey, to_write: bool) -> None:
        source = await self._opened(conversation)
        if source is None:
            return
        answer = next((one for one in source.timeline.answers() if key_of(one) == key), None)
        if answer is None:
            self.notify(_ANOTHER_RUN, markup=False)
            return
        why = WhyScreen(source.timeline, answer, source.load_annotations, source, to_write=to_write)
        match await self.app.push_screen_wait(why):
            case None:
                pass
            case OtherAnswer(step):
                self.explain(self.to_other_answer(step) or answer)
            case destination:
                self.post_message(VisitWanted(source, destination))

    @work(group="opening", exclusive=True)
    async def _jump(self, listed: ListedQuestion) -> None:
        source = await self._opened(listed.conversation)
        if source is not None:
            self.post_message(VisitWanted(source, Evidence(listed.question)))

    async def _opened(self, conversation: str) -> ReplaySource | None:
        """A conversation of the run; None if it cannot be read, after a notification."""
        listing = self.query_one(Listing)
        listing.border_subtitle = Content(f"opening {one_line(conversation)} …")
        try:
            return await self.in_thread(recorded, self._path, conversation)
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)
            return None
        finally:
            listing.border_subtitle = Content(self._progress)
