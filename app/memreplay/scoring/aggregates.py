"""Computes the results of a run from its rows. :mod:`memreplay.scoring.results` is the schema."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from itertools import combinations
from typing import Any, TypeVar, get_args

from memreplay.conversations.models import InfoLocation, Salience
from memreplay.conversations.option_style import OptionStyle
from memreplay.grading.failures import is_grading_failure
from memreplay.scoring.agreement import agreements_of, disagreements_of, judging_of
from memreplay.scoring.answer_key import Adjusted
from memreplay.scoring.comparisons import compare_pairs, contestants_of, pairs_within, prompts_within
from memreplay.scoring.groups import (
    InPrompt,
    Rows,
    breakdown_of,
    by_conversation,
    count,
    facts_of,
    group_of,
    groups_of,
    interval_over_questions,
    mean_of,
    share_of_facts,
    shares_right,
    uncertain_of,
    without_adversarial,
)
from memreplay.scoring.points import tests_of
from memreplay.scoring.published import locomo_f1_of, longmemeval_of
from memreplay.scoring.question_row import ANSWER_METRICS, QuestionRow, RowKind, Tokens
from memreplay.scoring.results import (
    AbstentionResults,
    AdjustedResults,
    BackendResults,
    EvidenceByAnswer,
    Headline,
    KeyFacts,
    Latency,
    MultipleChoiceResults,
    RecallResults,
    Results,
    RunFacts,
)
from memreplay.scoring.retrieval import fit_of, retrieval_of, without_counts_of_turns
from memreplay.scoring.statistics import clustered_interval, mean, percentile
from memreplay.scoring.verdicts import LABELS
from memreplay.scoring.what_if import what_if_of
from memreplay.scoring.writing import Writing, extraction_of, reading_of, writing_of
from memreplay.text import normalised

T = TypeVar("T")

SMALLEST_MATRIX = 10


def abstention_of(rows: Rows) -> AbstentionResults | None:
    """Precision and recall of abstaining; None if nothing was graded."""
    graded = [row for row in rows if row.abstained is not None]
    if not graded:
        return None
    should, abstained = sum(row.abstain for row in graded), sum(bool(row.abstained) for row in graded)
    right = sum(row.abstain and bool(row.abstained) for row in graded)
    return AbstentionResults(
        graded=len(graded),
        should=should,
        abstained=abstained,
        right=right,
        precision=right / abstained if abstained else None,
        recall=right / should if should else None,
    )


def multiple_choice_of(rows: Rows) -> MultipleChoiceResults:
    """Aggregate the multiple-choice rows."""
    everything = group_of(rows)
    return MultipleChoiceResults(
        **everything.model_dump(),
        accuracy_without_adversarial=group_of(without_adversarial(rows)).accuracy,
        unparsed=count(rows, "unparsed"),
        refused=count(rows, "refused"),
        errors=count(rows, "error"),
        by_type=groups_of(rows, "type", sorted({row.type for row in rows})),
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
    """Aggregate the recall rows."""
    everything = group_of(rows)
    categories = sorted({row.category for row in rows if row.category is not None})
    return RecallResults(
        **everything.model_dump(),
        unparsed=count(rows, "unparsed"),
        refused=count(rows, "refused"),
        errors=count(rows, "error"),
        **{metric: mean_of(rows, metric) for metric in ANSWER_METRICS},
        by_type=groups_of(rows, "type", sorted({row.type for row in rows})),
        by_location=groups_of(rows, "location", get_args(InfoLocation)),
        by_salience=groups_of(rows, "salience", get_args(Salience)),
        by_category=groups_of(rows, "category", categories),
        locomo_f1=locomo_f1_of(rows),
        longmemeval=longmemeval_of(rows),
    )


def failures_of(rows: Rows) -> dict[str, int]:
    """Return the number of rows with each label, in the order of attribution; omits labels without rows."""
    counts = {label: sum(row.failure == label for row in rows) for label in LABELS}
    return {label: count for label, count in counts.items() if count}


def adjusted_of(rows: Rows) -> AdjustedResults | None:
    """Return the score by the corrected key; None if it corrects none of the questions."""
    corrected = [row.adjusted for row in rows if row.adjusted is not None]
    if not corrected:
        return None
    outcomes = [row.adjusted.outcome if row.adjusted is not None else row.outcome for row in rows]
    graded = sum(outcome not in (None, "error") for outcome in outcomes)
    correct = outcomes.count("correct")
    in_prompt = [row.model_copy(update={"evidence_in_prompt": _evidence_in_prompt(row)}) for row in rows]
    return AdjustedResults(
        corrected=len(corrected),
        changed=sum(row.adjusted is not None and row.adjusted.outcome != row.outcome for row in rows),
        left_out=sum(adjusted.outcome is None for adjusted in corrected),
        graded=graded,
        correct=correct,
        accuracy=correct / graded if graded else None,
        ci95=interval_over_questions(
            [row if row.adjusted is None else _by_corrected_key(row, row.adjusted) for row in rows]
        ),
        evidence_in_prompt=share_of_facts(in_prompt, "evidence_in_prompt"),
    )


def _by_corrected_key(row: QuestionRow, adjusted: Adjusted) -> QuestionRow:
    """Rows without any right answer are left out, as errors are."""
    return row.model_copy(update={"outcome": adjusted.outcome or "error"})


def _evidence_in_prompt(row: QuestionRow) -> bool | None:
    return row.evidence_in_prompt if row.adjusted is None else row.adjusted.evidence_in_prompt


def tokens_of(rows: Rows) -> Tokens:
    used = [row.tokens for row in rows if row.tokens is not None]
    return Tokens(
        prompt=sum(tokens.prompt for tokens in used),
        completion=sum(tokens.completion for tokens in used),
        cached=sum(tokens.cached for tokens in used),
    )


def _is_answered(row: QuestionRow) -> bool:
    """Return whether there is a reply. One that could not be graded is an error, and was paid for."""
    return row.outcome != "error" or row.judge is not None or is_grading_failure(row.error)


def cost_of(rows: Rows) -> float | None:
    """Return the cost of the replies, without errors; None if any price is unknown."""
    costs = [row.cost_usd for row in rows if _is_answered(row) or row.tokens is not None]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if costs and len(known) == len(costs) else None


def latency_of(rows: Rows) -> Latency:
    """Return the latency of memory and model; excludes calls that failed."""
    recall = [row.recall_ms for row in rows if row.recall_ms is not None]
    model = [row.ms for row in rows if row.ms is not None and _is_answered(row)]
    return Latency(
        recall_p50=percentile(recall, 50),
        recall_p95=percentile(recall, 95),
        model_p50=percentile(model, 50),
        model_p95=percentile(model, 95),
    )


def headline_of(rows: Rows) -> Headline:
    """Return the quoted figures of one backend through one model."""
    everything = group_of(rows)
    tokens, cost = tokens_of(rows), cost_of(rows)
    is_counted = any(row.tokens for row in rows) and all(row.tokens for row in rows if _is_answered(row))
    used = tokens.prompt + tokens.completion if is_counted else None
    table = _evidence_by_answer(rows)
    conversations = by_conversation(shares_right(rows), facts_of(rows))
    closed_book, blind, gain = _gain(rows)
    return Headline(
        accuracy=everything.accuracy,
        accuracy_without_adversarial=group_of(without_adversarial(rows)).accuracy,
        ci95=everything.ci95,
        ci95_clustered=clustered_interval(conversations),
        conversations=len(conversations),
        closed_book_accuracy=closed_book,
        normalised_gain=gain,
        blind_guesser_accuracy=blind,
        normalised_gain_without_adversarial=_gain(without_adversarial(rows))[-1],
        prompt_tokens_per_question=mean(
            [
                float(row.tokens.prompt)
                for row in rows
                if row.tokens is not None and row.kind != "test" and _is_answered(row)
            ]
        ),
        grounded_accuracy=mean(_grounded(rows)),
        evidence_in_prompt=share_of_facts(rows, "evidence_in_prompt"),
        evidence_by_answer=table,
        tokens_per_right=used / everything.correct if everything.correct and used is not None else None,
        cost_usd_per_right=cost / everything.correct if everything.correct and cost is not None else None,
        repeats_agree=_agreement(rows),
        uncertain=uncertain_of((row.outcome, row.uncertain) for row in rows),
    )


def _evidence_by_answer(rows: Rows) -> EvidenceByAnswer | None:
    cells = [
        (row.evidence_in_prompt, row.outcome == "correct")
        for row in rows
        if row.evidence_in_prompt is not None and row.outcome != "error"
    ]
    if not cells:
        return None
    return EvidenceByAnswer(
        in_prompt_right=cells.count((True, True)),
        in_prompt_wrong=cells.count((True, False)),
        missing_right=cells.count((False, True)),
        missing_wrong=cells.count((False, False)),
    )


def _grounded(rows: Rows) -> list[float]:
    """1 or 0 for each graded question with evidence: whether its answer is grounded."""
    return [
        float(row.failure == "grounded")
        for row in rows
        if row.answer_in_prompt is not None and row.outcome != "error"
    ]


def _gain(rows: Rows) -> tuple[float | None, float | None, float | None]:
    """Accuracies of closed book and of the blind guesser, and the gain over the better of them.

    All over the graded questions that were also asked without memory. The blind guesser has no answer to a question
    without options; its accuracy is None where no question has any.
    """
    both = [row for row in rows if row.outcome != "error" and row.closed_book_correct is not None]
    accuracy = mean([float(row.outcome == "correct") for row in both])
    closed_book = mean([float(bool(row.closed_book_correct)) for row in both])
    has_options = any(row.blind_guess is not None for row in both)
    blind = mean([row.blind_guess or 0.0 for row in both]) if has_options else None
    if accuracy is None or closed_book is None:
        return closed_book, blind, None
    better = max(closed_book, blind or 0.0)
    return closed_book, blind, None if better == 1 else (accuracy - better) / (1 - better)


def _agreement(rows: Rows) -> float | None:
    """Return the share of pairs of repeats of a question with the same answer, without errors."""
    answers: dict[tuple[str, str, str], list[Hashable]] = defaultdict(list)
    for row in rows:
        if row.outcome != "error":
            said = row.predicted_index if row.predicted_index is not None else normalised(row.predicted or "")
            answers[row.dataset, row.conversation, row.question_id].append(said)
    pairs = [one == other for said in answers.values() for one, other in combinations(said, 2)]
    return mean([float(agree) for agree in pairs])


def build_results(
    run: RunFacts,
    rows: Rows,
    option_style: Mapping[str, OptionStyle] | None = None,
    answer_key: KeyFacts | None = None,
    writing: Mapping[str, Writing] | None = None,
    tests_written_usd: float | None = None,
) -> Results:
    """Compute the results of a run from its rows, which keep their order.

    ``writing`` maps a backend to what its write path took.
    """
    rows = without_counts_of_turns(rows)
    by_name = contestants_of(rows)
    return Results(
        schema_version=1,
        run=run,
        backends={
            name: _backend(its_rows, (writing or {}).get(its_rows[0].backend), run.settings)
            for name, its_rows in by_name.items()
        },
        comparisons=compare_pairs(pairs_within(by_name, run.settings)),
        prompt_comparisons=tuple(
            found for field in get_args(InPrompt) for found in compare_pairs(prompts_within(by_name, field))
        ),
        option_style=dict(option_style or {}),
        answer_key=answer_key,
        tests_written_usd=tests_written_usd,
        fit=fit_of(rows),
        agreement=agreements_of(rows),
        disagreements=disagreements_of(rows),
        questions=tuple(rows),
    )


def _backend(rows: Rows, writing: Writing | None, settings: Mapping[str, Any]) -> BackendResults:
    def section(kind: RowKind, aggregate: Callable[[Rows], T]) -> T | None:
        of_kind = by_kind.pop(kind, None)
        return aggregate(of_kind) if of_kind else None

    by_kind: dict[RowKind, list[QuestionRow]] = defaultdict(list)
    for row in rows:
        by_kind[row.kind].append(row)
    return BackendResults(
        backend=rows[0].backend,
        model=rows[0].model,
        accuracy=group_of(rows).accuracy,
        multiple_choice=section("choice", multiple_choice_of),
        recall=section("recall", recall_of),
        tests=section("test", tests_of),
        other_kinds={kind: recall_of(its_rows) for kind, its_rows in by_kind.items()},
        retrieval=retrieval_of(rows, settings.get("top_k")),
        failures=failures_of(rows),
        tokens=tokens_of(rows),
        cost_usd=cost_of(rows),
        latency_ms=latency_of(rows),
        headline=headline_of(rows),
        adjusted=adjusted_of(rows),
        extraction=extraction_of(writing.extractions if writing else ()),
        writing=writing_of(rows[0].backend, writing, settings),
        abstention=abstention_of(rows),
        breakdown=breakdown_of(rows),
        what_if=what_if_of(rows),
        judge=judging_of(rows),
        agreement=agreements_of(rows),
        reading=reading_of(writing),
    )
