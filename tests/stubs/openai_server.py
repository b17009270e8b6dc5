"""A loopback server that speaks OpenAI's chat API, for tests of the network path. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any

Answer = dict[str, Any]
"""What a behaviour returns: the keyword arguments of :func:`answer`, already applied."""


def answer(
    text: str | None = "0",
    *,
    finish_reason: str = "stop",
    refusal: str | None = None,
    prompt_tokens: int = 100,
    completion_tokens: int = 1,
    cached_tokens: int = 0,
) -> Answer:
    """A well-formed reply."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }
    body = {
        "id": "stub",
        "object": "chat.completion",
        "created": 0,
        "model": "stub",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": usage,
    }
    return {"status": 200, "headers": {}, "body": json.dumps(body)}


def embeddings(vectors: list[list[float]]) -> Answer:
    """Vectors in reverse order: each names its place, and its place is what counts."""
    data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
    body = {
        "object": "list",
        "model": "stub",
        "data": data[::-1],
        "usage": {"prompt_tokens": 4, "total_tokens": 4},
    }
    return {"status": 200, "headers": {}, "body": json.dumps(body)}


def rerankings(scores: list[float], *, searches: int | None = 1) -> Answer:
    """Scores as Cohere words them, best first: each names the place of its text."""
    results = [{"index": place, "relevance_score": score} for place, score in enumerate(scores)]
    body = {
        "id": "stub",
        "results": sorted(results, key=lambda result: -result["relevance_score"]),
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": searches}},
    }
    return {"status": 200, "headers": {}, "body": json.dumps(body)}


def failure(status: int, message: str = "no", *, retry_after: str | None = None, code: str | None = None) -> Answer:
    """An error as OpenAI words it."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    body = {"error": {"message": message, "type": "error", "code": code, "param": None}}
    return {"status": status, "headers": headers, "body": json.dumps(body)}


def broken_body() -> Answer:
    """A success whose body is no JSON."""
    return {"status": 200, "headers": {}, "body": "<html>oops"}


def hang() -> Answer:
    """No reply until the server is closed."""
    return {"hang": True}


@dataclass
class Received:
    """One request, as it came; names of headers in lower case."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        """The text of all messages."""
        return "\n".join(message["content"] for message in self.body["messages"])


Behaviour = Callable[[Received], Answer]


@dataclass
class OpenAIServer:
    """Serves while its ``with`` block lasts. ``behaviour`` makes each reply; ``requests`` keeps what was asked.

    A list of answers is given out one by one, the last of them for ever.
    """

    behaviour: Behaviour | list[Answer] = field(default_factory=lambda: [answer()])
    requests: list[Received] = field(default_factory=list)
    port: int = 0
    """Where it listens; 0 is any free port."""

    def __enter__(self) -> OpenAIServer:
        self._closing, self._one_by_one = Event(), Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """What goes to ``--api-base``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def _next(self, received: Received) -> Answer:
        with self._one_by_one:
            self.requests.append(received)
            number = len(self.requests)
        if callable(self.behaviour):
            return self.behaviour(received)
        return self.behaviour[min(number, len(self.behaviour)) - 1]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length))
                reply = server._next(
                    Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                )
                if reply.get("hang"):
                    server._closing.wait()
                    return
                body = reply["body"]
                payload = body if isinstance(body, bytes) else body.encode()
                self.send_response(reply["status"])
                for name, value in {"Content-Type": "application/json", **reply["headers"]}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                with suppress(ConnectionError):  # the client reads no further
                    self.wfile.write(payload)

            def log_message(self, format: str, *args: Any) -> None:
                """Keep standard error clean."""

        return Handler
