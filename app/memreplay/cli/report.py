"""``memreplay report``: write the results of a finished run again."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from memreplay.api.outputs import check_report_outputs, pages_among, write_report_files
from memreplay.api.recorded import RecordedRun, open_run
from memreplay.batch.report import results_of_run
from memreplay.batch.writers import STANDARD_OUTPUT, print_table
from memreplay.cli.options import (
    COMMAND_OPTIONS,
    AnswerKeyFile,
    Breakdowns,
    JudgedBy,
    Outputs,
    TablesShown,
    chosen_breakdowns,
    shows_all_tables,
)
from memreplay.errors import RecordingError, UsageError
from memreplay.printable import printable
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording, RunInfo
from memreplay.recording.rejudgements import named_pair
from memreplay.recording.run_rows import store_scores
from memreplay.scoring import Shown
from memreplay.scoring.results import Results

command = typer.Typer(**COMMAND_OPTIONS)


@command.command()
def report(
    file: Annotated[Path, typer.Argument(help="A recording.")],
    run: Annotated[str | None, typer.Option(metavar="ID", help="Run to report. [default: the newest]")] = None,
    output: Outputs = None,
    answer_key: AnswerKeyFile = None,
    by: Breakdowns = None,
    judged_by: JudgedBy = None,
    tables: TablesShown = None,
    replay: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="With an .html output: a conversation to step through in it. Repeatable."),
    ] = None,
    brief: Annotated[
        bool,
        typer.Option("--brief", help="Write a page of one sentence, one plot and one question."),
    ] = False,
) -> None:
    """Write the results of a finished run again. Asks no model."""
    if not output and not os.access(file.parent, os.W_OK):
        raise UsageError(
            f"{file.parent}: not writable, so the results cannot stand beside the recording; use --output"
        )
    outputs = tuple(dict.fromkeys(output or ())) or (_brief_output(file) if brief else default_output(file),)
    if brief and (replay or len(pages_among(outputs)) < len(outputs)):
        raise UsageError("--brief is an HTML page alone; name outputs that end in .html, and no --replay")
    check_report_outputs(outputs, inputs=(file, *([answer_key] if answer_key else ())))
    replays = tuple(dict.fromkeys(replay or ()))
    if replays and not pages_among(outputs):
        raise UsageError("--replay needs an HTML report; add --output report.html")
    every_table = shows_all_tables(tables)
    write_report(
        file,
        run,
        outputs,
        answer_key,
        chosen_breakdowns(by),
        replays,
        judged_by,
        every_table=every_table,
        brief=brief,
    )
    if not output:
        print(printable(f"wrote {outputs[0]}"), file=sys.stderr)


def _brief_output(recording: Path) -> str:
    return str(Path(default_output(recording).removesuffix(".results.json")).with_suffix(".brief.html"))


def default_output(recording: Path) -> str:
    if not recording.name:
        raise UsageError(f"{recording}: not a file; expected the name of a recording")
    return str(recording.with_suffix(".results.json"))


def write_report(
    path: Path,
    run_id: str | None,
    outputs: Sequence[str],
    answer_key: Path | None,
    by: Sequence[Shown] = (),
    replays: Sequence[str] = (),
    judged_by: str | None = None,
    *,
    every_table: bool = False,
    brief: bool = False,
) -> Results:
    """Write the results of a recorded run, the newest by default, and print its tables and these breakdowns.

    ``replays`` are the conversations that its HTML reports replay. With ``judged_by``, a judge of ``memreplay
    rejudge``, the scores in the recording stay those of the run.
    """
    with closing(open_run(path, run_id, answer_key=answer_key)) as run, reporting_damage(path):
        embedded = _replays(run.recording, run.info, replays) if replays else ()
        results = run.results if judged_by is None else _judged_anew(run, judged_by)
        write_report_files(run.recording, run.info, results, outputs, embedded, brief=brief)
    try:
        if judged_by is None:
            store_scores(path, results.run.id, results.questions)
    except RecordingError as error:
        print(printable(f"the scores are not stored in the recording: {error}"), file=sys.stderr)
    if STANDARD_OUTPUT not in outputs:
        print_table(results, by, path, every_table=every_table)
    return results


def _judged_anew(run: RecordedRun, judged_by: str) -> Results:
    pair = named_pair(run.recording, run.info.id, judged_by)
    return results_of_run(run.recording, run.info, run.answer_key, judged_by=pair)


def _replays(recording: Recording, run: RunInfo, conversations: Sequence[str]) -> list[Any]:
    """Return the data of the replays in a report.

    Raises:
        UsageError: the run has no such conversation, or it is too long for a page.
    """
    from memreplay.pages.replay import recorded_replay

    known = recording.conversation_ids(run.id)
    for wanted in conversations:
        if wanted not in known:
            raise UsageError(f"--replay {wanted}: expected {', '.join(known)}")
    return [recorded_replay(recording, run, each) for each in conversations]
