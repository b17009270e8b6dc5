"""More labelled answers, written before attribution was run on any of :data:`FRESH`; then :data:`MORE`."""

from __future__ import annotations

from tests.unit.scoring.labelled_cases import NO, Ask, Case, add, gone

CASA = (
    "Vivo en Zaragoza desde marzo, en la calle Mayor 14.",
    "Entendido.",
    "Mi hermana Lucía trabaja en el puerto de Gijón.",
    "Qué bien.",
    "El alquiler es de 750 euros al mes.",
    "No está mal.",
    "Ayer llovió sobre las cabras.",
    "Pobres cabras.",
)
SHED = (
    "The shed was finished on 14 June 2019.",
    "Well done.",
    "We paid 2,400 euros for the timber.",
    "A fair price.",
    "The roof took three weekends.",
    "Slow work.",
    "My neighbour Olaf lent me his drill.",
    "Kind of him.",
    "It rained on the goats.",
    "Poor goats.",
)
JOBS = (
    "I work as a baker.",
    "Early mornings then.",
    "The goats escaped.",
    "Oh no.",
    "I quit the bakery; I am a postman now.",
    "Good luck.",
    "The river is high.",
    "Careful.",
)
FRUIT = (
    "In the garden we grow apples and quinces.",
    "Lovely.",
    "My aunt Berta gave us a plum tree as well.",
    "How generous.",
    "The kettle is broken.",
    "A pity.",
    "My bus leaves at 6:40 in the morning.",
    "Early.",
)
RECIPE = (
    "How long should I boil the lentils?",
    "Twenty-five minutes, without salt.",
    "Thanks, I will try it.",
    "Enjoy.",
    "The cat sleeps on the stove.",
    "Warm.",
)
CITY = Ask(CASA, "¿En qué ciudad vivo?", "Zaragoza", ("1",))
LUCIA = Ask(CASA, "¿Dónde trabaja Lucía?", "en el puerto de Gijón", ("3",))
RENT = Ask(CASA, "¿Cuánto pago de alquiler?", "750 euros", ("5",))
LUCIA_HUSBAND = Ask(
    CASA,
    "¿Dónde trabaja el marido de Lucía?",
    "Not answerable",
    ("3",),
    {"abstain": True, "evidence_role": "tempting"},
)
DONE = Ask(SHED, "When was the shed finished?", "14 June 2019", ("1",))
TIMBER = Ask(SHED, "What did the timber cost?", "€2,400", ("3",))
ROOF = Ask(SHED, "How many weekends did the roof take?", "3", ("5",))
DRILL = Ask(SHED, "Who lent me a drill?", "Olaf", ("7",))
DRILL_CHOICE = Ask(
    SHED,
    "Who lent me a drill?",
    "Olaf",
    ("7",),
    {"kind": "choice", "choices": ("Nils", "Olaf", "Sven"), "correct_index": 1},
)
WIFE = Ask(SHED, "What is the name of Olaf's wife?", "Not answerable", (), {"abstain": True, "evidence_role": None})
WORK = Ask(JOBS, "What is my job?", "postman", ("5",), {"supersedes": ("baker",)})
WORK_PLAIN = Ask(JOBS, "What is my job?", "postman", ("5",))
TREES = Ask(
    FRUIT,
    "Which fruit do we grow?",
    "apples, quinces and plums",
    ("1", "3"),
    {"expected_entities": ("apples", "quinces", "plum")},
)
BUS = Ask(FRUIT, "When does my bus leave?", "6:40 am", ("7",))
LENTILS = Ask(RECIPE, "How long did you say to boil lentils?", "25 minutes", ("2",))

