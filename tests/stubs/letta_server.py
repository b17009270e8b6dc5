"""A Letta server as its API is documented: agents with memory blocks and passages. Its model is a function."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class StubAgent:
    name: str
    blocks: dict[str, str]
    passages: dict[str, str] = field(default_factory=dict)
    system: str | None = None


@dataclass
class LettaStub:
    """``key`` is asked of every request, if set."""

    key: str | None = None
    agents: dict[str, StubAgent] = field(default_factory=dict)
    made: int = 0
    url: str = ""

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        if path == "/v1/agents/":
            if method == "GET":
                return 200, [{"id": id_} for id_, each in self.agents.items() if each.name == query.get("name")]
            self.made += 1
            blocks = {block["label"]: block["value"] for block in body["memory_blocks"]}
            self.agents[f"agent-{self.made}"] = StubAgent(body["name"], blocks, system=body.get("system"))
            return 200, {"id": f"agent-{self.made}"}
        if path == "/v1/agents/import":
            ids = []
            for agent in body["file"]["agents"]:
                self.made += 1
                ids.append(f"agent-{self.made}")
                blocks = {block["label"]: block["value"] for block in body["file"]["blocks"]}
                self.agents[ids[-1]] = StubAgent(body["name"], blocks, system=agent["system"])
            return 200, {"agent_ids": ids}
        id_, _, resource = path.removeprefix("/v1/agents/").partition("/")
        if id_ not in self.agents:
            return 404, {"detail": "Agent not found"}
        agent = self.agents[id_]
        match method, resource:
            case "DELETE", "":
                del self.agents[id_]
                return 200, None
            case "POST", "archival-memory":
                return 200, [{"id": self._insert(agent, body["text"]), "text": body["text"]}]
            case "GET", "archival-memory":
                return 200, [{"id": id_, "text": text} for id_, text in agent.passages.items()]
            case "GET", "archival-memory/search":
                asked = set(re.findall(r"\w+", query["query"].lower()))
                ranked = sorted(
                    agent.passages.items(), key=lambda item: -len(asked & set(re.findall(r"\w+", item[1].lower())))
                )
                found = ranked[: int(query["top_k"])]
                return 200, {"results": [{"id": id_, "content": text} for id_, text in found], "count": len(found)}
            case "GET", "core-memory/blocks":
                return 200, [{"label": label, "value": value} for label, value in agent.blocks.items()]
            case "PATCH", _ if resource.startswith("core-memory/blocks/"):
                label = resource.rpartition("/")[2]
                agent.blocks[label] = body["value"]
                return 200, {"id": f"block-{label}", "label": label, "value": body["value"]}
            case "POST", "messages":
                said = body.get("input") or body["messages"][0]["content"]
                if name := re.search(r"I am (\w+)", said):
                    agent.blocks["human"] = f"The user is called {name[1]}"
                acted = []
                if place := re.search(r"work at ([A-Z]\w+ \w+)", said):
                    self._insert(agent, f"The user works at {place[1]}")
                    call = {"name": "archival_memory_insert", "arguments": json.dumps({"content": place[1]})}
                    acted.append({"id": "message-3", "message_type": "tool_call_message", "tool_call": call})
                answer = {"id": "message-2", "message_type": "assistant_message", "content": "I see."}
                thought = {"id": "message-1", "message_type": "reasoning_message", "reasoning": "Nothing new."}
                return 200, {
                    "messages": [thought, *acted, answer],
                    "usage": {"prompt_tokens": 40, "completion_tokens": 5},
                }
        return 405, {"detail": "no"}

    def _insert(self, agent: StubAgent, text: str) -> str:
        id_ = f"passage-{len(agent.passages) + 1}"
        agent.passages[id_] = text
        return id_


@contextmanager
def letta_server(key: str | None = None) -> Iterator[LettaStub]:
    stub = LettaStub(key)

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if stub.key is not None and self.headers.get("Authorization") != f"Bearer {stub.key}":
                status, reply = 401, {"detail": "Unauthorized"}
            else:
                status, reply = stub.answer(self.command, parts.path, query, self._parsed(body))
            payload = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def _parsed(self, body: bytes) -> Any:
            """The JSON of a body; of a form its fields, of which "file" is JSON."""
            kind = self.headers.get("Content-Type", "")
            if not kind.startswith("multipart/form-data"):
                return json.loads(body) if body else None
            form = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
            fields: dict[str, Any] = {}
            for part in form.get_payload():
                assert isinstance(part, Message)
                name = str(part.get_param("name", header="content-disposition"))
                fields[name] = part.get_payload(decode=True)
            return {name: json.loads(value) if name == "file" else value.decode() for name, value in fields.items()}

        do_GET = do_POST = do_PATCH = do_DELETE = _serve

        def log_message(self, format: str, *args: Any) -> None:
            """Keep standard error clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
