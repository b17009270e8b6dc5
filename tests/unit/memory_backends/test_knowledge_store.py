"""The knowledge store: what it keeps and what it says of it, embedded and over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import numpy as np
import pytest

from memory_backends.base import BackendError, StoreAddressError, StoreUnavailableError
from memory_backends.stores.qdrant import KnowledgeStore, Point, QdrantConnection
from memory_backends.stores.trace import MemoryOperation, MemoryTrace, ReadChange, SearchChange, UpsertChange
from tests.stubs.memory import fold, namespace
from tests.stubs.qdrant_server import QdrantServerStub, qdrant_server

NOTES = "notes"
MINE = namespace("rag", "mine")
THEIRS = namespace("rag", "theirs")


def point(place: int, *, direction: int | None = None, of=MINE, **payload) -> Point:
    vector = np.zeros(4, dtype=np.float32)
    vector[(place if direction is None else direction) % 4] = 1
    return Point(of.point_id("note", place), vector, {"content": f"note {place}", **payload})


@pytest.fixture
def server() -> Iterator[QdrantServerStub]:
    with qdrant_server() as stub:
        yield stub


@pytest.fixture(params=["embedded", "server"])
async def connection(request: pytest.FixtureRequest) -> AsyncIterator[QdrantConnection]:
    if request.param == "embedded":
        connection = QdrantConnection.embedded()
    else:
        connection = QdrantConnection.to(request.getfixturevalue("server").url)
    yield connection
    await connection.aclose()


@pytest.fixture
def trace() -> MemoryTrace:
    return MemoryTrace()


@pytest.fixture
async def store(connection: QdrantConnection, trace: MemoryTrace) -> AsyncIterator[KnowledgeStore]:
    store = KnowledgeStore(connection, trace, MINE, 4)
    await store.open_collection(NOTES)
    yield store
    store.close()


def last(trace: MemoryTrace) -> MemoryOperation:
    entry = trace.drain()[-1]
    assert isinstance(entry, MemoryOperation)
    return entry


async def test_a_search_ranks_by_cosine_and_says_how_many_there_were(store, trace):
    await store.upsert(NOTES, [point(0), point(1), point(2)])
    found = await store.search(NOTES, "the first", np.array([0.9, 0.4, 0, 0], dtype=np.float32), 2)
    assert [hit.payload["content"] for hit in found] == ["note 0", "note 1"]
    assert found[0].score == pytest.approx(0.9138, abs=1e-3)
    operation = last(trace)
    assert (operation.store, operation.command, operation.key) == ("qdrant", "query_points", NOTES)
    assert isinstance(operation.change, SearchChange)
    assert (operation.change.query, operation.change.limit, operation.change.stored) == ("the first", 2, 3)
    assert [(f.id, f.rank) for f in operation.change.found] == [(hit.id, n) for n, hit in enumerate(found, start=1)]


async def test_a_search_can_be_narrowed_to_a_field(store):
    await store.upsert(NOTES, [point(0, topic="a"), point(1, direction=0, topic="b")])
    found = await store.search(NOTES, "", np.array([1, 0, 0, 0], dtype=np.float32), 5, where={"topic": "b"})
    assert [hit.payload["content"] for hit in found] == ["note 1"]


async def test_writing_the_same_id_again_replaces_and_says_what(store, trace):
    await store.upsert(NOTES, [point(0, version=1)])
    await store.upsert(NOTES, [point(0, version=2)])
    change = last(trace).change
    assert isinstance(change, UpsertChange)
    assert change.points[0].replaced == {"content": "note 0", "version": 1}
    assert list((await store.dump(NOTES)).values()) == [{"content": "note 0", "version": 2}]


async def test_a_changed_field_leaves_the_others(store, trace):
    await store.upsert(NOTES, [point(0, topic="a")])
    await store.change_payload(NOTES, point(0).id, {"topic": "b", "closed": True})
    change = last(trace).change
    assert isinstance(change, UpsertChange)
    assert change.points[0].payload == {"content": "note 0", "topic": "b", "closed": True}
    assert change.points[0].replaced == {"content": "note 0", "topic": "a"}
    assert (await store.fetch(NOTES, [point(0).id]))[0].payload == change.points[0].payload


async def test_changing_a_point_that_is_not_there_is_an_error(store, trace):
    with pytest.raises(BackendError, match="does not exist"):
        await store.change_payload(NOTES, point(9).id, {"topic": "b"})
    assert last(trace).error


async def test_points_are_read_in_the_order_they_are_asked_for_or_were_written(store, trace):
    points = [point(number) for number in (2, 0, 3, 1)]
    for each in points:
        await store.upsert(NOTES, [each])
    wanted = [points[3].id, point(99).id, points[0].id]
    assert [held.id for held in await store.fetch(NOTES, wanted)] == [points[3].id, points[0].id]
    assert [held.id for held in await store.scan(NOTES)] == [each.id for each in points]
    assert list(await store.dump(NOTES)) == [each.id for each in points]
    assert isinstance(last(trace).change, ReadChange)


async def test_removed_points_are_gone_and_only_these_are_noted(store, trace):
    await store.upsert(NOTES, [point(0), point(1)])
    await store.remove(NOTES, [point(0).id, point(7).id])
    assert list(await store.dump(NOTES)) == [point(1).id]
    assert last(trace).change.ids == (point(0).id,)
    await store.remove(NOTES, [point(7).id])
    assert trace.drain() == ()


async def test_opening_again_removes_what_was_left(connection, store, trace):
    await store.upsert(NOTES, [point(0), point(1)])
    await store.open_collection(NOTES)
    assert await store.dump(NOTES) == {}
    assert fold(trace.drain(), {"qdrant": [NOTES]}).points == {"qdrant": {NOTES: {}}}


async def test_vectors_are_of_unit_length(store):
    await store.upsert(NOTES, [Point(point(0).id, np.array([3, 4, 0, 0], dtype=np.float32), {})])
    ids, vectors = await store.vectors(NOTES)
    assert ids == [point(0).id]
    assert vectors == pytest.approx(np.array([[0.6, 0.8, 0, 0]]))


async def test_namespaces_on_one_connection_are_apart(connection, store):
    theirs = KnowledgeStore(connection, MemoryTrace(), THEIRS, 4)
    await theirs.open_collection(NOTES)
    await store.upsert(NOTES, [point(0)])
    await theirs.upsert(NOTES, [point(0, of=THEIRS, secret=True)])
    found = await store.search(NOTES, "", np.array([1, 0, 0, 0], dtype=np.float32), 5)
    assert [hit.payload for hit in found] == [{"content": "note 0"}]
    assert len(await theirs.dump(NOTES)) == 1
    await theirs.open_collection(NOTES)
    assert len(await store.dump(NOTES)) == 1
    theirs.close()


async def test_using_a_closed_store_is_an_error(store):
    store.close()
    with pytest.raises(BackendError, match="closed"):
        await store.dump(NOTES)


class TestServer:
    async def test_the_tenant_is_indexed_stored_and_never_traced(self, server):
        trace = MemoryTrace()
        store = KnowledgeStore(QdrantConnection.to(server.url), trace, MINE, 4)
        await store.open_collection(NOTES)
        await store.upsert(NOTES, [point(0)])
        assert {"tenant": MINE.path} == {
            key: value
            for record in server.client.scroll(NOTES)[0]
            for key, value in record.payload.items()
            if key != "content"
        }
        index = next(body for method, path, body in server.requests if path.endswith("/index"))
        assert index["field_name"] == "tenant"
        assert index["field_schema"]["type"] == "keyword"
        assert "tenant" not in str(trace.drain())
        assert await store.dump(NOTES) == {point(0).id: {"content": "note 0"}}

    async def test_a_busy_server_is_asked_again(self, server):
        store = KnowledgeStore(QdrantConnection.to(server.url), MemoryTrace(), MINE, 4)
        await store.open_collection(NOTES)
        server.failures += [503, 429]
        await store.upsert(NOTES, [point(0)])
        assert len(await store.dump(NOTES)) == 1

    async def test_a_refusal_is_raised_and_noted(self, server):
        trace = MemoryTrace()
        store = KnowledgeStore(QdrantConnection.to(server.url), trace, MINE, 4)
        await store.open_collection(NOTES)
        server.failures += [400]
        with pytest.raises(BackendError, match="refuses: 400"):
            await store.upsert(NOTES, [point(0)])
        operation = last(trace)
        assert (operation.command, operation.change) == ("upsert", None)
        assert operation.error

    async def test_a_collection_for_other_vectors_is_refused(self, server):
        connection = QdrantConnection.to(server.url)
        await KnowledgeStore(connection, MemoryTrace(), MINE, 4).open_collection(NOTES)
        with pytest.raises(BackendError, match="vectors of 8 dimensions"):
            await KnowledgeStore(connection, MemoryTrace(), THEIRS, 8).open_collection(NOTES)

    @pytest.mark.filterwarnings("error:Api key is used with an insecure connection")
    async def test_the_key_is_sent_and_never_shown(self):
        with qdrant_server(api_key="s3cret") as server:
            await QdrantConnection.to(server.url, api_key="s3cret").check()
            wrong = QdrantConnection.to(server.url, api_key="wr0ng")
            with pytest.raises(StoreUnavailableError, match="refuses the key") as refused:
                await wrong.check()
            assert "wr0ng" not in f"{refused.value} {wrong.description}"


async def test_a_server_that_is_not_there_is_named_in_one_sentence():
    with pytest.raises(StoreUnavailableError, match=r"^Qdrant at 127\.0\.0\.1:1 does not answer$"):
        await QdrantConnection.to("http://127.0.0.1:1").check()


@pytest.mark.parametrize("url", ["localhost:6333", "ftp://host", "http://host:port", "http://", ""])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(StoreAddressError, match="expected http"):
        QdrantConnection.to(url)
