"""``memreplay``, with a screen or with ``--batch`` without one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from app import __version__
from app.cli.flag_groups import flags_in_groups
from app.cli.result_flags import AnswerKeyFile, Outputs
from app.cli.setting_flags import (
    BatchQuestionFlags,
    MemoryFlags,
    ModelFlags,
    QuestionFlags,
    TestFlags,
    settings_given,
)
from app.errors import UsageError


@dataclass(frozen=True)
class ReplayedFlags:
    """What is replayed, and where the run is recorded."""

    dataset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID|GLOB|PATH",
            help="What to replay, or tests to converse with; default: the shipped conversations.",
        ),
    ] = None
    evidence: Annotated[
        Path | None, typer.Option(help="A locomo10 file whose evidence is joined to LoCoMo-MC10 rows.")
    ] = None
    recording: Annotated[
        Path | None, typer.Option(help="The SQLite file; an existing one gains a run. Default: a new one.")
    ] = None


@dataclass(frozen=True)
class ScreenFlags:
    """What the screen can do beside a batch."""

    against: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another recording, to compare --recording with.")
    ] = None


@dataclass(frozen=True)
class BatchFlags:
    """What a batch can do beside the screen."""

    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the newest unfinished run of equal settings.")
    ] = False
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="With --resume: ask again what ended in an error.")
    ] = False
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what would be asked and what it would cost; ask nothing.")
    ] = False
    perceive: Annotated[
        bool,
        typer.Option(
            "--perceive", help="Also record what memory would give to each ordinary turn, as the screen does."
        ),
    ] = False
    output: Outputs = None
    fail_under: Annotated[
        float | None, typer.Option(metavar="X", help="Exit 1 when a backend's accuracy (0 to 1) is below X.")
    ] = None
    answer_key: AnswerKeyFile = None


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memreplay {__version__}")
        raise typer.Exit


@flags_in_groups
def replay(
    context: typer.Context,
    *,
    batch: Annotated[
        bool, typer.Option("--batch", help="Run without a screen: replay, ask, score, record.")
    ] = False,
    replayed: ReplayedFlags,
    memories: MemoryFlags,
    models: ModelFlags,
    questions: QuestionFlags,
    tests: TestFlags,
    only_screen: ScreenFlags,
    only_batch: BatchFlags,
    batch_questions: BatchQuestionFlags,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """A microscope for the memory of LLM agents.

    Without a command: opens the screen, or with --batch runs without one.
    """
    if context.invoked_subcommand is not None:
        _refuse(context.params, "does not go with a command")
        return
    from app.settings import read_settings

    settings = read_settings(**settings_given(memories, models, questions, tests, batch_questions))
    if not batch:
        _refuse(asdict(only_batch) | asdict(batch_questions), "goes with --batch")
        from app.commands.screen import open_screen

        open_screen(
            settings, tuple(replayed.dataset or ()), replayed.evidence, replayed.recording, only_screen.against
        )
        return
    _refuse(asdict(only_screen), "goes with the screen, not with --batch")
    from app.batch.command import run_batch
    from app.batch.options import BatchOptions
    from app.batch.recorded_run import RunPlan

    options = BatchOptions(
        datasets=tuple(replayed.dataset or ()),
        evidence=replayed.evidence,
        recording=replayed.recording,
        plan=RunPlan(perceive=only_batch.perceive, resume=only_batch.resume, retry_errors=only_batch.retry_errors),
        estimate=only_batch.estimate,
        outputs=tuple(only_batch.output or ()),
        fail_under=only_batch.fail_under,
        answer_key=only_batch.answer_key,
    )
    raise typer.Exit(run_batch(settings, options))


def _refuse(flags: dict[str, Any], why: str) -> None:
    """Make sure that none of these flags was given."""
    for name, value in flags.items():
        if value is not None and value is not False and value != () and value != []:
            raise UsageError(f"--{name.replace('_', '-')} {why}")
