"""The guides show commands that work, and options that exist; the tables of options and layers are up to date."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from memreplay.cli.program import cli
from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY

GUIDES = (
    "README.md",
    "CONTRIBUTING.md",
    "app/README.md",
    "datasets/README.md",
    "memory_backends/README.md",
    "recordings/README.md",
    "recordings/SHARING.md",
    "tests/README.md",
)
REFERENCE = (REPOSITORY / "app" / "README.md").read_text(encoding="utf-8")
NEEDS_A_SERVER = re.compile(r"openai/|://")
COMMAND = re.compile(r"^\$ memreplay (.*)$", re.MULTILINE)
SAVED_FILE = re.compile(r"^Save this as `([\w.]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE_COMMAND = re.compile(r"`memreplay ([^`]+)`")


def text_of(guide: str) -> str:
    return (REPOSITORY / guide).read_text(encoding="utf-8")


@pytest.mark.parametrize("guide", GUIDES)
def test_every_command_without_a_server_runs(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guide: str
) -> None:
    text = text_of(guide)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("memreplay.paths.recordings_folder", lambda: tmp_path)
    for name, content in SAVED_FILE.findall(text):
        (tmp_path / name).write_text(content, encoding="utf-8")
        monkeypatch.delitem(sys.modules, Path(name).stem, raising=False)
    draws_plots = find_spec("vl_convert") is not None
    for command in COMMAND.findall(text):
        if not NEEDS_A_SERVER.search(command) and (draws_plots or ".html" not in command):
            ran = run_cli(*shlex.split(command))
            assert ran.code == 0, f"{command}: {ran.err}"


def test_the_guides_show_commands() -> None:
    assert sum(len(COMMAND.findall(text_of(guide))) for guide in GUIDES) >= 10


@pytest.mark.parametrize("guide", GUIDES)
def test_every_option_in_an_example_exists(guide: str) -> None:
    text = text_of(guide)
    unknown = [
        f"memreplay {command}"
        for command in (*COMMAND.findall(text), *INLINE_COMMAND.findall(" ".join(text.split())))
        if not options_in(command) <= options_of(command)
    ]
    assert unknown == []


def options_in(command: str) -> set[str]:
    return set(re.findall(r"(?<!\S)--[a-z-]+", command))


def options_of(command: str) -> set[str]:
    """The options of the subcommand that a line runs, or of ``memreplay`` itself."""
    found: Any = typer.main.get_command(cli)
    for word in command.split():
        if not isinstance(found, TyperGroup) or (inner := found.get_command(typer.Context(found), word)) is None:
            break
        found = inner
    return {"--help", *(name for option in found.params for name in option.opts)}


def commands(found: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """A command with its context, then those below it."""
    yield found, context
    for name in found.list_commands(context) if isinstance(found, TyperGroup) else ():
        inner = found.get_command(context, name)
        yield from commands(inner, typer.Context(inner, parent=context, info_name=name))


def test_the_help_of_an_option_says_its_default_once() -> None:
    program: Any = typer.main.get_command(cli)
    helps = [
        record[1]
        for command, context in commands(program, typer.Context(program, info_name="memreplay"))
        for option in command.params
        if (record := option.get_help_record(context)) is not None
    ]
    assert len(helps) > 100
    assert [text for text in helps if text.count("default:") > 1] == []


def test_every_relative_link_leads_somewhere() -> None:
    broken = [
        (guide, target)
        for guide in GUIDES
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", text_of(guide))
        if not (REPOSITORY / guide).parent.joinpath(target).exists()
    ]
    assert broken == []


def option_table() -> str:
    """Return the table of options, as the command line declares them."""
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


def test_the_table_of_options_matches_the_command_line() -> None:
    assert option_table() in REFERENCE, f"replace the table in app/README.md by:\n{option_table()}"


def test_the_architecture_lists_the_layers_that_are_checked() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (c["layers"] for c in project["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    picture = re.search(r"^## Architecture\n.*?```text\n(.*?)```", REFERENCE, re.MULTILINE | re.DOTALL)
    assert picture is not None
    shown = [re.split(r"  +", line)[0] for line in picture[1].splitlines()]
    assert shown == [layer.replace("| memreplay.", "| ") for layer in layers]
