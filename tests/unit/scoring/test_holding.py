"""Whether a text from another turn than the evidence holds the answer, or the same value of something else."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from memory_backends.base import Hit
from memory_backends.stores.trace import MemoryOperation, StoredPoint, UpsertChange
from memreplay.conversations.models import Turn
from memreplay.engine.events import Observed, QuestionAsked, StoreOperated
from memreplay.scoring.holding import Answerable, Piece
from memreplay.scoring.stored import StoredMemory, text_of
from memreplay.timeline.timeline import Answer
from tests.unit.scoring.planted import question
from tests.unit.scoring.times_of_texts import SITUATIONS

SOMETHING_ELSE = [
    ("What is my cat's name?", "Luna", "Luna from accounting sent the invoice."),
    ("When is my dentist appointment?", "3 pm", "The shop closes at 3 pm on Sundays."),
    ("How much did the bike cost?", "£450", "The rent went up to £450."),
    ("Which hotel did I book for Rome?", "Hotel Miramar", "We passed Hotel Miramar on the way to the harbour."),
    ("What did Caroline research?", "adoption agencies", "Caroline met someone who dislikes adoption agencies."),
    ("Where did Caroline go in July?", "Oslo", "Caroline's parents came from Oslo."),
    ("When did I start the job?", "2019", "My parents sold their house in 2019."),
    ("Who repaired the roof?", "Tom", "Tom came over for chess."),
    ("How many litres does the tank hold?", "60 litres", "They drank 60 litres of beer at the party."),
    ("Which day is choir practice?", "Tuesday", "On Tuesday the plumber comes."),
    ("When is the shop open?", "Tuesday and Friday", "The shop opens on Monday and Friday, not Tuesday."),
    ("How did Ana describe the dog?", "Friendly and playful", "The dog made friends and is playing."),
    ("Which dance does Caroline like best?", "salsa", "John: I love to dance, and salsa is my favourite."),
]
THE_SAME = [
    ("What is my cat's name?", "Luna", "The user's cat Luna is on a diet."),
    ("When is my dentist appointment?", "3 pm", "The dentist confirmed 3 pm."),
    ("Where do I live?", "Girona", "The user lives in Girona."),
    ("Which dance does Caroline like best?", "salsa", "John: Caroline, you dance salsa best."),
    ("How much did the bike cost?", "£450", "The user paid 450 pounds for the bike."),
    (
        "What does Caroline want to do for a living?",
        "counselling or mental health work",
        "Keen on a career in counselling or mental health work.",
    ),
]
HELD_OUT = [
    ("What colour is the front door?", "teal", "She wore a teal scarf to the theatre.", False),
    ("Who is my accountant?", "Mr. Hale", "Mr. Hale coaches the under-nines.", False),
    ("How old is Marta?", "34", "The temperature reached 34 degrees.", False),
    ("Which airline did we fly with to Rome?", "Iberia", "Rome was lovely. Iberia sends newsletters.", False),
    ("¿Dónde nació mi abuela?", "Burgos", "El tren paró en Burgos una hora.", False),
    ("What colour is the front door?", "teal", "The front door was painted teal again.", True),
    ("Who is my accountant?", "Mr. Hale", "Accountant: Mr. Hale", True),
    ("Where did Caroline go in May?", "Oslo", "Caroline went to Oslo with her sister.", True),
    ("¿Dónde nació mi abuela?", "Burgos", "La abuela del usuario nació en Burgos.", True),
    ("What do I drink in the mornings?", "an oat milk latte", "Starts the day with an oat milk latte.", True),
]
"""Written after the rule, and nothing was changed for them."""

TURNS = {
    turn.id: turn
    for turn in (
        Turn(id="1", number=1, session=1, role="user", speaker="Caroline", text="I will tell you in a moment."),
        Turn(id="7", number=7, session=1, role="user", speaker="Caroline", text="That was long ago."),
        Turn(id="8", number=8, session=1, role="assistant", speaker="John", text="So it was."),
    )
}


@pytest.mark.parametrize(
    ("text", "expected", "other", "holds"),
    [*((*case, False) for case in SOMETHING_ELSE), *((*case, True) for case in THE_SAME)],
)
def test_the_same_value_in_another_turn_counts_only_where_it_is_said_of_what_was_asked(
    text: str, expected: str, other: str, holds: bool
) -> None:
    assert is_held(text, expected, other) is holds


def test_it_is_so_of_cases_that_the_rule_was_not_written_on() -> None:
    differing = [case for case in HELD_OUT if is_held(*case[:3]) is not case[3]]
    assert len(differing) <= 1, differing


def is_held(text: str, expected: str, other: str) -> bool:
    """Whether what comes from turn 7 holds an answer that turn 1 gave."""
    answerable = Answerable(question(text, expected=expected, evidence=("1",)), TURNS)
    return answerable.held_by([Piece(other, frozenset(["7"]))])


SPORTS = ("Which sports has Ana tried?", "climbing, fishing, camping", "We went fishing. The food was awful.")
NOTICE = (
    "On what date was the order to leave put on the door?",
    "30 August 2024",
    "He taped a notice to the door on Friday. Three days to leave.",
)


@pytest.mark.parametrize(
    ("asked", "distilled", "holds"),
    [
        (SPORTS, "Ana went fishing.", True),
        (SPORTS, "Ana finds the food awful.", False),
        (NOTICE, "A notice was taped to the door on Friday.", True),
        (NOTICE, "Three days to leave.", False),
    ],
)
def test_a_text_made_from_a_turn_has_to_say_what_the_turn_says_of_the_answer(
    asked: tuple[str, str, str], distilled: str, holds: bool
) -> None:
    text, expected, said = asked
    turns = {"1": Turn(id="1", number=1, session=1, role="user", speaker=None, text=said)}
    answerable = Answerable(question(text, expected=expected, evidence=("1",)), turns)
    assert answerable.part_held_by("1", [Piece(distilled, frozenset(["1"]))]) is holds


@pytest.mark.parametrize(
    ("payload", "holds"),
    [
        ({"memory": "The user's dog sleeps a lot", "score": 1.0, "uses": 1}, False),
        ({"memory": "The user has one dog", "score": 0.5}, True),
        ({"dogs": 1}, True),
        ({"memory": "The user's dog sleeps a lot", "sources": ["1"]}, False),
    ],
)
def test_a_score_or_the_id_of_a_turn_beside_a_stored_sentence_is_no_answer(
    payload: dict[str, object], holds: bool
) -> None:
    answerable = Answerable(question("How many dogs?", expected="one", evidence=("1",)), TURNS)
    assert answerable.held_by(stored(payload).stored) is holds


def test_a_hit_of_several_facts_does_not_say_where_one_comes_from_that_names_its_turns() -> None:
    hit = Hit(id="p", store="qdrant", place="facts", rank=1, score=1.0, text="Two facts", sources=("1", "7"))
    asked = QuestionAsked(
        **OF, model="m", question_id="q", hits=(hit,), cut=(), context_tokens=2, prompt=(), recall_ms=1.0
    )
    for payload, turns in (({"memory": "One fact", "sources": ["1"]}, {"1"}), ({"memory": "One fact"}, {"1", "7"})):
        memory = stored(payload)
        memory.name_sources("plugin", [Answer(asked=asked)])
        assert {turn for item in memory.items for turn in item.turns} == turns


OF = {"conversation": "c", "turn": 1, "backend": "plugin"}


def test_a_stored_text_holds_a_time_as_a_person_says_that_it_does() -> None:
    differing = []
    for day, said, text, expected, texts in SITUATIONS:
        turns = {"1": Turn(id="1", number=1, session=1, role="user", speaker=None, text=said)}
        answerable = Answerable(question(text, expected=expected, evidence=("1",)), turns, {1: day})
        for distilled, label in texts.items():
            piece = [Piece(distilled, frozenset(["1"]))]
            other = "other" if answerable.other_times("1", piece) else "left_out"
            found = "held" if answerable.held_by(piece) else other
            differing += [(distilled, label, found)] if found != label else []
    assert len(differing) <= 1, differing


LIST = ("Which places has Ana seen?", "Oslo, Bergen and Narvik")
GUESS = ("Would Ana enjoy a museum of ships?", "Probably, as she restores old dinghies")
PARTS = [
    (
        LIST,
        {"1": "Oslo, and Narvik's bay.", "2": "Bergen."},
        {"1": "Oslo and Narvik"},
        False,
    ),
    (
        LIST,
        {"1": "Oslo and Narvik.", "2": "Bergen.", "3": "Nice!"},
        {"1": "Oslo, Narvik", "2": "Bergen"},
        True,
    ),
    (
        GUESS,
        {"1": "That museum again!", "2": "I love ships.", "3": "Us too."},
        {"1": "museum", "2": "ships"},
        True,
    ),
    (GUESS, {"1": "That museum again!", "2": "I love ships."}, {"1": "Ana went to a museum"}, False),
]


@pytest.mark.parametrize(("asked", "said", "made", "holds"), PARTS)
def test_only_turns_that_say_a_part_of_an_answer_are_needed(
    asked: tuple[str, str], said: dict[str, str], made: dict[str, str], holds: bool
) -> None:
    turns = {
        id_: Turn(id=id_, number=int(id_), session=1, role="user", speaker=None, text=text)
        for id_, text in said.items()
    }
    answerable = Answerable(question(asked[0], expected=asked[1], evidence=tuple(said)), turns)
    assert answerable.held_by([Piece(text, frozenset([id_])) for id_, text in made.items()]) is holds


QUOTES = {"1": "Anna: The first roofer wants 3,200.", "2": "Anna: The second quote is 2,750."}
FARM = {"1": "Anna: I grew up on a dairy farm.", "2": "Ben: A farm kid here too."}
CHECKS = {"1": "Anna: The valve failed the inspection.", "2": "Anna: The second inspection was fine."}
PILLS = {"1": "Anna: I no longer take the red pills.", "2": "Anna: The goats are well."}
BUYER = {"1": "Anna: Still no buyer for the caravan.", "2": "Anna: The goats are well."}
BATH = {"1": "Anna: After a shift I soak in a hot bath and put a podcast on."}
ROOF = {"1": "Anna: The roof was done Wednesday."}
STALLS = {"1": "Anna: The stalls open on 3 February.", "2": "Anna: The stalls close on 9 March."}
WORKS = {"1": STALLS["1"], "2": "Anna: Work begins in February, so the stalls close on 9 March."}
GOATS = {"1": "Anna: I have kept them for three years, my goats."}
SWIM = {"1": "Anna: I started to swim in lakes last Tuesday. The year has started well."}
OSLO = {"1": "Anna: We were in Oslo yesterday. The goat was at home."}
TRAMS = {"1": "Anna: I worked in Oman, Norway, Chile and Malta."}
FEE = {"1": "Anna: The fee rose from 20 to 25.", "2": "Ben: The bank takes 5 pounds a month."}
JOINED = "[30 January 2024] Anna: {}\nBen: The bank takes 5 pounds a month."
KINDS = [
    ("How much less is the second quote?", "£450", QUOTES, {"1": "A roofer wants £3,200", "2": "£2,750"}, True),
    ("How much less is the second quote?", "£450", QUOTES, {"1": "A roofer wants £3,200", "2": "£2,800"}, False),
    ("How many countries has Anna worked in?", "four", TRAMS, {"1": "Worked in Oman, Norway, Chile, Malta"}, True),
    ("How many countries has Anna worked in?", "four", TRAMS, {"1": "Anna has worked in Oman"}, False),
    ("What do Anna and Ben have in common?", "a farm", FARM, {"1": "Anna grew up on a farm"}, False),
    ("What do Anna and Ben have in common?", "a farm", FARM, {"1": "Anna: a farm", "2": "Ben: a farm"}, True),
    (
        "How many weeks were between the inspections?", "3 weeks", CHECKS,
        {"1": "[30 January 2024] The valve failed the inspection", "2": "[20 February 2024] Inspection fine"}, True,
    ),
    (
        "How many weeks were between the inspections?", "3 weeks", CHECKS,
        {"1": "A valve failed at the inspection", "2": "[20 February 2024] Inspection fine"}, False,
    ),
    (
        "How many weeks were between the inspections?", "3 weeks", CHECKS,
        {"1": "The valve failed the inspection.", "2": "The second inspection was fine."}, False,
    ),
    (
        "How many weeks were between the inspections?", "four weeks", CHECKS,
        {"1": "[30 January 2024] The valve failed the inspection four weeks ago"}, False,
    ),
    ("Has Anna sold the caravan?", "No", BUYER, {"1": "Anna is still looking for a buyer of her caravan"}, True),
    ("Has Anna sold the caravan?", "No", BUYER, {"1": "Anna owns a caravan"}, False),
    ("Does Anna still take the red pills?", "No", PILLS, {"1": "Anna takes the red pills."}, False),
    ("Does Anna still take the red pills?", "No", PILLS, {"1": "Anna takes no red pills now."}, True),
    ("How does Anna relax?", "soaking in a hot bath with podcasts", BATH, {"1": "Hot baths and podcasts"}, True),
    ("How does Anna relax?", "soaking in a hot bath with podcasts", BATH, {"1": "Anna likes podcasts"}, False),
    ("When was the roof done?", "24 January 2024", ROOF, {"1": "[30 January 2024] Roof done Wednesday"}, True),
    ("Since when has Anna kept goats?", "2021", GOATS, {"1": "[30 January 2024] Goats kept for three years"}, True),
    ("Since when has Anna kept goats?", "2021", GOATS, {"1": "[30 January 2024] Anna keeps goats"}, False),
    ("When are they open?", "3 February to 9 March 2024", STALLS, {"1": "Stalls open on 3 February 2024"}, False),
    (
        "When are the stalls open?", "3 February to 9 March 2024", STALLS,
        {"1": "Stalls open on 3 February 2024", "2": "Stalls close on 9 March 2024"}, True,
    ),
    (
        "When are the stalls open?", "3 February to 9 March 2024", WORKS,
        {"1": "Stalls open on 3 February 2024", "2": "Stalls close on 9 March 2024"}, True,
    ),
    ("When did Anna start to swim in lakes?", "23 January 2024", SWIM, {"1": "[23 January 2024] Started"}, False),
    ("When was the roof done?", "24 January 2024", ROOF, {"1": "[30 January 2024] A roof was done"}, False),
    ("When was Anna on holiday?", "29 January 2024", OSLO, {"1": "[30 January 2024] In Oslo yesterday"}, True),
    ("When was Anna on holiday?", "29 January 2024", OSLO, {"1": "[30 January 2024] Anna has a goat"}, False),
    ("By how much did the fee rise?", "£5", FEE, {"1 2": JOINED.format("The fee was 20")}, False),
    ("By how much did the fee rise?", "£5", FEE, {"1 2": JOINED.format("It went from 20 to 25")}, True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected", "said", "made", "holds"), KINDS)
def test_what_is_counted_joined_or_inferred_is_held_as_people_say(
    text: str, expected: str, said: dict[str, str], made: dict[str, str], holds: bool
) -> None:
    turns = {
        id_: Turn(id=id_, number=int(id_), session=int(id_), role="user", speaker=speaker, text=words)
        for id_, (speaker, words) in ((id_, line.split(": ", 1)) for id_, line in said.items())
    }
    evidence = tuple(id_ for id_ in said if "bank" not in said[id_])
    days = {1: date(2024, 1, 30), 2: date(2024, 2, 20)}
    answerable = Answerable(question(text, expected=expected, evidence=evidence), turns, days)
    pieces = [Piece(words, frozenset(ids.split())) for ids, words in made.items()]
    assert answerable.held_by(pieces) is holds


TRIPS = {"1": "Ana: I have been to Oslo.", "2": "Ben: Only been to Rome once.", "3": "Ana: Rome was hot."}
BOOKS = {"1": "Ana: I read the book Emma.", "2": "Ben: I see.", "3": "Ana: This book taught me a lot."}
CAKES = {"1": "Ana: I took what I baked to the shelter.", "2": "Ben: Good.", "3": "Ana: Cherry, mostly."}
DANCE = {"1": "Ana: I won a dance contest.", "2": "Ben: I won one too.", "3": "Ana: We danced in Bath."}
PRESS = {"1": "Ana: Last week the press found me.", "4": "Ben: Ana, congrats on the press!"}
FAIR = {"1": "Ana: I plan a fair with four stalls.", "2": "Ana: The fair at school is in four weeks."}
CHESS = {"1": "Ana: I have begun to play chess.", "2": "Ana: Such a great day!", "3": "Ana: I won at chess!"}
PUPPY = {
    "1": "Ana: I adopted a cat.",
    "2": "Ana: I adopted a dog.",
    "3": "Ben: What a dog!",
    "4": "Ben: Cat and dog?",
}
PROMPTS = [
    ("Which cities has Ana visited?", "Oslo, Rome", {**TRIPS, "2": "Ben: You visited Rome!"}, "1 3", ["1 2"], True),
    ("Which city have both Ana and Ben visited?", "Rome", TRIPS, "2 3", ["2 3"], True),
    ("Which books has Ana read?", "Emma, Walden", BOOKS, "1 3", ["1 2"], False),
    ("What food did Ana take to the shelter?", "pies", CAKES, "1 3", ["1 2", "3"], True),
    ("Would Ana go to the shelter again?", "Likely yes", CAKES, "1 3", ["1 2"], True),
    ("Did both Ana and Ben win a contest?", "Yes", DANCE, "1 2 3", ["1"], False),
    ("When did the press find Ana?", "23 January 2024", PRESS, "1", ["4"], False),
    ("How many stalls does Ana plan at the school?", "four", FAIR, "1", ["2"], False),
    ("How many weeks between adopting cat and dog?", "3 weeks", PUPPY, "1 2", ["1", "3"], False),
    ("How many weeks between adopting cat and dog?", "3 weeks", PUPPY, "1 2", ["1", "2"], True),
    ("How long did Ana play chess before she won?", "nearly 4 weeks", CHESS, "1 2 3", ["1", "3"], True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected", "said", "evidence", "given", "holds"), PROMPTS)
def test_a_prompt_of_turns_holds_what_a_person_finds_in_it(
    text: str, expected: str, said: dict[str, str], evidence: str, given: list[str], holds: bool
) -> None:
    lines = {id_: line.split(": ", 1) for id_, line in said.items()}
    turns = {
        id_: Turn(id=id_, number=int(id_), session=1 + (id_ in "23"), role="user", speaker=speaker, text=words)
        for id_, (speaker, words) in lines.items()
    }
    days = {1: date(2024, 1, 30), 2: date(2024, 2, 23)}
    answerable = Answerable(question(text, expected=expected, evidence=tuple(evidence.split())), turns, days)
    pieces = []
    for ids in map(str.split, given):
        day = days[turns[ids[0]].session]
        lines_given = "\n".join(said[id_] for id_ in ids)
        pieces.append(Piece(f"[{day.day} {day:%B %Y}]\n{lines_given}", frozenset(ids), frozenset(ids)))
    assert answerable.held_by(pieces) is holds


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("[9 June 2023, 10:00]\nThe kayak is sold.", True),
        ("[9 June 2023] The goats are ill.\nAna: The kayak is sold, since yesterday.", False),
        ("[10 June 2023] The kayak was sold yesterday.\nThe hens came last week.", True),
        ("[10 June 2023] The kayak is sold.\nThe hens came yesterday.", False),
    ],
)
def test_a_text_under_a_date_says_the_time_of_each_of_its_lines(text: str, holds: bool) -> None:
    answerable = Answerable(question("When was the kayak sold?", expected="9 June 2023", evidence=("1",)), TURNS)
    assert answerable.held_by([Piece(text, frozenset(["1"]))]) is holds


SOLD = "The kayak was sold yesterday."
DAY = frozenset([date(2023, 6, 10)])


@pytest.mark.parametrize(
    ("said", "asked", "expected", "piece", "holds"),
    [
        (SOLD, "When was the kayak sold?", "9 June 2023", Piece(""), False),
        (
            "The kayak was sold yesterday.",
            "When was the kayak sold?",
            "9 June 2023",
            Piece("", is_dated=True),
            True,
        ),
        (SOLD, "When was the kayak sold?", "9 June 2023", Piece("", days=DAY), True),
        (SOLD, "What was sold?", "the kayak", Piece(""), True),
        ("The kayak was sold on 9 June 2023.", "When was the kayak sold?", "9 June 2023", Piece(""), True),
    ],
)
def test_a_turn_without_the_date_that_it_counts_from_says_no_time(
    said: str, asked: str, expected: str, piece: Piece, holds: bool
) -> None:
    turns = {"1": Turn(id="1", number=1, session=1, role="user", speaker="Ana", text=said)}
    answerable = Answerable(question(asked, expected=expected, evidence=("1",)), turns, {1: date(2023, 6, 10)})
    assert answerable.held_by([replace(piece, text=said, turns=frozenset("1"), verbatim=frozenset("1"))]) is holds


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("[10 June 2023]\nBen: So the kayak went yesterday!", True),
        ("[9 June 2023]\nBen: Nice that the kayak is gone.", False),
        ("[10 June 2023]\nBen: The hens came yesterday.", False),
    ],
)
def test_another_turn_of_the_session_says_a_time_from_its_own_date(text: str, holds: bool) -> None:
    turns = {
        id_: Turn(id=id_, number=int(id_), session=1, role="user", speaker=None, text=SOLD) for id_ in ("1", "2")
    }
    answerable = Answerable(question("When was the kayak sold?", expected="9 June 2023", evidence=("1",)), turns)
    assert answerable.held_by([Piece(text, frozenset("2"))]) is holds


def test_what_names_another_speaker_alone_does_not_answer_about_one() -> None:
    assert not is_held("Which dance does Caroline like?", "salsa", "John likes to dance salsa")
    assert is_held("Which dance does Caroline like?", "salsa", "Caroline likes to dance salsa")


def stored(payload: dict[str, object]) -> StoredMemory:
    """A memory that has heard turn 1 and made one point of it."""
    point = UpsertChange(points=(StoredPoint(id="p", payload=payload),))
    place = {"store": "qdrant", "command": "upsert", "key": "facts", "actor": "plugin"}
    operation = MemoryOperation(**place, phase="observe", turns=("1",), change=point, ms=0.0)
    return StoredMemory([Observed(**OF, ms=1.0, turns=("1",)), StoreOperated(**OF, operation=operation)])


def test_a_number_beside_words_is_what_is_known_unless_its_name_says_that_it_is_a_figure_about_them() -> None:
    assert text_of({"attribute": "bus line to work", "value": 14}) == "bus line to work\n14"
    figures = {"score": 0.8, "access_count": 3, "version": 2, "created_at": 17, "vector": [0.1, 0.2]}
    assert text_of({"text": "The user takes the bus.", **figures}) == "The user takes the bus."


def test_the_id_and_the_time_of_a_stored_item_are_no_part_of_what_it_says() -> None:
    made_up = {"id": "6464a751-d6f2-5eaa-8d18-e14fd3367691", "at": "2026-11-27T10:15:24", "hash": "5eaa8d18" * 4}
    assert text_of({"content": "User: High tide 76, low 88.", **made_up}) == "User: High tide 76, low 88."
