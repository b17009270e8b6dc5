"""What is left of the hybrid memory when a part of it is switched off by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory_backends.hybrid.backend import HybridBackend
from memory_backends.records import (
    KNOWLEDGE_COLLECTION,
    VERBATIM_COLLECTION,
    PersonalMemoryState,
    SharedWorkspaceState,
)
from memory_backends.resources import MECHANISMS, MemoryOptionError, memory_options
from memory_backends.stores.trace import PromotionDecision
from tests.stubs.memory import exchange, namespace, play

TALK = [
    exchange(1, "Hello, I'm Marta Ibarra, by the way.", "Nice to meet you, Marta."),
    exchange(2, "The deadline of the report is Friday.", "I will keep it in mind."),
    exchange(3, "My cat is called Tofu.", "A lovely name."),
    exchange(4, "Actually, the deadline is Monday.", "Monday it is."),
]
QUESTION = "When is the deadline of the report?"
PLANNER = PersonalMemoryState.key(namespace("hybrid").agent_id("planner"))
WORKSPACE = SharedWorkspaceState.key(namespace("hybrid").path)


@pytest.fixture
def without(resources):
    """Makes a hybrid memory with parts switched off, opened and told the talk."""

    async def make(*names: str, shares: tuple[str, ...] = ()) -> HybridBackend:
        backend = HybridBackend(replace(resources, options=memory_options(names, shares)))
        await backend.open(namespace("hybrid"))
        await play(backend, TALK)
        return backend

    return make


async def test_promotion(without):
    backend = await without("promotion")
    decisions = [entry for entry in backend.trace.drain() if isinstance(entry, PromotionDecision)]
    assert decisions and {decision.decision for decision in decisions} == {"DROP"}
    assert all("switched off" in decision.justification for decision in decisions)
    held = await backend.snapshot()
    assert held.points["qdrant"][KNOWLEDGE_COLLECTION] == {}
    assert held.values["redis"][PLANNER]["promotion_candidates"] == {}


async def test_supersession(without):
    backend = await without("supersession")
    facts = (await backend.snapshot()).points["qdrant"][KNOWLEDGE_COLLECTION].values()
    assert {fact["value"] for fact in facts if fact["slot"] == "deadline"} == {"Friday", "Monday"}
    assert all(fact["superseded_by"] is None for fact in facts)
    (line,) = [hit.text for hit in (await backend.recall(QUESTION, 10, 400)).hits if hit.place == WORKSPACE]
    assert line == "Known: deadline = Friday (User, turn 3); Monday (User, turn 7)"


async def test_verbatim(without):
    backend = await without("verbatim")
    assert (await backend.snapshot()).points["qdrant"][VERBATIM_COLLECTION] == {}
    recall = await backend.recall(QUESTION, 10, 400)
    assert recall.hits and recall.turns_in_context == frozenset()
    await backend.observe(TALK[0])
    assert (await backend.snapshot()).points["qdrant"][VERBATIM_COLLECTION] == {}


async def test_shared(without):
    backend = await without("shared")
    assert (await backend.snapshot()).values["redis"][WORKSPACE]["shared_data"] == {}
    assert not [hit for hit in (await backend.recall(QUESTION, 10, 400)).hits if hit.place == WORKSPACE]


@pytest.mark.parametrize(("name", "place"), [("personal", PLANNER), ("knowledge", KNOWLEDGE_COLLECTION)])
async def test_a_tier_that_is_not_recalled(without, name, place):
    """Without the words themselves the known things are all that there is to recall."""
    asked = "Marta Ibarra deadline Monday cat Tofu"
    rest = ("verbatim", "shared", *({"personal", "knowledge"} - {name}))
    with_it = await (await without(*rest)).recall("the cat is called Tofu", 10, 400)
    assert [hit.place for hit in with_it.hits] == [place]
    assert not (await (await without(name, *rest)).recall(asked, 10, 400)).hits


@pytest.mark.parametrize(
    ("name", "gone", "left"),
    [
        ("dense", {"dense", "sentence", "sentence_near"}, "keyword"),
        ("keyword", {"keyword"}, "dense"),
        ("speaker", {"speaker"}, "dense"),
        ("date", {"date"}, "dense"),
    ],
)
async def test_channels_that_are_switched_off_are_in_no_ranking(without, name, gone, left):
    channels = set((await (await without(name)).recall(QUESTION, 5, 400)).hits[0].channels)
    assert not gone & channels and left in channels


async def test_a_share_of_nothing_keeps_a_tier_out(without):
    backend = await without(shares=("shared=0",))
    assert (await backend.snapshot()).values["redis"][WORKSPACE]["shared_data"]
    assert not [hit for hit in (await backend.recall(QUESTION, 10, 400)).hits if hit.place == WORKSPACE]


async def test_a_larger_share_lets_more_of_a_tier_in(without):
    question = "What are the user's name and the cat's name, and when is the deadline?"
    small = await (await without(shares=("shared=0.05",))).recall(question, 10, 400)
    large = await (await without(shares=("shared=0.5",))).recall(question, 10, 400)
    counts = [sum(hit.place == WORKSPACE for hit in recall.hits) for recall in (small, large)]
    assert counts[0] == 1 < counts[1]


@pytest.mark.parametrize("name", ["Promotion", "everything", ""])
def test_what_there_is_none_of_cannot_be_switched_off(name):
    with pytest.raises(MemoryOptionError, match="choose from promotion, supersession"):
        memory_options([name], [])


@pytest.mark.parametrize("share", ["shared", "shared=", "shared=2", "verbatim=0.5", "shared=-1", "shared=nan"])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(MemoryOptionError, match="not a share of a tier"):
        memory_options([], [share])


def test_a_tier_has_one_share():
    with pytest.raises(MemoryOptionError, match="personal has two shares"):
        memory_options([], ["personal=0.5", "shared=0.1", "personal=0.1"])


def test_shares_are_of_one_whole():
    with pytest.raises(MemoryOptionError, match="more than 1"):
        memory_options([], ["shared=0.6", "knowledge=0.6"])


@pytest.mark.parametrize("name", MECHANISMS)
async def test_the_rest_works_whichever_mechanism_is_switched_off(without, name):
    backend = await without(name)
    assert (await backend.recall(QUESTION, 10, 400)).hits
    await backend.close("resolved")


async def test_of_facts_that_share_a_hit_those_that_fit_are_given_and_the_others_are_cut(without):
    backend = await without("verbatim", "shared", "personal")
    asked = "Marta Ibarra deadline Monday cat Tofu"
    (whole,) = (await backend.recall(asked, 10, 400)).hits
    facts = whole.text.removeprefix("Known: ").splitlines()
    assert len(facts) > 1 and whole.in_prompt
    tight = await backend.recall(asked, 10, whole.tokens - 2)
    given, cut = tight.hits
    assert (given.in_prompt, cut.in_prompt) == (True, False)
    assert sorted([*_facts_of(given), *_facts_of(cut)]) == sorted(facts)
    assert tight.context == given.text
    assert [part.tokens for part in tight.cut] == [cut.tokens]


def _facts_of(hit):
    return hit.text.removeprefix("Known: ").splitlines()
