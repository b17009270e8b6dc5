"""All commands together. Screens, models and stores are imported by the command that needs them, when it runs."""

from __future__ import annotations

from collections.abc import Callable

import typer

from app.cli.checks import doctor, validate
from app.cli.datasets import datasets
from app.cli.memories import check_backend, serve_backend
from app.cli.recordings import recordings
from app.cli.replay import replay
from app.cli.results import compare, report

_COMMANDS: dict[str, Callable[..., None]] = {
    "report": report,
    "compare": compare,
    "doctor": doctor,
    "validate": validate,
    "check-backend": check_backend,
    "serve-backend": serve_backend,
}
_GROUPS = {"recordings": recordings, "datasets": datasets}

cli = typer.Typer(
    name="memreplay",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli.callback(invoke_without_command=True)(replay)
for _name, _command in _COMMANDS.items():
    cli.command(_name)(_command)
for _name, _group in _GROUPS.items():
    cli.add_typer(_group, name=_name)
