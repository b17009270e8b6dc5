from __future__ import annotations

import json

import numpy as np
import pytest

from memory_backends.base import BackendError, Recall, StoreLostError
from memory_backends.hybrid.backend import HybridBackend
from memory_backends.records import (
    KNOWLEDGE_COLLECTION,
    VERBATIM_COLLECTION,
    ArchivedWorkspace,
    PersonalMemoryState,
    QdrantDocument,
    SharedWorkspaceState,
)
from memory_backends.resources import Resources
from tests.stubs.memory import WordEmbedder, count_words, exchange, namespace, play

TALK = [
    exchange(1, "Hello, I'm Marta Ibarra, by the way. I work at Nimbus Labs.", "Nice to meet you, Marta."),
    exchange(2, "My cat is called Tofu and she is asleep.", "Tofu is a lovely name."),
    exchange(3, "The deadline of the report is Friday.", "I will keep it in mind."),
    exchange(4, "Actually, the deadline is Monday.", "Monday it is."),
]
WORKSPACE = SharedWorkspaceState.key(namespace("hybrid").path)
PLANNER = PersonalMemoryState.key(namespace("hybrid").agent_id("planner"))


def in_context(recall: Recall, place: str) -> list[str]:
    return [hit.text for hit in recall.hits if hit.in_prompt and hit.place == place]


async def test_every_exchange_is_stored_word_for_word(hybrid):
    await play(hybrid, TALK)
    points = (await hybrid.snapshot()).points["qdrant"][VERBATIM_COLLECTION]
    documents = [QdrantDocument.model_validate(payload) for payload in points.values()]
    assert [document.content for document in documents] == [each.text for each in TALK]


async def test_a_slot_that_is_asked_for_stands_in_the_context_with_its_turn(hybrid):
    await play(hybrid, TALK)
    recall = await hybrid.recall("When is the deadline?", 10, 400)
    (line,) = in_context(recall, WORKSPACE)
    assert line == "Known: deadline = Monday (User, turn 7; no longer Friday)"
    assert recall.context.startswith(line)


async def test_what_a_thing_is_called_asks_for_the_thing_before_the_name_of_somebody(hybrid):
    await hybrid.observe(exchange(1, "My company is Beeline Scales.", "I see."))
    await hybrid.observe(exchange(2, "I'm Marta Ibarra, by the way.", "Hello."))
    (line,) = in_context(await hybrid.recall("What is the user's company called?", 10, 400), WORKSPACE)
    assert line == "Known: user.company = Beeline Scales (User, turn 1)"
    (line,) = in_context(await hybrid.recall("What is the user called?", 10, 400), WORKSPACE)
    assert line == "Known: user.name = Marta Ibarra (User, turn 3)"


async def test_a_slot_of_somebody_else_does_not(hybrid):
    await hybrid.observe(
        TALK[0].model_copy(
            update={
                "messages": tuple(message.model_copy(update={"label": "Marta"}) for message in TALK[0].messages)
            }
        )
    )
    assert in_context(await hybrid.recall("Where does Marta work?", 10, 400), WORKSPACE)
    assert not in_context(await hybrid.recall("Where does Ana work?", 10, 400), WORKSPACE)


async def test_a_distilled_fact_stands_in_the_context_where_its_turn_does_not(hybrid):
    filler = "Then we talked about the long weather of the coast, the ferries and what they cost. " * 12
    await hybrid.observe(exchange(1, f"{filler} We agreed on zeppelin tickets for everybody.", "Fine."))
    for number in range(2, 14):
        await hybrid.observe(exchange(number, f"Zeppelin number {number} is late.", "Oh no."))
    recall = await hybrid.recall("We agreed on zeppelin tickets for everybody", 10, 200)
    assert "1" not in recall.turns_in_context
    assert in_context(recall, KNOWLEDGE_COLLECTION) == ["Known: User: We agreed on zeppelin tickets for everybody."]
    (fact,) = [hit for hit in recall.hits if hit.place == KNOWLEDGE_COLLECTION]
    assert fact.sources == ("1",) and fact.turns == ()


async def test_the_limit_counts_the_hits_of_all_tiers_and_passages_rank_first(hybrid):
    await play(hybrid, TALK)
    recall = await hybrid.recall("When is the deadline of the report?", 10, 400)
    stores = [hit.store for hit in recall.hits]
    assert [hit.rank for hit in recall.hits] == list(range(1, len(recall.hits) + 1))
    assert stores == sorted(stores, key=["qdrant", "redis"].index) and "redis" in stores
    assert len((await hybrid.recall("deadline report cat Marta", 2, 400)).hits) <= 2


