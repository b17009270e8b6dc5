"""What the plots of a report are made from, and what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory_backends.controls import CONTROLS
from memreplay.pages.plots import Spec
from memreplay.pages.two_runs import without_prefix
from memreplay.scoring.comparisons import contestants_of
from memreplay.scoring.question_row import Interval, QuestionRow
from memreplay.scoring.results import Results
from memreplay.text import UNKNOWN

Cells = Sequence[str]
RowKey = tuple[str, str, str]
"""Dataset, conversation and id of a question."""


@dataclass(frozen=True)
class Figure:
    """A plot and the table behind it. Without a ``spec``, ``n`` says why there is nothing to draw."""

    id: str
    title: str
    about: str
    n: str
    spec: Spec | None
    heading: Cells
    rows: Sequence[Cells]


@dataclass(frozen=True)
class Answers:
    """The answers of a report by memory, and where known the distance in turns from a question to its evidence."""

    results: Results
    by_name: Mapping[str, Sequence[QuestionRow]]
    distances: Mapping[RowKey, int]

    @classmethod
    def of(cls, results: Results, distances: Mapping[RowKey, int]) -> Answers:
        return cls(results, contestants_of(results.questions), distances)

    @property
    def names(self) -> list[str]:
        return list(self.by_name)

    @property
    def counted(self) -> str:
        """How many answers there are."""
        rows = self.results.questions
        graded = sum(row.outcome != "error" for row in rows)
        questions = len({row_key(row) for row in rows})
        return f"n = {graded:,} graded answers to {questions:,} questions"

    def is_control(self, name: str) -> bool:
        return without_prefix(self.by_name[name][0].backend) in CONTROLS


def row_key(row: QuestionRow) -> RowKey:
    return row.dataset, row.conversation, row.question_id


def percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{100 * value:.1f} %"


def interval_words(interval: Interval | None) -> str:
    return UNKNOWN if interval is None else f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f} %"
