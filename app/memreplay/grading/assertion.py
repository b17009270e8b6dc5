"""Whether a reply asserts an answer, or only mentions it: denied, hedged, outdated, or one of several candidates.

Everything works on the form of the reply, in English and Spanish. Nothing here knows a dataset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, Literal

from memreplay.grading.equivalence import Match, content_of, enumeration, matches, quantity_in, same_token
from memreplay.grading.passing_over import is_passed_over
from memreplay.grading.tokens import Token, folded, tokens_of
from memreplay.grading.vocabulary import STOP_WORDS

Rejection = Literal["denied", "hedged", "superseded", "candidates"]

_NEGATIONS: Final = frozenset(
    "not no never neither nor without cannot isnt wasnt arent werent doesnt dont didnt cant couldnt wont wouldnt"
    " shouldnt hasnt havent hadnt aint nunca jamas ni sin tampoco".split()
)
_PLAIN_DENIALS: Final = frozenset("not no neither nor isnt wasnt arent werent aint tampoco ni".split())
"""Negations that deny what follows by themselves; the others negate a verb, and say something true of it."""

_CLAUSE_ENDS: Final = frozenset(
    "but however although though except rather instead yet now currently because since so then sino pero aunque -"
    " ahora actualmente porque ; . ! ? : \n ( ) — – ,".split(" ")
)
_NOW: Final = re.compile(
    r"\b(?:now|(?:has|have) since|(?:has|have) been [^.;\n]{0,40}since|currently|these days|nowadays|at present"
    r"|as of|since then|ahora|actualmente|hoy en dia)\b"
)
_CHANGED: Final = re.compile(
    r"\b(?:(?:changed|switched|moved|updated|upgraded|corrected|raised|increased|reduced|lowered|rescheduled"
    r"|postponed"
    r"|(?:gone|went) (?:up|down)|rose|dropped|fell) (?:it )?to|became|replaced by|cambio a|paso a ser|se mudo a)\b"
)
_ONCE: Final = re.compile(
    r"\b(?:used to|previously|formerly|originally|initially|at first|no longer|earlier|until|once|antes"
    r"|al principio|inicialmente|originalmente|ya no|solia)\b"
)
_LONG_OVER: Final = re.compile(
    r"\b(?:used to|formerly|no longer|before that|before then|prior to that|antes de eso|solia)\b"
)
_ASKS_ABOUT_NOW: Final = re.compile(
    r"\b(?:now|current\w*|still|these days|today|at present|ahora|actual\w*|todavia|hoy)\b"
)
_WAS: Final = re.compile(
    r"\b(?:was|were|had been|lived|worked|played|owned|studied|rented|stayed|cost|era|eran|fue|vivia|tenia|estaba"
    r"|trabajaba|jugaba|tocaba|costaba|estudiaba)\b"
)
_HAD: Final = re.compile(r"\b(?:had|tenia|habia)\b")
_NOW_A_NUMBER: Final = re.compile(_NOW.pattern + r"[^.;\n]{0,40}\d")
_THEN_CHANGED: Final = re.compile(
    r"[^.\n]{0,30}\b(?:but|then|later|since|before|pero|luego|despues)\b[^.;\n]{0,20}" + _CHANGED.pattern
)
_THEN_REPLACED: Final = re.compile(
    r"[^.\n]{0,60}\b(?:but|then|later|pero|luego|despues)\b[^.;\n]{0,20}\b(?:changed|switched|moved|corrected|updated"
    r"|amended|revised|pushed|cambi\w+|correg\w+|corrig\w+) (?:it|that|this|them) (?:to|for|a|por)\b"
)
_ASKS_ABOUT_THE_PAST: Final = re.compile(
    r"\b(?:before|previous\w*|former\w*|original\w*|initial\w*|first|used to|old|earlier|until|once|prior|antes"
    r"|anterior\w*|primer\w*|inicial\w*|antigu\w*)\b"
)
_CORRECTS_ITSELF: Final = re.compile(
    r"(?:\b(?:no wait|wait,? no|(?:oh|hmm+|ah|uh),? wait|(?:hmm+|oh|ah|uh|wait|well|sorry|perdon),? no"
    r"|(?<!and )i mean|(?<=[.,;—–-] )(?:sorry|perdon|correction|correccion)|scratch that|make that|or rather|digo"
    r"|mejor dicho|quiero decir|strike that|i got (?:that|it) wrong"
    r"|(?:i )?(?:misspoke|mixed (?:that|it|them|those|this) up|misread (?:that|it|this))"
    r"|my (?:mistake|bad|apologies)|apologies|edit:|on (?:re-?reading|closer inspection)"
    r"|looking (?:again|more closely)|hold on"
    r"|me (?:he )?equivo[cq]\w+|rectifico|corrijo|miento"
    r"|on (?:second thoughts?|reflection)|let me correct (?:that|myself))\b"
    r"|(?:\.\.|…|[,;.?—–-])\s*(?:no,? )?actually(?:,|\s(?:it|no|that|make)\b))"
)
_BEFORE_AFTERWARDS: Final = re.compile(r"[^.;,\n]{0,30}\b(?:before|until|originally|at first|antes|hasta)\b")
_DONT_KNOW: Final = re.compile(
    r"\b(?:i (?:do not|dont|cannot|cant|am not|m not|could not|couldnt) (?:really |actually |quite )?"
    r"(?:know|sure|certain|recall|remember|tell|say)|(?:im|i am) (?:not|un)(?: )?(?:sure|certain)|not sure|no idea"
    r"|unsure|hard to say|no lo se\b|no se(?=\Z| ?[,.;|]| (?:si|que|cual|quien|donde|cuando|como|cuant\w+)\b)"
    r"|no (?:me acuerdo|recuerdo|lo recuerdo)|no estoy segur[oa]|not (?:mentioned|specified|stated|clear)"
    r"|(?:just |only |wild )?guess(?:ing)?\b(?! what))"
)
_NEGATIVE_QUESTION: Final = re.compile(
    r"\b(?:(?:ca|do|does|did|is|was|are|were|wo|would|could|should|has|have|had)n['’]?t|cannot|not|never|no"
    r"|avoid|avoids|avoided|allergic|allergy|except|hate|hates|dislike|dislikes|refuse|refuses"
    r"|without"
    r"|forbid|forbidden|forbade|ban|banned|quit|stop|stopped|skip|miss|missed|fail|failed|reject|rejected|decline"
    r"|declined|le(?:ave|ft) out|omit\w*|exclud\w*|missing|remov\w*|lack\w*|stay away|instead|rule out|ruled|nt"
    r"|prohib\w+|evita\w*|alergi\w+|nunca|jamas|sin|odia\w*"
    r"|dej\w+ de|rechaz\w+|instruct\w*|told|tell|ask|asked|pid\w+|dijo)\b"
)


def asserted(answer: str, reply: str, question: str = "", among: int = 1) -> tuple[bool, Rejection | None]:
    """Whether a reply gives an answer, and why it does not where it only mentions it.

    ``among`` is how many things the whole answer lists, where this one is a part of it.

    Returns:
        ``(True, None)`` where the answer is asserted, ``(False, None)`` where it does not occur, else False and the
        reason: it is denied, hedged, superseded, or one of several candidates.
    """
    found = list(matches(answer, reply)) or list(_as_quantity(answer, reply, question))
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
    """The number of "14 people", where the reply is the number alone or counts what the question asks for."""
    given = tokens_of(reply)
    content = content_of(given)
    number = quantity_in(answer)
    if number is None:
        return
    asked = tokens_of(question)
    for place, (index, token) in enumerate(content):
        noun = content[place + 1][1] if place + 1 < len(content) else None
        is_named = noun is not None and (
            (noun.kind == "word" and any(same_token(noun, one) for one in asked))
            or (noun.text in _ANYBODY and _is_asked(answer, asked))
        )
        if same_token(number, token) and (len(content) == 1 or is_named):
            yield Match(index, index)


_ANYBODY: Final = frozenset("people persons person personas gente individuals".split())


def _is_asked(answer: str, asked: Sequence[Token]) -> bool:
    """Whether the question already names what the answer counts."""
    nouns = [token for _, token in content_of(tokens_of(answer)) if token.kind == "word"]
    return bool(nouns) and all(any(same_token(noun, one) for one in asked) for noun in nouns)


_MOST_MENTIONS: Final = 10
"""Of an answer that a reply repeats without end, the first and last mentions decide."""

_SHORT: Final = 300
_NEAR: Final = 80
"""Characters. In a longer text than ``_SHORT``, only what stands so near the answer speaks of it."""


def _around(match: Match, given: Sequence[Token], plain: str) -> tuple[str, str]:
    """What stands before and after an answer and may speak of it."""
    start, end = given[match.first].start, given[match.last].end
    near = len(plain) if len(plain) <= _SHORT else _NEAR
    return plain[max(0, start - near) : start], plain[end : end + near]


def _gives_up(match: Match, given: Sequence[Token], reply: str, answer: str) -> bool:
    around = " | ".join(_around(match, given, folded(reply)))
    is_guess = _DONT_KNOW.search(around) or len(_MAYBE.findall(around)) > 1
    return bool(is_guess) and not _DONT_KNOW.search(folded(answer))


def _rejected(
    match: Match, given: Sequence[Token], reply: str, answer: str, question: str, among: int
) -> Rejection | None:
    if _is_denied(match, given, reply, answer, question):
        return "denied"
    if _is_superseded(match, given, reply, question) or _is_overruled(match, given, reply, question):
        return "superseded"
    if is_passed_over(match, given, reply, question):
        return "denied"
    if (
        _gives_up(match, given, reply, answer)
        or _is_alternative(match, given, reply, answer)
        or _is_range(match, given, reply)
    ):
        return "hedged"
    if _is_candidate(match, given, reply, answer, among):
        return "candidates"
    return None


_DENIES_WHAT_FOLLOWS: Final = re.compile(
    r"\b(?:rather than|instead of|other than|en vez de|en lugar de|no longer|ya no)\b[^,]*$|\b(?:except|excepto"
    r"|salvo)(?: \S+){0,2}$"
)
_DENIES_NOTHING: Final = re.compile(
    r"\b(?:no \w+ (?:better|other|greater|more \w+) than|not only|no doubt|cant wait|not just|nothing but"
    r"|no solo|sin duda)\b"
)
_DENIED_AFTER: Final = re.compile(
    r"(?:(?:is|was|es|era)? ?(?:not|isnt|wasnt|wrong|incorrect|incorrecto)"
    r"|no (?:es|era|fue)"
    r"|(?:is|was|were|has been|had been|fue|fueron) (?:ruled out|rejected|cancell?ed|discarded|dropped|refused"
    r"|dismissed|turned down|descartad\w+|rechazad\w+|cancelad\w+))\b"
)
_SUBJECT_DENIED: Final = re.compile(
    r"(?:(?:did|does|do|has|had|could|would|will|can) not|didnt|doesnt|dont|hasnt|hadnt|couldnt|wouldnt|wont|cant"
    r"|cannot|no)\b"
)
_ALL_BUT: Final = re.compile(r"\b(?:any|every|all)\w* but (?:in |at |on |the )*\Z|\bmenos (?:en )?\Z")
_TURNED_DOWN: Final = re.compile(
    r"\b(?:refus\w+|reject\w+|declin\w+|cancel\w*|discard\w*|dropped|dismiss\w*|abandon\w*|gave up(?: on)?"
    r"|ruled out|turned down|sold|gave away|got rid of|threw away|vendi\w+|rechaz\w+"
    r"|descart\w+)(?: \w+){0,2} ?\Z"
)
_ASKS_WHAT_FAILED: Final = re.compile(
    r"\b(?:cancel\w*|sell\w*|sold|g[eo]t rid|g[ai]ve away|thr[eo]w\w* away|vend\w+"
    r"|g[ai]ve up|abandon\w*|drop\w*|discard\w*|dismiss\w*|turn\w* down|descart\w+)\b"
)
_ASKS_WHAT_TO_AVOID: Final = re.compile(
    r"\b(?:avoid\w*|skip\w*|stay away|leave out|forbid\w*|forbidden|ban|banned|not allowed|unavailable|evita\w*"
    r"|prohib\w+)\b"
)
_IS_FINE: Final = re.compile(
    r"\s*(?:is|are|es|son|esta|estan)? (?:fine|ok|okay|safe|allowed|no problem|bien|permitid\w+)\b"
)
_OTHERWISE: Final = re.compile(r"[^.;\n]{0,30}\b(?:but|sino)\b")


def _is_denied(match: Match, given: Sequence[Token], reply: str, answer: str, question: str) -> bool:
    """A negation governs the answer: "not X", "rather than X", "did not move to X"."""
    if any(token.text in _NEGATIONS for token in tokens_of(answer)):
        return False
    if _denies_a_part(given[match.first : match.last + 1]):
        return True
    plain = folded(reply)
    start, end = given[match.first].start, given[match.last].end
    asks_what_failed = _NEGATIVE_QUESTION.search(folded(question)) or _ASKS_WHAT_FAILED.search(folded(question))
    if _ALL_BUT.search(plain, max(0, start - 40), start) or re.match(
        r"[\s\"'*]*\?\W*no(?:t|pe)?\b", plain[end : end + 20]
    ):
        return True
    if _NEGATIVE_QUESTION.search(folded(question)) and _IS_FINE.match(plain, end):
        return True
    before = _clause_before(match.first, given)
    if _TURNED_DOWN.search(plain[max(0, start - 60) : start]) and not asks_what_failed:
        return True
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
        is_subject = not [word for word in words if word not in STOP_WORDS]
        denied = _DENIED_AFTER.match(after) or (is_subject and _SUBJECT_DENIED.match(after))
        return bool(denied) and not asks_what_failed
    if near and near[-1] in _PLAIN_DENIALS and words[-1] != "no":
        return not (_ASKS_WHAT_TO_AVOID.search(folded(question)) and not _OTHERWISE.match(plain, end))
    return not _NEGATIVE_QUESTION.search(folded(question))


def _denies_a_part(matched: Sequence[Token]) -> bool:
    """ "Friday, not Tuesday" has both words of "Tuesday and Friday"; in "flat no. 4", "no" is no denial."""
    return any(
        one.text == "instead"
        or (one.text in _PLAIN_DENIALS and not (one.text == "no" and following.kind == "number"))
        for one, following in pairwise(matched)
    )


def _clause_before(first: int, given: Sequence[Token]) -> Sequence[Token]:
    start = first
    while start > 0 and given[start - 1].text not in _CLAUSE_ENDS:
        start -= 1
    head = given[start - 1] if start > 0 else None
    # "rather than" and "instead of" begin a clause that they deny.
    begins_denial = head is not None and head.text in ("rather", "instead", "except")
    return given[start - 1 if begins_denial else start : first]


_CHANGES: Final = re.compile(
    r"\b(?:chang|mov|switch|updat|upgrad|correct|rais|increas|reduc|went|gone|goes|rose|ris|dropp|fell|cambi"
    r"|paso|pasa|mud|traslad"
    r"|subi|baj)\w*[^.;\n]{0,60}$"
)


def _is_superseded(match: Match, given: Sequence[Token], reply: str, question: str) -> bool:
    """The reply contrasts then and now, and the answer stands on the side of then."""
    plain = folded(reply)
    start, end = given[match.first].start, given[match.last].end
    changed = re.search(r"\b(?:from|de)\b[^.;\n]{0,60}$", plain[max(0, start - 80) : start])
    if (
        changed
        and re.match(r"[^.;\n]{0,20}?\b(?:to|a)\b", plain[end:])
        and re.search(_CHANGES, plain[max(0, start - 200) : start])
    ):
        return True
    after = _around(match, given, plain)[1]
    if (took_back := _CORRECTS_ITSELF.search(after)) and re.search(r"\w", after[took_back.end() :]):
        return True
    if _ASKS_ABOUT_THE_PAST.search(folded(question)):
        return False
    clause = plain[_last_break(plain, start) : start]
    if _NOW.search(clause) or _CHANGED.search(clause):
        return False
    if _LONG_OVER.search(clause) and _ASKS_ABOUT_NOW.search(folded(question)):
        return True
    once = _ONCE.search(clause) or _BEFORE_AFTERWARDS.match(plain, end)
    rest = plain[: start - len(clause)] + " | " + plain[end:]
    if given[match.first].kind == "number" and _HAD.search(clause) and _NOW_A_NUMBER.search(plain, end):
        return True
    return bool(
        (once and (_NOW.search(rest) or _CHANGED.search(rest)))
        or _THEN_REPLACED.match(plain, end)
        or (_WAS.search(clause) and (_NOW.search(rest) or _THEN_CHANGED.match(plain, end)))
    )


_ANSWERS: Final = re.compile(
    r"\b(?:(?:the|my|final|correct|right) answer(?: is| would be|:)|answer:|(?:la )?respuesta(?: final)?(?: es|:))"
    r"(?! (?:given|found|stated|in|from|based|clear|correct|right)\b)"
)
_CONCLUDES: Final = re.compile(
    r"(?:\A|(?<=[.!?\n]))\W*(?:so|thus|therefore|hence|in conclusion|overall"
    r"|por (?:lo )?tanto|asi que|en conclusion)\b"
)


def _is_overruled(match: Match, given: Sequence[Token], reply: str, question: str) -> bool:
    """The reply states its conclusion later; what it says on the way there is not its answer."""
    plain = folded(reply)
    end = given[match.last].end
    if _ANSWERS.search(plain, end):
        return True
    asked = [token for _, token in content_of(tokens_of(question))]
    for found in _CONCLUDES.finditer(plain, end):
        close = re.search(r"[.!?\n]\s|\Z", plain[found.end() :])
        said = [token for _, token in content_of(tokens_of(plain[found.end() : found.end() + close.start()]))]  # type: ignore[union-attr]
        known = [any(same_token(one, token) for one in asked) for token in said]
        if any(known) and not all(known):
            return True
    return False


_NEW_VERB: Final = re.compile(r"\b(?:and|y) (?=(?:is|are|am|has|have|now|es|son|esta|estan|ahora|soy|tiene)\b)")
"""A second verb in the present tense begins a clause: "you were a baker and are a postman now"."""


def _last_break(plain: str, start: int) -> int:
    marks = (",", ".", ";", ": ", "(", "—", "\n", " but ", " pero ")
    breaks = [found.end() for found in _NEW_VERB.finditer(plain, 0, start)]
    return max(*(plain.rfind(mark, 0, start) + 1 for mark in marks), *breaks)


_NO_ALTERNATIVE: Final = frozenset(
    "so more less later earlier thereabouts better higher lower fewer nearby menos mas".split()
)


def _is_alternative(match: Match, given: Sequence[Token], reply: str, answer: str) -> bool:
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
    if _leads_to_or(match.last + 1, given) or _ASKS_BACK.match(folded(reply), given[match.last].end):
        return True
    before = [token.text for token in given[max(0, match.first - 4) : match.first]]
    if "between" in before or "entre" in before or "either" in before:
        return True
    tail = [word for word in before if word not in STOP_WORDS and word not in (",", "maybe", "possibly", "perhaps")]
    return bool(tail) and tail[-1] in ("or", "/", "o", "u")


def _leads_to_or(place: int, given: Sequence[Token]) -> bool:
    """Whether the things of a list follow, and the last after an "or": "…, Girona or Lleida"."""
    words = 0
    commas = 0
    for token in given[place : place + 20]:
        if token.text in ("or", "o", "u"):
            return commas > 0 and words > 0
        if token.text == ",":
            commas, words = commas + 1, 0
        elif token.kind == "mark" or (commas == 0) or token.text in STOP_WORDS - {"the", "a"} or words >= 3:
            return False
        else:
            words += 1
    return False


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
    is_end = _RANGE_BEFORE.search(before) and not _CHANGES.search(before)
    return bool(_RANGE_AFTER.match(plain, end) or is_end)


_OFFERS: Final = re.compile(
    r"\b(?:options?|candidates?|possib\w+|choices?|alternatives?|opcion\w*|candidat\w+|posib\w+|alternativas?)\b"
    r"[^.;\n]{0,40}?(?:\bare|\binclude|\bson|:)"
)


def _is_candidate(match: Match, given: Sequence[Token], reply: str, answer: str, among: int) -> bool:
    """The reply is a bare list of things, or offers several, and the answer is one of them."""
    if len(enumeration(answer)) > 1 or any(token.text == "," for token in tokens_of(answer)):
        return False
    if _CORRECTS_ITSELF.search(folded(reply)):
        return False
    first, last = given[match.first], given[match.last]
    offers = _OFFERS.search(folded(reply), 0, first.start)
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
    if len(filled) < (2 if offers else 3) or (among > 1 and len(filled) <= 2 * among):
        return False
    if any(len(segment) > 3 or _is_clause(segment) for segment in filled):
        return False
    mine = next((segment for segment in filled if segment[0].start <= first.start <= segment[-1].start), [])
    if not mine or mine[0].start != first.start or mine[-1].end != last.end:
        return False
    alike = all(segment[0].kind == mine[0].kind for segment in filled)
    is_place_name = mine is filled[0] and len(filled) == 3 and not offers and not in_lines
    return alike and not is_place_name


def _without_list_numbers(given: Sequence[Token]) -> list[Token]:
    """The tokens without the numbers that begin the lines of a list ("1. tea")."""
    return [
        token
        for place, token in enumerate(given)
        if not (
            token.kind == "number"
            and (place == 0 or given[place - 1].text == "\n")
            and place + 1 < len(given)
            and given[place + 1].text in (".", ")")
            and given[place + 1].start == token.end
        )
    ]


def _is_clause(segment: Sequence[Token]) -> bool:
    """Whether a part of a list is a clause: it has a small word that names of things do without."""
    return any(
        token.kind == "word" and token.text in STOP_WORDS - {"the", "a", "an", "el", "la"} for token in segment
    )
