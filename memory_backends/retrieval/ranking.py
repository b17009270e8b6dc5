"""Unit vectors, scores scaled to 0..1, and ranks: for combining retrieval channels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


def scaled(values: Scores) -> Scores:
    """Values scaled to 0..1; all 0 where they do not differ."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def ranks_of(values: Scores) -> NDArray[np.int_]:
    """1-based ranks, best first; of two equal values the earlier first."""
    ranks = np.empty(len(values), dtype=int)
    ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return ranks


def unit_vectors(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to unit length; one without a direction stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return unit
