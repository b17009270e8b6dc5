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
    """What can be replayed. Also: ``export`` a conversation or tests, print the ``schema`` of our own format."""
    if context.invoked_subcommand is not None:
        return
    from app.commands.datasets import list_datasets, show_coverage

    show = show_coverage if coverage else list_datasets
    show(as_json)


@datasets.command("export")
def datasets_export(
    dataset: Annotated[str, typer.Argument(metavar="ID|PATH", help="What holds the conversation, or the tests.")],
    output: Annotated[Path, typer.Option(metavar="FILE|FOLDER", help="Where it goes: a folder for tests.")],
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Which one, where the dataset holds several.")
    ] = None,
    examples: Annotated[int | None, typer.Option(metavar="N", min=1, help="How many tests.")] = None,
    memory_span: Annotated[
        int | None, typer.Option(metavar="TOKENS", min=1, help="Over how many tokens a test is spread.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the tests.")] = 0,
) -> None:
    """Write a conversation in the TestConversation format, or tests as GoodAI's files of definitions."""
    from app.commands.datasets import export_dataset
    from app.dataset_interfaces.sources import Wishes

    export_dataset(dataset, conversation, output, Wishes(examples, memory_span, seed))


@datasets.command("schema")
def datasets_schema() -> None:
    """Print the JSON Schema of the TestConversation format."""
    from app.commands.datasets import print_schema

    print_schema()
