from __future__ import annotations

from datetime import datetime

import pytest

from memory_backends.hybrid.backend import HybridBackend
from memory_backends.records import (
    KNOWLEDGE_COLLECTION,
    KnowledgeDocument,
    PersonalMemoryState,
    SharedWorkspaceState,
)
from memory_backends.stores.trace import PromotionDecision
from tests.stubs.memory import exchange, namespace


async def tell(backend: HybridBackend, *texts: str, first: int = 1) -> list[PromotionDecision]:
    """Observe user messages, one an exchange, and give the decisions that were made of them."""
    backend.trace.drain()
    for number, text in enumerate(texts, start=first):
        await backend.observe(exchange(number, text, "Right."))
    await backend.settle()
    return [entry for entry in backend.trace.drain() if isinstance(entry, PromotionDecision)]


async def knowledge(backend: HybridBackend) -> dict[str, KnowledgeDocument]:
    points = (await backend.snapshot()).points["qdrant"][KNOWLEDGE_COLLECTION]
    return {id_: KnowledgeDocument.model_validate(payload) for id_, payload in points.items()}


def only(decisions: list[PromotionDecision]) -> PromotionDecision:
    (decision,) = decisions
    return decision


async def test_a_new_fact_is_added_with_its_factors_and_its_turn(hybrid):
    decision = only(await tell(hybrid, "My favourite colour is green."))
    assert decision.decision == "ADD" and decision.sources == ("1",)
    document = (await knowledge(hybrid))[decision.knowledge_id]
    assert (document.slot, document.value, document.sources) == ("favourite_colour", "green", ["1"])
    assert document.significance == pytest.approx(decision.score)
    assert document.content == "User: My favourite colour is green."


async def test_what_is_said_again_only_gains_a_source(hybrid):
    first, second = await tell(hybrid, "My favourite colour is green.", "As I said, my favourite colour is green.")
    assert second.decision == "NO-OP" and second.knowledge_id == first.knowledge_id
    document = (await knowledge(hybrid))[first.knowledge_id]
    assert document.sources == ["1", "3"] and document.accesses == 1


async def test_a_corrected_value_supersedes_the_old_one_which_stays_stored(hybrid):
    first, second = await tell(hybrid, "The deadline is 25 September.", "Actually, the deadline is 23 September.")
    assert second.decision == "UPDATE" and second.superseded_id == first.knowledge_id
    assert "corrects '25 September'" in second.justification
    held = await knowledge(hybrid)
    old, new = held[first.knowledge_id], held[second.knowledge_id]
    assert old.superseded_by == new.id and old.valid_to is not None and old.value == "25 September"
    assert new.superseded_by is None and new.valid_to is None


async def test_a_dated_correction_ends_the_old_fact_on_the_conversations_date(hybrid):
    await hybrid.observe(exchange(1, "I moved to Oslo.", "Nice.", 1, datetime(2023, 5, 8)))
    await hybrid.observe(exchange(2, "I moved to Bergen.", "Again?", 2, datetime(2023, 8, 1)))
    old, new = sorted((await knowledge(hybrid)).values(), key=lambda document: document.valid_from)
    assert (old.value, new.value) == ("Oslo", "Bergen")
    assert old.valid_from.date().isoformat() == "2023-05-08"
    assert old.valid_to.date().isoformat() == new.valid_from.date().isoformat() == "2023-08-01"


async def test_a_value_that_holds_again_is_current_again(hybrid):
    await tell(hybrid, "The deadline is 3 May.", "The deadline is 9 May.", "No, the deadline is 3 May.")
    documents = list((await knowledge(hybrid)).values())
    assert len(documents) == 3
    assert [document.value for document in documents if document.superseded_by is None] == ["3 May"]


async def test_a_fact_without_a_slot_is_superseded_when_its_value_is_taken_back(hybrid):
    first, second = await tell(
        hybrid,
        "There will be eleven of us at table on the boat.",
        "There will be fourteen of us at table on the boat, not eleven.",
    )
    assert second.decision == "UPDATE" and second.superseded_id == first.knowledge_id


