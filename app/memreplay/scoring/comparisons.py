"""Compare two contestants on the same questions.

A question counts as correct if more than half of its graded repeats are. Only questions to which both have a graded
answer are compared. Questions of one conversation share its memory and are not independent, so:

- With at least :data:`CONVERSATIONS_FOR_A_CLAIM` conversations, the p-value is that of the exact sign-flip test
over
  conversations, and the interval is the wider one of those over questions and over conversations.
- With fewer, the p-value is that of McNemar's exact test, which applies only to these conversations: nothing is
  claimed beyond them (``significant`` is null).

P-values are adjusted for all pairs of a run with Holm's procedure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol, TypeVar

from memreplay.grading import Outcome
from memreplay.llm import AGENT_MODEL
from memreplay.scoring.results import Comparison, Interval, QuestionRow
from memreplay.scoring.statistics import (
    clustered_difference_interval,
    holm,
    mcnemar_exact,
    paired_interval,
    sign_flip_exact,
)

CONVERSATIONS_FOR_A_CLAIM = 10
SIGNIFICANCE_LEVEL = 0.05

Key = tuple[str, str, str]
"""Dataset, conversation and question id."""


class Graded(Protocol):
    """The parts of an answer that are compared."""

    @property
    def backend(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def dataset(self) -> str: ...

    @property
    def conversation(self) -> str: ...

    @property
    def question_id(self) -> str: ...

    @property
    def outcome(self) -> Outcome: ...


R = TypeVar("R", bound=Graded)

Verdicts = Mapping[Key, bool]
"""Whether each question was answered correctly; excludes errors."""


@dataclass(frozen=True)
class Pair:
    """Two contestants by name, with their verdicts."""

    a: str
    b: str
    verdicts_a: Verdicts
    verdicts_b: Verdicts


@dataclass(frozen=True)
class _Table:
    """The questions that both answered, by outcome and by conversation."""

    both_right: int
    only_a: int
    only_b: int
    both_wrong: int
    by_conversation: tuple[tuple[int, int], ...]

    @property
    def n(self) -> int:
        return self.both_right + self.only_a + self.only_b + self.both_wrong


def contestants_of(rows: Iterable[R]) -> dict[str, list[R]]:
    """Group the rows by the backend's name in the results, in the order of first rows."""
    rows = list(rows)
    models = {row.model for row in rows} - {AGENT_MODEL}
    by_name: dict[str, list[R]] = {}
    for row in rows:
        name = f"{row.backend}@{row.model}" if len(models) > 1 else row.backend
        by_name.setdefault(name, []).append(row)
    return by_name


def verdicts_of(rows: Iterable[Graded]) -> dict[Key, bool]:
    """Which questions one contestant answered correctly."""
    repeats: dict[Key, list[bool]] = defaultdict(list)
    for row in rows:
        if row.outcome != "error":
            repeats[row.dataset, row.conversation, row.question_id].append(row.outcome == "correct")
    return {key: 2 * sum(right) > len(right) for key, right in repeats.items()}


def pairs_within(contestants: Mapping[str, Sequence[QuestionRow]]) -> list[Pair]:
    """The pairs of a run worth comparing: two backends through one model, or one backend through two models."""
    verdicts = {name: verdicts_of(rows) for name, rows in contestants.items()}
    return [
        Pair(a, b, verdicts[a], verdicts[b])
        for a, b in combinations(contestants, 2)
        if contestants[a][0].model == contestants[b][0].model
        or contestants[a][0].backend == contestants[b][0].backend
    ]


def compare_pairs(pairs: Sequence[Pair]) -> tuple[Comparison, ...]:
    """The comparisons, in the order of the pairs, with p-values adjusted for their number."""
    tables = [_table(pair) for pair in pairs]
    adjusted = iter(holm([_p_value(table) for table in tables if table.n]))
    return tuple(
        _comparison(pair, table, next(adjusted) if table.n else None)
        for pair, table in zip(pairs, tables, strict=True)
    )


