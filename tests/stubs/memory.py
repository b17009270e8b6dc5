"""What memory tests are made of. It is the contract's own material, which ``memreplay check-backend`` uses too."""

from __future__ import annotations

from memory_backends.base import Namespace
from memory_backends.contract.trial import (
    TickingClock,
    WordEmbedder,
    count_words,
    exchange,
    play,
    turns_cut,
    turns_said_in,
)

__all__ = [
    "TickingClock",
    "WordEmbedder",
    "count_words",
    "exchange",
    "namespace",
    "play",
    "turns_cut",
    "turns_said_in",
]


def namespace(backend: str, conversation: str = "talk", run: str = "run1") -> Namespace:
    return Namespace(run_id=run, conversation_id=conversation, backend=backend)
