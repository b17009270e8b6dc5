"""The writer asked again: what it would have had the memory store about a lost fact, under one change at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.content import Content

from memreplay.conversations.models import Question
from memreplay.errors import MemreplayError
from memreplay.files import read_text
from memreplay.llm.rate_limiter import ModelUnavailableError, StoppedError
from memreplay.numbers import dollars
from memreplay.runtime.rewriting import (
    LostFact,
    WriterAgain,
    WriterChange,
    WriterChanges,
    estimate_of_change,
    model_of,
)
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.screens import KeyBar, PlaceScreen
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from memreplay.tui.screens.what_if import ChangesView
from memreplay.tui.terminal import WIDTHS
from memreplay.tui.widgets.lines_view import Bar, Head, Legend, LinesView
from memreplay.views.panels.answers import head_lines
from memreplay.views.panels.rewriting import WriterRow, asked_again_lines, effort_words
from memreplay.views.panels.writer import call_lines
from memreplay.views.text import Span, one_line

_MOST_TOKENS: Final = 1_000_000


class RewritingScreen(PlaceScreen[None]):
    """Asks the writer again about the lost ``facts`` of an answer, once the user agrees to what that takes."""

    PLACE: ClassVar[Place] = "writer"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)
    HORIZONTAL_BREAKPOINTS = [*WIDTHS, (120, "-wide")]
    AUTO_FOCUS = ""

    def __init__(
        self, timeline: Timeline, question: Question, answer: Answer, facts: Sequence[LostFact], writer: WriterAgain
    ) -> None:
        super().__init__()
        self._timeline, self._question, self._answer = timeline, question, answer
        self._facts, self._writer = tuple(facts), writer
        self._wanted = WriterChanges()
        self._rows: list[WriterRow] = []
        self._place = 0
        self._paid: list[float | None] = []
        self._fill_rows()

    def compose(self) -> ComposeResult:
        """Return the changes, and the recorded call beside them if there is room."""
        yield Bar(id="header")
        yield Head(id="head")
        with Container(id="whatif"):
            yield ChangesView(id="changes", classes="panel")
            yield LinesView(id="original", classes="panel")
        yield Legend(id="legend")
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one("#changes", ChangesView).border_title = Content("the writer asked again")
        self.query_one("#original", LinesView).border_title = Content("the call as recorded")
        self.query_one("#head", Head).show(head_lines(self._question, self._answer))
        legend = " ✓ would store the answer  ✗ would not  ! no reply · nothing is stored by asking"
        self.query_one("#legend", Bar).say(Span(legend, "dim"))
        self._paint()

    def on_unmount(self) -> None:
        self._writer.close()

    @property
    def picture_name(self) -> str:
        asked = self._answer.asked
        return f"{self._timeline.conversation.id}-writer-{asked.question_id}-{asked.backend}"

    def _fill_rows(self) -> None:
        """Make a row for each fact and change. A reply stays with its change."""
        known = {(row.fact.turn, row.change): row for row in self._rows}
        self._rows = [
            known.get((fact.turn, change))
            or WriterRow(fact, change, model_of(fact, change, self._wanted), estimate_of_change(fact, change))
            for fact in self._facts
            for change in self._wanted.names
        ]
        self._place = min(self._place, len(self._rows) - 1)

    # ---- what the user does --------------------------------------------------------------------------------

    def action_next(self) -> None:
        self._select(self._place + 1)

    def action_previous(self) -> None:
        self._select(self._place - 1)

    def action_ask(self) -> None:
        """Ask under the selected change, once the user agrees."""
        self._agree([self._place])

    def action_ask_all(self) -> None:
        """Ask under every change that has no reply yet, once the user agrees."""
        self._agree([place for place, row in enumerate(self._rows) if row.made is None])

    def action_stop(self) -> None:
        self.workers.cancel_group(self, "writer")
        self._rows = [replace(row, is_asking=False) for row in self._rows]
        self._paint()

    def action_edit(self) -> None:
        """Choose what else is tried."""
        tried = [self._try_model, self._try_limit, self._try_instructions]

        def chosen(place: int | None) -> None:
            if place is not None:
                tried[place]()

        names = ["another model", "a larger limit of a reply, in tokens", "other instructions, from a file"]
        self.app.push_screen(PickScreen("what else to try", names), chosen)

    def _try_model(self) -> None:
        """Try another model too."""

        def typed(name: str | None) -> None:
            if name is not None:
                self._try(replace(self._wanted, model=name or None), "other_model")

        note = "a model, as --writer-model takes it; empty tries none"
        self.app.push_screen(TypingScreen("another writer", note, value=self._wanted.model or ""), typed)

    def _try_limit(self) -> None:
        """Set the larger limit of a reply."""

        def refusal(text: str) -> str | None:
            is_good = not text or (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= _MOST_TOKENS)
            return None if is_good else f"expected 1 to {_MOST_TOKENS:,} tokens"

        def typed(text: str | None) -> None:
            if text is not None:
                self._try(replace(self._wanted, limit=int(text) if text else None), "larger_limit")

        value = str(self._wanted.limit or "")
        note = "tokens that a reply may take; empty: twice as many as recorded"
        self.app.push_screen(TypingScreen("a larger limit", note, value=value, refusal=refusal), typed)

    def _try_instructions(self) -> None:
        """Try the text of a file in place of the instructions too."""

        def typed(path: str | None) -> None:
            if path is None:
                return
            try:
                text = read_text(Path(path).expanduser()) if path else None
            except (OSError, ValueError, MemreplayError) as error:
                self.notify(f"{path}: cannot be read: {error}", severity="error", markup=False)
                return
            self._try(replace(self._wanted, instructions=text), "edited_prompt")

        note = "path of a text in place of the writer's instructions; empty tries none"
        self.app.push_screen(TypingScreen("other instructions", note), typed)

    def _try(self, wanted: WriterChanges, change: WriterChange) -> None:
        """Take other changes; ``change``, which they alter, has no reply yet."""
        self.action_stop()
        self._wanted = wanted
        self._rows = [row for row in self._rows if row.change != change]
        self._fill_rows()
        self._paint()

    def _agree(self, places: Sequence[int]) -> None:
        """Say what calls take, and ask if the user agrees."""
        rows = [self._rows[place] for place in places]
        if not rows or any(row.is_asking for row in self._rows):
            return
        models = ", ".join(dict.fromkeys(one_line(row.model) for row in rows))

        def chosen(place: int | None) -> None:
            if place == 1:
                self._ask(places)

        self.app.push_screen(PickScreen(f"ask {models} again?", ["no", f"yes: {effort_words(rows)}"]), chosen)

    @work(group="writer", exclusive=True)
    async def _ask(self, places: Sequence[int]) -> None:
        try:
            for done, place in enumerate(places, start=1):
                row = self._rows[place] = replace(self._rows[place], is_asking=True)
                self._paint(f"asking {done}/{len(places)} · x stops")
                made = await self._writer.ask(row.fact, row.change, self._wanted)
                self._paid.append(made.cost_usd)
                self._rows[place] = replace(row, made=made, is_asking=False)
        except (MemreplayError, StoppedError, ModelUnavailableError) as error:
            self.notify(str(error) or "The model is not available.", severity="error", markup=False)
            self._rows = [replace(row, is_asking=False) for row in self._rows]
        self._paint()

    # ---- painting ------------------------------------------------------------------------------------------

    def _select(self, place: int) -> None:
        self._place = max(0, min(place, len(self._rows) - 1))
        self._paint()

    def _paint(self, progress: str = "") -> None:
        if not self.is_attached:
            return
        call = self._rows[self._place].fact.call
        known = [paid for paid in self._paid if paid is not None]
        paid = f"  paid {dollars(sum(known) if len(known) == len(self._paid) else None)}" if self._paid else ""
        self.query_one("#header", Bar).say(
            Span(" WRITER ", "recorded"),
            Span(f"  {one_line(self._answer.asked.backend)}", "strong"),
            Span(f"  {one_line(call.model)}{paid}", "dim"),
            Span(f"  {progress}" if progress else "", "warn"),
        )
        lines = asked_again_lines(self._rows, self._place)
        marked = next((at for at, made in enumerate(lines) if made.spans[0].text.startswith("▶")), None)
        self.query_one("#changes", ChangesView).show(lines, in_view=marked)
        self.query_one("#original", LinesView).show(call_lines(call))
