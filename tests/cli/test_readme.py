"""The commands that the README shows are commands that work."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY

COMMANDS = re.findall(r"^\$ memreplay (.*)$", (REPOSITORY / "README.md").read_text(), re.MULTILINE)
NEEDS_A_SERVER = re.compile(r"openai/|://")


def test_every_command_without_a_server_runs(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("memreplay.paths.recordings_folder", lambda: tmp_path)
    commands = [command for command in COMMANDS if not NEEDS_A_SERVER.search(command)]
    assert len(commands) >= 6
    for command in commands:
        ran = run_cli(*shlex.split(command))
        assert ran.code == 0, f"{command}: {ran.err}"


def test_every_option_that_is_shown_exists(run_cli: RunCli) -> None:
    readme = (REPOSITORY / "README.md").read_text()
    known = set(re.findall(r"--[a-z][a-z-]+", run_cli("--help").out))
    table = set(re.findall(r"^\| `(--[a-z-]+)", readme, re.MULTILINE))
    assert table
    without_command = (command for command in COMMANDS if command.startswith("--"))
    shown = {word for command in without_command for word in command.split() if word.startswith("--")}
    assert table | shown <= known


def test_every_option_that_exists_is_shown(run_cli: RunCli) -> None:
    readme = (REPOSITORY / "README.md").read_text()
    known = set(re.findall(r"^\s+(?:-h, )?(--[a-z][a-z-]+)", run_cli("--help").out, re.MULTILINE))
    assert len(known) > 15
    assert {option for option in known if option not in readme} <= {"--help", "--version"}
