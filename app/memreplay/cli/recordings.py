"""``memreplay recordings``: list recordings, show one, import a foreign run."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from memreplay.errors import RecordingError
from memreplay.paths import recording_files
from memreplay.recording.bodies import reporting_damage
from memreplay.recording.reader import Recording, RunInfo


def list_recordings() -> None:
    """One line a run; a file that cannot be read is told on standard error."""
    for path in recording_files():
        try:
            with closing(Recording.open(path)) as recording:
                runs = recording.runs()
        except RecordingError as error:
            print(f"memreplay: {error}", file=sys.stderr)
            continue
        for run in runs:
            print(f"{path}\t{_line(run)}")


def show_recording(path: Path) -> None:
    """The runs of one file with their settings and conversations.

    Raises:
        RecordingError: it cannot be read.
    """
    with closing(Recording.open(path)) as recording, reporting_damage(path):
        for run in recording.runs():
            print(_line(run))
            for name, value in run.settings.items():
                print(f"  {name}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
            for conversation_id in recording.conversation_ids(run.id):
                print(f"  {_conversation_line(recording, run, conversation_id)}")


def _conversation_line(recording: Recording, run: RunInfo, conversation_id: str) -> str:
    def number_of(kind: str) -> int:
        return sum(1 for _ in recording.events(run.id, conversation_id, (kind,)))

    conversation = recording.conversation(run.id, conversation_id)
    if conversation.conversing:
        said, scored = number_of("message_said"), number_of("test_scored")
        return f"tests {conversation_id}: {said} turns, {scored} tests over"
    turns, questions, answers = len(conversation.turns), len(conversation.questions), number_of("answer_scored")
    return f"conversation {conversation_id}: {turns} turns, {questions} questions, {answers} answers"


def _line(run: RunInfo) -> str:
    return f"{run.id}\t{run.started_at}\t{run.status}\t{','.join(run.datasets)}"


command = typer.Typer(help="The runs in recordings.", rich_markup_mode=None, invoke_without_command=True)


@command.callback()
def recordings_default(context: typer.Context) -> None:
    """The runs in recordings: ``list`` (the default) or ``show FILE``."""
    if context.invoked_subcommand is None:
        recordings_list()


@command.command("list")
def recordings_list() -> None:
    """One line a run, of every recording in the recordings folder."""

    list_recordings()


@command.command("show")
def recordings_show(file: Annotated[Path, typer.Argument(help="A recording.")]) -> None:
    """What a recording holds: its runs, their settings and conversations."""

    show_recording(file)


@command.command("import")
def recordings_import(
    source: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="The folder of a finished GoodAI run.")],
    recording: Annotated[Path, typer.Option(help="The SQLite file; an existing one gains a run.")],
) -> None:
    """Make a recording of a run that another program made."""
    from memreplay.recording.goodai_import import import_goodai_run

    tests = import_goodai_run(source, recording)
    typer.echo(f"{tests} tests imported; recorded in {recording}", err=True)
