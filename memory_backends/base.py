"""The protocol of a memory architecture, and the values that it takes and returns.

To plug in a memory of your own, write a class with the methods of :class:`MemoryBackend`. One that uses
:class:`~memory_backends.stores.redis.OperatingMemory` and
:class:`~memory_backends.stores.qdrant.KnowledgeStore` is traced without further work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable
from uuid import NAMESPACE_URL, UUID, uuid5

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from memory_backends.storable import FiniteScore, StorableText
from memory_backends.stores.trace import Frozen, MemoryTrace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class BackendError(Exception):
    """A memory failed: the message is one sentence without secrets."""


class StoreUnavailableError(BackendError):
    """A Redis or Qdrant server does not answer, or refuses access."""


class StoreLostError(BackendError):
    """A store does not hold what was written to it: it was evicted, flushed, dropped or overwritten."""


class StoreAddressError(BackendError):
    """An invalid Redis or Qdrant address. The message does not repeat it, since it may hold a password."""


Role = Literal["user", "assistant"]
ClosingStatus = Literal["resolved", "cancelled"]

WhyEmpty = Literal["nothing_stored", "below_threshold", "not_searched", "not_recorded"]
"""Reason why a recall has no hit: memory is empty, or nothing in it is close enough to the question. Of a recorded
agent: it did not search its memory, or what it found was not recorded."""

MISSED_DEPTH = 30
"""Candidates below the cut that are recorded for a question."""

MISSED_DEPTH_OF_A_TURN = 10
"""The same for an ordinary turn, of which there are many more."""

TokenCounter = Callable[[str], int]
"""Text to its number of tokens, by the tokenizer of the model that will read it."""

Clock = Callable[[], datetime]
"""The wall-clock time of a write; timezone-aware. It never reaches a prompt."""


class TextEmbedder(Protocol):
    """Turns texts into vectors; filled in by the program that uses the memories."""

    name: str

    @property
    def dimension(self) -> int:
        """Return how many numbers a vector has."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of unit length, shape ``(len(texts), dimension)``. Slow: call it in a thread."""
        ...


class TextReranker(Protocol):
    """Scores texts for a question; filled in by the program that uses the memories."""

    name: str

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return how well each text answers the query, one number a text; higher is better. A text's score does
        not depend on the others. Slow: call it in a thread.
        """
        ...


class Message(Frozen):
    """One turn, as a memory sees it.

    ``label`` precedes the colon in a log: ``User`` and ``AI``, or the speakers' names. ``said_at`` is the
    conversation's own date, None where it has none. ``turn_number`` is 1-based.
    """

    turn_id: str
    turn_number: int
    session: int
    role: Role
    label: str
    text: str
    said_at: datetime | None = None

    @property
    def line(self) -> str:
        """Return the message as a line of a log."""
        return f"{self.label}: {self.text}"


class Exchange(Frozen):
    """A user turn and the assistant turn that follows, within one session.

    Consecutive turns of one role belong together; a leading assistant turn, or a user turn left over when
    its session ends, is an exchange of its own. ``messages`` is never empty.
    """

    messages: tuple[Message, ...]

    @property
    def text(self) -> str:
        """Return the exchange as it is stored: one line a message."""
        return "\n".join(message.line for message in self.messages)

    @property
    def turn_ids(self) -> tuple[str, ...]:
        """Return ids of its turns, in order."""
        return tuple(message.turn_id for message in self.messages)

    @property
    def turn_number(self) -> int:
        """1-based number of its last turn."""
        return self.messages[-1].turn_number

    @property
    def session(self) -> int:
        """Number of the session it lies in."""
        return self.messages[-1].session

    @property
    def said_at(self) -> datetime | None:
        """Return the conversation's own date of it."""
        return self.messages[-1].said_at

    @property
    def speakers(self) -> tuple[str, ...]:
        """Return who speaks in it, in the order of speaking: names, or ``User`` and ``AI``."""
        return tuple(dict.fromkeys(message.label for message in self.messages))


class SeenExchanges:
    """The exchanges that a library has stored, for libraries that would store them again."""

    def __init__(self) -> None:
        self._turns: set[tuple[str, ...]] = set()

    def is_new(self, exchange: Exchange) -> bool:
        """Return whether this is the first time; later calls with the same exchange return False."""
        if exchange.turn_ids in self._turns:
            return False
        self._turns.add(exchange.turn_ids)
        return True

    def state(self) -> list[list[str]]:
        """Return what was seen, as plain JSON."""
        return [list(turns) for turns in self._turns]

    def restore(self, state: Iterable[Iterable[str]]) -> None:
        """Continue from a saved :meth:`state`."""
        self._turns = {tuple(turns) for turns in state}


