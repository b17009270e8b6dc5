"""The full-context agent (DD-03): the whole history as one text in Redis, read in its entirety for every turn."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from memory_backends.base import (
    BackendError,
    ClosingStatus,
    Cut,
    Exchange,
    Hit,
    MemoryBackend,
    MemoryDescription,
    Message,
    Namespace,
    PanelInfo,
    Recall,
    Snapshot,
    TokenCounter,
)
from memory_backends.records import ConversationHistoryLog
from memory_backends.resources import Resources
from memory_backends.retrieval.rendering import date_heading
from memory_backends.stores.redis import REDIS, OperatingMemory, RedisConnection
from memory_backends.stores.trace import MemoryTrace

ACTOR = "full_context_agent"


@dataclass(frozen=True)
class _Stretch:
    """The position of one turn in the log, in bytes.

    ``heading`` is the date line of its session, empty if the session has no date. It directly precedes the first
    turn of the session, which ``is_under_it``, and is not part of the stretch.
    """

    turn: str
    start: int
    end: int
    heading: str
    is_under_it: bool


@dataclass
class _Ledger:
    """The tokens of a log by one counter, counted once a line. ``before[n]`` precede the ``n``-th turn."""

    count: TokenCounter
    before: list[int] = field(default_factory=list)
    headings: dict[str, int] = field(default_factory=lambda: {"": 0})
    total: int = 0

    def apply(self, log: bytes, stretches: Sequence[_Stretch]) -> None:
        """Count what is new."""
        for stretch in stretches[len(self.before) :]:
            if stretch.heading not in self.headings:
                self.headings[stretch.heading] = self.count(stretch.heading)
            if stretch.is_under_it:
                self.total += self.headings[stretch.heading]
            self.before.append(self.total)
            self.total += self.count(log[stretch.start : stretch.end].decode())

    def tokens_from(self, number: int, stretch: _Stretch) -> int:
        """Tokens of a context that begins at this turn, under its date line: fewer the later it begins."""
        return self.headings[stretch.heading] + self.total - self.before[number]

    def first_that_fits(self, stretches: Sequence[_Stretch], context_tokens: int) -> int:
        """Return the earliest turn at which a context can begin; their number where none can."""
        numbers = range(len(stretches))
        return bisect_left(
            numbers, True, key=lambda number: self.tokens_from(number, stretches[number]) <= context_tokens
        )


class FullContextBackend(MemoryBackend):
    """One growing text and nothing else. If it does not fit, the oldest whole turns are cut.

    The log has one line a message, and a line with the date before the first exchange of a dated session. Tokens
    are counted once a line and counter, when the log is read.
    """

    name = "full_context"
    limited_by_top_k = False
    description = MemoryDescription(
        panels=(PanelInfo(panel="log", weight=5), PanelInfo(panel="operations", weight=1))
    )

    def __init__(self, redis: RedisConnection, count_tokens: TokenCounter, ttl_seconds: int | None = None) -> None:
        self.trace = MemoryTrace()
        self._memory = OperatingMemory(redis, self.trace)
        self._count_tokens = count_tokens
        self._ttl_seconds = ttl_seconds
        self._key: str | None = None
        self._stretches: list[_Stretch] = []
        self._ledgers: dict[TokenCounter, _Ledger] = {}
        self._observed: set[str] = set()
        self._text = ""
        self._session: int | None = None
        self._turns_cut = 0
        self._tokens_cut = 0

    @classmethod
    def create(cls, name: str, resources: Resources, evidence: object) -> FullContextBackend:
        """Create the memory for the registry."""
        return cls(resources.redis, resources.count_tokens, resources.ttl_seconds)

    async def open(self, namespace: Namespace) -> None:
        """No log yet."""
        self._key = ConversationHistoryLog.key(namespace.path)
        self._stretches = []
        self._ledgers = {}
        self._observed = set()
        self._session = None
        self._turns_cut = self._tokens_cut = 0
        with self.trace.caused_by("open", ACTOR):
            await self._memory.remove(self._key)

    async def perceive(self, message: Message, top_k: int, context_tokens: int) -> Recall:
        """Return the read of an ordinary turn, recorded so that the trace of a long conversation stays short.

        Its hit has neither text nor turns, since the log is in the trace, piece by piece; its cut names only the
        turns, and their tokens, that the turn before still had.
        """
        with self.trace.caused_by("perceive", ACTOR, (message.turn_id,)):
            read = await self._read(context_tokens)
        bare = tuple(hit.model_copy(update={"text": "", "turns": ()}) for hit in read.hits)
        return read.model_copy(update={"hits": bare, "cut": self._newly_cut(read.cut)})

    async def observe(self, exchange: Exchange) -> None:
        """Append the exchange, unless it is in the log already."""
        if self._observed.issuperset(exchange.turn_ids):
            return
        heading = f"{date_heading(exchange.said_at)}\n" if exchange.said_at else ""
        opens = exchange.session != self._session and heading != ""
        lines = [f"{message.line}\n" for message in exchange.messages]
        with self.trace.caused_by("observe", ACTOR, exchange.turn_ids):
            start = await self._memory.append_text(self._opened(), (heading if opens else "") + "".join(lines))
        start += len(heading.encode()) if opens else 0
        self._session = exchange.session
        self._observed.update(exchange.turn_ids)
        for message, line in zip(exchange.messages, lines, strict=True):
            end = start + len(line.encode())
            self._stretches.append(_Stretch(message.turn_id, start, end, heading, opens))
            start, opens = end, False

    def set_token_counter(self, count_tokens: TokenCounter) -> None:
        self._count_tokens = count_tokens

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        """Return the log, as much of its end as fits: one hit."""
        with self.trace.caused_by("recall", ACTOR):
            return await self._read(context_tokens)

    async def snapshot(self) -> Snapshot:
        """Return the log, read from Redis."""
        text = await self._memory.peek_text(self._opened())
        return Snapshot(values={} if text is None else {REDIS: {self._opened(): text}})

    async def close(self, status: ClosingStatus) -> None:
        """Leave the log in place, or let it expire after ``ttl_seconds``."""
        if self._ttl_seconds is not None and self._key is not None:
            with self.trace.caused_by("close", ACTOR):
                await self._memory.expire(self._key, self._ttl_seconds)

    async def _read(self, context_tokens: int) -> Recall:
        key = self._opened()
        log = ((await self._memory.read_text(key)) or "").encode()
        if not self._stretches:
            return Recall()
        ledger = self._ledgers.setdefault(self._count_tokens, _Ledger(self._count_tokens))
        ledger.apply(log, self._stretches)
        turns = [stretch.turn for stretch in self._stretches]
        first = ledger.first_that_fits(self._stretches, context_tokens)
        if first == len(turns):
            return Recall(cut=(Cut(place=key, turns=tuple(turns), tokens=ledger.total),))
        kept = self._stretches[first]
        text, tokens = kept.heading + log[kept.start :].decode(), ledger.tokens_from(first, kept)
        # Many questions are asked at once, and of long texts that are equal one is enough.
        text = self._text = self._text if text == self._text else text
        cut = Cut(place=key, turns=tuple(turns[:first]), tokens=ledger.total - tokens)
        hit = Hit(
            id=key,
            store=REDIS,
            place=key,
            rank=1,
            score=None,
            text=text,
            turns=tuple(turns[first:]),
            tokens=tokens,
        )
        return Recall(hits=(hit,), context=text, tokens=tokens, cut=(cut,) if first else ())

    def _newly_cut(self, cut: tuple[Cut, ...]) -> tuple[Cut, ...]:
        """Return what no earlier turn reported as cut."""
        turns, tokens = (cut[0].turns, cut[0].tokens) if cut else ((), 0)
        new = Cut(place=self._opened(), turns=turns[self._turns_cut :], tokens=max(tokens - self._tokens_cut, 0))
        self._turns_cut, self._tokens_cut = max(self._turns_cut, len(turns)), max(self._tokens_cut, tokens)
        return (new,) if new.turns else ()

    def _opened(self) -> str:
        if self._key is None:
            raise BackendError("The full_context memory is not open")
        return self._key
