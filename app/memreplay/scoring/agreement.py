"""Agreement of the grader's rules, a judge and labels by hand on which answers are right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from memreplay.conversations.models import Frozen
from memreplay.grading import DecidedBy
from memreplay.llm.judging import Verdict
from memreplay.scoring.question_row import QuestionRow, Tokens
from memreplay.scoring.statistics import cohens_kappa


class JudgeResults(Frozen):
    """The verdicts of a judge on the ``answers`` that it was asked about, and their cost.

    ``graded`` have a verdict, and ``right`` of them the better one; the others are errors. The rules grade
    ``graded_by_grader`` of the same answers, ``right_by_grader`` of them as right. ``rubrics`` counts answers. The
    backend's own tokens and costs exclude those of the judge.
    """

    models: tuple[str, ...]
    rubrics: dict[str, int]
    answers: int
    graded: int
    right: int
    right_by_grader: int
    graded_by_grader: int
    calls: int
    tokens: Tokens
    cost_usd: float | None


Rater = Literal["grader", "judge", "hand"]
"""Raters of an answer: the rules of the grader, a judge, or somebody on the why screen."""

RATERS: Final[Mapping[Rater, str]] = {
    "grader": "the grader's rules",
    "judge": "the judge",
    "hand": "the labels by hand",
}
"""Their names in a sentence."""


class Agreement(Frozen):
    """Agreement of raters ``a`` and ``b`` over the ``n`` answers that both rated.

    ``share`` is (both_right + both_wrong) / n, ``kappa`` Cohen's; null where it is not defined.
    """

    a: Rater
    b: Rater
    n: int
    both_right: int
    only_a: int
    only_b: int
    both_wrong: int
    share: float | None
    kappa: float | None


class Disagreement(Frozen):
    """An answer that two raters judge differently. ``decided_by`` is the rule of the grader."""

    question_id: str
    conversation: str
    backend: str
    model: str
    repeat: int
    question: str
    expected: str
    predicted: str | None
    verdicts: dict[Rater, Verdict]
    decided_by: DecidedBy | None


_IsRight = bool | None
"""A rater's word on whether an answer is right; None where there is none."""


class _Pair(Frozen):
    a: Rater
    b: Rater


PAIRS: Final = (_Pair(a="grader", b="judge"), _Pair(a="grader", b="hand"), _Pair(a="judge", b="hand"))


def verdict_of_grader(row: QuestionRow) -> _IsRight:
    """Return what the rules say, even if a judge decided; None for an error."""
    outcome = row.grader.outcome if row.grader is not None else row.outcome
    return None if outcome == "error" or row.kind == "test" else outcome == "correct"


def _verdict_of_judge(row: QuestionRow) -> _IsRight:
    return row.judge.verdict == "right" if row.judge is not None and row.judge.verdict is not None else None


def _verdict_by_hand(row: QuestionRow) -> _IsRight:
    return None if row.label is None else row.label == "right"


_VERDICT: Final[Mapping[Rater, Callable[[QuestionRow], _IsRight]]] = {
    "grader": verdict_of_grader,
    "judge": _verdict_of_judge,
    "hand": _verdict_by_hand,
}


def agreements_of(rows: Sequence[QuestionRow]) -> tuple[Agreement, ...]:
    """Return how far each two raters agree, over the answers that both rated; without pairs that rated none
    together.
    """
    return tuple(found for pair in PAIRS if (found := _agreement(rows, pair)).n)


def _agreement(rows: Iterable[QuestionRow], pair: _Pair) -> Agreement:
    both = [(_VERDICT[pair.a](row), _VERDICT[pair.b](row)) for row in rows]
    rated = [(a, b) for a, b in both if a is not None and b is not None]
    only_a, only_b = rated.count((True, False)), rated.count((False, True))
    both_right, both_wrong = rated.count((True, True)), rated.count((False, False))
    n = len(rated)
    return Agreement(
        a=pair.a,
        b=pair.b,
        n=n,
        both_right=both_right,
        only_a=only_a,
        only_b=only_b,
        both_wrong=both_wrong,
        share=(both_right + both_wrong) / n if n else None,
        kappa=cohens_kappa(both_right, only_a, only_b, both_wrong),
    )


def disagreements_of(rows: Iterable[QuestionRow]) -> tuple[Disagreement, ...]:
    """Return the answers that two raters judge differently, in the order of the rows."""
    found = []
    for row in rows:
        said = {rater: verdict for rater, of in _VERDICT.items() if (verdict := of(row)) is not None}
        if len(set(said.values())) > 1:
            found.append(
                Disagreement(
                    question_id=row.question_id,
                    conversation=row.conversation,
                    backend=row.backend,
                    model=row.model,
                    repeat=row.repeat,
                    question=row.question,
                    expected=row.expected,
                    predicted=row.predicted,
                    verdicts={rater: _word(verdict) for rater, verdict in said.items()},
                    decided_by=row.grader.decided_by if row.grader is not None else row.decided_by,
                )
            )
    return tuple(found)


def _word(verdict: bool) -> Verdict:
    return "right" if verdict else "wrong"


def judging_of(rows: Iterable[QuestionRow]) -> JudgeResults | None:
    """Return what a judge did for one backend; None if none was asked."""
    judged = [(row, row.judge) for row in rows if row.judge is not None]
    if not judged:
        return None
    by_rules = [verdict for row, _ in judged if (verdict := verdict_of_grader(row)) is not None]
    costs = [judge.cost_usd for _, judge in judged]
    known = [cost for cost in costs if cost is not None]
    return JudgeResults(
        models=tuple(dict.fromkeys(judge.model for _, judge in judged)),
        rubrics={
            name: sum(judge.rubric == name for _, judge in judged)
            for name in sorted({judge.rubric for _, judge in judged})
        },
        answers=len(judged),
        graded=sum(judge.verdict is not None for _, judge in judged),
        right=sum(judge.verdict == "right" for _, judge in judged),
        right_by_grader=sum(by_rules),
        graded_by_grader=len(by_rules),
        calls=sum(judge.calls for _, judge in judged),
        tokens=Tokens(
            prompt=sum(judge.tokens.prompt for _, judge in judged),
            completion=sum(judge.tokens.completion for _, judge in judged),
            cached=sum(judge.tokens.cached for _, judge in judged),
        ),
        cost_usd=sum(known) if len(known) == len(costs) else None,
    )
