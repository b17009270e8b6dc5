"""Flags of every command that writes results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Outputs = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="Where results go (.json, .csv, .md, or - for JSON); repeatable."),
]

AnswerKeyFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Corrections of published answers, for adjusted scores beside the raw."),
]
