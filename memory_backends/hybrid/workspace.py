"""The shared workspace: the whiteboard of one event, where the agents keep the current value of every slot.

``shared_data`` maps a slot to ``{"value", "turn", "said_by"}``, and to ``instead_of`` as well, the value that was
wrong, where a correction put it right; a slot that keeps several values maps to ``{"values": [{"value", "turn",
"said_by"}, …]}``, oldest first. Writes are compare-and-set, so that no concurrent write is lost, and every write is
published on the event's channel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from memory_backends.base import BackendError, Clock, Namespace
from memory_backends.hybrid.candidates import Candidate
from memory_backends.hybrid.rules.matching import is_of_a_kind, same_value, says_no_more
from memory_backends.records import SharedWorkspaceState, WorkspaceStatus
from memory_backends.resources import DEFAULTS, MemoryOptions
from memory_backends.stores.redis import OperatingMemory

MOST_SLOTS = 64
"""Most slots of a workspace; then the one written longest ago is dropped."""

MOST_VALUES = 5
"""Most values of a slot that keeps several; the oldest is dropped."""

SharedData = dict[str, Any]


class SharedWorkspace:
    """The workspace of one conversation, in Redis."""

    def __init__(
        self, memory: OperatingMemory, namespace: Namespace, clock: Clock, options: MemoryOptions = DEFAULTS
    ) -> None:
        self._options = options
        self._memory = memory
        self._clock = clock
        self.event_id = namespace.path
        self.key = SharedWorkspaceState.key(self.event_id)

    async def create(self) -> None:
        """Begin the event: active and empty."""
        now = self._clock()
        state = SharedWorkspaceState(event_id=self.event_id, status="active", created_at=now, last_updated=now)
        await self._memory.write_state(self.key, state)

    async def read(self) -> SharedWorkspaceState:
        """Return the current workspace; :class:`BackendError` if it is missing."""
        return _required(await self._memory.read_state(self.key, SharedWorkspaceState), self.key)

    async def note(self, agent_id: str, candidates: Iterable[Candidate]) -> None:
        """Write what an agent found into its slots.

        A candidate without a slot that corrects a value goes to the slot of that value. Without supersession a slot
        keeps all its values.
        """
        facts = [candidate for candidate in candidates if candidate.slot or candidate.taken_back]
        if not self._options.keeps("supersession"):
            facts = [fact.model_copy(update={"several": True}) for fact in facts]
        if facts:
            await self._update(agent_id, lambda state: _with_facts(state, facts))

    async def join(self, agent_id: str) -> None:
        """Add an agent to the participants."""
        if agent_id not in (await self.read()).participating_agents:
            await self._update(agent_id, lambda state: state)

    async def finish(self, agent_id: str, status: WorkspaceStatus) -> SharedWorkspaceState:
        """Give the event its last status, and return the workspace for archiving."""
        return await self._update(agent_id, lambda state: state.model_copy(update={"status": status}))

    async def _update(
        self, agent_id: str, change: Callable[[SharedWorkspaceState], SharedWorkspaceState]
    ) -> SharedWorkspaceState:
        def changed(old: SharedWorkspaceState) -> SharedWorkspaceState:
            agents = list(dict.fromkeys([*old.participating_agents, agent_id]))
            return change(old).model_copy(update={"participating_agents": agents, "last_updated": self._clock()})

        new = _required(await self._memory.update_state(self.key, SharedWorkspaceState, changed), self.key)
        message = {"event_id": self.event_id, "status": new.status, "last_updated_by": agent_id}
        await self._memory.publish(SharedWorkspaceState.channel(self.event_id), message)
        return new


def _required(state: SharedWorkspaceState | None, key: str) -> SharedWorkspaceState:
    if state is None:
        raise BackendError(f"The shared workspace at {key} is missing")
    return state


def _with_facts(state: SharedWorkspaceState, facts: Iterable[Candidate]) -> SharedWorkspaceState:
    data: SharedData = dict(state.shared_data)
    for fact in facts:
        if fact.retracts:
            data = _without(data, fact)
            continue
        slot = fact.slot or _slot_put_right(data, fact)
        if slot is None:
            continue
        written = _slot_with(data.get(slot), fact)
        if written is not None:
            data.pop(slot, None)
            data[slot] = written
    for slot in list(data)[: max(0, len(data) - MOST_SLOTS)]:
        del data[slot]
    return state.model_copy(update={"shared_data": data})


def _without(data: SharedData, fact: Candidate) -> SharedData:
    """Return the slots without the value that its own speaker takes back, and without slots that then hold
    nothing.
    """

    def holds(value: dict[str, Any]) -> bool:
        return not (value["said_by"] == fact.said_by and same_value(value["value"], fact.value))

    left: SharedData = {}
    for slot, held in data.items():
        kept = [value for value in values_of(held) if holds(value)]
        if len(kept) == len(values_of(held)):
            left[slot] = held
        elif kept:
            left[slot] = {"values": kept}
    return left


def _slot_put_right(data: SharedData, fact: Candidate) -> str | None:
    """Return the slot whose one value a fact without a slot takes back."""
    wrong = fact.taken_back or ""
    return next(
        (
            slot
            for slot, held in reversed(data.items())
            if "value" in held and same_value(held["value"], wrong) and is_of_a_kind(fact.value, wrong)
        ),
        None,
    )


def _slot_with(held: dict[str, Any] | None, fact: Candidate) -> dict[str, Any] | None:
    """Return what a slot holds once a fact is written into it; None where the fact adds nothing."""
    entry: dict[str, Any] = {"value": fact.value, "turn": fact.sources[-1], "said_by": fact.said_by}
    values = values_of(held or {})
    if any(says_no_more(fact.value, other["value"]) for other in (values if fact.several else values[-1:])):
        return None
    if not fact.several:
        wrong = next((other["value"] for other in values[-1:] if fact.is_correction), None)
        return entry if wrong is None else {**entry, "instead_of": wrong}
    kept = [other for other in values if not says_no_more(other["value"], fact.value)]
    return {"values": [*kept, entry][-MOST_VALUES:]}


def values_of(held: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the values of a slot, oldest first, each with its turn and who said it."""
    if "values" in held:
        return list(held["values"])
    return [held] if "value" in held else []
