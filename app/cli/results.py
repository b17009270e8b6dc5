"""``memreplay report`` and ``memreplay compare``: what runs came to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.result_flags import AnswerKeyFile, Outputs


def report(
    file: Annotated[Path, typer.Argument(help="A recording.")],
    run: Annotated[str | None, typer.Option(metavar="ID", help="Which run; default: the newest.")] = None,
    output: Outputs = None,
    answer_key: AnswerKeyFile = None,
) -> None:
    """Write the results of a finished run again. Asks no model."""
    from app.batch.command import report_again

    report_again(file, run, tuple(output or ()), answer_key)


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A results file (.json) or a recording.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another, or the same recording.")],
    run_a: Annotated[str | None, typer.Option(metavar="ID", help="Which run of A; default: the newest.")] = None,
    run_b: Annotated[str | None, typer.Option(metavar="ID", help="Which run of B; default: the newest.")] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Where it goes too (.json, .md, or - for JSON alone); repeatable."),
    ] = None,
) -> None:
    """Compare two runs on the same questions: how far apart, how sure, and what changed. Asks no model."""
    from app.commands.compare import compare as compare_files

    compare_files(a, b, run_a, run_b, tuple(output or ()))
