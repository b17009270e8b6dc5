"""The published figures of LoCoMo and LongMemEval, from rows."""

from __future__ import annotations

from collections.abc import Sequence

from memreplay.conversations.formats.locomo import ADVERSARIAL, CATEGORIES
from memreplay.conversations.formats.longmemeval import ABSTENTION_SUFFIX
from memreplay.conversations.models import Frozen
from memreplay.grading.failures import is_grading_failure
from memreplay.scoring.groups import Group, group_of
from memreplay.scoring.locomo_metric import locomo_f1
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.statistics import mean

LONGMEMEVAL_TYPES = (
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
)


class LocomoCategory(Frozen):
    """The mean of LoCoMo's own F1 over the graded questions of a category, with the category's published number."""

    category: int
    questions: int
    f1: float


class LocomoF1(Frozen):
    """LoCoMo's own F1 (:func:`memreplay.scoring.locomo_metric.locomo_f1`), computed from the replies.

    ``by_category`` is named as in LoCoMo's paper. Errors are left out; a refusal counts 0.
    """

    questions: int
    f1: float
    by_category: dict[str, LocomoCategory]


class LongMemEvalResults(Frozen):
    """Accuracy by LongMemEval's question types, under their names.

    As in its published evaluation, ``by_type`` includes the questions whose right answer is to abstain, which
    ``abstention`` counts alone; ``task_averaged_accuracy`` is the mean over the types. The grader is ours, not the
    judge of the paper.
    """

    by_type: dict[str, Group]
    task_averaged_accuracy: float | None
    abstention: Group | None


def locomo_f1_of(rows: Sequence[QuestionRow]) -> LocomoF1 | None:
    """LoCoMo's F1, overall and by category; None without graded LoCoMo questions."""
    scores: dict[str, list[float]] = {}
    for row in rows:
        if row.outcome == "error" and (row.judge is None or is_grading_failure(row.error)):
            continue
        # The reply to an adversarial question may be the letter of an offered answer.
        reply = row.predicted if row.type == ADVERSARIAL.locomo else row.reply
        if (score := published_f1(row.type, row.other_type, row.expected, reply)) is not None:
            scores.setdefault(row.type, []).append(score)
    every = [score for each in scores.values() for score in each]
    if not every:
        return None
    return LocomoF1(
        questions=len(every),
        f1=sum(every) / len(every),
        by_category={
            category.locomo: LocomoCategory(
                category=category.number, questions=len(found), f1=sum(found) / len(found)
            )
            for category in CATEGORIES
            if (found := scores.get(category.locomo))
        },
    )


def published_f1(type_: str, other_type: str | None, expected: str, reply: str | None) -> float | None:
    """LoCoMo's F1 of a reply; None for a question of another benchmark."""
    # LoCoMo's questions alone have both of its names for a category.
    numbers = [each.number for each in CATEGORIES if (type_, other_type) == (each.locomo, each.mc10)]
    return locomo_f1(numbers[0], expected, reply or "") if numbers else None


def longmemeval_of(rows: Sequence[QuestionRow]) -> LongMemEvalResults | None:
    """Accuracy by LongMemEval's types; None without its questions."""
    by_type = {
        name: group_of(found) for name in LONGMEMEVAL_TYPES if (found := [r for r in rows if r.type == name])
    }
    if not by_type:
        return None
    abstention = [row for row in rows if row.type in by_type and row.question_id.endswith(ABSTENTION_SUFFIX)]
    accuracies = [group.accuracy for group in by_type.values() if group.accuracy is not None]
    return LongMemEvalResults(
        by_type=by_type,
        task_averaged_accuracy=mean(accuracies),
        abstention=group_of(abstention) if abstention else None,
    )
