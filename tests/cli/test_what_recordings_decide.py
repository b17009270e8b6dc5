"""A recording that somebody else made starts, imports and contacts nothing that its reader did not name."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import memreplay
from memreplay.conversations.registry import load
from tests.cli.conftest import RunCli
from tests.stubs.in_process import made_in
from tests.stubs.openai_server import OpenAIServer, answer
from tests.stubs.reach import reached

QUESTION = next(iter(load(["identity-02"]))).questions[0].id

SPIES = "http://127.0.0.1:9"
"""Nobody listens there: an attempt to connect is what is noted."""

HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "a command": ({"backend": ["rag", "mcp:/bin/sh -c 'id > PWNED'"]}, "runs the command /bin/sh -c 'id > PWNED'"),
    "code": ({"backend": ["evilmod:Memory"]}, "backend evilmod:Memory runs its code"),
    "an agent": ({"backend": [f"{SPIES}/run_turn"]}, "the agent's token to 127.0.0.1:9"),
    "a chat endpoint": ({"backend": [f"openai:{SPIES}/v1"]}, "the agent's token to 127.0.0.1:9"),
    "an address": ({"api_base": f"{SPIES}/v1"}, "sends prompts and your key to 127.0.0.1:9"),
    "a provider": ({"model": ["openai/gpt-4o-mini"]}, "with your key, to the model openai/gpt-4o-mini"),
    "an address as a model": ({"model": [f"oobabooga/{SPIES}"]}, f"to the model oobabooga/{SPIES}"),
    "a judge": ({"judge": "openai/gpt-4o-mini"}, "judge sends questions and replies"),
    "a file as a rubric": ({"judge_rubric": "/etc/passwd"}, "judge_rubric /etc/passwd may be set only by you"),
    "an extractor": ({"extractor": "openai/gpt-4o-mini"}, "extractor sends conversations"),
    "an embedder": (
        {"given": {"embedder": f"litellm:huggingface/{SPIES}"}},
        "sends texts, with your key, to the model",
    ),
    "a download": ({"given": {"embedder": "fastembed:evil/model"}}, "downloads the model evil/model"),
    "a reranker": ({"reranker": "litellm:evil"}, "reranker litellm:evil sends texts"),
    "a number": ({"repeats": 1000}, "repeats 1000 is beyond 100"),
}

COMMANDS: dict[str, tuple[object, ...]] = {
    "why": ("why",),
    "the estimate of why": ("why", "--estimate"),
    "fork": ("fork", "--at", 8, "--set", "top-k=2"),
    "bisect by prompt": ("bisect", "--question", QUESTION, "--by", "prompt"),
    "bisect by answer": ("bisect", "--question", QUESTION, "--by", "answer"),
    "sweep": ("sweep", "--over", "top-k=2"),
    "shrink": ("shrink", "--question", QUESTION, "--output", "case.json"),
}


OF_ANSWERS = {"api_base", "model", "judge", "judge_rubric"}
"""Settings that say who is asked and who grades, which rebuilding a memory does not need."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    asked = ("--dataset", "identity-02", "--backend", "hybrid", "--backend", "rag", "--ablate", "verbatim")
    made_in(folder, "--batch", *asked, "--recording", folder / "r.sqlite3")
    return folder / "r.sqlite3"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the module that a recording may name, and a key that a recording may want."""
    (tmp_path / "evilmod.py").write_text("from pathlib import Path\nPath('PWNED').touch()\nclass Memory: ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-of-the-reader")
    monkeypatch.setenv("MEMREPLAY_AGENT_TOKEN", "a-token-of-the-reader")
    yield tmp_path
    sys.modules.pop("evilmod", None)


def hostile(sound: Path, folder: Path, settings: dict[str, Any], name: str = "hostile.sqlite3") -> Path:
    """A copy with other settings of its run."""
    path = folder / name
    shutil.copy(sound, path)
    with closing(sqlite3.connect(path)) as db, db:
        (before,) = db.execute("select settings from runs").fetchone()
        db.execute("update runs set settings = ?", [json.dumps({**json.loads(before), **settings})])
    return path


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_no_command_runs_or_contacts_what_only_the_recording_names(
    run_cli: RunCli, sound: Path, folder: Path, command: tuple[object, ...]
) -> None:
    name, *options = command
    wrong = {}
    for case, (settings, says) in HOSTILE.items():
        if "prompt" in options and settings.keys() & OF_ANSWERS:
            continue
        path = hostile(sound, folder, settings)
        with reached() as noted:
            ran = run_cli(name, path, *options)
        said = ran.err.strip().splitlines()[-1]
        wrong[case] = [
            problem
            for problem, is_so in {
                f"exit code {ran.code}": ran.code != 2,
                f"it reached for {noted}": noted,
                "it wrote the file": (folder / "PWNED").exists(),
                "it imported the module": "evilmod" in sys.modules,
                f"it does not say {says}: {said}": says not in said,
                f"it names no flag: {said}": "--allow-from-recording" not in said,
            }.items()
            if is_so
        ]
    assert not {case: problems for case, problems in wrong.items() if problems}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_answers_that_name_other_memories_and_models_than_the_settings_reach_nothing(
    run_cli: RunCli, sound: Path, folder: Path, command: tuple[object, ...]
) -> None:
    name, *options = command
    path = folder / "events.sqlite3"
    shutil.copy(sound, path)
    with closing(sqlite3.connect(path)) as db, db:
        tables = [table for (table,) in db.execute("select name from sqlite_master where type = 'table'")]
        for old, new in (("rag", "evilmod:Memory"), ("memreplay/extractive", f"oobabooga/{SPIES}")):
            for table in (each for each in tables if each != "runs" and not each.startswith("sqlite")):
                for _, column, kind, *_ in db.execute(f"pragma table_info({table})").fetchall():
                    if kind == "TEXT":
                        words = f"replace(replace({column}, ?, ?), ?, ?)"
                        given = (f'"{old}"', f'"{new}"', old, new)
                        db.execute(f"update or ignore {table} set {column} = {words} where {column} like ?",
                                   [*given, f"%{old}%"])  # fmt: skip
    with reached() as noted:
        ran = run_cli(name, path, *options)
    assert not noted and not (folder / "PWNED").exists() and "evilmod" not in sys.modules
    assert "Traceback" not in ran.err and ran.code in (0, 2, 3), ran.err


def test_reading_a_hostile_recording_runs_nothing(run_cli: RunCli, sound: Path, folder: Path) -> None:
    everything: dict[str, Any] = {}
    for settings, _ in HOSTILE.values():
        everything |= settings
    backends = ["hybrid", "rag", "evilmod:Memory", "mcp:/bin/sh -c 'id > PWNED'", f"{SPIES}/run_turn"]
    path = hostile(sound, folder, everything | {"backend": backends, "model": ["memreplay/extractive"]})
    with reached() as noted:
        for command in (
            ("report", path, "--output", folder / "out.md"),
            ("compare", path, sound),
            ("export", path, "--html", folder / "out.html", "--cast", folder / "out.cast"),
            ("recordings", "show", path),
            ("bisect", path, "--question", QUESTION),
        ):
            assert run_cli(*command).code in (0, 2), command
        with memreplay.open(path) as run:
            assert len(run.questions) and run.conversation("identity-02").at(3)["hybrid"].state
    assert not noted and not (folder / "PWNED").exists() and "evilmod" not in sys.modules


def test_bisecting_what_memory_returns_needs_no_word_on_models_and_asks_none(
    run_cli: RunCli, sound: Path, folder: Path
) -> None:
    cases = {case: settings for case, (settings, _) in HOSTILE.items() if settings.keys() & OF_ANSWERS}
    for case, settings in cases.items():
        with reached() as noted:
            ran = run_cli("bisect", hostile(sound, folder, settings), "--question", QUESTION, "--by", "prompt")
        assert (ran.code, noted) == (0, []), (case, ran.err)
    wanted = {"extractor": "openai/gpt-4o-mini", "api_base": f"{SPIES}/v1"}
    ran = run_cli("bisect", hostile(sound, folder, wanted), "--question", QUESTION, "--by", "prompt")
    assert ran.code == 2 and "sends prompts and your key to 127.0.0.1:9" in ran.err


def test_what_the_reader_names_too_is_used(run_cli: RunCli, folder: Path) -> None:
    path = folder / "r.sqlite3"
    with OpenAIServer([answer("I do not know.")]) as server:
        model, address = ("--model", "openai/stub"), ("--api-base", server.url)
        asked = ("--dataset", "identity-02", "--backend", "rag")
        assert run_cli("--batch", *asked, *model, *address, "--recording", path).code == 0
        for top_k, (more, is_used) in enumerate(
            (
                ((), False),
                (model, False),
                (("--model", "openai/another", *address), False),
                ((*model, *address), True),
                (("--allow-from-recording",), True),
            ),
            start=1,
        ):
            server.requests.clear()
            ran = run_cli("fork", path, "--at", 8, "--set", f"top-k={top_k}", "--no-cache", *more)
            assert (ran.code, bool(server.requests)) == (0 if is_used else 2, is_used), (more, ran.err)


class Terminal(StringIO):
    """A terminal on which somebody has typed."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "runs"), [("\n", False), ("no\n", False), ("y\n", True)])
def test_on_a_terminal_the_reader_is_asked(
    run_cli: RunCli, sound: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, typed: str, runs: bool
) -> None:
    path = hostile(sound, folder, {"backend": ["evilmod:Memory"]})
    screen = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stderr", screen)
    assert run_cli("fork", path, "--at", 8, "--set", "top-k=2").code == 2
    assert "backend evilmod:Memory runs its code" in screen.getvalue() and "[y/N]" in screen.getvalue()
    assert (folder / "PWNED").exists() is runs
