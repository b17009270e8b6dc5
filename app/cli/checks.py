"""``memreplay doctor`` and ``memreplay validate``: whether what a run needs is in order."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.flag_groups import flags_in_groups
from app.cli.setting_flags import ReachFlags, settings_given
from app.errors import UsageError


@flags_in_groups
def doctor(
    *,
    reach: ReachFlags,
    clean: Annotated[
        bool, typer.Option("--clean", help="Say what runs have left on the servers, and how to remove it.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --clean: remove it.")] = False,
) -> None:
    """Say which Redis, Qdrant, embedder and model this configuration reaches, and what mends what is missing."""
    from app.settings import read_settings

    if yes and not clean:
        raise UsageError("--yes goes with --clean")
    settings = read_settings(**settings_given(reach))
    if clean:
        from app.commands.clean import clean as remove_leftovers
        from app.commands.clean import show_leftovers

        chosen = remove_leftovers if yes else show_leftovers
        raise typer.Exit(chosen(settings))
    from app.commands.doctor import examine

    raise typer.Exit(examine(settings))


def validate(
    path: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="A file, folder, id or glob; default: all shipped datasets."),
    ] = None,
) -> None:
    """Check dataset files: one line a fault, with its place and what was expected."""
    from app.commands.validate import validate as check

    raise typer.Exit(check(tuple(path or ())))
