"""Every label of an attribution, planted: a conversation in which the fact is lost at just that stage."""

from __future__ import annotations

import pytest

from memory_backends.base import BackendError, Exchange
from memreplay.conversations.models import Question
from memreplay.llm.model import Reply
from memreplay.scoring.attribution import Attribution, Attributor
from memreplay.scoring.verdicts import LABELS
from memreplay.timeline.timeline import Timeline
from memreplay.views.panels.why import explain_answers, why_lines
from tests.stubs.facts_memory import FactsMemory, Fate
from tests.unit.scoring.planted import (
    COLOUR,
    MODEL,
    SAID,
    answer_of,
    attributed,
    attribution_of,
    conversation,
    played,
    question,
    real,
)

LATER = (
    "The plumber comes on the 12th, a Tuesday.",
    "Noted.",
    "I bought 19 tiles.",
    "Fine.",
    "The plumber has changed it: he comes on the 26th now.",
)
BLUE, GREEN, PURPLE = Reply(text="blue"), Reply(text="green"), Reply(text="purple")
NOTHING = Reply(text="It was not mentioned.")


async def by_facts(memory: FactsMemory, reply: Reply = PURPLE) -> Attribution:
    return attribution_of(await played(question(), {"facts": memory}, {"facts": reply}), "facts")


# ---- wrong answers, in the order in which labels are tried -----------------------------------------------------


async def test_a_failed_call_is_an_error_with_its_reason() -> None:
    found = await attributed(Reply(text=None, error="timed out"), "rag")
    assert (found.label, found.detail) == ("error", "timed out")


async def test_a_failed_memory_is_an_error_and_not_a_fact_that_was_not_written() -> None:
    class Failing(FactsMemory):
        async def observe(self, exchange: Exchange) -> None:
            raise BackendError("the disk is gone")

    found = await by_facts(Failing({}))
    assert found.label == "error" and "the disk is gone" in found.detail


async def test_a_reply_without_a_readable_choice_is_unparsed() -> None:
    asked = question(kind="choice", choices=("green", "blue", "red"), correct_index=0)
    assert (await attributed(Reply(text="well, well"), "rag", asked=asked)).label == "unparsed"


async def test_a_provider_that_refuses_is_refused() -> None:
    assert (await attributed(Reply(text="no", refused=True), "rag")).label == "refused"


async def test_a_doubted_key_comes_before_anything_that_memory_did() -> None:
    timeline = await played(question(), real("full_context"), {"full_context": BLUE}, budget=3)
    found = attribution_of(timeline, "full_context", {"q": "Turn 5 may be a joke."})
    assert (found.label, found.detail) == ("key_suspect", "Turn 5 may be a joke.")
    assert attribution_of(timeline, "full_context", {"other": "…"}).label == "cut"


@pytest.mark.parametrize("role", [None, "tempting"])
async def test_a_question_without_turns_that_support_its_answer_has_no_evidence(role: str | None) -> None:
    evidence = ("5",) if role else ()
    asked = question(expected="a tandem", evidence=evidence, evidence_role=role)
    found = await attributed(PURPLE, "rag", asked=asked)
    tempts = " It names only what tempts to a wrong answer (5)." if role else ""
    assert found.label == "no_evidence"
    assert found.detail == f"The dataset names no turns that support the answer.{tempts}"


async def test_a_question_without_named_evidence_is_judged_by_what_texts_contain() -> None:
    asked = question(evidence=(), evidence_role=None)
    assert (await attributed(PURPLE, "rag", asked=asked)).label == "misread"
    assert (await attributed(PURPLE, "rag", asked=asked, budget=3)).label == "cut"


async def test_a_turn_that_was_not_said_yet_was_never_observed() -> None:
    found = await attributed(PURPLE, "rag", at=4)
    assert (found.label, found.loss) == ("not_written", "never_observed")
    assert "had not been said" in found.detail


async def test_a_turn_whose_exchange_is_not_over_was_never_observed() -> None:
    found = await attributed(PURPLE, "full_context", at=5)
    assert (found.label, found.loss) == ("not_written", "never_observed")
    assert "had not heard turn 5" in found.detail


