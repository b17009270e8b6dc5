"""``memreplay redact``: a copy of an agent's recording without personal data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memreplay.cli.options import COMMAND_OPTIONS
from memreplay.terminal import say

command = typer.Typer(**COMMAND_OPTIONS)


@command.command()
def redact(
    file: Annotated[Path, typer.Argument(help="A recording of a running agent.")],
    output: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the copy.")],
    replace: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=OTHER", help="Replace this too, wherever it stands. Repeatable."),
    ] = None,
) -> None:
    """Write a copy without names, numbers, addresses and keys; equal ones stay equal."""
    from memreplay.capture.redacting import named, redacted_copy

    redaction = redacted_copy(file, output, named(replace or ()))
    say(
        f"{redaction.replaced:,} names, numbers and addresses replaced in {output}; read it before you send it:"
        " numbers of one or two digits, words in capitals, and words that only begin sentences are left"
    )
