"""The memory of an agent that converses: read before a reply, told afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.conversations.models import Turn
from app.replay.events import EventSink
from app.replay.played_memory import PlayedMemory
from memory_backends.base import ClosingStatus, Exchange, MemoryBackend, Message, Recall

_LABELS = {"user": "User", "assistant": "AI"}


class AgentMemory:
    """One memory in one conversation. A memory that failed to take something in is out: it gives nothing more."""

    def __init__(self, conversation: str, name: str, backend: MemoryBackend, top_k: int, emit: EventSink) -> None:
        self._memory = PlayedMemory(conversation, name, backend, emit)
        self._has_read_path = type(backend).perceive is not MemoryBackend.perceive
        self._top_k = top_k

    async def open(self, run_id: str) -> None:
        """Open it, empty."""
        await self._memory.open(run_id)

    async def read(self, turn: Turn, said_at: datetime, budget: int) -> Recall | str:
        """What it gives for a user's message, or the sentence of why it gives nothing.

        A memory that has no read path of its own for ordinary turns is asked as it would be by a question.
        """
        if self._has_read_path:
            message = _message(turn, said_at)
            return await self._memory.perceive(message, self._top_k, budget, turn.number)
        return await self._memory.perceive_by_recall(turn.text, self._top_k, budget, turn.number)

    async def hear(self, turns: Sequence[Turn], said_at: datetime, position: int) -> None:
        """Take in what was said, and finish what that sets going."""
        if self._memory.broken is None:
            exchange = Exchange(messages=tuple(_message(turn, said_at) for turn in turns))
            await self._memory.hear(exchange, position)

    async def close(self, status: ClosingStatus, position: int) -> None:
        """The conversation is over, or abandoned."""
        await self._memory.close(status, position)


def _message(turn: Turn, said_at: datetime) -> Message:
    return Message(
        turn_id=turn.id,
        turn_number=turn.number,
        session=turn.session,
        role=turn.role,
        label=_LABELS[turn.role],
        text=turn.text,
        said_at=said_at,
    )