async def test_a_near_duplicate_without_a_slot_joins_its_turn_to_the_known_fact(hybrid):
    said = "There will be eleven of us at table on the boat"
    first, second = await tell(hybrid, f"{said}.", f"{said}, yes, {said.lower()}.")
    assert second.decision == "NO-OP" and second.knowledge_id == first.knowledge_id
    (document,) = (await knowledge(hybrid)).values()
    assert document.sources == ["1", "3"]


async def test_one_that_names_another_number_takes_its_place(hybrid):
    said = "The Heron ferry to the islands beyond the bay leaves from pier {} on every Tuesday of the summer."
    first, second = await tell(hybrid, said.replace("{}", "11"), said.replace("{}", "12"))
    assert (first.decision, second.decision) == ("ADD", "UPDATE")
    assert len(await knowledge(hybrid)) == 2


async def test_judging_the_same_candidates_again_changes_nothing(hybrid):
    texts = ("The deadline is 3 May.", "My favourite colour is green.", "The deadline is 9 May.")
    await tell(hybrid, *texts)
    once = await hybrid.snapshot()
    await tell(hybrid, *texts)
    assert await hybrid.snapshot() == once


async def test_what_is_not_significant_is_dropped_and_says_why(hybrid):
    decision = only(await tell(hybrid, "Maybe the canoe came from Leeds."))
    assert decision.decision == "DROP" and decision.score < decision.threshold
    assert decision.knowledge_id is None
    assert await knowledge(hybrid) == {}


async def test_what_is_said_again_and_again_becomes_significant(hybrid):
    asked, said = ["Which canoe came from Leeds?"] * 6, ["The canoe came from Leeds."] * 2
    decisions = await tell(hybrid, *asked, *said)
    assert [decision.decision for decision in decisions] == ["DROP", "ADD"]
    assert decisions[1].factors.accesses == 1


async def test_judged_candidates_leave_the_staging_area(hybrid):
    agent = namespace("hybrid").agent_id("planner")
    await tell(hybrid, "I'm Marta Ibarra, by the way.")
    states = (await hybrid.snapshot()).values["redis"]
    assert states[PersonalMemoryState.key(agent)]["promotion_candidates"] == {}


async def test_candidates_are_staged_with_content_and_confidence_before_they_are_judged(hybrid):
    await hybrid.observe(exchange(1, "I'm Marta Ibarra, by the way.", "Hello."))
    await hybrid.settle()
    staged = [
        step.value
        for entry in hybrid.trace.drain()
        if entry.kind == "operation" and entry.change is not None and entry.change.kind == "patch"
        for step in entry.change.steps
        if step.op == "add" and step.path.startswith("/promotion_candidates/")
    ]
    assert staged[0]["content"] == "User: I'm Marta Ibarra, by the way."
    assert staged[0]["confidence"] == 0.9


async def test_the_agents_account_for_what_they_do(hybrid):
    await hybrid.observe(exchange(1, "I'm Marta Ibarra, by the way.", "Hello."))
    await hybrid.settle()
    by_phase = {(entry.phase, entry.actor) for entry in hybrid.trace.drain() if entry.kind == "operation"}
    assert ("observe", namespace("hybrid").agent_id("planner")) in by_phase
    assert ("consolidate", namespace("hybrid").agent_id("consolidation")) in by_phase


async def test_a_value_taken_back_without_its_slot_is_corrected_where_it_stands(hybrid):
    first, *_ = await tell(hybrid, "The broker is Redpanda.")
    decisions = await tell(hybrid, "It has always been Pulsar in production, not Redpanda.", first=2)
    (update,) = [decision for decision in decisions if decision.decision == "UPDATE"]
    assert update.superseded_id == first.knowledge_id
    held = await knowledge(hybrid)
    new = held[update.knowledge_id]
    assert (new.slot, new.value, new.superseded_by) == ("broker", "Pulsar", None)
    assert held[first.knowledge_id].superseded_by == new.id
    workspace = SharedWorkspaceState.key(namespace("hybrid").path)
    assert (await hybrid.snapshot()).values["redis"][workspace]["shared_data"]["broker"]["value"] == "Pulsar"
    (last,) = await tell(hybrid, "The broker is Kafka.", first=3)
    assert last.superseded_id == new.id


