"""The models that a memory calls, metered: every call is an entry of its trace, with tokens, price and time.

A library gets the run's own model (``Resources.chat``) and embedder in place of its own clients, so that they
follow the run's settings. Calls that a memory makes past these ports are reported to :func:`note_call` by the
code that sees them.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from memory_backends.base import BackendError, Exchange, TextEmbedder, TextReranker
from memory_backends.stores.trace import Cause, Extraction, Frozen, MemoryTrace, ModelCall

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Sink = Callable[[ModelCall], None]

_sink: ContextVar[Sink | None] = ContextVar("memreplay_model_calls", default=None)


@contextmanager
def calls_noted_to(sink: Sink | None) -> Iterator[None]:
    """Model calls made inside are reported to ``sink``; tasks and threads that inherit the context count as
    inside."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


_under_way: dict[str, Sink] = {}
_watchers: list[Callable[[], None]] = []

LONGEST_REPORT = 5.0
"""Seconds to wait for the report of a call that has ended: libraries report in the background."""


def watch_calls(watcher: Callable[[], None]) -> None:
    """``watcher`` is called before a memory works, so that it can start to observe a library that is loaded by
    then."""
    if watcher not in _watchers:
        _watchers.append(watcher)


def start_watching() -> None:
    """Note that a memory is about to work."""
    for watcher in _watchers:
        watcher()


def call_began(id_: str) -> None:
    """Note the begin of a call that a watcher saw, in the context of its caller."""
    sink = _sink.get()
    if sink is not None:
        _under_way[id_] = sink


def call_ended(id_: str, call: ModelCall) -> None:
    """Note the end of a call that a watcher saw, in any context. Only the first report of a call counts."""
    sink = _under_way.pop(id_, None)
    if sink is not None:
        sink(call)


async def calls_reported(sink: Sink) -> None:
    """Wait until the calls that were seen to begin are reported, but not for ever."""
    deadline = monotonic() + LONGEST_REPORT
    while sink in _under_way.values() and monotonic() < deadline:  # noqa: ASYNC110  # reports come from threads
        await asyncio.sleep(0.01)


def note_call(call: ModelCall) -> None:
    """Report a model call to the memory that it is made for, if there is one."""
    sink = _sink.get()
    if sink is not None:
        sink(call)


class ChatMessage(Frozen):
    """A model's reply: a text, and the tools it wants called, each in OpenAI's form."""

    text: str
    tool_calls: tuple[Mapping[str, Any], ...] = ()


class ChatModel(Protocol):
    """A port: a language model that memories may call. ``name`` is its LiteLLM name."""

    name: str

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any], repeat: int
    ) -> tuple[ChatMessage | None, ModelCall]:
        """Messages and parameters are OpenAI's. A failed call has no message, and an error in its entry. ``repeat``
        tells a request from equal ones before it, whose reply it must not share.
        """
        ...


class ExtractedFact(Frozen):
    """A fact extracted by a model.

    ``text`` is the fact in one sentence; ``slot`` is where its ``value`` belongs (``user.name``, ``deadline``), if
    anywhere; ``certainty`` and ``impact`` lie in 0..1; ``turn_id`` is the message that says it.
    """

    turn_id: str
    text: str
    slot: str | None
    value: str
    certainty: float
    impact: float
    justification: str


class FactExtractor(Protocol):
    """Extracts facts from an exchange. ``name`` appears in every justification."""

    name: str

    async def extract(self, exchange: Exchange) -> tuple[tuple[ExtractedFact, ...], Extraction]:
        """Return the facts, and what the call cost. A failure is an :class:`Extraction` with an error, and no
        facts.
        """
        ...


class MeteredChat:
    """A chat model whose calls are entries of a trace.

    Libraries hide failures in different ways. An exception that is no :class:`BackendError` means that the run is
    stopping; it stays in ``stopped``, so that it gets through whatever a library makes of it.
    """

    def __init__(self, model: ChatModel, trace: MemoryTrace | None = None) -> None:
        self.name = model.name
        self.stopped: BaseException | None = None
        self._model = model
        self._trace = trace or MemoryTrace()
        self._asked: tuple[Cause, Counter[str]] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def metered_by(self, trace: MemoryTrace) -> MeteredChat:
        """Return the same model for one memory."""
        return MeteredChat(self._model, trace)

    def serve_threads(self) -> None:
        """Remember the running event loop, in which calls from threads are made."""
        self._loop = asyncio.get_running_loop()

    async def complete(self, messages: Sequence[Mapping[str, Any]], **parameters: Any) -> ChatMessage:
        """Return the model's message.

        Raises:
            BackendError: there is no usable reply; one sentence.
        """
        try:
            message, call = await self._model.complete(messages, parameters, self._repeat(messages, parameters))
        except Exception as error:
            self.stopped = error
            raise
        self._trace.model_called(call)
        if message is None:
            raise BackendError(f"{self.name} did not answer the memory: {call.error}")
        return message

    def _repeat(self, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]) -> int:
        """Count the equal requests before this one in the same operation: a library asks again since the reply did
        not do.
        """
        cause = self._trace.cause
        if self._asked is None or self._asked[0] is not cause:
            self._asked = cause, Counter()
        request = json.dumps([list(messages), parameters], sort_keys=True, default=str)
        self._asked[1][request] += 1
        return self._asked[1][request] - 1

    def complete_in_thread(self, messages: Sequence[Mapping[str, Any]], **parameters: Any) -> ChatMessage:
        """Call the model for a library that blocks, in a thread other than the event loop's."""
        assert self._loop is not None, "serve_threads() comes first"
        return asyncio.run_coroutine_threadsafe(self.complete(messages, **parameters), self._loop).result()


class MeteredEmbedder(TextEmbedder):
    """An embedder whose calls to a provider are entries of a trace. Cached and local vectors are no calls."""

    def __init__(self, inner: TextEmbedder, trace: MemoryTrace) -> None:
        self.name = inner.name
        self._inner = inner
        self._trace = trace

    @property
    def dimension(self) -> int:
        """Return the dimension of the inner embedder."""
        return self._inner.dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape ``(len(texts), dimension)``; errors are the inner embedder's."""
        with calls_noted_to(self._trace.model_called):
            return self._inner.embed(texts)


class MeteredReranker(TextReranker):
    """A reranker whose calls to a provider are entries of a trace. Cached and local scores are no calls."""

    def __init__(self, inner: TextReranker, trace: MemoryTrace) -> None:
        self.name = inner.name
        self._inner = inner
        self._trace = trace

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score a text; errors are the inner reranker's."""
        with calls_noted_to(self._trace.model_called):
            return self._inner.score(query, texts)


class MeteredExtractor:
    """A fact extractor whose calls are entries of a trace."""

    def __init__(self, inner: FactExtractor, trace: MemoryTrace) -> None:
        self.name = inner.name
        self._inner = inner
        self._trace = trace

    async def extract(self, exchange: Exchange) -> tuple[tuple[ExtractedFact, ...], Extraction]:
        """Extract as the inner extractor does."""
        facts, extraction = await self._inner.extract(exchange)
        self._trace.extracted(extraction)
        return facts, extraction