class Namespace(Frozen):
    """Run, conversation and backend. Every key and id in a store is derived from it."""

    run_id: str
    conversation_id: str
    backend: str

    @property
    def path(self) -> str:
        """Return the three joined: the tenant on a shared server, the event and conversation id in keys."""
        return f"{self.run_id}/{self.conversation_id}/{self.backend}"

    def agent_id(self, role: str) -> str:
        """Return the id of an agent, e.g. ``planner_agent/run/conversation/hybrid``."""
        return f"{role}_agent/{self.path}"

    def point_id(self, *parts: str | int) -> str:
        """Return a UUID derived from the namespace and the parts (uuid5): always the same for the same parts."""
        return str(uuid5(UUID(str(uuid5(NAMESPACE_URL, "memreplay"))), "\x1f".join([self.path, *map(str, parts)])))


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid"))
class ChannelScore:
    """Rank (1-based) and score of an item in one retrieval channel (``dense``, ``keyword``…).

    No model: a conversation has tens of thousands of them, and a model takes 0.4 kB more.
    """

    rank: int
    score: float


class Excerpt(NamedTuple):
    """The place of one turn's words in the text of a hit that has several: ``text[start:end]``.

    ``rank`` is the order in which memory took turns for all hits of the recall, from 1: a smaller budget would have
    left out those that it took last.
    """

    turn: str
    rank: int
    start: int
    end: int


class Hit(Frozen):
    """Something that memory returned for a question or a message.

    ``store`` is a label, ``place`` the key or collection. ``turns`` are the turns whose verbatim text is in
    ``text``; ``sources`` those that a distilled text was made from. ``text`` is as it appears in the context.
    A memory that fills its budget turn by turn, and not hit by hit, names the ``excerpts`` of a hit.
    ``in_prompt`` is False for what was retrieved and then cut because it did not fit.
    """

    id: str
    store: str
    place: str
    rank: int
    score: FiniteScore
    text: StorableText
    turns: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    channels: Mapping[str, ChannelScore] = {}
    tokens: int = 0
    in_prompt: bool = True


class Cut(Frozen):
    """A part that did not fit: the ``place`` it was cut from, the turns wholly or partly lost, and its tokens.

    A memory that reads a whole log on every ordinary turn reports only what was newly cut at that turn.
    """

    place: str
    turns: tuple[str, ...]
    tokens: int


class Recall(Frozen):
    """The result of reading memory for a message or a question: ranked hits, and the context made of them.

    ``missed`` are the next candidates below the cut, without their text: their ranks per channel show why they were
    not retrieved. Memories that search set ``why_empty`` if there is no hit.
    """

    hits: tuple[Hit, ...] = ()
    missed: tuple[Hit, ...] = ()
    why_empty: WhyEmpty | None = None
    context: StorableText = ""
    tokens: int = 0
    cut: tuple[Cut, ...] = ()

    @property
    def turns_in_context(self) -> frozenset[str]:
        """Return ids of all turns whose verbatim text is in the context."""
        return frozenset(turn for hit in self.hits if hit.in_prompt for turn in hit.turns)


class Snapshot(Frozen):
    """The content of the stores for one namespace, by the label of the store (``redis``, ``sqlite``,
    ``notebook``…).

    ``values`` maps a label to keys and their values: a text is a log, anything else a JSON state. ``points`` maps a
    label to collections, and each collection to the ids and payloads of its points. A key occurs under one label.
    ``is_known`` is False where a memory cannot list what it holds: then nothing is said of it.
    """

    values: Mapping[str, Mapping[str, Any]] = {}
    points: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]] = {}
    is_known: bool = True


class StoreInfo(Frozen):
    """A description of the keys that begin with ``prefix`` (or of a collection), for scorer and debugger.

    ``is_scratch``: working notes of an agent, or a record that no search reads; writing a turn there does not count
    as remembering it. ``slots``: the field of a state that maps each slot to its current value, ``{"value": …,
    "turn": turn id}`` or ``{"values": [those]}``. ``superseded_field``: the payload field that is set once a later
    point took a point's place.
    """

    prefix: str
    is_scratch: bool = False
    slots: str | None = None
    superseded_field: str | None = None


