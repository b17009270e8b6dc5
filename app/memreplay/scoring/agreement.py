"""How far the rules of the grader, a judge and labels by hand agree on which answers are right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from memreplay.conversations.models import Frozen
from memreplay.scoring.question_row import QuestionRow, Tokens
from memreplay.scoring.results import Agreement, Disagreement, JudgeResults, Rater
from memreplay.scoring.statistics import cohens_kappa

Verdict = bool | None
"""Whether an answer is right; None where the rater did not say."""


class _Pair(Frozen):
    a: Rater
    b: Rater


PAIRS: Final = (_Pair(a="grader", b="judge"), _Pair(a="grader", b="hand"), _Pair(a="judge", b="hand"))


def verdict_of_grader(row: QuestionRow) -> Verdict:
    """What the rules say, even if a judge decided; None for an error."""
    outcome = row.grader.outcome if row.grader is not None else row.outcome
    return None if outcome == "error" or row.kind == "test" else outcome == "correct"


def _verdict_of_judge(row: QuestionRow) -> Verdict:
    return row.judge.verdict == "right" if row.judge is not None and row.judge.verdict is not None else None


def _verdict_by_hand(row: QuestionRow) -> Verdict:
    return None if row.label is None else row.label == "right"


_VERDICT: Final[Mapping[Rater, Callable[[QuestionRow], Verdict]]] = {
    "grader": verdict_of_grader,
    "judge": _verdict_of_judge,
    "hand": _verdict_by_hand,
}


def agreements_of(rows: Sequence[QuestionRow]) -> tuple[Agreement, ...]:
    """How far each two raters agree, over the answers that both rated; without pairs that rated none together."""
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
    """The answers that two raters judge differently, in the order of the rows."""
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


def _word(verdict: bool) -> Literal["right", "wrong"]:
    return "right" if verdict else "wrong"


def judging_of(rows: Iterable[QuestionRow]) -> JudgeResults | None:
    """What a judge did for one backend; None if none was asked."""
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
        calls=sum(judge.calls for _, judge in judged),
        tokens=Tokens(
            prompt=sum(judge.tokens.prompt for _, judge in judged),
            completion=sum(judge.tokens.completion for _, judge in judged),
            cached=sum(judge.tokens.cached for _, judge in judged),
        ),
        cost_usd=sum(known) if len(known) == len(costs) else None,
    )
