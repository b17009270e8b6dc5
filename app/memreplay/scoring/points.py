"""The points of tests, as scored again and as recorded."""

from __future__ import annotations

from memreplay.conversations.models import Frozen
from memreplay.scoring.groups import Rows
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.statistics import mean

_EQUAL = 1e-6


class TestGroup(Frozen):
    """Tests of one dataset, or all. ``score`` and ``max_score`` are sums over the graded tests.

    If a test could not be rescored, its recorded score counts. ``correct`` tests have full marks, ``errors`` could
    not be graded. ``ltm_score`` is the mean distance in tokens between information and question, over the tests
    with full marks.
    """

    __test__ = False

    total: int
    graded: int
    correct: int
    errors: int
    score: float
    max_score: float
    ltm_score: float | None


class TestResults(TestGroup):
    """All tests. ``recorded_score`` is the sum of the scores recorded in an imported run.

    ``differing`` are the ids of tests whose new score differs from the recorded one, ``not_recomputed`` of those
    without a new score. ``benchmark_cost_usd`` is the cost of judging and role play, which the agent's ``cost_usd``
    excludes.
    """

    by_dataset: dict[str, TestGroup]
    recorded_score: float | None
    differing: tuple[str, ...]
    not_recomputed: tuple[str, ...]
    benchmark_cost_usd: float | None


def tests_of(rows: Rows) -> TestResults:
    """Aggregate the rows of tests."""
    recorded = [row.recorded_score for row in rows if row.recorded_score is not None]
    names = dict.fromkeys(row.type for row in rows)
    costs = [row.benchmark_cost_usd for row in rows if row.benchmark_cost_usd is not None]
    return TestResults(
        **_test_group(rows).model_dump(),
        by_dataset={name: _test_group([row for row in rows if row.type == name]) for name in names},
        recorded_score=sum(recorded) if recorded else None,
        differing=tuple(row.question_id for row in rows if differs(row)),
        not_recomputed=tuple(row.question_id for row in rows if _only_recorded(row)),
        benchmark_cost_usd=sum(costs) if costs else None,
    )


def counted_score(row: QuestionRow) -> float | None:
    """Return the score that counts: the new one, else the recorded one, else None."""
    return row.recorded_score if row.score is None else row.score


def differs(row: QuestionRow) -> bool:
    """Return whether the recorded and the new score of a test differ."""
    if row.recorded_score is None or row.score is None:
        return False
    return abs(row.score - row.recorded_score) > _EQUAL


def _only_recorded(row: QuestionRow) -> bool:
    return row.score is None and row.recorded_score is not None


def _test_group(rows: Rows) -> TestGroup:
    graded = [(row, score) for row in rows if (score := counted_score(row)) is not None]
    kept = [
        float(row.distance_tokens)
        for row, score in graded
        if row.distance_tokens is not None and score >= row.max_score - _EQUAL
    ]
    return TestGroup(
        total=len(rows),
        graded=len(graded),
        correct=sum(row.outcome == "correct" for row, _ in graded),
        errors=len(rows) - len(graded),
        score=sum(score for _, score in graded),
        max_score=sum(row.max_score for row, _ in graded),
        ltm_score=mean(kept),
    )
