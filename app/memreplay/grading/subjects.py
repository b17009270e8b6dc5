"""Whether a reply says what it says of the answer about somebody or something else than is asked about.

Its clause may be about another subject ("your brother wears a 43"), another clause may be the one that answers
("the café opens at 6:30, the bakery at 7"), or the roles may be the other way round ("you lent it to Farid", asked
who lent it). Everything works on the form of the reply, in English and Spanish.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from memory_backends.text import folded as folded_with_apostrophes
from memreplay.grading.clauses import (
    ABOUT_ME,
    ASKS_WHO,
    OF_YOU,
    RELATIVE,
    Asked,
    another_clause_answers,
    asked_by,
    base_stems,
    clause_of,
    is_form_of,
    is_remark,
    somebody_else_does,
    subject_of,
)
from memreplay.grading.equivalence import Match
from memreplay.grading.lexing import Token, folded, stems_of
from memreplay.grading.vocabulary import CONVERSES, IRREGULAR_PASTS, SIDES


def is_said_of_another(match: Match, given: Sequence[Token], reply: str, question: str, among: int = 1) -> bool:
    """Whether the clause of the matched words has another subject than the question asks about."""
    asked = asked_by(question)
    plain = folded(reply)
    return (
        _is_said_of_a_relative(match, given, plain, question)
        or _owns_the_answer(match, given, reply, question)
        or _is_said_of_another_sex(match, given, plain, question)
        or _is_other_way_round(match, given, plain, asked)
        or _is_another_side(match, given, asked)
        or (among == 1 and another_clause_answers(match, given, reply, asked))
        or is_remark(match, given, asked)
        or (among == 1 and somebody_else_does(match, given, reply, asked))
    )


BE: Final = frozenset("is are was were been being be got get gets am".split())


@lru_cache(maxsize=16384)
def _are_converse(verb: str, word: str) -> bool:
    ours, its = base_stems(verb), base_stems(word)
    return any(ours & base_stems(one) and its & base_stems(other) for one, other in CONVERSES)


_CLAUSE: Final = re.compile(r"[.!?](?=\s|\Z)|[;\n]|,? \b(?=(?:but|however|whereas|while|pero|mientras|aunque)\b)")
_OF_A_RELATIVE: Final = re.compile(
    r"(?:\A|(?<=[.!?;\n:] )|(?<=, )|(?<=but )|(?<=pero ))\W*(?:it was |it is |its |era |es )?"
    rf"(?P<whose>your|tus?|his|her|their|su|[^\W\d_]+) (?:\w+ )?(?P<who>{RELATIVE})\b"
)


def _is_said_of_a_relative(match: Match, given: Sequence[Token], plain: str, question: str) -> bool:
    """The reply speaks of a relative or friend of whom is asked about, and the question names no such person."""
    asked = folded(question)
    start, end = given[match.first].start, given[match.last].end
    begin = max((found.end() for found in _CLAUSE.finditer(plain, 0, start)), default=0)
    subject = next(iter([*_OF_A_RELATIVE.finditer(plain, begin, start)][::-1]), None)
    if subject is None or re.search(rf"\b{subject['who']}", asked):
        return False
    whose = subject["whose"]
    if whose in ("your", "tu", "tus"):
        is_near = bool(ABOUT_ME.search(asked))
    else:
        is_near = whose in ("his", "her", "their", "su") or re.search(rf"\b{whose}\b", asked) is not None
        is_near = is_near and not ABOUT_ME.search(asked)
    beside = plain[subject.end("who") : start] + re.split(rf",|{_CLAUSE.pattern}", plain[end:])[0]
    return is_near and not OF_YOU.search(beside) and not ASKS_WHO.search(asked)


_OWNER: Final = re.compile(r"\b([^\W\d_]+)['’]s (?:\w+ )??([^\W\d_]{3,})")


def _owns_the_answer(match: Match, given: Sequence[Token], reply: str, question: str) -> bool:
    """ "Ana's sister did it" does not say that Ana did; "Ana's dog is Rex" says nothing of Tom's dog."""
    plain, start, end = folded(reply), given[match.first].start, given[match.last].end
    with_owners, asked = folded_with_apostrophes(reply), folded_with_apostrophes(question)
    matched = re.escape(plain[start:end])
    of_relatives = len(re.findall(rf"\b{matched}['’]s (?:\w+ )?{RELATIVE}\b", with_owners))
    if of_relatives and of_relatives == len(re.findall(rf"\b{matched}\b", with_owners)):
        return True
    of_relative = re.search(rf"\bmy {RELATIVE}['’]s (?P<thing>\w+(?: \w+)?)", asked)
    if of_relative and re.search(rf"\byour {of_relative['thing']}\b", plain):
        return True
    owners = {noun: owner for owner, noun in _OWNER.findall(asked)}
    has_other_owner = any(noun in owners for _, noun in _OWNER.findall(with_owners))
    return has_other_owner and not set(owners.values()) & set(re.findall(r"\w+", plain))


