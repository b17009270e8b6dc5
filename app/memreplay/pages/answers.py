"""What the plots of a report are made from: the answers of one run, or of two side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_backends.controls import CONTROLS
from memreplay.pages.plots import Spec
from memreplay.scoring.aggregates import build_results
from memreplay.scoring.comparisons import contestants_of
from memreplay.scoring.question_row import Interval, QuestionRow
from memreplay.scoring.results import BackendResults, Comparison, Results
from memreplay.text import UNKNOWN

PREFIXES = ("A ", "B ")
"""What stands before the name of a backend of the first and of the second run."""


def without_prefix(backend: str) -> str:
    """The name of a backend in its own run."""
    for prefix in PREFIXES:
        backend = backend.removeprefix(prefix)
    return backend


def side_by_side(a: Results, b: Results, comparisons: Sequence[Comparison]) -> Results:
    """The answers of both, under prefixed names, with the comparisons of one run with the other."""
    rows: list[QuestionRow] = []
    for prefix, results in zip(PREFIXES, (a, b), strict=True):
        rows += [row.model_copy(update={"backend": prefix + row.backend}) for row in results.questions]
    run = b.run.model_copy(
        update={
            "id": f"A {a.run.id}, B {b.run.id}",
            "datasets": tuple(dict.fromkeys((*a.run.datasets, *b.run.datasets))),
            "settings": {},
        }
    )
    both = build_results(run, rows)
    originals = {
        (prefix + found.backend, found.model): found
        for prefix, results in zip(PREFIXES, (a, b), strict=True)
        for found in results.backends.values()
    }
    return both.model_copy(
        update={
            "run": run.model_copy(update={"settings": _merged(a.run.settings, b.run.settings)}),
            "backends": {name: _as_measured(found, originals) for name, found in both.backends.items()},
            "comparisons": tuple(comparisons),
            "option_style": {**a.option_style, **b.option_style},
            "fit": None,
        }
    )


def _as_measured(found: BackendResults, originals: dict[tuple[str, str], BackendResults]) -> BackendResults:
    """With what cannot be computed from rows alone: writing, extraction, and recall at the k of its run."""
    original = originals[found.backend, found.model]
    return found.model_copy(
        update={name: getattr(original, name) for name in ("writing", "reading", "extraction", "retrieval")}
    )


def _merged(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """The settings of both: one value where they agree, else both."""
    names = dict.fromkeys((*a, *b))
    return {
        name: a.get(name) if a.get(name) == b.get(name) else f"A {a.get(name)} · B {b.get(name)}" for name in names
    }


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
