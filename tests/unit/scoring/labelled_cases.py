"""Answers with the verdict that a person gives them, who read the conversation, the limits and the reply.

Turns are numbered from 1; the user says the odd ones. ``limits`` are hits and tokens: hits are exchanges for rag,
and tokens are words and punctuation marks, with ``User:`` or ``AI:`` before each line. In ``plugin`` cases
``writes`` says what a rewriting memory makes of a turn, and ``gives`` what it returns, in this order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memreplay.scoring.verdicts import Label
from tests.stubs.rewriting_memory import Script, Write

HOME = (
    "I live in Girona, in a flat above a bakery.",
    "That must smell wonderful.",
    "My sister Ana moved to Lisbon in March.",
    "A beautiful city.",
    "The kiln reached 1,240 degrees last night.",
    "Hot enough for stoneware.",
    "It rained on the goats all afternoon.",
    "Poor goats.",
)
MOVED = (
    "I live in Madrid.",
    "Noted.",
    "The goats escaped again.",
    "Oh no.",
    "Actually, I live in Bilbao now.",
    "All right.",
)
BROTHERS = (
    "My brother Pau plays the oboe.",
    "How nice.",
    "The ferry to Ibiza was two hours late.",
    "How annoying.",
    "My brother Jordi plays the viola.",
    "A musical family.",
)
FIGURES = (
    "I have two cats.",
    "Lovely.",
    "The bill for the roof came to £19,600.",
    "Expensive.",
    "Our train leaves at 17:45 on Friday.",
    "Do not be late.",
    "I have three goats as well.",
    "A full house.",
)
BOAT = (
    "I am allergic to walnuts.",
    "I will remember that.",
    "Yes, the boat is repaired at last.",
    "Good news.",
    "Yes, I like the new curtains.",
    "They suit the room.",
)
HULL = (
    "Which paint should I use for the hull of my dinghy?",
    "Two-pack epoxy, in thin coats.",
    "Thank you, I will buy some.",
    "Any time.",
)
PERRO = (
    "Mi perro se llama Trueno.",
    "Un buen nombre.",
    "Ayer llovió toda la tarde en Vigo.",
    "Vaya.",
)
LEEKS = (
    "On Saturday I planted 12 leeks.",
    "Well done.",
    "On Sunday I planted 8 more leeks.",
    "What a bed of leeks.",
)
_SMALL_TALK = tuple(
    line
    for thing in (
        "hedge", "kettle", "ladder", "pillow", "radio", "stove", "carpet", "bucket", "lantern", "sofa", "mirror",
    )
    for line in (f"Somebody polished every {thing} before breakfast, slowly and without a word.", "I see.")
)  # fmt: skip
LONG = (
    "Grandmother keeps bees behind the chapel.",
    "Charming.",
    *_SMALL_TALK,
    "What does a hobby say about people in general, do you think?",
    "A hobby says what people like to do in general.",
)


@dataclass(frozen=True)
class Ask:
    """A question to a conversation; ``evidence`` are the numbers of the turns that hold the answer."""

    said: tuple[str, ...]
    text: str
    expected: str
    evidence: tuple[str, ...]
    more: Mapping[str, Any] = field(default_factory=dict)


ANA = Ask(HOME, "Where does Ana live?", "Lisbon", ("3",))
HUSBAND = Ask(
    HOME, "Where does Ana's husband live?", "Not answerable", ("3",), {"abstain": True, "evidence_role": "tempting"}
)
KILN = Ask(HOME, "How hot did the kiln get?", "1240 degrees", ("5",))
KILN_CHOICE = Ask(
    HOME,
    "How hot did the kiln get?",
    "1240 degrees",
    ("5",),
    {"kind": "choice", "choices": ("900 degrees", "1240 degrees", "1300 degrees"), "correct_index": 1},
)
UNNAMED = Ask(HOME, "Where does Ana live?", "Lisbon", (), {"evidence_role": None})
UNSAID = Ask(HOME, "What is Ana's job?", "a glazier", (), {"evidence_role": None})
CITY = Ask(MOVED, "In which city do I live?", "Bilbao", ("5",), {"supersedes": ("Madrid",)})
CITY_PLAIN = Ask(MOVED, "In which city do I live?", "Bilbao", ("5",))
MUSIC = Ask(
    BROTHERS,
    "Which instruments do my brothers play?",
    "oboe and viola",
    ("1", "5"),
    {"expected_entities": ("oboe", "viola")},
)
CATS = Ask(FIGURES, "How many cats do I have?", "two", ("1",))
ROOF = Ask(FIGURES, "What did the roof cost?", "£19,600", ("3",))
TRAIN = Ask(FIGURES, "When does our train leave?", "5:45 pm", ("5",))
REPAIRED = Ask(BOAT, "Is the boat repaired?", "yes", ("3",))
NUTS = Ask(BOAT, "What am I allergic to?", "walnuts", ("1",))
PAINT = Ask(HULL, "What did you tell me to put on the dinghy?", "epoxy", ("2",))
DOG = Ask(PERRO, "¿Cómo se llama mi perro?", "Trueno", ("1",))
PLANTED = Ask(LEEKS, "How many leeks did I plant in all?", "20", ("1", "3"))
HOBBY = Ask(LONG, "What is the hobby of people in general?", "beekeeping", ("1",), {"expected_entities": ("bees",)})


@dataclass(frozen=True)
class Case:
    """An answer and its verdict, with the reason for it in a line.

    ``closed_book`` is what the model replies without memory, where it is asked; ``loss`` details ``not_written``.
    """

    backend: str
    ask: Ask
    reply: str
    label: Label | None
    reason: str
    limits: tuple[int, int] = (10, 1000)
    closed_book: str | None = None
    writes: Script = field(default_factory=dict)
    gives: tuple[str, ...] | None = None
    how: Mapping[str, Any] = field(default_factory=dict)
    loss: str | None = None


NO = "It was not mentioned."


def add(item: str, text: str) -> Write:
    return Write(item, text)


def gone(item: str) -> Write:
    return Write(item, None)


FULL = (
    Case("full_context", ANA, "Porto", "misread", "The whole log is in the prompt."),
    Case("full_context", ANA, "Lisbon", "grounded", "The whole log is in the prompt."),
    Case("full_context", ANA, NO, "abstained", "The log says it, and the model says that nobody did."),
    Case("full_context", ANA, "Porto", "cut", "20 tokens hold the last turns only.", (10, 20)),
    Case("full_context", ANA, NO, "cut", "Abstaining was right of the model: the turn was cut.", (10, 20)),
    Case("full_context", ANA, "Lisbon", "lucky", "Turn 3 was cut; alone it says Porto.", (10, 20), "Porto"),
    Case("full_context", ANA, "Lisbon", "guessed", "Turn 3 was cut; alone it is right too.", (10, 20), "Lisbon"),
    Case("full_context", HUSBAND, "Lisbon", "false_attribution", "Nobody said where the husband lives."),
    Case("full_context", HUSBAND, NO, "correct_abstention", "Nobody said where the husband lives."),
    Case("full_context", KILN_CHOICE, "0", "misread", "The figure is in the log; it chose another."),
    Case("full_context", KILN_CHOICE, "1", "grounded", "The figure is in the log."),
    Case("full_context", KILN_CHOICE, "0 or 2", "unparsed", "It names two options."),
    Case("full_context", UNNAMED, "Porto", "misread", "No evidence is named, but the log contains Lisbon."),
    Case("full_context", UNNAMED, "Porto", "cut", "The log held Lisbon; the budget cut it.", (10, 20)),
    Case("full_context", UNSAID, "a baker", "no_evidence", "The dataset names nothing, and nobody said glazier."),
    Case("full_context", CITY, "Madrid", "stale", "The dataset says that Bilbao replaced Madrid."),
    Case("full_context", CITY, "Toledo", "misread", "Toledo was never said."),
    Case("full_context", CITY_PLAIN, "Madrid", "misread", "Neither dataset nor log says that Madrid is outdated."),
    Case("full_context", CITY, "Madrid", "cut", "At 2 tokens nothing is in the prompt.", (10, 2)),
    Case("full_context", MUSIC, "the oboe", "misread", "Both turns are in the log; it names one."),
    Case("full_context", MUSIC, "the viola", "cut", "Turn 1 was cut.", (10, 30)),
    Case("full_context", CATS, "three", "misread", "Turn 1 is in the log."),
    Case("full_context", CATS, "three", "cut", "Turn 1 was cut.", (10, 30)),
    Case("full_context", TRAIN, "in the evening", "misread", "17:45 is in the log."),
    Case("full_context", TRAIN, "17:45", "grounded", "17:45 is 5:45 pm."),
    Case("full_context", REPAIRED, "no", "cut", "The last exchange also says yes, but of curtains.", (10, 15)),
    Case("full_context", REPAIRED, "no", "misread", "The whole log is in the prompt."),
    Case("full_context", PLANTED, "12", "misread", "Both turns are in the prompt: it did not add them up."),
    Case("full_context", PLANTED, "8", "cut", "Turn 1 was cut, so that nothing could be added up.", (10, 19)),
    Case("full_context", DOG, "Rayo", "misread", "Trueno is in the log."),
)  # fmt: skip
RAG = (
    Case("rag", ANA, "Porto", "misread", "All four exchanges are in the prompt."),
    Case("rag", ANA, "Lisbon", "grounded", "All four exchanges are in the prompt."),
    Case("rag", ANA, NO, "abstained", "Lisbon is in the prompt."),
    Case("rag", ANA, "Porto", "cut", "Nothing fits into 3 tokens.", (10, 3)),
    Case("rag", CITY, "Madrid", "stale", "Both cities are in the prompt; Madrid is outdated."),
    Case("rag", HOBBY, "chess", "not_retrieved", "The last exchange shares the question's words.", (1, 1000)),
    Case("rag", HOBBY, NO, "not_retrieved", "The evidence shares no word with the question.", (1, 1000)),
    Case("rag", HOBBY, "keeping bees", "lucky", "Only the last exchange is given.", (1, 1000), "chess"),
    Case("rag", CATS, "three", "misread", "All exchanges are in the prompt."),
    Case("rag", HUSBAND, "Porto", "false_attribution", "Nobody said where the husband lives."),
    Case("rag", PAINT, "varnish", "misread", "The assistant's words are in the prompt."),
    Case("rag", UNSAID, "a baker", "no_evidence", "Nothing can be looked up."),
    Case("rag:keyword", ANA, "Porto", "misread", "Ana stands in turn 3, which is found."),
    Case("rag:keyword", ANA, "Lisbon", "grounded", "Ana stands in turn 3, which is found."),
    Case("rag:keyword", HOBBY, "chess", "not_retrieved", "No word of the question is in turn 1.", (1, 1000)),
    Case("rag:keyword", KILN, "900 degrees", "misread", "The kiln is found by its name."),
    Case("rag:keyword", KILN, "900 degrees", "cut", "It is found, and does not fit.", (10, 4)),
    Case("rag:keyword", DOG, "Rayo", "misread", "Perro finds turn 1."),
    Case("rag:keyword", HUSBAND, NO, "correct_abstention", "Nobody said where the husband lives."),
    Case("rag:fused", ANA, "Porto", "misread", "All four exchanges are in the prompt."),
    Case("rag:fused", ROOF, "£1,960", "misread", "The bill is in the prompt."),
    Case("rag:fused", ROOF, "19600 pounds", "grounded", "The same amount in another spelling."),
    Case("rag:fused", ROOF, "£1,960", "cut", "Nothing fits into 3 tokens.", (10, 3)),
    Case("rag:fused", HOBBY, "chess", "not_retrieved", "Neither channel prefers turn 1.", (1, 1000)),
    Case("rag:fused", MUSIC, NO, "abstained", "Both turns are in the prompt."),
)  # fmt: skip
CONTROLS = (
    Case("oracle", ANA, "Porto", "misread", "The oracle gives turn 3."),
    Case("oracle", ANA, NO, "abstained", "The oracle gives turn 3."),
    Case("oracle", ANA, "Lisbon", "grounded", "The oracle gives turn 3."),
    Case("oracle", ANA, "Porto", "cut", "Turn 3 does not fit into 3 tokens.", (10, 3)),
    Case("oracle", MUSIC, "the oboe", "misread", "The oracle gives both turns."),
    Case("oracle", PLANTED, "96", "misread", "The oracle gives both turns."),
    Case("oracle", UNSAID, "a baker", "error", "Without evidence the oracle gives nothing and nobody is asked."),
    Case("closed_book", ANA, "Porto", None, "It has no memory, so no stage lost anything."),
    Case("closed_book", ANA, "Lisbon", None, "It has no memory, so nothing was grounded."),
)
HYBRID = (
    Case("hybrid", ANA, "Porto", "misread", "The conversation is short: all of it is in the prompt."),
    Case("hybrid", ANA, "Lisbon", "grounded", "The conversation is short: all of it is in the prompt."),
    Case("hybrid", ANA, NO, "abstained", "The conversation is short: all of it is in the prompt."),
    Case("hybrid", ANA, "Porto", "cut", "Nothing fits into 3 tokens.", (10, 3)),
    Case("hybrid", CITY_PLAIN, "Madrid", "stale", "Its workspace replaced Madrid by Bilbao."),
    Case("hybrid", CITY_PLAIN, "Toledo", "misread", "Bilbao is in the prompt."),
    Case("hybrid", HUSBAND, "Lisbon", "false_attribution", "Nobody said where the husband lives."),
    Case("hybrid", HOBBY, "chess", "not_retrieved", "One passage around the last exchange.", (1, 1000)),
    Case("hybrid", KILN_CHOICE, "2", "misread", "The figure is in the prompt."),
    Case(
        "hybrid -verbatim",
        KILN_CHOICE,
        "2",
        "misread",
        "The figure is a fact, and given.",
    ),
    Case("hybrid -verbatim", CITY_PLAIN, "Toledo", "misread", "The fact that the user lives in Bilbao is given."),
    Case("hybrid -verbatim", CITY_PLAIN, "Bilbao", "grounded", "The fact that the user lives in Bilbao is given."),
    Case("hybrid -verbatim", CITY_PLAIN, "Madrid", "stale", "Its workspace replaced Madrid by Bilbao."),
    Case("hybrid -verbatim", CITY, NO, "abstained", "The fact that the user lives in Bilbao is given."),
    Case("hybrid -verbatim", NUTS, "peanuts", "misread", "The allergy is a fact that it promotes and gives."),
    Case("hybrid -verbatim", NUTS, "walnuts", "grounded", "The allergy is a fact that it promotes and gives."),
    Case("hybrid -verbatim", REPAIRED, "no", "not_written", "No rule takes a repaired boat for a fact."),
    Case("hybrid -verbatim", HOBBY, "chess", "not_written", "No rule takes bees for a fact."),
    Case("hybrid -verbatim", HOBBY, "keeping bees", "lucky", "Nothing was kept.", closed_book="chess"),
)
PLUGIN = (
    Case(
        "plugin",
        ANA,
        "Porto",
        "misread",
        "The rewritten fact is given.",
        writes={"3": [add("a", "Ana lives in Lisbon")]},
    ),
    Case(
        "plugin",
        ANA,
        "Lisbon",
        "grounded",
        "The rewritten fact is given.",
        writes={"3": [add("a", "Ana lives in Lisbon")]},
    ),
    Case(
        "plugin",
        ANA,
        NO,
        "abstained",
        "It names no turns, but the text says it.",
        writes={"3": [add("a", "Ana lives in Lisbon")]},
        how={"links": "none"},
    ),
    Case("plugin", ANA, "Porto", "not_written", "It stored nothing at all.", loss="distilled_away"),
    Case("plugin", ANA, NO, "not_written", "It stored nothing at all.", loss="distilled_away"),
    Case(
        "plugin",
        ANA,
        "Porto",
        "not_written",
        "It kept the sister, not the city.",
        writes={"3": [add("a", "The user has a sister, Ana")]},
        loss="distilled_away",
    ),
    Case(
        "plugin",
        ANA,
        "Porto",
        "not_written",
        "It kept something of another turn.",
        writes={"5": [add("k", "The kiln is hot")]},
        gives=("k",),
        loss="distilled_away",
    ),
    Case(
        "plugin",
        ANA,
        "Porto",
        "not_retrieved",
        "It gives another item.",
        writes={"3": [add("a", "Ana lives in Lisbon")], "5": [add("k", "The kiln is hot")]},
        gives=("k",),
    ),
    Case(
        "plugin",
        ANA,
        "Porto",
        "not_retrieved",
        "It gives nothing.",
        writes={"3": [add("a", "Ana lives in Lisbon")]},
        gives=(),
        how={"links": "none"},
    ),
    Case(
        "plugin",
        ANA,
        "Porto",
        "cut",
        "It was found, and does not fit.",
        (10, 2),
        writes={"3": [add("a", "Ana lives in Lisbon")]},
    ),
    Case(
        "plugin",
        ANA,
        "Porto",
        "not_written",
        "It was deleted again.",
        writes={"3": [add("a", "Ana lives in Lisbon")], "7": [gone("a")]},
        loss="expired",
    ),
    Case(
        "plugin",
        ANA,
        "Porto",
        "not_written",
        "A later text took its place.",
        writes={"3": [add("a", "Ana lives in Lisbon")], "7": [add("a", "Ana likes goats")]},
        loss="superseded",
    ),
    Case(
        "plugin",
        ANA,
        "Porto",
        "not_retrieved",
        "A merge kept the city.",
        writes={
            "1": [add("h", "The user lives in Girona")],
            "3": [add("a", "Ana lives in Lisbon")],
            "7": [gone("h"), add("a", "The user lives in Girona, Ana in Lisbon")],
        },
        gives=(),
    ),
    Case(
        "plugin",
        ANA,
        "Porto",
        "misread",
        "A merge kept the city and is given.",
        writes={"3": [add("a", "Ana lives in Lisbon")], "7": [add("a", "The user lives in Girona, Ana in Lisbon")]},
        how={"links": "none"},
    ),
    Case(
        "plugin",
        ANA,
        "Porto",
        "not_written",
        "A merge lost the city.",
        writes={
            "3": [add("a", "Ana lives in Lisbon")],
            "7": [gone("a"), add("m", "Ana moved abroad and it rains on goats")],
        },
    ),
    Case(
        "plugin",
        CITY_PLAIN,
        "Madrid",
        "stale",
        "It rewrote Madrid into Bilbao.",
        writes={"1": [add("c", "The user lives in Madrid")], "5": [add("c", "The user lives in Bilbao")]},
    ),
    Case(
        "plugin",
        CITY_PLAIN,
        "Toledo",
        "misread",
        "Bilbao is given; Toledo was never said.",
        writes={"1": [add("c", "The user lives in Madrid")], "5": [add("c", "The user lives in Bilbao")]},
    ),
    Case(
        "plugin",
        CITY,
        "Madrid",
        "stale",
        "The dataset says that Bilbao replaced Madrid.",
        writes={"1": [add("c", "The user lives in Madrid")], "5": [add("d", "The user lives in Bilbao")]},
        how={"links": "none"},
    ),
    Case(
        "plugin",
        CITY,
        "Madrid",
        "not_written",
        "It missed the correction.",
        writes={"1": [add("c", "The user lives in Madrid")]},
        loss="distilled_away",
    ),
    Case(
        "plugin",
        CATS,
        "three",
        "misread",
        "The figure is given with what it counts.",
        writes={"1": [add("c", "The user has 2 cats")]},
    ),
    Case(
        "plugin",
        CATS,
        "three",
        "misread",
        "The same without links.",
        writes={"1": [add("c", "The user has 2 cats")]},
        how={"links": "none"},
    ),
    Case(
        "plugin",
        CATS,
        "three",
        "not_written",
        "Two is said of something else.",
        writes={"1": [add("c", "The user has cats")], "7": [add("g", "The user bought two goats")]},
        gives=("c", "g"),
    ),
    Case(
        "plugin",
        CATS,
        "three",
        "not_written",
        "The same without links.",
        writes={"1": [add("c", "The user has cats")], "7": [add("g", "The user bought two goats")]},
        gives=("c", "g"),
        how={"links": "none"},
    ),
    Case(
        "plugin",
        CATS,
        "two",
        "lucky",
        "Only goats are given.",
        closed_book="three",
        writes={"7": [add("g", "The user has three goats")]},
        gives=("g",),
    ),
    Case(
        "plugin",
        CATS,
        "two",
        "grounded",
        "In a list, among others.",
        writes={"1": [add("c", "The user has 2 cats")]},
        how={"links": "none", "shape": "list"},
    ),
    Case(
        "plugin",
        REPAIRED,
        "no",
        "not_retrieved",
        "It gives the curtains only.",
        writes={"3": [add("b", "Yes, the boat is repaired")], "5": [add("c", "Yes, the user likes the curtains")]},
        gives=("c",),
    ),
    Case(
        "plugin",
        MUSIC,
        "the oboe",
        "misread",
        "One item holds both.",
        writes={
            "1": [add("p", "Pau plays the oboe")],
            "5": [gone("p"), add("m", "Pau plays the oboe and Jordi the viola")],
        },
    ),
    Case(
        "plugin",
        MUSIC,
        "the oboe",
        "misread",
        "Two items hold both together.",
        writes={"1": [add("p", "Pau plays the oboe")], "5": [add("j", "Jordi plays the viola")]},
        gives=("p", "j"),
    ),
    Case(
        "plugin",
        MUSIC,
        "the oboe",
        "not_retrieved",
        "It gives one of two.",
        writes={"1": [add("p", "Pau plays the oboe")], "5": [add("j", "Jordi plays the viola")]},
        gives=("p",),
    ),
    Case(
        "plugin",
        MUSIC,
        "the oboe",
        "not_written",
        "It kept one of two.",
        writes={"1": [add("p", "Pau plays the oboe")]},
        gives=("p",),
        loss="distilled_away",
    ),
    Case(
        "plugin",
        ROOF,
        "£1,960",
        "misread",
        "The amount in another spelling.",
        writes={"3": [add("r", "The roof cost 19600 pounds")]},
    ),
    Case(
        "plugin",
        ROOF,
        "£1,960",
        "not_written",
        "Another currency is another amount.",
        writes={"3": [add("r", "The roof cost $19,600")]},
    ),
    Case(
        "plugin",
        TRAIN,
        "at noon",
        "not_retrieved",
        "It is stored as 5.45 pm.",
        writes={"5": [add("t", "The train leaves at 5:45 pm")]},
        gives=(),
        how={"shape": "log"},
    ),
    Case(
        "plugin",
        ANA,
        "Porto",
        "not_retrieved",
        "It writes in the background.",
        writes={"3": [add("a", "Ana lives in Lisbon")]},
        gives=(),
        how={"late": True, "links": "none"},
    ),
    Case(
        "plugin",
        CATS,
        "three",
        "misread",
        "It writes in the background.",
        writes={"1": [add("c", "The user has 2 cats")]},
        how={"late": True, "links": "none"},
    ),
    Case(
        "plugin",
        ANA,
        "Porto",
        "not_written",
        "Deleted from the front of a list.",
        writes={
            "1": [add("h", "The user lives in Girona")],
            "3": [add("a", "Ana lives in Lisbon")],
            "5": [add("k", "The kiln is hot")],
            "7": [gone("a")],
        },
        how={"shape": "list"},
        loss="expired",
    ),
    Case(
        "plugin",
        CATS,
        "three",
        "not_retrieved",
        "Another item of the list was deleted.",
        writes={"1": [add("x", "The user likes cats"), add("c", "The user has 2 cats")], "7": [gone("x")]},
        gives=(),
        how={"shape": "list"},
    ),
    Case(
        "plugin",
        ANA,
        "Porto",
        "not_retrieved",
        "One of several plain fields.",
        writes={"1": [add("home", "Girona")], "3": [add("ana", "Lisbon")], "7": [add("weather", "rain")]},
        gives=("weather",),
        how={"shape": "fields", "links": "none"},
    ),
    Case(
        "plugin",
        CITY_PLAIN,
        "Madrid",
        "stale",
        "A plain field was overwritten.",
        writes={"1": [add("city", "Madrid")], "5": [add("city", "Bilbao")]},
        gives=("city",),
        how={"shape": "fields"},
    ),
    Case(
        "plugin",
        HUSBAND,
        "Lisbon",
        "false_attribution",
        "Nobody said where the husband lives.",
        writes={"3": [add("a", "Ana lives in Lisbon")]},
    ),
    Case(
        "plugin",
        UNNAMED,
        "Porto",
        "not_retrieved",
        "No evidence is named; the store contains Lisbon.",
        writes={"3": [add("a", "Ana lives in Lisbon")]},
        gives=(),
    ),
    Case("plugin", UNNAMED, "Porto", "no_evidence", "No evidence is named, and no stage contains Lisbon."),
    Case(
        "plugin",
        PLANTED,
        "12",
        "misread",
        "Both figures are given with what they count.",
        writes={
            "1": [add("a", "The user planted 12 leeks on Saturday")],
            "3": [add("b", "The user planted 8 more leeks on Sunday")],
        },
        gives=("a", "b"),
    ),
    Case(
        "plugin",
        PLANTED,
        "12",
        "misread",
        "It had added them up.",
        writes={"1": [add("a", "The user planted 12 leeks")], "3": [add("a", "The user planted 20 leeks in all")]},
        gives=("a",),
    ),
    Case(
        "plugin",
        PLANTED,
        "12",
        "not_retrieved",
        "It had added them up, and did not give it.",
        writes={"1": [add("a", "The user planted 12 leeks")], "3": [add("a", "The user planted 20 leeks in all")]},
        gives=(),
    ),
    Case(
        "plugin",
        DOG,
        "Rayo",
        "misread",
        "Rewritten in English.",
        writes={"1": [add("d", "The user's dog is called Trueno")]},
        gives=("d",),
    ),
    Case(
        "plugin",
        PAINT,
        "varnish",
        "not_retrieved",
        "What the assistant said was stored.",
        writes={"2": [add("p", "The assistant recommended epoxy")]},
        gives=(),
    ),
)

CASES = (*FULL, *RAG, *CONTROLS, *HYBRID, *PLUGIN)
