"""``memreplay datasets``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

datasets = typer.Typer(help="What can be replayed.", rich_markup_mode=None, invoke_without_command=True)


@datasets.callback()
def datasets_default(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    coverage: Annotated[
        bool, typer.Option("--coverage", help="What is covered, and what is not: what to write next.")
    ] = False,
) -> None:
    """What can be replayed. Also: ``export`` a conversation, print the ``schema`` of our own format."""
    if context.invoked_subcommand is not None:
        return
    from app.commands.datasets import list_datasets, show_coverage

    show = show_coverage if coverage else list_datasets
    show(as_json)


@datasets.command("export")
def datasets_export(
    dataset: Annotated[str, typer.Argument(metavar="ID|PATH", help="What holds the conversation.")],
    output: Annotated[Path, typer.Option(metavar="FILE", help="Where it goes.")],
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Which one, where the dataset holds several.")
    ] = None,
) -> None:
    """Write a conversation in the TestConversation format."""
    from app.commands.datasets import export_conversation

    export_conversation(dataset, conversation, output)


@datasets.command("schema")
def datasets_schema() -> None:
    """Print the JSON Schema of the TestConversation format."""
    from app.commands.datasets import print_schema

    print_schema()
