"""``memreplay datasets``: list datasets, show their coverage, export, convert, draft questions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from memreplay.cli.draft import draft
from memreplay.cli.options import COMMAND_OPTIONS, SessionGap, UserName, log_options, setting_option
from memreplay.cli.program import RECORDING_SUFFIX
from memreplay.cli.reading_progress import read_conversations, show_reading_progress
from memreplay.conversations.export import (
    as_test_conversation_text,
    conversation_schema_text,
    log_format,
    lost_in_export,
)
from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import DatasetEntry, load, shipped_datasets
from memreplay.conversations.rules.coverage import Cell, Coverage, CoverageTable, coverage_of
from memreplay.errors import DatasetError, UsageError
from memreplay.files import refuse_unusable_output, write_whole
from memreplay.goodai.dataset import DynamicExample
from memreplay.goodai.sources import (
    SHIPPED_DATASETS,
    Benchmark,
    ShippedDataset,
    TestOptions,
    TestSource,
    save_definitions,
    shipped_dataset,
    split_specs,
)
from memreplay.numbers import counted
from memreplay.paths import datasets_folder
from memreplay.printable import printable
from memreplay.rich_console import terminal_console
from memreplay.views.table import Column, Table, for_terminal

_PLAIN_WIDTH = 160
_EMPTY = "·"
_PYTHON = "Python"

command = typer.Typer(**COMMAND_OPTIONS, invoke_without_command=True)


@command.callback()
def datasets(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    coverage: Annotated[
        bool,
        typer.Option("--coverage", help="Show coverage by topic, type, location and salience, and the gaps in it."),
    ] = False,
) -> None:
    """List datasets, or show their coverage. Also: export, convert, draft questions, print our format's schema."""
    if context.invoked_subcommand is None:
        show = _show_coverage if coverage else _list_datasets
        show(as_json)


@command.command("export")
def export_dataset(
    dataset: Annotated[
        str, typer.Argument(metavar="ID|PATH", help="Dataset of a conversation or of tests; or a recording.")
    ],
    output: Annotated[Path, typer.Option(metavar="FILE|FOLDER", help="Where to write; tests need a folder.")],
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Conversation to export, if the dataset holds several.")
    ] = None,
    examples: Annotated[int | None, setting_option("examples", min=1)] = None,
    memory_span: Annotated[int | None, setting_option("memory_span", min=1)] = None,
    seed: Annotated[int, setting_option("seed", show_default=False)] = 0,
) -> None:
    """Export a conversation in the TestConversation format, or tests as GoodAI definition files."""
    options = TestOptions(examples, memory_span, seed)
    _, sources = split_specs([dataset])
    if sources and conversation is not None:
        raise UsageError(f"--conversation chooses a conversation, and {printable(dataset)} holds tests")
    if not sources and options != TestOptions():
        raise UsageError("--examples, --memory-span and --seed are for datasets of tests")
    if sources:
        _export_tests(sources[0], output, options)
    else:
        _export_conversation(dataset, conversation, output)


@command.command("convert")
def convert_dataset(
    source: Annotated[str, typer.Argument(metavar="ID|PATH|-", help="Dataset or chat log; - is standard input.")],
    to: Annotated[str, typer.Option(metavar="FORMAT", help="test-conversation, locomo, openai, sharegpt or text.")],
    output: Annotated[Path, typer.Option(metavar="FILE", help="Where to write.")],
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Conversation to convert, if the source holds several.")
    ] = None,
    session_gap: SessionGap = None,
    user: UserName = None,
) -> None:
    """Convert conversations between formats, and say what the new format has no place for."""
    wanted = log_format(to)
    refuse_unusable_output(str(output), (Path(source),))
    chosen = read_conversations(
        source, conversation, several=wanted.holds_several, options=log_options(session_gap, user)
    )
    write_whole(str(output), wanted.write(chosen))
    for one in chosen:
        for phrase in wanted.lost(one):
            print(printable(f"left out of {one.id}: {phrase}"), file=sys.stderr)


command.command("draft")(draft)


@command.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of the TestConversation format."""
    sys.stdout.write(conversation_schema_text())


def _export_conversation(spec: str, conversation_id: str | None, output: Path) -> None:
    """Write the conversation. What the format cannot hold is reported on standard error."""
    chosen = _recorded(Path(spec), conversation_id) if spec.endswith(RECORDING_SUFFIX) else None
    if chosen is None:
        (chosen,) = read_conversations(spec, conversation_id)
    write_whole(str(output), as_test_conversation_text(chosen))
    for phrase in lost_in_export(chosen):
        print(printable(f"left out: {phrase}"), file=sys.stderr)


def _recorded(path: Path, conversation_id: str | None) -> Conversation:
    """Return a conversation of a recording's newest run; that of a running agent has its marks as questions."""
    from memreplay.api.recorded import open_run

    with open_run(path) as run:
        if conversation_id is None and len(run.conversations) > 1:
            ids = ", ".join(map(printable, run.conversations[:12]))
            raise UsageError(f"{path} holds several conversations; choose one with --conversation: {ids}")
        return run.conversation(conversation_id or run.conversations[0]).conversation


