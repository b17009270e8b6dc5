"""``memreplay why``: ask the wrong answers of a finished run again, under one change at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from memreplay.api.outputs import check_report_outputs
from memreplay.batch.estimate import print_estimate
from memreplay.batch.recorded_run import Ending
from memreplay.batch.rewriting import ask_writer_again
from memreplay.batch.why import estimate_reasking, reask
from memreplay.cli.options import (
    COMMAND_OPTIONS,
    SET_BY_A_RUN,
    AllowFromRecording,
    GivenSettings,
    Outputs,
    consent_to,
    takes_settings,
)
from memreplay.cli.report import default_output, write_report
from memreplay.errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_QUESTION_ERRORS, EXIT_STOPPED, UsageError
from memreplay.printable import printable
from memreplay.recording.reader import Recording
from memreplay.runtime.changes import Selection
from memreplay.runtime.rewriting import WriterChanges
from memreplay.scoring.results import Results
from memreplay.scoring.verdicts import INTERVENTIONS, VERDICTS, Intervention
from memreplay.settings import read_settings
from memreplay.terminal import say
from memreplay.text import shortened

command = typer.Typer(**COMMAND_OPTIONS)


@command.command()
@takes_settings("api_base", "concurrency", "rpm", "tpm", "timeout", "cache", "offline", of_recording=SET_BY_A_RUN)
def why(
    file: Annotated[Path, typer.Argument(help="A recording.")],
    run: Annotated[str | None, typer.Option(metavar="ID", help="Run to ask again. [default: the newest]")] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"Change to try. Repeatable. [default: {', '.join(INTERVENTIONS)}]"),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the first N wrong answers. [default: all]"),
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Count calls, tokens and cost; call no model.")
    ] = False,
    writer: Annotated[
        bool,
        typer.Option("--writer", help="Ask the model that writes again, about facts that were never written."),
    ] = False,
    writer_limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="With --writer: a larger limit of tokens. [default: twice as many]"),
    ] = None,
    writer_model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="With --writer: try another model too.")
    ] = None,
    writer_prompt: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --writer: try this text in place of its instructions too."),
    ] = None,
    output: Outputs = None,
    allow_from_recording: AllowFromRecording = False,
    *,
    given: GivenSettings,
) -> None:
    """Ask each wrong answer again under one change at a time, and report what repairs it.

    Memories and models are those of the recording. One that runs code, or contacts a provider or an address, is
    used only if your own settings name it too.
    Every reply is recorded. Run the same command again to continue after an interruption.
    Of published results it prints the verdict on each wrong answer, and asks no model.
    """
    settings = read_settings(**given)
    selection = Selection(interventions=chosen_changes(change), limit=limit)
    consent = consent_to(file, allow_from_recording)
    if writer:
        wanted = WriterChanges(writer_limit, writer_model, _text_of(writer_prompt))
        again = ask_writer_again(file, run, settings, wanted, consent, limit=limit, only_estimate=estimate)
        if not asyncio.run(again):
            raise typer.Exit(EXIT_QUESTION_ERRORS)
        return
    if writer_limit is not None or writer_model is not None or writer_prompt is not None:
        raise UsageError("--writer-limit, --writer-model and --writer-prompt belong to --writer")
    if estimate:
        print_estimate(asyncio.run(estimate_reasking(file, run, settings, selection, consent)), "wrong answers")
        return
    outputs = tuple(dict.fromkeys(output or ())) or (default_output(file),)
    check_report_outputs(outputs, inputs=(file,))
    if is_published(file, run):
        _print_verdicts(write_report(file, run, outputs, None), limit)
        return
    ending = asyncio.run(reask(file, run, settings, selection, consent))
    results = write_report(file, run, outputs, None, every_table=True)
    if ending != "complete":
        say(f"{ending}; every reply so far is recorded. To continue, run the same command again")
        raise typer.Exit(exit_code_of(ending))
    if has_errors(results):
        raise typer.Exit(EXIT_QUESTION_ERRORS)


def _text_of(file: Path | None) -> str | None:
    """Return the text of a file; None for none. Raises UsageError."""
    if file is None:
        return None
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from None


def is_published(file: Path, run: str | None) -> bool:
    """Return whether a run was imported from published results: no model can be asked again with their prompts."""
    with closing(Recording.open(file)) as recording:
        return "published_file" in recording.run(run).settings


def _print_verdicts(results: Results, limit: int | None) -> None:
    """Print what the rules say of each wrong answer; no model is asked."""
    wrong = [row for row in results.questions if row.outcome == "wrong"]
    for row in wrong[:limit]:
        words = VERDICTS[row.failure].words if row.failure is not None else "no verdict"
        print(printable(f"{row.question_id} ({row.backend}): {words}. {row.failure_detail or ''}"))
        print(printable(f"    asked: {row.question}"))
        print(printable(f"    expected: {row.expected}"))
        print(printable(f"    answered: {shortened(row.predicted or '', _LONGEST_ANSWER)}"))
    say("these answers were published: their verdicts follow from the context that was published with them")


_LONGEST_ANSWER = 200


def chosen_changes(names: Sequence[str] | None) -> tuple[Intervention, ...]:
    """Return the values of ``--change``, in their order of asking. Raises UsageError for an unknown one."""
    for name in names or ():
        if name not in INTERVENTIONS:
            raise UsageError(f"--change {name}: expected {', '.join(INTERVENTIONS)}")
    return tuple(name for name in INTERVENTIONS if not names or name in names)


def exit_code_of(ending: Ending) -> int:
    """Return the exit code of what did not run to its end by itself, or did."""
    return {"complete": EXIT_DONE, "interrupted": EXIT_INTERRUPTED, "stopped": EXIT_STOPPED}[ending]


def has_errors(results: Results) -> bool:
    """Return whether a re-ask ended in an error."""
    return any(each.outcome == "error" for row in results.questions for each in row.counterfactuals or ())
