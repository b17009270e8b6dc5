"""With the defaults no command opens a connection, or looks up a name, that nobody asked for."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from memreplay.cli.program import COMMANDS
from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY

_ENDLESS = {"serve", "serve-backend"}
"""They wait for connections from others."""


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


def test_no_command_reaches_for_the_network(run_cli: RunCli, tmp_path: Path, attempts: list[str]) -> None:
    recording = tmp_path / "r.sqlite3"
    sound = REPOSITORY / "tests" / "broken" / "_sound" / "tide-01.json"
    commands: dict[str, list[tuple[object, ...]]] = {
        "": [
            ("--batch", "--dataset", "identity-01", "--limit", 1, "--recording", recording),
            ("--batch", "--dataset", "colours", "--examples", 1, "--memory-span", 200, "--recording", recording),
            ("--batch", "--dataset", "identity-01", "--estimate", "--model", "openai/gpt-4o-mini"),
        ],
        "report": [("report", recording, "--output", tmp_path / "r.json")],
        "compare": [("compare", recording, recording)],
        "doctor": [("doctor",)],
        "validate": [("validate", sound)],
        "check-backend": [("check-backend", "full_context")],
        "recordings": [("recordings",), ("recordings", "show", recording)],
        "datasets": [("datasets",), ("datasets", "schema"), ("datasets", "--coverage")],
    }
    for name in COMMANDS:
        commands.setdefault(name, [(name, "--help")] if name not in _ENDLESS else [])
    for given in commands.values():
        for command in given:
            ran = run_cli(*command)
            assert "Traceback" not in ran.err, command
            assert attempts == [], command
