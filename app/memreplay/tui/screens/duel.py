"""The retrieval duel: one question and all memories in columns, with what each of them ranked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content

from memreplay.conversations.models import Question
from memreplay.debugger.recut import Candidate, candidates_of, recut
from memreplay.llm.tokens import token_counter
from memreplay.scoring.verdicts import Label
from memreplay.timeline.timeline import Answer, AskKey, Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.screens import KeyBar, PlaceScreen
from memreplay.tui.widgets.lines_view import Bar, LinesView
from memreplay.views.panels.answers import AnswersTable, System, key_of
from memreplay.views.panels.duel import DUEL_LEGEND, CandidateSubject, duel_lines
from memreplay.views.panels.why import explain_answers
from memreplay.views.text import Span, one_line

_NARROWEST_COLUMN = 38
_TOKENS_A_STEP = 256


class DuelColumn(LinesView):
    """One memory."""

    def __init__(self, number: int) -> None:
        super().__init__(classes="panel duel")
        self.number = number
        self.opened: set[int] = set()


class DuelScreen(PlaceScreen[AskKey | None]):
    """Returns the answer to explain, or None."""

    PLACE: ClassVar[Place] = "duel"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, timeline: Timeline, question: Question, answers: Sequence[Answer], focused: int = 0) -> None:
        super().__init__()
        self._timeline = timeline
        self._question = question
        self._answers = tuple(answers)
        self._focused_first = focused
        self._candidates: list[tuple[Candidate, ...]] = [() for _ in self._answers]
        self._labels: list[Label | None] = [None for _ in self._answers]
        self._more = 0
        self._tokens: int | None = None
        names = AnswersTable(
            (), [answer for answer in self._answers if not answer.asked.by_hand], timeline.backends
        )
        self._names = [names.name_of(System(answer.asked.backend, answer.asked.model)) for answer in self._answers]

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        yield Bar(id="asked")
        with Horizontal(id="duel"):
            for number in range(len(self._answers)):
                yield DuelColumn(number)
        yield Bar(id="legend")
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one("#legend", Bar).say(Span(f" {DUEL_LEGEND}", "dim"))
        self._columns[self._focused_first].focus(scroll_visible=False)
        self._paint()
        self._read()

    @work(group="attribution", exclusive=True)
    async def _read(self) -> None:
        """Count tokens and attribute the answers in the background."""
        self._candidates = await self.in_thread(self._ranked)
        self._paint()
        explained = await self.in_thread(explain_answers, self._timeline, self._answers)
        self._labels = [each.attribution.label if each.attribution is not None else None for each in explained]
        self._paint()

    def _ranked(self) -> list[tuple[Candidate, ...]]:
        return [
            candidates_of(self._timeline.conversation, answer.asked, token_counter(answer.asked.model))
            for answer in self._answers
        ]

    @property
    def _columns(self) -> list[DuelColumn]:
        return list(self.query(DuelColumn))

    @property
    def _here(self) -> int:
        return self.focused.number if isinstance(self.focused, DuelColumn) else 0

    # ---- painting ------------------------------------------------------------------------------------------

    def _paint(self) -> None:
        asked = self._answers[0].asked
        cut = [f"{self._more:+} hits" if self._more else "", f"{self._tokens:,} tokens" if self._tokens else ""]
        words = " · ".join(part for part in cut if part)
        self.query_one("#header", Bar).say(
            Span(" DUEL ", "recorded"),
            Span(f"  at turn {asked.turn}", "title"),
            Span("  asked by hand" if asked.by_hand else "", "warn"),
            Span(
                f"  cut again: {words}; no model is asked" if words else "  as recorded",
                "changed" if words else "dim",
            ),
        )
        self.query_one("#asked", Bar).say(
            Span(f" {one_line(self._question.text)}", "strong"),
            Span("  expected ", "dim") if self._question.expected else "",
            Span(one_line(self._question.expected), "value"),
        )
        for column in self._columns:
            self._paint_column(column)

    def _paint_column(self, column: DuelColumn) -> None:
        number = column.number
        cut = recut(self._candidates[number], self._question.evidence, self._more, self._tokens)
        column.border_title = Content(f"{number + 1} {self._names[number]}")
        ranked = self._candidates[number]
        column.border_subtitle = Content(f"{len(ranked)} candidates recorded" if len(ranked) > 1 else "")
        lines = duel_lines(
            self._timeline.conversation,
            self._question,
            self._answers[number],
            self._labels[number],
            cut,
            column.opened,
        )
        column.show(lines, in_view=0 if column.selected is None else column.block_about(column.selected))

    def on_resize(self, event: events.Resize) -> None:
        self._show_columns()

    def on_descendant_focus(self) -> None:
        self._show_columns()

    def _show_columns(self) -> None:
        """Show as many columns as have room, the focused one among them."""
        columns = self._columns
        room = max(1, self.size.width // _NARROWEST_COLUMN)
        first = max(0, min(self._here - room // 2, len(columns) - room))
        for column in columns:
            column.display = first <= column.number < first + room

    # ---- keys ----------------------------------------------------------------------------------------------

    def action_next_architecture(self) -> None:
        self._look_at(self._here + 1)

    def action_previous_architecture(self) -> None:
        self._look_at(self._here - 1)

    def _look_at(self, number: int) -> None:
        columns = self._columns
        column = columns[max(0, min(number, len(columns) - 1))]
        column.display = True
        column.focus(scroll_visible=False)

    def action_more_hits(self) -> None:
        self._cut(self._more + 1, self._tokens)

    def action_fewer_hits(self) -> None:
        self._cut(self._more - 1, self._tokens)

    def action_more_tokens(self) -> None:
        self._cut(self._more, self._budget + _TOKENS_A_STEP)

    def action_fewer_tokens(self) -> None:
        self._cut(self._more, max(_TOKENS_A_STEP, self._budget - _TOKENS_A_STEP))

    def action_as_recorded(self) -> None:
        self._cut(0, None)

    @property
    def _budget(self) -> int:
        """Return the budget to start from: the largest context that was recorded, in whole steps."""
        if self._tokens is not None:
            return self._tokens
        most = max(answer.asked.context_tokens for answer in self._answers)
        return -(-most // _TOKENS_A_STEP) * _TOKENS_A_STEP

    def _cut(self, more: int, tokens: int | None) -> None:
        hits = max((sum(each.is_hit for each in ranked) for ranked in self._candidates), default=0)
        deepest = max((len(ranked) for ranked in self._candidates), default=0)
        self._more = max(-hits, min(more, deepest - min(hits, deepest)))
        self._tokens = tokens
        self._paint()

    @on(LinesView.Followed)
    def _followed(self, message: LinesView.Followed) -> None:
        """Open or close a merged hit."""
        if isinstance(message.view, DuelColumn) and isinstance(message.subject, CandidateSubject):
            message.view.opened ^= {message.subject.rank}
            self._paint_column(message.view)

    def action_why(self) -> None:
        self.dismiss(key_of(self._answers[self._here]))

    @property
    def picture_name(self) -> str:
        return f"{self._timeline.conversation.id}-duel-{self._question.id}"
