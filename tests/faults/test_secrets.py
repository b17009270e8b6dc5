"""Keys planted wherever a user can put one, against servers that echo all they are sent: no artefact holds one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

import pytest

from memreplay.batch.writers import RENDERERS
from memreplay.paths import cache_folder
from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY

SECRETS = {
    "OPENAI_API_KEY": "sk-proj-0123456789abcdefABCDEF",
    "ANTHROPIC_API_KEY": "plainlettersonlyinthiskey",
    "AZURE_API_KEY": "with spaces/and+signs=ä",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "MEMREPLAY_AGENT_TOKEN": "kiwi",
    "MEMREPLAY_SERVE_TOKEN": "serve-0123456789",
    "MEMREPLAY_QDRANT_API_KEY": 'qdrant:key\\with"quotes',
}
REDIS_PASSWORD = "redis%2Fpass-word"


class _Echo(BaseHTTPRequestHandler):
    """Answers every request with its headers and body, as a reply, an error or a page."""

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        sent = f"{self.path} {dict(self.headers)} {self.rfile.read(length).decode('utf-8', 'replace')[:300]}"
        if "chat/completions" in self.path:
            message = {"role": "assistant", "content": f"You sent {sent}"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            body = {"id": "x", "object": "chat.completion", "created": 0, "model": sent, "choices": [choice]}
            status = 400 if self.server.errors else 200  # type: ignore[attr-defined]
            if status == 400:
                body = {"error": {"message": sent, "type": sent, "code": None}}
        else:
            body, status = {"reply": sent, "error": sent, "result": sent, "status": sent}, 200
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = _answer

    def log_message(self, format: str, *args: Any) -> None:
        """Keep standard error clean."""


@pytest.fixture
def echo() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    server.errors = False  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def _shapes(secret: str) -> set[bytes]:
    """A secret as it may be written: raw, in JSON, in a URL, in base64."""
    shapes = {secret, json.dumps(secret)[1:-1], quote(secret), quote(secret, safe="")}
    return {shape.encode() for shape in shapes} | {b64encode(secret.encode())}


def _leaks(folder: Path, said: str, secrets: dict[str, str]) -> list[str]:
    """Where a secret stands: in a file of the folder or of the machine, whatever it is, or in what was printed."""
    machine = Path(os.environ["XDG_CACHE_HOME"]).parent
    files = (path for below in (folder, machine) for path in below.rglob("*") if path.is_file())
    places = {str(path): path.read_bytes() for path in files}
    places["printed"] = said.encode("utf-8", "surrogatepass")
    return [
        f"{name} in {place}"
        for name, secret in secrets.items()
        for shape in _shapes(secret)
        for place, data in places.items()
        if shape in data and not place.endswith("config.toml")
    ]


def test_no_artefact_holds_a_key(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, echo: ThreadingHTTPServer
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    config = tmp_path / "config.toml"
    config.write_text(f'redis_url = "redis://me:{REDIS_PASSWORD}@127.0.0.1:1/0"\n')
    url = f"http://127.0.0.1:{echo.server_address[1]}"
    recording = tmp_path / "r.sqlite3"
    outputs = [part for end in (*RENDERERS, ".x.md") for part in ("--output", tmp_path / f"out{end}")]
    batch = ("--batch", "--dataset", "identity-01", "--limit", 1, "--recording", recording)
    agent = ("--backend", f"{url}/run_turn", "--backend", "closed_book")
    model = ("--model", "openai/stub", "--api-base", f"{url}/v1")
    commands: list[tuple[object, ...]] = [
        (*batch, *agent, *model, *outputs),
        ("report", recording),
        ("report", recording, "--output", tmp_path / "report.html"),
        ("export", recording, "--html", tmp_path / "replay.html", "--cast", tmp_path / "replay.cast"),
        ("recordings", "show", recording),
        ("compare", recording, recording),
        (*batch, "--backend", "rag", "--qdrant-url", f"http://me:{SECRETS['OPENAI_API_KEY']}@{url[7:]}"),
        ("doctor", "--qdrant-url", url, *model, "--backend", f"{url}/run_turn"),
        ("doctor", "--qdrant-url", url, "--clean"),
        ("serve-backend", "none"),
    ]
    said = ""
    for errors in (False, True):
        echo.errors = errors  # type: ignore[attr-defined]
        for command in commands:
            ran = run_cli(*command)
            said += ran.out + ran.err
            assert "Traceback" not in ran.err, command
    monkeypatch.setenv("MEMREPLAY_CONFIG", str(config))
    for command in (("doctor",), (*batch, "--backend", "full_context")):
        ran = run_cli(*command)
        assert ran.code == 4 and "Redis at 127.0.0.1:1" in ran.out + ran.err
        said += ran.out + ran.err
    assert recording.exists() and (tmp_path / "out.json").exists()
    assert "You sent" in (tmp_path / "out.json").read_text(), "the model's reply is in the results"
    for name in ("report.html", "replay.html", "replay.cast"):
        assert (tmp_path / name).exists(), f"{name} is among what is searched"
    secrets = {**SECRETS, "redis password": REDIS_PASSWORD, "redis password, decoded": "redis/pass-word"}
    assert (cache_folder() / "replies.sqlite3").exists(), "the cache is among what is searched"
    assert _leaks(tmp_path, said, secrets) == []


READS_ENV_FILES = """
import os
from memory_backends.adapters.library import require
from memreplay.llm.litellm_setup import loaded_litellm

loaded_litellm()
try:
    require("graphiti_core", "graphiti")
except Exception:
    pass
else:
    from memory_backends.adapters.graphiti import _imported

    _imported()
print(os.environ.get("OPENAI_BASE_URL"))
"""


def test_no_library_takes_an_address_from_the_env_file_of_a_project(tmp_path: Path) -> None:
    """In a process of its own, since libraries read such a file when they are first imported."""
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=https://evil.example/v1\n")
    paths = os.pathsep.join(str(REPOSITORY / folder) for folder in ("app", "."))
    own = {name: value for name, value in os.environ.items() if name not in ("OPENAI_BASE_URL", "LITELLM_MODE")}
    ran = subprocess.run(
        [sys.executable, "-c", READS_ENV_FILES],
        cwd=tmp_path,
        env={**own, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout) == (0, "None\n"), ran.stderr
