"""How people say in English who is theirs, and what must be known of them: health, diet, standing, home, aims."""

from __future__ import annotations

from memory_backends.hybrid.rules.pattern import CAP, PERSON, Rule, pattern

_ONE_RELATIVE = (
    r"wife|husband|partner|boyfriend|girlfriend|fianc[ée]e?|mother|mom|mum|father|dad|boss|manager"
    r"|supervisor|advisor"
    r"|adviser|mentor|landlord|landlady|co-?founder|therapist|CEO|CTO|tutor|contractor"
)
_SOME_RELATIVE = (
    r"son|daughter|brother|sister|grand(?:mother|father|ma|pa|son|daughter)|gran|nan|aunt|uncle"
    r"|cousin|niece|nephew|friend"
    r"|colleague|co-?worker|flatmate|roommate|neighbou?r|kid|child|baby|twin|dog|cat|puppy|kitten"
    r"|horse|parrot|rabbit"
    r"|hamster|tortoise|bandmate|teammate|student|client|kids|children|sons|daughters|brothers"
    r"|sisters|dogs|cats|twins"
)
_WHICH = (
    r"(?:late\s|older\s|younger\s|elder\s|eldest\s|youngest\s|little\s|big\s|baby\s|best\s|new\s|old"
    r"\s|own\s|ex-?\s?"
    r"|good\s|dear\s)*"
)
_NOT_A_LIST = rf"(?!,\s{PERSON}\s(?:and|&)\s(?:I|me|my)\b)"
"""What follows is not the next of several people: ``my partner, Ana and I`` names three of them."""

_NAMED = r"(?:,?\s(?:who\sis\s|who['’]s\s|is\s)?(?:called|named)|['’]s\sname\sis|\(|,)?"
_NAMES = rf"{PERSON}(?:\s\(\d+\))?(?:(?:,\s|,?\sand\s){CAP}(?:\s\(\d+\))?){{0,5}}"

RULES: tuple[Rule, ...] = (
    Rule(
        "relation",
        pattern(
            rf"\b(?:[Mm]y|[Oo]ur)\s{_WHICH}(?P<relation>{_ONE_RELATIVE}){_NOT_A_LIST}{_NAMED}\s?(?P<value>{PERSON})"
        ),
        "<who>.<relation>",
        0.9,
        0.9,
        in_questions=True,
    ),
    Rule(
        "relation",
        pattern(
            rf"\b(?:[Mm]y|[Oo]ur)\s{_WHICH}(?P<relation>{_SOME_RELATIVE}){_NOT_A_LIST}{_NAMED}"
            rf"(?::|\sare)?\s?(?P<value>{_NAMES})"
        ),
        "<who>.<relation>",
        0.9,
        0.9,
        several=True,
        in_questions=True,
    ),
    Rule(
        "relation",
        pattern(
            rf"\b(?P<value>{PERSON}),\s(?:who\sis\s)?my\s{_WHICH}(?P<relation>{_ONE_RELATIVE}|{_SOME_RELATIVE})\b"
        ),
        "<who>.<relation>",
        0.85,
        0.9,
        several=True,
        in_questions=True,
    ),
    Rule(
        "relation",
        pattern(
            rf"\b(?:I\shave|I['’]ve\sgot|we\shave|we['’]ve\sgot|we\sadopted|I\sadopted)\s(?:an?|one|two|three)"
            rf"\s(?:\w+\s){{0,2}}?"
            rf"(?P<relation>{_SOME_RELATIVE})s?(?:,|\s(?:called|named)|:)\s(?P<value>{_NAMES})"
        ),
        "<who>.<relation>",
        0.9,
        0.9,
        several=True,
        in_questions=True,
    ),
    Rule(
        "relation",
        pattern(
            rf"(?:^|\b(?:my|the|our)\s)(?P<relation>[Kk]ids|[Cc]hildren|[Tt]wins|[Dd]ogs|[Cc]ats)\sare\s"
            rf"(?:called\s|named\s)?(?P<value>{_NAMES})"
        ),
        "<who>.<relation>",
        0.9,
        0.9,
        several=True,
    ),
    Rule(
        "relation",
        pattern(rf"\bI(?:['’]m|\sam)\s(?P<relation>marrying|dating)\s(?P<value>{PERSON})"),
        "<who>.<relation>",
        0.9,
        0.9,
    ),
    Rule(
        "goal",
        pattern(r"\b(?:want|hope|dream|goal|plan)\s(?:is\s)?to\s(?:become|be)\s(?P<value>an?\s[a-z][\w\s-]{3,50})"),
        "<who>.goal",
        0.85,
        0.9,
    ),
    Rule(
        "home",
        pattern(
            r"\b(?P<value>\d{1,4}[a-z]?\s(?:[A-Z][\w'’]+\s){1,3}(?:Street|St|Lane|Road|Rd|Avenue|Ave|Drive"
            r"|Close|Way|Court|Place|Terrace|Square|Row))\b"
        ),
        "<who>.address",
        0.85,
        0.9,
    ),
    Rule(
        "allergy",
        pattern(r"\b(?i:allergic\sto)\s(?P<value>(?:[a-z]+ing\s)?[\w-]+(?:\s(?:and|or)\s[\w-]+)?)"),
        "allergy",
        0.95,
        1.0,
        several=True,
        in_questions=True,
    ),
    Rule(
        "allergy",
        pattern(
            r"\b(?P<value>(?!an?\b|the\b|any\b|severe\b|food\b|my\b|this\b|her\b|his\b)[a-z][\w-]+)\sallerg"
            r"(?:y|ies)\b"
        ),
        "allergy",
        0.9,
        1.0,
        several=True,
        in_questions=True,
    ),
    Rule(
        "diet",
        pattern(
            r"\b(?i:I['’]m|I\sam|we['’]re|we\sare)\s(?:an?\s|mostly\s|strictly\s)?"
            r"(?P<value>vegetarian|vegan|pescatarian|gluten[-\s]free|lactose[-\s]intolerant|coeliac|celiac"
            r"|diabetic|halal|kosher)\b"
        ),
        "<who>.diet",
        0.95,
        0.95,
        in_questions=True,
    ),
    Rule(
        "standing",
        pattern(
            r"\b(?i:I['’]m|I\sam|I['’]ve\sbeen)\s(?:now\s|recently\s|happily\s|still\s|newly\s)?"
            r"(?P<value>married|single|divorced|engaged|widowed|retired|pregnant|unemployed|self-employed"
            r"|freelance)\b"
        ),
        "<who>.standing",
        0.9,
        0.8,
    ),
    Rule(
        "plays",
        pattern(
            r"\bI\s(?:also\s|still\s)?play\s(?:the\s)?"
            r"(?P<value>(?!it\b|with\b|a\b|that\b|this\b)[a-z][\w-]+(?:\s[a-z]+)?)"
        ),
        "<who>.plays",
        0.85,
        0.8,
        several=True,
    ),
)
