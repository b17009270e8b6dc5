"""The rules on conversations with every statement labelled by hand: those they were chosen on, and those held out.

``held_out.json`` was written after the rules that it first measured, and its misses were read before they changed.
What the rules give on conversations that nobody looked at stands in ``rules/README.md``: change a rule for its
form, and report what it gives on new ones. A turn is ``[message, reply, labels]``, a label ``[kind, words of the
statement, words of the older statement that it ends]``; ``none`` is no fact.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from memory_backends.hybrid.backend import HybridBackend
from memory_backends.records import KNOWLEDGE_COLLECTION
from memory_backends.resources import MemoryOptions, Resources
from memory_backends.retrieval.embedding import MiniLMEmbedder
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from tests.stubs.memory import TickingClock, count_words, exchange, namespace

Conversations = list[dict[str, Any]]


def conversations(name: str) -> Conversations:
    """The conversations of a file."""
    found: Conversations = json.loads((Path(__file__).parent / f"{name}.json").read_text("utf-8"))
    return found


@dataclass
class Measured:
    """What became of the labelled statements, over all conversations."""

    labelled: Counter[str] = field(default_factory=Counter)
    promoted: Counter[str] = field(default_factory=Counter)
    ends: int = 0
    ended: int = 0
    wrongly_ended: list[str] = field(default_factory=list)
    missed: list[tuple[str, str]] = field(default_factory=list)

    def add(self, turns: list[tuple[str, str, list[list[str]]]], facts: dict[str, dict[str, Any]]) -> None:
        """Count one conversation: its turns, and the facts that it left."""
        to_end = [label[2] for _, _, labels in turns for label in labels if len(label) > 2]
        over = [fact["content"] for fact in facts.values() if fact["superseded_by"]]
        for _, _, labels in turns:
            for kind, words, *ends in labels:
                self.labelled[kind] += 1
                if any(words in fact["content"] for fact in facts.values()):
                    self.promoted[kind] += 1
                else:
                    self.missed.append((kind, words))
                for old in ends:
                    self.ends += 1
                    if any(old in content for content in over):
                        self.ended += 1
                    else:
                        self.missed.append(("ended", old))
        self.wrongly_ended += [content for content in over if not any(old in content for old in to_end)]


async def measure(played: Conversations) -> Measured:
    """Play conversations, each into an empty memory that keeps no verbatim text."""
    result = Measured()
    embedder = MiniLMEmbedder()
    for conversation in played:
        redis, qdrant = RedisConnection.embedded(), QdrantConnection.embedded()
        options = MemoryOptions(ablated=frozenset({"verbatim"}))
        memory = HybridBackend(Resources(redis, qdrant, embedder, count_words, TickingClock(), options=options))
        await memory.open(namespace(conversation["id"]))
        for number, (said, reply, _) in enumerate(conversation["turns"], start=1):
            await memory.observe(exchange(number, said, reply))
        facts = (await memory.snapshot()).points["qdrant"][KNOWLEDGE_COLLECTION]
        result.add(conversation["turns"], facts)
        await memory.close("cancelled")
        await redis.aclose()
        await qdrant.aclose()
    return result


LEAST: dict[str, dict[str, tuple[int, int]]] = {
    "held_out": {
        "personal": (11, 12),
        "instruction": (8, 9),
        "technical": (34, 34),
        "preference": (3, 4),
        "correction": (34, 37),
        "ended": (22, 37),
    },
    "developed_on": {
        "personal": (60, 62),
        "instruction": (27, 27),
        "technical": (93, 97),
        "preference": (13, 13),
        "correction": (109, 112),
        "ended": (64, 107),
    },
}
"""Statements of each kind that are at least promoted, and old values that are ended, of how many."""


# It embeds every statement of 38 conversations.
@pytest.mark.parametrize("name", LEAST)
def test_no_fewer_statements_are_promoted_and_ended_than_measured_and_none_wrongly(name: str) -> None:
    measured = asyncio.run(measure(conversations(name)))
    found = {kind: (measured.promoted[kind], count) for kind, count in measured.labelled.items() if kind != "none"}
    found["ended"] = (measured.ended, measured.ends)
    least = LEAST[name]
    assert {kind: count for kind, (_, count) in found.items()} == {
        kind: count for kind, (_, count) in least.items()
    }
    assert all(found[kind][0] >= least[kind][0] for kind in least), (found, measured.missed)
    assert measured.wrongly_ended == []
    assert measured.promoted["none"] <= 2, "remarks that are no facts"
