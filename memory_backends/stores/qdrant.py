"""The knowledge store: Qdrant, embedded or a real server, every command traced with what it changed.

qdrant_client takes long to import, and numpy takes 13 MB: they are imported at the first use of a collection. The
synchronous client is used throughout, in a thread where a call may take long, since the asynchronous one of an
embedded store never yields to the event loop.
"""

from __future__ import annotations

import asyncio
import json
import re
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter, sleep, time
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import NAMESPACE_URL, uuid4, uuid5
from zlib import crc32

from memory_backends.addresses import parse_address
from memory_backends.base import (
    BackendError,
    Namespace,
    StoreAddressError,
    StoreLostError,
    StoreUnavailableError,
)
from memory_backends.stores.retry import PATIENCE_TO_REACH, Contact
from memory_backends.stores.trace import (
    Change,
    FoundPoint,
    MemoryTrace,
    ReadChange,
    RemoveChange,
    SearchChange,
    StoredPoint,
    UpsertChange,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from qdrant_client import QdrantClient
    from qdrant_client.models import Filter, FilterSelector

Answer = TypeVar("Answer")

REPLY_SECONDS = 15

_UNREADABLE = (ValueError, AssertionError, TypeError, AttributeError, KeyError)
"""Errors of the client on a reply that is not Qdrant's: no JSON, or JSON of another shape."""

_NO_QDRANT = "does not answer like Qdrant; another server may be listening there"


class QdrantConnection:
    """A connection to Qdrant that several conversations share. Nothing is sent before the first use.

    ``description`` is ``embedded`` or ``host:port``: safe to show: no key. ``patience`` is how long a server
    may stay silent before it is given up, in seconds.
    """

    def __init__(
        self, url: str | None, api_key: str | None, description: str, patience: float | None = None
    ) -> None:
        self._url = url
        self._api_key = api_key
        self._shared: QdrantClient | None = None
        self._ours: set[str] = set()
        self.description = description
        self._contact = Contact(patience, REPLY_SECONDS)

    @classmethod
    def embedded(cls) -> QdrantConnection:
        """Qdrant inside this process: each namespace has one of its own, in memory."""
        return cls(None, None, "embedded")

    @classmethod
    def to(cls, url: str, api_key: str | None = None, patience: float | None = None) -> QdrantConnection:
        """Return a server at ``http://host[:port]``, or ``https://`` for TLS."""
        expected = "expected http://host[:port] or https://…"
        try:
            address = parse_address(url, ("http", "https"))
        except ValueError as error:
            raise StoreAddressError(f"The Qdrant address cannot be read: {error}; {expected}") from error
        return cls(address.url, api_key, f"{address.host}:{address.port or 6333}", patience)

    @property
    def is_shared(self) -> bool:
        """Return whether all namespaces share the same collections."""
        return self._url is not None

    def client(self) -> QdrantClient:
        """Return a client for one namespace: the server's, or a new and empty embedded one. Slow at first."""
        from qdrant_client import QdrantClient

        if self._url is None:
            return QdrantClient(":memory:")
        if self._shared is None:
            with warnings.catch_warnings():
                # The user decides by the address whether a key may be sent unencrypted (loopback, private network).
                warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
                self._shared = QdrantClient(
                    url=self._url, api_key=self._api_key, timeout=REPLY_SECONDS, check_compatibility=False
                )
        return self._shared

    async def check(self) -> None:
        """Raise :class:`StoreUnavailableError` unless the server answers and accepts the key."""
        if self.is_shared:
            client = await asyncio.to_thread(self.client)
            try:
                await self._run(lambda: asyncio.to_thread(client.get_collections), PATIENCE_TO_REACH)
            except StoreUnavailableError:
                raise
            except BackendError as error:
                raise StoreUnavailableError(str(error)) from error

    async def check_collections(self, names: Sequence[str]) -> None:
        """Raise :class:`StoreUnavailableError` if one of these collections belongs to another program."""
        if self.is_shared:
            client = await asyncio.to_thread(self.client)
            for name in names:
                await self.run(partial(asyncio.to_thread, self.ensure_ours, client, name))

    def ensure_ours(self, client: QdrantClient, name: str) -> None:
        """Raise :class:`StoreUnavailableError` if a collection has points that are no run's.

        An empty one is ours if it has the index that a run creates with it.

        What is written there later is noticed by the ledger of each store.
        """
        from qdrant_client.models import Filter, IsEmptyCondition, PayloadField

        if name in self._ours or not client.collection_exists(name):
            return
        nameless = Filter(must=[IsEmptyCondition(is_empty=PayloadField(key=TENANT))])
        foreign = client.count(name, count_filter=nameless, exact=True).count
        sample, _ = client.scroll(name, limit=_SAMPLE, with_payload=[TENANT], with_vectors=False)
        others = [point for point in sample if not _NAMESPACE.fullmatch(str((point.payload or {}).get(TENANT)))]
        if foreign or others:
            raise StoreUnavailableError(
                f"Qdrant at {self.description} has a collection {name} that another program uses"
                f" ({max(foreign, len(others)):,} points are of no run of memreplay); nothing is written to it:"
                " use another server"
            )
        if not sample and not _has_our_index(client, name):
            raise StoreUnavailableError(
                f"Qdrant at {self.description} has an empty collection {name} that another program"
                f" made (without memreplay's index of {TENANT!r}); nothing is written to it: use another server"
            )
        self._ours.add(name)

    async def check_writing(self, names: Sequence[str]) -> None:
        """Write, read and delete a point of our own in each of these collections that exists.

        Raises:
            StoreUnavailableError: this key may not, or the server does not return what was written.
        """
        if not self.is_shared:
            return
        client = await asyncio.to_thread(self.client)
        for name in names:
            try:
                await self.run(partial(asyncio.to_thread, self._probe, client, name))
            except StoreUnavailableError:
                raise
            except BackendError as error:
                raise StoreUnavailableError(str(error)) from error

    def _probe(self, client: QdrantClient, name: str) -> None:
        from qdrant_client.models import PointStruct, VectorParams

        if not client.collection_exists(name):
            return
        vectors = client.get_collection(name).config.params.vectors
        if not isinstance(vectors, VectorParams):
            return
        id_ = str(uuid4())
        payload = {TENANT: f"probe/{id_}/probe"}
        client.upsert(name, points=[PointStruct(id=id_, vector=[1.0] * vectors.size, payload=payload)])
        try:
            if not client.retrieve(name, ids=[id_], with_payload=True):
                raise StoreUnavailableError(
                    f"Qdrant at {self.description} does not return what was written to {name}"
                )
        finally:
            client.delete(name, points_selector=[id_])

    async def hold_lease(self, run: str, seconds: int) -> None:
        """Write a point, in a collection of its own, that says for so long that a run is alive."""
        await self._once(_hold_lease, run, seconds)

    async def release_lease(self, run: str) -> None:
        """Remove it, and the collection with the last one."""
        await self._once(_release_lease, run)

    async def leases(self) -> set[str]:
        """Return ids of the runs that are alive."""
        return await self._once(_leases)

    async def _once(self, call: Callable[..., Answer], *given: Any) -> Answer:
        client = await asyncio.to_thread(self.client)
        return await self._run(partial(asyncio.to_thread, call, client, *given), 0.0)

    async def aclose(self) -> None:
        if self._shared is not None:
            await asyncio.to_thread(self._shared.close)
            self._shared = None

    async def run(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Await a call of the client, with retries: every command that we use may be repeated."""
        return await self._run(call, None)

    async def _run(self, call: Callable[[], Awaitable[Answer]], patience: float | None) -> Answer:
        try:
            return await self._contact.retrying(call, _may_pass, patience)
        except Exception as error:
            reason = _reason(error)
            if reason is None or (reason == _NO_QDRANT and not self.is_shared):
                raise
            kind = BackendError if _is_of_the_command(error) else StoreUnavailableError
            raise kind(f"Qdrant at {self.description} {reason}") from error

    @property
    def waited_for(self) -> str:
        """Return that calls have waited for this server, and how long; empty while that is not long."""
        silence = self._contact.silence if self.is_shared else 0.0
        return f"Qdrant at {self.description} (no answer for {silence:.0f} s)" if silence else ""


def _is_of_the_command(error: Exception) -> bool:
    """Return whether a server that answers refuses this command alone, and not its user."""
    from qdrant_client.http.exceptions import UnexpectedResponse

    return (
        isinstance(error, UnexpectedResponse)
        and 400 <= (error.status_code or 0) < 500
        and error.status_code not in (401, 403, 429)
    )


_SAMPLE = 64
"""Points of a collection whose tenants are looked at."""

_NAMESPACE = re.compile(r"[^/]+/.+/.+", re.DOTALL)
"""The tenant of a run: run, conversation and memory."""


_SECONDS_TO_INDEX = (0.0, 0.2, 0.5, 1.0)
"""Another process of ours may be between creating a collection and its index."""


def _has_our_index(client: QdrantClient, name: str) -> bool:
    """Return whether a collection has the index by tenants that a run creates with it."""
    from qdrant_client.models import KeywordIndexParams

    for pause in _SECONDS_TO_INDEX:
        sleep(pause)
        index = client.get_collection(name).payload_schema.get(TENANT)
        if index is not None:
            # Servers before 1.11 have indexes of keywords, and none for tenants.
            params = index.params
            return index.data_type == "keyword" and (
                params is None or (isinstance(params, KeywordIndexParams) and bool(params.is_tenant))
            )
    return False


def is_conflict(error: Exception) -> bool:
    """Return whether what was to be created exists."""
    from qdrant_client.http.exceptions import UnexpectedResponse

    return isinstance(error, UnexpectedResponse) and error.status_code == 409


def is_missing(error: BaseException | None) -> bool:
    """Return whether a collection does not exist."""
    from qdrant_client.http.exceptions import UnexpectedResponse

    return isinstance(error, UnexpectedResponse) and error.status_code == 404


def _may_pass(error: BaseException) -> bool:
    """Return whether the same command could succeed a moment later."""
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    if isinstance(error, UnexpectedResponse):
        return error.status_code == 429 or (error.status_code or 0) >= 500
    return isinstance(error, ResponseHandlingException | OSError)


def _reason(error: Exception) -> str | None:
    """Return what is wrong with the server, without what was sent; None for an error of our own."""
    from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

    cause = error.source if isinstance(error, ResponseHandlingException) else error
    if isinstance(cause, _UNREADABLE):
        return _NO_QDRANT
    if not isinstance(error, ApiException | OSError):
        return None
    if not isinstance(error, UnexpectedResponse):
        return "does not answer"
    if error.status_code == 401:
        return "refuses the key"
    if error.status_code == 403:
        return "refuses the key: it may not do what a run needs (read and write points, create collections)"
    return f"refuses: {error.status_code} {error.reason_phrase}"


_LEASES = "memreplay_live"


def _hold_lease(client: QdrantClient, run: str, seconds: int) -> None:
    from qdrant_client.models import Distance, PointStruct, VectorParams

    if not client.collection_exists(_LEASES):
        try:
            client.create_collection(_LEASES, vectors_config=VectorParams(size=1, distance=Distance.COSINE))
        except Exception as error:
            if not is_conflict(error):
                raise
    payload = {"run": run, "until": time() + seconds}
    client.upsert(_LEASES, points=[PointStruct(id=_id_of_lease(run), vector=[1.0], payload=payload)])


def _release_lease(client: QdrantClient, run: str) -> None:
    client.delete(_LEASES, points_selector=[_id_of_lease(run)])
    if not _leases(client):
        client.delete_collection(_LEASES)


def _leases(client: QdrantClient) -> set[str]:
    if not client.collection_exists(_LEASES):
        return set()
    points, _ = client.scroll(_LEASES, limit=PAGE, with_payload=True, with_vectors=False)
    leases = [point.payload or {} for point in points]
    return {str(lease.get("run")) for lease in leases if float(lease.get("until") or 0) > time()}


def _id_of_lease(run: str) -> str:
    return str(uuid5(NAMESPACE_URL, run))


def points_of(tenant: str) -> FilterSelector:
    """Selects the points of one namespace on a server."""
    from qdrant_client.models import FieldCondition, Filter, FilterSelector, MatchValue

    return FilterSelector(filter=Filter(must=[FieldCondition(key=TENANT, match=MatchValue(value=tenant))]))


@dataclass(frozen=True)
class Point:
    """A point to write: ``id`` is a UUID, ``vector`` has the store's dimension, ``payload`` is plain JSON."""

    id: str
    vector: NDArray[np.float32]
    payload: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ReadPoint:
    """A point as it was read from the store."""

    id: str
    payload: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ScoredPoint(ReadPoint):
    """A point found by a search. ``score`` is the cosine similarity: higher is nearer."""

    score: float


__all__ = ["KnowledgeStore", "Point", "QdrantConnection", "ReadPoint", "ScoredPoint"]

QDRANT = "qdrant"
"""The label of this store."""

TENANT = "tenant"
"""The payload field that keeps namespaces apart in the collections of a server. It never leaves this module."""

PAGE = 1000

SMALL = 500
"""Points up to which an embedded store answers within a millisecond."""


class KnowledgeStore:
    """The Qdrant store of one backend, for one namespace. All but ``dump``, ``vectors`` and ``check`` is traced.

    It keeps a ledger of the points that it wrote, in this process alone: their ids and, of a server's, a checksum
    of their payloads. Whatever is read is compared with it.

    Every method may raise :class:`StoreUnavailableError` or :class:`StoreLostError`; the failed command is in the
    trace with its error.
    Vectors are compared by cosine. Traced payloads are without the tenant.
    """

    def __init__(
        self, connection: QdrantConnection, trace: MemoryTrace, namespace: Namespace, dimension: int
    ) -> None:
        self._connection = connection
        self._trace = trace
        self._tenant = namespace.path if connection.is_shared else None
        self._dimension = dimension
        self._client: QdrantClient | None = None
        self._ledger: dict[str, dict[str, int]] = {}
        self._lock = asyncio.Lock()
        trace.stores[QDRANT] = self

    async def check(self) -> None:
        """Count the points of each collection. Nothing can be lost in this process."""
        if self._client is not None and self._connection.is_shared:
            for collection in self._ledger:
                await self._check_count(collection)

    async def open_collection(self, name: str) -> None:
        """Create the collection where it is missing; remove what an earlier attempt left under this namespace."""
        if self._client is None:
            self._client = await asyncio.to_thread(self._connection.client)
        with self._noted_failure("create_collection", name):
            await self._sweep(lambda client: self._create(client, name))
        self._ledger.pop(name, None)
        left = await self._held(name)
        self._ledger[name] = dict.fromkeys(left, 0)
        await self.remove(name, list(left))

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Write points; an existing one with the same id is replaced, payload and vector."""
        if not points:
            return
        from qdrant_client.models import PointStruct

        structs = [
            PointStruct(id=point.id, vector=point.vector.tolist(), payload=self._stored(point.payload))
            for point in points
        ]
        known = self._ledger[collection]
        with self._noted_failure("upsert", collection) as elapsed:
            before = await self._payloads(collection, [point.id for point in points if point.id in known])
            await self._touch(lambda client: client.upsert(collection, points=structs))
        known.update({point.id: self._checksum(point.payload) for point in points})
        written = [
            StoredPoint(id=point.id, payload=dict(point.payload), replaced=before.get(point.id)) for point in points
        ]
        self._note("upsert", collection, UpsertChange(points=tuple(written)), elapsed())

    async def search(
        self,
        collection: str,
        query: str,
        vector: NDArray[np.float32],
        limit: int,
        *,
        where: Mapping[str, Any] | None = None,
    ) -> list[ScoredPoint]:
        """Return the ``limit`` nearest points, best first. ``query`` is the text of ``vector``.

        A score is the cosine, to six decimals. ``where`` maps payload fields to the value that they must have.
        """
        with self._noted_failure("query_points", collection) as elapsed:
            answer = await self._sweep(
                lambda client: client.query_points(
                    collection,
                    query=vector.tolist(),
                    limit=limit,
                    with_payload=True,
                    with_vectors=True,
                    query_filter=self._condition(where),
                )
            )
            self._compare(collection, {str(point.id): _given(point.payload) for point in answer.points})
            if where is None and len(answer.points) < min(limit, len(self._ledger[collection])):
                await self._check_count(collection)
        cosines = _cosines(vector, [point.vector for point in answer.points])
        found = [
            ScoredPoint(id=str(point.id), score=score, payload=_given(point.payload))
            for point, score in zip(answer.points, cosines, strict=True)
        ]
        found.sort(key=lambda point: point.score, reverse=True)
        ranked = tuple(FoundPoint(id=f.id, rank=rank, score=f.score) for rank, f in enumerate(found, start=1))
        change = SearchChange(query=query, limit=limit, found=ranked, stored=len(self._ledger[collection]))
        self._note("query_points", collection, change, elapsed())
        return found

    async def fetch(self, collection: str, ids: Sequence[str]) -> list[ReadPoint]:
        """Points by their ids, in that order; unknown ids are left out."""
        with self._noted_failure("retrieve", collection) as elapsed:
            payloads = await self._payloads(collection, ids)
        self._note("retrieve", collection, _read(payloads), elapsed())
        return [ReadPoint(id=id_, payload=payloads[id_]) for id_ in ids if id_ in payloads]

    async def scan(self, collection: str) -> list[ReadPoint]:
        """Return all points of this namespace, in the order in which they were first written."""
        with self._noted_failure("scroll", collection) as elapsed:
            payloads = await self.dump(collection)
        self._note("scroll", collection, _read(payloads), elapsed())
        return [ReadPoint(id=id_, payload=payload) for id_, payload in payloads.items()]

    async def change_payload(self, collection: str, id: str, fields: Mapping[str, Any]) -> None:
        """Set these fields of a stored point's payload; its vector and other fields stay."""
        with self._noted_failure("set_payload", collection) as elapsed:
            before = (await self._payloads(collection, [id])).get(id)
            if before is None:
                raise BackendError(f"Point {id} of {collection} cannot be changed: it does not exist")
            await self._touch(lambda client: client.set_payload(collection, payload=dict(fields), points=[id]))
        changed = StoredPoint(id=id, payload={**before, **fields}, replaced=before)
        self._ledger[collection][id] = self._checksum(changed.payload)
        self._note("set_payload", collection, UpsertChange(points=(changed,)), elapsed())

    async def remove(self, collection: str, ids: Sequence[str]) -> None:
        """Remove points. Only those that existed are recorded."""
        known = self._ledger.get(collection, {})
        present = [id_ for id_ in ids if id_ in known]
        if not present:
            return
        with self._noted_failure("delete", collection) as elapsed:
            await self._touch(lambda client: client.delete(collection, points_selector=list(present)))
        for id_ in present:
            del known[id_]
        self._note("delete", collection, RemoveChange(count=len(present), ids=tuple(present)), elapsed())

    async def dump(self, collection: str) -> dict[str, dict[str, Any]]:
        """Return every point of this namespace, id to payload, in the order in which they were first written.
        Untraced.
        """
        payloads = await self._held(collection)
        known = self._ledger.get(collection)
        if known is None:
            return payloads
        self._compare(collection, payloads)
        if len(payloads) < len(known):
            raise StoreLostError(self._lost(collection, len(payloads)))
        return {id_: payloads[id_] for id_ in known}

    async def _held(self, collection: str) -> dict[str, dict[str, Any]]:
        records = await self._sweep(lambda client: self._scroll(client, collection, with_vectors=False))
        return {str(record.id): _given(record.payload) for record in records}

    async def vectors(self, collection: str) -> tuple[list[str], NDArray[np.float32]]:
        """Return ids and vectors, of unit length, shape ``(n, dimension)``, of this namespace's points.
        Untraced.
        """
        import numpy as np

        records = await self._sweep(lambda client: self._scroll(client, collection, with_vectors=True))
        matrix = np.array([record.vector for record in records], dtype=np.float32).reshape(-1, self._dimension)
        return [str(record.id) for record in records], matrix

    def close(self) -> None:
        """Free the embedded client and what it holds; on a server everything stays."""
        if self._client is not None and not self._connection.is_shared:
            self._client.close()
        self._client = None

    def _create(self, client: QdrantClient, name: str) -> None:
        from qdrant_client.models import Distance, KeywordIndexParams, KeywordIndexType, VectorParams

        schema = KeywordIndexParams(type=KeywordIndexType.KEYWORD, is_tenant=True)
        if not client.collection_exists(name):
            try:
                client.create_collection(
                    name, vectors_config=VectorParams(size=self._dimension, distance=Distance.COSINE)
                )
                if self._tenant is not None:
                    client.create_payload_index(name, TENANT, field_schema=schema)
            except Exception as error:
                if not is_conflict(error):  # another process created it in between
                    raise
        if self._tenant is not None:
            self._connection.ensure_ours(client, name)
        vectors = client.get_collection(name).config.params.vectors
        if not isinstance(vectors, VectorParams) or vectors.size != self._dimension:
            raise BackendError(
                f"The Qdrant collection {name} does not have vectors of {self._dimension} dimensions:"
                " it was made with another embedder, or by another program; use another server"
            )
        if vectors.distance != Distance.COSINE:
            raise BackendError(
                f"The Qdrant collection {name} compares vectors by {vectors.distance.value}, not by cosine:"
                " another program made it; use another server"
            )

    def _scroll(self, client: QdrantClient, collection: str, *, with_vectors: bool) -> list[Any]:
        records: list[Any] = []
        offset = None
        while True:
            page, offset = client.scroll(
                collection,
                scroll_filter=self._condition(None),
                limit=PAGE,
                offset=offset,
                with_payload=not with_vectors,
                with_vectors=with_vectors,
            )
            records += page
            if offset is None:
                return records

    async def _payloads(self, collection: str, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        if not ids:
            return {}
        records = await self._touch(lambda client: client.retrieve(collection, ids=list(ids), with_payload=True))
        payloads = {str(record.id): _given(record.payload) for record in records}
        known = self._ledger.get(collection, {})
        self._compare(collection, {id_: payload for id_, payload in payloads.items() if id_ in known})
        if any(id_ in known and id_ not in payloads for id_ in ids):
            await self._check_count(collection)
            raise StoreLostError(self._lost(collection, len(known) - 1))
        return payloads

    def _checksum(self, payload: Mapping[str, Any]) -> int:
        """Return a checksum of a payload as JSON. In this process nobody else writes, and none is needed."""
        return crc32(json.dumps(payload, sort_keys=True).encode()) if self._connection.is_shared else 0

    def _compare(self, collection: str, payloads: Mapping[str, Mapping[str, Any]]) -> None:
        """Raise :class:`StoreLostError` if a point is not one that was written, or not as it was written."""
        known = self._ledger.get(collection, {})
        for id_, payload in payloads.items():
            if id_ not in known or known[id_] != self._checksum(payload):
                raise StoreLostError(
                    f"Qdrant at {self._connection.description} holds a point of {collection} that is not as it was"
                    " written (another program writes there)"
                )

    async def _check_count(self, collection: str) -> None:
        """Raise :class:`StoreLostError` unless the collection holds as many of our points as were written."""
        condition, known = self._condition(None), self._ledger[collection]
        answer = await self._sweep(lambda client: client.count(collection, count_filter=condition, exact=True))
        if answer.count != len(known):
            raise StoreLostError(self._lost(collection, answer.count))

    def _lost(self, collection: str, found: int) -> str:
        where, written = f"Qdrant at {self._connection.description}", len(self._ledger[collection])
        if found > written:
            return f"{where} holds {found - written:,} points of {collection} that were not written here"
        why = "deleted, dropped or restarted empty"
        return f"{where} lost {written - found:,} of {written:,} points of {collection} ({why})"

    def _stored(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        return dict(payload) if self._tenant is None else {**payload, TENANT: self._tenant}

    def _condition(self, where: Mapping[str, Any] | None) -> Filter | None:
        from qdrant_client.models import FieldCondition, Filter, MatchValue

        wanted = dict(where or {}) if self._tenant is None else {TENANT: self._tenant, **(where or {})}
        if not wanted:
            return None
        return Filter(
            must=[FieldCondition(key=key, match=MatchValue(value=value)) for key, value in wanted.items()]
        )

    async def _touch(self, call: Callable[[QdrantClient], Answer]) -> Answer:
        """Run a call that is quick when embedded: a thread would cost more than the call."""
        if self._connection.is_shared:
            return await self._sweep(call)
        async with self._lock:
            return call(self._opened())

    async def _sweep(self, call: Callable[[QdrantClient], Answer]) -> Answer:
        """Run a call whose time grows with what is stored, or that waits for a network, in a thread.

        While an embedded store is small, it is as quick as any.
        """
        async with self._lock:
            client = self._opened()
            if not self._connection.is_shared and sum(map(len, self._ledger.values())) < SMALL:
                return call(client)
            try:
                return await self._connection.run(lambda: asyncio.to_thread(call, client))
            except BackendError as error:
                if self._ledger and is_missing(error.__cause__):
                    raise StoreLostError(self._dropped()) from error
                raise

    def _dropped(self) -> str:
        points = sum(map(len, self._ledger.values()))
        return (
            f"Qdrant at {self._connection.description} lost a collection of {', '.join(self._ledger)}, which had"
            f" {points:,} points (dropped, or restarted empty)"
        )

    def _opened(self) -> QdrantClient:
        if self._client is None:
            raise BackendError("The knowledge store is closed")
        return self._client

    @contextmanager
    def _noted_failure(self, command: str, collection: str) -> Iterator[Callable[[], float]]:
        """Record the command with its error if it fails. Yields a function for the milliseconds since it began."""
        started = perf_counter()

        def elapsed() -> float:
            return (perf_counter() - started) * 1000

        try:
            yield elapsed
        except BackendError as error:
            self._trace.note(QDRANT, command, collection, None, elapsed(), str(error))
            raise

    def _note(self, command: str, collection: str, change: Change, ms: float) -> None:
        self._trace.note(QDRANT, command, collection, change, ms)


def _cosines(one: NDArray[np.float32], others: Sequence[Any]) -> list[float]:
    """Return cosines in double precision: the last bits of the store's own score depend on the alignment of its
    arrays.
    """
    import numpy as np

    a = one.astype(np.float64)
    b = np.array(others, dtype=np.float64).reshape(-1, len(a))
    # einsum and not a matrix product, for which BLAS starts threads.
    cosines = np.einsum("ij,j->i", b, a) / (np.linalg.norm(a) * np.linalg.norm(b, axis=1))
    return [round(cosine, 6) for cosine in cosines.tolist()]


def _given(payload: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a payload without the tenant."""
    return {key: value for key, value in (payload or {}).items() if key != TENANT}


def _read(payloads: Mapping[str, Mapping[str, Any]]) -> ReadChange:
    return ReadChange(found=bool(payloads), size=len(json.dumps(payloads, ensure_ascii=False).encode()))
