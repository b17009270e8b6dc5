"""Two runs compared as a regression view: what was fixed, what broke, and what is wrong for another reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from memory_backends.controls import CONTROLS
from memreplay.debugger.alignment import Divergence, divergence
from memreplay.errors import MemreplayError
from memreplay.recording.branches import Branch
from memreplay.scoring.run_comparison import Change, compare_runs, differing_settings
from memreplay.text import shortened
from memreplay.timeline.timeline import Answer
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.requests import Evidence, VisitWanted
from memreplay.tui.screens import KeyBar, Listing, Scores
from memreplay.tui.screens.results import Details, ResultsTab
from memreplay.tui.screens.why import Side, TwoWhysScreen
from memreplay.tui.sources import RecordedRun, ReplaySource, labels_in, recorded, rows_of
from memreplay.tui.widgets.lines_view import Bar, Legend
from memreplay.views.comparison import RegressionDocument, change_details, comparison_lines, fork_lines
from memreplay.views.panels.answers import letters_legend
from memreplay.views.text import Line, Span, line, one_line, wrapped

_MOST_OF_SCORES = 9
_SHORT = 30
_LONGEST_NAME = 48
"""Characters of what a branch changes that name it in the header."""
_NO_ANSWERS = (
    "The run that this departs from has no answers yet: play it to its end, and F lists this branch again."
)
_WHAT_TO_COMPARE = (
    "Compare two recordings of the same conversation, with a memory that both have; d chooses another one."
)


class RegressionScreen(ResultsTab):
    """Compares the newest runs of two recordings, or a branch with its trunk, each memory with its own counterpart.

    ``trunk`` is the conversation that a branch departs from, if it is open. The other tabs list the first run.
    """

    PLACE: ClassVar[Place] = "regression"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)
    VERTICAL_BREAKPOINTS = [(0, "-short"), (_SHORT, "-tall")]
    document: RegressionDocument

    def __init__(
        self,
        paths: tuple[Path, Path],
        runs: tuple[RecordedRun, RecordedRun],
        trunk: ReplaySource | None = None,
    ) -> None:
        super().__init__()
        self._paths, self._runs = paths, runs
        same = paths[0].name == paths[1].name
        names = [str(path) if same else path.name for path in paths]
        if runs[1].branch is not None:
            names = ["as recorded", shortened(runs[1].branch.edit, _LONGEST_NAME)]
        self._names = tuple(
            name + ("" if run.status == "finished" else f" ({run.status})")
            for name, run in zip(names, runs, strict=True)
        )
        self._labels = [run.labels or {} for run in runs]
        self._by_choice = runs[0].table.by_choice
        self._recording = paths[0]
        if trunk is not None:
            self.sources[trunk.timeline.conversation.id, 0] = trunk
            self._recording = trunk.path or paths[0]
        self._differ: dict[str, Divergence] | None = None
        self.document = RegressionDocument(())
        self._score_lines: Sequence[Line] = ()

    tab = "against"

    @property
    def recording(self) -> Path | None:
        return self._recording

    @property
    def conversation(self) -> str | None:
        return None if self.document.selected is None else self.document.selected.conversation

    def open_source(self, conversation: str, side: int) -> ReplaySource:
        return recorded(self._paths[side], conversation, self._runs[side].id)

    @property
    def picture_name(self) -> str:
        second = self._paths[1].stem if self._runs[1].branch is None else self._runs[1].id
        return f"{self._paths[0].stem}-against-{second}"

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        yield Scores(id="scores", classes="panel")
        yield Listing(id="questions", classes="panel")
        yield Details(id="details", classes="panel")
        yield Legend(id="legend")
        yield KeyBar()

    def on_mount(self) -> None:
        self._compare()
        if any(run.labels is None for run in self._runs):
            self._attribute()
        if self._runs[1].branch is not None:
            self._diverge(self._runs[1].branch)

    def _compare(self) -> None:
        """Group the answers again, with all labels known so far."""
        rows = [rows_of(run, labels) for run, labels in zip(self._runs, self._labels, strict=True)]
        listing = self.query_one(Listing)
        branch = self._runs[1].branch
        fork = fork_lines(branch, self._differ) if branch is not None else []
        settings = differing_settings(self._runs[0].settings, self._runs[1].settings)
        try:
            compared = compare_runs(rows[0], rows[1])
        except MemreplayError as error:
            self._show_scores(fork)
            is_empty = bool(branch) and not rows[0]
            said = _NO_ANSWERS if is_empty else f"{str(error)[0].upper()}{str(error)[1:]}."
            listing.border_title = Content("changed answers")
            listing.show(
                [line(Span(one_line(said), "warn")), line(Span("" if is_empty else _WHAT_TO_COMPARE, "dim"))]
            )
            self.query_one(Details).display, self.query_one(Scores).display = False, bool(fork)
            self.moved()
            return
        # Labels that become known sort the changes anew: the first stays selected until the user moves.
        selected = self.document.selected if self.document.cursor else None
        self.document = RegressionDocument(compared.changes, self._by_choice)
        if selected is not None:
            known = [_identity(change) for change in self.document.changes]
            self.document.cursor = known.index(_identity(selected)) if _identity(selected) in known else 0
        self._show_scores([*fork, *comparison_lines(compared, settings)])
        count = len(compared.changes)
        listing.border_title = Content(f"changed answers · {count:,} · {compared.alike:,} did not change")
        listing.show(self.document, in_view=self.document.cursor if count else None)
        kinds = "≡ by choice, else in words  " if self._by_choice else ""
        letters = letters_legend({**self._labels[0], **self._labels[1]})
        self.query_one("#legend", Bar).say(Span(f" {kinds}{letters}", "dim"))
        self.moved()

    def on_resize(self) -> None:
        if self._score_lines:
            self.call_after_refresh(self._fit_scores)

    def _show_scores(self, lines: Sequence[Line]) -> None:
        self._score_lines = lines
        self._fit_scores()

    def _fit_scores(self) -> None:
        """Show the scores of this moment: those that a resize found may have been replaced before the refresh."""
        lines = self._score_lines
        self.query_one(Details).styles.height = 7 if self.size.height < _SHORT else 9
        scores = self.query_one("#scores", Scores)
        rows = len(wrapped(lines, self.size.width - 4))
        scores.styles.height = min(rows, _MOST_OF_SCORES) + (1 if self.size.height < _SHORT else 2)
        scores.border_title = Content("before → after")
        scores.show(lines)

    @work(group="divergence", exclusive=True)
    async def _diverge(self, branch: Branch) -> None:
        """Find the turn from which on the memories differ from those of the trunk."""
        trunk, other = [await self.source(branch.conversation, side) for side in (0, 1)]
        if trunk is None or other is None:
            self._differ = {}
            self._compare()
            return
        self._differ = {
            backend: await self.in_thread(divergence, trunk.timeline, other.timeline, backend)
            for backend in other.timeline.backends
            if backend in trunk.timeline.backends and backend not in CONTROLS
        }
        self._compare()

    @work(group="attribution", exclusive=True)
    async def _attribute(self) -> None:
        """Attribute the runs that were never scored, one conversation after the other."""
        listing = self.query_one(Listing)
        for side, (path, run) in enumerate(zip(self._paths, self._runs, strict=True)):
            if run.labels is not None:
                continue
            for done, conversation in enumerate(run.conversations):
                of = f"{done} of {len(run.conversations)}"
                listing.border_subtitle = Content(f"attributing failures of {side + 1}: {of} conversations")
                found = await self.in_thread(labels_in, path, run.id, conversation)
                self._labels[side] = {**self._labels[side], **found}
        listing.border_subtitle = Content("")
        self._compare()

    def moved(self) -> None:
        change = self.document.selected
        self.query_one(Details).show([] if change is None else change_details(change, self._of_change(change)))
        place = f"  {self.document.cursor + 1:,}/{len(self.document):,}" if change is not None else ""
        self.query_one("#header", Bar).say(
            *self.tabs,
            Span(f"  1 {one_line(self._names[0])}", "strong"),
            Span("  →", "dim"),
            Span(f"  2 {one_line(self._names[1])}", "strong"),
            Span(place, "title"),
            Span(f"  count {self.count.shown}" if self.count.shown else "", "warn"),
        )

    def _of_change(self, change: Change) -> tuple[str, str]:
        return f"1 {change.of_a[0]}", f"2 {change.of_b[0]}"

    # ---- opening -------------------------------------------------------------------------------------------

    def choose(self) -> None:
        self.action_why()

    def action_why(self) -> None:
        """Show both explanations of the selected change, side by side."""
        if self.document.selected is not None:
            self._explain()

    @work(group="opening", exclusive=True)
    async def _explain(self) -> None:
        step: int | None = 0
        while step is not None and self.document.selected is not None:
            self.point_at(self.document.cursor + step)
            change = self.document.selected
            sides = [await self._side(0, change, change.of_a), await self._side(1, change, change.of_b)]
            if sides[0] is None or sides[1] is None:
                return
            step = await self.app.push_screen_wait(TwoWhysScreen(sides[0], sides[1]))

    async def _side(self, side: int, change: Change, of: tuple[str, str]) -> Side | None:
        source = await self.source(change.conversation, side)
        if source is None:
            return None
        answer = next((one for one in source.timeline.answers() if _is_of(one, change, of)), None)
        if answer is None:
            self.notify("This recording has changed since: compare again.", markup=False)
            return None
        return Side(self._names[side], source.timeline, answer)

    def action_open_left(self) -> None:
        self._visit(0)

    def action_open_right(self) -> None:
        self._visit(1)

    @work(group="opening", exclusive=True)
    async def _visit(self, side: int) -> None:
        change = self.document.selected
        if change is None:
            return
        source = await self.source(change.conversation, side)
        question = source.timeline.question(change.question_id) if source is not None else None
        if source is not None and question is not None:
            self.post_message(VisitWanted(source, Evidence(question)))


def _identity(change: Change) -> tuple[object, ...]:
    return change.dataset, change.conversation, change.question_id, change.contestant, change.repeat


def _is_of(answer: Answer, change: Change, of: tuple[str, str]) -> bool:
    asked = answer.asked
    return not asked.by_hand and (asked.question_id, asked.repeat, asked.backend, asked.model) == (
        change.question_id,
        change.repeat,
        *of,
    )
