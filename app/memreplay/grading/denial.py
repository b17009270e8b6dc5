"""Whether a negation governs an answer in a reply: "not X but Y", "rather than X", "X was ruled out".

Everything works on the form of the reply, in English and Spanish.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from memreplay.grading.equivalence import Match
from memreplay.grading.lexing import Token, folded
from memreplay.grading.tokens import tokens_of
from memreplay.grading.vocabulary import STOP_WORDS

NEGATIONS: Final = frozenset(
    "not no never neither nor without cannot isnt wasnt arent werent doesnt dont didnt cant couldnt wont wouldnt"
    " shouldnt hasnt havent hadnt aint nunca jamas ni sin tampoco".split()
)
_PLAIN_DENIALS: Final = frozenset("not no neither nor isnt wasnt arent werent aint tampoco ni".split())
"""Negations that deny what follows by themselves; the others negate a verb, and say something true of it."""
_CLAUSE_ENDS: Final = frozenset(
    "but however although though except rather instead yet now currently because since so then sino pero aunque -"
    " ahora actualmente porque ; . ! ? : \n ( ) — – ,".split(" ")
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
    r"|descart\w+|(?:advis|warn|decid|vot|recommend|argu|counsell?|spoke|speak)\w* against|desaconsej\w+"
    r"|desmint\w+|den(?:y|ies|ied))(?: \w+){0,2}[ -]?\Z"
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


def is_denied(match: Match, given: Sequence[Token], reply: str, answer: str, question: str) -> bool:
    """A negation governs the answer: "not X", "rather than X", "did not move to X"."""
    if any(token.text in NEGATIONS for token in tokens_of(answer)):
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
    near = [word for word in words if word not in STOP_WORDS or word in NEGATIONS][-4:]
    if _DENIES_NOTHING.search(joined):
        return False
    negated = [word for word in near if word in NEGATIONS]
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
