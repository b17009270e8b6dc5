"""``memreplay serve``: the app in a browser."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from memreplay.cli.options import COMMAND_OPTIONS
from memreplay.errors import UsageError

command = typer.Typer(**COMMAND_OPTIONS)


@command.command()
def serve(
    options: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- OPTIONS]", help="Options of memreplay, such as -- --recording run.sqlite3."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8378,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="MEMREPLAY_SERVE_TOKEN",
            show_default=False,
            help="Token that a browser must name, of at least 16 characters; better given in the environment."
            " [default: one is made, and shown in the link]",
        ),
    ] = None,
) -> None:
    """Serve the app to browsers until interrupted. Every connection runs an app of its own."""
    from memreplay.cli.program import cli
    from memreplay.server.screen import ScreenServer

    given = tuple(options or ())
    if any(each == "--batch" or each.startswith("--batch=") for each in given):
        raise UsageError("--batch has no screen to serve")
    if given and not given[0].startswith("-"):
        raise UsageError(f"{given[0]}: expected options of memreplay, such as -- --recording run.sqlite3")
    # A wrong option would otherwise show up only in the browser.
    typer.main.get_command(cli).make_context("memreplay", list(given))
    ScreenServer(given, host, port, token or None, _say).run()


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
