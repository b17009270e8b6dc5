"""A Qdrant server on the loopback, as far as the knowledge store calls one: REST in front of an in-memory client.

It answers what a server would, tenants' filters and all, and keeps what was asked for, so that a test can see the
requests themselves. No Qdrant server can be installed where the tests run.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from weakref import WeakKeyDictionary

from qdrant_client import QdrantClient, models


@dataclass
class QdrantServerStub:
    """What the stub holds and has been asked. ``failures`` are status codes for the next requests, in order.

    While it ``is_read_only`` it forbids to write, as a server does to a key for reading.
    """

    api_key: str | None = None
    client: QdrantClient = field(default_factory=lambda: QdrantClient(":memory:"))
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    url: str = ""
    is_read_only: bool = False

    def answer(self, method: str, path: str, body: Any) -> Any:
        """The ``result`` of a request; KeyError where the stub knows no such call."""
        parts = path.strip("/").split("/")
        if parts == ["collections"]:
            return {"collections": [{"name": c.name} for c in self.client.get_collections().collections]}
        name, call = parts[1], "/".join(parts[2:])
        return _CALLS[method, call](self.client, name, body)


def _create(client: QdrantClient, name: str, body: Any) -> Any:
    return client.create_collection(name, vectors_config=models.VectorParams(**body["vectors"]))


_indexes: WeakKeyDictionary[QdrantClient, dict[str, dict[str, Any]]] = WeakKeyDictionary()
"""Indexes of collections, which a client in memory does not keep."""


def _index(client: QdrantClient, name: str, body: Any) -> Any:
    _indexes.setdefault(client, {}).setdefault(name, {})[body["field_name"]] = body["field_schema"]
    return _DONE


def _described(client: QdrantClient, name: str, body: Any) -> Any:
    indexes = _indexes.get(client, {}).get(name, {})
    schema = {
        field: {"data_type": params["type"], "params": params, "points": 0} for field, params in indexes.items()
    }
    return client.get_collection(name).model_dump(mode="json") | {"payload_schema": schema}


def _drop(client: QdrantClient, name: str, body: Any) -> Any:
    _indexes.get(client, {}).pop(name, None)
    return client.delete_collection(name)


def _upsert(client: QdrantClient, name: str, body: Any) -> Any:
    client.upsert(name, points=[models.PointStruct(**point) for point in body["points"]])
    return _DONE


def _query(client: QdrantClient, name: str, body: Any) -> Any:
    request = models.QueryRequest(**body)
    return client.query_points(
        name,
        query=request.query,
        limit=request.limit,
        query_filter=request.filter,
        with_payload=request.with_payload,
        with_vectors=bool(request.with_vector),
    )


def _scroll(client: QdrantClient, name: str, body: Any) -> Any:
    request = models.ScrollRequest(**body)
    points, offset = client.scroll(
        name,
        scroll_filter=request.filter,
        limit=request.limit,
        offset=request.offset,
        with_payload=request.with_payload,
        with_vectors=request.with_vector,
    )
    return models.ScrollResult(points=points, next_page_offset=offset)


def _retrieve(client: QdrantClient, name: str, body: Any) -> Any:
    return client.retrieve(name, ids=body["ids"], with_payload=True)


def _set_payload(client: QdrantClient, name: str, body: Any) -> Any:
    client.set_payload(name, payload=body["payload"], points=body["points"])
    return _DONE


def _delete(client: QdrantClient, name: str, body: Any) -> Any:
    client.delete(name, points_selector=body["points"])
    return _DONE


def _count(client: QdrantClient, name: str, body: Any) -> Any:
    request = models.CountRequest(**body)
    return client.count(name, count_filter=request.filter, exact=bool(request.exact))


_DONE = {"operation_id": 1, "status": "completed"}

_CALLS: dict[tuple[str, str], Callable[[QdrantClient, str, Any], Any]] = {
    ("GET", "exists"): lambda client, name, body: {"exists": client.collection_exists(name)},
    ("GET", ""): _described,
    ("PUT", ""): _create,
    ("DELETE", ""): _drop,
    ("PUT", "index"): _index,
    ("PUT", "points"): _upsert,
    ("POST", "points"): _retrieve,
    ("POST", "points/query"): _query,
    ("POST", "points/scroll"): _scroll,
    ("POST", "points/payload"): _set_payload,
    ("POST", "points/delete"): _delete,
    ("POST", "points/count"): _count,
}


def _jsonable(result: Any) -> Any:
    if isinstance(result, list):
        return [_jsonable(each) for each in result]
    return result.model_dump(mode="json") if hasattr(result, "model_dump") else result


def _handler(stub: QdrantServerStub, lock: threading.Lock) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.loads(raw) if raw else None
            path = self.path.split("?")[0]
            with lock:
                stub.requests.append((self.command, path, body))
                if stub.failures:
                    self._reply(stub.failures.pop(0), {"status": {"error": "as the test wished"}})
                elif stub.api_key is not None and self.headers.get("api-key") != stub.api_key:
                    self._reply(401, {"status": {"error": "Must provide an API key"}})
                elif stub.is_read_only and (self.command in ("PUT", "DELETE") or path.endswith("/delete")):
                    self._reply(403, {"status": {"error": "Forbidden: Global write access is required"}})
                else:
                    self._answer(path, body)

        do_GET = do_PUT = do_POST = do_DELETE = _serve

        def _answer(self, path: str, body: Any) -> None:
            try:
                result = _jsonable(stub.answer(self.command, path, body))
            except ValueError as error:
                if "not found" not in str(error):
                    raise
                self._reply(404, {"status": {"error": f"Not found: {error}"}})
            else:
                self._reply(200, {"result": result, "status": "ok", "time": 0.001})

        def _reply(self, status: int, body: Any) -> None:
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    return Handler


@contextmanager
def qdrant_server(api_key: str | None = None) -> Iterator[QdrantServerStub]:
    """A server for the length of the block."""
    stub = QdrantServerStub(api_key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(stub, threading.Lock()))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        stub.client.close()
