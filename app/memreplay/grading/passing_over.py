"""Whether a reply names something only to pass over it: "after thinking about Osaka, they went to Kyoto".

What it names may have been considered, nearly chosen, asked about, or supposed under a condition. Everything works
on the form of the reply, in English and Spanish.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memreplay.grading.equivalence import Match
from memreplay.grading.lexing import Token, folded
from memreplay.grading.vocabulary import IRREGULAR_PASTS

_CONSIDERED: Final = re.compile(
    r"\b(?:(?:think|thinking|thought) (?:about|of)|consider\w*|look(?:ed|ing) (?:at|into)|tempted by|toy\w* with"
    r"|wanted|hop(?:ed|ing) for|dream(?:ed|t|ing) of|plann\w+|intended|meant|(?:was|were) about to|almost|nearly"
    r"|(?:would|d) (?:have )?(?:expected|expect|thought|guessed|preferred|prefer|chosen|liked)|expected"
    r"|pens(?:aba|aban|o|aron|ando|ado)(?: en)?"
    r"|at first (?:glance|sight)|(?:one|you|people) (?:would|might|could) (?:say|think|assume)|a primera vista"
    r"|dud\w+ (?:con|entre)|queri\w+|plane\w+|(?:iba|iban) a|casi|a punto de)\b[^.;\n]{0,40}\Z"
)
_PAST: Final = rf"(?:\w+ed|{'|'.join(IRREGULAR_PASTS)})"
_THEN_ELSE: Final = re.compile(
    r"[^.\n]{0,60}?(?:[;:]|\.\s+(?:but|however|pero|yet|actually)\b"
    r"|\b(?:but|however|instead|then|before \w+ing|until|finally|ended up|settled (?:on|for)"
    rf"|in the end|pero|sino|al final|luego|finalmente|and (?:then |so )?{_PAST})\b"
    r"|, (?:they|he|she|it|we|i|you|[a-z]+ (?:went|chose|bought|took))\b)"
)
_BUT_BEFORE: Final = re.compile(r"\b(?:although|though|but|whereas|having|aunque|pero)\b")
_ASKS_WHAT_WAS_CONSIDERED: Final = re.compile(
    r"\b(?:th(?:ink|ought)\w*|consider\w*|look\w* (?:at|into|for)|want\w*|wish\w*|hop(?:e|ed|ing)|dream\w*|plan\w*"
    r"|intend\w*|idea|goal|aim|ambition|prefer\w*|expect\w*|like|first|original\w*|before|alternativ\w*|almost|nearly"
    r"|interest\w*|pursu\w*|future|next|hope\w*|think\w*|career|pens\w*|quier\w*|queri\w*|sue[n]\w*|plane\w*|prefier\w*|casi|antes)\b"
)
_NOT_QUITE: Final = re.compile(r"\b(?:almost|nearly|close to|not quite|just under|casi|cerca de)\s+[£$€]?\Z")
_CONDITION: Final = re.compile(r"\b(?:if|unless|si|a menos que|salvo que)\b")
_WOULD: Final = re.compile(r"\b(?:would|could|podria\w*|[a-z]{3,}ria[ns]?)\b")
_SENTENCE_END: Final = re.compile(r"[.!?\n]")


def is_passed_over(match: Match, given: Sequence[Token], reply: str, question: str) -> bool:
    """Whether the reply names the matched words without giving them as its answer."""
    plain, asked = folded(reply), folded(question)
    start, end = given[match.first].start, given[match.last].end
    return (
        (_was_only_considered(plain, start, end) and not _ASKS_WHAT_WAS_CONSIDERED.search(asked))
        or _is_missed_number(match, given, plain, start, end)
        or (_is_supposed(plain, start, end) and not (_WOULD.search(asked) or _CONDITION.search(asked)))
        or bool(_ASKED_WHETHER.search(plain[:start]) and not _ASKS_WHAT_WAS_ASKED.search(asked))
    )


def _was_only_considered(plain: str, start: int, end: int) -> bool:
    clause = plain[max(plain.rfind(mark, 0, start) for mark in (".", ";", "\n", " but ", " pero ")) + 1 : start]
    if not (considered := _CONSIDERED.search(clause)):
        return False
    return bool(_THEN_ELSE.match(plain, end) or _BUT_BEFORE.search(clause, 0, considered.start()))


def _is_missed_number(match: Match, given: Sequence[Token], plain: str, start: int, end: int) -> bool:
    """ "Nearly 40: 39": another number follows at once."""
    is_number = given[match.first].kind == "number"
    return is_number and bool(_NOT_QUITE.search(plain[:start]) and re.match(r"[^\w]{1,3}[£$€]?\d", plain[end:]))


def _is_supposed(plain: str, start: int, end: int) -> bool:
    """The answer stands in a conditional sentence, and another sentence answers."""
    breaks = [found.end() for found in _SENTENCE_END.finditer(plain, 0, start)]
    begin = breaks[-1] if breaks else 0
    close = _SENTENCE_END.search(plain, end)
    sentence = plain[begin : close.start() if close else len(plain)]
    has_more = bool(re.search(r"\w", plain[:begin]) or (close and re.search(r"\w", plain[close.end() :])))
    return has_more and bool(_WOULD.search(sentence) and _CONDITION.search(sentence))


_ASKED_WHETHER: Final = re.compile(
    r"\b(?:ask(?:ed|s)?|wonder(?:ed|s)?|pregunt\w+)\b[^.,;\n]{0,30}\b(?:whether|if|si)\b[^.,;\n]{0,40}\Z"
)
_ASKS_WHAT_WAS_ASKED: Final = re.compile(r"\b(?:ask|wonder|question|pregunt)\w*")