FRESH = (
    # full_context
    Case("full_context", CITY, "Barcelona", "misread", ""),
    Case("full_context", CITY, "En Zaragoza.", "grounded", ""),
    Case("full_context", CITY, "No se menciona en la conversación.", "abstained", ""),
    Case("full_context", CITY, "Huesca", "cut", "turn 1 cut", (10, 25)),
    Case("full_context", CITY, "Zaragoza", "lucky", "turn 1 cut", (10, 25), "Madrid"),
    Case("full_context", CITY, "Zaragoza", "guessed", "turn 1 cut", (10, 25), "Zaragoza"),
    Case("full_context", LUCIA, "en Oviedo", "misread", ""),
    Case("full_context", RENT, "800 €", "misread", ""),
    Case("full_context", RENT, "750 €", "grounded", ""),
    Case("full_context", LUCIA_HUSBAND, "en el puerto de Gijón", "false_attribution", ""),
    Case("full_context", LUCIA_HUSBAND, "No lo ha dicho.", "correct_abstention", ""),
    Case("full_context", DONE, "June 2018", "misread", ""),
    Case("full_context", DONE, "2019-06-14", "grounded", ""),
    Case("full_context", TIMBER, "2,400 dollars", "misread", ""),
    Case("full_context", ROOF, "two", "misread", ""),
    Case("full_context", ROOF, "two", "cut", "only the last exchange fits", (10, 15)),
    Case("full_context", DRILL_CHOICE, "2", "misread", ""),
    Case("full_context", DRILL_CHOICE, "C or A, hard to say", "unparsed", ""),
    Case("full_context", WIFE, "Ingrid", "false_attribution", "names no turn"),
    Case("full_context", WIFE, NO, "correct_abstention", ""),
    Case("full_context", WORK, "You are a baker.", "stale", ""),
    Case(
        "full_context",
        WORK,
        "You were a baker and are a postman now.",
        "grounded",
        "both, the current one asserted",
    ),
    Case("full_context", WORK, "a teacher", "misread", ""),
    Case("full_context", WORK_PLAIN, "a baker", "misread", "nobody says that baker is outdated"),
    Case("full_context", TREES, "apples and quinces", "misread", ""),
    Case("full_context", TREES, "plums", "cut", "turn 1 cut", (10, 34)),
    Case("full_context", BUS, "at 18:40", "misread", ""),
    Case("full_context", LENTILS, "ten minutes", "misread", ""),
    Case("full_context", LENTILS, "ten minutes", "cut", "", (10, 14)),
    # rag
    Case("rag", DONE, "June 2018", "misread", ""),
    Case("rag", DRILL, "Nils", "misread", ""),
    Case("rag", DRILL, NO, "abstained", ""),
    Case("rag", TIMBER, "3,000 euros", "cut", "nothing fits", (10, 2)),
    Case("rag:keyword", DRILL, "Nils", "misread", "", (1, 1000)),
    Case("rag:keyword", WORK, "a baker", "not_retrieved", "no word of the question stands in turn 5", (1, 1000)),
    # controls
    Case("closed_book", DRILL, "Nils", None, ""),
    Case("closed_book", DRILL, "Olaf", None, ""),
    Case("closed_book", WIFE, "Ingrid", None, "no memory, no stage"),
    Case("oracle", DRILL, "Nils", "misread", ""),
    Case("oracle", DRILL, NO, "abstained", ""),
    Case("oracle", WORK, "a baker", "stale", "the quit turn says bakery"),
    # plug-ins that rewrite
    Case("plugin", DRILL, "Nils", "misread", "", writes={"7": (add("a", "Olaf is a neighbour who lends tools"),)}),
    Case(
        "plugin",
        DRILL,
        "Nils",
        "not_written",
        "the name was left out",
        writes={"7": (add("a", "a neighbour lent a drill"),)},
        loss="distilled_away",
    ),
    Case(
        "plugin",
        DRILL,
        "Olaf",
        "lucky",
        "",
        closed_book="Nils",
        writes={"7": (add("a", "a neighbour lent a drill"),)},
    ),
    Case(
        "plugin",
        DRILL,
        "Nils",
        "not_retrieved",
        "stored, other item returned",
        writes={"7": (add("a", "Olaf lent a drill"),), "1": (add("b", "shed finished"),)},
        gives=("b",),
    ),
    Case("plugin", DRILL, NO, "not_written", "stored nothing at all", writes={}, loss="distilled_away"),
    Case(
        "plugin",
        DRILL,
        "Nils",
        "not_written",
        "stored and deleted again",
        writes={"7": (add("a", "Olaf lent a drill"),), "9": (gone("a"),)},
        loss="expired",
    ),
    Case(
        "plugin",
        TIMBER,
        "2,000 euros",
        "misread",
        "the amount in other spelling",
        writes={"3": (add("a", "timber: EUR 2400"),)},
    ),
    Case(
        "plugin",
        TIMBER,
        "2,000 euros",
        "not_written",
        "rounded away",
        writes={"3": (add("a", "timber cost over two thousand euros"),)},
        loss="distilled_away",
    ),
    Case("plugin", DONE, "2018", "misread", "", writes={"1": (add("a", "shed done 2019-06-14"),)}),
    Case(
        "plugin",
        DONE,
        "2018",
        "not_written",
        "only the year was kept",
        writes={"1": (add("a", "shed done in 2019"),)},
        loss="distilled_away",
    ),
    Case("plugin", ROOF, "two", "misread", "", writes={"5": (add("a", "the roof took 3 weekends"),)}),
    Case(
        "plugin",
        ROOF,
        "two",
        "not_written",
        "an unrelated 3",
        writes={"3": (add("a", "3 timber merchants nearby"),)},
        loss="distilled_away",
    ),
    Case(
        "plugin",
        TREES,
        "apples",
        "misread",
        "merged into one item",
        writes={"1": (add("a", "grows apples and quinces"),), "3": (add("a", "grows apples, quinces and plums"),)},
    ),
    Case(
        "plugin",
        TREES,
        "apples",
        "not_retrieved",
        "one of two parts returned",
        writes={"1": (add("a", "grows apples and quinces"),), "3": (add("b", "plum tree from Berta"),)},
        gives=("a",),
    ),
    Case(
        "plugin",
        TREES,
        "apples, quinces and plums",
        "grounded",
        "",
        writes={"1": (add("a", "grows apples and quinces"),), "3": (add("b", "plum tree from Berta"),)},
    ),
    Case(
        "plugin",
        TREES,
        "apples",
        "not_written",
        "plums never stored",
        writes={"1": (add("a", "grows apples and quinces"),)},
        loss="distilled_away",
    ),
    Case(
        "plugin",
        WORK,
        "a baker",
        "stale",
        "the memory replaced it, and gave the new value",
        writes={"1": (add("a", "works as a baker"),), "5": (add("a", "works as a postman"),)},
    ),
    Case(
        "plugin",
        WORK,
        "a baker",
        "not_written",
        "only the old job is stored",
        writes={"1": (add("a", "works as a baker"),)},
        loss="distilled_away",
    ),
    Case("plugin", CITY, "Huesca", "misread", "", writes={"1": (add("a", "El usuario reside en Zaragoza"),)}),
    Case(
        "plugin",
        CITY,
        "Huesca",
        "not_written",
        "",
        writes={"1": (add("a", "El usuario reside en la calle Mayor 14"),)},
        loss="distilled_away",
    ),
    Case(
        "plugin",
        LUCIA,
        "en Oviedo",
        "misread",
        "",
        writes={"3": (add("a", "Lucía: empleo en el puerto de Gijón"),)},
    ),
    Case(
        "plugin",
        LUCIA,
        "en Oviedo",
        "not_written",
        "",
        writes={"3": (add("a", "Lucía trabaja en Gijón"),)},
        loss="distilled_away",
    ),
    Case(
        "plugin",
        LUCIA_HUSBAND,
        "en Gijón",
        "false_attribution",
        "",
        writes={"3": (add("a", "Lucía trabaja en Gijón"),)},
    ),
    Case("plugin", BUS, "seven", "misread", "", writes={"7": (add("a", "bus at 06:40"),)}),
    Case(
        "plugin", LENTILS, "ten minutes", "misread", "", writes={"2": (add("a", "advised to boil lentils 25 min"),)}
    ),
    Case(
        "plugin", LENTILS, "25 minutes", "grounded", "", writes={"2": (add("a", "advised to boil lentils 25 min"),)}
    ),
    # hybrid
    Case("hybrid", DRILL, "Nils", "misread", ""),
    Case("hybrid", WORK, "a baker", "stale", ""),
    Case("hybrid", DRILL, "Olaf", "grounded", ""),
    Case("hybrid -verbatim", ROOF, "two", "misread", "Only a distilled fact, but it has the figure."),
)

