"""What is written to and read from the knowledge store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Point:
    """What is written: ``id`` is a UUID, ``vector`` has the store's dimension, ``payload`` is plain JSON."""

    id: str
    vector: NDArray[np.float32]
    payload: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Held:
    """A point as it was read."""

    id: str
    payload: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Found(Held):
    """A point as a search found it. ``score`` is the cosine similarity, higher is nearer."""

    score: float
