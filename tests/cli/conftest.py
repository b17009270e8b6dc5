"""Runs the command line in this process, as a shell would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.stubs.in_process import exit_code
from tests.stubs.memory import WordEmbedder
from tests.stubs.tests_to_run import small_definitions


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


RunCli = Callable[..., Ran]


@pytest.fixture
def run_cli(capsys: pytest.CaptureFixture[str]) -> RunCli:
    def run(*arguments: object) -> Ran:
        code = exit_code(*arguments)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def embedded_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """For hundreds of long texts in which the model, which needs seconds for them, is not what is tested."""
    monkeypatch.setattr("memreplay.runtime.embedders.MiniLMEmbedder", WordEmbedder)


@pytest.fixture
def definitions(tmp_path: Path) -> Path:
    """A folder with four tests: of two of them nothing here can say what is right."""
    return small_definitions(tmp_path / "small")
