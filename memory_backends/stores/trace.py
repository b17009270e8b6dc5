"""The trace of a memory: operations on its stores with what they changed, decisions and extractions, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from typing import Annotated, Any, Literal, Protocol

import jsonpatch
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from memory_backends.storable import StorableText

Phase = Literal["open", "perceive", "observe", "consolidate", "recall", "close", "by_hand"]


class Frozen(BaseModel):
    """A value object: immutable, and strict about its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PatchStep(Frozen):
    """One step of a JSON Patch. ``replaced`` is the earlier value at ``path``, if there was one."""

    op: Literal["add", "remove", "replace"]
    path: str
    value: Any = None
    replaced: Any = None


class ReadChange(Frozen):
    """A value was read; nothing changed. ``size`` is in bytes of the stored text."""

    kind: Literal["read"] = "read"
    found: bool
    size: int


class WriteChange(Frozen):
    """A whole value was written: the key's first write, a keyframe, or a text."""

    kind: Literal["write"] = "write"
    value: Any


class PatchChange(Frozen):
    """A state was replaced by one that differs in these steps. ``keyframe`` repeats the whole new value."""

    kind: Literal["patch"] = "patch"
    steps: tuple[PatchStep, ...]
    keyframe: Any | None = None


class AppendChange(Frozen):
    """Text was appended. ``offset`` is where it starts, in bytes of UTF-8, as the server counts."""

    kind: Literal["append"] = "append"
    offset: int
    text: str


class RemoveChange(Frozen):
    """A key, or a collection's points, were removed. ``count`` says how many there were."""

    kind: Literal["remove"] = "remove"
    count: int
    ids: tuple[str, ...] = ()


class PublishChange(Frozen):
    """A message went out on a channel. ``receivers`` is how many listened."""

    kind: Literal["publish"] = "publish"
    message: Any
    receivers: int


class ExpireChange(Frozen):
    """A key was given a time to live, in seconds."""

    kind: Literal["expire"] = "expire"
    seconds: int


class StoredPoint(Frozen):
    """A point as it was written to Qdrant, without its vector. ``replaced`` is the payload it overwrote."""

    id: str
    payload: Mapping[str, Any]
    replaced: Mapping[str, Any] | None = None


class UpsertChange(Frozen):
    """Points were written."""

    kind: Literal["upsert"] = "upsert"
    points: tuple[StoredPoint, ...]


class FoundPoint(Frozen):
    """A search's answer: which point, at which 1-based rank, with which score."""

    id: str
    rank: int
    score: FiniteFloat


class SearchChange(Frozen):
    """A collection was searched; nothing changed. ``stored`` is how many points there were to find."""

    kind: Literal["search"] = "search"
    query: str
    limit: int
    found: tuple[FoundPoint, ...]
    stored: int


Change = Annotated[
    ReadChange
    | WriteChange
    | PatchChange
    | AppendChange
    | RemoveChange
    | PublishChange
    | ExpireChange
    | UpsertChange
    | SearchChange,
    Field(discriminator="kind"),
]


class MemoryOperation(Frozen):
    """One command to a store: what it was, what it changed, how long it took, and on whose account.

    ``store`` is a label such as ``redis``, only ever shown. What kind of store it is follows from the change: a
    state is written or patched, a log appended to, points are upserted or removed by id. ``command`` is the store's
    own name for it (``GET``, ``APPEND``, ``query_points``…); ``key`` is the key, channel or collection. ``turns``
    are the ids of the turns that caused it. ``error`` is set if the command failed: then nothing is known to have
    changed.
    """

    kind: Literal["operation"] = "operation"
    store: str
    command: str
    key: str
    change: Change | None
    ms: float
    phase: Phase
    actor: str
    turns: tuple[str, ...] = ()
    error: str | None = None


class SignificanceFactors(Frozen):
    """CIAR: certainty × impact × exp(−0.1 · age in days) × recency boost (at most 1.3)."""

    certainty: float
    impact: float
    age_days: float
    accesses: int
    age_decay: float
    recency_boost: float


