"""Reranking: a model reads the question with each candidate, and its scores decide their order."""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Sequence
from pathlib import Path

from memory_backends.base import ChannelScore, MemoryDescription, TextReranker
from memory_backends.retrieval.disk_cache import DiskCache, text_key

RERANKED = 60
"""Candidates of a search that are reranked, at most.

On LoCoMo, four of five questions with evidence have all of it among the first 60 turns of ``hybrid``'s ranking. One
search of Cohere's price list has up to 100 texts.
"""

CHANNEL = "reranker"
_WORDS = "how well the reranker thinks that it answers the message; it decides the order"

_SCORE = struct.Struct("<d")
_LOCKS = 64


async def best_first(reranker: TextReranker, query: str, texts: Sequence[str]) -> list[tuple[int, ChannelScore]]:
    """Return the places of the texts by their scores, best first; of two equal ones the earlier first."""
    if not texts:
        return []
    scores = [round(score, 6) for score in await asyncio.to_thread(reranker.score, query, texts)]
    places = sorted(range(len(texts)), key=lambda place: -scores[place])
    return [(place, ChannelScore(rank=rank, score=scores[place])) for rank, place in enumerate(places, start=1)]


def with_reranker(description: MemoryDescription) -> MemoryDescription:
    """Return the description of a memory that has a reranker as one more channel."""
    return description.model_copy(update={"channels": {**description.channels, CHANNEL: _WORDS}})


class StoredReranker(TextReranker):
    """A reranker whose scores are kept in the file at ``path``; safe to share by threads.

    Of equal questions at the same time the first asks the model, and the others wait for its scores. One that
    ``writes`` nothing only finds scores there.
    """

    def __init__(self, inner: TextReranker, path: Path, *, writes: bool = True) -> None:
        self.name = inner.name
        self._inner = inner
        self._cache = DiskCache(path, "score", writes=writes)
        self._locks = [threading.Lock() for _ in range(_LOCKS)]

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score a text; errors are the inner reranker's."""
        asked = text_key(query)
        keys = [asked + text_key(text) for text in texts]
        with self._locks[asked[0] % _LOCKS]:
            held = self._cache.read(self.name, list(dict.fromkeys(keys)))
            known = {
                key: float(_SCORE.unpack(value)[0]) for key, value in held.items() if len(value) == _SCORE.size
            }
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
            if missing:
                fresh = dict(zip(missing, self._inner.score(query, list(missing.values())), strict=True))
                self._cache.write(self.name, {key: _SCORE.pack(score) for key, score in fresh.items()})
                known.update(fresh)
        return [known[key] for key in keys]

    def close(self) -> None:
        """Close the file."""
        self._cache.close()
