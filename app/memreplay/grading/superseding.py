"""Whether a reply takes an answer back, or calls it outdated: "14, no wait, 15", "was X, now Y", "from X to Y".

Everything works on the form of the reply, in English and Spanish.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from memreplay.grading.equivalence import Match
from memreplay.grading.lexing import Token, folded
from memreplay.grading.tokens import same_token
from memreplay.grading.vocabulary import DAY_NAMES

_NOW: Final = re.compile(
    r"\b(?:now|(?:has|have) since|(?:has|have) been [^.;\n]{0,40}since|currently|these days|nowadays|at present"
    r"|as of|since (?!(?:he|she|it|they|you|i|we|the|there|that)\b)\w+|ahora|actualmente|hoy en dia)\b"
)
_CHANGED: Final = re.compile(
    r"\b(?:(?:changed|switched|moved|updated|upgraded|corrected|raised|increased|reduced|lowered|rescheduled"
    r"|postponed"
    r"|(?:gone|went) (?:up|down)|rose|dropped|fell) (?:it )?to|became|replaced by|cambio a|paso a ser|se mudo a)\b"
)
_ONCE: Final = re.compile(
    r"\b(?:used to|previously|formerly|originally|initially|at first|no longer|earlier|until|once|(?:started"
    r"|began) (?:out|off|with|as)|before (?:that|then)|antes"
    r"|al principio|inicialmente|originalmente|ya no|solia)\b"
)
_REPLACED: Final = re.compile(
    r"(?:, which)?[^.;,\n]{0,30}\b(?:replaced (?:by|with)|superseded by|(?:changed|updated|corrected|amended) to"
    r"|(?:reemplazad|sustituid|cambiad)[oa] por)\b"
    r"|[^.\n]{0,60}\b(?:but|then|later|pero|luego|despues)\b[^.;\n]{0,20}\b(?:changed|switched|moved|corrected|updated"
    r"|amended|revised|pushed|cambi\w+|correg\w+|corrig\w+) (?:it|that|this|them) (?:to|for|a|por)\b"
)
_WAS: Final = re.compile(
    r"\b(?:was|were|had been|lived|worked|played|owned|studied|rented|stayed|cost|era|eran|fue|vivia|tenia|estaba"
    r"|trabajaba|jugaba|tocaba|costaba|estudiaba)\b"
)
_ASKS_ABOUT_THE_PAST: Final = re.compile(
    r"\b(?:before|previous\w*|former\w*|original\w*|initial\w*|first|used to|old|earlier|until|once|prior|antes"
    r"|(?:replac|supersed|succe|chang|swap|switch|sell|sold|took over|reemplaz|sustitu|cambi)\w*"
    r"|(?:in|en) (?:19|20)\d\d|back then|at the time|anterior\w*|primer\w*|inicial\w*|antigu\w*)\b"
)
CORRECTS_ITSELF: Final = re.compile(
    r"(?:\b(?:no,? wait|wait,? no|(?:oh|hmm+|ah|uh),? wait|(?:hmm+|oh|ah|uh|wait|well|sorry|perdon),? no"
    r"|(?<!and )i mean|(?<=[.,;—–-] )(?:sorry|perdon|correction|correccion)|scratch that|make that|or rather|digo"
    r"|mejor dicho|quiero decir|strike that|i got (?:that|it) wrong|(?:i )?(?:misspoke|mixed (?:that|it|them"
    r"|those|this) up|misread (?:that|it|this))|my (?:mistake|bad|apologies)|apologies|edit(?=:)"
    r"|on (?:re-?reading|closer inspection)|(?:looking|look|reading|checking) (?:again|closer|more closely|back)"
    r"|hold on|me (?:he )?equivo[cq]\w+|rectifico|corrijo|miento|on (?:second thoughts?|reflection)"
    r"|let me correct (?:that|myself))\b"
    r"|(?:\.\.|…|[,;.?\n—–-])\s{0,9}(?:no,? )?actually(?:,|\s(?:it|no|that|make)\b))"
)
_REPLACES: Final = re.compile(
    r"\b(?:replac\w+|t(?:ook|akes|aking|aken) over (?:\w+ ){0,3}?from|succeed\w+|reemplazo a|sustituyo a"
    r"|stepp\w+ in for|(?:up|down) from)(?: \w+){0,2}\s*\Z"
    r"|[(\[]\W*(?:it )?(?:was|were|previously|formerly|originally|before|earlier|old|ex|instead of|not|up from"
    r"|down from|from|antes|era)\b[^()\[\]]*\Z"
)
_SWAPPED: Final = re.compile(
    r"\b(?:swapp|exchang|trad|replac|ditch|dropp|switch|sold|abandon|cambi|sustitu|reemplaz)\w*(?: \w+){0,2}\s*\Z"
)
_SWAPPED_FOR: Final = re.compile(r"(?: \w+)? (?:for|with|by|in favou?r of|por) \w")
_LEFT: Final = re.compile(
    r"\W*(?:left|moved|retired|resigned|quit|stepped down|stopped|closed|shut|folded|broke|died|se jubilo|se fue)\b"
)
_SO_NOW: Final = re.compile(r"\b(?:so|now|these days|since then|ahora)\b")
_WHEN: Final = re.compile(r"\b(?:when|after|because|since|once|cuando)(?: \w+){0,2}\s*\Z")
_BEFORE_AFTERWARDS: Final = re.compile(r"[^.;,\n]{0,30}\b(?:before|until|originally|at first|antes|hasta)\b")
CHANGES: Final = re.compile(
    r"\b(?:chang|mov|switch|updat|upgrad|downgrad|correct|rais|increas|reduc|lower|went|gone|goes|rose|ris|dropp|fell"
    r"|push|postpon|brought|bring|grow|grew|shr[iau]nk|climb|jump|cut|extend|shift|reschedul|swap|transferr|convert"
    r"|migrat|promot|adjust|revis|amend|cambi|paso|pasa|mud|traslad|aplaz|adelant|retras|subi|baj"
    r")\w*(?:[^.;\n]|\.(?=\d)){0,60}$"
)
_NEAR: Final = 80
"""Characters. Only what stands so near the answer speaks of it."""


def around(match: Match, given: Sequence[Token], plain: str) -> tuple[str, str]:
    """What stands before and after an answer and may speak of it."""
    start, end = given[match.first].start, given[match.last].end
    return plain[max(0, start - _NEAR) : start], plain[end : end + _NEAR]


_WITHIN: Final = r"(?:[^.;\n]|\.(?=\d))"
"""Any character of a clause; a decimal point ends none."""
_FROM: Final = re.compile(rf"\b(?:from|de|del)\b{_WITHIN}{{0,60}}$")
_TO: Final = re.compile(rf"{_WITHIN}{{0,20}}?\b(?:to|a|al)\b")

_TO_BEFORE: Final = re.compile(rf"\bto\b{_WITHIN}{{0,30}}\bfrom(?: \w+){{0,2}}\s*$")


def is_superseded(match: Match, given: Sequence[Token], reply: str, question: str) -> bool:
    """The reply contrasts then and now, and the answer stands on the side of then."""
    plain = folded(reply)
    start, end = given[match.first].start, given[match.last].end
    before = plain[max(0, start - 200) : start]
    changed = _FROM.search(before[-80:])
    is_first = _TO.match(plain, end) or _TO_BEFORE.search(before)
    if changed and not _TO.search(changed[0]) and CHANGES.search(before) and is_first:
        return True
    after = around(match, given, plain)[1]
    if (took_back := CORRECTS_ITSELF.search(after)) and re.search(r"\w", after[took_back.end() :]):
        return True
    asked = folded(question)
    if _ASKS_ABOUT_THE_PAST.search(asked):
        return False
    if (
        _REPLACED.match(plain, end)
        or _REPLACES.search(before)
        or (_SWAPPED.search(before) and _SWAPPED_FOR.match(plain, end))
        or (_LEFT.match(plain, end) and (_WHEN.search(before) or _SO_NOW.search(plain, end)))
    ):
        return True
    clause = plain[_last_break(plain, start) : start]
    once = _ONCE.search(clause) or _BEFORE_AFTERWARDS.match(plain, end)
    rest = plain[: start - len(clause)] + " | " + plain[end:]
    return bool(
        (once and (_NOW.search(rest) or _CHANGED.search(rest) or _is_revised(match, given, plain[end:])))
        or (_WAS.search(clause) and _NOW.search(rest))
    )


def _is_revised(match: Match, given: Sequence[Token], after: str) -> bool:
    """Whether another figure of the same kind was given before, or follows after a "but": "at first 3, but"
    " now 4"."""
    one = given[match.first]
    if one.kind == "word":
        return _BUT.match(after) is not None
    alike = [
        token for token in given if (token.kind, token.extra) == (one.kind, one.extra) and token.value != one.value
    ]
    return any(token.start < one.start or _BUT.match(after) for token in alike)


_BUT: Final = re.compile(r"[^.;\n]{0,20}\b(?:but|then|later|pero|luego|despues)\b(?! (?:only|solo|just))")
_ANSWERS: Final = re.compile(
    r"\b(?:(?:the|my|final|correct|right) answer(?: is| would be|:)|answer:|(?:la )?respuesta(?: final)?(?: es|:))"
    r"(?! (?:given|found|stated|in|from|based|clear|correct|right)\b)"
)


_CONCLUDES: Final = re.compile(
    r"(?:\b(?:so|thus|therefore|hence|(?:that|which) (?:leaves|makes|gives)|por (?:lo )?tanto|asi que)\b|=)"
    r"(?![^.\n]*\b(?:each|per|apiece|cada)\b)[^.\n]*"
)


def is_overruled(match: Match, given: Sequence[Token], reply: str) -> bool:
    """The reply states its conclusion later; what it says on the way there is not its answer."""
    plain, one = folded(reply), given[match.first]
    end = given[match.last].end
    if _ANSWERS.search(plain, end):
        return True
    is_day = one.text in DAY_NAMES
    return any(
        (token.text in DAY_NAMES if is_day else (token.kind, token.extra) == (one.kind, one.extra) != ("word", ""))
        and not same_token(one, token)
        for found in _CONCLUDES.finditer(plain, end)
        for token in given[_first_from(found.start(), given) : _first_from(found.end(), given)]
    )


def _first_from(place: int, given: Sequence[Token]) -> int:
    """The index of the first token that begins at a place of the text or behind it."""
    return bisect_left(given, place, key=attrgetter("start"))


_NEW_VERB: Final = re.compile(r"\b(?:and|y) (?=(?:is|are|am|has|have|now|es|son|esta|estan|ahora|soy|tiene)\b)")
"""A second verb in the present tense begins a clause: "you were a baker and are a postman now"."""


def _last_break(plain: str, start: int) -> int:
    marks = (",", ".", ";", ": ", "(", "—", "\n", " but ", " pero ")
    breaks = [found.end() for found in _NEW_VERB.finditer(plain, 0, start)]
    return max(*(plain.rfind(mark, 0, start) + 1 for mark in marks), *breaks)