UNRELATED = (
    "My bike is green.",
    "A fine colour.",
    "The green goats of the neighbour escaped.",
    "Oh no.",
    "We had a long chess evening.",
    "Nice.",
)
MEETING = Ask(
    ("We meet at six, no wait, at half past six.", "All right."), "At what time do we meet?", "6:30", ("1",)
)
DUCKS = Ask(("We have 14 hens and 3 ducks.", "A full pond."), "How many ducks do we have?", "3", ("1",))
SWAPPED = "The user keeps 3 hens and 14 ducks"
STAMPS = Ask(("I collect stamps, coins and maps.", "Nice."), "What do I collect?", "stamps, coins and maps", ("1",))
IN_TWO = {"1": (add("a", "The user collects stamps"), add("b", "The user collects coins and maps"))}
BIKE = Ask(UNRELATED, "What colour is my bike?", "green", ("1",))
MORE = (
    Case("full_context", BIKE, "red", "cut", "What is left speaks of green goats, not of the bike.", (10, 24)),
    Case("full_context", BIKE, "red", "misread", "The whole log is in the prompt."),
    Case(
        "plugin",
        BIKE,
        "red",
        "not_written",
        "Green goats are no bike.",
        writes={"3": (add("a", "green goats escaped"),)},
        loss="distilled_away",
    ),
    Case(
        "plugin",
        BIKE,
        "red",
        "misread",
        "Another turn says it of the bike too.",
        writes={"3": (add("a", "the bike is green"),)},
    ),
    Case("full_context", WORK, "a baker or a postman", "misread", "It gives both, and prefers none."),
    Case("full_context", WORK, "Once a postman, now a baker.", "stale", "It gives the old job as the current one."),
    Case("full_context", WORK, "Both a baker and a postman.", "misread", "It gives both."),
    Case("full_context", MEETING, "At six.", "stale", "Its speaker takes six back."),
    Case("plugin", DUCKS, "14", "not_written", "The figures were swapped.", writes={"1": (add("a", SWAPPED),)}),
    Case("plugin", STAMPS, "stamps", "not_retrieved", "A part was not returned.", writes=IN_TWO, gives=("a",)),
    Case("plugin", STAMPS, "stamps", "misread", "Two items have it together.", writes=IN_TWO),
)
