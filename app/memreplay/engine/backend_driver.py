"""Drive one memory through one conversation, and emit everything it does, and every failure, as events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol, TypeVar

from memory_backends.base import (
    BackendError,
    ClosingStatus,
    Exchange,
    MemoryBackend,
    Message,
    Namespace,
    Recall,
    StoreLostError,
    StoreUnavailableError,
)
from memory_backends.editing import Editable, StoreEdit
from memory_backends.stores.trace import (
    AppendChange,
    Extraction,
    ModelCall,
    PatchChange,
    Phase,
    UpsertChange,
    WriteChange,
)
from memreplay.engine.events import (
    BackendFailed,
    BackgroundWorkSettled,
    ConversationClosed,
    ConversationOpened,
    EventSink,
    FactsExtracted,
    ModelCalled,
    Observed,
    Perceived,
    PromotionDecided,
    ReplayEvent,
    StoreOperated,
    call_in,
    event_of,
)
from memreplay.llm.rate_limiter import ModelUnavailableError, StoppedError
from memreplay.numbers import counted

T = TypeVar("T")

_INCOMPLETE_AFTER: frozenset[Phase] = frozenset({"open", "observe", "consolidate"})


_OF_INGESTING = (Observed, BackgroundWorkSettled, StoreOperated, PromotionDecided, FactsExtracted, ModelCalled)


@dataclass(frozen=True)
class KeptIngestion:
    """A memory has ingested everything up to turn ``until``; ``events`` are what it did, by turn number."""

    until: int
    events: Mapping[int, Sequence[ReplayEvent]]

    def at(self, turn: int) -> list[ReplayEvent]:
        """Return what memory did at a turn, as events of this run."""
        return [
            event.model_copy(update={"reused": True}) if isinstance(event, Observed) else event
            for event in self.events.get(turn, ())
        ]


class KeptMemoryError(Exception):
    """A kept memory cannot be used: the memory that was to load it has to be opened anew."""


class Keeper(Protocol):
    """A port: keeps filled memories of one conversation."""

    async def restore(self, backend: MemoryBackend) -> KeptIngestion | None:
        """Fill an open, empty memory with the longest beginning of the conversation that is kept.

        Raises:
            KeptMemoryError: memory may be half filled.
        """
        ...

    async def keep(self, backend: MemoryBackend, until: int, events: Sequence[ReplayEvent]) -> None:
        """Keep a memory that has ingested everything up to turn ``until``. A failure is no error of the run."""
        ...


def _is_of_ingesting(event: ReplayEvent) -> bool:
    """Return whether an event tells what a memory did with an exchange."""
    return isinstance(event, _OF_INGESTING)


@dataclass(frozen=True)
class _Failure:
    why: str


_STORING = (WriteChange, PatchChange, AppendChange, UpsertChange)


@dataclass
class _Written:
    """The calls of the model that writes, of which some failed, and whether anything was stored."""

    calls: int = 0
    failed: list[ModelCall | Extraction] = field(default_factory=list)
    has_stored: bool = False

    def add(self, event: ReplayEvent) -> None:
        """Count a call, or a write to a store."""
        if (call := call_in(event)) is not None:
            self.calls += 1
            self.failed += [call] if call.failed else []
        elif isinstance(event, StoreOperated) and isinstance(event.operation.change, _STORING):
            self.has_stored = True

    @property
    def why_nothing(self) -> str | None:
        """Return why nothing at all was stored, if that is since every call failed."""
        if self.has_stored or not self.failed or len(self.failed) < self.calls:
            return None
        first, calls = self.failed[0], len(self.failed)
        failed = f"its writer {first.model} failed in {calls} of {counted(calls, 'call')}"
        return f"nothing is stored: {failed}: {first.error}"


class BackendDriver:
    """Runs one memory under the name that its events carry.

    A memory that fails to ingest something is out, since it would no longer answer from the conversation; so is one
    whose store lost something, which ``lost`` then says. ``broken`` says why a memory is out; it gets no more calls
    except the one that closes it. One that stored nothing, since every call of its writer failed, fails to recall.
    Callers that share a driver hold ``lock`` around calls that belong together.
    """

    def __init__(
        self,
        conversation: str,
        name: str,
        backend: MemoryBackend,
        emit: EventSink,
        keeper: Keeper | None = None,
    ) -> None:
        self._conversation, self._name = conversation, name
        self._backend, self._emit = backend, emit
        self._keeper = keeper if backend.can_be_kept else None
        self._kept: KeptIngestion | None = None
        self._ingested: list[ReplayEvent] = []
        self._ingested_until = 0
        self._written = _Written()
        self.ms = 0.0
        """Milliseconds that the last call took."""
        self.broken: str | None = None
        self.lost: str | None = None
        self.lock = asyncio.Lock()

    @property
    def kept_until(self) -> int:
        """Return the turn up to which an earlier run filled the memory; 0 if none did."""
        return self._kept.until if self._kept else 0

    async def open(self, run_id: str) -> None:
        """Open the memory: empty, or filled by an earlier run if there is a keeper."""
        namespace = Namespace(run_id=run_id, conversation_id=self._conversation, backend=self._name)
        await self._guarded("open", self._backend.open(namespace), 0)
        if self._keeper is not None and self.broken is None:
            try:
                self._kept = await self._keeper.restore(self._backend)
            except KeptMemoryError:
                await self._guarded("open", self._backend.open(namespace), 0)
            self._backend.trace.drain()  # loading is no write of this conversation
        self._emit(
            ConversationOpened(
                conversation=self._conversation, turn=0, backend=self._name, memory=self._backend.description
            )
        )

    @property
    def limited_by_top_k(self) -> bool:
        """Return whether the number of hits limits what the memory returns."""
        return self._backend.limited_by_top_k

    async def perceive(self, message: Message, top_k: int, context_tokens: int, turn: int) -> Recall | str:
        """Return its recall for an ordinary message, or a sentence that says why it failed."""
        return await self._read("perceive", self._backend.perceive(message, top_k, context_tokens), turn)

    async def recall(
        self, question: str, top_k: int, context_tokens: int, turn: int, model: str = ""
    ) -> Recall | str:
        """Return its recall for a question, or a sentence that says why it failed. ``model`` will read it."""
        if self.broken is not None:
            return self.broken
        recall = await self._guarded("recall", self._recall(question, top_k, context_tokens), turn)
        return recall.why if isinstance(recall, _Failure) else recall

    async def _recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        if (why := self._written.why_nothing) is not None:
            raise BackendError(why)
        return await self._backend.recall(question, top_k, context_tokens)

    async def ingest(self, exchange: Exchange, turn: int) -> None:
        """Let the memory observe an exchange, and wait for the background work that this starts."""
        if self._kept is not None and turn <= self._kept.until:
            for event in self._kept.at(turn):
                self._tell(event)
            return
        at = {"conversation": self._conversation, "backend": self._name}
        await self._guarded("observe", self._backend.observe(exchange), turn)
        self._tell(Observed(**at, turn=turn, turns=exchange.turn_ids, ms=self.ms))
        await self._guarded("consolidate", self._backend.settle(), turn)
        self._tell(BackgroundWorkSettled(**at, turn=turn, ms=self.ms))
        self._ingested_until = turn

    async def keep(self) -> None:
        """Keep what was ingested for later runs, unless all of it was kept before."""
        if self._keeper is not None and self.broken is None and self._ingested_until:
            async with self.lock:
                await self._keeper.keep(self._backend, self._ingested_until, self._ingested)
        self._ingested = []

    def _tell(self, event: ReplayEvent) -> None:
        """Emit an event; remember it if the memory may be kept."""
        self._written.add(event)
        if self._keeper is not None and _is_of_ingesting(event):
            self._ingested.append(event)
        self._emit(event)

    async def edit(self, edit: StoreEdit, turn: int) -> bool | str:
        """Edit its stores by hand: whether it holds what is edited, or a sentence that says why it cannot be."""
        if not isinstance(self._backend, Editable):
            return False
        done = await self._guarded("by_hand", self._backend.edit(edit), turn)
        return done.why if isinstance(done, _Failure) else done

    async def check_stores(self, turn: int) -> None:
        """Compare what its stores hold with what was written there. If they differ, or cannot be reached, whatever
        it recalled since the last check may come from a memory with holes: it is ``lost``.

        Raises:
            StoppedError: a store is not asked any more.
        """
        for store in list(self._backend.trace.stores.values()) if self.broken is None else ():
            async with self.lock:
                failed = await self._guarded("recall", store.check(), turn)
            if isinstance(failed, _Failure):
                self.broken = self.lost = failed.why
                return

    async def abandon(self) -> None:
        """Close the memory without a word: what it did does not count."""
        async with self.lock:
            with suppress(Exception):
                await self._backend.close("cancelled")
            self._backend.trace.drain()

    async def close(self, status: ClosingStatus, turn: int) -> None:
        """Close the memory at the end of the conversation, or when it is abandoned."""
        async with self.lock:
            await self._guarded("close", self._backend.close(status), turn)
        self._emit(
            ConversationClosed(conversation=self._conversation, turn=turn, backend=self._name, status=status)
        )

    async def _read(self, phase: Phase, work: Awaitable[Recall], turn: int) -> Recall | str:
        recall = await self._guarded(phase, work, turn)
        if isinstance(recall, _Failure):
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
                ms=self.ms,
            )
        )
        return recall

    async def _guarded(self, phase: Phase, work: Awaitable[T], turn: int) -> T | _Failure:
        """Await the work of a phase; emit the memory's trace, and its failure if it fails.

        Raises:
            StoppedError: no more calls are made to a model or a store that the memory needs. Ingesting half an
            exchange breaks it.
        """
        if self.broken is not None and phase != "close":
            _discard(work)
            self.ms = 0.0
            return _Failure(self.broken)
        failure: str | None = None
        started = perf_counter()
        try:
            result = await work
        except StoppedError as error:
            self._break_after(phase, turn, str(error) or "the run was stopped")
            raise
        except StoreUnavailableError as error:
            # It was waited for, or needs its owner: every other call of the run would end in the same way.
            if phase != "close":
                self._break_after(phase, turn, str(error))
                raise ModelUnavailableError(str(error)) from error
            failure = str(error)
        except StoreLostError as error:
            failure = self.lost = str(error)
        except BackendError as error:
            failure = str(error)
        except MemoryError:
            failure = f"out of memory in {phase}()"
        except Exception as error:
            # A plug-in may raise anything; the run continues with the other memories.
            failure = f"{type(error).__name__}: {error}"
        self.ms = ms_since(started)
        for entry in self._backend.trace.drain():
            self._tell(event_of(entry, self._conversation, turn, self._name))
        if failure is None:
            return result
        self._emit(
            BackendFailed(
                conversation=self._conversation, turn=turn, backend=self._name, phase=phase, error=failure
            )
        )
        if self.lost is not None:
            self.broken = self.lost
        else:
            self._break_after(phase, turn, failure)
        return _Failure(failure)

    def _break_after(self, phase: Phase, turn: int, failure: str) -> None:
        if phase in _INCOMPLETE_AFTER:
            self.broken = f"memory failed at turn {turn} ({phase}): {failure}"


@dataclass(frozen=True)
class Recalled:
    """The recall of a memory for a question, or why it failed; ``events`` are what it did for that."""

    recall: Recall | str
    ms: float
    events: tuple[ReplayEvent, ...] = ()


@dataclass(frozen=True)
class PlayedMemory:
    """The events of a memory in another process, by turn number; it was closed as ``status``.

    ``recalls`` are by the text of the question and the model that will read them. ``kept_until`` is the turn up to
    which an earlier run had filled the memory. ``broken`` says why it recalls nothing.
    """

    events: Mapping[int, Sequence[ReplayEvent]]
    recalls: Mapping[tuple[str, str], Recalled] = field(default_factory=dict)
    status: ClosingStatus = "cancelled"
    kept_until: int = 0
    broken: str | None = None


class PlayedDriver(BackendDriver):
    """Stands for the driver of a memory that was played in another process: emits what that one emitted."""

    def __init__(
        self, conversation: str, name: str, backend: MemoryBackend, emit: EventSink, played: PlayedMemory
    ) -> None:
        super().__init__(conversation, name, backend, emit)
        self._played = played
        self._events = dict(played.events)
        self.broken = played.broken

    @property
    def kept_until(self) -> int:
        """Return the turn up to which an earlier run filled the memory; 0 if none did."""
        return self._played.kept_until

    async def open(self, run_id: str) -> None:
        """Emit what opening the memory did."""
        self._emit_those_of(0)

    async def perceive(self, message: Message, top_k: int, context_tokens: int, turn: int) -> Recall | str:
        """Emit what the memory did at a turn; the recall is among the events."""
        self._emit_those_of(turn)
        return Recall()

    async def ingest(self, exchange: Exchange, turn: int) -> None:
        """Emit what the memory did at a turn."""
        self._emit_those_of(turn)

    async def recall(
        self, question: str, top_k: int, context_tokens: int, turn: int, model: str = ""
    ) -> Recall | str:
        """Return what the memory recalled, or a sentence that says why it failed."""
        if self.broken is not None:
            self.ms = 0.0
            return self.broken
        recalled = self._played.recalls.get((question, model))
        if recalled is None:
            raise StoppedError("the run was stopped before memory recalled")
        for event in recalled.events:
            self._emit(event)
        self.ms = recalled.ms
        return recalled.recall

    async def close(self, status: ClosingStatus, turn: int) -> None:
        """Emit what closing the memory did, if it was closed as the conversation now is."""
        if status == self._played.status:
            self._emit_those_of(turn)
        else:
            self._emit(
                ConversationClosed(conversation=self._conversation, turn=turn, backend=self._name, status=status)
            )

    def _emit_those_of(self, turn: int) -> None:
        for event in self._events.pop(turn, ()):
            self._emit(event)


def ms_since(started: float) -> float:
    """Milliseconds since a reading of ``perf_counter``, rounded to microseconds."""
    return round((perf_counter() - started) * 1000, 3)


def _discard(work: Awaitable[object]) -> None:
    if isinstance(work, Coroutine):
        work.close()
