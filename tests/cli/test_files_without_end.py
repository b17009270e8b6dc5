"""What never ends, or goes too deep, is refused in one sentence; code that would end the program does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memreplay.conversations.json_files import read_array
from memreplay.errors import DatasetError, UsageError
from memreplay.goodai.sources import load_dataset_class
from tests.cli.conftest import RunCli

DEEP = 100_000


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """Opening it for reading blocks until a writer comes, and none does."""
    path = tmp_path / "pipe.json"
    os.mkfifo(path)
    return path


def test_a_pipe_or_a_device_is_not_read(run_cli: RunCli, pipe: Path, tmp_path: Path) -> None:
    for path in (pipe, "/dev/zero"):
        recording = ("--recording", tmp_path / "r.sqlite3")
        for command in (
            ("--batch", "--dataset", "identity-01", "--answer-key", path, *recording),
            ("--batch", "--dataset", path, *recording),
            ("compare", path, path),
        ):
            ran = run_cli(*command)
            assert ran.code == 2 and len(ran.err.splitlines()) == 1, ran.err
    assert not (tmp_path / "r.sqlite3").exists()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * DEEP + "]" * DEEP, id="lists"),
        pytest.param('[{"choices": ' + "[[]," * DEEP + "[]" + "]" * DEEP + "}]", id="lists with others in them"),
        pytest.param("[" + '{"a":' * DEEP + "1" + "}" * DEEP + "]", id="objects"),
    ],
)
def test_json_that_is_nested_without_bound_is_refused_at_its_beginning(tmp_path: Path, text: str) -> None:
    path = tmp_path / "deep.json"
    path.write_text(text)
    with pytest.raises(DatasetError, match="nested more than 1,024 deep"):
        list(read_array(path))


def test_brackets_in_texts_are_no_nesting(tmp_path: Path) -> None:
    path = tmp_path / "smileys.json"
    texts = [":[ and {\\" + '"' + " and \\\\"] * 3000
    path.write_text("[" + ",".join(f'"{text}"' for text in texts) + "]")
    assert [text for _, text in read_array(path)] == [':[ and {" and \\'] * 3000


@pytest.mark.parametrize(
    ("code", "told"),
    [("import sys; sys.exit(3)", "sys.exit(3)"), ("class Odd(BaseException): pass\nraise Odd('no')", "Odd: no")],
)
def test_a_dataset_that_would_end_the_program_is_reported(tmp_path: Path, code: str, told: str) -> None:
    path = tmp_path / "ends.py"
    path.write_text(code)
    with pytest.raises(UsageError) as refused:
        load_dataset_class(str(path))
    assert told in str(refused.value) and "its code cannot be run" in str(refused.value)
