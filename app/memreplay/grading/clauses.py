"""The clauses of a reply: what each takes up of the question, and which of them answers it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from memreplay.grading.equivalence import Match
from memreplay.grading.lexing import Token, folded, stems_of
from memreplay.grading.superseding import CORRECTS_ITSELF
from memreplay.grading.tokens import AT, content_of, same_token, tokens_of
from memreplay.grading.vocabulary import IRREGULAR_PASTS, STOP_WORDS, SUBUNITS

NAME: Final = re.compile(r"(?<![\w'’])[^\W\d_a-zà-ÿ][^\W\d_]+")
_SENTENCE_START: Final = re.compile(r"(?:\A|[.!?:\n]\s*)[\W_]*\Z")


@dataclass(frozen=True)
class Asked:
    """A question: its tokens that a reply can take up, the names in it, and what it asks to whom something"
    " applies."""

    words: tuple[Token, ...]
    names: frozenset[str]
    verb: Token | None
    about_me: bool
    asks_who: bool
    known: frozenset[str]
    known_acts: bool


RELATIVE: Final = (
    r"(?:wife|mother|mum|mom|daughter|sister|aunt|niece|grandmother|grandma|girlfriend|mujer|madre|hija|hermana|tia|prima"
    r"|abuela|amiga|jefa|vecina|suegra"
    r"|husband|father|dad|son|brother|uncle|nephew|grandfather|grandpa|boyfriend|marido|padre|hijo|hermano|tio|primo"
    r"|abuelo|amigo|jefe|vecino|suegro"
    r"|partner|parents|cousin|friend|boss|manager|colleague|coworker|neighbou?r|roommate|flatmate"
    r"|landlord|doctor|teacher|coach|kids?|children|twin)"
)
OF_YOU: Final = re.compile(r"\b(?:you|yours|your own|tu|tuyo|tuya|te)\b")
_FORMS_A_QUESTION: Final = frozenset(
    "what which who whom whose when where why how many much often long do does did have has had am can could will"
    " would should me my mine us que cual cuales quien quienes cuando donde como cuanto cuanta cuantos cuantas ha"
    " han he hay now ahora currently there per".split()
)
ABOUT_ME: Final = re.compile(
    r"\b(?:my|mine|i|me|we|us|our|mi|mis|yo|tengo|soy|estoy|vivo|trabajo|estudio|llevo|uso|juego|compre|pague|pedi"
    r"|elegi|conduzco)\b"
)
ASKS_WHO: Final = re.compile(r"\b(?:who|whom|whose|quien|quienes)\b")
AUXILIARY: Final = frozenset(
    "do does did is are was were has have had will would can could should shall may might am be been being got also"
    " then still once first just already recently usually always never ever later".split()
)
_ASKED_VERB: Final = (
    re.compile(r"\bwho (?:is|was|are|were) (?P<verb>\w+) than (?P<object>.+)"),
    re.compile(r"\bwho (?:is|was) (?P<object>my|our|\w+) (?P<verb>\w+[eo]r)\W*\Z"),
    re.compile(
        r"\bwho(?:m|se)? (?:\w+ )??(?:did|do|does|has|have|had) (?P<subject>(?!the |an? )\w+) (?P<verb>\w+)"
    ),
    re.compile(r"(?<!who )\b(?:did|does|do)(?: the| their| his| her| my| your)? (?P<subject>\w+) (?P<verb>\w+)"),
    re.compile(r"\bwho (?:will |would |can |has |have |had )?(?P<verb>\w+)(?P<object>.*)"),
    re.compile(r"\bquien (?P<object>me|nos|le|te) (?P<verb>\w+)"),
    re.compile(r"\A\W*(?:de |desde )?(?:donde|cuando|quien) (?P<verb>\w+)"),
    re.compile(
        rf"\b(?:was|were|is|are) .*?(?<!the )(?<!my )(?<!\ba )"
        rf"(?P<verb>\w+(?:ed|en|ing)|born|{'|'.join(IRREGULAR_PASTS)})\W*\Z"
    ),
    re.compile(r"\A\W*(?:en |a |de |desde )?(?:donde|cuando|que|cual|quien)(?: \w+)? (?P<verb>\w+)\W*\Z"),
)


@lru_cache(maxsize=256)
def asked_by(question: str) -> Asked:
    plain = folded(question)
    inside = (name for name in NAME.finditer(question) if not _SENTENCE_START.search(question[: name.start()]))
    names = frozenset([*(folded(name.group()) for name in inside), *re.findall(rf"\bmy ({RELATIVE})\b", plain)])
    words = tuple(
        token
        for _, token in content_of(tokens_of(question))
        if token.kind != "word" or token.text not in _FORMS_A_QUESTION or token.text in names
    )
    verb, known, acts = None, "", False
    for form in _ASKED_VERB:
        if found := form.search(plain):
            tokens = [token for token in tokens_of(found["verb"]) if token.kind == "word"]
            if tokens and tokens[0].text not in STOP_WORDS | AUXILIARY:
                verb = tokens[0]
                groups = found.groupdict()
                acts = bool(groups.get("subject"))
                known = groups.get("subject") or groups.get("object") or ""
            break
    who = {word for word in re.findall(r"\w+", known) if word in names or word == known.strip()}
    if re.search(r"\b(?:i|me|my|we|us|our|nos)\b", known):
        who.add("you")
    return Asked(
        words, names, verb, bool(ABOUT_ME.search(plain)), bool(ASKS_WHO.search(plain)), frozenset(who), acts
    )


