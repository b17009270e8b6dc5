"""Why a verdict may be wrong: the kinds of answers and prompts on which careful readers often say another stage.

The signs were chosen on 200 labelled wrong answers, and counted on others: see the README of the
recordings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from memreplay.grading.doubt import closeness, words_wanted
from memreplay.grading.read import content_of, tokens_of
from memreplay.scoring.evidence_trail import Stages
from memreplay.scoring.holding import Answerable
from memreplay.scoring.verdicts import Label

Doubt = Literal["near_answer", "conclusion", "several_turns", "same_session", "refuted", "second_opinion"]

DOUBTS: Final[Mapping[Doubt, str]] = {
    "near_answer": "the reply comes close to the answer, so that the grade may be wrong",
    "conclusion": "the answer is a conclusion, which other turns in the prompt may allow",
    "several_turns": "the answer takes several turns, and others may say what was not written of these",
    "same_session": "the prompt has another text of that session about the question, which may tell when",
    "refuted": "what repairs the answer when it is asked again speaks for another stage",
    "second_opinion": "the judge and the rules differ",
}
"""Reasons for which a verdict is uncertain; ``refuted`` follows from asking again, ``second_opinion`` from a judge
of stages.
"""


def doubted(doubt: Doubt) -> str:
    """Return the sentence behind the details of an uncertain verdict."""
    return f"Uncertain: {DOUBTS[doubt]}."


_NEAR_ANSWER = 3 / 10
"""The closeness of a reply to an answer from which on it may have been right."""
_NEAR_QUESTION = 2 / 5
"""The share of the words of a question that tell what it is about, in a text that may answer it."""


def doubt_about(label: Label, answerable: Answerable, stages: Stages, said: str) -> Doubt | None:
    """Return why the verdict on a wrong answer, the reply ``said``, is uncertain; None where it is not."""
    if label in ("misread", "abstained"):
        words = [token for _, token in content_of(tokens_of(said))]
        return "near_answer" if closeness(words_wanted(answerable.question), words) >= _NEAR_ANSWER else None
    if label not in ("not_written", "not_retrieved", "cut"):
        return None
    if answerable.is_conclusion:
        return "conclusion"
    if label == "not_written" and len(answerable.evidence) > 1:
        return "several_turns"
    is_near = answerable.asks_for_time and answerable.is_approached_by(stages.in_prompt, _NEAR_QUESTION)
    return "same_session" if is_near else None
