"""The proxy between an MCP client and a memory server, with servers and clients that misbehave."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import pytest

from memreplay.capture.journal import JournalReader, Note
from memreplay.capture.operations import NoteReader
from tests.conftest import REPOSITORY

STUBS = REPOSITORY / "tests" / "stubs"
NOTES = [sys.executable, "-S", "-E", str(STUBS / "plain_mcp_server.py")]
PROXY = """
import sys
from pathlib import Path
from memreplay.capture.journal import Journal
from memreplay.capture.mcp_proxy import run_mcp_proxy
journal = Journal(Path(sys.argv[1]))
code = run_mcp_proxy(sys.argv[2:], journal)
journal.close()
sys.exit(code)
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{REPOSITORY / 'app'}"}


def proxied(recording: Path, command: list[str]) -> list[str]:
    return [sys.executable, "-c", PROXY, str(recording), *command]


def started(recording: Path, command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        proxied(recording, command),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT,
    )  # fmt: skip


def call(id_: object, tool: str, **arguments: object) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}).encode() + b"\n"


GREETING = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
HELLO = json.dumps(GREETING).encode() + b"\n"


def echoing(reply: str) -> list[str]:
    """A server that answers each line with what a piece of Python makes of it."""
    return [sys.executable, "-S", "-E", "-u", "-c", f"import sys, json\nfor line in sys.stdin.buffer:\n    {reply}"]


def notes_of(recording: Path) -> list[Note]:
    reader = JournalReader(recording)
    try:
        return reader.after()
    finally:
        reader.close()


def pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def test_calls_are_noted_with_their_results_and_read_as_operations(tmp_path: Path) -> None:
    recording = tmp_path / "agent.sqlite3"
    lines = HELLO + call(1, "add_memory", text="Marta works at Nimbus Labs")
    lines += call("1", "search_memories", query="Where does Marta work?", limit=2) + call(2, "list_memories")
    direct = subprocess.run([*NOTES, str(tmp_path / "direct.json")], input=lines, capture_output=True)
    with started(recording, [*NOTES, str(tmp_path / "notes.json")]) as proxy:
        out, err = proxy.communicate(lines, timeout=30)
    assert (proxy.returncode, err) == (0, b"") and out == direct.stdout, "not a byte differs"
    added, found, listed = notes_of(recording)
    assert {note.source for note in (added, found, listed)} == {"mcp"}
    assert {**added.body, "ms": 0} == {
        "library": None, "memory": "notes", "method": "add_memory",
        "arguments": {"text": "Marta works at Nimbus Labs"},
        "result": "\"kept\"", "error": None, "ms": 0,
    }  # fmt: skip
    assert found.body["result"] == [{"memory": "Marta works at Nimbus Labs", "score": 1}]
    assert 0 <= found.body["ms"] < 10_000 and abs(found.at - time.time()) < 60
    operations = list(NoteReader(recording).operations([added, found, listed]))
    assert [(each.kind, [item.text for item in each.items]) for each in operations] == [
        (kind, ["Marta works at Nimbus Labs"]) for kind in ("write", "read", "list")
    ]
    assert operations[1].query == "Where does Marta work?"


def test_malformed_lines_pass_through_and_are_counted(tmp_path: Path) -> None:
    recording = tmp_path / "agent.sqlite3"
    lines = b"not json\n\xff\xfe\n\n[1]\n" + b"x" * (17 * 2**20) + b"\n" + call(1, "add_memory") + b"no end"
    with started(recording, ["cat"]) as proxy:
        out, err = proxy.communicate(lines, timeout=60)
    assert out == lines and proxy.returncode == 0
    *_, lost = notes_of(recording)
    assert (lost.source, lost.body["count"]) == ("lost", 10), "five lines, in both directions"
    assert b"10 lines were passed on that could not be read" in err


