"""Compare two runs question by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

from memory_backends.controls import CONTROLS
from memreplay.conversations.models import Frozen
from memreplay.errors import UsageError
from memreplay.grading import Outcome
from memreplay.scoring.comparisons import Pair, compare_pairs, contestants_of, verdicts_of
from memreplay.scoring.repeats import Key, key_of
from memreplay.scoring.results import Comparison
from memreplay.scoring.statistics import mcnemar_exact

Kind = Literal["lost", "gained", "error", "other_failure", "other_answer"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order of reporting: correct to wrong, wrong to correct, an error on one side, the same outcome for a
different reason, and a different answer with the same outcome."""


class AnswerRow(BaseModel):
    """The part of a results row by which runs are compared. Older versions lack ``failure``."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    question_id: str
    dataset: str
    conversation: str
    backend: str
    model: str
    repeat: int
    question: str
    expected: str
    predicted: str | None
    outcome: Outcome
    error: str | None
    failure: str | None = None


class Change(Frozen):
    """A question that the two runs answered differently. ``was`` and ``now`` are the answers or errors."""

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


class RunComparison(Frozen):
    """Two runs, paired by question. ``a`` is the first run in ``comparisons``, ``b`` the second.

    ``unpaired`` are contestants of either run without a partner in the other; ``alike`` counts the unchanged
    answers.
    """

    comparisons: tuple[Comparison, ...]
    changes: tuple[Change, ...]
    alike: int
    unpaired: tuple[str, ...]


Rows = Sequence[AnswerRow]


def compare_runs(first: Rows, second: Rows) -> RunComparison:
    """Pair two runs on the questions that both asked.

    A backend is paired with itself, with the same model if it has several. If each run has only one contestant,
    these two are paired whatever they are.

    Raises:
        UsageError: there is nothing to pair.
    """
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
        pairs.append(Pair(f"A {name_a}", f"B {name_b}", *verdicts, has_control=has_control))
        name = name_a if name_a == name_b else f"{name_a} → {name_b}"
        changed = [_change(name, by_key_a[key], by_key_b[key]) for key in common]
        changes += [change for change in changed if change is not None]
        alike += changed.count(None)
    if not pairs:
        raise UsageError("the two runs have nothing in common: no backend of both was asked the same question")
    return RunComparison(
        comparisons=compare_pairs(pairs),
        changes=tuple(sorted(changes, key=lambda change: KINDS.index(change.kind))),
        alike=alike,
        unpaired=(
            *(f"A {name}" for name in a if name not in {one for one, _ in partners}),
            *(f"B {name}" for name in b if name not in {other for _, other in partners}),
        ),
    )


def regressions_in(compared: RunComparison, alpha: float) -> list[Comparison]:
    """The memories that are significantly worse in the second run, at ``alpha`` over all of them (Holm)."""
    return [
        found
        for found in compared.comparisons
        if (found.difference or 0) > 0 and found.p_holm is not None and found.p_holm < alpha
    ]


def blind_to_regressions(compared: RunComparison, alpha: float) -> list[Comparison]:
    """The memories with so few right answers in the first run that losing all of them would not be significant.

    Only where the test is McNemar's: over conversations, what can be found depends on how they share the answers.
    """
    return [
        found
        for found in compared.comparisons
        if found.p_holm is not None
        and found.test == "mcnemar_exact"
        and mcnemar_exact(found.both_right + found.only_a, 0) * found.family >= alpha
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
    )


def _kind(was: AnswerRow, now: AnswerRow) -> Kind | None:
    if (was.outcome == "error") != (now.outcome == "error"):
        return "error"
    if (was.outcome == "correct") != (now.outcome == "correct"):
        return "lost" if was.outcome == "correct" else "gained"
    if was.failure != now.failure and was.failure is not None and now.failure is not None:
        return "other_failure"
    return "other_answer" if was.predicted != now.predicted else None
