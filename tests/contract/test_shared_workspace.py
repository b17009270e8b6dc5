"""Two writers of one workspace, on the embedded Redis and on a real server: no update is lost, none is doubled."""

from __future__ import annotations

import asyncio

from redis import Redis

from memory_backends.hybrid.candidates import candidates_of
from memory_backends.hybrid.workspace import SharedWorkspace
from memory_backends.records import SharedWorkspaceState
from memory_backends.stores.redis import OperatingMemory, RedisConnection, State
from memory_backends.stores.trace import MemoryTrace, PatchChange, WriteChange
from tests.stubs.memory import TickingClock, exchange, namespace

WRITES = 12


class MeetingMemory(OperatingMemory):
    """Waits after its first reading for the other writer to have read the same: one of them will be second."""

    meeting: asyncio.Barrier | None = None

    async def read_state(self, key: str, kind: type[State]) -> State | None:
        state = await super().read_state(key, kind)
        meeting, self.meeting = self.meeting, None
        if meeting is not None:
            await meeting.wait()
        return state


def writer(memory: OperatingMemory) -> SharedWorkspace:
    return SharedWorkspace(memory, namespace("hybrid"), TickingClock())


async def fill(workspace: SharedWorkspace, side: str) -> None:
    for number in range(1, WRITES + 1):
        said = exchange(number, f"We set {side}_{number}=1 today.", "Noted.")
        await workspace.note(side.casefold(), candidates_of(said))


async def test_of_two_connections_that_write_at_once_no_update_is_lost(server_url: str, plain_redis: Redis) -> None:
    left, right = RedisConnection.to(server_url), RedisConnection.to(server_url)
    traces = MemoryTrace(), MemoryTrace()
    memories = (
        MeetingMemory(left, traces[0], others_write=True),
        MeetingMemory(right, traces[1], others_write=True),
    )
    one, other = map(writer, memories)
    await one.create()
    memories[0].meeting = memories[1].meeting = asyncio.Barrier(2)
    await asyncio.gather(fill(one, "LEFT"), fill(other, "RIGHT"))
    raw = plain_redis.get(SharedWorkspaceState.key(namespace("hybrid").path))
    state = SharedWorkspaceState.model_validate_json(str(raw))
    expected = {f"config.{side}_{number}" for side in ("left", "right") for number in range(1, WRITES + 1)}
    assert set(state.shared_data) == expected
    assert sorted(state.participating_agents) == ["left", "right"]
    entries = [entry for trace in traces for entry in trace.drain() if entry.kind == "operation"]
    written = [entry for entry in entries if isinstance(entry.change, PatchChange | WriteChange)]
    assert len(written) == 1 + 2 * WRITES
    # They did get in each other's way, at least where they met.
    assert [entry for entry in entries if entry.error is not None]
    await left.aclose()
    await right.aclose()
