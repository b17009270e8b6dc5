"""Runs the command line in this process, as a shell would."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from app.__main__ import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


RunCli = Callable[..., Ran]


@pytest.fixture
def run_cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> RunCli:
    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["memreplay", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run
