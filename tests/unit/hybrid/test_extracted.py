"""A hybrid memory whose candidates a model reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from memory_backends.base import Exchange
from memory_backends.hybrid.backend import HybridBackend
from memory_backends.metering import ExtractedFact
from memory_backends.records import KNOWLEDGE_COLLECTION, SharedWorkspaceState
from memory_backends.stores.trace import Extraction, PromotionDecision
from tests.stubs.memory import exchange, namespace, play

TALK = [exchange(1, "I keep bees.", "How many hives?"), exchange(2, "Nine, no, ten hives.", "Ten!")]


def fact(turn: str, text: str, slot: str | None, value: str, certainty: float = 0.9) -> ExtractedFact:
    return ExtractedFact(
        turn_id=turn,
        text=text,
        slot=slot,
        value=value,
        certainty=certainty,
        impact=0.9,
        justification="it is a lasting fact",
    )


class TableExtractor:
    """Reads from a table of turns."""

    name = "stub/reader"

    def __init__(self, facts: Mapping[str, tuple[ExtractedFact, ...]], error: str | None = None) -> None:
        self._facts = facts
        self._error = error

    async def extract(self, exchange: Exchange) -> tuple[tuple[ExtractedFact, ...], Extraction]:
        facts = () if self._error else tuple(f for turn in exchange.turn_ids for f in self._facts.get(turn, ()))
        return facts, Extraction(
            model=self.name, turns=exchange.turn_ids, facts=len(facts), cost_usd=0.001, error=self._error
        )


async def told(resources, extractor: TableExtractor) -> HybridBackend:
    backend = HybridBackend(replace(resources, extractor=extractor))
    await backend.open(namespace("hybrid"))
    await play(backend, TALK)
    return backend


async def test_its_facts_are_judged_promoted_and_shared_with_its_justification(resources):
    backend = await told(
        resources, TableExtractor({"1": (fact("1", "The user keeps bees.", "user.hobby", "bees"),)})
    )
    entries = backend.trace.drain()
    (decision,) = [entry for entry in entries if isinstance(entry, PromotionDecision)]
    assert (decision.decision, decision.sources) == ("ADD", ("1",))
    assert decision.justification == "stub/reader read 'bees' (it is a lasting fact), and it was not known."
    held = await backend.snapshot()
    (document,) = held.points["qdrant"][KNOWLEDGE_COLLECTION].values()
    assert (document["content"], document["justification"]) == (
        "User: The user keeps bees.",
        "it is a lasting fact",
    )
    workspace = held.values["redis"][SharedWorkspaceState.key(namespace("hybrid").path)]
    assert workspace["shared_data"]["user.hobby"]["value"] == "bees"


async def test_a_later_value_supersedes_the_earlier(resources):
    extractor = TableExtractor(
        {"1": (fact("1", "Nine hives.", "hives", "nine"),), "3": (fact("3", "Ten hives.", "hives", "ten"),)}
    )
    documents = (
        (await (await told(resources, extractor)).snapshot()).points["qdrant"][KNOWLEDGE_COLLECTION].values()
    )
    assert {d["value"]: d["superseded_by"] is None for d in documents} == {"nine": False, "ten": True}


async def test_every_call_is_in_the_trace_with_its_cost(resources):
    backend = await told(resources, TableExtractor({}))
    calls = [entry for entry in backend.trace.drain() if isinstance(entry, Extraction)]
    assert [call.turns for call in calls] == [("1", "2"), ("3", "4")]
    assert [call.cost_usd for call in calls] == [0.001, 0.001]


async def test_a_failed_call_gives_no_candidates_and_loses_no_word(resources):
    backend = await told(resources, TableExtractor({}, error="no more credit"))
    calls = [entry for entry in backend.trace.drain() if isinstance(entry, Extraction)]
    assert [call.error for call in calls] == ["no more credit"] * 2
    assert "Nine, no, ten hives." in (await backend.recall("How many hives?", 5, 200)).context


@pytest.mark.parametrize(
    "wrong",
    [fact("99", "Of another turn.", None, "x"), fact("1", "Of no value.", None, " . ")],
    ids=["another turn", "no value"],
)
async def test_what_is_no_fact_of_the_exchange_is_no_candidate(resources, wrong):
    backend = await told(resources, TableExtractor({"1": (wrong,)}))
    assert not [entry for entry in backend.trace.drain() if isinstance(entry, PromotionDecision)]
