"""``memreplay datasets``: list what can be replayed, show its coverage, export conversations and tests."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memreplay.cli.reading_progress import show_reading_progress
from memreplay.conversations.coverage import Cell, Coverage, CoverageTable, coverage_of
from memreplay.conversations.export import as_test_conversation_text, conversation_schema_text, lost_in_export
from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import DatasetEntry, load, shipped_datasets
from memreplay.conversations.validation_errors import printable
from memreplay.dataset_interfaces.definitions import Benchmark, save_definitions
from memreplay.dataset_interfaces.dynamic import DynamicExample
from memreplay.dataset_interfaces.loading import SHIPPED_DATASETS, ShippedDataset, shipped_dataset
from memreplay.dataset_interfaces.sources import TestOptions, TestSource, split_specs
from memreplay.errors import DatasetError, UsageError
from memreplay.files import write_whole
from memreplay.paths import datasets_folder


def export_tests(source: TestSource, folder: Path, wishes: TestOptions) -> None:
    """Write the tests; what is lost in their definitions is told on standard error.

    Raises:
        MemreplayError: they cannot be made, or written.
    """
    benchmark = source.benchmark(wishes, None)
    save_definitions(folder, benchmark)
    print(f"{len(benchmark.tests)} tests written; run them with --dataset {folder}", file=sys.stderr)
    for sentence in (*benchmark.notes, *_lost_in(benchmark)):
        print(printable(sentence), file=sys.stderr)


def _lost_in(benchmark: Benchmark) -> Iterator[str]:
    for name in dict.fromkeys(test.dataset_name for test in benchmark.tests):
        if shipped_dataset(name) is None:
            yield f"{name}: how its tests are graded is Python; from definitions alone they run ungraded"
        elif any(isinstance(test, DynamicExample) for test in benchmark.tests if test.dataset_name == name):
            yield f"{name}: its tests are made up as they run; their definitions only name them"


_PLAIN_WIDTH = 160
_EMPTY = "·"
_PYTHON = "Python"


@dataclass(frozen=True)
class Listed:
    """A dataset as it is listed; ``fault`` is set where it cannot be read, and then it counts nothing."""

    id: str
    path: str
    format: str | None
    conversations: int
    turns: int
    questions: int
    language: str
    tags: tuple[str, ...]
    fault: str | None


def list_datasets(as_json_text: bool) -> None:
    """One row a dataset, on standard output."""
    listed = [_listed(entry, conversations) for entry, conversations in _all_shipped()]
    listed += [_listed_tests(entry) for entry in SHIPPED_DATASETS]
    if as_json_text:
        _print_json([asdict(dataset) for dataset in listed])
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("id", "format"):
        table.add_column(heading)
    for heading in ("conversations", "turns", "questions"):
        table.add_column(heading, justify="right")
    for heading in ("language", "tags"):
        table.add_column(heading)
    for dataset in listed:
        last = f"cannot be read: {dataset.fault}" if dataset.fault else ", ".join(dataset.tags)
        counts = (dataset.conversations, dataset.turns, dataset.questions)
        cells = (dataset.id, dataset.format or "?", *map(str, counts), dataset.language, last)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    _console().print(table)


def show_coverage(as_json_text: bool) -> None:
    """What the shipped datasets cover, on standard output."""
    coverage = coverage_of(
        conversation for _, found in _all_shipped() if not isinstance(found, str) for conversation in found
    )
    if as_json_text:
        _print_json(_as_data(coverage))
        return
    console = _console()
    console.print(f"questions / key turns; {_EMPTY} is nothing")
    for table in coverage.tables:
        console.print(_as_table(table))
    tags = ", ".join(f"{printable(tag)} {count}" for tag, count in coverage.tags.items())
    console.print(Text(f"tags, by conversations: {tags or 'none'}"))
    console.print("no question on:")
    for table in coverage.tables:
        for row, column in table.empty():
            console.print(Text(f"  {table.rows} {printable(row)}, {table.columns} {printable(column)}"))


def export_dataset(spec: str, conversation_id: str | None, output: Path, wishes: TestOptions) -> None:
    """Write a conversation as a file in the TestConversation format, or tests as a folder of definitions.

    Raises:
        MemreplayError: it cannot be found or made, or an option is for the other of the two.
    """
    _, sources = split_specs([spec])
    if sources and conversation_id is not None:
        raise UsageError(f"{printable(spec)} holds tests, and --conversation chooses a conversation")
    if not sources and wishes != TestOptions():
        raise UsageError("--examples, --memory-span and --seed are for datasets of tests")
    if sources:
        export_tests(sources[0], output, wishes)
    else:
        export_conversation(spec, conversation_id, output)


def export_conversation(spec: str, conversation_id: str | None, output: Path) -> None:
    """Write a conversation in the TestConversation format; what the format cannot hold is told on standard error.

    Raises:
        MemreplayError: it cannot be found, or the file cannot be written.
    """
    with show_reading_progress() as opened:
        found = list(load([spec], on_opened=opened))
    chosen = [one for one in found if conversation_id in (None, one.id)]
    if len(chosen) != 1:
        ids = ", ".join(printable(one.id) for one in found[:12]) + (", …" if len(found) > 12 else "")
        raise UsageError(f"{printable(spec)} holds {len(found)} conversations; name one with --conversation: {ids}")
    conversation = chosen[0]
    text = as_test_conversation_text(conversation)
    write_whole(str(output), text)
    for phrase in lost_in_export(conversation):
        print(f"left out: {phrase}", file=sys.stderr)


def print_schema() -> None:
    """The JSON Schema of TestConversation files, on standard output."""
    sys.stdout.write(conversation_schema_text())


def _all_shipped() -> Iterable[tuple[DatasetEntry, list[Conversation] | str]]:
    """Every shipped dataset with its conversations, or with what is wrong with it."""
    with show_reading_progress() as opened:
        for entry in shipped_datasets():
            try:
                yield entry, list(load([str(entry.path)], on_opened=opened))
            except DatasetError as error:
                yield entry, f"{error.pointer or '/'}: {error.problem}"


def _listed(entry: DatasetEntry, found: Sequence[Conversation] | str) -> Listed:
    fault = found if isinstance(found, str) else None
    conversations = () if isinstance(found, str) else tuple(found)
    return Listed(
        id=entry.id,
        path=str(entry.path),
        format=entry.format and entry.format.partition(" ")[0],
        conversations=len(conversations),
        turns=sum(len(conversation.turns) for conversation in conversations),
        questions=sum(len(conversation.questions) for conversation in conversations),
        language=", ".join(sorted({one.language for one in conversations if one.language})),
        tags=tuple(dict.fromkeys(tag for one in conversations for tag in one.tags)),
        fault=fault,
    )


def _listed_tests(entry: ShippedDataset) -> Listed:
    """A dataset of tests; it is not executed, and how many tests it makes is for whoever runs it to say."""
    path = str(datasets_folder() / entry.file)
    return Listed(entry.key, path, _PYTHON, 0, 0, 0, "", ("tests",), None)


def _as_table(table: CoverageTable) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column(f"{table.rows} \\ {table.columns}")
    columns = list(next(iter(table.cells.values()), {}))
    for column in columns:
        shown.add_column(Text(printable(column)), justify="right")
    for row, cells in table.cells.items():
        shown.add_row(Text(printable(row)), *(Text(_as_text(cells[column])) for column in columns))
    return shown


def _as_text(cell: Cell) -> str:
    return f"{cell.questions or _EMPTY} / {cell.key_turns or _EMPTY}"


def _as_data(coverage: Coverage) -> dict[str, Any]:
    return {
        "tables": [
            {
                "rows": table.rows,
                "columns": table.columns,
                "cells": {
                    row: {column: asdict(cell) for column, cell in cells.items()}
                    for row, cells in table.cells.items()
                },
                "empty": table.empty(),
            }
            for table in coverage.tables
        ],
        "tags": coverage.tags,
    }


def _print_json(data: object) -> None:
    sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False)


command = typer.Typer(help="What can be replayed.", rich_markup_mode=None, invoke_without_command=True)


@command.callback()
def datasets_default(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    coverage: Annotated[
        bool, typer.Option("--coverage", help="What is covered, and what is not: what to write next.")
    ] = False,
) -> None:
    """What can be replayed. Also: ``export`` a conversation or tests, print the ``schema`` of our own format."""
    if context.invoked_subcommand is not None:
        return

    show = show_coverage if coverage else list_datasets
    show(as_json)


@command.command("export")
def datasets_export(
    dataset: Annotated[str, typer.Argument(metavar="ID|PATH", help="What holds the conversation, or the tests.")],
    output: Annotated[Path, typer.Option(metavar="FILE|FOLDER", help="Where it goes: a folder for tests.")],
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Which one, where the dataset holds several.")
    ] = None,
    examples: Annotated[int | None, typer.Option(metavar="N", min=1, help="How many tests.")] = None,
    memory_span: Annotated[
        int | None, typer.Option(metavar="TOKENS", min=1, help="Over how many tokens a test is spread.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the tests.")] = 0,
) -> None:
    """Write a conversation in the TestConversation format, or tests as GoodAI's files of definitions."""
    from memreplay.dataset_interfaces.sources import TestOptions

    export_dataset(dataset, conversation, output, TestOptions(examples, memory_span, seed))


@command.command("schema")
def datasets_schema() -> None:
    """Print the JSON Schema of the TestConversation format."""

    print_schema()
