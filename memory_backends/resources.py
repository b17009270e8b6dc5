"""The resources and options that memories are made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from memory_backends.base import BackendError, Clock, TextEmbedder, TextReranker, TokenCounter
from memory_backends.metering import FactExtractor, MeteredChat, MeteredEmbedder, MeteredExtractor, MeteredReranker
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memory_backends.stores.trace import MemoryTrace

MECHANISMS: Mapping[str, str] = {
    "promotion": "no candidate is promoted to long-term memory",
    "supersession": "a corrected value does not end the one it corrects",
    "verbatim": "exchanges are not stored word for word",
    "knowledge": "distilled facts are not recalled",
    "shared": "the workspace takes in no facts, and is not recalled",
    "personal": "the planner's own notes and standing instructions are not recalled",
    "dense": "turns are ranked without vectors",
    "keyword": "turns are ranked without their words",
    "speaker": "turns are ranked without who said them",
    "date": "turns are ranked without when they were said",
}
"""Mechanisms that can be switched off, and what happens then."""

TIER_SHARES: Mapping[str, float] = {"personal": 0.05, "shared": 0.1, "knowledge": 0.1}
"""The most that each tier may take of a recall's hits and of its tokens. Verbatim text has all the rest."""


class MemoryOptionError(BackendError):
    """An unknown mechanism or tier, or a share out of range."""


@dataclass(frozen=True)
class MemoryOptions:
    """The mechanisms switched off (names of :data:`MECHANISMS`), and the share of each tier (0..1)."""

    ablated: frozenset[str] = frozenset()
    shares: Mapping[str, float] = field(default_factory=lambda: dict(TIER_SHARES))

    def keeps(self, mechanism: str) -> bool:
        """Return whether a mechanism is on."""
        return mechanism not in self.ablated


DEFAULTS = MemoryOptions()


def memory_options(ablated: Iterable[str], shares: Iterable[str]) -> MemoryOptions:
    """Options from their names; each share is ``tier=number``.

    Raises:
        MemoryOptionError: one of them is invalid; the message lists the valid ones.
    """
    names = frozenset(ablated)
    for name in sorted(names - MECHANISMS.keys()):
        raise MemoryOptionError(f"unknown mechanism {name!r}; choose from {', '.join(MECHANISMS)}")
    given: dict[str, float] = {}
    for tier, share in map(_share, shares):
        if tier in given:
            raise MemoryOptionError(f"the tier {tier} has two shares: {given[tier]:g} and {share:g}")
        given[tier] = share
    chosen = {**TIER_SHARES, **given}
    if sum(chosen.values()) > 1:
        raise MemoryOptionError(f"the shares of the tiers add up to {sum(chosen.values()):g}, which is more than 1")
    return MemoryOptions(names, chosen)


def _share(text: str) -> tuple[str, float]:
    tier, _, number = text.partition("=")
    try:
        share = float(number)
    except ValueError:
        share = -1.0
    if tier not in TIER_SHARES or not 0 <= share <= 1:
        raise MemoryOptionError(
            f"{text!r} is not a share of a tier; expected tier=number with a tier of {', '.join(TIER_SHARES)}"
            " and a number from 0 to 1"
        )
    return tier, share


def system_clock() -> datetime:
    """Now, in UTC and timezone-aware."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Resources:
    """The resources that memories are made from; shared by all conversations of a run.

    ``ttl_seconds`` is set on the Redis keys of a conversation when it is closed; None keeps them. With
    ``--extractor`` a memory may call that model: ``extractor`` reads candidate facts with our prompt, ``chat``
    answers any prompt. Both are None without it: then a memory writes by its own rules, or word for word.
    ``reranker`` is that of ``--reranker``, None without it. ``configs`` are the user's own settings of libraries,
    by the name of their adapter.
    """

    redis: RedisConnection
    qdrant: QdrantConnection
    embedder: TextEmbedder
    count_tokens: TokenCounter
    clock: Clock
    ttl_seconds: int | None = None
    options: MemoryOptions = field(default_factory=MemoryOptions)
    extractor: FactExtractor | None = None
    chat: MeteredChat | None = None
    reranker: TextReranker | None = None
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def metered_by(self, trace: MemoryTrace) -> Resources:
        """Return the resources of one memory, whose model calls become entries of its trace."""
        return replace(
            self,
            embedder=MeteredEmbedder(self.embedder, trace),
            extractor=self.extractor and MeteredExtractor(self.extractor, trace),
            chat=self.chat and self.chat.metered_by(trace),
            reranker=self.reranker and MeteredReranker(self.reranker, trace),
        )