async def test_a_hit_shows_what_each_channel_made_of_it(hybrid):
    await play(hybrid, TALK)
    best = (await hybrid.recall("Is Tofu asleep?", 1, 400)).hits[0]
    assert "3" in best.turns
    assert {"dense", "keyword"} <= set(best.channels)
    assert best.channels["sentence"].rank == 1


async def test_a_keyword_finds_what_vectors_do_not(resources):
    class Blind(WordEmbedder):
        def embed(self, texts):
            return np.full((len(texts), self.dimension), self.dimension**-0.5, dtype=np.float32)

    backend = HybridBackend(Resources(resources.redis, resources.qdrant, Blind(), count_words, resources.clock))
    await backend.open(namespace("hybrid"))
    await play(backend, TALK)
    assert "3" in (await backend.recall("Tofu", 1, 400)).hits[0].turns
    await backend.close("resolved")


async def test_neighbours_that_rank_well_make_one_passage(hybrid):
    await play(hybrid, TALK)
    recall = await hybrid.recall("the deadline of the report", 1, 400)
    (hit,) = recall.hits
    assert {"5", "6", "7", "8"} <= set(hit.turns)
    assert hit.text == recall.context


async def test_perceiving_writes_the_scratchpad_and_changes_no_recall(hybrid, resources):
    await play(hybrid, TALK)
    silent = HybridBackend(resources)
    await silent.open(namespace("hybrid", "silent"))
    for each in TALK:
        await silent.observe(each)
    question = "Where does Marta work, and when is the deadline?"
    heard, unheard = await hybrid.recall(question, 10, 400), await silent.recall(question, 10, 400)
    assert heard.context == unheard.context
    assert [hit.turns for hit in heard.hits] == [hit.turns for hit in unheard.hits]
    assert not hybrid.perceive_changes_recall
    await silent.close("resolved")


async def test_the_planner_notes_what_it_asked_and_found(hybrid):
    await play(hybrid, TALK[:2])
    await hybrid.perceive(TALK[2].messages[0], 5, 400)
    state = (await hybrid.snapshot()).values["redis"][PLANNER]
    assert state["current_task_id"] == "talk"
    assert state["scratchpad"]["query"] == "The deadline of the report is Friday."
    assert state["scratchpad"]["hits"]


async def test_a_personal_state_that_somebody_overwrote_is_an_error_and_not_a_blank_one(hybrid, resources):
    await play(hybrid, TALK[:1])
    await resources.redis.client.set(PLANNER, "{broken")
    with pytest.raises(StoreLostError, match=f"lost .* bytes of {PLANNER}"):
        await hybrid.perceive(TALK[1].messages[0], 5, 400)
    await hybrid.open(namespace("hybrid"))


async def test_a_missing_workspace_is_an_error_of_the_turn(hybrid, resources):
    await play(hybrid, TALK[:1])
    await resources.redis.client.delete(WORKSPACE)
    with pytest.raises(StoreLostError, match=f"lost .* bytes of {WORKSPACE}"):
        await hybrid.recall("Where does Marta work?", 5, 400)
    await hybrid.open(namespace("hybrid"))
    assert (await hybrid.recall("Where does Marta work?", 5, 400)).hits == ()


@pytest.mark.parametrize("status", ["resolved", "cancelled"])
async def test_the_end_gives_the_event_its_status_and_archives_it(resources, status):
    backend = HybridBackend(resources)
    await backend.open(namespace("hybrid"))
    await play(backend, TALK)
    backend.trace.drain()
    await backend.close(status)
    state = SharedWorkspaceState.model_validate_json(await resources.redis.client.get(WORKSPACE))
    assert state.status == status
    upserted = [e.change.points for e in backend.trace.drain() if e.kind == "operation" and e.command == "upsert"]
    ((point,),) = upserted
    archived = ArchivedWorkspace.model_validate(point.payload)
    assert archived.workspace == state and "deadline: Monday" in archived.content


async def test_both_agents_take_part(hybrid):
    await play(hybrid, TALK)
    agents = (await hybrid.snapshot()).values["redis"][WORKSPACE]["participating_agents"]
    assert agents == [namespace("hybrid").agent_id(role) for role in ("planner", "consolidation")]


