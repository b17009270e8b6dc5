"""With the defaults no command opens a connection, or looks up a name, that nobody asked for."""

from __future__ import annotations

import json
import socket
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from memreplay.cli.program import COMMANDS
from memreplay.conversations.registry import load
from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY
from tests.faults.test_recordings import goodai_run
from tests.stubs.agents import converse, recorded_notebook
from tests.stubs.published_results import amb, amb_row, locomo, said

_ENDLESS = {"serve", "serve-backend"}
"""They wait for connections from others."""

_ENDS = {"datasets": (0, 2), "why": (0, 2), "doctor": (0, 4), "rejudge": (2,)}
"""Exit codes other than 0: a draft needs a model, there may be no wrong answer, no judge, nothing may answer."""


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every attempt to reach something by a socket, all of which fail."""
    made: list[str] = []

    def forbidden(name: str) -> Any:
        def attempt(*arguments: Any, **more: Any) -> Any:
            made.append(f"{name}{arguments[-2:]}")
            raise OSError("sockets are forbidden here")

        return attempt

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, forbidden(name))
    for name in ("getaddrinfo", "gethostbyname", "create_connection"):
        monkeypatch.setattr(socket, name, forbidden(name))
    return made


_FORGETFUL = ("--backend", "hybrid", "--ablate", "verbatim")


def test_no_command_reaches_for_the_network(run_cli: RunCli, tmp_path: Path, attempts: list[str]) -> None:
    recording, asked, lossy = (tmp_path / f"{name}.sqlite3" for name in ("r", "asked", "lossy"))
    question = next(iter(load(["identity-01"]))).questions[0].id
    sound = REPOSITORY / "tests" / "broken" / "_sound" / "tide-01.json"
    agent, spans = tmp_path / "agent.sqlite3", tmp_path / "spans.json"
    converse(recorded_notebook(agent))
    spans.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "search_memory"}]}]}]}))
    published = tmp_path / "published.json"
    published.write_text(json.dumps(amb(amb_row(0, "On 11 June.", said("D1:1"), False))))
    commands: dict[str, list[tuple[object, ...]]] = {
        "": [
            ("--batch", "--dataset", "identity-01", "--limit", 1, "--recording", asked),
            ("--batch", "--dataset", "identity-02", *_FORGETFUL, "--recording", lossy),
            ("--batch", "--dataset", "identity-01", "--limit", 1, "--recording", recording),
            ("--batch", "--dataset", "colours", "--examples", 1, "--memory-span", 200, "--recording", recording),
            ("--batch", "--dataset", "identity-01", "--estimate", "--model", "openai/gpt-4o-mini"),
        ],
        "report": [("report", recording, "--output", tmp_path / f"r{end}") for end in (".json", ".html")],
        "why": [("why", asked, "--limit", 1), ("why", asked, "--estimate")],
        "fork": [("fork", asked, "--at", 2, "--delete", "message:3")],
        "budget": [("budget", asked, "--output", tmp_path / "curve.json")],
        "bisect": [("bisect", asked, "--question", question)],
        "shrink": [("shrink", lossy, "--question", "identity-02-q1", "--output", tmp_path / "s.json")],
        "sweep": [("sweep", lossy, "--over", "top-k=1,3"), ("sweep", lossy, "--over", "top-k=1", "--estimate")],
        "export": [("export", asked, "--html", tmp_path / "x.html", "--cast", tmp_path / "x.cast")],
        "compare": [("compare", recording, recording)],
        "rejudge": [("rejudge", asked)],
        "autopsy": [("autopsy", published, "--evidence", locomo(tmp_path / "locomo10.json"))],
        "doctor": [("doctor",)],
        "record": [("record", tmp_path / "spans.sqlite3", "--otlp", spans)],
        "mark": [("mark", agent, "--turn", 11, "--expected", "lead engineer", "--evidence", 3)],
        "shadow": [("shadow", agent, "--backend", "rag")],
        "redact": [("redact", agent, "--output", tmp_path / "redacted.sqlite3")],
        "validate": [("validate", sound)],
        "check-backend": [("check-backend", "full_context")],
        "recordings": [
            ("recordings",),
            ("recordings", "show", recording),
            ("recordings", "import", goodai_run(tmp_path / "goodai"), "--recording", tmp_path / "i.sqlite3"),
        ],
        "datasets": [
            ("datasets",),
            ("datasets", "schema"),
            ("datasets", "--coverage"),
            ("datasets", "export", "identity-01", "--output", tmp_path / "e.json"),
            ("datasets", "convert", "identity-01", "--to", "text", "--output", tmp_path / "e.txt"),
            ("datasets", "draft", "identity-01", "--output", tmp_path / "d.json", "--later"),
        ],
    }
    assert set(COMMANDS) - set(commands) == _ENDLESS, "each command is run"
    for given in commands.values():
        for command in given:
            ran = run_cli(*command)
            assert "Traceback" not in ran.err, command
            assert ran.code in _ENDS.get(command[0], (0,)), (command, ran)
            assert attempts == [], command


def test_an_estimate_reaches_for_nothing_whatever_the_run_would_call(
    run_cli: RunCli, tmp_path: Path, attempts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for a model, a store, an agent, a memory server, or to see that one of them answers."""
    monkeypatch.chdir(tmp_path)
    memories = ["hybrid", "rag", "letta", *(name for name in ("mem0", "chroma") if find_spec(_PACKAGES[name]))]
    models = {
        "model": "openai/gpt-4o-mini",
        "extractor": "openai/gpt-4o-mini",
        "judge": "openai/gpt-4o",
        "reranker": "litellm:cohere/rerank-v3.5",
        "embedder": "litellm:openai/text-embedding-3-small",
        "redis-url": "redis://127.0.0.1:1",
        "qdrant-url": "http://127.0.0.1:1",
    }
    agents = ("http://127.0.0.1:1/run_turn", "openai:http://127.0.0.1:1/v1", "mcp:touch started")
    options = [part for name, value in models.items() for part in (f"--{name}", value)]
    backends = [part for name in (*memories, *agents) for part in ("--backend", name)]
    ran = run_cli("--batch", "--dataset", "identity-01", *options, *backends, "--estimate", "--why")
    assert ran.code == 0, ran.err
    assert attempts == [] and not Path("started").exists()
    for part in (*memories, *agents, "hybrid (writer)", "(reranker)", "(embedder)", "(judge)"):
        assert f" {part} " in ran.out, ran.out
    tests = run_cli(
        "--batch", "--dataset", "colours", "--examples", 1, *options, "--backend", "hybrid", "--estimate"
    )
    assert tests.code == 0 and "hybrid (writer)" in tests.out, tests.err
    assert run_cli("--batch", "--dataset", "identity-01", "--limit", 1, "--recording", "r.sqlite3").code == 0
    assert run_cli("why", "r.sqlite3", "--estimate").code == 0
    assert attempts == []


_PACKAGES = {"mem0": "mem0", "chroma": "chromadb"}
