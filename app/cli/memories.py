"""``memreplay check-backend`` and ``memreplay serve-backend``: for authors of memories."""

from __future__ import annotations

from typing import Annotated

import typer


def check_backend(
    name: Annotated[str, typer.Argument(metavar="package.module:Class", help="A memory of your own.")],
) -> None:
    """Try a memory on the contract, and say in plain words what it does not keep."""
    from app.commands.check_backend import check_backend as check

    raise typer.Exit(check(name))


def serve_backend(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A memory: hybrid, rag, package.module:Class …")],
    host: Annotated[
        str, typer.Option(help="Where to listen; elsewhere than here, a token is needed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8377,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="MEMREPLAY_SERVE_TOKEN",
            show_default=False,
            help="What callers must show; better in the environment.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="What answers from the memory; default memreplay/extractive.")
    ] = None,
) -> None:
    """Serve a memory over HTTP, as an agent for benchmark runners. Stores are those that are configured."""
    from app.commands.serve_backend import ServeOptions
    from app.commands.serve_backend import serve_backend as serve
    from app.settings import read_settings

    settings = read_settings(model=(model,) if model else ())
    raise typer.Exit(serve(name, settings, ServeOptions(host, port, token)))