async def test_a_name_is_not_put_where_a_number_was(hybrid):
    await tell(hybrid, "The deadline is 25 September.", "I talked to Ana Ruiz in the end, not 25 September.")
    workspace = SharedWorkspaceState.key(namespace("hybrid").path)
    assert (await hybrid.snapshot()).values["redis"][workspace]["shared_data"]["deadline"][
        "value"
    ] == "25 September"


async def test_a_fact_said_over_and_over_names_the_first_turn_and_the_latest(hybrid):
    first, *_ = await tell(hybrid, *["My favourite colour is green."] * 20)
    document = (await knowledge(hybrid))[first.knowledge_id]
    assert document.sources == ["1", *(str(number) for number in range(27, 40, 2))]
    assert document.accesses == 19


CHANGES = {
    "a retraction": ("I work at Brightwater.", "I no longer work at Brightwater."),
    "another figure, named": (
        "The plumber charges £85 for the boiler.",
        "The boiler plumber charged £110, not £85.",
    ),
    "another figure in words": (
        "There will be trescientos cincuenta rolls for the wedding.",
        "The wedding rolls should be 320 instead of 350.",
    ),
    "a change that names no old value": (
        "The rent of the flat is paid: £86 a week.",
        "The rent of the flat is now paid at £91 a week.",
    ),
}
STILL_HOLDS = {
    "another sort of value": (
        "The rent of the flat is paid: £86 a week.",
        "The rent of the flat is now paid on 3 May.",
    ),
    "a figure of another size": (
        "The rent of the flat is paid: £86 a week.",
        "The rent of the flat is now £9,800 in arrears.",
    ),
}


@pytest.mark.parametrize("said", CHANGES.values(), ids=CHANGES.keys())
async def test_a_newer_statement_ends_the_older_of_the_same_matter(hybrid, said):
    old, new = said
    first, *_ = await tell(hybrid, old)
    await tell(hybrid, new, first=2)
    assert (await knowledge(hybrid))[first.knowledge_id].superseded_by is not None


@pytest.mark.parametrize("said", STILL_HOLDS.values(), ids=STILL_HOLDS.keys())
async def test_a_newer_statement_leaves_what_still_holds(hybrid, said):
    await tell(hybrid, *said)
    assert [fact.superseded_by for fact in (await knowledge(hybrid)).values()] == [None, None]


async def test_an_instruction_that_is_ended_stands_no_longer(hybrid):
    await tell(hybrid, "Always answer me in French.", "Never use emojis.")
    first = (await hybrid.recall("Hello", 10, 2000)).context
    assert "answer me in French" in first and "use emojis" in first
    await tell(hybrid, "I changed my mind: from now on answer me in Dutch instead of French.", first=3)
    states = (await hybrid.snapshot()).values["redis"]
    standing = states[PersonalMemoryState.key(namespace("hybrid").agent_id("planner"))]["scratchpad"]["standing"]
    said = " ".join(each["text"] for each in standing)
    assert "Dutch" in said and "emojis" in said
    assert "Always answer me in French" not in said


async def test_another_speaker_ends_nothing(hybrid):
    await hybrid.observe(exchange(1, "The plumber charges £85 for the boiler.", "Noted."))
    await hybrid.observe(exchange(2, "And?", "The boiler plumber charged £110, not £85."))
    assert all(fact.superseded_by is None for fact in (await knowledge(hybrid)).values())


async def test_what_is_taken_back_leaves_the_workspace(hybrid):
    await tell(hybrid, "I work at Brightwater.", "I no longer work at Brightwater.")
    workspace = SharedWorkspaceState.key(namespace("hybrid").path)
    assert "user.employer" not in (await hybrid.snapshot()).values["redis"][workspace]["shared_data"]