async def test_a_turn_that_the_conversation_does_not_have_was_never_observed() -> None:
    found = await attributed(PURPLE, "rag", asked=question(expected="a tandem", evidence=("D8:6; D9:17",)))
    assert (found.label, found.loss) == ("not_written", "never_observed")
    assert "has no turn D8:6; D9:17" in found.detail


async def test_a_candidate_below_the_threshold_was_gated_with_its_significance() -> None:
    found = await by_facts(FactsMemory({"5": Fate(dropped="green"), "1": Fate("blue")}))
    assert (found.label, found.loss) == ("not_written", "gated")
    assert "0.42 is below 0.60" in found.detail


async def test_a_dropped_candidate_that_says_nothing_of_the_answer_is_not_why_it_was_lost() -> None:
    found = await by_facts(FactsMemory({"5": Fate(dropped="the user is cheerful"), "1": Fate("blue")}))
    assert (found.label, found.loss) == ("not_written", "distilled_away")


async def test_a_fact_that_was_removed_again_expired() -> None:
    found = await by_facts(FactsMemory({"5": Fate("green"), "7": Fate(removes="5")}))
    assert (found.label, found.loss) == ("not_written", "expired")


async def test_a_fact_whose_place_a_later_one_took_was_superseded() -> None:
    found = await by_facts(FactsMemory({"5": Fate("green"), "7": Fate("grey", supersedes="5")}))
    assert (found.label, found.loss) == ("not_written", "superseded")


async def test_a_turn_of_which_nothing_was_made_was_distilled_away() -> None:
    found = await by_facts(FactsMemory({"1": Fate("blue")}, given=("1",)))
    assert (found.label, found.loss) == ("not_written", "distilled_away")


async def test_a_distillate_in_the_prompt_that_did_not_help_was_distilled_away() -> None:
    found = await by_facts(FactsMemory({"5": Fate("a colour")}, given=("5",)))
    assert (found.label, found.loss) == ("not_written", "distilled_away")


async def test_what_is_stored_of_the_evidence_has_no_ids_of_turns() -> None:
    timeline = await played(question(), real("rag"), {"rag": PURPLE})
    (stored,) = Attributor(timeline).stored_of_evidence(answer_of(timeline, "rag"))
    assert stored.text.splitlines() == ["User: Actually, my favourite colour is green.", "AI: Green it is."]


async def test_what_another_turn_made_a_memory_store_of_the_answer_is_of_the_evidence_too() -> None:
    memory = FactsMemory({"7": Fate("the favourite colour is green"), "1": Fate("the kayak hangs in the garage")})
    timeline = await played(question(), {"facts": memory}, {"facts": PURPLE})
    stored = Attributor(timeline).stored_of_evidence(answer_of(timeline, "facts"))
    assert [sorted(piece.turns) for piece in stored] == [["7"]]


async def test_of_a_store_that_denies_what_was_said_the_verdict_says_so() -> None:
    asked = question("Does the kayak hang in the old garage?", expected="Yes", evidence=("3",))
    for stored, said in (("The kayak does not hang in the old garage.", "the opposite"), ("a kayak", "out")):
        memory = FactsMemory({"3": Fate(stored)}, given=("3",))
        found = attribution_of(await played(asked, {"facts": memory}, {"facts": Reply(text="No.")}), "facts")
        assert (found.label, found.loss) == ("not_written", "distilled_away")
        assert found.detail.startswith("What was stored of turn 3 ") and f"{said}." in found.detail


@pytest.mark.parametrize(
    ("asked", "expected", "said", "stored", "label"),
    [
        ("What will Ana not do?", "swim", "I will climb, but I will not swim.", "Ana will swim.", "not_written"),
        ("What will Ana not do?", "swim", "I will climb, but I will not swim.", "Ana will not swim.", "misread"),
        ("What will Ana do?", "swim", "I will swim in the lake.", "Ana will not swim.", "not_written"),
        (
            "Where does Eva live?",
            "Rome",
            "Eva moved from Oslo to Rome.",
            "Eva moved from Rome to Oslo.",
            "not_written",
        ),
        ("Where does Eva live?", "Rome", "Eva moved from Oslo to Rome.", "Eva went from Oslo to Rome.", "misread"),
        ("What can Ana not eat?", "peanuts", "I cannot eat peanuts.", "Ana is allergic to peanuts.", "misread"),
        ("What does Ana do?", "yoga", "I do yoga on Mondays.", "Ana never misses yoga on Mondays.", "misread"),
        ("Where does Eva live?", "Rome", "I live in Rome now.", "Eva has no car and lives in Rome.", "misread"),
    ],
)
async def test_a_text_that_turns_around_what_was_said_does_not_hold_it(
    asked: str, expected: str, said: str, stored: str, label: str
) -> None:
    memory = FactsMemory({"1": Fate(stored)}, given=("1",))
    wanted = question(asked, expected=expected, evidence=("1",))
    timeline = await played(wanted, {"facts": memory}, {"facts": PURPLE}, said=(said, "I see."))
    assert attribution_of(timeline, "facts").label == label


