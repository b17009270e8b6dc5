"""The prompts: recall and multiple-choice questions, and an agent's turns; and how a reply to a question is graded.

To add a kind of question, name it in :data:`memreplay.conversations.models.QuestionKind` and add it to
:data:`KINDS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memreplay.conversations.models import Frozen, Question, QuestionKind
from memreplay.grading import Score
from memreplay.grading.choice import score_choice
from memreplay.grading.judge import score_recall, score_without_answer
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.catalogue import model_facts
from memreplay.llm.model import AnswerRequest, PromptMessage
from memreplay.llm.prompt_templates import PromptTemplate

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


HISTORY_HEADING = "Conversation History:"
NO_HISTORY = "(Nothing was remembered from the conversation.)"
QUESTION_LABEL = "Question:"
REASONING_TOKENS = 2048
"""Added for a model that thinks before it answers, or the limit would cut off its answer."""


def build_request(
    question: Question,
    context: str,
    model: str,
    api_base: str | None,
    repeat: int = 0,
    template: PromptTemplate | None = None,
) -> AnswerRequest:
    """Return the call that asks a model a question. The context is one segment.

    The embedded reader understands the default prompt alone.
    """
    if template is None or model == EXTRACTIVE_MODEL:
        message = after_history(context, question_prompt(question))
    else:
        shown = context if context.strip() else NO_HISTORY
        message = PromptMessage(role="user", segments=template.segments(question, shown))
    return AnswerRequest(
        model=model,
        api_base=api_base,
        messages=(message,),
        parameters={"temperature": 0, "max_tokens": _reply_tokens(question, model)},
        repeat=repeat,
    )


def question_prompt(question: Question) -> str:
    """Return the part after the history: the question, its options, and the instructions."""
    return QUESTION_LABEL + " " + one_line(question.text) + "\n\n" + KINDS[question.kind].closing(question)


def after_history(context: str, asked: str) -> PromptMessage:
    """Return a message with the context and, below it, the question."""
    segments = (HISTORY_HEADING + "\n", context if context.strip() else NO_HISTORY, "\n\n" + asked)
    return PromptMessage(role="user", segments=segments)


def context_of(prompt: Sequence[PromptMessage]) -> str:
    """Return the context in a prompt of :func:`build_request`; empty where nothing was remembered."""
    context = prompt[0].segments[1]
    return "" if context == NO_HISTORY else context


def with_context(prompt: Sequence[PromptMessage], context: str) -> tuple[PromptMessage, ...]:
    """Return the same prompt with another context."""
    heading, _, asked = prompt[0].segments
    shown = context if context.strip() else NO_HISTORY
    return (prompt[0].model_copy(update={"segments": (heading, shown, asked)}), *prompt[1:])


def longest_reply(model: str) -> int:
    """Most tokens of a reply to a question, thoughts included."""
    return max(kind.reply_tokens for kind in KINDS.values()) + _thinking_tokens(model)


def _reply_tokens(question: Question, model: str) -> int:
    return KINDS[question.kind].reply_tokens + _thinking_tokens(model)


def _thinking_tokens(model: str) -> int:
    return REASONING_TOKENS if model_facts(model).reasons_first else 0


AGENT_CUE = "The user's next message follows."
"""The last line before the user's message."""

AGENT_TOKENS = 512
"""Most tokens of an agent's reply."""

_ROLE = (
    "You are an assistant in a long conversation with one user. All that you remember of it stands below.\n"
    "1. Reply to the user's next message, and to nothing else\n"
    "2. Be brief: a few words where you are told something, the answer alone where you are asked\n"
    "3. Keep to what the user asked you earlier to do or not to do\n\n"
)


def build_agent_request(
    message: str, context: str, now: datetime, model: str, api_base: str | None
) -> AnswerRequest:
    """Return the call for the agent's next turn. ``now`` is the conversation's own time."""
    remembered = context if context.strip() else NO_HISTORY
    closing = "\n\nIt is now " + _moment(now) + ".\n" + AGENT_CUE
    return AnswerRequest(
        model=model,
        api_base=api_base,
        messages=(
            PromptMessage(role="system", segments=(_ROLE + HISTORY_HEADING + "\n", remembered, closing)),
            PromptMessage(role="user", segments=(message,)),
        ),
        parameters={"temperature": 0, "max_tokens": longest_agent_reply(model)},
    )


def longest_agent_reply(model: str) -> int:
    """Most tokens of an agent's reply, thoughts included."""
    return AGENT_TOKENS + _thinking_tokens(model)


def remembered_in(instructions: str) -> str | None:
    """Return the context in an agent's system message; None where the message is not one of ours."""
    before, cue, after = instructions.rpartition("\n" + AGENT_CUE)
    history = before.partition(_ROLE + HISTORY_HEADING + "\n")[2].rpartition("\n\nIt is now ")[0]
    if not cue or after.strip() or not history:
        return None
    return "" if history == NO_HISTORY else history


def _moment(now: datetime) -> str:
    return f"{now:%A}, {now.day} {now:%B %Y, %H:%M}"


class ReadPrompt(Frozen):
    """A parsed prompt. Without ``options``, a recall question; without ``context``, nothing was remembered."""

    context: str
    question: str
    options: tuple[str, ...] = ()


_NUMBERED = r"[0-9]+\. ?[^\n]*\n"
_ASKED = re.compile(
    rf"{QUESTION_LABEL}([^\n]*)\n\s*(?:{OPTIONS_HEADING}\n((?:{_NUMBERED})+)\s*{INSTRUCTIONS_HEADING}\n"
    rf"(?:{_NUMBERED})*\s*{CHOICE_CUE}|{INSTRUCTIONS_HEADING}\n(?:{_NUMBERED})*\s*{RECALL_CUE})\s*\Z"
)
_NUMBER = re.compile(r"\A[0-9]+\. ?")


def read_prompt(prompt: str) -> ReadPrompt | None:
    """Return context, question and options of a prompt of :func:`build_request`; None for any other text."""
    start = prompt.rfind(f"\n{QUESTION_LABEL}") + 1  # A history may quote a prompt; an option is one line.
    if not (asked := _ASKED.match(prompt, start)):
        return None
    history = prompt[:start].strip("\n").removeprefix(HISTORY_HEADING).strip("\n")
    options = tuple(_NUMBER.sub("", row) for row in (asked[2] or "").split("\n") if row)
    return ReadPrompt(context="" if history == NO_HISTORY else history, question=asked[1].strip(), options=options)
