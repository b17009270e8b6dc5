"""What a trial needs and no model: an embedder, a token counter, a clock."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from memory_backends.base import TextEmbedder


class WordEmbedder(TextEmbedder):
    """Texts that share words are near: each word has a direction of its own."""

    name = "words"
    dimension = 96

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of shape ``(len(texts), 96)``."""
        vectors = np.full((len(texts), self.dimension), 0.01, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                vectors[row, zlib.crc32(word.encode()) % self.dimension] += 1
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


def count_words(text: str) -> int:
    """Tokens: words and single marks; a line break is one too."""
    return len(re.findall(r"\w+|[^\w\s]|\n", text))


class TickingClock:
    """A second passes at every look."""

    def __init__(self, start: datetime = datetime(2025, 9, 14, 18, 30, tzinfo=UTC)) -> None:
        self._now = start

    def __call__(self) -> datetime:
        """The next second."""
        self._now += timedelta(seconds=1)
        return self._now
