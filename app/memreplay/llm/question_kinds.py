"""The kinds of questions: what a prompt asks for below the question, and how a reply to it is graded.

To add a kind, name it in :data:`memreplay.conversations.models.QuestionKind` and add it to :data:`KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from memreplay.conversations.models import Question, QuestionKind
from memreplay.grading import Score
from memreplay.grading.choice import score_choice
from memreplay.grading.recall import score_recall, score_without_answer

OPTIONS_HEADING = "Available Answer Options:"
INSTRUCTIONS_HEADING = "Instructions:"
CHOICE_CUE = "Answer Index:"
RECALL_CUE = "Answer:"
NOT_SAID = "The conversation does not say."
"""The reply that a recall prompt asks for where the history has no answer."""


@dataclass(frozen=True)
class KindOfQuestion:
    """How a kind of question is asked and graded.

    ``closing`` makes the part of the prompt below the question; ``reply_tokens`` is the most that a reply may have,
    without thoughts. ``score`` grades the text of a reply, ``score_refused`` a reply that the provider withheld.
    """

    closing: Callable[[Question], str]
    reply_tokens: int
    score: Callable[[Question, str], Score]
    score_refused: Callable[[Question, str | None], Score]


def one_line(text: str) -> str:
    return " ".join(text.split())


def _choice_closing(question: Question) -> str:
    options = [str(index) + ". " + one_line(choice) for index, choice in enumerate(question.choices)]
    instructions = [
        "1. Examine the conversation history and question",
        "2. Identify the best matching answer from the options",
        "3. Return ONLY the choice index (0-" + str(len(question.choices) - 1) + ")",
    ]
    return "\n".join([OPTIONS_HEADING, *options, "", INSTRUCTIONS_HEADING, *instructions, "", CHOICE_CUE])


def _recall_closing(question: Question) -> str:
    instructions = [
        "1. Examine the conversation history and question",
        "2. Answer as briefly as you can, in the words that the conversation itself uses",
        "3. If the conversation history does not hold the answer, reply: " + NOT_SAID,
    ]
    return "\n".join([INSTRUCTIONS_HEADING, *instructions, "", RECALL_CUE])


def _refused_choice(question: Question, text: str | None) -> Score:
    return Score(outcome="refused", score=0.0, predicted=text)


def _refused_recall(question: Question, text: str | None) -> Score:
    return score_without_answer(question, "refused", text)


KINDS: Final[Mapping[QuestionKind, KindOfQuestion]] = {
    "choice": KindOfQuestion(_choice_closing, 10, score_choice, _refused_choice),
    "recall": KindOfQuestion(_recall_closing, 200, score_recall, _refused_recall),
}
