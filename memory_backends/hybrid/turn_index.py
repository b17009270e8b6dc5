"""The turns of a conversation by their sentences' vectors.

The vector of a long message is the mean of much that nobody asked for; the sentence that answers is near to the
question by itself. A turn is as near as its nearest sentence. Like the keyword index this is made from what is
written to Qdrant, where one point is one exchange, and is gone when the conversation is closed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory_backends.ranking import Scores

_FIRST_ROWS = 256


class SentenceIndex:
    """Vectors of unit length, each owned by a turn. Turns are numbered from 0 in the order of their addition."""

    def __init__(self, dimension: int) -> None:
        self._vectors = np.empty((_FIRST_ROWS, dimension), dtype=np.float32)
        self._owner: list[int] = []
        self._turns = 0

    def add(self, vectors: Sequence[NDArray[np.float32]]) -> None:
        """Add the next turn with the vectors of its sentences; it may have none."""
        first, end = len(self._owner), len(self._owner) + len(vectors)
        if end > len(self._vectors):
            grown = np.empty((max(end, 2 * len(self._vectors)), self._vectors.shape[1]), dtype=np.float32)
            grown[:first] = self._vectors[:first]
            self._vectors = grown
        for row, vector in enumerate(vectors, start=first):
            self._vectors[row] = vector
        self._owner += [self._turns] * len(vectors)
        self._turns += 1

    def cosines(self, vector: NDArray[np.float32]) -> Scores:
        """Each sentence's cosine, shape ``(sentences,)``, to six decimals."""
        # einsum and not a matrix product: that of BLAS starts threads, and its last bits change with their number.
        cosines: Scores = np.einsum("ij,j->i", self._vectors[: len(self._owner)], vector).astype(np.float64)
        return np.round(cosines, 6)

    def best(self, cosines: Scores) -> Scores:
        """Each turn's best cosine, shape ``(turns,)``; a turn without a sentence has the least."""
        best = np.full(self._turns, cosines.min() if len(cosines) else 0.0)
        np.maximum.at(best, np.array(self._owner, dtype=int), cosines)
        return best

    def of(self, turn: int, cosines: Scores) -> tuple[float, ...]:
        """The cosines of one turn's sentences, in order."""
        first, end = bisect_left(self._owner, turn), bisect_right(self._owner, turn)
        return tuple(cosines[first:end].tolist())
