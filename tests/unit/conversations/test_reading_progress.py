"""The bar that shows how far the reading of a big file has come."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from memreplay.cli.reading_progress import BIG_FILE_BYTES, show_reading_progress
from memreplay.conversations.registry import load
from tests.unit.conversations.samples import mc10_haystack, mc10_row, written_lines


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def big_file(tmp_path: Path) -> Path:
    haystack = mc10_haystack()
    haystack["haystack_sessions"][1].append({"role": "user", "content": "[VERA]: " + "word " * 200_000})
    rows = [mc10_row(0, question_id=f"garden-1_q{number}") | haystack for number in range(9)]
    path = written_lines(tmp_path / "rows.jsonl", rows)
    assert path.stat().st_size > BIG_FILE_BYTES
    return path


def read(path: Path) -> None:
    with show_reading_progress() as opened:
        assert len(list(load([str(path)], on_opened=opened))) == 1


def test_on_a_terminal_there_is_a_bar(big_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    read(big_file)
    assert "reading rows.jsonl" in terminal.getvalue()


def test_nothing_is_reported_elsewhere(big_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read(big_file)
    assert capsys.readouterr() == ("", "")


def test_a_small_file_is_read_without_a_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    read(written_lines(tmp_path / "rows.jsonl", [mc10_row(0)]))
    assert "reading" not in terminal.getvalue()


def test_what_is_printed_meanwhile_stays_on_standard_output(
    big_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with show_reading_progress() as opened:
        for conversation in load([str(big_file)], on_opened=opened):
            print(conversation.id)
    assert capsys.readouterr().out == "garden-1\n"
