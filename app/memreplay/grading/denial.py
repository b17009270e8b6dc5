"""Whether a reply denies an answer, or names it only to pass over it; and which of yes and no it says.

A negation governs what it stands before ("not X but Y", "rather than X") or after ("X was ruled out"). What a reply
passes over may have been considered, nearly chosen, asked about, or supposed under a condition. Everything works on
the form of the reply, in English and Spanish.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Literal

from memreplay.grading.equivalence import Match
from memreplay.grading.lexing import Token, folded
from memreplay.grading.superseding import CORRECTS_ITSELF
from memreplay.grading.tokens import content_of, same_token, tokens_of
from memreplay.grading.vocabulary import IRREGULAR_PASTS, STOP_WORDS

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
    r"\b(?:(?:ca|do|does|did|is|was|are|were|wo|would|could|should|has|have|had)n['’]?t|cannot|not|never|no|avoid"
    r"|avoids|avoided|allergic|allergy|except|hate|hates|dislike|dislikes|refuse|refuses|without|forbid|forbidden"
    r"|forbade|ban|banned|quit|stop|stopped|skip|miss|missed|fail|failed|reject|rejected|decline|declined"
    r"|le(?:ave|ft) out|omit\w*|exclud\w*|missing|remov\w*|lack\w*|stay away|instead|rule out|ruled|nt|prohib\w+"
    r"|evita\w*|alergi\w+|nunca|jamas|sin|odia\w*|dej\w+ de|rechaz\w+|instruct\w*|told|tell|ask|asked|pid\w+"
    r"|dijo|cancel\w*|clos\w*|scrap\w*|sell\w*|sold|g[eo]t rid|g[ai]ve (?:away|up)|thr[eo]w\w* away|vend\w+"
    r"|abandon\w*|drop\w*|discard\w*|dismiss\w*|turn\w* down|descart\w+)\b"
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
    r"(?:(?:is|was|es|era)? ?(?:not|isnt|wasnt|wrong|incorrect|incorrecto)|no (?:es|era|fue)|(?:is|was|were"
    r"|has been|had been|fue|fueron) (?:ruled out|rejected|cancell?ed|discarded|dropped|refused|dismissed"
    r"|turned down|descartad\w+|rechazad\w+|cancelad\w+))\b"
)
_SUBJECT_DENIED: Final = re.compile(
    r"(?:(?:did|does|do|has|had|could|would|will|can) not|didnt|doesnt|dont|hasnt|hadnt|couldnt|wouldnt|wont|cant"
    r"|cannot|no)\b"
)
_ALL_BUT: Final = re.compile(r"\b(?:any|every|all)\w* but (?:in |at |on |the )*\Z|\bmenos (?:en )?\Z")
_TURNED_DOWN: Final = re.compile(
    r"\b(?:refus\w+|reject\w+|declin\w+|cancel\w*|discard\w*|dropped|dismiss\w*|abandon\w*|gave up(?: on)?"
    r"|ruled out|turned down|sold|gave away|got rid of|closed|scrapped|stopped (?:using|going to)|threw away"
    r"|vendi\w+|rechaz\w+|descart\w+|(?:advis|warn|decid|vot|recommend|argu|counsell?|spoke|speak)\w* against"
    r"|desaconsej\w+|desmint\w+|den(?:y|ies|ied)|(?<!no )(?<!without a )doubt\w*)(?: \w+){0,2}[ -]?\Z"
)
_THROWN_OUT: Final = re.compile(r" (?:out|away|off|overboard|over)\b")
_THREW: Final = re.compile(r"\b(?:threw|thrown?|chucked|cast|tossed|put|passed)(?: \w+)?\s\Z")
_ASKS_WHAT_TO_AVOID: Final = re.compile(
    r"\b(?:avoid\w*|skip\w*|stay away|leave out|forbid\w*|forbidden|ban|banned|not allowed|unavailable|evita\w*"
    r"|prohib\w+)\b"
)
_IS_FINE: Final = re.compile(
    r"\s*(?:is|are|es|son|esta|estan)? (?:fine|ok|okay|safe|allowed|no problem|bien|permitid\w+)\b"
)


def is_denied(match: Match, given: Sequence[Token], reply: str, answer: str, question: str) -> bool:
    """A negation governs the answer: "not X", "rather than X", "did not move to X"."""
    if any(token.text in NEGATIONS for token in tokens_of(answer)):
        return False
    if _denies_a_part(given[match.first : match.last + 1]):
        return True
    plain = folded(reply)
    start, end = given[match.first].start, given[match.last].end
    asks_what_failed = _NEGATIVE_QUESTION.search(folded(question)) is not None
    if _ALL_BUT.search(plain, max(0, start - 40), start) or re.match(
        r"[^.?!\n]{0,20}\?\W*no(?:t|pe)?\b", plain[end : end + 40]
    ):
        return True
    if asks_what_failed and _IS_FINE.match(plain, end):
        return True
    before = _clause_before(match.first, given)
    said = plain[max(0, start - 60) : start]
    is_gone = _TURNED_DOWN.search(said) or (_THREW.search(said) and _THROWN_OUT.match(plain, end))
    if is_gone and not asks_what_failed:
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
        return not _ASKS_WHAT_TO_AVOID.search(folded(question))
    return not asks_what_failed


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


_CONSIDERED: Final = re.compile(
    r"\b(?:(?:think|thinking|thought) (?:about|of)|consider\w*|look(?:ed|ing) (?:at|into)|tempted by|toy\w* with"
    r"|wanted|suggest\w*|propos\w*|offer\w*|counter\w*|quot\w*|hop(?:ed|ing) for|dream(?:ed|t|ing) of"
    r"|plann\w+|intended|meant|(?:was|were) (?:about|going|due|set|supposed) to|almost|nearly"
    r"|(?:would|d) (?:have )?(?:expected|expect|thought|guessed|preferred|prefer|chosen|liked)|expected"
    r"|pens(?:aba|aban|o|aron|ando|ado)(?: en)?"
    r"|at first (?:glance|sight)|(?:one|you|people) (?:would|might|could) (?:say|think|assume)|a primera vista"
    r"|dud\w+ (?:con|entre)|queri\w+|plane\w+|(?:iba|iban) a|casi|a punto de)\b[^.;\n]{0,40}\Z"
)
_PAST: Final = rf"(?:\w+ed|{'|'.join(IRREGULAR_PASTS)})"
_THEN_ELSE: Final = re.compile(
    r"[^.\n]{0,60}?(?:[;:]|\.\s+(?:but|however|pero|yet|actually)\b|\b(?:but|however|instead|then|before \w+ing"
    r"|until|finally|ended up|settled (?:on|for)|agreed|decided|compromised"
    rf"|in the end|pero|sino|al final|luego|finalmente|and (?:then |so )?{_PAST})\b"
    r"|, (?:they|he|she|it|we|i|you|[a-z]+ (?:went|chose|bought|took))\b)"
)
_BUT_BEFORE: Final = re.compile(r"\b(?:although|though|but|whereas|having|aunque|pero)\b")
_ASKS_WHAT_WAS_CONSIDERED: Final = re.compile(
    r"\b(?:th(?:ink|ought)\w*|suggest\w*|propos\w*|offer\w*|quot\w*|consider\w*|look\w* (?:at|into|for)"
    r"|want\w*|wish\w*|hop(?:e|ing)\w*|dream\w*|plan\w*|intend\w*|idea|goal|aim|ambition|prefer\w*|expect\w*|like"
    r"|first|original\w*|before|alternativ\w*|almost|nearly|interest\w*|pursu\w*|future|next|career|pens\w*|qu[ie]er\w*"
    r"|suen\w*|prefier\w*|casi|antes)\b"
)
_CONDITION: Final = re.compile(r"\b(?:if|unless|si|a menos que|salvo que)\b")
_WOULD: Final = re.compile(r"\b(?:would|could|podria\w*|[a-z]{3,}ria[ns]?)\b")
_SENTENCE_END: Final = re.compile(r"[.!?\n]")


def is_passed_over(match: Match, given: Sequence[Token], reply: str, question: str) -> bool:
    """Whether the reply names the matched words without giving them as its answer."""
    plain, asked = folded(reply), folded(question)
    start, end = given[match.first].start, given[match.last].end
    is_asked = _ASKS_WHAT_WAS_CONSIDERED.search(asked) or _WOULD.search(asked) or _CONDITION.search(asked)
    if not is_asked and (_was_only_considered(plain, start, end) or _is_supposed(plain, start, end)):
        return True
    return bool(_ASKED_WHETHER.search(plain, 0, start)) and not _ASKS_WHAT_WAS_ASKED.search(asked)


def _was_only_considered(plain: str, start: int, end: int) -> bool:
    clause = plain[max(plain.rfind(mark, 0, start) for mark in (".", ";", "\n", " but ", " pero ")) + 1 : start]
    if not (considered := _CONSIDERED.search(clause)):
        return False
    if re.match(rf"(?:almost|nearly|casi) {_PAST}\b", considered[0]):
        return True
    return bool(_THEN_ELSE.match(plain, end) or _BUT_BEFORE.search(clause, 0, considered.start()))


def _is_supposed(plain: str, start: int, end: int) -> bool:
    """The answer stands in a conditional sentence, and another sentence answers."""
    *earlier, before = _SENTENCE_END.split(plain[:start])
    after, *later = _SENTENCE_END.split(plain[end:])
    has_more = re.search(r"\w", "".join(earlier + later)) is not None
    sentence = f"{before}|{after}"
    return has_more and bool(_WOULD.search(sentence) and _CONDITION.search(sentence))


_ASKED_WHETHER: Final = re.compile(
    r"\b(?:ask(?:ed|s)?|wonder(?:ed|s)?|pregunt\w+)\b[^.,;\n]{0,30}\b(?:whether|if|si)\b[^.,;\n]{0,40}\Z"
)
_ASKS_WHAT_WAS_ASKED: Final = re.compile(r"\b(?:ask|wonder|question|pregunt)\w*")


Polarity = Literal["yes", "no"]

_MAYBE: Final = r"(?:(?:most |very )?(?:likely|probably|presumably|possibly)|probablemente|seguramente)"
_EXPECTED: Final = re.compile(
    rf"\W*(?:{_MAYBE}\W+)?(?P<says>yes|no|si)(?:\W+{_MAYBE})?(?P<rest>\W*\Z|\s*[,.;:(—–-]|\s(?=because|since|porque))"
)
_LEAD_IN: Final = re.compile(
    r"\W*(?:(?:(?:the |my )?answer(?: is)?|(?:la )?respuesta(?: es)?|well|so|pues|bueno"
    rf"|based on [^,.]*|according to [^,.]*)\W+|{_MAYBE}\W+)*"
)
_YES: Final = re.compile(
    r"(?:yes|yeah|yep|yup|correct|indeed|certainly|definitely|absolutely|of course|that is right|thats right"
    r"|affirmative|true|si|claro|exacto|efectivamente|por supuesto|cierto)\b"
)
_NO: Final = re.compile(
    r"(?:no|nope|nah|not (?:really|at all|anymore|any more|yet)|not|never|negative|incorrect|unlikely|false"
    r"|i doubt|i (?:do not|dont) think so|para nada|tampoco|nunca|en absoluto|negativo|falso|incorrecto)\b"
)
_NO_LONGER: Final = re.compile(r"[^.;]{0,30}\b(?:used to\b.{0,20}\bbut|not any ?more|no longer|ya no)\b")
_SHORT_YES: Final = re.compile(
    r"(?:he|she|it|they|you|we|i|that|those|these|there|[a-z]+) (?:is|are|was|were|do|does|did|has|have|had|can"
    r"|could|will|would|should)\W*\Z"
)
_PRONOUNS: Final = frozenset("it that them there lo la los las alli".split())


def expected_polarity(expected: str) -> tuple[Polarity | None, bool]:
    """What the expected answer of a yes-or-no question says, and whether it says nothing else."""
    if (found := _EXPECTED.match(folded(expected))) is None:
        return None, False
    return ("no" if found["says"] == "no" else "yes"), not re.search(r"\w", folded(expected)[found.end() :])


def polarity_of(reply: str, question: str) -> Polarity | None:
    """What a reply to a yes-or-no question says; None where its form does not show it."""
    plain = folded(reply)
    for correction in [*CORRECTS_ITSELF.finditer(plain)][-1:]:
        plain = plain[correction.end() :]
    first = next((part for part in re.split(r"(?<=[.!?;])\s|\n", plain) if re.search(r"\w", part)), "")
    said = _LEAD_IN.sub("", first, count=1)
    if _NO.match(said) or _NO_LONGER.match(said):
        return "no"
    if _YES.match(said):
        return "yes"
    main = re.split(r"\b(?:but|although|because|since|so|pero|aunque|porque)\b|[,;]", said)[0]
    if any(token.text in NEGATIONS for token in tokens_of(main)):
        return "no"
    if _SHORT_YES.match(said):
        return "yes"
    names = frozenset(map(folded, re.findall(r"(?<=\s)[^\W\d_a-zà-ÿ]\w+", question)))
    asked = [token for _, token in content_of(tokens_of(question)) if token.text not in names][1:]
    missing = [one for one in asked if not any(same_token(one, token) for token in tokens_of(said))]
    has_pronoun = bool(set(re.findall(r"\w+", said)) & _PRONOUNS - set(re.findall(r"\w+", folded(question))))
    return "yes" if asked and len(missing) <= min(int(has_pronoun), len(asked) - 1) else None
