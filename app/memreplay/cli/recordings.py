"""``memreplay recordings``: list recordings, show one, import a run of another program."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from memreplay.cli.options import COMMAND_OPTIONS
from memreplay.errors import EXIT_QUESTION_ERRORS, RecordingError, UsageError
from memreplay.numbers import counted
from memreplay.paths import recording_files
from memreplay.printable import printable
from memreplay.recording.damage import reporting_damage
from memreplay.recording.overview import progress_of
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
            _show(str(path), *_cells(path, run))


@command.command("show")
def show_recording(file: Annotated[Path, typer.Argument(help="A recording.")]) -> None:
    """Show the runs of a recording, with their settings and conversations."""
    with closing(Recording.open(file)) as recording, reporting_damage(file):
        for run in recording.runs():
            _show(*_cells(file, run))
            if run.branch is not None:
                continue
            for name, value in run.settings.items():
                _show(f"  {name}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
            for conversation_id in recording.conversation_ids(run.id):
                _show(f"  {_conversation_line(recording, run, conversation_id)}")


@command.command("import")
def import_run(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="The folder of a finished GoodAI run, or the per-question results of another harness: a file or a"
            " folder.",
        ),
    ],
    recording: Annotated[Path, typer.Option(help="SQLite file to record into; an existing file gains a run.")],
    evidence: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="The public dataset that the questions come from: they are joined with it by id, else by text."
            " Repeatable.",
        ),
    ] = None,
) -> None:
    """Import a run of another harness into a recording: of the GoodAI LTM benchmark, or published results."""
    from memreplay.goodai.importing import import_goodai_run, is_goodai_run

    if is_goodai_run(source):
        if evidence:
            raise UsageError("--evidence: a GoodAI run brings its own questions")
        say(f"{counted(import_goodai_run(source, recording), 'test')} imported; recorded in {recording}")
        return
    from memreplay.published.files import read_source
    from memreplay.published.importing import import_published_run

    problems = 0
    for published in read_source(source):
        for problem in published.problems:
            say(f"memreplay: not read: {problem}")
        problems += len(published.problems)
        made = import_published_run(published, recording, evidence or (), on_warning=say)
        repeated = f" ({made.repeated:,} of them answered a question again)" if made.repeated else ""
        say(
            f"{counted(len(published.answers), 'answer')} of {published.system} imported{repeated};"
            f" {made.joined.sentence}; recorded in {recording} as run {made.run_id}"
        )
        for remark in published.remarks:
            say(f"{published.system}: {remark}")
    if problems:
        say(f"{problems:,} parts of {source} could not be read and are left out")
        raise typer.Exit(EXIT_QUESTION_ERRORS)


def _show(*cells: str) -> None:
    print("\t".join(map(printable, cells)))


def _cells(path: Path, run: RunInfo) -> list[str]:
    branch = run.branch
    departs = [f"branch of {branch.parent} at turn {branch.turn}: {branch.edit}"] if branch else []
    return [run.id, run.started_at, progress_of(path, run), ",".join(run.datasets), *departs]


def _conversation_line(recording: Recording, run: RunInfo, conversation_id: str) -> str:
    def count(kind: str, noun: str) -> str:
        return counted(sum(1 for _ in recording.events(run.id, conversation_id, (kind,))), noun)

    conversation = recording.conversation(run.id, conversation_id)
    if conversation.conversing:
        return f"tests {conversation_id}: {count('message_said', 'turn')}, {count('test_scored', 'test')} scored"
    asked = counted(len(conversation.turns), "turn"), counted(len(conversation.questions), "question")
    return f"conversation {conversation_id}: {', '.join(asked)}, {count('answer_scored', 'answer')}"
