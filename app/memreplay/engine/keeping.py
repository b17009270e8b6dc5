"""Ingest once, ask many: a filled memory comes back from an earlier run together with what it did to get filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from memory_backends.base import MemoryBackend
from memreplay.engine.events import (
    BackgroundWorkSettled,
    FactsExtracted,
    ModelCalled,
    Observed,
    PromotionDecided,
    ReplayEvent,
    StoreOperated,
)

_OF_INGESTING = (Observed, BackgroundWorkSettled, StoreOperated, PromotionDecided, FactsExtracted, ModelCalled)


@dataclass(frozen=True)
class KeptIngestion:
    """A memory has ingested everything up to turn ``until``; ``events`` are what it did, by turn number."""

    until: int
    events: Mapping[int, Sequence[ReplayEvent]]

    def at(self, turn: int) -> list[ReplayEvent]:
        """What memory did at a turn, as events of this run."""
        return [
            event.model_copy(update={"reused": True}) if isinstance(event, Observed) else event
            for event in self.events.get(turn, ())
        ]


class KeptMemoryError(Exception):
    """A kept memory cannot be used: the memory that was to load it has to be opened anew."""


class Keeper(Protocol):
    """A port: keeps filled memories of one conversation."""

    async def restore(self, backend: MemoryBackend) -> KeptIngestion | None:
        """Fill an open, empty memory with the longest beginning of the conversation that is kept.

        Raises:
            KeptMemoryError: memory may be half filled.
        """
        ...

    async def keep(self, backend: MemoryBackend, until: int, events: Sequence[ReplayEvent]) -> None:
        """Keep a memory that has ingested everything up to turn ``until``. A failure is no error of the run."""
        ...


def of_ingesting(event: ReplayEvent) -> bool:
    """Whether an event tells what a memory did with an exchange."""
    return isinstance(event, _OF_INGESTING)