def _export_tests(source: TestSource, folder: Path, options: TestOptions) -> None:
    """Write the tests. What definitions cannot hold is reported on standard error."""
    benchmark = source.benchmark(options, None)
    save_definitions(folder, benchmark)
    written = counted(len(benchmark.tests), "test")
    print(printable(f"{written} written; run them with --dataset {folder}"), file=sys.stderr)
    for sentence in (*benchmark.notes, *_lost_in_definitions(benchmark)):
        print(printable(sentence), file=sys.stderr)


def _lost_in_definitions(benchmark: Benchmark) -> Iterator[str]:
    for name in dict.fromkeys(test.dataset_name for test in benchmark.tests):
        if shipped_dataset(name) is None:
            yield f"{name}: its tests are graded by Python code; definitions lack it, so they run ungraded"
        elif any(isinstance(test, DynamicExample) for test in benchmark.tests if test.dataset_name == name):
            yield f"{name}: its tests are generated while they run; definitions only name them"


@dataclass(frozen=True)
class Listed:
    """One row of the list. A dataset that cannot be read has an ``error``, and counts of 0."""

    id: str
    path: str
    format: str | None
    conversations: int
    turns: int
    questions: int
    language: str
    tags: tuple[str, ...]
    error: str | None


def _list_datasets(as_json: bool) -> None:
    listed = [_listed(entry, conversations) for entry, conversations in _all_shipped()]
    listed += [_listed_tests(entry) for entry in SHIPPED_DATASETS]
    if as_json:
        _print_json([asdict(dataset) for dataset in listed])
        return
    counts = ("conversations", "turns", "questions")
    texts = (Column("language", align="left"), Column("tags", align="left"))
    columns = (Column("id", align="left"), Column("format", align="left"), *map(Column, counts), *texts)
    _console().print(for_terminal(Table("", columns, list(map(_row, listed)))))


def _row(dataset: Listed) -> list[str]:
    last = f"cannot be read: {dataset.error}" if dataset.error else ", ".join(dataset.tags)
    counts = (dataset.conversations, dataset.turns, dataset.questions)
    return [dataset.id, dataset.format or "?", *map(str, counts), dataset.language, last]


def _show_coverage(as_json: bool) -> None:
    coverage = coverage_of(
        conversation for _, found in _all_shipped() if not isinstance(found, str) for conversation in found
    )
    if as_json:
        _print_json(_as_data(coverage))
        return
    console = _console()
    console.print(f"questions / key turns; {_EMPTY} is 0")
    for table in coverage.tables:
        console.print(for_terminal(_as_table(table)))
    tags = ", ".join(f"{printable(tag)} {count}" for tag, count in coverage.tags.items())
    console.print(Text(f"conversations by tag: {tags or 'none'}"))
    console.print("not covered by any question:")
    for table in coverage.tables:
        for row, column in table.empty():
            console.print(Text(f"  {table.rows} {printable(row)}, {table.columns} {printable(column)}"))


def _all_shipped() -> Iterable[tuple[DatasetEntry, list[Conversation] | str]]:
    """Yield every shipped dataset with its conversations, or with its error."""
    with show_reading_progress() as opened:
        for entry in shipped_datasets():
            try:
                yield entry, list(load([str(entry.path)], on_opened=opened))
            except DatasetError as error:
                yield entry, f"{error.pointer or '/'}: {error.problem}"


def _listed(entry: DatasetEntry, found: Sequence[Conversation] | str) -> Listed:
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
        error=found if isinstance(found, str) else None,
    )


def _listed_tests(entry: ShippedDataset) -> Listed:
    """Return a dataset of tests. Its code is not executed, and options decide how many tests it creates: counts
    are 0.
    """
    path = str(datasets_folder() / entry.file)
    return Listed(entry.key, path, _PYTHON, 0, 0, 0, "", ("tests",), None)


def _as_table(table: CoverageTable) -> Table:
    columns = list(next(iter(table.cells.values()), {}))
    rows = [[row, *(_as_text(cells[column]) for column in columns)] for row, cells in table.cells.items()]
    return Table.of("", (f"{table.rows} \\ {table.columns}", *columns), rows)


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
    return terminal_console(width=_PLAIN_WIDTH, highlight=False)