def base_stems(word: str) -> frozenset[tuple[int, str]]:
    """The stems of a word, of an irregular past those of its verb."""
    return frozenset(enumerate(stems_of(IRREGULAR_PASTS.get(word, word))))


def is_form_of(verb: Token, token: Token) -> bool:
    return token.kind == "word" and not base_stems(verb.text).isdisjoint(base_stems(token.text))


_CONTRAST: Final = frozenset("but however whereas while ; . ! ? \n pero mientras aunque".split(" "))
ANY_JOINT: Final = _CONTRAST | frozenset(", and then y luego ( )".split(" "))
_NO_SUBJECT: Final = frozenset(
    "still only so also then now currently actually just exactly total instead today later new yes no not too"
    " before after since from until there until ahora".split()
)
_THIRD_PERSON: Final = frozenset("it he she they that this which who el ella ellos eso esto".split())
_POINTS_BACK: Final = frozenset("where which who there that donde que alli".split())
_ASIDE: Final = re.compile(
    r"\b(?:before|earlier|previous\w*|used to|until|once|ago|then|antes|hasta|almost|nearly|wanted|considered"
    r"|thought|or|casi|original\w*|first|old|meant|planned|intended|not|wasnt|isnt)\b"
)
_NOW: Final = re.compile(r"\b(?:now|currently|today|since|new|later|finally|actually|ahora|actualmente|desde)\b")
_PRO_VERBS: Final = frozenset("do does did".split())
_STANDS_ALONE: Final = _PRO_VERBS | frozenset("is are was were will has have had can could would should".split())


def clauses_of(given: Sequence[Token], joints: frozenset[str]) -> Iterator[list[Token]]:
    clause: list[Token] = []
    for token in given:
        if token.text in joints:
            if clause:
                yield clause
            clause = []
        else:
            clause.append(token)
    if clause:
        yield clause


_ELLIPTICAL: Final = 4
"""Tokens. So short a clause leaves out what it shares with the one before: "…, the bakery at 7"."""


def _taken_up(clauses: Sequence[Sequence[Token]], asked: Asked) -> list[frozenset[Token]]:
    """What each clause takes up of the question, in its own words, by a pronoun, or by leaving it out."""
    found: list[frozenset[Token]] = []
    for clause in clauses:
        here = frozenset(
            one
            for one in asked.words
            if any(same_token(one, token) or (one.kind == "word" and is_form_of(one, token)) for token in clause)
        )
        texts = [token.text for token in clause]
        first = next((text for text in texts if text not in _NO_SUBJECT), "")
        if asked.verb is not None and not _PRO_VERBS.isdisjoint(texts):
            here |= {one for one in asked.words if one.text == asked.verb.text}
        points_back = first in _THIRD_PERSON and "who" not in texts
        says_only_a_value = not here and not _said_by(clause, asked)
        if found and (points_back or says_only_a_value or (len(clause) <= _ELLIPTICAL and here)):
            here |= {one for one in found[-1] if here.isdisjoint(found[-1]) or one.text not in asked.names}
        found.append(here)
    return found


@lru_cache(maxsize=8)
def _clauses_of_reply(
    given: tuple[Token, ...], joints: frozenset[str], asked: Asked
) -> tuple[list[list[Token]], list[frozenset[Token]]]:
    """The clauses of a reply, and what each takes up of the question: the same for every place that matches."""
    clauses = list(clauses_of(given, joints))
    return clauses, _taken_up(clauses, asked)


