"""Embeds the texts of the next conversations while earlier ones are ingested and asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence

from memory_backends.registry import texts_to_embed
from memreplay.conversations.models import Conversation, exchanges_of

TEXTS_PER_CALL = 256
"""Texts of one call of the embedder; between calls the run can stop."""

TEXTS_PER_POOL = 1024
"""Conversations are pooled until they have this many texts: of more texts, more have the same length."""


class EmbeddingAhead:
    """The texts of all conversations, pooled: each once, short ones first, so that little of a batch is padding.

    The first conversation is a pool of its own, so that its questions do not wait. One pool is embedded at a time,
    and one ahead of the conversation that is ingested. ``is_wanted`` says which conversations will be ingested,
    ``filled`` by which memories they need not be, since an earlier run filled them.
    """

    def __init__(
        self,
        conversations: Sequence[Conversation],
        backends: Sequence[str],
        embed: Callable[[Sequence[str]], Awaitable[None]],
        is_wanted: Callable[[Conversation], bool] = lambda conversation: True,
        filled: Callable[[Conversation], Collection[str]] = lambda conversation: (),
    ) -> None:
        self._waiting = list(reversed(conversations))
        self._backends, self._embed = backends, embed
        self._is_wanted, self._filled = is_wanted, filled
        self._pools: dict[str, asyncio.Task[None]] = {}
        self._latest: asyncio.Task[None] | None = None
        self._stopped = False

    async def of(self, conversation: Conversation) -> None:
        """Return when the texts of a conversation are embedded. Those of the next ones are begun.

        Errors are the embedder's.
        """
        while conversation.id not in self._pools and self._waiting:
            self._begin_pool()
        pool = self._pools.pop(conversation.id, None)
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

    def _begin_pool(self) -> None:
        texts: dict[str, None] = {}
        ids = []
        most = 1 if self._latest is None else TEXTS_PER_POOL
        while self._waiting and len(texts) < most:
            conversation = self._waiting.pop()
            ids.append(conversation.id)
            if self._is_wanted(conversation):
                filled = self._filled(conversation)
                empty = [name for name in self._backends if name not in filled]
                texts |= dict.fromkeys(texts_of(conversation, empty))
        if ids:
            self._latest = asyncio.create_task(self._embedded(sorted(texts, key=len), self._latest))
            self._pools |= dict.fromkeys(ids, self._latest)

    async def _embedded(self, texts: Sequence[str], earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None:
            await asyncio.wait([earlier])
        for first in range(0, len(texts), TEXTS_PER_CALL):
            if self._stopped:
                return
            await self._embed(texts[first : first + TEXTS_PER_CALL])


def texts_of(conversation: Conversation, backends: Sequence[str]) -> list[str]:
    """What memories will embed of a conversation, with its questions if they embed anything."""
    return with_questions(conversation, list(texts_to_embed(backends, exchanges_of(conversation))))


def with_questions(conversation: Conversation, texts: Sequence[str]) -> list[str]:
    """Texts of a conversation and its questions; none where there are no texts."""
    return [*texts, *(question.text for question in conversation.questions)] if texts else []
