"""The memory of an agent that converses: read before a reply, told afterwards, with everything it did as events."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from datetime import datetime
from time import perf_counter
from typing import TypeVar

from app.conversations.models import Turn
from app.replay.events import (
    BackendFailed,
    ConversationOpened,
    Decided,
    Extracted,
    Observed,
    Operated,
    Perceived,
    Settled,
)
from app.replay.session import EventSink
from memory_backends.base import (
    BackendError,
    ClosingStatus,
    Exchange,
    MemoryBackend,
    Message,
    Namespace,
    Recall,
)
from memory_backends.operations import Extraction, MemoryOperation, Phase

T = TypeVar("T")

_LABELS = {"user": "User", "assistant": "AI"}
_INCOMPLETE_AFTER: frozenset[Phase] = frozenset({"open", "observe", "consolidate"})


class AgentMemory:
    """One memory in one conversation. A memory that failed to take something in is out: it gives nothing more."""

    def __init__(self, conversation: str, name: str, backend: MemoryBackend, top_k: int, emit: EventSink) -> None:
        self._conversation, self._name = conversation, name
        self._backend, self._top_k, self._emit = backend, top_k, emit
        self._failure: str | None = None
        self._broken: str | None = None

    async def open(self, run_id: str) -> None:
        """Open it, empty."""
        namespace = Namespace(run_id=run_id, conversation_id=self._conversation, backend=self._name)
        await self._guarded("open", self._backend.open(namespace), 0)
        self._emit(ConversationOpened(conversation=self._conversation, turn=0, backend=self._name))

    async def read(self, turn: Turn, said_at: datetime, budget: int) -> Recall | str:
        """What it gives for a user's message, or the sentence of why it gives nothing.

        A memory that has no read path of its own for ordinary turns is asked as it would be by a question.
        """
        if self._broken is not None:
            return self._broken
        backend, started = self._backend, perf_counter()
        if type(backend).perceive is MemoryBackend.perceive:
            recall = await self._guarded("recall", backend.recall(turn.text, self._top_k, budget), turn.number)
        else:
            message = _message(turn, said_at)
            recall = await self._guarded("perceive", backend.perceive(message, self._top_k, budget), turn.number)
        if recall is None:
            assert self._failure is not None
            return self._failure
        self._emit(
            Perceived(
                conversation=self._conversation,
                turn=turn.number,
                backend=self._name,
                hits=recall.hits,
                missed=recall.missed,
                why_empty=recall.why_empty,
                cut=recall.cut,
                tokens=recall.tokens,
                ms=_ms_since(started),
            )
        )
        return recall

    async def hear(self, turns: Sequence[Turn], said_at: datetime, position: int) -> None:
        """Take in what was said, and finish what that sets going."""
        if self._broken is not None:
            return
        at = {"conversation": self._conversation, "backend": self._name}
        exchange = Exchange(messages=tuple(_message(turn, said_at) for turn in turns))
        started = perf_counter()
        await self._guarded("observe", self._backend.observe(exchange), position)
        self._emit(Observed(**at, turn=position, turns=exchange.turn_ids, ms=_ms_since(started)))
        started = perf_counter()
        await self._guarded("consolidate", self._backend.settle(), position)
        self._emit(Settled(**at, turn=position, ms=_ms_since(started)))

    async def close(self, status: ClosingStatus, position: int) -> None:
        """The conversation is over, or abandoned."""
        await self._guarded("close", self._backend.close(status), position)

    async def _guarded(self, phase: Phase, work: Awaitable[T], turn: int) -> T | None:
        """Let it work; emit what it did, and its failure where it fails. None where it failed."""
        result: T | None = None
        self._failure = None
        try:
            result = await work
        except BackendError as error:
            self._failure = str(error)
        except Exception as error:
            # A plugged-in memory may raise anything; the run goes on.
            self._failure = f"{type(error).__name__}: {error}"
        at = {"conversation": self._conversation, "backend": self._name}
        for entry in self._backend.trace.drain():
            if isinstance(entry, MemoryOperation):
                self._emit(Operated(**at, turn=turn, operation=entry))
            elif isinstance(entry, Extraction):
                self._emit(Extracted(**at, turn=turn, extraction=entry))
            else:
                self._emit(Decided(**at, turn=turn, decision=entry))
        if self._failure is not None:
            self._emit(BackendFailed(**at, turn=turn, phase=phase, error=self._failure))
            if phase in _INCOMPLETE_AFTER and self._broken is None:
                self._broken = f"memory failed at turn {turn} ({phase}): {self._failure}"
        return result


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


def _ms_since(started: float) -> float:
    return round((perf_counter() - started) * 1000, 3)
