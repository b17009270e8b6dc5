"""How likely a grade by rules is wrong: which grades a person or a judge should look at."""

from __future__ import annotations

from math import log1p
from typing import Final

from memreplay.conversations.models import Question
from memreplay.grading import Score
from memreplay.grading.read import Token, content_of, is_among, tokens_of
from memreplay.grading.veto import NEGATIONS

REJECTED_FOR_FORM: Final = frozenset({"denied", "hedged", "superseded", "candidates"})
"""Ways to reject a reply that has the words of the answer."""

_WEIGHTS: Final = {"closeness": 3.39, "other words": 0.70, "other figure": -0.65, "veto": -1.52}
_CERTAIN: Final = 2.31
"""The weights of a logistic regression, and the sum from which on a grade counts as uncertain.

They were fitted on 431 replies that people labelled, graded by the rules before these were corrected on them (79
wrong grades) and after (23). The fifth of these grades with the largest sums has 66 % of the wrong ones, by weights
that the other nine tenths of the replies give. Of 150 replies by two new authors it is 17 %, with 10 of the 42
wrong grades.
"""


def is_uncertain(question: Question, reply: str, scored: Score) -> bool:
    """Return whether the grade of a reply is one of those of which many are wrong.

    A rejected reply is the more doubtful the closer it is to the answer, any reply the more else it says, unless
    that has figures, which the rules read well. So is a rejected denial of something that was never said.
    """
    asked, wanted, said = (
        [token for _, token in content_of(tokens_of(text))] for text in (question.text, question.expected, reply)
    )
    wanted = [token for token in wanted if not is_among(token, asked)] or wanted
    others = [token for token in said if token.kind != "mark" and not is_among(token, [*asked, *wanted])]
    closeness = 0.0
    if scored.outcome == "wrong" and question.abstain:
        closeness = float(any(token.text in NEGATIONS for token in tokens_of(reply)))
    elif scored.outcome == "wrong":
        closeness = sum(_closest(one, said) for one in wanted) / max(1, len(wanted))
    signs = {
        "closeness": closeness,
        "other words": log1p(len(others)),
        "other figure": any(token.kind != "word" for token in others),
        "veto": scored.decided_by in REJECTED_FOR_FORM,
    }
    return sum(_WEIGHTS[name] * sign for name, sign in signs.items()) > _CERTAIN


def _closest(wanted: Token, said: list[Token]) -> float:
    """Return the share of the letters of a word, in threes, that some word of a reply has; 1 for an equal one."""
    if is_among(wanted, said):
        return 1.0
    ours, texts = _threes(wanted.text), {token.text for token in said if token.kind == wanted.kind == "word"}
    words = [theirs for theirs in map(_threes, texts) if ours and theirs]
    return max((len(ours & theirs) / min(len(ours), len(theirs)) for theirs in words), default=0.0)


def _threes(word: str) -> frozenset[str]:
    return frozenset(word[at : at + 3] for at in range(len(word) - 2))
