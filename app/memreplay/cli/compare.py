"""``memreplay compare A B``: two runs on the same questions, from results files or recordings. Asks no model."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import orjson
import typer
from pydantic import BaseModel, ConfigDict, ValidationError

from memreplay.batch.report import results_of_run
from memreplay.batch.writers import STANDARD_OUTPUT, check_outputs, plain
from memreplay.conversations.validation_errors import printable
from memreplay.errors import UsageError
from memreplay.files import NOT_REGULAR, is_irregular, write_whole
from memreplay.recording.bodies import reporting_damage
from memreplay.recording.reader import Recording
from memreplay.scoring.run_comparison import KINDS, AnswerRow, Change, Kind, RunComparison, compare_runs

command = typer.Typer(
    rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]}
)


@command.command()
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
    compare_files(a, b, run_a, run_b, tuple(output or ()))


_SQLITE = b"SQLite format 3\x00"
_LONGEST_TEXT = 72

_HEADINGS: dict[Kind, str] = {
    "lost": "right in A, not in B",
    "gained": "right in B, not in A",
    "error": "an error in one of the two",
    "other_failure": "for another reason",
    "other_answer": "another answer",
}


class _ResultsFile(BaseModel):
    """What of a results file is compared, of whatever version it is."""

    model_config = ConfigDict(extra="ignore")

    questions: tuple[AnswerRow, ...]


def compare_files(a: Path, b: Path, run_a: str | None, run_b: str | None, outputs: Sequence[str]) -> None:
    """Print the comparison, and write it where it is asked for (.json, .md, or - for JSON on standard output).

    Raises:
        MemreplayError: a file cannot be read, or the two have nothing in common.
    """
    check_outputs(outputs, (".json", ".md"), inputs=(a, b))
    compared = compare_runs(rows_of(a, run_a), rows_of(b, run_b))
    if compared.unpaired:
        print(f"not compared, for want of a partner: {', '.join(compared.unpaired)}", file=sys.stderr)
    for output in outputs:
        if output == STANDARD_OUTPUT:
            sys.stdout.write(_as_json(compared))
        else:
            write_whole(output, _as_json(compared) if Path(output).suffix == ".json" else _as_markdown(compared))
    if STANDARD_OUTPUT not in outputs:
        print("\n".join(_as_text(compared)))


def rows_of(path: Path, run_id: str | None) -> Sequence[AnswerRow]:
    """The answers of a results file, or of a run (the newest by default) of a recording.

    Raises:
        MemreplayError: the file cannot be read, is neither, or has no such run.
    """
    try:
        if is_irregular(path):
            raise UsageError(f"{path}: {NOT_REGULAR}")
        with path.open("rb") as file:
            is_recording = file.read(len(_SQLITE)) == _SQLITE
        if not is_recording:
            results = _ResultsFile.model_validate(orjson.loads(path.read_bytes()))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (orjson.JSONDecodeError, ValidationError):
        raise UsageError(f"{path}: neither a results file nor a recording") from None
    if not is_recording:
        if run_id is not None:
            raise UsageError(f"{path}: a results file holds one run; --run-a and --run-b choose one of a recording")
        return results.questions
    with closing(Recording.open(path)) as recording, reporting_damage(path):
        rows = results_of_run(recording, recording.run(run_id)).questions
    return [AnswerRow.model_validate(row.model_dump(include=set(AnswerRow.model_fields))) for row in rows]


def _as_json(compared: RunComparison) -> str:
    data = {"schema_version": 1, **compared.model_dump(mode="json")}
    return json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _as_text(compared: RunComparison) -> list[str]:
    lines = [f"{comparison.words}." for comparison in compared.comparisons]
    lines.append(_summary(compared))
    for kind in KINDS:
        changes = [change for change in compared.changes if change.kind == kind]
        if changes:
            lines += ["", f"{_HEADINGS[kind]} ({len(changes)})"]
            lines += [line for change in changes for line in _change_lines(change)]
    return lines


def _summary(compared: RunComparison) -> str:
    return f"{len(compared.changes)} answers changed, {compared.alike} did not."


def _change_lines(change: Change) -> list[str]:
    return [
        f"  {_short(change.question_id)} · {change.contestant} · {_short(change.question)}",
        f"    expected {_short(change.expected)}",
        f"    A {_said(change.was, change.failure_was)}",
        f"    B {_said(change.now, change.failure_now)}",
    ]


def _said(text: str | None, failure: str | None) -> str:
    said = "nothing" if text is None else _short(text)
    return f"{said} ({failure.replace('_', ' ')})" if failure else said


def _short(text: str) -> str:
    """One line of text that a terminal shows as it is."""
    one_line = printable(" ".join(text.split()))
    return one_line if len(one_line) <= _LONGEST_TEXT else one_line[: _LONGEST_TEXT - 1] + "…"


def _as_markdown(compared: RunComparison) -> str:
    lines = ["## memreplay: two runs compared", ""]
    lines += [f"- {plain(comparison.words)}." for comparison in compared.comparisons]
    lines += [f"- {_summary(compared)}", ""]
    if compared.changes:
        lines += ["| change | question | backend | expected | A | B |", "| --- | --- | --- | --- | --- | --- |"]
    for change in compared.changes:
        cells = (
            _HEADINGS[change.kind],
            f"{_short(change.question_id)}: {_short(change.question)}",
            change.contestant,
            _short(change.expected),
            _said(change.was, change.failure_was),
            _said(change.now, change.failure_now),
        )
        lines.append(f"| {' | '.join(plain(cell) for cell in cells)} |")
    return "\n".join(lines) + "\n"
