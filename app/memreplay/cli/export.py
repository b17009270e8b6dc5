"""``memreplay export``: a recorded conversation as a page for a browser, or as an asciicast. Asks no model."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from memreplay.cli.options import COMMAND_OPTIONS
from memreplay.errors import UsageError
from memreplay.files import refuse_unusable_output, write_whole
from memreplay.printable import printable
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording, RunInfo

_TURN_NUMBERS = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")

command = typer.Typer(**COMMAND_OPTIONS)


@command.command()
def export(
    file: Annotated[Path, typer.Argument(help="A recording.")],
    html: Annotated[
        str | None, typer.Option(metavar="PATH", help="Write a page that replays the conversation in a browser.")
    ] = None,
    cast: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Write an asciicast of the replay, with its notes as markers."),
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Conversation to export. [default: the first]")
    ] = None,
    turns: Annotated[
        str | None, typer.Option(metavar="FROM-TO", help="Export only these turns. [default: all]")
    ] = None,
    run: Annotated[
        str | None, typer.Option(metavar="ID", help="Run of the recording. [default: the newest]")
    ] = None,
) -> None:
    """Write a recorded conversation as a web page or an asciicast. Asks no model."""
    if html is None and cast is None:
        raise UsageError("nothing to export: give --html PATH or --cast PATH")
    for path in (html, cast):
        if path is not None:
            refuse_unusable_output(path, (file,))
    wanted = _turns(turns)
    from memreplay.pages.replay import Stretch

    with closing(Recording.open(file)) as recording, reporting_damage(file):
        chosen = recording.run(run)
        name = _conversation(recording, chosen, conversation)
        stretch = Stretch.of(recording.timeline(chosen.id, name), wanted)
        if html is not None:
            write_whole(html, _page(recording, chosen, name, wanted))
    if cast is not None:
        from memreplay.tui.cast import cast_of

        write_whole(cast, cast_of(file, chosen.id, name, stretch.first, stretch.last))


def _turns(turns: str | None) -> tuple[int, int] | None:
    if turns is None:
        return None
    found = _TURN_NUMBERS.fullmatch(turns)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"--turns {turns}: expected two turn numbers, such as 1-100")
    return int(found[1]), int(found[2])


def _conversation(recording: Recording, run: RunInfo, wanted: str | None) -> str:
    known = recording.conversation_ids(run.id)
    if wanted is not None:
        if wanted not in known:
            raise UsageError(f"--conversation {wanted}: expected {', '.join(known)}")
        return wanted
    if not known:
        raise UsageError(f"{recording.path}: run {run.id} holds no conversation")
    if len(known) > 1:
        chosen = f"exporting {known[0]}; --conversation chooses among {', '.join(known)}"
        print(printable(chosen), file=sys.stderr)
    return known[0]


def _page(recording: Recording, run: RunInfo, conversation_id: str, turns: tuple[int, int] | None) -> str:
    from memreplay.batch.report import results_of_run
    from memreplay.pages.questions import Source
    from memreplay.pages.replay import replay_page

    results = results_of_run(recording, run, conversations=[conversation_id])
    return replay_page(Source(recording, run), results, conversation_id, turns)