AGES = ("My dog Bruno is 7 years old.", "Nice.", "The cat Rex is 4 years old, and no dog.", "I see.")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("Who is older, Bruno or Rex?", "Bruno"), ("Are both Bruno and Rex older than three?", "Yes")],
)
async def test_a_name_that_the_question_offers_and_half_of_both_do_not_hold_an_answer(
    asked: str, expected: str
) -> None:
    wanted = question(asked, expected=expected, evidence=("1", "3"))
    memories = {"part": FactsMemory({"1": Fate(AGES[0]), "3": Fate(AGES[2])}, given=("1",), name="part")}
    memories["whole"] = FactsMemory({"1": Fate(AGES[0]), "3": Fate(AGES[2])}, given=("1", "3"), name="whole")
    timeline = await played(wanted, memories, dict.fromkeys(memories, PURPLE), said=AGES)
    assert [attribution_of(timeline, name).label for name in memories] == ["not_retrieved", "misread"]


TEA = ("I prefer tea to coffee.", "I see.", "Coffee makes me nervous.", "Oh.")
LIVE = ("My mother lives in Rome.", "I see.", "My father lives in Rome too.", "Nice.")


@pytest.mark.parametrize(
    ("asked", "expected", "said", "stored"),
    [
        ("Do I prefer tea or coffee?", "tea", TEA, "Prefers tea to coffee."),
        ("Do both of my parents live in Rome?", "Yes", LIVE, "The parents both live in Rome."),
    ],
)
async def test_one_text_that_says_it_all_holds_what_is_asked_of_two(
    asked: str, expected: str, said: tuple[str, ...], stored: str
) -> None:
    wanted = question(asked, expected=expected, evidence=("1", "3"))
    memory = FactsMemory({"1": Fate(stored)}, given=("1",))
    timeline = await played(wanted, {"facts": memory}, {"facts": PURPLE}, said=said)
    assert attribution_of(timeline, "facts").label == "misread"


HIVES = ("And the hives?", "I ordered two wooden ones, at 85 euros each.", "Good.", "Yes.")


@pytest.mark.parametrize(("stored", "label"), [(HIVES[1], "not_retrieved"), ("some wooden ones", "not_written")])
async def test_a_question_whose_reply_is_evidence_too_need_not_be_stored(stored: str, label: str) -> None:
    asked = question("What did the hives cost in all?", expected="170 euros", evidence=("1", "2"))
    timeline = await played(asked, {"facts": FactsMemory({"2": Fate(stored)})}, {"facts": PURPLE}, said=HIVES)
    assert attribution_of(timeline, "facts").label == label


async def test_an_amount_in_another_unit_is_not_the_answer() -> None:
    said = ("I paid 300 euros for the bike.", "I see.", "The lock of the bike weighs 300 grams.", "So much!")
    asked = question("How much was the bike?", expected="300 euros", expected_entities=("300",), evidence=("1",))
    memory = FactsMemory({"1": Fate(said[0]), "3": Fate(said[2])}, given=("3",))
    timeline = await played(asked, {"facts": memory}, {"facts": PURPLE}, said=said)
    assert attribution_of(timeline, "facts").label == "not_retrieved"


async def test_closed_book_has_no_stage_at_which_it_could_lose_anything() -> None:
    assert (await attributed(PURPLE, "closed_book")).label is None
    assert (await attributed(GREEN, "closed_book")).label is None
    failed = await attributed(Reply(text=None, error="timed out"), "closed_book")
    assert (failed.label, failed.detail) == (None, "timed out")


