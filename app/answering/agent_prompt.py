"""The prompt of an agent that converses: what memory gave, the time, and the user's message as it was said.

Two messages, so that the user's stands alone and word for word: whatever it quotes, it is found again.
"""

from __future__ import annotations

from datetime import datetime

from app.answering.model import AnswerRequest, PromptMessage
from app.answering.model_catalogue import model_facts
from app.answering.prompts import HISTORY_HEADING, NO_HISTORY, REASONING_TOKENS

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
