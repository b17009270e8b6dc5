"""``memreplay recordings``: list recordings, show one, import a run of another program."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from memreplay.cli.options import COMMAND_OPTIONS
from memreplay.errors import RecordingError
from memreplay.paths import recording_files
from memreplay.printable import printable
from memreplay.recording.bodies import reporting_damage
from memreplay.recording.reader import Recording, RunInfo
from memreplay.terminal import say

command = typer.Typer(**COMMAND_OPTIONS, invoke_without_command=True)


@command.callback()
def recordings(context: typer.Context) -> None:
    """List recordings (the default), show one, or import a run of another program."""
    if context.invoked_subcommand is None:
        list_recordings()


@command.command("list")
def list_recordings() -> None:
    """List the runs in the recordings folder, one per line."""
    for path in recording_files():
        try:
            with closing(Recording.open(path)) as recording:
                runs = recording.runs()
        except RecordingError as error:
            say(f"memreplay: {error}")
            continue
        for run in runs:
            _show(str(path), *_cells(run))


@command.command("show")
def show_recording(file: Annotated[Path, typer.Argument(help="A recording.")]) -> None:
    """Show the runs of a recording, with their settings and conversations."""
    with closing(Recording.open(file)) as recording, reporting_damage(file):
        for run in recording.runs():
            _show(*_cells(run))
            if run.branch is not None:
                continue
            for name, value in run.settings.items():
                _show(f"  {name}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
            for conversation_id in recording.conversation_ids(run.id):
                _show(f"  {_conversation_line(recording, run, conversation_id)}")


@command.command("import")
def import_run(
    source: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="The folder of a finished GoodAI run.")],
    recording: Annotated[Path, typer.Option(help="SQLite file to record into; an existing file gains a run.")],
) -> None:
    """Import a finished run of the GoodAI LTM benchmark into a recording."""
    from memreplay.goodai.importing import import_goodai_run

    tests = import_goodai_run(source, recording)
    say(f"{tests} tests imported; recorded in {recording}")


def _show(*cells: str) -> None:
    print("\t".join(map(printable, cells)))


def _cells(run: RunInfo) -> list[str]:
    branch = run.branch
    departs = [f"branch of {branch.parent} at turn {branch.turn}: {branch.edit}"] if branch else []
    return [run.id, run.started_at, run.status, ",".join(run.datasets), *departs]


def _conversation_line(recording: Recording, run: RunInfo, conversation_id: str) -> str:
    def count(kind: str) -> int:
        return sum(1 for _ in recording.events(run.id, conversation_id, (kind,)))

    conversation = recording.conversation(run.id, conversation_id)
    if conversation.conversing:
        return f"tests {conversation_id}: {count('message_said')} turns, {count('test_scored')} tests scored"
    turns, questions = len(conversation.turns), len(conversation.questions)
    return f"conversation {conversation_id}: {turns} turns, {questions} questions, {count('answer_scored')} answers"
