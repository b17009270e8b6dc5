"""Play a conversation to memories: embed its texts ahead, and step through its turns.

:func:`play` is the one loop of runs without a screen. A worker runs it with a list as its sink, recalls for all
questions, and sends back a :class:`Played`; the run then plays that to its recorder in the place of memories.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from memory_backends.base import ClosingStatus, Exchange
from memory_backends.registry import texts_to_embed
from memreplay.conversations.models import Conversation, exchanges_of
from memreplay.engine.backend_driver import PlayedMemory, Recalled
from memreplay.engine.events import BackendFailed, ConversationOpened, ReplayEvent, TurnPlayed
from memreplay.engine.session import Ask, ReplaySession
from memreplay.llm.rate_limiter import StoppedError

EmbedAhead = Callable[[int], Awaitable[None]]
"""Embeds the texts of a stretch of a conversation, by its 0-based number."""


async def play(session: ReplaySession, embed_ahead: EmbedAhead, stopping: Callable[[], bool]) -> None:
    """Open the memories, and play all turns to them. It stops between two turns.

    Raises:
        StoppedError: no more calls are made to a model that one memory needs.
    """
    await embed_ahead(0)
    if stopping():
        return
    await session.open()
    while not stopping():
        began = monotonic()
        if not await session.step():
            break
        await _process_replies(monotonic() - began)
        if session.position % TURNS_PER_STRETCH == 0 and not session.finished:
            await embed_ahead(session.position // TURNS_PER_STRETCH)


_ROUNDS_PER_REPLY = 24
"""Rounds of the event loop from the arrival of a reply until it is on disk.

