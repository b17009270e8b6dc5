"""A memory that rewrites, merges, deletes and replaces facts is judged correctly on all its questions."""

from __future__ import annotations

from typing import get_args

import pytest

from memreplay.debugger.biography import answerable_from, biographies, memory_at_last
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.engine.events import BackendEvent, ConversationOpened, QuestionAsked, ReplayEvent
from memreplay.llm.model import Reply
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.rows import question_row
from memreplay.scoring.verdicts import Label
from memreplay.timeline.timeline import Timeline
from memreplay.views.panels.biography import biography_lines
from tests.stubs.rewriting_memory import Links, Shape, Write, rewriting
from tests.unit.scoring.planted import answer_of, attribution_of, played, question, real

SAID = (
    "I live in Girona.", "Noted.",
    "My sister Ana has two sons.", "How nice.",
    "The kiln broke at 1,240 degrees.", "Oh dear.",
    "My dentist is Dr Puig.", "Noted.",
    "Actually, I live in Olot now.", "Olot, then.",
    "The ferry costs £42.", "Not cheap.",
    "My dentist retired, forget him.", "Forgotten.",
    "The boat is called Petrel.", "A fine name.",
    "I sing in a choir on Mondays.", "Lovely.",
)  # fmt: skip
SCRIPT = {
    "1": [Write("home", "The user lives in Girona")],
    "3": [Write("ana", "The user's sister Ana has 2 sons")],
    "5": [Write("kiln", "The user owns a kiln")],
    "7": [Write("dentist", "The user's dentist is Dr Puig")],
    "9": [Write("home", "The user lives in Olot")],
    "11": [Write("ferry", "The ferry costs 42 pounds")],
    "13": [Write("dentist", None)],
    "15": [Write("ferry", None), Write("sea", "The ferry costs 42 pounds; the user's boat is the Petrel")],
}
GIVES = ("home", "kiln", "ana")

QUESTIONS: tuple[tuple[str, str, tuple[str, ...], str, Label], ...] = (
    ("In which town do I live?", "Olot", ("9",), "Girona", "stale"),
    ("In which town do I live?", "Olot", ("9",), "Berga", "misread"),
    ("In which town do I live?", "Olot", ("9",), "Olot", "grounded"),
    ("In which town do I live?", "Olot", ("9",), "It was not mentioned.", "abstained"),
    ("How many sons has Ana?", "two", ("3",), "three", "misread"),
    ("How hot was the kiln when it broke?", "1240 degrees", ("5",), "900 degrees", "not_written"),
    ("How hot was the kiln when it broke?", "1240 degrees", ("5",), "1240 degrees", "lucky"),
    ("Who was my dentist?", "Dr Puig", ("7",), "Dr Roca", "not_written"),
    ("What does the ferry cost?", "£42", ("11",), "£24", "not_retrieved"),
    ("What is my boat called?", "Petrel", ("15",), "Gull", "not_retrieved"),
    ("On which day do I sing?", "Monday", ("17",), "Friday", "not_written"),
)


async def asked_of(
    links: Links, shape: Shape, text: str, expected: str, evidence: tuple[str, ...], reply: str, budget: int = 1000
) -> Timeline:
    asked = question(text, expected=expected, evidence=evidence)
    memories = {"plugin": rewriting(SCRIPT, gives=GIVES, links=links, shape=shape), **real("closed_book")}
    return await played(asked, memories, {"plugin": Reply(text=reply)}, said=SAID, budget=budget)


@pytest.mark.parametrize("shape", get_args(Shape))
@pytest.mark.parametrize("links", get_args(Links))
async def test_verdicts_are_correct_and_biographies_agree(links: Links, shape: Shape) -> None:
    for text, expected, evidence, reply, label in QUESTIONS:
        timeline = await asked_of(links, shape, text, expected, evidence, reply)
        found = attribution_of(timeline, "plugin")
        assert found.label == label, (text, reply, found)
        asked = timeline.conversation.questions[0]
        memory = memory_at_last(timeline, "plugin")
        (life,) = biographies(timeline, RetrievalIndex(timeline), "plugin", asked, memory)
        (trail,) = Attributor(timeline).trails(answer_of(timeline, "plugin"))
        if trail.lost_at != "not_written":
            assert life.stored
            assert answerable_from(timeline.conversation, memory, asked) is not None
        if "stored nothing" in trail.sentence:
            assert not life.stored
        if not life.stored:
            assert found.label in ("not_written", "lucky")


async def test_another_fact_of_the_same_turn_is_not_taken_for_the_one_that_is_asked_for() -> None:
    script = {"1": [Write("home", "The user lives in Girona"), Write("cat", "The user's cat is called Petrel")]}
    said = ("I live in Girona, with my cat Petrel.", "Noted.")
    asked = question("What is my cat called?", expected="Petrel", evidence=("1",))
    memories = {"plugin": rewriting(script, gives=("home",))}
    timeline = await played(asked, memories, {"plugin": Reply(text="Gull")}, said=said)
    found = attribution_of(timeline, "plugin")
    assert found.label == "not_retrieved"
    assert found.detail == "What turn 1 says was stored; what was retrieved of that turn leaves it out."
    (life,) = biographies(timeline, RetrievalIndex(timeline), "plugin", asked)
    assert [about.retrieval.reach for about in life.asked] == ["not_found"]


