"""Compare two runs question by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

from memory_backends.controls import CONTROLS
from memreplay.conversations.models import Frozen
from memreplay.errors import UsageError
from memreplay.grading import GradedByRules, Outcome
from memreplay.scoring.comparisons import (
    NEARLY_ALL,
    Pair,
    compare_pairs,
    contestants_of,
    cut_by_default,
    p_if_all_lost,
    verdicts_of,
)
from memreplay.scoring.groups import Key, facts_of, key_of
from memreplay.scoring.results import Comparison
from memreplay.settings import CHANGE_NO_ANSWER

Kind = Literal["lost", "gained", "error", "other_failure", "other_ground", "other_answer"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds of change, in the order of reporting: correct to wrong, wrong to correct, an error on one side, wrong for
another reason, right for another reason, and a different answer with the same outcome."""


class JudgedBy(BaseModel):
    """The judge that graded an answer, and its rubric."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    model: str
    rubric: str


class AnswerRow(BaseModel):
    """The part of a results row by which runs are compared. Older versions lack ``failure`` and what follows it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    question_id: str
    dataset: str
    conversation: str
    backend: str
    model: str
    repeat: int
    kind: str = ""
    question: str
    evidence: tuple[str, ...] = ()
    expected: str
    predicted: str | None
    outcome: Outcome
    error: str | None
    failure: str | None = None
    cut_tokens: int = 0
    answer_in_prompt: bool | None = None
    decided_by: str | None = None
    grader: GradedByRules | None = None
    judge: JudgedBy | None = None


class Change(Frozen):
    """A question that the two runs answered differently.

    ``was`` and ``now`` are the answers or errors; ``of_a`` and ``of_b`` are backend and model in each run.
    """

    kind: Kind
    contestant: str
    dataset: str
    conversation: str
    question_id: str
    question: str
    expected: str
    was: str | None
    now: str | None
    failure_was: str | None
    failure_now: str | None
    outcome_was: Outcome
    outcome_now: Outcome
    of_a: tuple[str, str]
    of_b: tuple[str, str]
    repeat: int


class RunComparison(Frozen):
    """Two runs, paired by question. ``a`` is the first run in ``comparisons``, ``b`` the second.

    ``unpaired`` are contestants of either run without a partner in the other; ``alike`` counts the unchanged
    answers. ``p_if_all_lost`` has for each comparison the p-value, not adjusted, if the second run had every
    question wrong that the first has right. ``remarks`` are sentences on what the comparison cannot show.
    """

    comparisons: tuple[Comparison, ...]
    p_if_all_lost: tuple[float, ...]
    changes: tuple[Change, ...]
    alike: int
    unpaired: tuple[str, ...]
    remarks: tuple[str, ...] = ()


Rows = Sequence[AnswerRow]


Settings = Mapping[str, Any] | None
"""The settings of a run; None if they are not known."""


def compare_runs(
    first: Rows, second: Rows, settings_a: Settings = None, settings_b: Settings = None
) -> RunComparison:
    """Pair two runs on the questions that both asked.

    A backend is paired with itself, with the same model if it has several. If each run has only one contestant,
    these two are paired whatever they are.

    Raises:
        UsageError: there is nothing to pair.
    """
    first, second, remarks = _graded_alike(first, second)
    a, b = contestants_of(first), contestants_of(second)
    partners = _partners(a, b)
    pairs, changes, alike = [], [], 0
    for name_a, name_b in partners:
        by_key_a, by_key_b = _by_question(a[name_a]), _by_question(b[name_b])
        common = [key for key in by_key_a if key in by_key_b]
        if not common:
            continue
        has_control = not CONTROLS.isdisjoint((a[name_a][0].backend, b[name_b][0].backend))
        verdicts = verdicts_of(a[name_a]), verdicts_of(b[name_b])
        pair = Pair(
            f"A {name_a}",
            f"B {name_b}",
            *verdicts,
            has_control=has_control,
            facts=facts_of(a[name_a]),
            cut_a=frozenset() if settings_a is None else cut_by_default(a[name_a], settings_a),
            cut_b=frozenset() if settings_b is None else cut_by_default(b[name_b], settings_b),
        )
        pairs.append(pair)
        if not has_control:
            remarks += _fit_remarks(pair, a[name_a], b[name_b])
        name = name_a if name_a == name_b else f"{name_a} → {name_b}"
        changed = [_change(name, by_key_a[key], by_key_b[key]) for key in common]
        changes += [change for change in changed if change is not None]
        alike += changed.count(None)
    if not pairs:
        raise UsageError("the two runs have nothing in common: no backend of both was asked the same question")
    return RunComparison(
        comparisons=compare_pairs(pairs),
        p_if_all_lost=tuple(map(p_if_all_lost, pairs)),
        changes=tuple(sorted(changes, key=lambda change: KINDS.index(change.kind))),
        alike=alike,
        unpaired=(
            *(f"A {name}" for name in a if name not in {one for one, _ in partners}),
            *(f"B {name}" for name in b if name not in {other for _, other in partners}),
        ),
        remarks=tuple(remarks),
    )


