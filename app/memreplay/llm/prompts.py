"""The prompts: recall and multiple-choice questions, and the messages of an agent that converses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memreplay.conversations.models import Question
from memreplay.llm.catalogue import model_facts
from memreplay.llm.model import AnswerRequest, PromptMessage

HISTORY_HEADING = "Conversation History:"
NO_HISTORY = "(Nothing was remembered from the conversation.)"
QUESTION_LABEL = "Question:"
OPTIONS_HEADING = "Available Answer Options:"
INSTRUCTIONS_HEADING = "Instructions:"
CHOICE_CUE = "Answer Index:"
RECALL_CUE = "Answer:"
NOT_SAID = "The conversation does not say."
"""What a recall prompt asks for where the history holds no answer."""

CHOICE_TOKENS = 10
RECALL_TOKENS = 200
REASONING_TOKENS = 2048
"""Added where a model thinks before it answers, or the cap would end its thoughts and leave no answer."""


def build_request(
    question: Question, context: str, model: str, api_base: str | None, repeat: int = 0
) -> AnswerRequest:
    """The call that puts a question to a model, with what memory gave for it as a segment of its own."""
    return AnswerRequest(
        model=model,
        api_base=api_base,
        messages=(after_history(context, question_prompt(question)),),
        parameters={"temperature": 0, "max_tokens": _reply_tokens(question, model)},
        repeat=repeat,
    )


def question_prompt(question: Question) -> str:
    """What stands after the history: the question, its options, and what kind of answer is wanted."""
    closing = _choice_closing(question.choices) if question.kind == "choice" else _recall_closing()
    return QUESTION_LABEL + " " + one_line(question.text) + "\n\n" + closing


def after_history(context: str, asked: str) -> PromptMessage:
    """What memory gave, and below it what is asked."""
    segments = (HISTORY_HEADING + "\n", context if context.strip() else NO_HISTORY, "\n\n" + asked)
    return PromptMessage(role="user", segments=segments)


def longest_reply(model: str) -> int:
    """Tokens that any reply to these prompts may take."""
    return max(CHOICE_TOKENS, RECALL_TOKENS) + _thinking_tokens(model)


def one_line(text: str) -> str:
    """The text with every run of white space as one space."""
    return " ".join(text.split())


def _choice_closing(choices: Sequence[str]) -> str:
    options = [str(index) + ". " + one_line(choice) for index, choice in enumerate(choices)]
    instructions = [
        "1. Examine the conversation history and question",
        "2. Identify the best matching answer from the options",
        "3. Return ONLY the choice index (0-" + str(len(choices) - 1) + ")",
    ]
    return "\n".join([OPTIONS_HEADING, *options, "", INSTRUCTIONS_HEADING, *instructions, "", CHOICE_CUE])


def _recall_closing() -> str:
    instructions = [
        "1. Examine the conversation history and question",
        "2. Answer as briefly as you can, in the words that the conversation itself uses",
        "3. If the conversation history does not hold the answer, reply: " + NOT_SAID,
    ]
    return "\n".join([INSTRUCTIONS_HEADING, *instructions, "", RECALL_CUE])


def _reply_tokens(question: Question, model: str) -> int:
    return (CHOICE_TOKENS if question.kind == "choice" else RECALL_TOKENS) + _thinking_tokens(model)


def _thinking_tokens(model: str) -> int:
    return REASONING_TOKENS if model_facts(model).reasons_first else 0


AGENT_CUE = "The user's next message follows."
"""The last line of what stands before the user's message."""

AGENT_TOKENS = 512
"""Most tokens of a reply."""

_ROLE = (
    "You are an assistant in a long conversation with one user. All that you remember of it stands below.\n"
    "1. Reply to the user's next message, and to nothing else\n"
    "2. Be brief: a few words where you are told something, the answer alone where you are asked\n"
    "3. Keep to what the user asked you earlier to do or not to do\n\n"
)


def build_agent_request(
    message: str, context: str, now: datetime, model: str, api_base: str | None
) -> AnswerRequest:
    """The call for the agent's next words. ``now`` is the conversation's own time."""
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
    """Most tokens that a reply may take, thoughts before it included."""
    return AGENT_TOKENS + (REASONING_TOKENS if model_facts(model).reasons_first else 0)


def remembered_in(instructions: str) -> str | None:
    """What memory gave, out of the message before the user's; None where it is not one of ours."""
    before, cue, after = instructions.rpartition("\n" + AGENT_CUE)
    history = before.partition(_ROLE + HISTORY_HEADING + "\n")[2].rpartition("\n\nIt is now ")[0]
    if not cue or after.strip() or not history:
        return None
    return "" if history == NO_HISTORY else history


def _moment(now: datetime) -> str:
    return f"{now:%A}, {now.day} {now:%B %Y, %H:%M}"
