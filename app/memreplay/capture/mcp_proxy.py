"""A proxy between an MCP client and a memory server: bytes pass through both ways, tool calls go into the journal.

It speaks stdio: its own standard input and output are the client, the server is its child. Whatever cannot be
read as a message is passed on all the same.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from memreplay.capture.journal import Journal
from memreplay.capture.operations import decoded

_CHUNK: Final = 65_536
_LONGEST_LINE: Final = 16 * 2**20
"""A longer line is passed on, and not read."""
_MOST_PENDING: Final = 10_000
_LONGEST_ERROR: Final = 1_000
_SECONDS_FOR_THE_REST: Final = 2.0
"""How long to wait for output after the server's death: a process that it started may still hold the pipe."""

_FORWARDED: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
)


def run_mcp_proxy(command: list[str], journal: Journal) -> int:
    """Run a memory server behind this process's standard input and output; return the server's exit code.

    A server that a signal ended has 128 + the signal's number, as in a shell. The journal is not closed.

    Raises:
        OSError: the server cannot be started.
    """
    calls = ToolCalls(journal, Path(command[0]).name)
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    # The pipe to the server stays open when it is dead: its number must not become that of another file while the
    # thread still reads what the client sends.
    threading.Thread(target=_serve_client, args=(server, calls), name="mcp-client", daemon=True).start()
    back = threading.Thread(target=_serve_server, args=(server, calls), name="mcp-server", daemon=True)
    back.start()
    with _forwarding_signals(server):
        code = server.wait()
    back.join(_SECONDS_FOR_THE_REST)
    calls.ended()
    return code if code >= 0 else 128 - code


def _serve_client(server: subprocess.Popen[bytes], calls: ToolCalls) -> None:
    """Pass on what the client sends, until it closes its side."""
    assert server.stdin is not None
    lines = Lines(calls.sent, calls.unread)
    with suppress(OSError):
        while chunk := os.read(0, _CHUNK):
            # First noted, since the answer may come while this thread rests; that takes no writing to disk.
            lines.add(chunk)
            _write(server.stdin.fileno(), chunk)
        lines.end()
    with suppress(OSError):
        server.stdin.close()


def _serve_server(server: subprocess.Popen[bytes], calls: ToolCalls) -> None:
    """Pass on what the server sends, first of all, and note it."""
    assert server.stdout is not None
    lines = Lines(calls.received, calls.unread)
    try:
        while chunk := os.read(server.stdout.fileno(), _CHUNK):
            _write(1, chunk)
            lines.add(chunk)
        lines.end()
    except OSError:
        # The client is gone: the server learns it when it writes, as it would without a proxy.
        server.stdout.close()


def _write(target: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(target, rest) :]