PanelName = Literal["state", "log", "stores", "written", "retrievals", "promotions", "operations"]


class PanelInfo(Frozen):
    """A panel of the memory page. ``weight`` is its share of the height.

    ``state`` has a ``title`` and shows the states whose keys begin with ``prefix``; ``log`` shows the context log,
    ``stores`` all states, logs and points, ``written`` the points written at a turn, ``retrievals`` the hits of a
    read path, ``promotions`` the decisions on promotion candidates, ``operations`` the store commands.
    """

    panel: PanelName
    weight: int
    title: str = ""
    prefix: str = ""


class MemoryDescription(Frozen):
    """A memory's description of itself, recorded with each conversation: a replay needs no backend class.

    ``channels`` explains the names in :attr:`Hit.channels`, each in a few words. ``is_known`` is False where
    what the memory holds cannot be listed.
    """

    stores: tuple[StoreInfo, ...] = ()
    panels: tuple[PanelInfo, ...] = (
        PanelInfo(panel="stores", weight=5),
        PanelInfo(panel="retrievals", weight=4),
        PanelInfo(panel="operations", weight=3),
    )
    channels: Mapping[str, str] = {}
    is_known: bool = True

    def store_of(self, key: str) -> StoreInfo:
        """Return what is known of a key or collection; nothing in particular if no prefix fits."""
        return next((store for store in self.stores if key.startswith(store.prefix)), StoreInfo(prefix=key))


@runtime_checkable
class MemoryBackend(Protocol):
    """A memory architecture. One instance serves one conversation, and is used by one task at a time.

    Every method may raise :class:`BackendError`; that is an error outcome of a turn or a question, not of the run.
    Subclass it to inherit the defaults, or just write the same methods.
    """

    name: str
    trace: MemoryTrace
    perceive_changes_recall: bool = False
    """True if skipping :meth:`perceive` could change what a later :meth:`recall` returns."""
    limited_by_top_k: bool = True
    """True if :meth:`recall` returns at most ``top_k`` ranked hits. A memory that returns all it has sets False:
    then only its budget of tokens limits it, and recall at k does not apply to it."""
    can_be_kept: bool = False
    """True if :meth:`save` and :meth:`load` work, so that a later run need not ingest the conversation again."""
    takes: tuple[str, ...] = ()
    """Settings that it follows, of those that not every memory does: ``extractor`` if it uses the extractor or chat
    model of its resources."""
    description: MemoryDescription = MemoryDescription()
    """Description of its stores and panels. The default suits any memory."""

    async def open(self, namespace: Namespace) -> None:
        """Start empty: remove what an earlier attempt left under this namespace."""
        ...

    async def perceive(self, message: Message, top_k: int, context_tokens: int) -> Recall:
        """Return the read path of an ordinary turn; may change working state. Same arguments as :meth:`recall`."""
        return Recall()

    async def observe(self, exchange: Exchange) -> None:
        """Write an exchange to memory. Observing the same exchange twice changes nothing."""
        ...

    async def settle(self) -> None:
        """Wait for work in the background (consolidation). Called before the next read."""
        return

    def set_token_counter(self, count_tokens: TokenCounter) -> None:
        """Measure later reads with the token counter of the model that will read them.

        Called before each read. A memory may ignore it and keep the counter that it was created with.
        """
        return

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        """Return the read path of a question: at most ``top_k`` hits and ``context_tokens`` tokens of context.

        It must not change what a later recall returns.
        """
        ...

    async def snapshot(self) -> Snapshot:
        """Return what the stores hold now, read back from them, untraced."""
        ...

    async def close(self, status: ClosingStatus) -> None:
        """End the conversation: it is over (``resolved``), or the replay was abandoned (``cancelled``)."""
        return

    async def save(self, path: Path) -> None:
        """Write everything that was stored into an empty folder."""
        raise BackendError(f"{self.name} cannot be saved")

    async def load(self, path: Path) -> None:
        """Fill the open, empty memory from a folder that :meth:`save` wrote, maybe under another namespace.

        Afterwards :meth:`snapshot` returns what it did when the memory was saved.
        """
        raise BackendError(f"{self.name} cannot be loaded")

    @staticmethod
    def texts_to_embed(exchanges: Sequence[Exchange]) -> Sequence[str]:
        """Texts of a conversation that it will embed, so that a run can embed them ahead in large batches.

        Only a matter of speed: it may return some of them, or none.
        """
        return ()