def test_a_line_is_passed_on_while_the_client_waits(tmp_path: Path) -> None:
    with started(tmp_path / "agent.sqlite3", ["cat"]) as proxy:
        took = []
        for part in (b'{"half": ', b'"a line"}\n') * 20:
            began = time.perf_counter()
            pipe(proxy.stdin).write(part)
            pipe(proxy.stdin).flush()
            assert os.read(pipe(proxy.stdout).fileno(), 1000) == part
            took.append(time.perf_counter() - began)
        assert sorted(took)[len(took) // 2] < 0.1
        pipe(proxy.stdin).close()
        assert proxy.wait(30) == 0


def answering(reply: str) -> str:
    return f'sys.stdout.write(json.dumps({{"id": json.loads(line)["id"], {reply}}}) + "\\n")'


ERROR = answering('"error": {"code": -1, "message": "no room"}')
FAILED = answering('"result": {"isError": True, "content": [{"type": "text", "text": "no such user"}]}')
STRUCTURED = answering(
    '"result": {"content": [{"type": "text", "text": "x"}],'
    ' "structuredContent": {"result": [{"id": "a", "text": "b"}]}}'
)
TWO = answering(
    '"result": {"content": [{"type": "text", "text": "[{\\"a\\": 1}]"}, {"type": "text", "text": "b"}]}'
)


@pytest.mark.parametrize(
    ("reply", "result", "error"),
    [
        (ERROR, None, "no room"),
        (FAILED, None, "no such user"),
        (STRUCTURED, {"result": [{"id": "a", "text": "b"}]}, None),
        (TWO, [[{"a": 1}], "b"], None),
        ("sys.exit(7)", None, "the server ended before it answered"),
    ],
)
def test_results_and_errors_are_noted_as_they_are(
    tmp_path: Path, reply: str, result: Any, error: str | None
) -> None:
    recording = tmp_path / "agent.sqlite3"
    with started(recording, echoing(reply)) as proxy:
        proxy.communicate(call(1, "search"), timeout=30)
    [note] = notes_of(recording)
    assert (note.body["result"], note.body["error"]) == (result, error)
    assert note.body["memory"] == Path(sys.executable).name, "it has not said its name"
    assert proxy.returncode == (7 if "exit" in reply else 0)


def test_a_cancelled_call_is_noted_once(tmp_path: Path) -> None:
    recording = tmp_path / "agent.sqlite3"
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    with started(recording, echoing("pass")) as proxy:
        proxy.communicate(call(1, "search") + json.dumps(cancelled).encode() + b"\n", timeout=30)
    [note] = notes_of(recording)
    assert note.body["error"] == "cancelled by the client"


def test_a_server_that_dies_ends_the_proxy_though_the_client_waits_and_a_child_holds_its_output(
    tmp_path: Path,
) -> None:
    left = "import subprocess, sys; subprocess.Popen(['sleep', '20']); sys.exit(3)"
    with started(tmp_path / "agent.sqlite3", [sys.executable, "-c", left]) as proxy:
        assert proxy.wait(15) == 3
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with started(tmp_path / "agent.sqlite3", [sys.executable, "-c", killed]) as proxy:
        assert proxy.wait(15) == 128 + signal.SIGKILL


def test_what_was_answered_is_on_disk_when_the_proxy_is_killed(tmp_path: Path) -> None:
    recording = tmp_path / "agent.sqlite3"
    with started(recording, [*NOTES, str(tmp_path / "notes.json")]) as proxy:
        for number in range(20):
            pipe(proxy.stdin).write(call(number, "add_memory", text=f"note {number}"))
            pipe(proxy.stdin).flush()
            pipe(proxy.stdout).readline()
        proxy.kill()
    assert len(notes_of(recording)) >= 19, "the last may have been on its way"


def test_a_client_that_is_gone_ends_a_server_that_writes(tmp_path: Path) -> None:
    talks = [sys.executable, "-u", "-c", "import time\nwhile True: print('x'); time.sleep(0.01)"]
    with started(tmp_path / "agent.sqlite3", talks) as proxy:
        pipe(proxy.stdout).readline()
        pipe(proxy.stdout).close()
        assert proxy.wait(15) == 1, "a broken pipe"


def test_a_termination_reaches_the_server(tmp_path: Path) -> None:
    patient = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(5));"
        "print(flush=True); time.sleep(60)"
    )
    with started(tmp_path / "agent.sqlite3", [sys.executable, "-c", patient]) as proxy:
        pipe(proxy.stdout).readline()
        proxy.terminate()
        assert proxy.wait(15) == 5


@pytest.mark.skipif(find_spec("mcp") is None, reason="mcp is not installed")
async def test_the_official_client_and_server_talk_through_it(tmp_path: Path) -> None:
    import mcp

    recording = tmp_path / "agent.sqlite3"
    command = proxied(recording, [sys.executable, str(STUBS / "mcp_server.py"), str(tmp_path / "notes.json")])
    how = mcp.StdioServerParameters(command=command[0], args=command[1:], env=ENVIRONMENT)
    async with mcp.stdio_client(how) as streams, mcp.ClientSession(*streams) as session:
        await session.initialize()
        await session.call_tool("add_memory", {"text": "Marta works at Nimbus Labs"})
        await session.call_tool("search_memories", {"query": "Marta", "limit": 3})
    operations = list(NoteReader(recording).operations(notes_of(recording)))
    assert [(each.memory, each.kind) for each in operations] == [("notes", "write"), ("notes", "read")]
    assert [item.text for item in operations[1].items] == ["Marta works at Nimbus Labs"]
