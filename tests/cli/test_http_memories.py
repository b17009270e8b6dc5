"""The example services, in Python and TypeScript, in a run with its rows, and with ``check-backend``."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY
from tests.stubs.memory_service import memory_service

EXAMPLES = REPOSITORY / "memory_backends" / "examples"


def _typescript() -> list[str] | None:
    """Return the command that runs TypeScript here; None if there is none."""
    if found := shutil.which("deno"):
        return [found, "run", "-A"]
    if found := shutil.which("bun"):
        return [found]
    if found := shutil.which("node"):
        for options in ([], ["--experimental-strip-types"]):
            command = [found, *options]
            tried = subprocess.run(
                [*command, "--input-type=module-typescript", "-e", "const x: number = 1;"], capture_output=True
            )
            if tried.returncode == 0:
                return command
    return None


TYPESCRIPT = _typescript()
SERVERS = [
    pytest.param([sys.executable, "-S", "-E", str(EXAMPLES / "http_memory_server.py")], id="python"),
    pytest.param(
        [*(TYPESCRIPT or []), str(EXAMPLES / "http_memory_server.ts")],
        id="typescript",
        marks=pytest.mark.skipif(TYPESCRIPT is None, reason="neither deno, bun nor a node that runs TypeScript"),
    ),
]


@contextmanager
def serving(command: list[str]) -> Iterator[str]:
    with subprocess.Popen([*command, "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.parametrize("command", SERVERS)
def test_a_service_is_run_beside_rag_and_its_rows_have_hits_turns_and_verdicts(
    run_cli: RunCli, tmp_path: Path, command: list[str]
) -> None:
    output = tmp_path / "results.json"
    with serving(command) as url:
        name = f"http-memory:{url}"
        ran = run_cli(
            "--batch", "--dataset", "identity-02", "--backend", name, "--backend", "rag:keyword",
            "--recording", tmp_path / "r.sqlite3", "--output", output,
        )  # fmt: skip
    assert ran.code == 0, ran.err
    rows = [row for row in json.loads(output.read_text())["questions"] if row["backend"] == name]
    assert len(rows) == 5 and {row["outcome"] for row in rows} <= {"correct", "wrong"}, rows
    assert sum(row["outcome"] == "correct" for row in rows) >= 4
    assert all(row["hits"] and row["answer_in_prompt"] for row in rows if row["outcome"] == "correct")
    assert all(hit["turns"] and hit["score"] for row in rows for hit in row["hits"])
    lost = {row["failure"] for row in rows if row["outcome"] == "wrong"}
    assert "not_written" not in lost, "everything is written word for word"


@pytest.mark.parametrize("finds", [True, False])
def test_what_a_service_holds_that_cannot_list_is_unknown(run_cli: RunCli, tmp_path: Path, finds: bool) -> None:
    def answer(method: str, path: str, body: Any) -> tuple[int, Any] | None:
        hits = [{"id": "a", "text": "Nothing of importance."}] if finds else []
        return None if method == "GET" else (200, {"hits": hits})

    with memory_service(answer) as service:
        ran = run_cli(
            "--batch", "--dataset", "identity-02", "--backend", f"http-memory:{service.url}",
            "--recording", tmp_path / "r.sqlite3", "--output", tmp_path / "results.json",
        )  # fmt: skip
    assert ran.code == 0, ran.err
    rows = json.loads((tmp_path / "results.json").read_text())["questions"]
    assert {(row["outcome"], row["failure"]) for row in rows} == {("wrong", "not_visible")}


def test_check_backend_tests_a_service(run_cli: RunCli) -> None:
    with serving(SERVERS[0].values[0]) as url:  # type: ignore[arg-type]  # the command
        ran = run_cli("check-backend", f"http-memory:{url}")
    assert ran.code == 0, ran.out
    assert "it can be compared with others" in ran.out


def test_offline_refuses_a_memory_behind_a_url(run_cli: RunCli, tmp_path: Path) -> None:
    for name in ("http-memory:http://127.0.0.1:1", "mcp:http://127.0.0.1:1/mcp"):
        ran = run_cli(
            "--batch",
            "--dataset",
            "identity-01",
            "--backend",
            name,
            "--offline",
            "--recording",
            tmp_path / "r.sqlite3",
        )
        assert ran.code == 2 and f"--offline uses no network, but {name} needs one" in ran.err
