"""A recording as an entry of the start screen's list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from textual.content import Content

from memreplay.errors import MemreplayError
from memreplay.recording.overview import Progress, RecordingOverview, overview_of
from memreplay.tui.text import cells, one_line

_STYLES: Final[dict[Progress, str]] = {
    "finished": "$text-success",
    "interrupted": "$text-warning",
    "running": "$text-error bold",
}
_MOST_DATASETS = 3
_WIDTH_OF_SCORES = 34


def described(path: Path) -> Content:
    """Rows for the name; state and date; what was replayed; the score of each memory. Reads the file."""
    try:
        overview = overview_of(path)
    except MemreplayError as error:
        problem = one_line(str(error).removeprefix(f"{path}: "))
        return Content.assemble(
            (one_line(path.stem), "bold"), ("\n  cannot be read", "$text-error"), f"\n  {problem}"
        )
    state = overview.progress
    where = f" {overview.stopped_at}" if state != "finished" else ""
    return Content.assemble(
        (one_line(path.stem), "bold"),
        "\n  ",
        (f"{state}{where}", _STYLES[state]),
        # Where a run stopped takes a row: the list is narrow on a small screen.
        ("  " if state == "finished" else "\n  "),
        (_date(overview.started_at), "dim"),
        f"\n  {_few(overview.datasets)}",
        *((f"\n  {row}", "dim") for row in _scores(overview)),
    )


def _date(started_at: str) -> str:
    try:
        began = datetime.fromisoformat(started_at).astimezone()
    except ValueError:
        return one_line(started_at)
    return f"{began.day} {began:%b %Y %H:%M}"


def _few(datasets: Sequence[str]) -> str:
    shown = one_line(", ".join(datasets[:_MOST_DATASETS]))
    more = len(datasets) - _MOST_DATASETS
    return f"{shown} and {more:,} more" if more > 0 else shown


def _scores(overview: RecordingOverview) -> list[str]:
    """The memories with their scores, as many in a row as the list has room for on a small screen."""
    rows: list[str] = []
    for name in dict.fromkeys([*overview.backends, *overview.scores]):
        words = f"{one_line(name)} {overview.scores[name]}" if name in overview.scores else one_line(name)
        if rows and cells(rows[-1]) + cells(words) + 3 <= _WIDTH_OF_SCORES:
            rows[-1] += f" · {words}"
        else:
            rows.append(words)
    return rows
