"""A run of tests: its conversation with notes between the messages, and the scores of the tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memreplay.conversations.models import Turn
from memreplay.engine.events import (
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
from memreplay.numbers import counted
from memreplay.scoring.rows import differs_from_record, outcome_of_test, place_of_test
from memreplay.text import with_semicolons
from memreplay.timeline.timeline import Timeline
from memreplay.views.document import ListDocument
from memreplay.views.panels import View, lines_view
from memreplay.views.panels.answers import SIGNS
from memreplay.views.panels.conversation import ConversationDocument, Look
from memreplay.views.text import Line, Row, Span, Tone, beside, cells, line, one_line, pad, paragraphs, wrapped

_ROWS_OF_TEXT = 3
_EQUAL = 1e-6


@dataclass(frozen=True)
class ListedTest:
    """A test that finished in at least one run: its score in each run, and the turn at which it began there."""

    test_id: str
    sides: tuple[TestScored | None, ...]
    begun: tuple[int, ...]

    @property
    def some(self) -> TestScored:
        """Return the score of the first run in which the test finished."""
        return next(side for side in self.sides if side is not None)

    @property
    def difference(self) -> float:
        """Return how far apart the points of two runs are; 0 if one has none."""
        points = [points_of(side) for side in self.sides if side is not None]
        known = [point for point in points if point is not None]
        return max(known) - min(known) if len(known) == len(self.sides) else 0.0


def listed_tests(*timelines: Timeline) -> list[ListedTest]:
    """Return the tests of one run or two, sorted by the difference of their points, then by dataset and id."""
    over, begun = [], []
    for timeline in timelines:
        scored = [event for event in timeline.tests if isinstance(event, TestScored)]
        over.append({event.test_id: event for event in scored})
        begun.append({event.test_id: event.turn + 1 for event in timeline.tests if isinstance(event, TestBegan)})
    every = {test_id: event for side in over for test_id, event in side.items()}
    tests = [
        ListedTest(
            test_id, tuple(side.get(test_id) for side in over), tuple(side.get(test_id, 1) for side in begun)
        )
        for test_id in sorted(every, key=lambda test_id: place_of_test(every[test_id]))
    ]
    return sorted(tests, key=lambda test: -test.difference)


def points_of(scored: TestScored) -> float | None:
    """Return the points that count: ours, else the recorded ones."""
    return scored.recorded_score if scored.score is None else scored.score


def points_in_words(scored: TestScored) -> str:
    """``1 of 1``, with the recorded score if it differs from ours or is the only one."""
    if scored.score is None and scored.recorded_score is None:
        return "not graded"
    if scored.score is None:
        return f"{scored.recorded_score:.3g} of {scored.max_score:g}, as recorded"
    differs = f", recorded as {scored.recorded_score:.3g}" if differs_from_record(scored) else ""
    return f"{scored.score:.3g} of {scored.max_score:g}{differs}"


class ScoresDocument(ListDocument):
    """One block per test: questions and expected answer, then the replies and points of each run beside them."""

    def __init__(self, tests: Sequence[ListedTest], names: Sequence[str]) -> None:
        super().__init__()
        self._tests, self._names = tests, names

    def __len__(self) -> int:
        return len(self._tests)

    def lay_out(self, index: int, width: int, column: int | None) -> Sequence[Row]:
        test = self._tests[index]
        columns = 1 + len(test.sides)
        sides = [_side(side, name) for side, name in zip(test.sides, self._names, strict=True)]
        return beside([_asked(test), *sides], [width // columns - 2] * columns)


def totals_of(tests: Sequence[ListedTest], side: int, width: int) -> list[Line]:
    """Total points of a run, points by dataset in columns, then how they compare with the recorded scores."""
    over = [scored for test in tests if (scored := test.sides[side]) is not None]
    by_dataset = {
        one_line(name): _sum([scored for scored in over if scored.dataset == name])
        for name in dict.fromkeys(scored.dataset for scored in over)
    }
    lines = [line(Span(_sum(over), "value"), Span("  all datasets", "strong"))]
    points = max(map(cells, by_dataset.values()), default=0)
    column = points + 2 + max(map(cells, by_dataset), default=0) + 3
    a_row = max(1, width // column)
    entries = [*by_dataset.items()]
    for first in range(0, len(entries), a_row):
        parts = [
            part
            for name, sum_ in entries[first : first + a_row]
            for part in (Span(pad(sum_, points)), Span(f"  {pad(name, column - points - 2)}", "dim"))
        ]
        lines.append(line(*parts, most=1))
    recorded = [scored.recorded_score for scored in over if scored.recorded_score is not None]
    if recorded:
        differing = sum(map(differs_from_record, over))
        alone = sum(scored.score is None and scored.recorded_score is not None for scored in over)
        words = (
            f"recorded {sum(recorded):.3g} · {differing} scored differently here · {alone} not scored again here"
        )
        lines.append(line(Span(words, "warn" if differing else "dim")))
    return lines


def test_lines(scored: TestScored, *, memory_recorded: bool) -> list[Line]:
    """Return why a test has its points: what was asked, expected and replied, in full, and how it was graded."""
    sign, tone = SIGNS[outcome_of_test(scored)]
    lines = [
        line(Span(one_line(scored.test_id), "title"), Span(f"  {one_line(scored.dataset)}", "dim")),
        line(Span(f"{sign} {points_in_words(scored)}", tone)),
        line(""),
        line(Span("asked", "title")),
        *(each for text in scored.questions for each in paragraphs(text, indent=2)),
        line(""),
        line(Span("expected", "title")),
        *paragraphs(scored.expected, "value", indent=2),
        line(""),
        line(Span("replied", "title")),
        *(each for text in scored.responses for each in paragraphs(text, indent=2)),
        line(""),
        line(Span("how it was graded", "title")),
        *(each for text in scored.reasoning for each in paragraphs(text, indent=2)),
        *(paragraphs(scored.ungraded, "bad", indent=2) if scored.ungraded else []),
    ]
    if not memory_recorded:
        lines += [line(""), line(Span("What memory held and gave to the model was not recorded.", "warn"))]
    return lines


def tally_of_tests(tests: Sequence[ListedTest]) -> str:
    """Return how many tests finished in both runs, and on how many the points differ."""
    both = [test for test in tests if all(test.sides)]
    differing = sum(test.difference > _EQUAL for test in both)
    return f"{counted(len(both), 'test')} in both · points differ on {differing}"


def _sum(over: Sequence[TestScored]) -> str:
    points = [point for scored in over if (point := points_of(scored)) is not None]
    most = sum(scored.max_score for scored in over if points_of(scored) is not None)
    ungraded = len(over) - len(points)
    return f"{sum(points):.3g}/{most:g}" + (f" ({ungraded} not graded)" if ungraded else "")


def _asked(test: ListedTest) -> list[Line]:
    some = test.some
    asked = [line(Span(one_line(text), "strong"), most=_ROWS_OF_TEXT) for text in some.questions[:_ROWS_OF_TEXT]]
    expected = line(Span("expected ", "dim"), Span(one_line(some.expected), "value"), hang=2, most=_ROWS_OF_TEXT)
    return [line(Span(one_line(test.test_id), "title")), *asked, expected]


def _side(scored: TestScored | None, name: str) -> list[Line]:
    if scored is None:
        return [line(Span("not finished", "dim"))]
    sign, tone = SIGNS[outcome_of_test(scored)]
    marked: Tone = "warn" if differs_from_record(scored) else "value"
    head = line(Span(f"{sign} ", tone), Span(points_in_words(scored), marked), Span(f"  {name}", "dim"), hang=2)
    said = [line("  ", one_line(words), hang=2, most=_ROWS_OF_TEXT) for words in scored.responses[:_ROWS_OF_TEXT]]
    why = one_line(with_semicolons(scored.reasoning) or scored.ungraded or "")
    reason = [line("  ", Span(why, "dim"), hang=2, most=_ROWS_OF_TEXT)] if why else []
    return [head, *said, *reason]


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
    """One block per turn, with notes on what happened after it; notes before the first turn stand above it.

    It shows turns up to :meth:`grow_to`: what happened at a turn is known only when the turn is over.
    """

    __test__ = False

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline)
        self._digits = _DIGITS
        self._shown = len(timeline.conversation.turns)

    def grow_to(self, turns: int) -> None:
        """Show this many of the turns said so far."""
        self._conversation = self._timeline.conversation
        self._shown = min(turns, len(self._conversation.turns))

    def __len__(self) -> int:
        return self._shown + (self.closed is not None)

    def _lay_out(self, index: int, width: int, look: Look) -> tuple[Row, ...]:
        rows = super()._lay_out(index, width, look)
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


def shows_tests(timeline: Timeline) -> bool:
    """Return whether there are tests with scores, in the place of questions with answers."""
    return timeline.conversation.conversing


def document_of(timeline: Timeline) -> ConversationDocument:
    """Return the document of a conversation, fixed (a dataset) or growing (a run of tests)."""
    return TestsDocument(timeline) if shows_tests(timeline) else ConversationDocument(timeline)


def notes_of(event: ReplayEvent) -> list[Line]:
    """Return the notes on an event between two messages; empty for most kinds."""
    match event:
        case TestBegan():
            about = f": {one_line(event.description)}" if event.description else ""
            return [_note("┄ ", f"{one_line(event.test_id)} begins{about}")]
        case TestWaited() if event.tokens or event.until:
            return [_note("⏸ ", f"{one_line(event.test_id)} waits {_waits(event)}")]
        case ClockSet():
            return [_note("⏩ ", f"the clock is set from {_moment(event.before)} to {_moment(event.after)}")]
        case MemoryCleared():
            return [_note("∅ ", "the agent restarts with an empty memory")]
        case BenchmarkModelAsked(used=True):
            who = f"the dataset asked {one_line(event.model or 'a model')} for {one_line(event.test_id)}"
            return [_note("⚖ ", f"{who}: {one_line(event.error or event.reply or '')}")]
        case TestScored():
            sign, tone = SIGNS[outcome_of_test(event)]
            why = one_line(with_semicolons(event.reasoning) or event.ungraded or "")
            points = f"{one_line(event.test_id)}: {points_in_words(event)}"
            spans = (Span(f"  {sign} ", tone), Span(points, "strong"), Span(f" · {why}" if why else "", "dim"))
            return [line(*spans, hang=4, most=_ROWS_OF_NOTE)]
        case _:
            return []


def scores_view(timeline: Timeline, cursor: int) -> View:
    """Return the small panel beside the conversation: one line per test that has begun, latest last."""
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
    """Return the first turn of the test in a line of the scores panel."""
    return [event for event in timeline.tests if isinstance(event, TestBegan)][place].turn + 1


def _short(scored: TestScored) -> str:
    """Return the points, followed by ``≠`` and the recorded ones if they differ."""
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