async def test_what_is_stored_and_not_among_the_hits_was_not_retrieved() -> None:
    asked = question("Where does the kayak hang?", expected="shed")
    found = await attributed(PURPLE, "rag", asked=asked, top_k=1)
    assert (found.label, found.loss) == ("not_retrieved", None)
    assert "Turn 5 was stored" in found.detail


async def test_what_was_not_retrieved_comes_with_its_rank_in_each_channel() -> None:
    memory = FactsMemory({"1": Fate("blue"), "5": Fate("green")}, given=("1",), missed=("3", "5"))
    found = await by_facts(memory)
    assert found.label == "not_retrieved"
    assert found.ranks == {"5": {"fused": 3, "dense": 6, "keyword": 3}}
    assert "rank 3 fused, 6 dense, 3 keyword" in found.detail


async def test_hits_that_say_nearly_the_same_and_pushed_the_fact_out_are_named() -> None:
    alike = dict.fromkeys(("1", "3", "7"), Fate("blue"))
    found = await by_facts(FactsMemory({**alike, "5": Fate("green")}, given=("1", "3", "7"), missed=("5",)))
    assert found.label == "not_retrieved"
    assert found.detail.endswith("All 3 hits say nearly the same.")
    other = await by_facts(FactsMemory({"1": Fate("blue"), "5": Fate("green")}, given=("1",), missed=("5",)))
    assert "nearly the same" not in other.detail


async def test_a_budget_that_leaves_out_the_evidence_cut_it() -> None:
    found = await attributed(PURPLE, "full_context", asked=question(evidence=("1",), expected="blue"), budget=20)
    assert found.label == "cut"


async def test_a_hit_that_did_not_fit_was_cut_and_has_its_ranks() -> None:
    found = await attributed(PURPLE, "rag", budget=3)
    assert found.label == "cut" and set(found.ranks["5"]) == {"dense"}
    distilled = await by_facts(FactsMemory({"5": Fate("green")}, cut=("5",)))
    assert distilled.label == "cut"


@pytest.mark.parametrize("backend", ["hybrid", "rag", "full_context"])
async def test_an_answer_that_the_dataset_calls_superseded_is_stale_in_every_memory(backend: str) -> None:
    timeline = await played(question(supersedes=("blue",)), real(backend), {backend: BLUE})
    found = attribution_of(timeline, backend)
    assert found.label == "stale" and "“blue”" in found.detail


async def test_a_superseded_value_of_which_the_current_one_is_a_part_is_stale() -> None:
    said = ("I set routes on Mondays and Wednesdays.", "I see.", "I dropped the Monday. Just Wednesdays now.")
    asked = question(
        "On which days do I set routes now?",
        expected="Wednesdays",
        evidence=("3",),
        supersedes=("Mondays and Wednesdays",),
    )
    reply = Reply(text="On Mondays and Wednesdays.")
    timeline = await played(asked, real("full_context"), {"full_context": reply}, said=said)
    assert attribution_of(timeline, "full_context").label == "stale"


EXAM = ("The exam is in room B12.", "Good luck.", "I looked again: the exam takes place in room C40.")
OWNER = ("A Mr Petersen owns the house.", "I see.", "They sold it, so Lindqvist owns the house since May.")
GOAT = ("The hens cost 40 euros.", "I see.", "The goat costs 90 euros.")
VISIT = ("My visit is on the 14th of March.", "Good.", "They put back the visit to the 4th of April.")
MOVED = ("The talk is the day after 5 March 2024.", "Good.", "The talk was pushed back by a day.")
NEW_DAY = ("The recital is on the 3rd of June.", "Good.", "There is another date for the recital, 9 June.")
NUEVA = ("El recital es el 3 de junio.", "Bien.", "El recital lo han pasado al 9 de junio.")
SEEN = ("I saw Oslo in autumn.", "I see.", "I saw Bergen in autumn.")


