"""``memreplay compare A B``: two runs on the same questions, from results files or recordings. Asks no model."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from pydantic import BaseModel, ConfigDict, ValidationError

from memreplay.api.outputs import HTML, pages_among
from memreplay.batch.report import results_of_run
from memreplay.batch.writers import STANDARD_OUTPUT, check_outputs, ending_of
from memreplay.cli.options import COMMAND_OPTIONS, JudgedBy
from memreplay.errors import EXIT_DONE, EXIT_QUESTION_ERRORS, EXIT_REGRESSION, UsageError
from memreplay.files import NOT_REGULAR, is_irregular, write_whole
from memreplay.numbers import counted, points
from memreplay.printable import printable
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording, RunInfo
from memreplay.recording.rejudgements import named_pair
from memreplay.scoring.comparisons import SIGNIFICANCE_LEVEL
from memreplay.scoring.results import Results
from memreplay.scoring.run_comparison import (
    AnswerRow,
    RunComparison,
    blind_to_regressions,
    compare_runs,
    regressions_in,
)
from memreplay.views.comparison import comparison_markdown, comparison_text

_SQLITE = b"SQLite format 3\x00"
_ENDINGS = (".json", ".md", HTML)


class _RunFacts(BaseModel):
    model_config = ConfigDict(extra="ignore")

    settings: dict[str, Any]


class _ResultsFile(BaseModel):
    """The part of a results file that is compared, the same in every version."""

    model_config = ConfigDict(extra="ignore")

    questions: tuple[AnswerRow, ...]
    run: _RunFacts | None = None


command = typer.Typer(**COMMAND_OPTIONS)


@command.command()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A results file (.json) or a recording.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another, or the same recording.")],
    run_a: Annotated[str | None, typer.Option(metavar="ID", help="Run of A. [default: the newest]")] = None,
    run_b: Annotated[str | None, typer.Option(metavar="ID", help="Run of B. [default: the newest]")] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="Also write the comparison here: .json, .md, .html (report), or - for JSON on standard output."
            " Repeatable.",
        ),
    ] = None,
    fail_on_regression: Annotated[
        bool, typer.Option("--fail-on-regression", help="Exit 6 if a memory is significantly worse in B than in A.")
    ] = False,
    judged_by: JudgedBy = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help=f"With --fail-on-regression: level of significance. [default: {SIGNIFICANCE_LEVEL}]",
        ),
    ] = None,
) -> None:
    """Compare two runs on the same questions: the difference, its significance, what changed. Asks no model."""
    outputs = tuple(output or ())
    check_outputs(outputs, _ENDINGS, inputs=(a, b))
    level = _level(fail_on_regression, alpha)
    pages = pages_among(outputs)
    if pages:
        from memreplay.pages.plots import require_renderer

        require_renderer(pages[0])
    with ExitStack() as stack:
        sides = (
            _side(a, run_a, stack, judged_by, whole=bool(pages)),
            _side(b, run_b, stack, judged_by, whole=bool(pages)),
        )
        runs = [side.recorded[1].id if side.recorded is not None else None for side in sides]
        rows_a, rows_b = (side.rows for side in sides)
        compared = compare_runs(rows_a, rows_b, *(side.settings for side in sides))
        if pages:
            text = _page(compared, *sides)
            for page in pages:
                write_whole(page, text)
    verdict = _verdict(compared, level)
    if a.samefile(b) and runs[0] == runs[1]:
        print("warning: A and B are the same run; --run-a and --run-b choose another", file=sys.stderr)
    if compared.unpaired:
        print(printable(f"only in one of the two, not compared: {', '.join(compared.unpaired)}"), file=sys.stderr)
    for path in outputs:
        if path in pages:
            continue
        if path == STANDARD_OUTPUT:
            sys.stdout.write(_as_json(compared))
        else:
            is_json = ending_of(path, _ENDINGS) == ".json"
            write_whole(path, _as_json(compared) if is_json else comparison_markdown(compared, verdict))
    if STANDARD_OUTPUT not in outputs:
        print("\n".join(comparison_text(compared, verdict)))
    if level is not None:
        _report_blind(compared, level)
        raise typer.Exit(_exit_code(compared, rows_b, level))


def _level(fail_on_regression: bool, alpha: float | None) -> float | None:
    """Return the significance level of the check; None if there is none."""
    if alpha is not None and not fail_on_regression:
        raise UsageError("--alpha needs --fail-on-regression")
    if alpha is not None and not 0 < alpha < 1:
        raise UsageError(f"--alpha {alpha:g}: expected a probability between 0 and 1")
    return (alpha or SIGNIFICANCE_LEVEL) if fail_on_regression else None


def _verdict(compared: RunComparison, level: float | None) -> list[str]:
    """Return what the check for regressions found, in sentences."""
    if level is None:
        return []
    found = regressions_in(compared, level)
    if not found:
        return [f"No regression: no memory is significantly worse in B than in A (level {level:g})."]
    return [
        f"Regression: {each.b} has {points(each.difference or 0)} less than {each.a}"
        f" on {counted(each.n, 'question')} (p = {each.p_holm:.2g}, level {level:g})."
        for each in found
    ]


def _report_blind(compared: RunComparison, level: float) -> None:
    for each in blind_to_regressions(compared, level):
        print(
            f"warning: {printable(each.a)} is right on {counted(each.both_right + each.only_a, 'question')}"
            f" of {counted(each.conversations, 'conversation')}:"
            f" losing them all would not be significant at {level:g}, so this"
            f" check cannot fail for it; ask more questions",
            file=sys.stderr,
        )


def _exit_code(compared: RunComparison, rows_b: Sequence[AnswerRow], level: float) -> int:
    """Return the exit code: that of a regression, else that of errors in the second run, else 0."""
    if regressions_in(compared, level):
        return EXIT_REGRESSION
    return EXIT_QUESTION_ERRORS if any(row.outcome == "error" for row in rows_b) else EXIT_DONE


@dataclass(frozen=True)
class _Side:
    """One of the two runs. ``results`` are there if they were asked for, ``recorded`` if it is in a recording."""

    rows: Sequence[AnswerRow]
    settings: Mapping[str, Any] | None
    results: Results | None = None
    recorded: tuple[Recording, RunInfo] | None = None


def _side(path: Path, run_id: str | None, stack: ExitStack, judged_by: str | None, *, whole: bool) -> _Side:
    """Return a results file, or a run (the newest by default) of a recording, which stays open as long as
    ``stack``.

    ``whole``: with all results, which only files of this version have.
    """
    try:
        if is_irregular(path):
            raise UsageError(f"{path}: {NOT_REGULAR}")
        with path.open("rb") as file:
            is_recording = file.read(len(_SQLITE)) == _SQLITE
        if not is_recording:
            data = orjson.loads(path.read_bytes())
            read = _ResultsFile.model_validate(data)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (orjson.JSONDecodeError, ValidationError):
        raise UsageError(f"{path}: neither a results file nor a recording") from None
    if not is_recording:
        if run_id is not None:
            raise UsageError(f"{path}: a results file holds one run; --run-a and --run-b choose one of a recording")
        if judged_by is not None:
            raise UsageError(f"{path}: --judged-by needs a recording, which has the judgements")
        settings = read.run.settings if read.run is not None else None
        return _Side(read.questions, settings, _whole(path, data) if whole else None)
    recording = stack.enter_context(closing(Recording.open(path)))
    with reporting_damage(path):
        run = recording.run(run_id)
        pair = None if judged_by is None else named_pair(recording, run.id, judged_by)
        results = results_of_run(recording, run, judged_by=pair)
    fields = set(AnswerRow.model_fields)
    rows = [AnswerRow.model_validate(row.model_dump(include=fields)) for row in results.questions]
    return _Side(rows, run.settings, results, (recording, run))


def _whole(path: Path, data: object) -> Results:
    try:
        return Results.model_validate(data)
    except ValidationError:
        raise UsageError(
            f"{path}: a page needs all results, and this file lacks some; give the recording, or write the"
            " file again with: memreplay report"
        ) from None


def _page(compared: RunComparison, a: _Side, b: _Side) -> str:
    from memreplay.pages.questions import PREFIXES, Source
    from memreplay.pages.report import comparison_page

    assert a.results is not None and b.results is not None
    sources = [
        Source(*side.recorded, prefix)
        for side, prefix in zip((a, b), PREFIXES, strict=True)
        if side.recorded is not None
    ]
    return comparison_page(compared, a.results, b.results, sources)


def _as_json(compared: RunComparison) -> str:
    data = {"schema_version": 1, **compared.model_dump(mode="json")}
    return json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
