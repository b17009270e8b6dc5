"""Whether a reply asserts an answer, or only mentions it: denied, hedged, outdated, or one of several candidates.

Everything works on the form of the reply, in English and Spanish. Nothing here knows a dataset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from memreplay.grading.equivalence import (
    STOP_WORDS,
    Match,
    Token,
    content_of,
    enumeration,
    folded,
    matches,
    quantity_in,
    same_token,
    tokens_of,
)

Rejection = Literal["denied", "hedged", "superseded", "candidates"]

_NEGATIONS: Final = frozenset(
    "not no never neither nor without cannot isnt wasnt arent werent doesnt dont didnt cant couldnt wont wouldnt"
    " shouldnt hasnt havent hadnt aint nunca jamas ni sin tampoco".split()
)
_PLAIN_DENIALS: Final = frozenset("not no neither nor isnt wasnt arent werent aint tampoco ni".split())
"""Negations that deny what follows by themselves; the others negate a verb, and say something true of it."""

_CLAUSE_ENDS: Final = frozenset(
    "but however although though except rather instead yet now currently because since so then sino pero aunque"
    " ahora actualmente porque ; . ! ? : \n ( ) — – ,".split(" ")
)
_NOW: Final = re.compile(
    r"\b(?:now|currently|these days|nowadays|at present|as of|since then|ahora|actualmente|hoy en dia)\b"
)
_CHANGED: Final = re.compile(
    r"\b(?:changed (?:it )?to|switched to|moved to|updated to|corrected to|became|cambio a|paso a ser)\b"
)
_ONCE: Final = re.compile(
    r"\b(?:used to|previously|formerly|originally|initially|at first|no longer|earlier|until|once|antes"
    r"|al principio|inicialmente|originalmente|ya no|solia)\b"
)
_WAS: Final = re.compile(r"\b(?:was|were|had been|era|eran|fue)\b")
_ASKS_ABOUT_THE_PAST: Final = re.compile(
    r"\b(?:before|previous\w*|former\w*|original\w*|initial\w*|first|used to|old|earlier|until|once|prior|antes"
    r"|anterior\w*|primer\w*|inicial\w*|antigu\w*)\b"
)
_CORRECTS_ITSELF: Final = re.compile(
    r"\b(?:no wait|wait,? no|(?<!and )i mean|sorry|correction|scratch that|make that|or rather|digo|perdon"
    r"|mejor dicho|quiero decir)\b"
)
_BEFORE_AFTERWARDS: Final = re.compile(r"[^.;,\n]{0,30}\b(?:before|until|originally|at first|antes|hasta)\b")
_DONT_KNOW: Final = re.compile(
    r"\b(?:i (?:do not|dont|cannot|cant|am not|m not|could not|couldnt) (?:really |actually |quite )?"
    r"(?:know|sure|certain|recall|remember|tell|say)|(?:im|i am) (?:not|un)(?: )?(?:sure|certain)|not sure|no idea"
    r"|unsure|hard to say|no lo se|no se\b|no estoy segur[oa]|not (?:mentioned|specified|stated|clear)"
    r"|(?:just |only |wild )?guess(?:ing)?\b)"
)
_NEGATIVE_QUESTION: Final = re.compile(
    r"\b(?:not|never|no|avoid|avoids|avoided|allergic|allergy|except|hate|hates|dislike|dislikes|refuse|refuses|without"
    r"|forbid|forbidden|forbade|ban|banned|quit|stop|stopped|skip|miss|missed|fail|failed|reject|rejected|decline"
    r"|declined|leave out|stay away|instead|rule out|ruled|nt|prohib\w+|evita\w*|alergi\w+|nunca|jamas|sin|odia\w*"
    r"|dej\w+ de|rechaz\w+|instruct\w*|told|tell|ask|asked|pid\w+|dijo)\b"
)


def asserted(answer: str, reply: str, question: str = "") -> tuple[bool, Rejection | None]:
    """Whether a reply gives an answer, and why it does not where it only mentions it.

    Returns:
        ``(True, None)`` where the answer is asserted, ``(False, None)`` where it does not occur, else False and the
        reason: it is denied, hedged, superseded, or one of several candidates.
    """
    found = list(matches(answer, reply)) or list(_as_quantity(answer, reply, question))
    if not found:
        items = enumeration(answer)
        if len(items) < 2:
            return False, None
        verdicts = [asserted(item, reply, question) for item in items]
        return all(ok for ok, _ in verdicts), next((why for ok, why in verdicts if not ok), None)
    given = tokens_of(reply)
    if _gives_up(reply, answer):
        return False, "hedged"
    reasons = [_rejected(match, given, reply, answer, question) for match in found]
    if any(reason is None for reason in reasons):
        # A value that is given once and taken back elsewhere ("14, no wait, 15") is not the answer.
        return ("hedged" not in reasons, None if "hedged" not in reasons else "hedged")
    return False, reasons[0]


def _as_quantity(answer: str, reply: str, question: str) -> Iterator[Match]:
    """The number of "14 people", where the reply is the number alone or counts what the question asks for."""
    given = tokens_of(reply)
    content = content_of(given)
    number = quantity_in(answer)
    if number is None:
        return
    asked = tokens_of(question)
    for place, (index, token) in enumerate(content):
        noun = content[place + 1][1] if place + 1 < len(content) else None
        is_named = noun is not None and noun.kind == "word" and any(same_token(noun, one) for one in asked)
        if same_token(number, token) and (len(content) == 1 or is_named):
            yield Match(index, index)


def _gives_up(reply: str, answer: str) -> bool:
    return bool(_DONT_KNOW.search(folded(reply))) and not _DONT_KNOW.search(folded(answer))


def _rejected(match: Match, given: Sequence[Token], reply: str, answer: str, question: str) -> Rejection | None:
    if _is_denied(match, given, answer, question):
        return "denied"
    if _is_superseded(match, given, reply, question):
        return "superseded"
    if _is_alternative(match, given, answer):
        return "hedged"
    if _is_candidate(match, given, answer):
        return "candidates"
    return None


_DENIES_WHAT_FOLLOWS: Final = re.compile(
    r"\b(?:rather than|instead of|other than|except(?: for)?|en vez de|en lugar de|no longer|ya no)\b[^,]*$"
)
_DENIES_NOTHING: Final = re.compile(r"\b(?:not only|no doubt|cant wait|not just|nothing but|no solo|sin duda)\b")
_DENIED_AFTER: Final = re.compile(r"(?:is|was|es|era)? ?(?:not|isnt|wasnt|wrong|incorrect|no es|incorrecto)\b")


def _is_denied(match: Match, given: Sequence[Token], answer: str, question: str) -> bool:
    """A negation governs the answer: "not X", "rather than X", "did not move to X"."""
    if any(token.text in _NEGATIONS for token in tokens_of(answer)):
        return False
    before = _clause_before(match.first, given)
    words = [token.text for token in before]
    joined = " ".join(words)
    if _DENIES_WHAT_FOLLOWS.search(joined):
        return True
    near = [word for word in words if word not in STOP_WORDS or word in _NEGATIONS][-4:]
    if _DENIES_NOTHING.search(joined):
        return False
    negated = [word for word in near if word in _NEGATIONS]
    if not negated:
        after = " ".join(token.text for token in given[match.last + 1 : match.last + 5])
        return bool(_DENIED_AFTER.match(after)) and not _NEGATIVE_QUESTION.search(folded(question))
    if near and near[-1] in _PLAIN_DENIALS and words[-1] != "no":
        return True
    return not _NEGATIVE_QUESTION.search(folded(question))


def _clause_before(first: int, given: Sequence[Token]) -> Sequence[Token]:
    start = first
    while start > 0 and given[start - 1].text not in _CLAUSE_ENDS:
        start -= 1
    head = given[start - 1] if start > 0 else None
    # "rather than" and "instead of" begin a clause that they deny.
    begins_denial = head is not None and head.text in ("rather", "instead", "except")
    return given[start - 1 if begins_denial else start : first]


def _is_superseded(match: Match, given: Sequence[Token], reply: str, question: str) -> bool:
    """The reply contrasts then and now, and the answer stands on the side of then."""
    plain = folded(reply)
    start, end = given[match.first].start, given[match.last].end
    changed = re.search(r"\bfrom\b[^.;\n]{0,60}$|\bde\b[^.;\n]{0,40}$", plain[:start])
    if (
        changed
        and re.match(r"[^.;\n]{0,20}?\b(?:to|a)\b", plain[end:])
        and re.search(
            r"\b(?:chang|mov|switch|updat|correct|cambi|pas[oó])\w*[^.;\n]{0,40}$", plain[: changed.end()]
        )
    ):
        return True
    if (took_back := _CORRECTS_ITSELF.search(plain, end)) and re.search(r"\w", plain[took_back.end() :]):
        return True
    if _ASKS_ABOUT_THE_PAST.search(folded(question)):
        return False
    clause = plain[_last_break(plain, start) : start]
    if _NOW.search(clause) or _CHANGED.search(clause):
        return False
    once = _ONCE.search(clause) or _BEFORE_AFTERWARDS.match(plain, end)
    rest = plain[: start - len(clause)] + " | " + plain[end:]
    return bool(
        (once and (_NOW.search(rest) or _CHANGED.search(rest))) or (_WAS.search(clause) and _NOW.search(rest))
    )


def _last_break(plain: str, start: int) -> int:
    return max(plain.rfind(mark, 0, start) for mark in (",", ".", ";", "\n", " but ", " pero ")) + 1


_NO_ALTERNATIVE: Final = frozenset(
    "so more less later earlier thereabouts better higher lower fewer nearby menos mas".split()
)


def _is_alternative(match: Match, given: Sequence[Token], answer: str) -> bool:
    """ "X or Y", "either X or Y", "X/Y", "between X and Y"."""
    if any(token.text in ("or", "o", "u", "/") for token in tokens_of(answer)):
        return False
    after = given[match.last + 1 : match.last + 6]
    for place, token in enumerate(after):
        if token.text in ("or", "o", "u", "/") and place <= 2:
            follower = after[place + 1].text if place + 1 < len(after) else ""
            return bool(follower) and follower not in _NO_ALTERNATIVE
        if token.text not in (",", ")", "maybe", "possibly", "perhaps", "quizas") and token.kind != "word":
            break
        if token.kind == "word" and place >= 1:
            break
    before = [token.text for token in given[max(0, match.first - 4) : match.first]]
    if "between" in before or "entre" in before or "either" in before:
        return True
    tail = [word for word in before if word not in STOP_WORDS and word not in (",", "maybe", "possibly", "perhaps")]
    return bool(tail) and tail[-1] in ("or", "/", "o", "u")


def _is_candidate(match: Match, given: Sequence[Token], answer: str) -> bool:
    """The reply is a bare list of things, of which the answer is one."""
    if len(enumeration(answer)) > 1 or any(token.text == "," for token in tokens_of(answer)):
        return False
    segments: list[list[Token]] = [[]]
    for token in given:
        if (token.kind == "mark" and token.text in ",\n;") or token.text in ("and", "y"):
            segments.append([])
        elif token.kind != "mark":
            segments[-1].append(token)
    filled = [segment for segment in segments if segment]
    if len(filled) < 3 or any(len(segment) > 3 or _is_clause(segment) for segment in filled):
        return False
    if _CORRECTS_ITSELF.search(" ".join(token.text for token in given)):
        return False
    first, last = given[match.first], given[match.last]
    mine = next((segment for segment in filled if segment[0].start <= first.start <= segment[-1].start), [])
    whole = bool(mine) and mine[0].start == first.start and mine[-1].end == last.end
    alike = all(segment[0].kind == mine[0].kind for segment in filled) if mine else False
    place_name = bool(mine) and mine is filled[0] and len(filled) == 3
    return whole and alike and not place_name


def _is_clause(segment: Sequence[Token]) -> bool:
    """Whether a part of a list is a clause: it has a small word that names of things do without."""
    return any(
        token.kind == "word" and token.text in STOP_WORDS - {"the", "a", "an", "el", "la"} for token in segment
    )
