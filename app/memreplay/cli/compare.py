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
from memreplay.cli.options import COMMAND_OPTIONS
from memreplay.conversations.validation_errors import printable
from memreplay.errors import UsageError
from memreplay.files import NOT_REGULAR, is_irregular, write_whole
from memreplay.recording.bodies import reporting_damage
from memreplay.recording.reader import Recording
from memreplay.scoring.run_comparison import KINDS, AnswerRow, Change, Kind, RunComparison, compare_runs

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
    """The part of a results file that is compared, the same in every version."""

    model_config = ConfigDict(extra="ignore")

    questions: tuple[AnswerRow, ...]


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
            help="Also write the comparison here: .json, .md, or - for JSON on standard output. Repeatable.",
        ),
    ] = None,
) -> None:
    """Compare two runs on the same questions: the difference, its significance, what changed. Asks no model."""
    outputs = tuple(output or ())
    check_outputs(outputs, (".json", ".md"), inputs=(a, b))
    compared = compare_runs(_rows(a, run_a), _rows(b, run_b))
    if compared.unpaired:
        print(f"only in one of the two, not compared: {', '.join(compared.unpaired)}", file=sys.stderr)
    for path in outputs:
        if path == STANDARD_OUTPUT:
            sys.stdout.write(_as_json(compared))
        else:
            write_whole(path, _as_json(compared) if Path(path).suffix == ".json" else _as_markdown(compared))
    if STANDARD_OUTPUT not in outputs:
        print("\n".join(_as_text(compared)))


def _rows(path: Path, run_id: str | None) -> Sequence[AnswerRow]:
    """The answers of a results file, or of a run (the newest by default) of a recording."""
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
            lines += [line for change in changes for line in _lines_of_change(change)]
    return lines


def _summary(compared: RunComparison) -> str:
    return f"{len(compared.changes)} answers changed, {compared.alike} did not."


def _lines_of_change(change: Change) -> list[str]:
    return [
        f"  {_short(change.question_id)} · {change.contestant} · {_short(change.question)}",
        f"    expected {_short(change.expected)}",
        f"    A {_answer(change.was, change.failure_was)}",
        f"    B {_answer(change.now, change.failure_now)}",
    ]


def _answer(text: str | None, failure: str | None) -> str:
    answer = "nothing" if text is None else _short(text)
    return f"{answer} ({failure.replace('_', ' ')})" if failure else answer


def _short(text: str) -> str:
    """The text on one line, cut, and safe to print."""
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
            _answer(change.was, change.failure_was),
            _answer(change.now, change.failure_now),
        )
        lines.append(f"| {' | '.join(plain(cell) for cell in cells)} |")
    return "\n".join(lines) + "\n"
