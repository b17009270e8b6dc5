"""Why two answers to one question differ: both explanations side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer

from memreplay.engine.probes import typed_question
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.background import in_thread
from memreplay.tui.panels.answers import AnswersTable, key_of
from memreplay.tui.panels.why import answers_beside, explain_answers, waiting_lines, why_lines
from memreplay.tui.screens.dialogs import export_screen
from memreplay.tui.screens.overlays import HelpScreen
from memreplay.tui.text import Span, one_line
from memreplay.tui.widgets.bars import Bar
from memreplay.tui.widgets.lines_view import LinesView


@dataclass(frozen=True)
class Side:
    """An answer, with the timeline and the name of its recording."""

    name: str
    timeline: Timeline
    answer: Answer


class TwoWhysScreen(Screen[int | None]):
    """Returns 1 for the next change, -1 for the previous one, None to go back."""

    PLACE: ClassVar[Place] = "two_whys"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]

    def __init__(self, left: Side, right: Side) -> None:
        super().__init__()
        self._sides = left, right

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        with Container(id="why"):
            yield LinesView(id="before", classes="panel")
            yield LinesView(id="after", classes="panel")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        question = self._sides[0].answer.asked.question_id
        self.query_one("#header", Bar).say(Span(" WHY ", "recorded"), Span(f"  {one_line(question)}", "strong"))
        for number, (side, view) in enumerate(zip(self._sides, self._views, strict=True), start=1):
            view.border_title = Content(f"{number} {one_line(side.name)} · {one_line(side.answer.asked.backend)}")
            asked = side.answer.asked
            known = side.timeline.question(asked.question_id) or typed_question(asked.typed or "")
            view.show(waiting_lines(known, side.answer))
        self._views[0].focus(scroll_visible=False)
        self._read()

    @property
    def _views(self) -> tuple[LinesView, LinesView]:
        return self.query_one("#before", LinesView), self.query_one("#after", LinesView)

    @work(group="attribution", exclusive=True)
    async def _read(self) -> None:
        for side, view in zip(self._sides, self._views, strict=True):
            asked = side.answer.asked
            answers = answers_beside(side.timeline, key_of(side.answer))
            explained = await in_thread(self, explain_answers, side.timeline, answers)
            names = AnswersTable.until(side.timeline, asked.turn)
            question = side.timeline.question(asked.question_id) or typed_question(asked.typed or "")
            own = explained[answers.index(side.answer)]
            view.show(why_lines(question, own, explained, {one: names.name_of(one) for one in names.systems}))

    def action_next_change(self) -> None:
        self.dismiss(1)

    def action_previous_change(self) -> None:
        self.dismiss(-1)

    def action_export(self) -> None:
        asked = self._sides[0].answer.asked
        export_screen(self, f"why-{asked.question_id}-{self._sides[0].name}-against-{self._sides[1].name}")

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen())

    def action_leave(self) -> None:
        self.dismiss(None)
