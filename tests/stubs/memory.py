"""What memory tests are made of: conversations by hand, an embedder and a token counter that need no model."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from memory_backends.base import Exchange, MemoryBackend, Message, Namespace, Recall, TextEmbedder


class WordEmbedder(TextEmbedder):
    """Texts that share words are near: each word has a direction of its own."""

    name = "words"
    dimension = 96

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.full((len(texts), self.dimension), 0.01, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                vectors[row, zlib.crc32(word.encode()) % self.dimension] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def count_words(text: str) -> int:
    """Tokens: words and single marks; a line break is one too."""
    return len(re.findall(r"\w+|[^\w\s]|\n", text))


class TickingClock:
    """A second passes at every look."""

    def __init__(self, start: datetime = datetime(2025, 9, 14, 18, 30, tzinfo=UTC)) -> None:
        self._now = start

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


def namespace(backend: str, conversation: str = "talk", run: str = "run1") -> Namespace:
    return Namespace(run_id=run, conversation_id=conversation, backend=backend)


def exchange(number: int, user: str, assistant: str, session: int = 1, said_at: datetime | None = None) -> Exchange:
    """The ``number``-th exchange of a talk between a user and an assistant; turns 2·number − 1 and 2·number."""
    turn = 2 * number - 1
    return Exchange(
        messages=(
            Message(
                turn_id=str(turn),
                turn_number=turn,
                session=session,
                role="user",
                label="User",
                text=user,
                said_at=said_at,
            ),
            Message(
                turn_id=str(turn + 1),
                turn_number=turn + 1,
                session=session,
                role="assistant",
                label="AI",
                text=assistant,
                said_at=said_at,
            ),
        )
    )


async def play(backend: MemoryBackend, exchanges: Sequence[Exchange], *, limit: int = 5, budget: int = 400) -> None:
    """Replay exchanges as the engine does: each user turn is perceived, each exchange observed and settled."""
    for each in exchanges:
        for message in each.messages:
            if message.role == "user":
                await backend.perceive(message, limit, budget)
        await backend.observe(each)
        await backend.settle()


def turns_said_in(text: str, exchanges: Sequence[Exchange]) -> set[str]:
    """Ids of the turns whose line stands in the text."""
    return {message.turn_id for each in exchanges for message in each.messages if message.line in text}


def turns_cut(recall: Recall) -> set[str]:
    return {turn for cut in recall.cut for turn in cut.turns}
