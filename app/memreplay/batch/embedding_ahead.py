"""Embeds the texts of the next conversations while earlier ones are ingested and asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence

from memory_backends.base import Exchange
from memory_backends.registry import texts_to_embed
from memreplay.conversations.models import Conversation, exchanges_of

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
        """Whether there was another one."""
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
    """The exchanges of a conversation by the stretch that they end in; there is at least one stretch."""
    stretches: list[list[Exchange]] = [[] for _ in range(0, max(len(conversation.turns), 1), TURNS_PER_STRETCH)]
    for exchange in exchanges_of(conversation):
        stretches[(exchange.turn_number - 1) // TURNS_PER_STRETCH].append(exchange)
    return stretches


def questions_to_embed(conversation: Conversation, backends: Sequence[str]) -> list[str]:
    """The questions, if these memories embed anything of the conversation."""
    if not texts_to_embed(backends, exchanges_of(conversation)[:1]):
        return []
    return [question.text for question in conversation.questions]
