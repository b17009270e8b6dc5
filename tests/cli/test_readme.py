"""The README shows commands that work, and the options that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from memreplay.cli.program import cli
from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text()
COMMANDS = re.findall(r"^\$ memreplay (.*)$", README, re.MULTILINE)
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


def option_table() -> str:
    """The README's table of options, as the command line declares them."""
    rows = ["| option | meaning | default |", "| --- | --- | --- |"]
    for option in typer.main.get_command(cli).params:
        name, metavar, text = option.opts[0], getattr(option, "metavar", None), getattr(option, "help", None)
        if name == "--version":
            continue
        meaning, _, default = str(text).removesuffix("]").partition(" [default: ")
        spelling = f"{name} {metavar}" if metavar else name
        spelling = spelling.replace("|", r"\|")
        rows.append(f"| `{spelling}` | {meaning} | {default} |")
    return "\n".join(rows)


def test_the_table_of_options_is_the_one_of_the_command_line() -> None:
    assert option_table() in README, f"replace the table in README.md by:\n{option_table()}"


def test_every_option_in_an_example_exists() -> None:
    known = {name for option in typer.main.get_command(cli).params for name in option.opts}
    without_command = (command for command in COMMANDS if command.startswith("--"))
    assert {word for command in without_command for word in command.split() if word.startswith("--")} <= known
