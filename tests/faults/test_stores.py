"""Servers that are not what they should be: one sentence and exit code 4, or a memory that failed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from qdrant_client.models import Distance, VectorParams

from tests.cli.conftest import RunCli
from tests.stubs.openai_server import OpenAIServer, answer
from tests.stubs.qdrant_server import qdrant_server


@dataclass(frozen=True)
class Impostor:
    """A server that answers every request with this."""

    name: str
    body: bytes
    status: int = 200
    kind: str = "application/json"


IMPOSTORS = (
    Impostor("a web page", b"<html>hello", kind="text/html"),
    Impostor("an empty page", b""),
    Impostor("an empty object", b"{}"),
    Impostor("null", b"null"),
    Impostor("a list", b"[1]"),
    Impostor("another result", b'{"result": {"collections": 3}}'),
    Impostor("another result still", b'{"result": [], "status": "ok", "time": 0}'),
    Impostor("not UTF-8", b"\xff\xfe\x00"),
    Impostor("an error page", b"<html>no", status=404, kind="text/html"),
    Impostor("a server that is down", b"oops", status=502),
    Impostor("no content", b"", status=204),
)


@contextmanager
def impostor(what: Impostor) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(what.status)
            self.send_header("Content-Type", what.kind)
            self.send_header("Content-Length", str(len(what.body)))
            self.end_headers()
            self.wfile.write(what.body)

        do_PUT = do_POST = do_DELETE = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Keep standard error clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_collection_with_another_distance_function_is_refused(run_cli: RunCli, tmp_path: Path) -> None:
    with qdrant_server() as server:
        known = ("--batch", "--dataset", "identity-01", "--limit", 1, "--backend", "rag", "--recording")
        ran = run_cli(*known, tmp_path / "a.sqlite3", "--qdrant-url", server.url)
        assert ran.code == 0, ran.err
        (made,) = server.client.get_collections().collections
        old = server.client.get_collection(made.name).config.params.vectors
        assert isinstance(old, VectorParams)
        server.client.delete_collection(made.name)
        server.client.create_collection(made.name, VectorParams(size=old.size, distance=Distance.DOT))
        ran = run_cli(*known, tmp_path / "b.sqlite3", "--qdrant-url", server.url)
        assert ran.code != 0 and "Traceback" not in ran.err
        assert f"{made.name} compares vectors by Dot, not by cosine" in ran.out + ran.err


def test_an_empty_collection_that_another_program_made_is_refused_and_left(run_cli: RunCli, tmp_path: Path) -> None:
    with qdrant_server() as server:
        known = ("--batch", "--dataset", "identity-01", "--limit", 1, "--backend", "rag", "--recording")
        server.client.create_collection("goodai_ltm_full_history", VectorParams(size=384, distance=Distance.COSINE))
        ran = run_cli(*known, tmp_path / "a.sqlite3", "--qdrant-url", server.url)
        assert ran.code == 4 and "another program made (without" in ran.err, ran
        assert server.client.count("goodai_ltm_full_history").count == 0
        server.client.delete_collection("goodai_ltm_full_history")
        for name in "bc":
            assert run_cli(*known, tmp_path / f"{name}.sqlite3", "--qdrant-url", server.url).code == 0


@pytest.mark.parametrize("what", IMPOSTORS, ids=lambda what: what.name)
def test_a_server_that_is_not_qdrant_is_a_sentence(run_cli: RunCli, tmp_path: Path, what: Impostor) -> None:
    with impostor(what) as url:
        batch = ("--batch", "--dataset", "identity-01", "--backend", "rag", "--recording", tmp_path / "r.sqlite3")
        for command in ((*batch, "--qdrant-url", url), ("doctor", "--qdrant-url", url)):
            ran = run_cli(*command)
            assert ran.code == 4, ran
            assert "Qdrant at 127.0.0.1" in ran.out + ran.err and "Traceback" not in ran.err
        ran = run_cli("doctor", "--clean", "--qdrant-url", url)
        assert ran.code == 4 and "Qdrant at 127.0.0.1" in ran.err


AGENT_REPLIES = (
    (b"<!DOCTYPE html><html><body>Welcome", "web page"),
    (b"   <html>", "web page"),
    (b"", "empty"),
    (b'{"reply": ""}', "empty"),
    (b'{"reply": "  "}', "empty"),
    (b'{"reply": null}', "contains no text"),
    (b"[]", "contains no text"),
    (b"5", "contains no text"),
)


@pytest.mark.parametrize(("body", "reason"), AGENT_REPLIES)
def test_what_is_no_answer_of_an_agent_is_an_error_with_its_reason(
    run_cli: RunCli, tmp_path: Path, body: bytes, reason: str
) -> None:
    output = tmp_path / "r.json"
    with impostor(Impostor("agent", body)) as url:
        agent = f"{url}/run_turn"
        ran = run_cli(
            "--batch", "--dataset", "identity-01", "--limit", 1, "--backend", agent,
            "--recording", tmp_path / "r.sqlite3", "--output", output,
        )  # fmt: skip
    assert ran.code == 3, ran.err
    (row,) = json.loads(output.read_text())["questions"]
    assert row["outcome"] == "error" and reason in row["error"]


@pytest.mark.parametrize("reply", ["Nor\\ud83dway", "Nor\\u0000way"])
def test_a_reply_of_an_agent_that_cannot_be_stored_costs_nothing_else(
    run_cli: RunCli, tmp_path: Path, reply: str
) -> None:
    with impostor(Impostor("agent", f'{{"reply": "{reply}"}}'.encode())) as url:
        ran = run_cli(
            "--batch", "--dataset", "identity-01", "--limit", 1, "--backend", f"{url}/run_turn",
            "--recording", tmp_path / "r.sqlite3", "--output", tmp_path / "r.json",
        )  # fmt: skip
    assert ran.code == 0, ran.err


def test_a_cache_that_cannot_be_written_is_a_warning(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with OpenAIServer([answer("Norway")]) as server:
        ran = run_cli(
            "--batch", "--dataset", "identity-01", "--limit", 1, "--backend", "rag", "--model", "openai/stub",
            "--api-base", server.url, "--recording", tmp_path / "r.sqlite3",
        )  # fmt: skip
    assert ran.code == 0, ran.err
    assert ran.err.count("the reply cache cannot be used; continuing without it") == 1
