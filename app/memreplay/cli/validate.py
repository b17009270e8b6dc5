"""``memreplay validate``: one line per error on standard output, warnings on standard error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from memreplay.cli.options import COMMAND_OPTIONS, SessionGap, UserName, log_options
from memreplay.cli.reading_progress import show_reading_progress
from memreplay.conversations.registry import is_shipped, named_files
from memreplay.conversations.validation import Tally, errors_in_files
from memreplay.conversations.validation_errors import LoadCallbacks
from memreplay.errors import EXIT_USAGE, MemreplayError, UsageError
from memreplay.goodai.sources import TestOptions, TestSource, split_specs
from memreplay.printable import printable

_ALL = "*"

command = typer.Typer(**COMMAND_OPTIONS)


@command.command()
def validate(
    path: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="File, folder, id or glob. [default: all shipped datasets]"),
    ] = None,
    design: Annotated[
        bool,
        typer.Option("--design", help="Check your own files by the design rules of the shipped conversations too."),
    ] = False,
    format_only: Annotated[
        bool, typer.Option("--format-only", help="Check only the format, of the shipped conversations too.")
    ] = False,
    session_gap: SessionGap = None,
    user: UserName = None,
) -> None:
    """Check dataset files: one line per error, with its place and what was expected.

    The shipped conversations are also checked by their design rules.
    """
    if design and format_only:
        raise UsageError("--design and --format-only exclude each other")
    tally, warnings = Tally(), _Warnings()
    named, sources = split_specs(path or ())
    errors = sum(not _check_tests(source, tally, warnings) for source in sources)
    paths = (
        [_relative(file) for file in named_files(named or [_ALL], warnings.print)] if named or not sources else []
    )
    with show_reading_progress() as opened:
        callbacks = LoadCallbacks(
            on_warning=warnings.print,
            on_repair=warnings.print,
            on_opened=opened,
            options=log_options(session_gap, user),
        )
        by_design = _all if design else _none if format_only else is_shipped
        for error in errors_in_files(paths, tally, callbacks, by_design):
            errors += 1
            print(printable(str(error)))
    if errors:
        print(f"{_count(errors, 'error')} in {_count(tally.files, 'file')}", file=sys.stderr)
        raise typer.Exit(EXIT_USAGE)
    print(f"{_count(tally.files, 'file')} checked, {', '.join(_contents(tally))}: no errors")


def _all(_: Path) -> bool:
    return True


def _none(_: Path) -> bool:
    return False


def _contents(tally: Tally) -> list[str]:
    """Return what the files hold, counted. Conversations are left out where there are only tests."""
    tests = [_count(tally.tests, "test")] if tally.tests else []
    if tests and not tally.conversations:
        return tests
    return [_count(tally.conversations, "conversation"), _count(tally.questions, "question"), *tests]


def _check_tests(source: TestSource, tally: Tally, warnings: _Warnings) -> bool:
    """Create the tests of a source, and print the error if that fails; whether it succeeded."""
    tally.files += 1
    try:
        made = source.benchmark(TestOptions(), None)
    except MemreplayError as error:
        print(printable(str(error)))
        return False
    for note in made.notes:
        warnings.print(note)
    tally.tests += len(made.tests)
    return True


class _Warnings:
    """Prints each warning once, though a file of evidence is read once for each row file beside it."""

    def __init__(self) -> None:
        self._printed: set[str] = set()

    def print(self, sentence: str) -> None:
        if sentence not in self._printed:
            self._printed.add(sentence)
            print(f"warning: {printable(sentence)}", file=sys.stderr)


def _relative(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
