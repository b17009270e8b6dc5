"""A run takes no more memory for more rows that repeat the same conversation."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import RunCli
from tests.unit.conversations.samples import mc10_haystack, mc10_row, written, written_lines

ROWS = 20
"""More than the conversations that a run holds open at once."""

TURNS = 200

MOST_BYTES_A_ROW = 30_000
"""What a result and the list of a conversation's turns take; the turns themselves take four times as much."""


def run(run_cli: RunCli, path: Path) -> None:
    recording = path.with_suffix(".sqlite3")
    ran = run_cli("--batch", "--dataset", path, "--backend", "closed_book", "--recording", recording)
    assert ran.code == 0, ran.err


def peak_of(run_cli: RunCli, path: Path) -> int:
    """The most bytes that Python's objects take during a run."""
    tracemalloc.start()
    try:
        run(run_cli, path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("write", [written, written_lines], ids=["array", "lines"])
def test_a_run_holds_a_conversation_once_whatever_the_number_of_its_rows_and_ids(
    tmp_path: Path, run_cli: RunCli, write: Callable[[Path, Any], Path]
) -> None:
    haystack = mc10_haystack()
    haystack["haystack_sessions"][1] += [
        {"role": "user", "content": f"[VERA]: Row {number} of the garden has beans."} for number in range(TURNS)
    ]

    def file_of(rows: int) -> Path:
        many = [mc10_row(0, question_id=f"garden-{number}_q0") | haystack for number in range(rows)]
        return write(tmp_path / f"{rows}.data", many)

    run(run_cli, file_of(2))  # imports and caches
    few, many = (peak_of(run_cli, file_of(rows)) for rows in (ROWS, 2 * ROWS))
    assert many - few < ROWS * MOST_BYTES_A_ROW
