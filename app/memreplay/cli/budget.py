"""``memreplay budget``: how much reaches the prompt at which budget, by memory."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.text import Text

from memreplay.batch.writers import STANDARD_OUTPUT
from memreplay.cli.options import COMMAND_OPTIONS
from memreplay.debugger.budget import budget_curves
from memreplay.errors import UsageError
from memreplay.files import refuse_unusable_output, write_whole
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording
from memreplay.rich_console import terminal_console
from memreplay.views.panels.budget import budget_table
from memreplay.views.table import for_terminal

command = typer.Typer(**COMMAND_OPTIONS)

_WIDTH_WITHOUT_TERMINAL = 140


@command.command()
def budget(
    file: Annotated[Path, typer.Argument(help="A recording.")],
    run: Annotated[str | None, typer.Option(metavar="ID", help="Run to look at. [default: the newest]")] = None,
    top_k: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Hits to cut the rankings at. [default: as in the run]")
    ] = None,
    output: Annotated[
        str | None, typer.Option(metavar="PATH", help="Also write the curves as JSON; - for standard output.")
    ] = None,
) -> None:
    """Show the share of questions whose answer is in the prompt, by tokens of context and memory.

    It is read off the recorded rankings, and asks no memory and no model. A memory that composes its prompt anew
    for each budget is marked as estimated, with a ~.
    """
    if output is not None and output != STANDARD_OUTPUT:
        if Path(output).suffix != ".json":
            raise UsageError(f"--output {output}: expected a .json file, or -")
        refuse_unusable_output(output, (file,))
    with closing(Recording.open(file)) as recording, reporting_damage(file):
        info = recording.run(run)
        timelines = (recording.timeline(info.id, id_) for id_ in recording.conversation_ids(info.id))
        curves = budget_curves(timelines, info.settings, top_k)
    data = orjson.dumps(curves.as_json(), option=orjson.OPT_INDENT_2).decode() + "\n"
    if output == STANDARD_OUTPUT:
        sys.stdout.write(data)
        return
    if output is not None:
        write_whole(output, data)
    console = terminal_console(width=_WIDTH_WITHOUT_TERMINAL)
    table = budget_table(curves)
    console.print(Text(table.title, style="bold"))
    if table.rows:
        console.print(for_terminal(table))
    for sentence in curves.sentences:
        console.print(Text(sentence), soft_wrap=True)
