"""A run of tests on the screen: which test said what, what it waits for, and its score when it falls."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from app.conversations.models import Turn
from app.replay.events import (
    BenchmarkModelAsked,
    ClockSet,
    MemoryCleared,
    MessagePart,
    MessageSaid,
    ReplayEvent,
    TestBegan,
    TestScored,
    TestWaited,
)
from app.replay.timeline import Timeline
from app.scoring.rows_of_tests import differs_from_record, outcome_of_test
from app.tui.text import Line, Row, Span, line, one_line, wrapped
from app.tui.views.answers import SIGNS
from app.tui.views.conversation import ConversationDocument, Weight
from app.tui.views.test_scores import points_in_words, points_of
from app.tui.views.view import View, lines_view

_PARTS: Final[dict[MessagePart, str]] = {
    "script": "",
    "question": "question",
    "filler": "filler",
    "reply": "",
    "supplied": "supplied",
}
_ROWS_OF_NOTE = 3
_ROWS_OF_FILLER = 5
_DIGITS = 4


class TestsDocument(ConversationDocument):
    """A block a turn, as of any conversation, with what happened after it below; before the first, above it.

    It grows up to the turn that :meth:`grow_to` names: what happened at a turn is known when the turn is over.
    """

    __test__ = False

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline)
        self._digits = _DIGITS
        self._shown = len(timeline.conversation.turns)

    def grow_to(self, turns: int) -> None:
        """Show so many turns of what was said by now."""
        self._conversation = self._timeline.conversation
        self._shown = min(turns, len(self._conversation.turns))

    def __len__(self) -> int:
        return self._shown + (self.closed is not None)

    def _lay_out(
        self,
        index: int,
        width: int,
        current: bool,
        to_come: bool,
        chosen: bool,
        weight: Weight | None,
        closed: str | None,
    ) -> tuple[Row, ...]:
        rows = super()._lay_out(index, width, current, to_come, chosen, weight, closed)
        if index >= self._shown:
            return rows
        rows = self._without_most_filler(index, rows)
        before = self._notes(0) if index == 0 else []
        return (*wrapped(before, width), *rows, *wrapped(self._notes(index + 1), width))

    def _without_most_filler(self, index: int, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        said = self._said_at(index + 1)
        if said is None or said.test_id is not None or len(rows) <= _ROWS_OF_FILLER:
            return rows
        hidden = len(rows) - _ROWS_OF_FILLER
        return (
            *rows[:_ROWS_OF_FILLER],
            Row((Span(f"  … {hidden} more row{'s' if hidden > 1 else ''} of filler", "dim"),), rows[-1].fill),
        )

    def _mark(self, turn: Turn, chosen: bool) -> str:
        said = self._said_at(turn.number)
        if said is None:
            return ""
        parts = (said.test_id or "", _PARTS[said.part], f"no reply: {said.error}" if said.error else "")
        return "  " + one_line(" · ".join(part for part in parts if part))

    def _notes(self, turn: int) -> list[Line]:
        return [note for event in self._events(turn) for note in notes_of(event)]

    def _said_at(self, turn: int) -> MessageSaid | None:
        return next((event for event in self._events(turn) if isinstance(event, MessageSaid)), None)

    def _events(self, turn: int) -> Iterator[ReplayEvent]:
        for backend in self._timeline.backends:
            yield from self._timeline.events_at(backend, turn)


def document_of(timeline: Timeline) -> ConversationDocument:
    """The document of a conversation, whether it is replayed or comes about."""
    conversing = timeline.conversation.conversing
    return TestsDocument(timeline) if conversing else ConversationDocument(timeline)


def notes_of(event: ReplayEvent) -> list[Line]:
    """What is told of an event between two messages; nothing of most."""
    match event:
        case TestBegan():
            about = f": {one_line(event.description)}" if event.description else ""
            return [_note("┄ ", f"{one_line(event.test_id)} begins{about}")]
        case TestWaited() if event.tokens or event.until:
            return [_note("⏸ ", f"{one_line(event.test_id)} waits {_waits(event)}")]
        case ClockSet():
            return [_note("⏩ ", f"the clock is set from {_moment(event.before)} to {_moment(event.after)}")]
        case MemoryCleared():
            return [_note("∅ ", "the agent begins afresh, with an empty memory")]
        case BenchmarkModelAsked(used=True):
            who = f"the dataset asked {one_line(event.model or 'a model')} for {one_line(event.test_id)}"
            return [_note("⚖ ", f"{who}: {one_line(event.error or event.reply or '')}")]
        case TestScored():
            sign, tone = SIGNS[outcome_of_test(event)]
            why = one_line("; ".join(event.reasoning) or event.ungraded or "")
            told = f"{one_line(event.test_id)}: {points_in_words(event)}"
            spans = (Span(f"  {sign} ", tone), Span(told, "strong"), Span(f" · {why}" if why else "", "dim"))
            return [line(*spans, hang=4, most=_ROWS_OF_NOTE)]
        case _:
            return []


def scores_view(timeline: Timeline, cursor: int) -> View:
    """The small panel beside the conversation: a line for each test that has begun, the last at the end."""
    scored = {event.test_id: event for event in timeline.tests if isinstance(event, TestScored)}
    begun = [event for event in timeline.tests if isinstance(event, TestBegan) and event.turn <= cursor]
    over = [event for event in scored.values() if event.turn <= cursor]
    lines = []
    for event in begun:
        end = scored.get(event.test_id)
        if end is None or end.turn > cursor:
            lines.append(line(Span("… ", "dim"), one_line(event.test_id), Span("  running", "dim"), most=1))
            continue
        sign, tone = SIGNS[outcome_of_test(end)]
        lines.append(
            line(Span(f"{sign} ", tone), Span(f"{_short(end)} ", "value"), one_line(event.test_id), most=1)
        )
    points = sum(score for event in over if (score := points_of(event)) is not None)
    title = f"{len(over)}/{len(begun)} tests · {points:.3g} pts"
    return lines_view(title, lines, in_view=len(lines) - 1 if lines else None)


def first_turn_of(timeline: Timeline, place: int) -> int:
    """The turn at which the test in a line of the panel said something first."""
    return [event for event in timeline.tests if isinstance(event, TestBegan)][place].turn + 1


def _short(scored: TestScored) -> str:
    """Points, and after a sign those on record where they are others."""
    points = points_of(scored)
    recorded = f" ≠{scored.recorded_score:.3g}" if differs_from_record(scored) else ""
    return "–" if points is None else f"{points:.3g}{recorded}"


def _note(sign: str, text: str) -> Line:
    return line(Span(f"  {sign}", "accent"), Span(text, "dim"), hang=4, most=_ROWS_OF_NOTE)


def _waits(event: TestWaited) -> str:
    tokens = f"for {event.tokens} tokens" if event.tokens else ""
    until = f"until {_moment(event.until)}" if event.until else ""
    return " and ".join(part for part in (tokens, until) if part)


def _moment(moment: datetime) -> str:
    return f"{moment.day} {moment:%b %H:%M}"