def _table(pair: Pair) -> _Table:
    cells = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    differences: dict[tuple[str, str], int] = defaultdict(int)
    sizes: dict[tuple[str, str], int] = defaultdict(int)
    for key, right_a in pair.verdicts_a.items():
        right_b = pair.verdicts_b.get(key)
        if right_b is not None:
            cells[right_a, right_b] += 1
            differences[key[:2]] += right_a - right_b
            sizes[key[:2]] += 1
    return _Table(
        both_right=cells[True, True],
        only_a=cells[True, False],
        only_b=cells[False, True],
        both_wrong=cells[False, False],
        by_conversation=tuple((differences[conversation], size) for conversation, size in sizes.items()),
    )


def _is_enough_for_a_claim(table: _Table) -> bool:
    return len(table.by_conversation) >= CONVERSATIONS_FOR_A_CLAIM


def _p_sign_flip(table: _Table) -> float:
    return sign_flip_exact([difference for difference, _ in table.by_conversation])


def _p_value(table: _Table) -> float:
    return _p_sign_flip(table) if _is_enough_for_a_claim(table) else mcnemar_exact(table.only_a, table.only_b)


def _interval(table: _Table) -> Interval | None:
    over_questions = paired_interval(table.only_a, table.only_b, table.n)
    over_conversations = (
        clustered_difference_interval(table.by_conversation) if _is_enough_for_a_claim(table) else None
    )
    if over_questions is None or over_conversations is None:
        return over_questions
    return max(over_questions, over_conversations, key=lambda interval: interval[1] - interval[0])


def _comparison(pair: Pair, table: _Table, p_holm: float | None) -> Comparison:
    enough = _is_enough_for_a_claim(table)
    difference = (table.only_a - table.only_b) / table.n if table.n else None
    interval = _interval(table)
    return Comparison(
        a=pair.a,
        b=pair.b,
        metric="accuracy",
        n=table.n,
        both_right=table.both_right,
        only_a=table.only_a,
        only_b=table.only_b,
        both_wrong=table.both_wrong,
        difference=difference,
        ci95=interval,
        p_value=_p_value(table) if table.n else None,
        test="sign_flip_exact" if enough else "mcnemar_exact",
        p_holm=p_holm,
        p_mcnemar=mcnemar_exact(table.only_a, table.only_b) if table.n else None,
        p_sign_flip=_p_sign_flip(table) if table.n else None,
        conversations=len(table.by_conversation),
        significant=p_holm < SIGNIFICANCE_LEVEL if enough and p_holm is not None else None,
        words=_words(pair, table, difference, interval, p_holm),
    )


def _words(
    pair: Pair, table: _Table, difference: float | None, interval: Interval | None, p_holm: float | None
) -> str:
    if difference is None or interval is None or p_holm is None:
        return f"{pair.a} and {pair.b} have no graded question in common"
    counts = f"{table.only_a} only {pair.a}, {table.only_b} only {pair.b}"
    how_sure = f"p = {p_holm:.2g}, {_how_sure(table, p_holm)}"
    if table.only_a == table.only_b:
        return f"{pair.a} and {pair.b} have equally many right {_on(table)}; {counts}; {how_sure}"
    better, worse, (low, high) = pair.a, pair.b, interval
    if difference < 0:
        better, worse, difference, (low, high) = pair.b, pair.a, -difference, (-high, -low)
        counts = f"{table.only_b} only {pair.b}, {table.only_a} only {pair.a}"
    verb = "beats" if p_holm < SIGNIFICANCE_LEVEL else "is ahead of"
    return (
        f"{better} {verb} {worse} {_on(table)} by {100 * difference:.1f} points"
        f" (95 % {100 * low:.1f} to {100 * high:.1f}); {counts}; {how_sure}"
    )


def _on(table: _Table) -> str:
    return "on this one question" if table.n == 1 else f"on these {table.n} questions"


def _how_sure(table: _Table, p_holm: float) -> str:
    conversations = len(table.by_conversation)
    if not _is_enough_for_a_claim(table):
        whose = "this one conversation" if conversations == 1 else f"these {conversations} conversations"
        return f"which says nothing beyond {whose}"
    verdict = "significant" if p_holm < SIGNIFICANCE_LEVEL else "not significant"
    return f"{verdict} over {conversations} conversations"
