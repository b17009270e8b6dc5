"""Commands and flags. Screens, models and stores are imported by the command that needs them, when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from app import __version__
from app.errors import UsageError

cli = typer.Typer(
    name="memreplay",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
recordings = typer.Typer(help="The runs in recordings.", rich_markup_mode=None, invoke_without_command=True)
cli.add_typer(recordings, name="recordings")
datasets = typer.Typer(help="What can be replayed.", rich_markup_mode=None, invoke_without_command=True)
cli.add_typer(datasets, name="datasets")

_ONLY_WITH_BATCH = ("output", "resume", "perceive", "fail_under")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memreplay {__version__}")
        raise typer.Exit


@cli.callback(invoke_without_command=True)
def replay(
    context: typer.Context,
    batch: Annotated[
        bool, typer.Option("--batch", help="Run without a screen: replay, ask, score, record.")
    ] = False,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID|GLOB|PATH",
            help="What to replay, or tests to converse with; default: the shipped conversations.",
        ),
    ] = None,
    evidence: Annotated[
        Path | None, typer.Option(help="A locomo10 file whose evidence is joined to LoCoMo-MC10 rows.")
    ] = None,
    backend: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="hybrid, rag, full_context, closed_book, oracle; repeatable."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A LiteLLM model, or memreplay/extractive; repeatable."),
    ] = None,
    api_base: Annotated[str | None, typer.Option(metavar="URL", help="Passed to LiteLLM.")] = None,
    redis_url: Annotated[str | None, typer.Option(metavar="URL", help="A Redis server; default: embedded.")] = None,
    qdrant_url: Annotated[
        str | None, typer.Option(metavar="URL", help="A Qdrant server; default: embedded.")
    ] = None,
    redis_ttl: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="Let the Redis keys of a finished run expire.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(metavar="N", help="Hits from all stores together; default 10.")
    ] = None,
    context_tokens: Annotated[
        int | None,
        typer.Option(metavar="N", help="Most tokens of memory in a prompt; default: what fits the model."),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", help="Model calls under way at once; default 20.")
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Ask only the first N questions.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of everything that is drawn.")] = None,
    examples: Annotated[
        int | None,
        typer.Option(metavar="N", help="Tests of each dataset; default: as defined, or 3."),
    ] = None,
    memory_span: Annotated[
        int | None, typer.Option(metavar="TOKENS", help="How far a test is spread; default: as defined, or 2000.")
    ] = None,
    isolated: Annotated[
        bool, typer.Option("--isolated", help="Run each test alone, with an empty memory.")
    ] = False,
    judge: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Judges tests and plays parts in them; without: such are not graded."),
    ] = None,
    recording: Annotated[
        Path | None, typer.Option(help="The SQLite file; an existing one gains a run. Default: a new one.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the newest unfinished run of equal settings.")
    ] = False,
    perceive: Annotated[
        bool,
        typer.Option(
            "--perceive", help="Also record what memory would give to each ordinary turn, as the screen does."
        ),
    ] = False,
    output: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Where results go (.json, or - for standard output); repeatable."),
    ] = None,
    fail_under: Annotated[
        float | None, typer.Option(metavar="X", help="Exit 1 when a backend's accuracy (0 to 1) is below X.")
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Use no reply that another run paid for.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """A microscope for the memory of LLM agents.

    Without a command: opens the screen, or with --batch runs without one.
    """
    given: dict[str, Any] = dict(context.params)
    if context.invoked_subcommand is not None:
        misplaced = [name for name in given if given[name] not in (None, False, ())]
        if misplaced:
            raise UsageError(f"--{misplaced[0].replace('_', '-')} does not go with a command")
        return
    from app.settings import read_settings

    settings = read_settings(
        backend=tuple(backend or ()),
        model=tuple(model or ()),
        api_base=api_base,
        redis_url=redis_url,
        qdrant_url=qdrant_url,
        redis_ttl=redis_ttl,
        top_k=top_k,
        context_tokens=context_tokens,
        concurrency=concurrency,
        limit=limit,
        seed=seed,
        examples=examples,
        memory_span=memory_span,
        isolated=isolated or None,
        judge=judge,
        cache=False if no_cache else None,
    )
    if batch:
        from app.batch.command import BatchOptions, run_batch

        options = BatchOptions(
            datasets=tuple(dataset or ()),
            evidence=evidence,
            recording=recording,
            resume=resume,
            perceive=perceive,
            outputs=tuple(output or ()),
            fail_under=fail_under,
        )
        raise typer.Exit(run_batch(settings, options))
    for name in _ONLY_WITH_BATCH:
        if given[name] not in (None, False, ()):
            raise UsageError(f"--{name.replace('_', '-')} goes with --batch")
    from app.interactive import open_screen

    open_screen(settings, tuple(dataset or ()), evidence, recording)


@recordings.callback()
def recordings_default(context: typer.Context) -> None:
    """The runs in recordings: ``list`` (the default) or ``show FILE``."""
    if context.invoked_subcommand is None:
        recordings_list()


@recordings.command("list")
def recordings_list() -> None:
    """One line a run, of every recording in the recordings folder."""
    from app.recording.listing import list_recordings

    list_recordings()


@recordings.command("show")
def recordings_show(file: Annotated[Path, typer.Argument(help="A recording.")]) -> None:
    """What a recording holds: its runs, their settings and conversations."""
    from app.recording.listing import show_recording

    show_recording(file)


@recordings.command("import")
def recordings_import(
    source: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="The folder of a finished GoodAI run.")],
    recording: Annotated[Path, typer.Option(help="The SQLite file; an existing one gains a run.")],
) -> None:
    """Make a recording of a run that another program made."""
    from app.recording.goodai_import import import_goodai_run

    tests = import_goodai_run(source, recording)
    typer.echo(f"{tests} tests imported; recorded in {recording}", err=True)


@cli.command()
def report(
    file: Annotated[Path, typer.Argument(help="A recording.")],
    run: Annotated[str | None, typer.Option(metavar="ID", help="Which run; default: the newest.")] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Where results go (.json, or - for standard output); repeatable."),
    ] = None,
) -> None:
    """Write the results of a finished run again. Asks no model."""
    from app.batch.command import report_again

    report_again(file, run, tuple(output or ()))


@cli.command()
def doctor() -> None:
    """Say which Redis, Qdrant, embedder and model this configuration reaches, and what mends what is missing."""
    from app.doctor import examine
    from app.settings import read_settings

    raise typer.Exit(examine(read_settings()))


@cli.command()
def validate(
    path: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="A file, folder, id or glob; default: all shipped datasets."),
    ] = None,
) -> None:
    """Check dataset files: one line a fault, with its place and what was expected."""
    from app.validate_command import validate as check

    raise typer.Exit(check(tuple(path or ())))


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
    from app.datasets_command import list_datasets, show_coverage

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
    from app.datasets_command import export_conversation

    export_conversation(dataset, conversation, output)


@datasets.command("schema")
def datasets_schema() -> None:
    """Print the JSON Schema of the TestConversation format."""
    from app.datasets_command import print_schema

    print_schema()
