"""An embedded Qdrant loads a part of its library; everything else stays there for whoever asks for it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import Any

import pytest

EMBEDDED = """
import json, sys
from memory_backends.stores.qdrant_import import embedded_client
store = embedded_client()
"""

USED = """
from qdrant_client.models import Distance, FieldCondition, Filter, MatchValue, PointStruct, VectorParams
store.create_collection("facts", vectors_config=VectorParams(size=2, distance=Distance.COSINE))
points = [PointStruct(id=n, vector=[1.0, float(n)], payload={"kind": ("odd", "even")[n - 1]}) for n in (1, 2)]
store.upsert("facts", points=points)
odd = Filter(must=[FieldCondition(key="kind", match=MatchValue(value="odd"))])
[found] = store.query_points("facts", query=[1.0, 0.5], query_filter=odd).points
assert found.id == 1, found
"""

PACKAGES = "qdrant_client", "qdrant_client.http", "qdrant_client.grpc", "qdrant_client.models"


def run(program: str) -> Any:
    """What a new process prints, as JSON."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_an_embedded_store_loads_neither_the_clients_of_servers_nor_what_they_need() -> None:
    slow = "httpx", "urllib3", "qdrant_client.qdrant_remote", "qdrant_client.async_qdrant_client"
    assert run(f"{EMBEDDED}{USED}print(json.dumps([name for name in {slow} if name in sys.modules]))") == []


def test_the_library_is_complete_after_an_embedded_store_was_opened() -> None:
    """Every name of its packages is what the library itself makes of it."""
    listed = f"""
import importlib, json
packages = [importlib.import_module(name) for name in {PACKAGES}]
from qdrant_client import QdrantClient
from qdrant_client.http import SyncApis
from qdrant_client.grpc import PointsStub
names = {{package.__name__: {{name: repr(value).partition(" at 0x")[0] for name, value in vars(package).items()
         if not name.startswith("__")}} for package in packages}}
print(json.dumps(names))
"""
    after_a_part, at_once = run(EMBEDDED + listed), run(listed)
    for package in PACKAGES:
        assert after_a_part[package].items() >= at_once[package].items()


def test_threads_that_ask_at_once_all_get_the_complete_library() -> None:
    program = f"""{EMBEDDED}
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
ready = Barrier(8)

def ask(_):
    ready.wait()
    from qdrant_client import AsyncQdrantClient
    from qdrant_client.http import AsyncApis
    return AsyncQdrantClient.__name__ + AsyncApis.__name__

print(json.dumps(list(ThreadPoolExecutor(8).map(ask, range(8)))))
"""
    assert run(program) == ["AsyncQdrantClientAsyncApis"] * 8


def test_an_unknown_name_is_an_error_as_usual() -> None:
    program = f"""{EMBEDDED}
import qdrant_client
print(json.dumps([hasattr(qdrant_client, "nothing"), hasattr(qdrant_client.http, "nothing")]))
"""
    assert run(program) == [False, False]


def test_a_star_import_gets_every_name() -> None:
    listed = "from qdrant_client.grpc import *\nimport json\nprint(json.dumps('PointsStub' in globals()))"
    assert run(EMBEDDED + listed)


@pytest.mark.parametrize("used", ["", USED])
def test_all_clients_work_beside_an_embedded_store(used: str) -> None:
    program = f"""{EMBEDDED}{used}
import asyncio
from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException
from qdrant_client.models import Distance, PointStruct, VectorParams

async def ask():
    client = AsyncQdrantClient(":memory:")
    await client.create_collection("a", vectors_config=VectorParams(size=2, distance=Distance.DOT))
    await client.upsert("a", points=[PointStruct(id=1, vector=[1, 2])])
    return [point.id for point in (await client.query_points("a", query=[1.0, 2.0])).points]

assert asyncio.run(ask()) == [1]
assert QdrantClient(":memory:").get_collections().collections == []
for options in ({{}}, {{"prefer_grpc": True}}):
    remote = QdrantClient("http://127.0.0.1:1", check_compatibility=False, timeout=1, **options)
    try:
        remote.get_collections()
    except Exception as error:
        print(json.dumps("refused"), file=sys.stderr)
    else:
        raise AssertionError
assert store.get_collections() is not None
print(json.dumps(VectorParams.model_json_schema()["required"]))
"""
    assert run(program) == ["size", "distance"]


@pytest.mark.skipif(importlib.util.find_spec("mem0") is None, reason="mem0 is not installed")
def test_mem0_keeps_its_vectors_in_a_complete_client_beside_an_embedded_store() -> None:
    program = f"""{EMBEDDED}
from qdrant_client import QdrantClient
from mem0.vector_stores.qdrant import Qdrant
kept = Qdrant(collection_name="m", embedding_model_dims=2, client=QdrantClient(":memory:"))
kept.insert(vectors=[[0.0, 1.0]], payloads=[{{"data": "tea"}}], ids=[1])
print(json.dumps([point.payload["data"] for point in kept.search(query="tea", vectors=[0.0, 1.0], top_k=1)]))
"""
    assert run(program) == ["tea"]


def test_another_release_is_imported_as_it_is() -> None:
    program = f"""
import json, sys
import memory_backends.stores.qdrant_import as qdrant_import
qdrant_import.version = lambda name: "1.19.0"
store = qdrant_import.embedded_client()
{USED}
print(json.dumps("qdrant_client.qdrant_remote" in sys.modules))
"""
    assert run(program)


def test_a_library_that_is_imported_already_is_used_as_it_is() -> None:
    program = f"""
import qdrant_client
before = dict(vars(qdrant_client))
{EMBEDDED}{USED}
print(json.dumps(vars(qdrant_client).items() >= before.items()))
"""
    assert run(program)


def test_models_that_are_declared_later_are_built_at_once() -> None:
    program = f"""{EMBEDDED}
from pydantic import BaseModel
class Later(BaseModel):
    number: int
print(json.dumps([Later.__pydantic_complete__, "defer_build" in BaseModel.model_config]))
"""
    assert run(program) == [True, False]
