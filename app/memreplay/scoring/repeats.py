"""Repeats of a question are collapsed to the question: they are no independent observations of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol

from memreplay.grading import Outcome

Key = tuple[str, str, str]
"""Dataset, conversation and question id."""


class Graded(Protocol):
    """The parts of an answer that are counted and compared."""

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


def key_of(row: Graded) -> Key:
    return row.dataset, row.conversation, row.question_id


def shares_right(rows: Iterable[Graded]) -> dict[Key, float]:
    """For each question, the share of its graded repeats that are right; without questions that only had errors."""
    repeats: dict[Key, list[bool]] = defaultdict(list)
    for row in rows:
        if row.outcome != "error":
            repeats[key_of(row)].append(row.outcome == "correct")
    return {key: sum(right) / len(right) for key, right in repeats.items()}


def by_conversation(shares: dict[Key, float]) -> list[tuple[float, int]]:
    """For each conversation, the sum of its questions' shares, and their number."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (dataset, conversation, _), share in shares.items():
        found[dataset, conversation].append(share)
    return [(sum(its_shares), len(its_shares)) for its_shares in found.values()]
