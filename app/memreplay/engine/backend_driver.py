"""Drive one memory through one conversation: everything it does, and every failure, becomes an event."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import perf_counter
from typing import TypeVar

from memory_backends.base import BackendError, ClosingStatus, Exchange, MemoryBackend, Message, Namespace, Recall
from memory_backends.stores.trace import Phase
from memreplay.conversations.models import Turn
from memreplay.engine.events import (
    BackendFailed,
    BackgroundWorkSettled,
    ConversationClosed,
    ConversationOpened,
    EventSink,
    Observed,
    Perceived,
    event_of,
)
from memreplay.llm.rate_limiter import StoppedError

T = TypeVar("T")

_INCOMPLETE_AFTER: frozenset[Phase] = frozenset({"open", "observe", "consolidate"})


@dataclass(frozen=True)
class _Failed:
    """What a memory could not do."""

    why: str


class BackendDriver:
    """A memory under the name that its events carry.

    One that fails to take something in is out: what it would answer from is no longer the conversation. ``broken``
    then says why; it is asked for nothing more, but is closed all the same. Who shares it takes ``alone`` around
    what belongs together.
    """

    def __init__(self, conversation: str, name: str, backend: MemoryBackend, emit: EventSink) -> None:
        self._conversation, self._name = conversation, name
        self._backend, self._emit = backend, emit
        self.broken: str | None = None
        self.alone = asyncio.Lock()

    async def open(self, run_id: str) -> None:
        """Open it, empty."""
        namespace = Namespace(run_id=run_id, conversation_id=self._conversation, backend=self._name)
        await self._guarded("open", self._backend.open(namespace), 0)
        self._emit(
            ConversationOpened(
                conversation=self._conversation, turn=0, backend=self._name, memory=self._backend.description
            )
        )

    async def perceive(self, message: Message, limit: int, budget: int, turn: int) -> Recall | str:
        """What it gives for an ordinary message, or the sentence of why it gives nothing."""
        return await self._read("perceive", self._backend.perceive(message, limit, budget), turn)

    async def perceive_by_recall(self, text: str, limit: int, budget: int, turn: int) -> Recall | str:
        """The same of a memory without a read path for ordinary messages: it is asked as by a question."""
        return await self._read("recall", self._backend.recall(text, limit, budget), turn)

    async def recall(self, question: str, limit: int, budget: int, turn: int) -> Recall | str:
        """What it gives for a question, or the sentence of why it gives nothing."""
        if self.broken is not None:
            return self.broken
        recall = await self._guarded("recall", self._backend.recall(question, limit, budget), turn)
        return recall.why if isinstance(recall, _Failed) else recall

    async def hear(self, exchange: Exchange, turn: int) -> None:
        """Take an exchange in, and finish what that sets going."""
        at = {"conversation": self._conversation, "backend": self._name}
        started = perf_counter()
        await self._guarded("observe", self._backend.observe(exchange), turn)
        self._emit(Observed(**at, turn=turn, turns=exchange.turn_ids, ms=ms_since(started)))
        started = perf_counter()
        await self._guarded("consolidate", self._backend.settle(), turn)
        self._emit(BackgroundWorkSettled(**at, turn=turn, ms=ms_since(started)))

    async def close(self, status: ClosingStatus, turn: int) -> None:
        """The conversation is over, or abandoned."""
        async with self.alone:
            await self._guarded("close", self._backend.close(status), turn)
        self._emit(
            ConversationClosed(conversation=self._conversation, turn=turn, backend=self._name, status=status)
        )

    async def _read(self, phase: Phase, work: Awaitable[Recall], turn: int) -> Recall | str:
        started = perf_counter()
        recall = await self._guarded(phase, work, turn)
        if isinstance(recall, _Failed):
            return recall.why
        self._emit(
            Perceived(
                conversation=self._conversation,
                turn=turn,
                backend=self._name,
                hits=recall.hits,
                missed=recall.missed,
                why_empty=recall.why_empty,
                cut=recall.cut,
                tokens=recall.tokens,
                ms=ms_since(started),
            )
        )
        return recall

    async def _guarded(self, phase: Phase, work: Awaitable[T], turn: int) -> T | _Failed:
        """Let it work; emit what it did, and its failure where it fails.

        Raises:
            StoppedError: a model that it asks is asked no more; what it half heard leaves it broken.
        """
        if self.broken is not None and phase != "close":
            _discard(work)
            return _Failed(self.broken)
        failure: str | None = None
        try:
            result = await work
        except StoppedError as error:
            self._now_broken(phase, turn, str(error) or "the run was stopped")
            raise
        except BackendError as error:
            failure = str(error)
        except Exception as error:
            # A plugged-in memory may raise anything; the run and the other memories go on.
            failure = f"{type(error).__name__}: {error}"
        for entry in self._backend.trace.drain():
            self._emit(event_of(entry, self._conversation, turn, self._name))
        if failure is None:
            return result
        self._emit(
            BackendFailed(
                conversation=self._conversation, turn=turn, backend=self._name, phase=phase, error=failure
            )
        )
        self._now_broken(phase, turn, failure)
        return _Failed(failure)

    def _now_broken(self, phase: Phase, turn: int, failure: str) -> None:
        if phase in _INCOMPLETE_AFTER:
            self.broken = f"memory failed at turn {turn} ({phase}): {failure}"


def ms_since(started: float) -> float:
    """Milliseconds of wall time since a reading of ``perf_counter``, to the microsecond."""
    return round((perf_counter() - started) * 1000, 3)


def _discard(work: Awaitable[object]) -> None:
    if isinstance(work, Coroutine):
        work.close()


_LABELS = {"user": "User", "assistant": "AI"}


class AgentBackendDriver:
    """One memory in one conversation. A memory that failed to take something in is out: it gives nothing more."""

    def __init__(self, conversation: str, name: str, backend: MemoryBackend, top_k: int, emit: EventSink) -> None:
        self._memory = BackendDriver(conversation, name, backend, emit)
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