async def test_states_stay_small_in_a_long_conversation(hybrid):
    for number in range(1, 121):
        text = f"My cousin Name{number} works, our topic{number} is Thing{number}, and SET_{number}={'x' * 200}."
        await hybrid.observe(exchange(number, f"{text} I love walking {number} dogs in the snow.", "Good."))
    states = (await hybrid.snapshot()).values["redis"]
    assert len(states) == 3
    assert all(len(json.dumps(state).encode()) < 16_000 for state in states.values())


async def test_before_it_is_open_it_says_so(resources):
    with pytest.raises(BackendError, match="not open"):
        await HybridBackend(resources).recall("Anything?", 5, 100)


async def test_nothing_is_recalled_of_nothing(hybrid):
    assert await hybrid.recall("Anything?", 5, 100) == Recall(why_empty="nothing_stored")
    await play(hybrid, TALK)
    assert await hybrid.recall("Anything?", 0, 100) == Recall()


async def test_a_fault_in_the_background_is_told_and_its_candidates_are_judged_later(resources):
    class Failing(WordEmbedder):
        healthy = True

        def embed(self, texts):
            if not self.healthy and any(text.startswith("User: I'm") and "\n" not in text for text in texts):
                raise BackendError("The embedder is out")
            return super().embed(texts)

    embedder = Failing()
    backend = HybridBackend(Resources(resources.redis, resources.qdrant, embedder, count_words, resources.clock))
    await backend.open(namespace("hybrid"))
    embedder.healthy = False
    await backend.observe(
        TALK[0].model_copy(
            update={
                "messages": (
                    TALK[0].messages[0].model_copy(update={"text": "I'm Marta Ibarra, by the way."}),
                    TALK[0].messages[1],
                )
            }
        )
    )
    with pytest.raises(BackendError, match="embedder is out"):
        await backend.settle()
    embedder.healthy = True
    await backend.observe(TALK[1])
    facts = (await backend.snapshot()).points["qdrant"][KNOWLEDGE_COLLECTION].values()
    assert "Marta Ibarra" in {fact["value"] for fact in facts}
    await backend.close("resolved")


async def test_what_it_was_told_to_do_from_now_on_stands_in_every_context(hybrid):
    await hybrid.observe(exchange(1, "Please never call me Bob, I hate it.", "Understood."))
    await play(hybrid, [exchange(number, f"It rained on day {number}.", "So it did.") for number in range(2, 9)])
    for question in ("Did it rain on day 4?", "Who is Marta?"):
        (line,) = in_context(await hybrid.recall(question, 3, 600), PLANNER)
        assert line == "Known: standing instructions = Please never call me Bob, I hate it (User, turn 1)"


@pytest.mark.parametrize(("top_k", "most"), [(2, 0), (3, 1), (4, 1), (5, 2), (10, 3)])
async def test_what_is_known_leaves_most_of_few_hits_to_what_was_said(hybrid, top_k, most):
    await hybrid.observe(exchange(1, "Please never call me Bob, I hate it.", "Understood."))
    await hybrid.observe(exchange(2, "My company is Beeline Scales.", "I see."))
    filler = "Then we talked about the long weather of the coast, the ferries and what they cost. " * 12
    await hybrid.observe(exchange(3, f"{filler} The company of Beeline Scales is insured in Vigo.", "Fine."))
    await play(hybrid, [exchange(number, f"A company, number {number}.", "Oh.") for number in range(4, 24)])
    recall = await hybrid.recall("Where is the company of the user, Beeline Scales, insured?", top_k, 600)
    known = [hit for hit in recall.hits if hit.text.startswith("Known: ")]
    assert len(known) <= most and len(recall.hits) <= top_k
    assert bool(known) is bool(most)


async def test_of_many_instructions_the_latest_stand_in_a_small_context(hybrid):
    for number in range(1, 9):
        await hybrid.observe(exchange(number, f"Please never use word {number}.", "I will not."))
    (few,) = in_context(await hybrid.recall("Which word?", 3, 400), PLANNER)
    (more,) = in_context(await hybrid.recall("Which word?", 3, 2000), PLANNER)
    assert [[word for word in "12345678" if f"word {word}" in line] for line in (few, more)] == [
        ["8"],
        ["4", "5", "6", "7", "8"],
    ]


@pytest.mark.parametrize(
    "said", ["Please don't write any code yet.", "Remember that staying positive is very important."]
)
async def test_what_holds_only_for_now_or_is_a_saying_does_not_stand(hybrid, said):
    await hybrid.observe(exchange(1, said, "I will."))
    assert not in_context(await hybrid.recall("What next?", 3, 300), PLANNER)
