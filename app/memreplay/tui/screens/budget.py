"""The budget curve of a run: how much reaches the prompt at which budget, for every memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from memreplay.debugger.budget import BudgetCurves
from memreplay.debugger.sweep import Swept
from memreplay.errors import MemreplayError
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.screens import KeyBar, PlaceScreen
from memreplay.tui.widgets.lines_view import Bar, Head, LinesView
from memreplay.views.panels.budget import figures_lines, plot_lines
from memreplay.views.sweep import sweep_sentences, sweep_table
from memreplay.views.table import as_lines
from memreplay.views.text import Line, Span, line, one_line

_OF_THE_CURVE = frozenset(["more_tokens", "fewer_tokens", "more_hits", "fewer_hits", "as_recorded"])
_OF_SETTINGS = frozenset(["next", "previous", "page_down", "page_up", "first", "last"])


class Plot(LinesView, can_focus=False):
    """The curves; the keys of the screen move its cursor."""

    SHOWS_PLACE = False


class Settings(LinesView, can_focus=False):
    """The settings of all memories; the keys of the screen scroll it."""


class BudgetScreen(PlaceScreen[None]):
    """Shows the curves that ``compute`` finds; it takes the number of hits, None for that of the run.

    A tab beside them compares the settings that ``sweep`` finds.
    """

    PLACE: ClassVar[Place] = "budget"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)
    AUTO_FOCUS = ""

    def __init__(
        self, name: str, compute: Callable[[int | None], BudgetCurves], sweep: Callable[[], Sequence[Swept]]
    ) -> None:
        super().__init__()
        self._sweep = sweep
        self._swept: Sequence[Swept] | None = None
        self._shows_settings = False
        self._name_of_run = name
        self._compute = compute
        self._curves: BudgetCurves | None = None
        self._cursor: int | None = None
        self._hits: int | None = None
        self._typed = 0
        """Moves of the cursor that were typed before the curves were known."""

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        yield Head(id="figures")
        yield Plot(id="plot", classes="panel")
        yield Settings(id="settings", classes="panel")
        yield LinesView(id="crossings")
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one("#plot", Plot).border_title = Content("questions whose answer is in the prompt")
        self.query_one("#settings", Settings).border_title = Content("settings, cut from the recorded rankings")
        self._paint()
        self._read()

    @work(group="reading", exclusive=True)
    async def _read(self) -> None:
        try:
            self._curves = await self.in_thread(self._compute, self._hits)
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        if self._cursor is None:
            self._cursor = self._place_of_the_run(self._curves)
        self._move(self._typed)
        self._typed = 0

    @staticmethod
    def _place_of_the_run(curves: BudgetCurves) -> int:
        """Return the budget nearest to that of the run; the largest one where none was chosen."""
        wanted = curves.context_tokens
        if wanted is None:
            return len(curves.budgets) - 1
        places = range(len(curves.budgets))
        return min(places, key=lambda place: abs(curves.budgets[place] - wanted))

    # ---- painting ------------------------------------------------------------------------------------------

    def _paint(self) -> None:
        for each in self.query("#figures, #plot, #crossings"):
            each.display = not self._shows_settings
        self.query_one("#settings", Settings).display = self._shows_settings
        if self._shows_settings:
            self._paint_settings()
            return
        curves, header = self._curves, self.query_one("#header", Bar)
        if curves is None or self._cursor is None:
            header.say(Span(" BUDGET ", "recorded"), Span(f"  {one_line(self._name_of_run)}", "strong"))
            self.query_one("#plot", Plot).show([line(Span("reading every prompt …", "dim"))])
            return
        run = f" · the run had {curves.context_tokens:,}" if curves.context_tokens else ""
        header.say(
            Span(" BUDGET ", "recorded"),
            Span(f"  {one_line(self._name_of_run)}", "strong"),
            Span(f"  at {curves.budgets[self._cursor]:,} tokens", "title"),
            Span(f"{run} · top {curves.top_k}", "changed" if self._hits is not None else "dim"),
        )
        self.query_one("#figures", Head).show(figures_lines(curves, self._cursor))
        self.query_one("#crossings", LinesView).show(self._sentences(curves))
        self.call_after_refresh(self._draw)

    @work(group="sweeping", exclusive=True)
    async def _compare(self) -> None:
        try:
            self._swept = await self.in_thread(self._sweep)
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)
            self._shows_settings = False
        self._paint()

    def _paint_settings(self) -> None:
        """Show the settings of each memory, and what can be said of them."""
        header, settings = self.query_one("#header", Bar), self.query_one("#settings", Settings)
        header.say(Span(" SETTINGS ", "recorded"), Span(f"  {one_line(self._name_of_run)}", "strong"))
        if self._swept is None:
            settings.show([line(Span("reading every prompt …", "dim"))])
            return
        lines = [line(Span(said), hang=1) for said in self._left_out()]
        for result in self._swept:
            lines += [line()] * bool(lines) + [line(Span(one_line(result.backend), "strong"))]
            lines += [replace(row, most=None, hang=4) for row in as_lines(sweep_table(result))]
            lines += [line(Span(" "), Span(said), hang=1) for said in sweep_sentences(result)]
        settings.show(lines or [line(Span("no ranking or evidence was recorded", "dim"))])

    def _left_out(self) -> Iterator[str]:
        """Yield which memories have no settings here, and why."""
        swept = {each.backend for each in self._swept or ()}
        for name, curve in (self._curves.memories if self._curves is not None else {}).items():
            if name not in swept and curve.n:
                why = "it composes its prompt anew for each setting" if curve.estimated else "not in these rankings"
                yield f"{one_line(name)}: {why}; memreplay sweep FILE asks it under each."

    def _draw(self) -> None:
        if self._shows_settings:
            return
        if self._curves is None or self._cursor is None:
            return
        plot = self.query_one("#plot", Plot)
        region = plot.scrollable_content_region
        plot.show(plot_lines(self._curves, region.width, region.height, self._cursor))

    @staticmethod
    def _sentences(curves: BudgetCurves) -> list[Line]:
        return [line(Span(" "), Span(one_line(sentence)), hang=1) for sentence in curves.sentences]

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._draw)

    # ---- keys ----------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the keys of the curve while settings are shown, and theirs while the curve is."""
        return action not in (_OF_THE_CURVE if self._shows_settings else _OF_SETTINGS)

    def action_more_tokens(self) -> None:
        self._move(1)

    def action_fewer_tokens(self) -> None:
        self._move(-1)

    def _move(self, places: int) -> None:
        if self._curves is None or self._cursor is None:
            self._typed += places
        else:
            self._cursor = max(0, min(self._cursor + places, len(self._curves.budgets) - 1))
            self._paint()

    def action_more_hits(self) -> None:
        self._cut(1)

    def action_fewer_hits(self) -> None:
        self._cut(-1)

    def _cut(self, more: int) -> None:
        if self._curves is not None:
            self._hits = max(1, (self._hits or self._curves.top_k) + more)
            self._read()

    def action_as_recorded(self) -> None:
        if self._curves is not None:
            self._hits, self._cursor = None, None
            self._read()

    def action_settings(self) -> None:
        self._shows_settings = not self._shows_settings
        self.refresh_bindings()
        if self._shows_settings and self._swept is None:
            self._compare()
        self._paint()

    def action_next(self) -> None:
        self.query_one("#settings", Settings).scroll_down(animate=False)

    def action_previous(self) -> None:
        self.query_one("#settings", Settings).scroll_up(animate=False)

    def action_page_down(self) -> None:
        self.query_one("#settings", Settings).scroll_page_down(animate=False)

    def action_page_up(self) -> None:
        self.query_one("#settings", Settings).scroll_page_up(animate=False)

    def action_first(self) -> None:
        self.query_one("#settings", Settings).scroll_home(animate=False)

    def action_last(self) -> None:
        self.query_one("#settings", Settings).scroll_end(animate=False)

    @property
    def picture_name(self) -> str:
        return f"{self._name_of_run}-budget"
