"""A memory as a service, with the standard library alone: ``python http_memory_server.py [PORT]``.

Used as ``--backend http-memory:URL``. Every exchange is an item, found again by the words that it shares with the
question.
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

LABELS = {"user": "User", "assistant": "AI"}
kept: dict[str, list[dict[str, Any]]] = {}


def answer(path: str, asked: dict[str, Any]) -> dict[str, Any] | None:
    items = kept.setdefault(asked["session"], [])
    match path:
        case "/add":
            lines = [f"{said.get('name') or LABELS[said['role']]}: {said['content']}" for said in asked["messages"]]
            ids = [said["id"] for said in asked["messages"]]
            item = {"id": ids[0], "text": "\n".join(lines), "message_ids": ids}
            kept[asked["session"]] = [each for each in items if each["id"] != item["id"]] + [item]
        case "/search":
            scored = [item | {"score": shared(asked["query"], item["text"])} for item in items]
            scored.sort(key=lambda item: item["score"], reverse=True)
            return {"hits": [item for item in scored if item["score"]][: asked["top_k"]]}
        case "/items":
            return {"items": items}
        case "/reset":
            del kept[asked["session"]]
        case _:
            return None
    return {}


def shared(one: str, other: str) -> int:
    return len(set(re.findall(r"\w+", one.lower())) & set(re.findall(r"\w+", other.lower())))


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def do_GET(self) -> None:
        self.reply({name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()})

    def reply(self, asked: dict[str, Any]) -> None:
        found = answer(urlsplit(self.path).path, asked)
        body = json.dumps(found).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *said: object) -> None:
        """Stay silent."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 8765), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
