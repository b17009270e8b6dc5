"""Whether a reply says what it says of the answer about another subject than the question's.

It may speak of somebody else ("Tom said 5, Ana 7"), or answer another question ("he grew up in Madrid, but he was
born in Valencia"; "the table is 85 cm high", asked for its width). Everything works on the form of the reply, in
English and Spanish.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from memory_backends.text import folded as folded_with_apostrophes
from memreplay.grading.equivalence import Match
from memreplay.grading.lexing import Token, folded
from memreplay.grading.tokens import content_of, same_token, tokens_of
from memreplay.grading.vocabulary import DIMENSIONS, IRREGULAR_PASTS, STOP_WORDS

_PAST: Final = rf"(?:{'|'.join(IRREGULAR_PASTS)})"
_CONTRAST: Final = re.compile(r"\b(?:but|however|whereas|while|pero|mientras|aunque)\b|;")
_ANY_JOINT: Final = re.compile(_CONTRAST.pattern + r"|,|\b(?:and|then|y|luego)\b")
_POINTS_BACK: Final = re.compile(r"\W*(?:where|which|who|there|that|donde|que|alli)\b")
_EARLIER: Final = re.compile(r"\b(?:before|earlier|previous\w*|used to|until|once|ago|then|antes|hasta)\b")
_ASIDE: Final = re.compile(r"\b(?:almost|nearly|wanted|considered|thought|casi)\b")
_NOW: Final = re.compile(r"\b(?:now|currently|today|ahora|actualmente)\b")
_ASKED_VERB: Final = (
    re.compile(r"\Awho (\w+)"),
    re.compile(r"\b(?:did|does|do)(?: the| their| his| her| my| your)? \w+ (\w+)"),
    re.compile(
        rf"\b(?:was|were|is|are) .*?(?<!the )(?<!my )(?<!\ba )"
        rf"(\w+(?:ed|en|ing)|born|{'|'.join(IRREGULAR_PASTS)})\W*\Z"
    ),
    re.compile(r"\A\W*(?:en |a |de |desde )?(?:donde|cuando|que|cual|quien)(?: \w+)? (\w+)\W*\Z"),
)


def is_said_of_another(match: Match, given: Sequence[Token], reply: str, question: str) -> bool:
    """Whether the clause of the matched words has another subject than the question asks about."""
    plain = folded(reply)
    return (
        _belongs_to_another(match, given, plain, question)
        or _is_said_of_a_relative(match, given, plain, question)
        or _is_said_of_another_name(match, given, reply, question)
        or _owns_the_answer(match, given, reply, question)
        or _is_another_dimension(match, given, question)
        or _answers_something_else(match, given, plain, question)
        or _is_another_value(match, given, plain, question)
    )


_ABOUT_ME: Final = re.compile(
    r"\b(?:my|mine|i|me|mi|mis|yo|tengo|soy|estoy|vivo|trabajo|estudio|llevo|uso|juego|compre|pague|pedi|elegi|conduzco)\b"
)
_ABOUT_YOU: Final = re.compile(
    r"\W*(?:(?:and|but|whereas|while|however|y|pero|mientras(?: que)?),? )*"
    r"(?:(?P<yours>yours|your own|el tuyo|la tuya)|(?:you|tu) (?P<verb>\w+))\b"
)
_CLAUSE: Final = re.compile(r"[.!?](?=\s|\Z)|[;\n]|,? \b(?=(?:but|however|whereas|while|pero|mientras|aunque)\b)")
_SAME_VERB: Final = {"have": "has", "are": "is", "were": "was", "do": "does", "tienes": "tiene"}


def _belongs_to_another(match: Match, given: Sequence[Token], plain: str, question: str) -> bool:
    """The user asks about themselves; the reply says this of someone else, and says of the user something else."""
    if not _ABOUT_ME.search(folded(question)):
        return False
    start, end = given[match.first].start, given[match.last].end
    bounds = [0, *(found.end() for found in _CLAUSE.finditer(plain)), len(plain)]
    clauses = list(pairwise(bounds))
    begin = max((first for first, _ in clauses if first <= start), default=0)
    if _ABOUT_YOU.match(plain, begin):
        return False
    asked = tokens_of(question)
    before = [token for token in given if begin <= token.start < start]
    if not any(not any(same_token(token, one) for one in asked) for token in _words(before)):
        return False
    verbs = {token.text for token in before}
    for first, last in clauses:
        if first < end and last > start:
            continue
        about_you = _ABOUT_YOU.match(plain[:last], first)
        if about_you and (about_you["yours"] or _SAME_VERB.get(about_you["verb"], about_you["verb"]) in verbs):
            return True
    return False


_RELATIVE: Final = (
    r"(?:wife|husband|partner|mother|mum|mom|father|dad|parents|son|daughter|brother|sister|aunt|uncle|cousin|niece|nephew|grandmother|grandma"
    r"|grandfather|grandpa|friend|boyfriend|girlfriend|boss|manager|colleague|coworker|neighbou?r|roommate|flatmate|landlord|doctor|teacher|coach|kids?"
    r"|children|twin|mujer|marido|madre|padre|hijo|hija|hermano|hermana|tia|tio|prima|primo|abuela|abuelo|amiga|amigo|jefe|jefa|vecina|vecino|suegra|suegro)"
)
_OF_A_RELATIVE: Final = re.compile(
    r"(?:\A|(?<=[.!?;\n:] )|(?<=, )|(?<=but )|(?<=pero ))\W*(?:it was |it is |its |era |es )?"
    rf"(?P<whose>your|tus?|his|her|their|su|[^\W\d_]+) (?:\w+ )?(?P<who>{_RELATIVE})\b"
)
_OF_YOU: Final = re.compile(r"\b(?:you|yours|your own|tu|tuyo|tuya|te)\b")


def _is_said_of_a_relative(match: Match, given: Sequence[Token], plain: str, question: str) -> bool:
    """The reply speaks of a relative or friend of whom is asked about, and the question names no such person."""
    asked = folded(question)
    start, end = given[match.first].start, given[match.last].end
    begin = max((found.end() for found in _CLAUSE.finditer(plain, 0, start)), default=0)
    close = _CLAUSE.search(plain, end) or re.compile(r",|\Z").search(plain, end)
    subject = next(iter([*_OF_A_RELATIVE.finditer(plain, begin, start)][::-1]), None)
    if subject is None or close is None or re.search(rf"\b{subject['who']}", asked):
        return False
    whose = subject["whose"]
    if whose in ("your", "tu", "tus"):
        is_near = bool(_ABOUT_ME.search(asked))
    else:
        is_near = whose in ("his", "her", "their", "su") or re.search(rf"\b{whose}\b", asked) is not None
        is_near = is_near and not _ABOUT_ME.search(asked)
    beside = (
        plain[subject.end("who") : start]
        + plain[end : min(close.start(), (plain.find(",", end) + 1 or len(plain)))]
    )
    return is_near and not _OF_YOU.search(beside) and not _ASKS_WHO.search(asked)


_ASKS_WHO: Final = re.compile(r"\b(?:who|whom|whose|quien|quienes)\b")


def _answers_something_else(match: Match, given: Sequence[Token], plain: str, question: str) -> bool:
    """Another clause has the verb of the question and an answer of its own; the clause of the match has neither."""
    verb = _verb_of(question)
    if verb is None:
        return False
    is_word = given[match.first].kind == "word"
    mine: list[Token] = []
    others: list[list[Token]] = []
    start, end = given[match.first].start, given[match.last].end
    begin = 0
    joints = [(found.start(), found.end()) for found in (_CONTRAST if is_word else _ANY_JOINT).finditer(plain)]
    for first, after in [*joints, (len(plain), len(plain))]:
        if first <= start or begin >= end:
            points_back = begin > 0 and _POINTS_BACK.match(plain, begin)
            is_aside = _EARLIER.search(plain, begin, first) or _ASIDE.search(plain, begin, first)
            if not points_back and not is_aside:
                others.append([token for token in given if begin <= token.start < first])
        else:
            mine += [token for token in given if begin <= token.start < first]
        begin = after
    asked = tokens_of(question)
    beside = [token for token in mine if not start <= token.start < end]
    own = [token for token in _words(beside) if not any(same_token(token, one) for one in asked)]
    if (
        not own
        or _NOW.search(" ".join(token.text for token in mine))
        or any(_is_form_of(verb, token) for token in mine)
    ):
        return False
    return any(_answers_itself(verb, other, given[match.first], asked) for other in others)


def _answers_itself(verb: Token, clause: Sequence[Token], matched: Token, asked: Sequence[Token]) -> bool:
    if not any(_is_form_of(verb, token) for token in clause):
        return False
    if matched.kind != "word":
        return any(token.kind == matched.kind and token.value != matched.value for token in clause)
    return any(not any(same_token(token, one) for one in asked) for token in _words(clause))


def _is_form_of(verb: Token, token: Token) -> bool:
    return same_token(verb, token) or IRREGULAR_PASTS.get(token.text) == verb.text


def _words(found: Sequence[Token]) -> list[Token]:
    return [token for token in found if token.kind == "word" and token.text not in STOP_WORDS]


def _verb_of(question: str) -> Token | None:
    """The verb that the question asks with: "born" of "Where was he born?"; None if its form does not show it."""
    plain = folded(question)
    for form in _ASKED_VERB:
        if found := form.search(plain):
            tokens = [token for _, token in content_of(tokens_of(found[1]))]
            return tokens[0] if tokens and tokens[0].kind == "word" and tokens[0].text not in STOP_WORDS else None
    return None


_NAME: Final = re.compile(r"(?<![\w'’])[^\W\d_a-zà-ÿ][^\W\d_]+")
_SENTENCE_START: Final = re.compile(r"(?:\A|[.!?:\n]\s*)[\W_]*\Z")
_PIECE: Final = re.compile(r"[.!?](?=\s|\Z)|[;\n,]|\b(?:and|but|while|whereas|y|pero|mientras)\b")
_LEADS_IN: Final = (
    r"(?:\A|\b(?:what|whom|which|that|where|lo que|que|donde)\b)\W*"
    r"(?:(?:and|but|while|whereas|then|so|y|pero|mientras(?: que)?) )*"
    r"(?:(?:his|her|their|my|your|the|su|el|la) (?:\w+ ){1,2})?"
)


@lru_cache(maxsize=256)
def _names_in(text: str) -> frozenset[str]:
    """The folded words of a text that are written as names, the first of a sentence included."""
    return frozenset(name for name in map(folded, _NAME.findall(text)) if name not in STOP_WORDS)


@lru_cache(maxsize=256)
def _names_asked_about(question: str) -> frozenset[str]:
    """The names in a question. What begins a sentence is none."""
    inside = (name for name in _NAME.finditer(question) if not _SENTENCE_START.search(question[: name.start()]))
    return frozenset(folded(name.group()) for name in inside)


def _is_said_of_another_name(match: Match, given: Sequence[Token], reply: str, question: str) -> bool:
    """Another name is the subject of the clause, and another clause answers for the name that the question has."""
    asked_names, names = _names_asked_about(question), _names_in(reply)
    plain = folded(reply)
    start, end = given[match.first].start, given[match.last].end
    if not asked_names or not names & asked_names:
        return False
    bounds = [0, *(found.end() for found in _PIECE.finditer(plain)), len(plain)]
    mine = [(first, last) for first, last in pairwise(bounds) if first < end and last > start]
    if not mine:
        return False
    clause = plain[mine[0][0] : mine[-1][1]]
    own = set(re.findall(r"\w+", plain[start:end]))
    if any(re.search(rf"\b{re.escape(name)}\b", clause) for name in asked_names - own):
        return False
    others = "|".join(map(re.escape, names - asked_names - own))
    if not others or not re.search(rf"{_LEADS_IN}(?:{others})\b", clause):
        return False
    asked = tokens_of(question)
    return any(
        _says_of(asked_names, [token for token in given if first <= token.start < last], given[match.first], asked)
        for first, last in pairwise(bounds)
        if (first, last) not in mine
    )


def _says_of(names: frozenset[str], clause: Sequence[Token], matched: Token, asked: Sequence[Token]) -> bool:
    """Whether a clause names one of these and says something of the kind that the question asks for."""
    if not any(token.text in names for token in clause):
        return False
    if matched.kind != "word":
        return any(token.kind == matched.kind for token in clause)
    return any(not any(same_token(token, one) for one in asked) for token in _words(clause))


_OWNER: Final = re.compile(r"\b([^\W\d_]+)['’]s (?:\w+ )??([^\W\d_]{3,})")


def _owns_the_answer(match: Match, given: Sequence[Token], reply: str, question: str) -> bool:
    """ "Ana's sister did it" does not say that Ana did; "Ana's dog is Rex" says nothing of Tom's dog."""
    plain, start, end = folded(reply), given[match.first].start, given[match.last].end
    with_owners, asked = folded_with_apostrophes(reply), folded_with_apostrophes(question)
    matched = re.escape(plain[start:end])
    of_relatives = len(re.findall(rf"\b{matched}['’]s (?:\w+ )?{_RELATIVE}\b", with_owners))
    if of_relatives and of_relatives == len(re.findall(rf"\b{matched}\b", with_owners)):
        return True
    owners = {noun: owner for owner, noun in _OWNER.findall(asked)}
    said = [(owner, noun) for owner, noun in _OWNER.findall(with_owners) if noun in owners]
    if not said or any(re.search(rf"\b{re.escape(owner)}\b", plain) for owner in owners.values()):
        return False
    names = _names_in(reply)
    return all(owner != owners[noun] and owner in names for owner, noun in said)