An estimate, not a measurement. A reply that needs more rounds is stored when ingestion next gives way."""


_SHORT_STEP = 0.002
"""Seconds. After so short a step one round is enough: the next ones bring the reply to the disk."""


async def _process_replies(seconds: float) -> None:
    """Let replies that arrived meanwhile reach the disk: embedded stores never yield to the event loop."""
    for _ in range(1 if seconds < _SHORT_STEP else _ROUNDS_PER_REPLY):
        await asyncio.sleep(0)


@dataclass(frozen=True)
class Played:
    """The events and recalls of memories in another process, by name, up to turn ``position``.

    ``stopped`` says why they could not go on, where no more calls are made to a model. ``warnings`` are sentences
    for the user.
    """

    position: int
    memories: Mapping[str, PlayedMemory]
    stopped: StoppedError | None = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def failed(cls, conversation: Conversation, backends: Sequence[str], why: str) -> Played:
        """Return what stands for memories that failed before their first turn."""

        def failed(name: str) -> PlayedMemory:
            at = {"conversation": conversation.id, "backend": name}
            events = (BackendFailed(**at, turn=0, phase="open", error=why), ConversationOpened(**at, turn=0))
            return PlayedMemory({0: events}, broken=f"memory failed at turn 0 (open): {why}")

        return cls(len(conversation.turns), {name: failed(name) for name in backends})


async def play_and_recall(
    session: ReplaySession,
    events: list[ReplayEvent],
    asks: Sequence[Ask],
    embed_ahead: EmbedAhead,
    stopping: Callable[[], bool],
) -> Played:
    """Play a session whose sink is the list ``events``, recall for what will be asked, and close the memories."""
    stopped: StoppedError | None = None
    recalls: dict[str, dict[tuple[str, str], Recalled]] = {name: {} for name in session.ingesting}
    try:
        await play(session, embed_ahead, stopping)
        await session.keep()
        if session.finished:
            await session.check_stores()
        for ask in asks if session.finished else ():
            known, key = recalls[ask.backend], (ask.question.text, ask.model)
            if key not in known and not stopping():
                before = len(events)
                recall, ms = await session.recall(ask.question, ask.backend, ask.model)
                known[key] = Recalled(recall, ms, tuple(events[before:]))
                del events[before:]
        if session.finished:
            await session.check_stores()
    except StoppedError as error:
        stopped = error
    kept, lost = session.kept_until, session.lost
    status: ClosingStatus = "resolved" if session.finished and not stopping() and stopped is None else "cancelled"
    await session.close(status)
    by_turn: dict[str, dict[int, list[ReplayEvent]]] = {name: {} for name in session.ingesting}
    for event in events:
        if not isinstance(event, TurnPlayed):
            by_turn[event.backend].setdefault(event.turn, []).append(event)
    memories = {
        name: PlayedMemory(by_turn[name], recalls[name], status, kept.get(name, 0), lost.get(name))
        for name in session.ingesting
    }
    return Played(session.position, memories, stopped)


TEXTS_PER_CALL = 256
"""Texts of one call of the embedder; between calls the run can stop."""

TEXTS_PER_POOL = 1024
"""Conversations are pooled until they have this many texts: of more texts, more have the same length."""


TURNS_PER_STRETCH = 1000
"""Turns of a conversation that are embedded together. What was embedded, and which facts were read in it, is
remembered for a few stretches: of more it would be forgotten before the memories ask for it, and done twice."""

Stretch = tuple[str, int]
"""The id of a conversation and the 0-based number of one of its stretches."""


class EmbeddingAhead:
    """The texts of all conversations, pooled: each once, short ones first, so that little of a batch is padding.

    The first stretch is a pool of its own, so that nothing else is waited for. One pool is embedded at a time, and
    one ahead of the stretch that is ingested. ``is_wanted`` says which conversations will be ingested, ``filled``
    by which memories they need not be, since an earlier run filled them.
    """

    def __init__(
        self,
        conversations: Sequence[Conversation],
        backends: Sequence[str],
        embed: Callable[[Sequence[str]], Awaitable[None]],
        is_wanted: Callable[[Conversation], bool] = lambda conversation: True,
        filled: Callable[[Conversation], Collection[str]] = lambda conversation: (),
    ) -> None:
        self._backends, self._embed = backends, embed
        self._is_wanted, self._filled = is_wanted, filled
        self._waiting = self._stretches(conversations)
        self._pools: dict[Stretch, asyncio.Task[None]] = {}
        self._latest: asyncio.Task[None] | None = None
        self._stopped = False

    async def of(self, conversation: Conversation, number: int = 0) -> None:
        """Return when the texts of a stretch of a conversation are embedded. Those of the next ones are begun.

        Errors are the embedder's.
        """
        stretch = (conversation.id, number)
        while stretch not in self._pools and self._begin_pool():
            pass
        pool = self._pools.pop(stretch, None)
        if pool is None:
            return
        if pool is self._latest:
            self._begin_pool()
        await asyncio.shield(pool)

    def stop(self) -> None:
        """Begin no further call."""
        self._stopped = True

    async def end(self) -> None:
        """Wait for the call that is under way, after :meth:`stop`."""
        self.stop()
        if self._latest is not None:
            await asyncio.gather(self._latest, *self._pools.values(), return_exceptions=True)

    def _stretches(self, conversations: Sequence[Conversation]) -> Iterator[tuple[Stretch, list[str]]]:
        for conversation in conversations:
            filled = self._filled(conversation) if self._is_wanted(conversation) else self._backends
            empty = [name for name in self._backends if name not in filled]
            stretches = stretches_of(conversation)
            for number, exchanges in enumerate(stretches):
                texts = texts_to_embed(empty, exchanges)
                if number == len(stretches) - 1:
                    texts += questions_to_embed(conversation, empty)
                yield (conversation.id, number), texts

    def _begin_pool(self) -> bool:
        """Return whether there was another one."""
        texts: dict[str, None] = {}
        stretches = []
        most = 1 if self._latest is None else TEXTS_PER_POOL
        for stretch, new in self._waiting:
            stretches.append(stretch)
            texts |= dict.fromkeys(new)
            if len(texts) >= most:
                break
        if stretches:
            self._latest = asyncio.create_task(self._embedded(sorted(texts, key=len), self._latest))
            self._pools |= dict.fromkeys(stretches, self._latest)
        return bool(stretches)

    async def _embedded(self, texts: Sequence[str], earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None:
            await asyncio.wait([earlier])
        for first in range(0, len(texts), TEXTS_PER_CALL):
            if self._stopped:
                return
            await self._embed(texts[first : first + TEXTS_PER_CALL])


def stretches_of(conversation: Conversation) -> list[list[Exchange]]:
    """Return the exchanges of a conversation by the stretch that they end in; there is at least one stretch."""
    stretches: list[list[Exchange]] = [[] for _ in range(0, max(len(conversation.turns), 1), TURNS_PER_STRETCH)]
    for exchange in exchanges_of(conversation):
        stretches[(exchange.turn_number - 1) // TURNS_PER_STRETCH].append(exchange)
    return stretches


def questions_to_embed(conversation: Conversation, backends: Sequence[str]) -> list[str]:
    """Return the questions, if these memories embed anything of the conversation."""
    if not texts_to_embed(backends, exchanges_of(conversation)[:1]):
        return []
    return [question.text for question in conversation.questions]
