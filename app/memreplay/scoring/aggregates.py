"""What is said of tests together: points won, and over what distance information was kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import get_args

from memory_backends.stores.trace import Extraction
from memreplay.conversations.formats.locomo import ADVERSARIAL
from memreplay.conversations.models import InfoLocation, Salience
from memreplay.grading import Outcome
from memreplay.scoring.attribution import LABELS
from memreplay.scoring.sections import (
    AdjustedResults,
    ExtractionResults,
    Group,
    Latency,
    MultipleChoiceResults,
    QuestionRow,
    RecallResults,
    RetrievalResults,
    TestGroup,
    TestResults,
    Tokens,
)
from memreplay.scoring.statistics import mean, percentile, wilson_interval

Rows = Sequence[QuestionRow]

SMALLEST_MATRIX = 10


def group_of(rows: Rows) -> Group:
    """Total, graded, correct, and the accuracy with its interval."""
    graded = len(rows) - _count(rows, "error")
    correct = _count(rows, "correct")
    return Group(
        total=len(rows),
        graded=graded,
        correct=correct,
        accuracy=correct / graded if graded else None,
        ci95=wilson_interval(correct, graded),
    )


def _count(rows: Rows, outcome: Outcome) -> int:
    return sum(row.outcome == outcome for row in rows)


def _groups(rows: Rows, name_of: Callable[[QuestionRow], str | None], names: Iterable[str]) -> dict[str, Group]:
    """Groups under the given names, in their order; a row without a name is in none."""
    return {name: group_of([row for row in rows if name_of(row) == name]) for name in names}


def multiple_choice_of(rows: Rows) -> MultipleChoiceResults:
    """The multiple-choice rows together."""
    everything = group_of(rows)
    return MultipleChoiceResults(
        **everything.model_dump(),
        accuracy_without_adversarial=group_of([row for row in rows if row.type != ADVERSARIAL.mc10]).accuracy,
        unparsed=_count(rows, "unparsed"),
        refused=_count(rows, "refused"),
        errors=_count(rows, "error"),
        by_type=_groups(rows, lambda row: row.type, sorted({row.type for row in rows})),
        confusion_matrix=_confusion_matrix(rows),
    )


def _confusion_matrix(rows: Rows) -> tuple[tuple[int, ...], ...]:
    """Correct index by predicted index; ten by ten, or larger where a question has more options than ten."""
    pairs = [
        (row.correct_index, row.predicted_index)
        for row in rows
        if row.correct_index is not None and row.predicted_index is not None
    ]
    size = max([SMALLEST_MATRIX, *(index + 1 for pair in pairs for index in pair)])
    matrix = [[0] * size for _ in range(size)]
    for correct, predicted in pairs:
        matrix[correct][predicted] += 1
    return tuple(map(tuple, matrix))


def recall_of(rows: Rows) -> RecallResults:
    """The recall rows together."""
    everything = group_of(rows)
    categories = sorted({row.category for row in rows if row.category is not None})
    return RecallResults(
        **everything.model_dump(),
        unparsed=_count(rows, "unparsed"),
        refused=_count(rows, "refused"),
        errors=_count(rows, "error"),
        exact_match=mean([float(row.exact_match) for row in rows if row.exact_match is not None]),
        entity_recall=mean([row.entity_recall for row in rows if row.entity_recall is not None]),
        f1=mean([row.f1 for row in rows if row.f1 is not None]),
        by_type=_groups(rows, lambda row: row.type, sorted({row.type for row in rows})),
        by_location=_groups(rows, lambda row: row.location, get_args(InfoLocation)),
        by_salience=_groups(rows, lambda row: row.salience, get_args(Salience)),
        by_category=_groups(rows, lambda row: row.category, categories),
    )


def retrieval_of(rows: Rows) -> RetrievalResults | None:
    """How well the evidence was found; None where no row has evidence that supports its answer."""
    in_prompt = [float(row.evidence_in_prompt) for row in rows if row.evidence_in_prompt is not None]
    if not in_prompt:
        return None
    ranked = [row for row in rows if row.recall_at_10 is not None]
    recall_at = {
        "1": mean([row.recall_at_1 for row in ranked if row.recall_at_1 is not None]),
        "5": mean([row.recall_at_5 for row in ranked if row.recall_at_5 is not None]),
        "10": mean([row.recall_at_10 for row in ranked if row.recall_at_10 is not None]),
    }
    return RetrievalResults(
        questions=len(in_prompt),
        recall_at={k: share for k, share in recall_at.items() if share is not None} or None,
        mrr=mean([row.reciprocal_rank for row in ranked if row.reciprocal_rank is not None]),
        evidence_in_prompt=sum(in_prompt) / len(in_prompt),
    )


def failures_of(rows: Rows) -> dict[str, int]:
    """How many rows have each label, in the order in which labels are tried; those that none has are left out."""
    counts = {label: sum(row.failure == label for row in rows) for label in LABELS}
    return {label: count for label, count in counts.items() if count}


def adjusted_of(rows: Rows) -> AdjustedResults | None:
    """The score by the corrected key; None where it corrects none of the questions."""
    corrected = [row.adjusted for row in rows if row.adjusted is not None]
    if not corrected:
        return None
    outcomes = [row.adjusted.outcome if row.adjusted is not None else row.outcome for row in rows]
    graded = sum(outcome not in (None, "error") for outcome in outcomes)
    correct = outcomes.count("correct")
    in_prompt = [_evidence_in_prompt(row) for row in rows]
    return AdjustedResults(
        corrected=len(corrected),
        changed=sum(row.adjusted is not None and row.adjusted.outcome != row.outcome for row in rows),
        left_out=sum(adjusted.outcome is None for adjusted in corrected),
        graded=graded,
        correct=correct,
        accuracy=correct / graded if graded else None,
        ci95=wilson_interval(correct, graded),
        evidence_in_prompt=mean([float(stood) for stood in in_prompt if stood is not None]),
    )


def _evidence_in_prompt(row: QuestionRow) -> bool | None:
    return row.evidence_in_prompt if row.adjusted is None else row.adjusted.evidence_in_prompt


def tokens_of(rows: Rows) -> Tokens:
    """All tokens of the rows."""
    used = [row.tokens for row in rows if row.tokens is not None]
    return Tokens(
        prompt=sum(tokens.prompt for tokens in used),
        completion=sum(tokens.completion for tokens in used),
        cached=sum(tokens.cached for tokens in used),
    )


def cost_of(rows: Rows) -> float | None:
    """What the replies cost; a call that ended in an error brought none."""
    costs = [row.cost_usd for row in rows if row.outcome != "error"]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if costs and len(known) == len(costs) else None


def latency_of(rows: Rows) -> Latency:
    """How long memory and model took; a call that ended in an error is not counted."""
    recall = [row.recall_ms for row in rows if row.recall_ms is not None]
    model = [row.ms for row in rows if row.ms is not None and row.outcome != "error"]
    return Latency(
        recall_p50=percentile(recall, 50),
        recall_p95=percentile(recall, 95),
        model_p50=percentile(model, 50),
        model_p95=percentile(model, 95),
    )


def extraction_of(calls: Sequence[Extraction]) -> ExtractionResults | None:
    """A backend's calls of its extractor together; None where it has none."""
    if not calls:
        return None
    costs = [call.cost_usd for call in calls if call.error is None or call.cost_usd is not None]
    known = [cost for cost in costs if cost is not None]
    reasons = Counter(call.error for call in calls if call.error is not None)
    return ExtractionResults(
        model=calls[0].model,
        calls=len(calls),
        reused=sum(call.reused for call in calls),
        errors=reasons.total(),
        error=reasons.most_common(1)[0][0] if reasons else None,
        facts=sum(call.facts for call in calls),
        tokens=Tokens(
            prompt=sum(call.prompt_tokens for call in calls),
            completion=sum(call.completion_tokens for call in calls),
            cached=sum(call.cached_tokens for call in calls),
        ),
        cost_usd=sum(known) if costs and len(known) == len(costs) else None,
    )


_EQUAL = 1e-6
TestRows = Sequence[QuestionRow]


def tests_of(rows: TestRows) -> TestResults:
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


def _group(rows: TestRows) -> TestGroup:
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
