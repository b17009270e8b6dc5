"""Two runs as one set of results, for a page that shows them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memreplay.scoring.aggregates import build_results
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.results import BackendResults, Comparison, Results

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
        update={name: getattr(original, name) for name in ("writing", "extraction", "retrieval")}
    )


def _merged(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """The settings of both: one value where they agree, else both."""
    names = dict.fromkeys((*a, *b))
    return {
        name: a.get(name) if a.get(name) == b.get(name) else f"A {a.get(name)} · B {b.get(name)}" for name in names
    }