@pytest.mark.parametrize(
    ("text", "expected", "said", "evidence", "reply", "label"),
    [
        (COLOUR, "green", SAID, "5", "blue", "stale"),
        (COLOUR, "green", SAID, "5", "purple", "misread"),
        ("Which day does the plumber come?", "the 26th", LATER, "5", "On the 12th.", "stale"),
        ("Which day does the plumber come?", "the 26th", LATER, "5", "On the 19th.", "misread"),
        (
            "¿Qué día viene el técnico?",
            "el 26",
            ("El técnico ya no viene el 12 sino el 26.",),
            "1",
            "El 12",
            "stale",
        ),
        ("Who plays the harp?", "Odd", ("Marit no longer plays the harp, but Odd does.",), "1", "Marit", "stale"),
        ("Who plays the harp?", "Odd", ("Marit plays the flute, and Odd the harp.",), "1", "Marit", "misread"),
        ("Which room is the exam in?", "C40", EXAM, "3", "It is in B12.", "stale"),
        ("Who owns the house?", "Lindqvist", OWNER, "3", "Petersen", "stale"),
        ("How much does the goat cost?", "90 euros", GOAT, "3", "40 euros", "misread"),
        ("On which day is my visit?", "4 April 2024", VISIT, "3", "On the 14th of March.", "stale"),
        ("On which day is my visit?", "4 April 2024", VISIT, "3", "On the 20th of March.", "misread"),
        ("When was the talk?", "7 March 2024", MOVED, "1 3", "On 6 March 2024.", "stale"),
        ("When was the talk?", "7 March 2024", MOVED, "1 3", "On 9 March 2024.", "misread"),
        ("On which day was the recital?", "9 June 2024", NEW_DAY, "3", "On the 3rd of June.", "stale"),
        ("On which day was the recital?", "9 June 2024", NEW_DAY, "3", "On the 12th of June.", "misread"),
        ("¿Qué día fue el recital?", "el 9 de junio de 2024", NUEVA, "3", "El 3 de junio.", "stale"),
        ("Which city did I see in autumn?", "Bergen", SEEN, "3", "Oslo", "misread"),
        ("What do I do on the trip?", "climb", ("I will climb, but definitely not swim.",), "1", "Swim", "misread"),
        ("Where do I live?", "Rome", ("I do not live in Oslo any more, I live in Rome.",), "1", "Oslo", "stale"),
        ("What does my father drink?", "tea", ("My father drinks no coffee, only tea.",), "1", "Coffee", "misread"),
    ],
)
async def test_a_value_that_its_speaker_took_back_is_stale(
    text: str, expected: str, said: tuple[str, ...], evidence: str, reply: str, label: str
) -> None:
    asked = question(text, expected=expected, evidence=tuple(evidence.split()))
    timeline = await played(asked, real("full_context"), {"full_context": Reply(text=reply)}, said=said)
    assert attribution_of(timeline, "full_context").label == label


async def test_an_answer_that_the_memory_itself_replaced_is_stale() -> None:
    found = attribution_of(await played(question(), real("hybrid"), {"hybrid": BLUE}), "hybrid")
    assert found.label == "stale" and "turn 5" in found.detail


async def test_an_outdated_value_that_is_also_the_right_one_is_not_stale() -> None:
    asked = question(expected="first blue, then green")
    timeline = await played(asked, real("hybrid"), {"hybrid": BLUE})
    assert attribution_of(timeline, "hybrid").label == "misread"


async def test_an_answer_to_what_was_never_said_took_the_bait() -> None:
    asked = question(evidence_role="tempting", abstain=True, expected="Not answerable")
    found = await attributed(GREEN, "full_context", asked=asked)
    assert found.label == "false_attribution" and "(5)" in found.detail
    blind = await attributed(GREEN, "full_context", asked=asked, budget=3)
    assert blind.label == "false_attribution" and "no turn that tempts" in blind.detail


@pytest.mark.parametrize("backend", ["hybrid", "rag", "full_context", "oracle"])
async def test_a_wrong_answer_with_all_evidence_in_the_prompt_is_misread(backend: str) -> None:
    assert (await attributed(PURPLE, backend)).label == "misread"


async def test_of_several_missing_turns_the_one_lost_at_the_earliest_stage_decides() -> None:
    memory = FactsMemory({"1": Fate("blue"), "5": Fate(dropped="green")}, given=("7",), cut=("1",))
    asked = question(evidence=("1", "5"), expected="first blue, then green", expected_entities=("blue", "green"))
    timeline = await played(asked, {"facts": memory}, {"facts": PURPLE})
    found = attribution_of(timeline, "facts")
    assert (found.label, found.loss) == ("not_written", "gated")
    assert "What turn 1 says was retrieved" in found.detail


