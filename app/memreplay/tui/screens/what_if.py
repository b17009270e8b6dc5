"""The what-if screen: a wrong answer under one change at a time, each prompt and reply beside the original."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.content import Content

from memreplay.conversations.models import Question
from memreplay.engine.events import QuestionAsked
from memreplay.errors import MemreplayError
from memreplay.llm.model import PromptMessage
from memreplay.llm.prompts import with_context
from memreplay.llm.rate_limiter import StoppedError
from memreplay.runtime.reasking import OneAnswer, cost_of_call
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.verdicts import Intervention, Label
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.screens import AnswerScreen, KeyBar
from memreplay.tui.terminal import WIDTHS
from memreplay.tui.widgets.lines_view import Bar, Head, Legend, LinesView
from memreplay.views.panels.answers import head_lines
from memreplay.views.panels.what_if import Agreement, Row, rows_of, what_if_head, what_if_lines
from memreplay.views.panels.why import PROMPT_LEGEND, prompt_view
from memreplay.views.text import Line, Span, line, one_line


class ChangesView(LinesView, can_focus=False):
    """The page of changes; the screen moves its selection."""


class WhatIfScreen(AnswerScreen[None]):
    """Asks one wrong answer again. ``open_answer`` makes what asks it; ``agreed`` raises unless the user agrees."""

    PLACE: ClassVar[Place] = "what_if"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)
    HORIZONTAL_BREAKPOINTS = [*WIDTHS, (120, "-wide")]
    AUTO_FOCUS = ""

    def __init__(
        self,
        timeline: Timeline,
        question: Question,
        answer: Answer,
        open_answer: Callable[[], OneAnswer],
        agreed: Callable[[], Awaitable[object]],
    ) -> None:
        super().__init__()
        self._timeline, self._question, self._answer = timeline, question, answer
        self._open_answer, self._agreed = open_answer, agreed
        self._one: OneAnswer | None = None
        self._rows: list[Row] = []
        self._label: Label | None = None
        self._agreement: Agreement = lambda asked: False
        self._place = 0
        self._asks_all_when_ready = False
        self._rebuilt = False

    def compose(self) -> ComposeResult:
        """Return the changes, and the two prompts side by side if there is room."""
        yield Bar(id="header")
        yield Head(id="head")
        with Container(id="whatif"):
            yield ChangesView(id="changes", classes="panel")
            with Container(id="prompts"):
                yield LinesView(id="original", classes="panel")
                yield LinesView(id="changed", classes="panel")
        yield Legend(id="legend")
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one("#legend", Bar).say(Span(f" {PROMPT_LEGEND}", "dim"))
        self.query_one("#changes", ChangesView).border_title = Content("what if")
        self.query_one("#original", LinesView).border_title = Content("the prompt as sent")
        self.query_one("#changes", ChangesView).show([line(Span("making the prompts …", "dim"))])
        self.query_one("#head", Head).show(head_lines(self._question, self._answer))
        self._paint_prompt("#original", self._answer.asked)
        self._paint_header("")
        self._prepare()

    async def on_unmount(self) -> None:
        if self._one is not None:
            with suppress(Exception):
                await self._one.close()

    # ---- what is known -------------------------------------------------------------------------------------

    @work(group="what-if", exclusive=True)
    async def _prepare(self) -> None:
        try:
            self._rows, self._label, self._agreement = await self.in_thread(self._read)
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        self._paint()
        if self._asks_all_when_ready:
            self.call_later(self.action_ask_all)

    def _read(self) -> tuple[list[Row], Label | None, Agreement]:
        """Return the changes with their costs, the recorded replies, the verdict, and who else says so; in a
        thread.
        """
        self._one = self._open_answer()
        changes = {
            change.intervention: (change, cost_of_call(change.request))
            for change in self._one.recorded_changes()
            if change.request is not None
        }
        attribution = Attributor(self._timeline).attribute(self._answer)
        label = attribution.label if attribution is not None else None
        return rows_of(changes, self._one.known()), label, self._one.agreement()

    # ---- what the user does --------------------------------------------------------------------------------

    def action_next(self) -> None:
        self._select(self._place + 1)

    def action_previous(self) -> None:
        self._select(self._place - 1)

    def action_ask(self) -> None:
        """Ask under the selected change."""
        if self._rows:
            self._ask([self._rows[self._place].intervention])

    def action_ask_all(self) -> None:
        """Ask under every change that has no reply yet; as soon as the prompts are made."""
        if not self._rows:
            self._asks_all_when_ready = True
            self._paint_header("asking all as soon as the prompts are made")
            return
        self._ask([row.intervention for row in self._rows if row.reask is None and row.state == "open"])

    def action_stop(self) -> None:
        self.workers.cancel_group(self, "what-if")
        self._rows = [replace(row, state="open") if row.state == "asking" else row for row in self._rows]
        self._paint_header("")
        self._paint()

    @property
    def picture_name(self) -> str:
        asked = self._answer.asked
        return f"{self._timeline.conversation.id}-what-if-{asked.question_id}-{asked.backend}"

    @work(group="what-if", exclusive=True)
    async def _ask(self, names: Sequence[Intervention]) -> None:
        if self._one is None or not names:
            return
        try:
            await self._agreed()
            for done, name in enumerate(names):
                self._paint_header(f"asking {done + 1}/{len(names)} · x stops")
                self._set(name, state="asking")
                await self._ask_one(self._one, name)
        except (MemreplayError, StoppedError) as error:
            self.notify(str(error) or "The model is not available.", severity="error", markup=False)
            self._rows = [replace(row, state="open") if row.state == "asking" else row for row in self._rows]
        self._paint_header("")
        self._paint()

    async def _ask_one(self, one: OneAnswer, name: Intervention) -> None:
        row = self._row(name)
        if row.change is None and not self._rebuilt:
            await self._rebuild(one)
            row = self._row(name)
        if row.change is None:
            self._set(name, state="no effect")
            return
        reask = await one.ask(row.change)
        self._set(name, reask=reask, state="open")
        if one.kept_for_session_only:
            self._paint_header("kept for this session only")

    async def _rebuild(self, one: OneAnswer) -> None:
        """Make the prompts for which the memory is rebuilt."""
        self._paint_header("rebuilding the memory · x stops")
        for change in await one.memory_changes():
            cost = cost_of_call(change.request) if change.request is not None else None
            self._set(change.intervention, change=change, cost=cost)
        self._rebuilt = True

    # ---- painting ------------------------------------------------------------------------------------------

    def _row(self, name: Intervention) -> Row:
        return next(row for row in self._rows if row.intervention == name)

    def _set(self, name: Intervention, **changes: object) -> None:
        self._rows = [
            replace(row, **changes) if row.intervention == name else row  # type: ignore[arg-type]
            for row in self._rows
        ]
        self._paint()

    def _select(self, place: int) -> None:
        self._place = max(0, min(place, len(self._rows) - 1))
        self._paint()

    def _paint_header(self, progress: str) -> None:
        asked = self._answer.asked
        self.query_one("#header", Bar).say(
            *self.tabs,
            Span(f"  {one_line(asked.backend)}", "strong"),
            Span(f"  {one_line(asked.model)}", "dim"),
            Span(f"  {one_line(progress)}" if progress else "", "warn"),
        )

    def _paint(self) -> None:
        if not self.is_mounted or not self._rows:
            return
        head = what_if_head(self._question, self._answer, self._label, self._rows, self._agreement)
        self.query_one("#head", Head).show(head)
        lines = what_if_lines(self._rows, self._place)
        marked = next((place for place, made in enumerate(lines) if _is_selected(made)), None)
        self.query_one("#changes", ChangesView).show(lines, in_view=marked)
        row = self._rows[self._place]
        changed = self.query_one("#changed", LinesView)
        changed.border_title = Content(f"the prompt with: {row.intervention.replace('_', ' ')}")
        prompt = self._prompt_of(row)
        if prompt is None:
            words = "No prompt: this change leaves it as it was." if row.state == "no effect" else "Not made yet."
            changed.show([line(Span(words, "dim"))])
            changed.border_subtitle = None
        else:
            self._paint_prompt("#changed", self._answer.asked.model_copy(update={"prompt": prompt}))
            changed.border_subtitle = Content(f"{row.cost.tokens:,} tokens" if row.cost is not None else "")

    def _prompt_of(self, row: Row) -> tuple[PromptMessage, ...] | None:
        if row.change is not None and row.change.request is not None:
            return row.change.request.messages
        if row.reask is not None and row.reask.reply.error is None:
            return with_context(self._answer.asked.prompt, row.reask.context)
        return None

    def _paint_prompt(self, selector: str, asked: QuestionAsked) -> None:
        shown = prompt_view(self._timeline.conversation, asked, self._question.evidence)
        self.query_one(selector, LinesView).show(list(shown.lines), in_view=shown.first_evidence)


def _is_selected(made: Line) -> bool:
    return bool(made.spans) and made.spans[0].text.startswith("▶")