class PromotionDecision(Frozen):
    """The decision on a promotion candidate: the factors of its significance, and the reason in one sentence.

    ``sources`` are the turns it was distilled from, ``knowledge_id`` the point it was written to or merged
    into, ``superseded_id`` the point whose value it corrects.
    """

    kind: Literal["decision"] = "decision"
    candidate_id: str
    content: str
    slot: str | None
    sources: tuple[str, ...]
    factors: SignificanceFactors
    score: float
    threshold: float
    decision: Literal["ADD", "UPDATE", "NO-OP", "DROP"]
    justification: str
    knowledge_id: str | None = None
    superseded_id: str | None = None


class SentMessage(Frozen):
    """A message that a memory sent to a model. ``more`` is the JSON of what it has beside a role and a text."""

    role: StorableText
    text: StorableText
    more: StorableText | None = None


Reading = Literal["parsed", "repaired", "rejected"]
"""How a reply of a fixed form was read: as it is, after thoughts or fences around it were removed, or not at
all."""


class WriterCall(Frozen):
    """A call of a model that a memory made to write, with its text.

    ``messages`` are empty where the text was not recorded. ``parameters`` is the JSON of the rest of the request,
    ``wanted`` that of the tools that the model called. ``cut_at`` is the limit of tokens that cut the reply.
    ``read`` is None if any text would do; ``rejected`` says why a reply could not be read. ``repeat`` counts the
    equal requests before it in one operation. ``error`` is set if there is no usable reply.
    """

    messages: tuple[SentMessage, ...] = ()
    parameters: StorableText | None = None
    reply: StorableText | None = None
    wanted: StorableText | None = None
    finish_reason: StorableText | None = None
    cut_at: int | None = None
    read: Reading | None = None
    rejected: StorableText | None = None
    repeat: int = 0
    error: str | None = None

    @property
    def failed(self) -> bool:
        """Return whether there is no reply at all, not even one that was cut or could not be read."""
        return self.error is not None and self.cut_at is None and self.read is None

    @property
    def is_usable(self) -> bool:
        """Return whether there is a reply of the form asked for."""
        return self.error is None and self.read != "rejected"


class Extraction(WriterCall):
    """A model was asked for the facts of an exchange: how many it found and what the call cost.

    ``turns`` are the exchange's; ``unread_facts`` could not be read, and are not among its ``facts``;
    ``cost_usd`` is None where the price is unknown; ``reused`` says that the reply came from the cache.
    """

    kind: Literal["extraction"] = "extraction"
    model: str
    turns: tuple[str, ...]
    facts: int = 0
    unread_facts: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    ms: float = 0.0
    reused: bool = False


class ModelCall(WriterCall):
    """A memory called a model: to write (``chat``), to embed texts, or to rerank what it found.

    Tokens are as the provider counted them; ``cost_usd`` is None where the price is unknown. ``reused`` says that
    the reply came from the cache, with its original usage. ``phase`` and ``turns`` say when memory called it, and
    on whose account.
    """

    kind: Literal["model_call"] = "model_call"
    purpose: Literal["chat", "embedding", "reranking"]
    model: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    ms: float = 0.0
    reused: bool = False
    phase: Phase = "open"
    turns: tuple[str, ...] = ()


TraceEntry = MemoryOperation | PromotionDecision | Extraction | ModelCall


class Cause(Frozen):
    """Reason why a store is used: a phase of the protocol, the actor, and the turns that caused it."""

    phase: Phase
    actor: str
    turns: tuple[str, ...] = ()


_cause: ContextVar[Cause | None] = ContextVar("memreplay_cause", default=None)


class CheckedStore(Protocol):
    """A store that knows what was written to it."""

    async def check(self) -> None:
        """Compare what the store holds with what was written to it.

        Raises:
            StoreLostError: something is missing, or is not what was written.
        """
        ...