def another_clause_answers(match: Match, given: Sequence[Token], reply: str, asked: Asked) -> bool:
    """Another clause has more of what is asked about than that of the match, and a value of the same kind."""
    matched = given[match.first : match.last + 1]
    names = frozenset(map(folded, NAME.findall(reply))) - asked.names - {token.text for token in matched}
    for joints in (_CONTRAST, ANY_JOINT):
        clauses, taken = _clauses_of_reply(tuple(given), joints, asked)
        mine = [place for place, clause in enumerate(clauses) if any(token in clause for token in matched)]
        if len(mine) != 1:
            continue
        clause, here = clauses[mine[0]], taken[mine[0]]
        own = [token for token in _said_by(clause, asked) if token not in matched]
        if _NOW.search(_joined(clause)) or CORRECTS_ITSELF.search(folded(reply)):
            continue
        is_other_act = re.fullmatch(rf"\w+ed|{'|'.join(IRREGULAR_PASTS)}", clause[0].text) is not None
        is_led = (
            joints is _CONTRAST
            or is_other_act
            or any(token.text in names and token.start < matched[0].start for token in own)
        )
        for other, there in zip(clauses, taken, strict=True):
            if _ASIDE.search(_joined(other)) or other[0].text in _POINTS_BACK:
                continue
            if here < there and _has_other_value(matched[0], other):
                return True
            about = {token.text for token in there - here}
            is_answer = bool(about & asked.names) or (
                (joints is _CONTRAST or is_other_act) and asked.verb is not None and asked.verb.text in about
            )
            if asked.asks_who and own:
                is_led, is_answer = True, is_answer or any(token.text in names for token in other)
            if here < there and matched[0].kind == "word" and is_led and is_answer:
                return True
            if asked.about_me and _says_it_of_you(other, clause) and not OF_YOU.search(_joined(clause)):
                return True
    return False


def _joined(clause: Sequence[Token]) -> str:
    return " ".join(token.text for token in clause)


def _said_by(clause: Sequence[Token], asked: Asked) -> list[Token]:
    """The words of a clause that are not taken from the question."""
    return [
        token
        for token in clause
        if token.kind == "word"
        and token.text not in STOP_WORDS | _NO_SUBJECT | AUXILIARY
        and not any(same_token(one, token) for one in asked.words)
    ]


def _says_it_of_you(clause: Sequence[Token], other: Sequence[Token]) -> bool:
    """Whether a clause says of the user, with the same verb, what another says of somebody."""
    subject, verb, *_ = [*(token.text for token in clause if token.text not in ("and", "y")), "", ""]
    verb = {"have": "has", "are": "is", "tienes": "tiene"}.get(verb, verb)
    return subject in ("you", "tu") and any(token.text == verb for token in other)


def _has_other_value(one: Token, clause: Sequence[Token]) -> bool:
    """Whether a clause has another figure of the same kind."""
    return one.kind != "word" and any(
        not same_token(one, token)
        and (
            (token.kind == one.kind and (one.kind != "number" or one.extra in ("", token.extra)))
            or (token.extra == AT and one.kind == "time")
            or bool({(one.extra, token.extra), (token.extra, one.extra)} & SUBUNITS.keys())
        )
        for token in clause
    )


def is_remark(match: Match, given: Sequence[Token], asked: Asked) -> bool:
    """The reply answered with another figure, and says something of this one: "300; the 450 was only a wish"."""
    matched = given[match.first]
    before: list[Token] = []
    for clause in clauses_of(given, _CONTRAST):
        if matched in clause:
            head = [token for token in clause if token.start < matched.start and token.text not in _ARTICLES]
            remark = [token for token in clause if token.start > given[match.last].start]
            if before[:1] and before[0].text in ("not", "no"):
                return False
            says_more = not head and bool(remark) and remark[0].kind == "word" and not _NOW.search(_joined(clause))
            return says_more and not _taken_up([remark], asked)[0] and _has_other_value(matched, before)
        before = before or [token for token in clause if token.text not in _ARTICLES]
    return False


_ARTICLES: Final = frozenset("the a an el la los las un una".split())


def somebody_else_does(match: Match, given: Sequence[Token], reply: str, asked: Asked) -> bool:
    """ "Gary does, with Shanice beside him": the verb of the question has another name for its subject."""
    names = frozenset(map(folded, NAME.findall(reply))) - _THIRD_PERSON - STOP_WORDS
    verb = asked.verb
    matched = given[match.first : match.last + 1]
    for place, token in enumerate(given):
        does = token.text in _STANDS_ALONE and any(one.kind == "mark" for one in given[place + 1 : place + 2])
        if not (does or (verb is not None and is_form_of(verb, token))):
            continue
        before = subject_of(place, given)
        if before < 0 or given[before].text not in names - asked.names or given[before] in matched:
            continue
        if asked.asks_who:
            return match.first > place and not (_taken_up([clause_of(match, given)], asked)[0] - {verb})
        # Asked what Ada won, a reply that speaks of Beth alone says nothing of Ada.
        texts = {one.text for one in given}
        return before == 0 and bool(asked.names) and texts.isdisjoint(asked.names | _THIRD_PERSON)
    return False


def subject_of(verb: int, given: Sequence[Token]) -> int:
    """The place of the last word before a verb and its auxiliaries; -1 where there is none."""
    return next((place for place in range(verb - 1, -1, -1) if given[place].text not in AUXILIARY), -1)


def clause_of(match: Match, given: Sequence[Token]) -> list[Token]:
    """The first clause with one of the matched tokens; empty where only joints match, which belong to none."""
    matched = given[match.first : match.last + 1]
    return next((one for one in clauses_of(given, ANY_JOINT) if any(token in one for token in matched)), [])
