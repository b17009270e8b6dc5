"""A service that keeps memories behind a URL, with replies that a test can replace, and its requests noted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Answer = Callable[[str, str, Any], "tuple[int, Any] | None"]
"""Method, path with query, and body of a request, to a status and a reply: JSON, or bytes as they are. None is a
404.
"""


@dataclass
class Service:
    answer: Answer
    url: str = ""
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    more_headers: dict[str, str] = field(default_factory=dict)


@contextmanager
def memory_service(answer: Answer) -> Iterator[Service]:
    service = Service(answer)

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(raw) if raw else None
            service.requests.append((self.command, self.path, body))
            service.headers.append({name.lower(): value for name, value in self.headers.items()})
            status, reply = service.answer(self.command, self.path, body) or (404, {"detail": "no"})
            written = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
            self.send_response(status)
            for name, value in service.more_headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        do_GET = do_POST = do_DELETE = do_PUT = _serve

        def log_message(self, *said: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