async def test_a_turn_in_the_prompt_says_in_which_form_it_is_there() -> None:
    facts = FactsMemory({"5": Fate("green")}, given=("5",))
    timeline = await played(question(), {"facts": facts} | real("full_context"), {"facts": PURPLE})
    forms = [Attributor(timeline).trails(answer_of(timeline, name))[0].form for name in ("facts", "full_context")]
    assert forms == [", distilled", ""]
    (explained,) = explain_answers(timeline, [answer_of(timeline, "facts")])
    shown = why_lines(question(), explained, [], {})
    assert any("✓ in the prompt, distilled" in "".join(span.text for span in each.spans) for each in shown)


SOLD = ("The kayak is sold at last!", "Good.", "I sold the kayak on 9 June 2023.", "I see.")


@pytest.mark.parametrize(
    ("asked", "memory", "reply", "doubt"),
    [
        (
            question("Where is the kayak?", expected="old garage", evidence=("3",)),
            "held",
            "An old barn.",
            "near_answer",
        ),
        (question("Where is the kayak?", expected="old garage", evidence=("3",)), "held", "At sea.", None),
        (question("What am I likely?", expected="a keen sailor", evidence=("3",)), "none", "A cook.", "conclusion"),
        (question("Where is the kayak?", expected="old garage", evidence=("3",)), "none", "At sea.", None),
        (
            question("Which colours did I like?", expected="blue and green", evidence=("1", "5")),
            "one",
            "Red.",
            "several_turns",
        ),
    ],
)
async def test_a_verdict_says_where_it_is_uncertain(
    asked: Question, memory: str, reply: str, doubt: str | None
) -> None:
    fates = {
        "held": {"3": Fate("old garage")},
        "none": {},
        "one": {"1": Fate("blue"), "5": Fate(dropped="green")},
    }
    facts = FactsMemory(fates[memory], given=tuple(fates[memory])[:1])
    found = attribution_of(await played(asked, {"facts": facts}, {"facts": Reply(text=reply)}), "facts")
    assert found.doubt == doubt and ("Uncertain: " in found.detail) is (doubt is not None)


@pytest.mark.parametrize(
    ("turn", "told", "doubt"),
    [("1", "kayak sold", "same_session"), ("1", "raining", None), ("3", "kayak sold", None)],
)
async def test_a_time_that_another_text_of_the_session_may_tell_is_uncertain(
    turn: str, told: str, doubt: str | None
) -> None:
    asked = question("When was the kayak sold?", expected="9 June 2023", evidence=("3",))
    facts = FactsMemory({turn: Fate(told)}, given=(turn,))
    timeline = await played(asked, {"facts": facts}, {"facts": Reply(text="In May.")}, said=SOLD)
    assert attribution_of(timeline, "facts").doubt == doubt


# ---- right answers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["hybrid", "rag", "full_context", "oracle"])
async def test_a_right_answer_with_all_evidence_in_the_prompt_is_grounded(backend: str) -> None:
    assert (await attributed(GREEN, backend)).label == "grounded"


async def right_without_evidence(closed_book: Reply | None) -> Attribution:
    names = ("full_context",) if closed_book is None else ("full_context", "closed_book")
    replies = {"full_context": GREEN} | ({} if closed_book is None else {"closed_book": closed_book})
    return attribution_of(await played(question(), real(*names), replies, budget=7), "full_context")


async def test_without_the_evidence_it_is_guessed_where_the_model_alone_is_right_too_and_lucky_where_not() -> None:
    assert (await right_without_evidence(GREEN)).label == "guessed"
    assert (await right_without_evidence(PURPLE)).label == "lucky"


@pytest.mark.parametrize("closed_book", [None, Reply(text=None, error="timed out")])
async def test_without_a_closed_book_baseline_guessed_and_lucky_are_not_distinguished(
    closed_book: Reply | None,
) -> None:
    found = await right_without_evidence(closed_book)
    assert found.label == "guessed" and "guessed or lucky" in found.detail


@pytest.mark.parametrize(("distillate", "label"), [("the shed is green", "grounded"), ("a shed", "lucky")])
async def test_a_right_answer_from_a_distillate_is_grounded_where_that_holds_it(
    distillate: str, label: str
) -> None:
    memory = FactsMemory({"5": Fate(distillate)}, given=("5",))
    memories = {"facts": memory, **real("closed_book")}
    found = attribution_of(await played(question(), memories, {"facts": GREEN}), "facts")
    assert found.label == label