@contextmanager
def _forwarding_signals(server: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leave it to the server how it ends: what this process is told to do, the server is told."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def forward(number: int, frame: object) -> None:
        with suppress(OSError):
            server.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Lines:
    """Cuts what passes into lines. Neither function it calls may raise, and nothing here does."""

    def __init__(self, line: Callable[[bytes], None], unread: Callable[[], None]) -> None:
        self._line = line
        self._unread = unread
        self._start = bytearray()
        self._is_too_long = False

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            self._grow(piece)
            self.end()
        self._grow(rest)

    def end(self) -> None:
        """End a line."""
        line, self._start = bytes(self._start), bytearray()
        if self._is_too_long:
            self._is_too_long = False
            self._unread()
        elif line.strip():
            self._line(line)

    def _grow(self, piece: bytes) -> None:
        if self._is_too_long or len(self._start) + len(piece) > _LONGEST_LINE:
            self._is_too_long = True
            self._start.clear()
        else:
            self._start += piece


class _Call(NamedTuple):
    tool: str
    arguments: Any
    at: float
    began: float


class ToolCalls:
    """Pairs the requests of a client with the replies of the server, and notes the tool calls among them."""

    def __init__(self, journal: Journal, name: str) -> None:
        self._journal = journal
        self._memory = name
        self._lock = threading.Lock()
        self._pending: dict[bytes, _Call] = {}
        self._greetings: set[bytes] = set()
        self._unread = 0

    @property
    def memory(self) -> str:
        """Return the name of the server, once it has said it."""
        return self._memory

    def sent(self, line: bytes) -> None:
        """Read a line of the client."""
        for message in self._messages(line):
            method, params = message.get("method"), message.get("params")
            params = params if isinstance(params, dict) else {}
            if method == "notifications/cancelled" and "requestId" in params:
                self._finish(_key(params["requestId"]), error="cancelled by the client")
            elif method == "initialize" and "id" in message:
                self._greetings = {_key(message["id"])}
            elif method == "tools/call" and "id" in message:
                self._begin(_key(message["id"]), params)

    def received(self, line: bytes) -> None:
        """Read a line of the server."""
        for message in self._messages(line):
            if "method" in message or "id" not in message:
                continue
            key, result, error = _key(message["id"]), message.get("result"), message.get("error")
            if key in self._greetings:
                self._greetings.discard(key)
                self._memory = _server_name(result) or self._memory
            elif error is not None:
                self._finish(key, error=_rpc_error(error))
            elif isinstance(result, dict) and result.get("isError") is True:
                self._finish(key, error=str(_content(result))[:_LONGEST_ERROR] or "the tool failed")
            else:
                self._finish(key, result=_content(result))

    def unread(self) -> None:
        """Count a line that was passed on and could not be read."""
        with self._lock:
            self._unread += 1

    def unanswered(self, line: bytes, why: str) -> None:
        """Note that the requests in a line of the client get no answer."""
        with suppress(ValueError):
            read = orjson.loads(line)
            for message in read if isinstance(read, list) else [read]:
                if isinstance(message, dict) and "id" in message:
                    self._finish(_key(message["id"]), error=why)

    def ended(self) -> None:
        """Note what was never answered, and how much could not be read."""
        for key in list(self._pending):
            self._finish(key, error="the server ended before it answered")
        if self._unread:
            self._journal.note("lost", time.time(), {"count": self._unread, "why": "no message of JSON-RPC"})
            lines = "1 line was" if self._unread == 1 else f"{self._unread:,} lines were"
            sys.stderr.write(f"memreplay: {lines} passed on that could not be read as a message of MCP\n")

    def _messages(self, line: bytes) -> list[dict[str, Any]]:
        """Return the messages of a line: one, or those of a batch."""
        try:
            read = orjson.loads(line)
        except ValueError:
            self.unread()
            return []
        messages = read if isinstance(read, list) else [read]
        if not all(isinstance(message, dict) for message in messages):
            self.unread()
        return [message for message in messages if isinstance(message, dict)]

    def _begin(self, key: bytes, params: Mapping[str, Any]) -> None:
        call = _Call(str(params.get("name")), params.get("arguments"), time.time(), time.perf_counter())
        with self._lock:
            too_many = len(self._pending) >= _MOST_PENDING
            oldest = next(iter(self._pending)) if too_many else None
        if oldest is not None:
            self._finish(oldest, error="not answered while 10,000 others were asked")
        with self._lock:
            self._pending[key] = call

    def _finish(self, key: bytes, result: Any = None, error: str | None = None) -> None:
        with self._lock:
            call = self._pending.pop(key, None)
        if call is None:
            return
        ms = (time.perf_counter() - call.began) * 1000
        body = {
            "library": None,
            "memory": self._memory,
            "method": call.tool,
            "arguments": call.arguments if isinstance(call.arguments, dict) else {},
            "result": result,
            "error": error,
            "ms": round(ms, 3),
        }
        self._journal.note("mcp", call.at, body)


def _key(id_: Any) -> bytes:
    """Return the id of a request as a key: 1 and "1" are two."""
    return orjson.dumps(id_)


def _server_name(result: Any) -> str | None:
    info = result.get("serverInfo") if isinstance(result, dict) else None
    name = info.get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) and name.strip() else None


def _rpc_error(error: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return str(message)[:_LONGEST_ERROR] or "the server answered with an error"


def _content(result: Any) -> Any:
    """Return what a tool returned: its structured content, else its texts, decoded where they are JSON."""
    if not isinstance(result, dict):
        return result
    if result.get("structuredContent") is not None:
        return result["structuredContent"]
    blocks = result.get("content")
    if not isinstance(blocks, list):
        return result
    texts = [
        decoded(block["text"]) if isinstance(block, dict) and isinstance(block.get("text"), str) else block
        for block in blocks
    ]
    return texts[0] if len(texts) == 1 else texts
