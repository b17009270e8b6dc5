"""What memory tests are made of. It is the contract's own material, which ``memreplay check-backend`` uses too."""

from __future__ import annotations

from memory_backends import ARCHITECTURES
from memory_backends.base import MemoryDescription, Namespace
from memory_backends.contract.trial import (
    Key,
    TickingClock,
    WordEmbedder,
    contents,
    count_words,
    exchange,
    fold,
    play,
    turns_cut,
    turns_said_in,
)
from memory_backends.registry import backend_class

__all__ = [
    "DESCRIPTIONS",
    "Key",
    "TickingClock",
    "WordEmbedder",
    "contents",
    "count_words",
    "exchange",
    "fold",
    "namespace",
    "play",
    "turns_cut",
    "turns_said_in",
]


DESCRIPTIONS: dict[str, MemoryDescription] = {name: backend_class(name).description for name in ARCHITECTURES}


def namespace(backend: str, conversation: str = "talk", run: str = "run1") -> Namespace:
    return Namespace(run_id=run, conversation_id=conversation, backend=backend)
