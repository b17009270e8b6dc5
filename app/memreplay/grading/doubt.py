"""How likely a grade by rules is wrong: which grades a person or a judge should look at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import log1p
from typing import Final

from memreplay.conversations.models import Question
from memreplay.grading import Score
from memreplay.grading.match import enumeration
from memreplay.grading.read import Token, content_of, folded, is_among, same_token, tokens_of
from memreplay.grading.times import times_asked_for, times_in
from memreplay.grading.veto import NAME, NEGATIONS

REJECTED_FOR_FORM: Final = frozenset({"denied", "hedged", "superseded", "candidates"})
"""Ways to reject a reply that has the words of the answer."""

_SHIFTS: Final = frozenset(
    "before after until near left former formerly previously used later than over above least most away wants"
    " antes despues hasta cerca dejo luego menos".split()
)
"""Words beside which a value may be that of another time or amount."""
_OF_TWO: Final = re.compile(r"(\w+),? (?:or|o) (?:(?:the|an?|el|la|un|una) )?(\w+)")
_LINKS: Final = frozenset("of to from before after than not de a al antes que no".split())
"""Words that make an order of what they join."""
_MONTH: Final = 31
"""Days."""
_WEIGHTS: Final = {"closeness": 2.0, "other words": 0.65, "several words": 1.4, "name": -0.75}
_CERTAIN: Final = 2.4
"""The weights of a logistic regression, and the sum from which on a rejection counts as uncertain.

They were fitted on 967 labelled replies: 737 graded by rules that were not corrected on them, 230
by rules that were. By weights that the other authors' replies give, 36 % of these grades are uncertain, among
them 75 % of the wrong ones. Of replies that nothing was fitted to it finds fewer: see the README of the
recordings.
"""


def is_uncertain(question: Question, reply: str, scored: Score) -> bool:
    """Return whether the grade of a reply is one of those of which many are wrong.

    Of the accepted replies these are the ones in other words, those that set the answer before or after something,
    or in the past, and those that turn the order of its words around. A rejection is the more doubtful the closer
    the reply is to the answer and the more else it says, most of all where the answer has several words and no
    name, so that other words can say it. Where nothing was ever said, a reply that denies something is the closer
    one. A time that is said less precisely, or without its year, may be good enough.
    """
    if scored.outcome != "wrong":
        return scored.decided_by == "overlap" or _may_say_another(question, reply)
    if times := times_asked_for(question.text, question.expected):
        said = [time for time in times_in(reply) if time.days <= _MONTH]
        if all(any(time.agrees_with(one) for time in said) for one in times):
            return True
    return sum(_WEIGHTS[sign] * value for sign, value in _signs(question, reply, scored)) > _CERTAIN


def _may_say_another(question: Question, reply: str) -> bool:
    """Return whether a reply with the words of the answer may say something else: "a week after 12 May", "a former
    nurse", "from Burgos to Soria", or where tea or coffee was the question, "tea, then coffee".
    """
    known = {token.text for text in (question.text, question.expected) for token in tokens_of(text)}
    if any(token.text in _SHIFTS and token.text not in known for token in tokens_of(reply)):
        return True
    wanted, said = tokens_of(question.expected), [token for _, token in content_of(tokens_of(reply))]
    offered = {word for pair in _OF_TWO.findall(folded(question.text)) for word in pair}
    if any(token.text in offered and not is_among(token, wanted) for token in said):
        return True
    links = _LINKS.intersection(token.text for token in wanted)
    if not links or (len(enumeration(question.expected)) > 1 and links.isdisjoint(NEGATIONS)):
        return False
    places = [
        next((place for place, own in enumerate(said) if same_token(one, own)), None)
        for _, one in content_of(wanted)
    ]
    found = [place for place in places if place is not None]
    return found != sorted(found)


def words_wanted(question: Question) -> Sequence[Token]:
    """Return the words of the expected answer that the question does not have; all where it has them all."""
    asked, wanted = (
        [token for _, token in content_of(tokens_of(text))] for text in (question.text, question.expected)
    )
    return [token for token in wanted if not is_among(token, asked)] or wanted


def _signs(question: Question, reply: str, scored: Score) -> Iterator[tuple[str, float]]:
    asked, said = ([token for _, token in content_of(tokens_of(text))] for text in (question.text, reply))
    wanted = words_wanted(question)
    others = [token for token in said if token.kind != "mark" and not is_among(token, [*asked, *wanted])]
    yield "other words", log1p(len(others))
    if question.abstain:
        yield "closeness", float(any(token.text in NEGATIONS for token in tokens_of(reply)))
    else:
        yield "closeness", closeness(wanted, said)
    if scored.decided_by == "no_match":
        yield "several words", float(len(wanted) > 1)
        yield "name", float(NAME.search(question.expected, 1) is not None)


def closeness(wanted: Sequence[Token], said: Sequence[Token]) -> float:
    """Return how near a reply comes to the words of an answer, 0..1: the mean over these of what it has of them."""
    return sum(_closest(one, said) for one in wanted) / max(1, len(wanted))


def _closest(wanted: Token, said: Sequence[Token]) -> float:
    """Return the share of the letters of a word, in threes, that some word of a reply has; 1 for an equal one."""
    if is_among(wanted, said):
        return 1.0
    ours, texts = _threes(wanted.text), {token.text for token in said if token.kind == wanted.kind == "word"}
    words = [theirs for theirs in map(_threes, texts) if ours and theirs]
    return max((len(ours & theirs) / min(len(ours), len(theirs)) for theirs in words), default=0.0)


def _threes(word: str) -> frozenset[str]:
    return frozenset(word[at : at + 3] for at in range(len(word) - 2))
