"""What is said of tests together: points won, and over what distance information was kept."""

from __future__ import annotations

from collections.abc import Sequence

from app.scoring.sections import QuestionRow, TestGroup, TestResults
from app.scoring.statistics import mean

_EQUAL = 1e-6
Rows = Sequence[QuestionRow]


def tests_of(rows: Rows) -> TestResults:
    """The rows of tests together."""
    recorded = [row.recorded_score for row in rows if row.recorded_score is not None]
    names = dict.fromkeys(row.type for row in rows)
    costs = [row.benchmark_cost_usd for row in rows if row.benchmark_cost_usd is not None]
    return TestResults(
        **_group(rows).model_dump(),
        by_dataset={name: _group([row for row in rows if row.type == name]) for name in names},
        recorded_score=sum(recorded) if recorded else None,
        differing=tuple(row.question_id for row in rows if differs(row)),
        not_recomputed=tuple(row.question_id for row in rows if _only_recorded(row)),
        benchmark_cost_usd=sum(costs) if costs else None,
    )


def counted_score(row: QuestionRow) -> float | None:
    """The score that counts: ours, else the recorded one; None where there is neither."""
    return row.recorded_score if row.score is None else row.score


def differs(row: QuestionRow) -> bool:
    """Whether a test has a recorded score and we come to another."""
    if row.recorded_score is None or row.score is None:
        return False
    return abs(row.score - row.recorded_score) > _EQUAL


def _only_recorded(row: QuestionRow) -> bool:
    return row.score is None and row.recorded_score is not None


def _group(rows: Rows) -> TestGroup:
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