def regressions_in(compared: RunComparison, alpha: float) -> list[Comparison]:
    """Return the memories that are significantly worse in the second run, at ``alpha`` over all of them (Holm)."""
    return [
        found
        for found in compared.comparisons
        if (found.difference or 0) > 0 and found.p_holm is not None and found.p_holm < alpha
    ]


def blind_to_regressions(compared: RunComparison, alpha: float) -> list[Comparison]:
    """Return the memories with so few right answers in the first run, or in so few of its conversations, that
    losing all of them would not be significant.
    """
    return [
        found
        for found, p in zip(compared.comparisons, compared.p_if_all_lost, strict=True)
        if found.p_holm is not None and p * found.family >= alpha
    ]


_OF_THE_RUN = CHANGE_NO_ANSWER | frozenset(
    ["resume", "output", "recording", "estimate", "retry_errors", "backend", "closed_book_asked_along", "given"]
)
"""Settings that change no answer, or show in the comparison itself."""


def differing_settings(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return the settings that may explain a difference, with both values, by name; None where one was not set."""
    names = sorted({*first, *second} - _OF_THE_RUN)
    return [(name, first.get(name), second.get(name)) for name in names if first.get(name) != second.get(name)]


def _graded_alike(first: Rows, second: Rows) -> tuple[Rows, Rows, list[str]]:
    """Return the rows, by the rules of the grader where a judge decided in only one run, or another one in the
    other.
    """
    rubrics = [{(row.judge.model, row.judge.rubric) for row in rows if row.judge} for rows in (first, second)]
    if rubrics[0] == rubrics[1]:
        return first, second, []
    in_a, in_b = (", ".join(sorted({model for model, _ in judged})) or "no judge" for judged in rubrics)
    remark = (
        f"graders: {in_a} decided in A and {in_b} in B, or by other rubrics; both runs are compared by the rules of"
        " the grader"
    )
    return [_by_rules(row) for row in first], [_by_rules(row) for row in second], [remark]


def _by_rules(row: AnswerRow) -> AnswerRow:
    """Return the row with the rules' outcome. The stage of an answer that they grade otherwise is not known."""
    if row.grader is None:
        return row
    failure = row.failure if row.outcome == row.grader.outcome else None
    return row.model_copy(update={"outcome": row.grader.outcome, "failure": failure, "error": None})


def _fit_remarks(pair: Pair, rows_a: Rows, rows_b: Rows) -> list[str]:
    """Return a sentence if both memories' prompts always held the answer, so that they cannot differ."""
    held: list[dict[Key, bool]] = [{}, {}]
    for of_run, rows in zip(held, (rows_a, rows_b), strict=True):
        for row in rows:
            if row.answer_in_prompt is not None:
                of_run[key_of(row)] = of_run.get(key_of(row), True) and row.answer_in_prompt
    both = [held[0][key] and held[1][key] for key in held[0] if key in held[1]]
    if not both or sum(both) < NEARLY_ALL * len(both):
        return []
    nearly = "" if all(both) else "nearly "
    return [
        f"{nearly}everything fits: the prompts of {pair.a} and {pair.b} both held the answer to {sum(both)} of"
        f" {len(both)} questions with evidence, so that what these memories find can differ on only"
        f" {len(both) - sum(both)}; give a smaller --context-tokens or --top-k, or longer histories"
    ]


def _partners(a: Mapping[str, Rows], b: Mapping[str, Rows]) -> list[tuple[str, str]]:
    if len(a) == len(b) == 1:
        return [(next(iter(a)), next(iter(b)))]
    by_name = [(name, name) for name in a if name in b]
    if by_name:
        return by_name
    # One run has several models and the other has one: pair equal backends and models.
    found = {(rows[0].backend, rows[0].model): name for name, rows in b.items()}
    identities = ((name, (rows[0].backend, rows[0].model)) for name, rows in a.items())
    return [(name, found[identity]) for name, identity in identities if identity in found]


def _by_question(rows: Rows) -> dict[tuple[Key, int], AnswerRow]:
    return {(key_of(row), row.repeat): row for row in rows}


def _change(name: str, was: AnswerRow, now: AnswerRow) -> Change | None:
    kind = _kind(was, now)
    if kind is None:
        return None
    return Change(
        kind=kind,
        contestant=name,
        dataset=now.dataset,
        conversation=now.conversation,
        question_id=now.question_id,
        question=now.question,
        expected=now.expected,
        was=was.predicted if was.error is None else was.error,
        now=now.predicted if now.error is None else now.error,
        failure_was=was.failure,
        failure_now=now.failure,
        outcome_was=was.outcome,
        outcome_now=now.outcome,
        of_a=(was.backend, was.model),
        of_b=(now.backend, now.model),
        repeat=now.repeat,
    )


def _kind(was: AnswerRow, now: AnswerRow) -> Kind | None:
    if (was.outcome == "error") != (now.outcome == "error"):
        return "error"
    if (was.outcome == "correct") != (now.outcome == "correct"):
        return "lost" if was.outcome == "correct" else "gained"
    if was.failure != now.failure and was.failure is not None and now.failure is not None:
        return "other_ground" if now.outcome == "correct" else "other_failure"
    return "other_answer" if was.predicted != now.predicted else None
