"""The cost of writing a conversation to memory and of reading from it: time, and calls of models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_backends.registry import BACKEND_NAMES
from memory_backends.stores.trace import Extraction, ModelCall, Phase
from memreplay.conversations.models import Frozen
from memreplay.engine.events import WRITING, BackgroundWorkSettled, Observed
from memreplay.scoring.question_row import Tokens
from memreplay.scoring.writer import kept_nothing

_REMOTE_EMBEDDER = "litellm:"

_READING: frozenset[Phase] = frozenset({"perceive", "recall"})


class WritingResults(Frozen):
    """The cost of writing to memory. ``ms`` includes the background work that this started.

    ``model_tokens`` and ``cost_usd`` are those of all models that memory called, embedders included (of which
    ``embedding_tokens``); null if unknown. ``model_calls`` counts the calls, ``reused_calls`` those answered from
    the cache, which count with their original usage, and ``failed_calls`` those without a usable reply.
    ``reused_exchanges`` were written by an earlier run, whose filled memory was used: what they took was spent
    then. Of the ``writer_calls``, which are no embeddings, ``unanswered_calls`` have no reply; ``cut_calls`` have
    one that was cut by its limit of tokens, at most ``cut_at``; ``unread_calls`` one that is not of the form asked
    for, and ``empty_calls`` one that names no fact. ``unusable_calls`` gave no usable reply, most often because of
    ``unusable``. ``unread_facts`` could not be read beside others of the same reply of an extractor.
    """

    exchanges: int
    ms: float
    model_tokens: int | None
    cost_usd: float | None
    model_calls: int | None = None
    reused_calls: int = 0
    failed_calls: int = 0
    embedding_tokens: int = 0
    reused_exchanges: int = 0
    writer_calls: int = 0
    cut_calls: int = 0
    cut_at: int | None = None
    unread_calls: int = 0
    empty_calls: int = 0
    unanswered_calls: int = 0
    unusable_calls: int = 0
    unusable: str | None = None
    unread_facts: int = 0


class ReadingResults(Frozen):
    """The cost of models that memory called to read, such as a reranker.

    The answers' figures exclude it. Scores from the cache were paid for by another run, and are not counted.
    ``cost_usd`` is null if a price is unknown.
    """

    model_calls: int
    model_tokens: int
    cost_usd: float | None


class ExtractionResults(Frozen):
    """The calls of a model that extracts candidate facts, which the answers' figures exclude.

    A reply from the cache counts with its original cost, and as ``reused``. ``cost_usd`` is null if a price is
    unknown. ``error`` is the most common error.
    """

    model: str
    calls: int
    reused: int
    errors: int
    error: str | None
    facts: int
    tokens: Tokens
    cost_usd: float | None


@dataclass
class Writing:
    """The cost of one backend's write path, and the model calls of its read path, over all conversations.

    An exchange that a resumed run wrote again counts once, with its last time.
    """

    extractions: list[Extraction] = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)
    reads: list[ModelCall] = field(default_factory=list)
    _ms: dict[tuple[str, int, str], float] = field(default_factory=dict)
    _reused: set[tuple[str, int]] = field(default_factory=set)
    _exchanges_merged: int = 0
    _reused_merged: int = 0
    _ms_merged: float = 0.0

    def add(self, event: Observed | BackgroundWorkSettled) -> None:
        """Count an exchange, or the background work after it."""
        self._ms[event.conversation, event.turn, event.kind] = event.ms
        if isinstance(event, Observed) and event.reused:
            self._reused.add((event.conversation, event.turn))

    def add_call(self, call: ModelCall) -> None:
        """Count a model call, to write or to read."""
        if call.phase in WRITING:
            self.calls.append(call)
        elif call.phase in _READING and not call.reused:
            self.reads.append(call)

    def merge(self, other: Writing) -> None:
        """Add what another conversation took. Its exchanges are counted, and need not be held."""
        self.extractions += other.extractions
        self.calls += other.calls
        self.reads += other.reads
        self._exchanges_merged += other.exchanges
        self._reused_merged += other.reused
        self._ms_merged += other.ms

    @property
    def exchanges(self) -> int:
        return self._exchanges_merged + sum(kind == "observed" for _, _, kind in self._ms)

    @property
    def reused(self) -> int:
        """Exchanges that an earlier run wrote."""
        return self._reused_merged + len(self._reused)

    @property
    def ms(self) -> float:
        """Duration of the write path and of the background work that it started."""
        return self._ms_merged + sum(self._ms.values())


def writing_of(backend: str, writing: Writing | None, settings: Mapping[str, Any]) -> WritingResults | None:
    """Return the results of a backend's write path; None if it wrote nothing, as an agent that was never told
    anything.

    What a plug-in does past our ports and LiteLLM cannot be seen: its tokens are unknown if no call was seen. So is
    the price of vectors that were embedded ahead, for all memories together.
    """
    if writing is None or not writing.exchanges:
        return None
    calls: list[Extraction | ModelCall] = [*writing.extractions, *writing.calls]
    cut = [call for call in calls if call.cut_at is not None]
    embedding = [call for call in writing.calls if call.purpose == "embedding"]
    writers = [*writing.extractions, *(call for call in writing.calls if call.purpose == "chat")]
    failed = [call for call in writers if call.failed]
    unusable = [call for call in writers if not call.is_usable]
    seen = backend in BACKEND_NAMES or bool(calls)
    embedded_ahead = str(settings.get("embedder", "")).startswith(_REMOTE_EMBEDDER) and not embedding
    return WritingResults(
        exchanges=writing.exchanges,
        ms=writing.ms,
        model_tokens=sum(call.prompt_tokens + call.completion_tokens for call in calls) if seen else None,
        cost_usd=_cost_of(calls) if seen and not embedded_ahead else None,
        model_calls=len(calls) if seen else None,
        reused_calls=sum(call.reused for call in calls),
        failed_calls=sum(call.error is not None for call in calls),
        embedding_tokens=sum(call.prompt_tokens for call in embedding),
        reused_exchanges=writing.reused,
        writer_calls=len(writers),
        cut_calls=len(cut),
        cut_at=max((call.cut_at or 0 for call in cut), default=None),
        unread_calls=sum(call.read == "rejected" and call.cut_at is None for call in calls),
        empty_calls=sum(kept_nothing(call) for call in calls),
        unanswered_calls=len(failed),
        unusable_calls=len(unusable),
        unusable=_most_common(call.error or call.rejected for call in failed or unusable),
        unread_facts=sum(call.unread_facts for call in writing.extractions),
    )


def reading_of(writing: Writing | None) -> ReadingResults | None:
    """Aggregate the calls of models on a backend's read path; None if there are none."""
    if writing is None or not writing.reads:
        return None
    return ReadingResults(
        model_calls=len(writing.reads),
        model_tokens=sum(call.prompt_tokens + call.completion_tokens for call in writing.reads),
        cost_usd=_cost_of(writing.reads),
    )


def _most_common(reasons: Iterable[str | None]) -> str | None:
    """Return the reason that is given most often, the first of equal ones; None if none is."""
    counts = Counter(filter(None, reasons))
    return counts.most_common(1)[0][0] if counts else None


def _cost_of(calls: Sequence[Extraction | ModelCall]) -> float | None:
    """Return their sum; None if a price is unknown. A failed call costs nothing, unless it says so."""
    costs = [call.cost_usd for call in calls if call.error is None or call.cost_usd is not None]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def extraction_of(calls: Sequence[Extraction]) -> ExtractionResults | None:
    """Aggregate a backend's calls of its extractor; None if there are none."""
    if not calls:
        return None
    return ExtractionResults(
        model=calls[0].model,
        calls=len(calls),
        reused=sum(call.reused for call in calls),
        errors=sum(call.error is not None for call in calls),
        error=_most_common(call.error for call in calls),
        facts=sum(call.facts for call in calls),
        tokens=Tokens(
            prompt=sum(call.prompt_tokens for call in calls),
            completion=sum(call.completion_tokens for call in calls),
            cached=sum(call.cached_tokens for call in calls),
        ),
        cost_usd=_cost_of(calls) if any(call.cost_usd is not None for call in calls) else None,
    )