async def test_turns_that_a_memory_names_only_where_it_returns_an_item_count_for_what_is_stored() -> None:
    script = {"3": [Write("both", "The user lives in Girona and has 2 dogs")]}
    said = ("I live in Girona.", "Noted.", "I have two dogs.", "Lovely.")
    asked = question("How many dogs do I have?", expected="two", evidence=("3",))
    memories = {"plugin": rewriting(script, late=True, shape="list")}
    timeline = await played(asked, memories, {"plugin": Reply(text="five")}, said=said)
    assert attribution_of(timeline, "plugin").label == "misread"
    memory = memory_at_last(timeline, "plugin")
    (life,) = biographies(timeline, RetrievalIndex(timeline), "plugin", asked, memory)
    assert life.stored and answerable_from(timeline.conversation, memory, asked) is not None


async def test_of_a_long_turn_only_the_sentence_about_the_question_has_to_be_held() -> None:
    said = (
        "It rained for 3 days. The old boiler cost 900 euros. My aunt is 81.", "Noted.",
        "We paid 1,200 euros for the new boiler, and the bus was 40 minutes late.", "Annoying.",
    )  # fmt: skip
    script = {"1": [Write("old", "The old boiler cost 900 euros")], "3": [Write("late", "The bus was late")]}
    asked = question(
        "How much more than the old boiler did the new boiler cost?", expected="300 euros", evidence=("1", "3")
    )
    memories = {"plugin": rewriting(script)}
    timeline = await played(asked, memories, {"plugin": Reply(text="12 euros")}, said=said)
    lost = {trail.turn: trail.lost_at for trail in Attributor(timeline).trails(answer_of(timeline, "plugin"))}
    assert lost == {"1": None, "3": "not_written"}


async def test_a_misread_answer_names_the_evidence_that_the_prompt_did_not_hold() -> None:
    said = ("The chair is Ian Foss.", "Noted.", "The electrician is Ian Marsh.", "Noted.")
    script = {"1": [Write("chair", "The chair is Ian Foss")], "3": [Write("wires", "The user met an electrician")]}
    asked = question("What is the first name of the chair?", expected="Ian", evidence=("1", "3"))
    memories = {"plugin": rewriting(script, gives=("chair",))}
    found = attribution_of(await played(asked, memories, {"plugin": Reply(text="Peter")}, said=said), "plugin")
    assert found.label == "misread"
    assert found.detail == (
        "The prompt held the answer, and the model gave another. Nothing in it comes from turn 3 of the evidence."
    )


async def test_what_does_not_fit_was_cut() -> None:
    timeline = await asked_of("none", "points", "In which town do I live?", "Olot", ("9",), "Berga", budget=2)
    assert attribution_of(timeline, "plugin").label == "cut"


async def test_a_context_without_hits_is_read_as_it_was_sent() -> None:
    timeline = await asked_of("none", "points", "In which town do I live?", "Olot", ("9",), "Berga")
    events = [
        event.model_copy(update={"hits": ()}) if isinstance(event, QuestionAsked) else event
        for event in events_of(timeline)
    ]
    played_without = Timeline(timeline.conversation, events)
    assert attribution_of(played_without, "plugin").label == "misread"
    answer, asked = answer_of(played_without, "plugin"), timeline.conversation.questions[0]
    assert answer.received is not None and answer.scored is not None
    attributor = Attributor(played_without)
    wanted = attributor.answerable(asked)
    row = question_row(
        wanted, timeline.conversation, attributor.stages(answer.asked), answer.received, answer.scored
    )
    assert row.answer_in_prompt


def events_of(timeline: Timeline) -> list[ReplayEvent]:
    """What was recorded, position by position; questions last."""
    ingested = [
        event
        for position in range(timeline.reached + 1)
        for event in timeline.events_at("plugin", position)
        if isinstance(event, BackendEvent)
    ]
    answer = answer_of(timeline, "plugin")
    asked = [answer.asked, answer.received, answer.scored]
    return [*(event for event in ingested if event not in asked), *(event for event in asked if event is not None)]


async def test_a_run_without_the_trace_of_its_memory_is_not_recorded_rather_than_not_written() -> None:
    timeline = await asked_of("none", "points", "In which town do I live?", "Olot", ("9",), "Berga")
    answer = answer_of(timeline, "plugin")
    asked = answer.asked.model_copy(update={"hits": (), "missed": (), "context_tokens": 0})
    opened = next(event for event in events_of(timeline) if isinstance(event, ConversationOpened))
    bare = Timeline(timeline.conversation, [opened, asked, answer.received, answer.scored])
    assert attribution_of(bare, "plugin").label == "not_visible"
    assert Attributor(bare).trails(answer_of(bare, "plugin")) == []
    lives = biographies(bare, RetrievalIndex(bare), "plugin", timeline.conversation.questions[0])
    shown = "\n".join(map(str, biography_lines(timeline.conversation, lives, timeline.conversation.questions[0])))
    assert "not recorded" in shown and "ever stored" not in shown and "never" not in shown


async def test_what_stands_where_no_search_looks_was_stored_and_the_verdict_says_where() -> None:
    script = {
        "1": [Write("bridge", "Harlow Bridge is being rebuilt from granite")],
        "3": [Write("aunt", "Thessaly draws maps")],
    }
    said = ("Harlow Bridge is being rebuilt from granite.", "Big works.", "My aunt Thessaly draws maps.", "I see.")
    asked = question("What is Harlow Bridge being rebuilt from?", expected="granite", evidence=("1",))
    memories = {"plugin": rewriting(script, beside=("bridge",))}
    timeline = await played(asked, memories, {"plugin": Reply(text="It was not mentioned.")}, said=said)
    found = attribution_of(timeline, "plugin")
    assert found.label == "not_retrieved"
    assert "It stands in summaries: “Harlow Bridge is being rebuilt from granite" in found.detail