async def test_right_and_wrong_answers_are_judged_by_the_same_predicate() -> None:
    parts = FactsMemory({"5": Fate("… the shed is green …", in_words=True)}, given=("5",))
    assert (await by_facts(parts, GREEN)).label == "grounded"
    assert (await by_facts(parts, PURPLE)).label == "misread"


async def test_a_model_that_says_it_was_not_said_though_it_was_in_the_prompt_abstained() -> None:
    assert (await attributed(NOTHING, "full_context")).label == "abstained"


async def test_turning_down_a_bait_is_a_correct_abstention_and_no_guess() -> None:
    asked = question(evidence_role="tempting", abstain=True, expected="Not answerable")
    assert (await attributed(NOTHING, "full_context", asked=asked)).label == "correct_abstention"
    assert (
        await attributed(NOTHING, "full_context", "closed_book", asked=asked, budget=3)
    ).label == "correct_abstention"


async def test_a_right_answer_without_named_evidence_is_grounded_where_the_prompt_contains_it() -> None:
    asked = question(evidence=(), evidence_role=None)
    timeline = await played(asked, real("rag", "closed_book"), {"rag": GREEN})
    assert attribution_of(timeline, "rag").label == "grounded"


# ---- what it reads ---------------------------------------------------------------------------------------------


async def test_a_memory_that_stored_nothing_is_not_written() -> None:
    found = await by_facts(FactsMemory({}))
    assert found.label == "not_written" and "stored nothing at all" in found.detail


async def test_other_memories_in_the_run_change_no_verdict() -> None:
    for reply in (BLUE, GREEN, PURPLE, NOTHING):
        alone = await played(question(), real("rag"), {"rag": reply})
        beside = await played(question(), real("rag", "hybrid", "full_context"), {"rag": reply})
        assert attribution_of(alone, "rag") == attribution_of(beside, "rag")


async def test_an_answer_that_is_not_scored_yet_has_none() -> None:
    timeline = await played(question(), real("rag"), {})
    answer = answer_of(timeline, "rag")
    answer.scored = None
    assert Attributor(timeline).attribute(answer) is None


async def test_a_recording_is_attributed_as_the_live_replay_was() -> None:
    timeline = await played(question(), real("hybrid", "rag"), {"hybrid": BLUE, "rag": PURPLE}, budget=12)
    again = Timeline(
        conversation(question()),
        [
            event
            for turn in range(len(timeline.conversation.turns) + 1)
            for backend in timeline.backends
            for event in timeline.events_at(backend, turn)
        ],
    )
    for backend in ("hybrid", "rag"):
        assert attribution_of(again, backend) == attribution_of(timeline, backend)


async def test_closed_book_counts_for_the_same_question_and_model_only() -> None:
    timeline = await played(question(), real("rag", "closed_book"), {"closed_book": GREEN})
    attributor = Attributor(timeline)
    asked = answer_of(timeline, "rag").asked
    assert (asked.model, timeline.conversation.questions[0].text) == (MODEL, COLOUR)
    assert attributor.closed_book_is_right(asked) is True
    assert attributor.closed_book_is_right(asked.model_copy(update={"model": "another"})) is None
    assert attributor.closed_book_is_right(asked.model_copy(update={"question_id": "another"})) is None


def test_labels_are_tried_in_the_documented_order() -> None:
    assert " ".join(LABELS) == (
        "error cut_reply unparsed refused prompt_cut key_suspect not_visible no_evidence not_written not_retrieved"
        " cut stale false_attribution abstained misread grounded correct_abstention guessed lucky"
    )


async def test_evidence_turns_are_traced_for_right_answers_too() -> None:
    asked = question(evidence=("1", "5"), expected="first blue, then green", expected_entities=("blue", "green"))
    timeline = await played(asked, real("full_context"), {"full_context": GREEN}, budget=40)
    first, second = Attributor(timeline).trails(answer_of(timeline, "full_context"))
    assert (first.turn, first.lost_at) == ("1", "cut")
    assert (second.turn, second.lost_at) == ("5", None)
