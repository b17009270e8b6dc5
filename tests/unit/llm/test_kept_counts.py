"""Lines are counted once, whichever process counts them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memreplay.llm.tokens import MOST_LINES, KeptCounts
from memreplay.paths import cache_folder


def refuse() -> int:
    raise AssertionError("counted again")


def test_a_count_is_kept_for_the_next_process(tmp_path: Path) -> None:
    first = KeptCounts(tmp_path / "cache" / "table.counts")
    assert first.of("a line", lambda: 2) == 2
    assert first.of("half a surrogate \ud800", lambda: 5) == 5
    first.write()
    second = KeptCounts(tmp_path / "cache" / "table.counts")
    assert [second.of("a line", refuse), second.of("half a surrogate \ud800", refuse)] == [2, 5]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["table.counts"]


def test_lines_that_were_not_used_for_long_give_way(tmp_path: Path) -> None:
    path = tmp_path / "table.counts"
    old = KeptCounts(path)
    for n in range(MOST_LINES):
        old.of(f"line {n}", lambda: 1)
    old.write()
    new = KeptCounts(path)
    new.of("line 7", refuse)
    new.of("new", lambda: 3)
    new.write()
    latest = KeptCounts(path)
    assert [latest.of("line 7", refuse), latest.of("new", refuse)] == [1, 3]
    assert latest.of(f"line {MOST_LINES - 1}", lambda: 9) == 9
    assert path.stat().st_size == MOST_LINES * 20


@pytest.mark.parametrize("content", [b"", b"cut off", b"\x00" * 47])
def test_a_file_that_cannot_be_read_is_written_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "table.counts"
    path.write_bytes(content)
    counts = KeptCounts(path)
    assert counts.of("a line", lambda: 2) == 2
    counts.write()
    assert KeptCounts(path).of("a line", refuse) == 2


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    counts = KeptCounts(tmp_path / "file" / "table.counts")
    assert counts.of("a line", lambda: 2) == 2
    counts.write()


def test_a_process_that_counts_known_lines_loads_no_tokenizer() -> None:
    program = (
        "import sys\n"
        "from memreplay.llm.tokens import token_counter\n"
        "print(token_counter('gpt-4')('one line\\nand another'), 'tiktoken' in sys.modules)"
    )
    said = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert said == [["5", "True"], ["5", "False"]]
    assert (cache_folder() / "cl100k_base.counts").exists()
