"""``memreplay autopsy``: where the wrong answers of published runs were lost. Asks no model."""

from __future__ import annotations

import shlex
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from memreplay.batch.report import results_of_run
from memreplay.batch.writers import check_outputs
from memreplay.cli.options import COMMAND_OPTIONS, AnswerKeyFile
from memreplay.errors import EXIT_QUESTION_ERRORS, DatasetError, UsageError
from memreplay.files import write_whole
from memreplay.printable import printable
from memreplay.recording.reader import Recording
from memreplay.rich_console import terminal_console
from memreplay.scoring.answer_key import AnswerKey, read_answer_key
from memreplay.terminal import say
from memreplay.views.table import Table, for_terminal

command = typer.Typer(**COMMAND_OPTIONS)

_HTML = ".html"
_WIDTH_WITHOUT_TERMINAL = 250


@command.command()
def autopsy(
    source: Annotated[
        list[Path],
        typer.Argument(metavar="SOURCE…", help="Published results: a file, or the folder of a run. Repeatable."),
    ],
    evidence: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="The public dataset that the questions come from. Repeatable."),
    ] = None,
    output: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="Also write one page here: .html. Repeatable.")
    ] = None,
    recording: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Keep the imported runs in this recording. [default: they are not kept]"),
    ] = None,
    answer_key: AnswerKeyFile = None,
) -> None:
    """Say where the wrong answers of published runs were lost: dates, retrieval, reader or judge. Asks no model."""
    outputs = tuple(dict.fromkeys(output or ()))
    check_outputs(outputs, (_HTML,), inputs=(*source, *(evidence or ())))
    key = None if answer_key is None else read_answer_key(answer_key)
    with tempfile.TemporaryDirectory(prefix="memreplay-") as folder:
        problems = _examine(source, evidence or [], outputs, recording or Path(folder) / "autopsy.sqlite3", key)
    if problems:
        say(f"{problems:,} parts could not be read and are left out")
        raise typer.Exit(EXIT_QUESTION_ERRORS)


def _examine(
    sources: list[Path], evidence: list[Path], outputs: tuple[str, ...], recording: Path, key: AnswerKey | None
) -> int:
    """Print the autopsy and write its pages; return how many parts of the sources could not be read."""
    from memreplay.published.autopsy import Autopsy, autopsy_of
    from memreplay.published.files import read_source
    from memreplay.published.importing import import_published_run
    from memreplay.views.autopsy import autopsy_sections, autopsy_text

    problems = 0
    systems = []
    for source in sources:
        try:
            runs = read_source(source)
        except (DatasetError, UsageError) as error:
            if len(sources) == 1:
                raise
            say(f"memreplay: not read: {error}")
            problems += 1
            continue
        for published in runs:
            problems += len(published.problems)
            made = import_published_run(published, recording, evidence, on_warning=_silent)
            with closing(Recording.open(recording)) as opened:
                results = results_of_run(opened, opened.run(made.run_id), key)
                systems.append(autopsy_of(made, opened, results))
    if not systems:
        raise UsageError("none of the sources could be read")
    found = Autopsy(tuple(systems))
    sections = list(autopsy_sections(found))
    console = terminal_console(width=_WIDTH_WITHOUT_TERMINAL)
    for part in autopsy_text(sections):
        if isinstance(part, Table):
            console.print(Text(part.title, style="bold"))
            console.print(for_terminal(part))
        else:
            print(printable(part))
    if outputs:
        from memreplay.pages.autopsy import autopsy_page

        text = autopsy_page(found, sections, _command(sources, evidence))
        for path in outputs:
            write_whole(path, text)
    return problems


def _silent(_: str) -> None:
    """Ignore warnings about the dataset: what cannot be joined is counted."""


def _command(sources: list[Path], evidence: list[Path]) -> str:
    """Return the command with the names of the files: nobody else has their folders."""
    words = [*(path.name for path in sources), *(word for path in evidence for word in ("--evidence", path.name))]
    return shlex.join(["memreplay", "autopsy", *words, "--output", "report.html"])
