"""The planner agent: reads its state and long-term memory on a turn, and stages what may be worth keeping.

Standing instructions are kept in its scratchpad, as ``standing``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory_backends.base import Clock, Exchange, Message, Namespace, Recall
from memory_backends.hybrid.candidates import Candidate
from memory_backends.hybrid.rules.matching import same_value
from memory_backends.hybrid.workspace import SharedWorkspace
from memory_backends.records import PersonalMemoryState
from memory_backends.stores.redis import OperatingMemory

LONGEST_QUERY = 160
MOST_NOTED = 8
"""Most facts and hits that the scratchpad lists."""

MOST_STANDING = 5
"""Most instructions that the scratchpad keeps; the oldest is dropped."""


class PlannerAgent:
    """Owns ``personal_state:{agent_id}``. A missing or unreadable state reads as a blank one."""

    def __init__(
        self, memory: OperatingMemory, workspace: SharedWorkspace, namespace: Namespace, clock: Clock
    ) -> None:
        self._memory = memory
        self._workspace = workspace
        self._clock = clock
        self._task = namespace.conversation_id
        self.agent_id = namespace.agent_id("planner")
        self.key = PersonalMemoryState.key(self.agent_id)

    async def read(self) -> PersonalMemoryState:
        """Return its state, or a blank one."""
        state = await self._memory.read_state(self.key, PersonalMemoryState)
        return state or PersonalMemoryState(agent_id=self.agent_id, last_updated=self._clock())

    async def begin(self) -> None:
        """Write a blank state: the conversation is its task."""
        await self._write(
            PersonalMemoryState(agent_id=self.agent_id, last_updated=self._clock()), {"status": "waiting"}
        )

    async def think(self, state: PersonalMemoryState, message: Message, recalled: Recall) -> None:
        """Write back the message and what long-term memory returned for it."""
        await self._write(
            state,
            {
                **state.scratchpad,
                "status": "answering",
                "turn": message.turn_id,
                "query": message.text[:LONGEST_QUERY],
                "hits": [
                    {"id": hit.id, "turns": list(hit.turns or hit.sources)} for hit in recalled.hits[:MOST_NOTED]
                ],
            },
        )

    async def stage(self, exchange: Exchange, candidates: Sequence[Candidate]) -> None:
        """Stage candidates for consolidation, and note them among the latest that it noticed."""
        state = await self.read()
        staged = {candidate.id: _staged(candidate) for candidate in candidates}
        noticed = [*state.scratchpad.get("noticed", []), *(_in_short(candidate) for candidate in candidates)]
        scratchpad = {"status": "listening", "turn": exchange.turn_ids[-1], "noticed": noticed[-MOST_NOTED:]}
        standing = _standing_with(state.scratchpad.get("standing", []), candidates)
        if standing:
            scratchpad["standing"] = standing
        updated = state.model_copy(update={"promotion_candidates": {**state.promotion_candidates, **staged}})
        await self._write(updated, scratchpad)

    async def share(self, candidates: Sequence[Candidate]) -> None:
        """Write what candidates say into the shared workspace."""
        await self._workspace.note(self.agent_id, candidates)

    async def unstage(self, ids: Sequence[str]) -> None:
        """Take candidates out of the staging area, whatever else was written meanwhile."""

        def without(state: PersonalMemoryState) -> PersonalMemoryState:
            left = {id_: value for id_, value in state.promotion_candidates.items() if id_ not in ids}
            return state.model_copy(update={"promotion_candidates": left, "last_updated": self._clock()})

        await self._memory.update_state(self.key, PersonalMemoryState, without)

    async def withdraw(self, instruction: str, said_by: str) -> None:
        """Take an instruction that was ended off the standing ones."""

        def without(state: PersonalMemoryState) -> PersonalMemoryState:
            standing = [
                each
                for each in state.scratchpad.get("standing", [])
                if each["said_by"] != said_by or not same_value(each["text"], instruction)
            ]
            scratchpad = {**state.scratchpad, "standing": standing}
            return state.model_copy(update={"scratchpad": scratchpad, "last_updated": self._clock()})

        await self._memory.update_state(self.key, PersonalMemoryState, without)

    async def _write(self, state: PersonalMemoryState, scratchpad: dict[str, Any]) -> None:
        updated = {"current_task_id": self._task, "scratchpad": scratchpad, "last_updated": self._clock()}
        await self._memory.write_state(self.key, state.model_copy(update=updated))


def _staged(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate as it is staged: ``confidence`` is the dictionary's name for its certainty."""
    fields = candidate.model_dump(mode="json", exclude={"id", "certainty"})
    return {"content": fields.pop("content"), "confidence": candidate.certainty, **fields}


def staged_candidates(state: PersonalMemoryState) -> list[Candidate]:
    """Return the candidates that are staged in a state, in the order in which they were said."""
    return [_candidate(id_, fields) for id_, fields in state.promotion_candidates.items()]


def _candidate(id_: str, fields: dict[str, Any]) -> Candidate:
    rest = {name: value for name, value in fields.items() if name != "confidence"}
    return Candidate.model_validate({"id": id_, "certainty": fields["confidence"], **rest})


def _standing_with(held: Sequence[dict[str, Any]], candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    """Return the standing instructions with those among the candidates, the latest last, each once."""
    standing = list(held)
    for candidate in candidates:
        if candidate.is_instruction:
            said = {"text": candidate.value, "said_by": candidate.said_by, "turns": list(candidate.sources)}
            standing = [*(other for other in standing if not same_value(other["text"], candidate.value)), said]
    return standing[-MOST_STANDING:]


def _in_short(candidate: Candidate) -> dict[str, Any]:
    text = f"{candidate.slot} = {candidate.value}" if candidate.slot else candidate.content[:LONGEST_QUERY]
    return {"text": text, "turns": list(candidate.sources)}
