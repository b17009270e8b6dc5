"""``memreplay validate``: one line a fault on standard output, warnings on standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from memreplay.cli.reading_progress import show_reading_progress
from memreplay.conversations.registry import named_files
from memreplay.conversations.validation import Tally, errors_in_files
from memreplay.conversations.validation_errors import LoadCallbacks, printable
from memreplay.dataset_interfaces.sources import TestOptions, TestSource, split_specs
from memreplay.errors import EXIT_DONE, EXIT_USAGE, MemreplayError

command = typer.Typer(
    rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]}
)


@command.command()
def validate(
    path: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="A file, folder, id or glob; default: all shipped datasets."),
    ] = None,
) -> None:
    """Check dataset files: one line a fault, with its place and what was expected."""
    raise typer.Exit(check_files(tuple(path or ())))


def check_files(specs: Sequence[str]) -> int:
    """Check the files that the specs name, the shipped ones where there is none; the exit code says how it went.

    Raises:
        UsageError: a spec names nothing.
    """
    tally, warnings, faults = Tally(), _Warnings(), 0
    named, sources = split_specs(specs)
    for source in sources:
        faults += _check_tests(source, tally, warnings)
    paths = [_as_seen_from_here(path) for path in named_files(named)] if named or not sources else []
    with show_reading_progress() as opened:
        callbacks = LoadCallbacks(on_warning=warnings.hear, on_repair=warnings.hear, on_opened=opened)
        for fault in errors_in_files(paths, tally, callbacks):
            faults += 1
            print(printable(str(fault)))
    if faults:
        print(f"{_count(faults, 'fault')} in {_count(tally.files, 'file')}", file=sys.stderr)
        return EXIT_USAGE
    print(f"{_count(tally.files, 'file')} checked, {', '.join(_held(tally))}: no fault")
    return EXIT_DONE


def _held(tally: Tally) -> list[str]:
    """What the files hold, counted; tests where there are any, and then conversations only where there are some."""
    tests = [_count(tally.tests, "test")] if tally.tests else []
    if tests and not tally.conversations:
        return tests
    return [_count(tally.conversations, "conversation"), _count(tally.questions, "question"), *tests]


def _check_tests(source: TestSource, tally: Tally, warnings: _Warnings) -> int:
    """Make the tests of a source, and tell what is wrong with it; the number of faults."""
    tally.files += 1
    try:
        made = source.benchmark(TestOptions(), None)
    except MemreplayError as error:
        print(printable(str(error)))
        return 1
    for note in made.notes:
        warnings.hear(note)
    tally.tests += len(made.tests)
    return 0


class _Warnings:
    """Each said once, though a file of evidence is read as often as there are rows beside it."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def hear(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            print(f"warning: {printable(sentence)}", file=sys.stderr)


def _as_seen_from_here(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
