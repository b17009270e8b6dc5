"""The tests of a run as a list: what was asked, what was said, and the points; of two runs, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.replay.events import TestBegan, TestScored
from app.replay.timeline import Timeline
from app.scoring.rows_of_tests import differs_from_record, outcome_of_test, place_of_test
from app.tui.text import Line, Row, Span, Tone, beside, line, one_line
from app.tui.views.answers import SIGNS

_ROWS_OF_TEXT = 3
_SIGN = 2
_EQUAL = 1e-6


@dataclass(frozen=True)
class ListedTest:
    """A test that is over in at least one of the runs: what came of it in each; ``begun`` is where it began."""

    test_id: str
    sides: tuple[TestScored | None, ...]
    begun: tuple[int, ...]

    @property
    def some(self) -> TestScored:
        """What came of it, in the first run that has it."""
        return next(side for side in self.sides if side is not None)

    @property
    def difference(self) -> float:
        """How far apart the points of two runs are, 0..1; 0 where one has none."""
        points = [points_of(side) for side in self.sides if side is not None]
        known = [point for point in points if point is not None]
        return max(known) - min(known) if len(known) == len(self.sides) else 0.0


def listed_tests(*timelines: Timeline) -> list[ListedTest]:
    """The tests of one run or of two: by dataset and id; of two those first whose points are farthest apart."""
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
    """The points that count: ours, else those on record."""
    return scored.recorded_score if scored.score is None else scored.score


def points_in_words(scored: TestScored) -> str:
    """``1 of 1``, with the score on record where it is another, or where it alone is known."""
    if scored.score is None and scored.recorded_score is None:
        return "not graded"
    if scored.score is None:
        return f"{scored.recorded_score:.3g} of {scored.max_score:g}, as recorded"
    differs = f", recorded as {scored.recorded_score:.3g}" if differs_from_record(scored) else ""
    return f"{scored.score:.3g} of {scored.max_score:g}{differs}"


class ScoresDocument:
    """A block a test: what was asked and expected, and beside it what each run said to it and got for it."""

    def __init__(self, tests: Sequence[ListedTest], names: Sequence[str]) -> None:
        self._tests, self._names = tests, names
        self.cursor = 0
        self._laid_out = lru_cache(maxsize=512)(self._lay_out)

    def __len__(self) -> int:
        return len(self._tests)

    def height(self, index: int, width: int) -> int:
        """Rows that a test takes."""
        return len(self._laid_out(index, width, False))

    def rows(self, index: int, width: int) -> Sequence[Row]:
        """The rows of a test."""
        return self._laid_out(index, width, index == self.cursor)

    def subject(self, index: int) -> None:
        """Nothing: the screen moves through the tests by keys of its own."""

    def _lay_out(self, index: int, width: int, current: bool) -> tuple[Row, ...]:
        test = self._tests[index]
        columns = 1 + len(test.sides)
        sides = [_side(side, name) for side, name in zip(test.sides, self._names, strict=True)]
        rows = beside([_asked(test), *sides], [(width - _SIGN) // columns - 2] * columns)
        fill: Tone | None = "current" if current else None
        first = Row((Span("▶ " if current else "  ", "accent"), *rows[0].spans), fill)
        return (first, *(Row((Span("  "), *row.spans), fill) for row in rows[1:]), Row())


def totals_of(tests: Sequence[ListedTest], side: int) -> list[Line]:
    """Points of a run altogether, and by dataset in one paragraph; then whether ours are those on record."""
    over = [scored for test in tests if (scored := test.sides[side]) is not None]
    parts = [Span(f"{_sum(over)}  ", "value")]
    for name in dict.fromkeys(scored.dataset for scored in over):
        of_dataset = [scored for scored in over if scored.dataset == name]
        parts += [Span(f" {one_line(name)} ", "dim"), Span(_sum(of_dataset), "plain")]
    lines = [line(*parts)]
    recorded = [scored.recorded_score for scored in over if scored.recorded_score is not None]
    if recorded:
        differing = sum(map(differs_from_record, over))
        alone = sum(scored.score is None and scored.recorded_score is not None for scored in over)
        words = f"recorded {sum(recorded):.3g} · {differing} scored otherwise here · {alone} not scored again here"
        lines.append(line(Span(words, "warn" if differing else "dim")))
    return lines


def tally_of_tests(tests: Sequence[ListedTest]) -> str:
    """How many tests both runs have, and on how many their points differ."""
    both = [test for test in tests if all(test.sides)]
    return f"{len(both)} tests in both · points differ on {sum(test.difference > _EQUAL for test in both)}"


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
        return [line(Span("not over", "dim"))]
    sign, tone = SIGNS[outcome_of_test(scored)]
    marked: Tone = "warn" if differs_from_record(scored) else "value"
    head = line(Span(f"{sign} ", tone), Span(points_in_words(scored), marked), Span(f"  {name}", "dim"), hang=2)
    said = [line("  ", one_line(words), hang=2, most=_ROWS_OF_TEXT) for words in scored.responses[:_ROWS_OF_TEXT]]
    why = one_line("; ".join(scored.reasoning) or scored.ungraded or "")
    reason = [line("  ", Span(why, "dim"), hang=2, most=_ROWS_OF_TEXT)] if why else []
    return [head, *said, *reason]
