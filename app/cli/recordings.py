"""``memreplay recordings``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

recordings = typer.Typer(help="The runs in recordings.", rich_markup_mode=None, invoke_without_command=True)


@recordings.callback()
def recordings_default(context: typer.Context) -> None:
    """The runs in recordings: ``list`` (the default) or ``show FILE``."""
    if context.invoked_subcommand is None:
        recordings_list()


@recordings.command("list")
def recordings_list() -> None:
    """One line a run, of every recording in the recordings folder."""
    from app.commands.recordings import list_recordings

    list_recordings()


@recordings.command("show")
def recordings_show(file: Annotated[Path, typer.Argument(help="A recording.")]) -> None:
    """What a recording holds: its runs, their settings and conversations."""
    from app.commands.recordings import show_recording

    show_recording(file)


@recordings.command("import")
def recordings_import(
    source: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="The folder of a finished GoodAI run.")],
    recording: Annotated[Path, typer.Option(help="The SQLite file; an existing one gains a run.")],
) -> None:
    """Make a recording of a run that another program made."""
    from app.recording.goodai_import import import_goodai_run

    tests = import_goodai_run(source, recording)
    typer.echo(f"{tests} tests imported; recorded in {recording}", err=True)
