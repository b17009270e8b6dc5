"""Whether a reply takes an answer back, or calls it outdated: "14, no wait, 15", "was X, now Y", "from X to Y".

Everything works on the form of the reply, in English and Spanish.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memreplay.grading.equivalence import Match
from memreplay.grading.lexing import Token, folded
from memreplay.grading.tokens import content_of, same_token, tokens_of

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
_IN_THE_PAST: Final = re.compile(
    r"\W{0,2}(?:was|were|used to be|had been|era|fue)\b|[^.;\n]{0,40}"
    r"\b(?:in the past|back then|at the time|at one time|en el pasado|entonces)\b"
)
_REPLACED: Final = re.compile(
    r"(?:, which)?[^.;,\n]{0,30}\b(?:replaced (?:by|with)|superseded by|(?:changed|updated|corrected|amended) to"
    r"|(?:reemplazad|sustituid|cambiad)[oa] por)\b"
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
    r"|(?:in|en) (?:19|20)\d\d|back then|at the time|anterior\w*|primer\w*|inicial\w*|antigu\w*)\b"
)
CORRECTS_ITSELF: Final = re.compile(
    r"(?:\b(?:no,? wait|wait,? no|(?:oh|hmm+|ah|uh),? wait|(?:hmm+|oh|ah|uh|wait|well|sorry|perdon),? no"
    r"|(?<!and )i mean|(?<=[.,;—–-] )(?:sorry|perdon|correction|correccion)|scratch that|make that|or rather|digo"
    r"|mejor dicho|quiero decir|strike that|i got (?:that|it) wrong"
    r"|(?:i )?(?:misspoke|mixed (?:that|it|them|those|this) up|misread (?:that|it|this))"
    r"|my (?:mistake|bad|apologies)|apologies|edit(?=:)|on (?:re-?reading|closer inspection)"
    r"|(?:looking|look|reading|checking) (?:again|closer|more closely|back)|hold on"
    r"|me (?:he )?equivo[cq]\w+|rectifico|corrijo|miento"
    r"|on (?:second thoughts?|reflection)|let me correct (?:that|myself))\b"
    r"|(?:\.\.|…|[,;.?\n—–-])\s*(?:no,? )?actually(?:,|\s(?:it|no|that|make)\b))"
)
_REPLACES: Final = re.compile(
    r"\b(?:replaced|replaces|took over from|succeeded|reemplazo a|sustituyo a)(?: \w+)?\s*\Z"
)
_ASKS_WHAT_WAS_REPLACED: Final = re.compile(r"\b(?:replac|supersed|chang|reemplaz|sustitu|cambi)\w*")
_BEFORE_AFTERWARDS: Final = re.compile(r"[^.;,\n]{0,30}\b(?:before|until|originally|at first|antes|hasta)\b")
CHANGES: Final = re.compile(
    r"\b(?:chang|mov|switch|updat|upgrad|correct|rais|increas|reduc|went|gone|goes|rose|ris|dropp|fell|cambi"
    r"|paso|pasa|mud|traslad"
    r"|subi|baj)\w*(?:[^.;\n]|\.(?=\d)){0,60}$"
)
_SHORT: Final = 300
_NEAR: Final = 80
"""Characters. In a longer text than ``_SHORT``, only what stands so near the answer speaks of it."""


def around(match: Match, given: Sequence[Token], plain: str) -> tuple[str, str]:
    """What stands before and after an answer and may speak of it."""
    start, end = given[match.first].start, given[match.last].end
    near = len(plain) if len(plain) <= _SHORT else _NEAR
    return plain[max(0, start - near) : start], plain[end : end + near]


_WITHIN: Final = r"(?:[^.;\n]|\.(?=\d))"
"""Any character of a clause; a decimal point ends none."""
_FROM: Final = re.compile(rf"\b(?:from|de)\b{_WITHIN}{{0,60}}$")
_TO: Final = re.compile(rf"{_WITHIN}{{0,20}}?\b(?:to|a)\b")


def is_superseded(match: Match, given: Sequence[Token], reply: str, question: str) -> bool:
    """The reply contrasts then and now, and the answer stands on the side of then."""
    plain = folded(reply)
    start, end = given[match.first].start, given[match.last].end
    changed = _FROM.search(plain[max(0, start - 80) : start])
    if changed and _TO.match(plain, end) and re.search(CHANGES, plain[max(0, start - 200) : start]):
        return True
    after = around(match, given, plain)[1]
    if (took_back := CORRECTS_ITSELF.search(after)) and re.search(r"\w", after[took_back.end() :]):
        return True
    if _ASKS_ABOUT_THE_PAST.search(folded(question)):
        return False
    clause = plain[_last_break(plain, start) : start]
    if _NOW.search(clause) or _CHANGED.search(clause):
        return False
    if (_LONG_OVER.search(clause) or _REPLACES.search(plain, 0, start)) and _ASKS_ABOUT_NOW.search(
        folded(question)
    ):
        return True
    if _REPLACED.match(plain, end) and not _ASKS_WHAT_WAS_REPLACED.search(folded(question)):
        return True
    once = _ONCE.search(clause) or _BEFORE_AFTERWARDS.match(plain, end) or _IN_THE_PAST.match(plain, end)
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


def is_overruled(match: Match, given: Sequence[Token], reply: str, question: str) -> bool:
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