_SUBJECT_PRONOUN: Final = re.compile(r"(?:\A|[.!?;,\n:]|\band|\bbut|\bwhile|\bwhereas)\W*(?P<pronoun>he|she)\b")


def _is_said_of_another_sex(match: Match, given: Sequence[Token], plain: str, question: str) -> bool:
    """ "He" is said of the brother where "Hanne and her brother" are spoken of, and Hanne is asked about."""
    subjects = _SUBJECT_PRONOUN.findall(plain[: given[match.first].start])
    names = "|".join(map(re.escape, asked_by(question).names))
    if not subjects or not names:
        return False
    about = re.search(rf"\b(?:{names})\b[^.;\n]*?\b(she|hers?|he|his|him)\b", plain)
    return about is not None and about[1].startswith(("she", "her")) != (subjects[-1] == "she")


_SECOND_PERSON_PAST: Final = re.compile(r"\w+[ai]ste\Z")


def _is_other_way_round(match: Match, given: Sequence[Token], plain: str, asked: Asked) -> bool:
    """Asked who lent me the tent, the reply says that I did: who acts in it is who is acted on in the question."""
    verb = asked.verb
    if verb is None or not asked.asks_who or not asked.known:
        return False
    for place, token in enumerate(given):
        sign = 1 if is_form_of(verb, token) else -1 if _are_converse(verb.text, token.text) else 0
        between = given[min(place, match.last) : max(place, match.first)]
        if not sign or match.first <= place <= match.last or any(one.text in ".;!?\n" for one in between):
            continue
        is_compared = place + 1 < len(given) and given[place + 1].text == "than"
        if token.text == verb.text and token.text.endswith(("er", "or")) and not is_compared:
            continue  # the noun: "your manager"
        before = subject_of(place, given)
        if (
            any(one.text in BE for one in given[before + 1 : place])
            and not is_compared
            and not token.text.endswith("ing")
        ):
            sign = -sign
        has_known_subject = (given[before].text if before >= 0 else "") in asked.known
        if _SECOND_PERSON_PAST.match(token.text):
            has_known_subject = "you" in asked.known
        acts_as_asked = (sign > 0) == asked.known_acts
        if not acts_as_asked if has_known_subject else (acts_as_asked and match.first <= before <= match.last):
            return True
    return False


def _is_another_side(match: Match, given: Sequence[Token], asked: Asked) -> bool:
    """The question asks for the width or when it opens, and the reply gives the height or when it closes."""
    wanted = dict(SIDES[side] for token in asked.words for side in _sides(token.text))
    if given[match.first].kind == "word":
        wanted = {axis: side for axis, side in wanted.items() if axis == "order"}
    said = [SIDES[side] for token in clause_of(match, given) for side in _sides(token.text)]
    return {wanted[axis] == side for axis, side in said if axis in wanted} == {False}


@lru_cache(maxsize=4096)
def _sides(word: str) -> tuple[str, ...]:
    """What a word says of which side of an axis it is on."""
    base = IRREGULAR_PASTS.get(word, word)
    return tuple(side for side in SIDES if stems_of(side)[0] == stems_of(base)[0])
