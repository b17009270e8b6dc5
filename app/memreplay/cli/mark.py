"""``memreplay mark``: say what a memory should have returned, and see which stage lost it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memreplay.cli.options import COMMAND_OPTIONS
from memreplay.errors import UsageError
from memreplay.numbers import counted
from memreplay.printable import printable
from memreplay.terminal import say

command = typer.Typer(**COMMAND_OPTIONS)

_UNSURE = "The rules take the reply for right and are not sure: at a marked turn it counts as wrong."


@command.command()
def mark(
    file: Annotated[Path, typer.Argument(help="A recording of a running agent.")],
    turn: Annotated[int, typer.Option(min=1, help="Turn at which it should have been recalled.")],
    expected: Annotated[str, typer.Option(metavar="TEXT", help="What should have been recalled.")],
    evidence: Annotated[
        list[str], typer.Option(metavar="TURN", help="Turn that says it. Repeatable, if several say it together.")
    ],
    question: Annotated[
        str, typer.Option(metavar="TEXT", help="What was asked. [default: the message of the turn]")
    ] = "",
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Conversation, if the recording holds several.")
    ] = None,
) -> None:
    """Say what should have been recalled at a turn, and print which stage lost it. Asks no model."""
    from memreplay.api.recorded import open_run
    from memreplay.capture.assembling import bring_up_to_date, is_captured
    from memreplay.capture.marks import add_mark

    bring_up_to_date(file)
    with open_run(file) as run:
        if not is_captured(run.settings):
            raise UsageError(f"{file}: not a recording of a running agent; its questions are those of its dataset")
        if conversation is None and len(run.conversations) > 1:
            ids = ", ".join(map(printable, run.conversations))
            raise UsageError(f"{file} holds several conversations; choose one with --conversation: {ids}")
        name = conversation or run.conversations[0]
        turns = run.conversation(name).turns
        known = {one.id for one in turns}
        if turn > len(turns):
            raise UsageError(f"--turn {turn}: {printable(name)} has {counted(len(turns), 'turn')}")
        if unknown := [id_ for id_ in evidence if id_ not in known]:
            raise UsageError(f"--evidence {unknown[0]}: {printable(name)} has no such turn")
    add_mark(file, name, turn, expected, evidence, question)
    bring_up_to_date(file)
    with open_run(file) as run:
        marked = [row for row in run.questions if row.conversation == name]
        latest = marked[-1].question_id if marked else ""
        for row in marked:
            if row.question_id == latest:
                verdict = (row.failure or row.outcome).replace("_", " ")
                unsure = f" {_UNSURE}" if row.grader is not None else ""
                print(printable(f"{row.backend}: {verdict}: {row.failure_detail or ''}{unsure}"))
    say(f"memreplay {file} shows it: r lists the marks, enter explains one")