class MemoryTrace:
    """The record of what the stores of one backend did, until the engine takes it.

    ``stores`` are those that can be checked, by label; a store adds itself, and replaces an earlier one.
    """

    def __init__(self) -> None:
        self.stores: dict[str, CheckedStore] = {}
        self._entries: list[TraceEntry] = []
        self._latest = Cause(phase="open", actor="backend")

    @contextmanager
    def caused_by(self, phase: Phase, actor: str, turns: tuple[str, ...] = ()) -> Iterator[None]:
        """Give everything recorded inside this cause. Tasks started inside inherit it."""
        # A library may work in threads of its own, which do not inherit the context.
        self._latest = Cause(phase=phase, actor=actor, turns=turns)
        token = _cause.set(self._latest)
        try:
            yield
        finally:
            _cause.reset(token)

    def note(
        self,
        store: str,
        command: str,
        key: str,
        change: Change | None,
        ms: float,
        error: str | None = None,
    ) -> None:
        """Record one command of a store, under the current cause."""
        cause = self.cause
        self._entries.append(
            MemoryOperation(
                store=store,
                command=command,
                key=key,
                change=change,
                ms=round(ms, 3),
                phase=cause.phase,
                actor=cause.actor,
                turns=cause.turns,
                error=error,
            )
        )

    def decide(self, decision: PromotionDecision) -> None:
        """Record the decision of a consolidation agent on a candidate."""
        self._entries.append(decision)

    def extend(self, entries: Iterable[TraceEntry]) -> None:
        """Take over the entries of another trace."""
        self._entries.extend(entries)

    def extracted(self, extraction: Extraction) -> None:
        """Record a call of a memory's extractor."""
        self._entries.append(extraction)

    def model_called(self, call: ModelCall) -> None:
        """Record a memory's call of a model, under the current cause. May be called in any thread."""
        cause = self.cause
        self._entries.append(call.model_copy(update={"phase": cause.phase, "turns": cause.turns}))

    @property
    def cause(self) -> Cause:
        """Return why a store or a model is used now. Each operation of a memory has an object of its own."""
        return _cause.get() or self._latest

    def drain(self) -> tuple[TraceEntry, ...]:
        """Return what was recorded since the last call, in order, and forget it."""
        entries, self._entries = tuple(self._entries), []
        return entries


def patch_between(old: dict[str, Any], new: dict[str, Any]) -> tuple[PatchStep, ...] | None:
    """Return the steps from ``old`` to ``new``, each with the value it replaced.

    Only add, remove and replace: a move is written as a remove and an add. None if the steps would not lead to
    ``new``, so that a trace never holds a wrong patch.
    """
    document = deepcopy(old)
    steps: list[PatchStep] = []
    for raw in jsonpatch.make_patch(old, new).patch:
        if raw["op"] == "move":
            removed = _take(document, PatchStep(op="remove", path=raw["from"]))
            steps += [removed, _take(document, PatchStep(op="add", path=raw["path"], value=removed.replaced))]
        else:
            steps.append(_take(document, PatchStep(op=raw["op"], path=raw["path"], value=raw.get("value"))))
    return tuple(steps) if document == new else None


def _take(document: Any, step: PatchStep) -> PatchStep:
    """Apply one step in place; return it with what it replaced."""
    parent, key = _holder(document, step.path)
    if step.op == "add" and isinstance(parent, list):
        parent.insert(key, deepcopy(step.value))
        return step
    replaced = parent.get(key) if isinstance(parent, dict) else parent[key]
    if step.op == "remove":
        del parent[key]
    else:
        parent[key] = deepcopy(step.value)
    return step.model_copy(update={"replaced": replaced})


def _holder(document: Any, path: str) -> tuple[Any, Any]:
    """Return the object or list that a path's last part lies in, and that part: a field's name or an index."""
    pointed: tuple[Any, Any] = jsonpatch.JsonPointer(path).to_last(document)
    return pointed
