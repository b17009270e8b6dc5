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

_ONLY_WITH_BATCH = (
    "output", "resume", "retry_errors", "estimate", "perceive", "sample", "repeats", "fail_under", "answer_key"
)  # fmt: skip


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
        typer.Option(
            metavar="NAME",
            help="hybrid, rag, rag:keyword, rag:fused, full_context, closed_book, oracle, package.module:Class or"
            " http://host/run_turn; repeatable.",
        ),
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
    embedder: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What makes vectors: minilm (default), fastembed:NAME, litellm:NAME."),
    ] = None,
    extractor: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="A LiteLLM model that reads facts for hybrid; default: its rules."),
    ] = None,
    ablate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Switch off a part of hybrid: promotion, supersession, verbatim, knowledge, shared, personal,"
            " dense, keyword, speaker, date; repeatable.",
        ),
    ] = None,
    tier_share: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TIER=SHARE",
            help="The most that a tier of hybrid takes of a recall: personal=0.05, shared=0.1, knowledge=0.1 by"
            " default; repeatable.",
        ),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", help="Model calls under way at once; default: as the provider bears.")
    ] = None,
    rpm: Annotated[int | None, typer.Option(metavar="N", help="Most requests a minute and model.")] = None,
    tpm: Annotated[int | None, typer.Option(metavar="N", help="Most tokens a minute and model.")] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Give a model's call up after this; default 120.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Ask only the first N questions, or run the first N tests.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(metavar="N", help="Only N questions, or N tests, drawn by type from the seed.")
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(metavar="N", help="Ask every question, or run all tests, N times.")
    ] = None,
    shuffle_choices: Annotated[
        bool, typer.Option("--shuffle-choices", help="Show options in an order drawn from the seed.")
    ] = False,
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
    against: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another recording, to compare --recording with.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the newest unfinished run of equal settings.")
    ] = False,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="With --resume: ask again what ended in an error.")
    ] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what would be asked and what it would cost; ask nothing.")
    ] = False,
    perceive: Annotated[
        bool,
        typer.Option(
            "--perceive", help="Also record what memory would give to each ordinary turn, as the screen does."
        ),
    ] = False,
    output: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Where results go (.json, .csv, .md, or - for JSON); repeatable."),
    ] = None,
    fail_under: Annotated[
        float | None, typer.Option(metavar="X", help="Exit 1 when a backend's accuracy (0 to 1) is below X.")
    ] = None,
    answer_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Corrections of published answers, for adjusted scores beside the raw."),
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Use no reply that another run paid for.")] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Reach no network: a call that is not on record is an error.")
    ] = False,
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
        embedder=embedder,
        extractor=extractor,
        ablate=tuple(ablate or ()),
        tier_share=tuple(tier_share or ()),
        concurrency=concurrency,
        rpm=rpm,
        tpm=tpm,
        timeout=timeout,
        limit=limit,
        sample=sample,
        repeats=repeats,
        shuffle_choices=shuffle_choices or None,
        seed=seed,
        examples=examples,
        memory_span=memory_span,
        isolated=isolated or None,
        judge=judge,
        cache=False if no_cache else None,
        offline=offline or None,
    )
    if batch:
        if against is not None:
            raise UsageError("--against goes with the screen, not with --batch")
        from app.batch.command import BatchOptions, run_batch
        from app.batch.recorded_run import RunPlan

        options = BatchOptions(
            datasets=tuple(dataset or ()),
            evidence=evidence,
            recording=recording,
            plan=RunPlan(perceive=perceive, resume=resume, retry_errors=retry_errors),
            estimate=estimate,
            outputs=tuple(output or ()),
            fail_under=fail_under,
            answer_key=answer_key,
        )
        raise typer.Exit(run_batch(settings, options))
    for name in _ONLY_WITH_BATCH:
        if given[name] not in (None, False, ()):
            raise UsageError(f"--{name.replace('_', '-')} goes with --batch")
    from app.interactive import open_screen

    open_screen(settings, tuple(dataset or ()), evidence, recording, against)


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
        typer.Option(metavar="PATH", help="Where results go (.json, .csv, .md, or - for JSON); repeatable."),
    ] = None,
    answer_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Corrections of published answers, for adjusted scores beside the raw."),
    ] = None,
) -> None:
    """Write the results of a finished run again. Asks no model."""
    from app.batch.command import report_again

    report_again(file, run, tuple(output or ()), answer_key)


@cli.command()
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
    from app.batch.compare_command import compare as compare_files

    compare_files(a, b, run_a, run_b, tuple(output or ()))


@cli.command()
def doctor(
    clean: Annotated[
        bool, typer.Option("--clean", help="Say what runs have left on the servers, and how to remove it.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --clean: remove it.")] = False,
) -> None:
    """Say which Redis, Qdrant, embedder and model this configuration reaches, and what mends what is missing."""
    from app.settings import read_settings

    if yes and not clean:
        raise UsageError("--yes goes with --clean")
    if clean:
        from app import clean_command

        chosen = clean_command.clean if yes else clean_command.show_leftovers
        raise typer.Exit(chosen(read_settings()))
    from app.doctor import examine

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


@cli.command("check-backend")
def check_backend(
    name: Annotated[str, typer.Argument(metavar="package.module:Class", help="A memory of your own.")],
) -> None:
    """Try a memory on the contract, and say in plain words what it does not keep."""
    from app.check_backend_command import check_backend as check

    raise typer.Exit(check(name))


@cli.command("serve-backend")
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
    from app.serve_backend_command import ServeOptions
    from app.serve_backend_command import serve_backend as serve
    from app.settings import read_settings

    settings = read_settings(model=(model,) if model else ())
    raise typer.Exit(serve(name, settings, ServeOptions(host, port, token)))


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
