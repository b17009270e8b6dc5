"""Where results go: JSON files, standard output, and the table a person reads."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.answering.model import EXTRACTIVE_MODEL
from app.batch.tests_table import print_tests
from app.errors import UsageError
from app.scoring.results import BackendResults, Results
from app.scoring.sections import MultipleChoiceResults, RecallResults, TestResults

STANDARD_OUTPUT = "-"


def check_outputs(outputs: Sequence[str]) -> None:
    """Refuse, before anything is asked, what could not be written afterwards.

    Raises:
        UsageError: an unknown ending, or a folder that is not there.
    """
    for output in outputs:
        if output == STANDARD_OUTPUT:
            continue
        path = Path(output)
        if path.suffix != ".json":
            raise UsageError(f"--output {output}: cannot write {path.suffix or 'no ending'}; expected .json, or -")
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise UsageError(f"--output {output}: not a file in an existing folder")


def write_results(results: Results, outputs: Sequence[str]) -> None:
    """Write results everywhere they were asked for; a file is replaced whole or not at all."""
    text = results.to_json()
    for output in outputs:
        if output == STANDARD_OUTPUT:
            sys.stdout.write(text)
            continue
        path = Path(output)
        unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
        try:
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(path)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            raise UsageError(f"--output {output}: cannot be written: {error.strerror}") from None


def print_table(results: Results) -> None:
    """One row a backend, on standard output."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("backend")
    for heading in _COLUMNS:
        table.add_column(heading, justify="right")
    for name, backend in results.backends.items():
        table.add_row(Text(name), *(cell(backend) for cell in _COLUMNS.values()))
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    if any(backend.tests is not None for backend in results.backends.values()):
        print_tests(console, results)
    if any(backend.model == EXTRACTIVE_MODEL for backend in results.backends.values()):
        console.print(f"{EXTRACTIVE_MODEL} is an embedded reader that picks words; it is not a language model.")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _parts(backend: BackendResults) -> list[MultipleChoiceResults | RecallResults | TestResults]:
    return [part for part in (backend.multiple_choice, backend.recall, backend.tests) if part is not None]


def _right(backend: BackendResults) -> str:
    parts = _parts(backend)
    return f"{sum(part.correct for part in parts)}/{sum(part.graded for part in parts)}"


def _interval(backend: BackendResults) -> str:
    part = backend.multiple_choice or backend.recall
    if part is None or part.ci95 is None or (backend.multiple_choice and backend.recall):
        return "–"
    return f"{100 * part.ci95[0]:.0f}–{100 * part.ci95[1]:.0f}"


def _errors(backend: BackendResults) -> str:
    return str(sum(part.errors for part in _parts(backend)))


def _without_adversarial(backend: BackendResults) -> str:
    return _share(backend.multiple_choice.accuracy_without_adversarial if backend.multiple_choice else None)


def _recall_at_10(backend: BackendResults) -> str:
    found = backend.retrieval.recall_at if backend.retrieval else None
    return _share(found["10"] if found else None)


_COLUMNS: dict[str, Callable[[BackendResults], str]] = {
    "right": _right,
    "accuracy": lambda backend: _share(backend.accuracy),
    "95 %": _interval,
    "not adversarial": _without_adversarial,
    "errors": _errors,
    "recall@10": _recall_at_10,
    "evidence in prompt": lambda backend: _share(
        backend.retrieval.evidence_in_prompt if backend.retrieval else None
    ),
    "cost": lambda backend: "–" if backend.cost_usd is None else f"${backend.cost_usd:.4f}",
}
