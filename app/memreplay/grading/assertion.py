"""Whether a reply asserts an answer, or only mentions it: denied, hedged, outdated, or one of several candidates.

Everything works on the form of the reply, in English and Spanish. Nothing here knows a dataset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal

from memreplay.grading.clauses import NAME
from memreplay.grading.denial import is_denied, is_passed_over
from memreplay.grading.equivalence import Match, enumeration, matches, quantity_in, spelled_out
from memreplay.grading.lexing import Token, folded
from memreplay.grading.subjects import is_said_of_another
from memreplay.grading.superseding import CHANGES, CORRECTS_ITSELF, around, is_overruled, is_superseded
from memreplay.grading.tokens import content_of, same_token, tokens_of
from memreplay.grading.vocabulary import STOP_WORDS

Rejection = Literal["denied", "hedged", "superseded", "candidates"]
_DONT_KNOW: Final = re.compile(
    r"\b(?:i (?:really |honestly |just )?(?:do not|dont|cannot|cant|am not|m not|could not|couldnt) (?:really "
    r"|actually |quite |honestly )?(?:know|sure|certain|recall|remember|tell|say)|(?:im|i am) (?:not"
    r"|un)(?: )?(?:sure|certain)|not sure|no idea|unsure|hard to say|no lo se\b|no se(?=\Z| ?[,.;|]| (?:si|que"
    r"|cual|quien|donde|cuando|como|cuant\w+)\b)|(?:no|without any|without a) way (?:for me )?to (?:know|tell"
    r"|be sure)|could (?:just as well|equally|also) be|no (?:me acuerdo|recuerdo|lo recuerdo)|no estoy segur[oa]"
    r"|not (?:mentioned|specified|stated|clear)|(?:just |only |wild )?guess(?:ing)?\b(?! what))"
)


@lru_cache(maxsize=1024)
def asserted(answer: str, reply: str, question: str = "", among: int = 1) -> tuple[bool, Rejection | None]:
    """Whether a reply gives an answer, and why it does not where it only mentions it.

    ``among`` is how many things the whole answer lists, where this one is a part of it.

    Returns:
        ``(True, None)`` where the answer is asserted, ``(False, None)`` where it does not occur, else False and the
        reason: it is denied, hedged, superseded, or one of several candidates.
    """
    reply = spelled_out(answer, reply)
    found = [match for match in matches(answer, reply) if not _counts_others(match, answer, reply, question)]
    found = found or list(_as_quantity(answer, reply, question))
    if not found:
        items = enumeration(answer)
        if len(items) < 2:
            return False, None
        verdicts = [asserted(item, reply, question, len(items)) for item in items]
        return all(ok for ok, _ in verdicts), next((why for ok, why in verdicts if not ok), None)
    given = tokens_of(reply)
    if len(found) > 2 * _MOST_MENTIONS:
        found = found[:_MOST_MENTIONS] + found[-_MOST_MENTIONS:]
    reasons = [_rejected(match, given, reply, answer, question, among) for match in found]
    if any(reason is None for reason in reasons):
        # A value that is given once and taken back elsewhere ("14, no wait, 15") is not the answer.
        return ("hedged" not in reasons, None if "hedged" not in reasons else "hedged")
    return False, reasons[0]


def _as_quantity(answer: str, reply: str, question: str) -> Iterator[Match]:
    """The number of "14 people", where the reply counts what the question asks for: "14 guests"."""
    number, asked = quantity_in(answer), tokens_of(question)
    for (index, token), (_, noun) in pairwise(content_of(tokens_of(reply))):
        if number and same_token(number, token) and any(same_token(noun, one) for one in asked):
            yield Match(index, index)


def _counts_others(match: Match, answer: str, reply: str, question: str) -> bool:
    """The answer is an amount ("nine days"), and the reply counts things of another kind ("nine people")."""
    given = tokens_of(reply)
    number, after = given[match.first], given[match.last + 1 : match.last + 2]
    has_unit = any(token.kind == "number" and token.extra not in ("", "at") for token in tokens_of(answer))
    if match.first != match.last or number.kind != "number" or number.extra or not has_unit or not after:
        return False
    noun = after[0]
    is_plural = noun.kind == "word" and (noun.text in _ANYBODY or re.fullmatch(r"[a-z]{3,}[^s]s", noun.text))
    return bool(is_plural) and not any(same_token(noun, one) for one in tokens_of(question))


_ANYBODY: Final = frozenset("people persons person personas gente individuals".split())


_MOST_MENTIONS: Final = 10
"""Of an answer that a reply repeats without end, the first and last mentions decide."""


def _gives_up(match: Match, given: Sequence[Token], reply: str) -> bool:
    beside = " | ".join(around(match, given, folded(reply)))
    return _DONT_KNOW.search(beside) is not None or len(_MAYBE.findall(beside)) > 1


def _rejected(
    match: Match, given: Sequence[Token], reply: str, answer: str, question: str, among: int
) -> Rejection | None:
    if is_denied(match, given, reply, answer, question):
        return "denied"
    if is_superseded(match, given, reply, question) or is_overruled(match, given, reply):
        return "superseded"
    if is_passed_over(match, given, reply, question) or is_said_of_another(match, given, reply, question, among):
        return "denied"
    if (
        _gives_up(match, given, reply)
        or _is_alternative(match, given, reply, answer)
        or _is_range(match, given, reply)
    ):
        return "hedged"
    if _is_candidate(match, given, reply, answer, among):
        return "candidates"
    return None


_NO_ALTERNATIVE: Final = frozenset(
    "so more less later earlier thereabouts better higher lower fewer nearby menos mas".split()
)


_PRONOUNS: Final = frozenset("i you he she it we they".split())
"""They begin a clause: "water it, or it dries out"."""


def _is_alternative(match: Match, given: Sequence[Token], reply: str, answer: str) -> bool:
    """ "X or Y", "either X or Y", "X/Y", "between X and Y"."""
    plain = folded(reply)
    after = given[match.last + 1 : match.last + 6]
    for place, token in enumerate(after):
        if token.text in ("or", "o", "u", "/") and place <= 2:
            follower = after[place + 1].text if place + 1 < len(after) else ""
            is_same = follower in _NO_ALTERNATIVE | _PRONOUNS or _SAYS_IT_OTHERWISE.search(plain, token.end)
            # "24 kg, or roughly 53 lb" is one amount.
            number = next((one for one in after[place + 1 :] if one.kind == "number"), None)
            is_converted = number is not None and "" not in (number.extra, given[match.first].extra)
            return bool(follower) and not is_same and not is_converted
        if token.kind == "word" if place else token.text not in (",", ")"):
            break
    if _leads_to_or(match.last + 1, given) or _ASKS_BACK.match(plain, given[match.last].end):
        return True
    before = [token.text for token in given[max(0, match.first - 4) : match.first]]
    is_one_value = sum(token.kind in ("number", "time", "date") for token in tokens_of(answer)) < 2
    if is_one_value and ("between" in before or "entre" in before or "either" in before):
        return True
    tail = [word for word in before if word not in STOP_WORDS]
    is_same = _SAYS_IT_OTHERWISE.match(plain, given[match.last].end)
    return bool(tail) and tail[-1] in ("or", "/", "o", "u") and not is_same


_SAYS_IT_OTHERWISE: Final = re.compile(
    r"[^.;\n]{0,30}\b(?:for short|to be (?:exact|precise)|in other words|in full|exactly|in (?:uk|us|eu"
    r"|european|american|british|metric|imperial)\b|as (?:he|she|they|you|i|we) "
    r"(?:call|like|put|say)\w*|para ser exact\w+|es decir)\b"
)


def _leads_to_or(place: int, given: Sequence[Token]) -> bool:
    """Whether the things of a list follow, and the last after an "or": "…, Girona or Lleida"."""
    texts = " ".join(token.text for token in given[place : place + 20])
    return re.match(r"(?:, \w+(?: \w+){0,2} )+(?:, )?(?:or|o|u)\b", texts) is not None


_MAYBE: Final = re.compile(r"\b(?:maybe|perhaps|possibly|might be|could be|may be|quizas?|tal vez|puede que)\b")
_ASKS_BACK: Final = re.compile(r"[^\w,.;]{0,5}\?\W{0,5}(?:or|o|u)\b")
_RANGE_AFTER: Final = re.compile(r"\s*(?:[-–]|to\b|hasta\b|a\b)\s*[£$€]?\d")
_RANGE_BEFORE: Final = re.compile(r"\d\s*(?:[-–]|to|hasta|a)\s*[£$€]?$")


def _is_range(match: Match, given: Sequence[Token], reply: str) -> bool:
    """The answer is an end of a range of numbers: "14-16", "14 to 16"."""
    if match.first != match.last or given[match.first].kind != "number":
        return False
    plain = folded(reply)
    start, end = given[match.first].start, given[match.last].end
    before = plain[max(0, start - 80) : start]
    is_end = _RANGE_BEFORE.search(before) and not CHANGES.search(before)
    return bool(_RANGE_AFTER.match(plain, end) or is_end)


_OFFERS: Final = re.compile(
    r"\b(?:options?|candidates?|possib\w+|choices?|alternatives?|opcion\w*|candidat\w+|posib\w+|alternativas?"
    r"|(?:one|either|any) of (?:these|those|the following|them)|(?:uno|una|alguno|alguna) de (?:estos|estas|ellos"
    r"|ellas))\b[^.;\n]{0,40}?(?:\bare|\binclude|\bson|:)"
)


_ONE_OF: Final = re.compile(
    r"\b(?:one|either|any|some) of(?: \w+){0,3}\W(?=[^.;\n]*+\Z)[^.;\n]*,|\b(?:one|either) of \Z"
)
_BOTH: Final = re.compile(r"\b(?:both|tanto)(?:(?: \w+){1,3} (?:and|como))?(?: (?:the|an?|el|la|los|las|una?))? \Z")


def _is_candidate(match: Match, given: Sequence[Token], reply: str, answer: str, among: int) -> bool:
    """The reply is a bare list of things, or offers several, and the answer is one of them."""
    plain = folded(reply)
    if CORRECTS_ITSELF.search(plain):
        return False
    first, last = given[match.first], given[match.last]
    offers = _OFFERS.search(plain, 0, first.start)
    if _ONE_OF.search(plain, 0, first.start):
        return True
    if among == 1 and _BOTH.search(plain[max(0, first.start - 60) : first.start]):
        return True
    listed = [token for token in _without_list_numbers(given) if not offers or token.start >= offers.end()]
    segments: list[list[Token]] = [[]]
    in_lines = False
    for token in listed:
        if (token.kind == "mark" and token.text in ",\n;") or token.text in ("and", "y", "or", "o"):
            in_lines = in_lines or (token.text != "," and bool(segments[-1]))
            segments.append([])
        elif token.kind != "mark":
            segments[-1].append(token)
    filled = [segment for segment in segments if segment]
    if len(filled) < (2 if offers else 3) or len(filled) <= 2 * (among - 1) or max(map(len, filled)) > 3:
        return False
    mine = next((segment for segment in filled if segment[0].start <= first.start <= segment[-1].start), [])
    is_tail = bool(mine) and re.fullmatch(r"\w+-", plain[mine[0].start : first.start]) is not None
    if not mine or (mine[0].start != first.start and not is_tail) or mine[-1].end != last.end:
        return False
    is_place_name = mine is filled[0] and len(filled) == 3 and not offers and not in_lines
    is_place_name = is_place_name and all(part[0].text in map(folded, NAME.findall(reply)) for part in filled[1:])
    return not is_place_name and all(segment[0].kind == mine[0].kind for segment in filled)


def _without_list_numbers(given: Sequence[Token]) -> list[Token]:
    """The tokens without the numbers that begin the lines of a list ("1. tea")."""
    return [
        token
        for before, token, after in zip((None, *given), given, (*given[1:], None), strict=False)
        if not (token.kind == "number" and (not before or before.text == "\n") and after and after.text in ".)")
    ]