def _is_another_dimension(match: Match, given: Sequence[Token], question: str) -> bool:
    """The question asks for the width, and the reply gives the height."""
    if given[match.first].kind != "number":
        return False
    asked = {DIMENSIONS[token.text] for token in tokens_of(question) if token.text in DIMENSIONS}
    near = [token for token in given[max(0, match.first - 4) : match.last + 3] if token.kind == "word"]
    said = {DIMENSIONS[token.text] for token in near if token.text in DIMENSIONS}
    return bool(asked and said) and not asked & said


_ASKED_NOUN: Final = re.compile(
    r"\b(?:what|how much|how many|cual|cuanto|who|quien) (?:is|was|are|were|es|era|fue|son) (?:the |el |la )?"
    r"(?P<phrase>(?:\w+ ){0,4}?\w+)(?= (?:of|for|in|on|at|to|from|with|that|de|del|para|en)\b|\W*\Z)"
)


def _is_another_value(match: Match, given: Sequence[Token], plain: str, question: str) -> bool:
    """The clause of the match names another thing than is asked for, and another clause gives the value of that."""
    found = _ASKED_NOUN.search(folded(question))
    matched = given[match.first]
    if found is None or matched.kind == "word":
        return False
    noun = tokens_of(found["phrase"].split()[-1])[0]
    clauses: list[list[Token]] = [[]]
    for token in given:
        if (token.kind == "mark" and token.text in ".,;\n!?") or token.text in ("and", "but", "y", "pero"):
            clauses.append([])
        else:
            clauses[-1].append(token)
    mine = [clause for clause in clauses if matched in clause]
    others = [clause for clause in clauses if matched not in clause and _has(clause, noun)]
    names_a_thing = any(_words([token for token in clause if token != matched]) for clause in mine)
    if not mine or any(_has(clause, noun) for clause in mine) or not names_a_thing:
        return False
    return any(token.kind == matched.kind and token.value != matched.value for clause in others for token in clause)


def _has(clause: Sequence[Token], noun: Token) -> bool:
    return noun.kind == "word" and any(token.kind == "word" and same_token(noun, token) for token in clause)
