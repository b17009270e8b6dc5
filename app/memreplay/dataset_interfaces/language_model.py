"""The port through which datasets ask a model: to judge, to generate, or to play a part in a dynamic test.

Whoever runs the tests gives each dataset a :data:`LanguageModel`. Without one, or when it fails, the test that asks
is ungraded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memreplay.dataset_interfaces.examples import Ungraded

LLMMessage = dict[str, str]
LLMContext = list[LLMMessage]
"""Messages of a prompt, each ``{"role": …, "content": …}``."""

DEFAULT_MODEL = "gpt-3.5-turbo"
"""What a dataset asks for when it names no model. Whoever runs the tests may put another in its place."""

JUDGE_MODEL = "gpt-4-turbo"
GPT_CHEAPEST = DEFAULT_MODEL
GPT_4_TURBO_BEST = JUDGE_MODEL


@dataclass(frozen=True)
class LLMRequest:
    """One call: the model that the dataset wishes for, the prompt, and other parameters of the call."""

    context: tuple[Mapping[str, str], ...]
    model: str
    temperature: float
    max_tokens: int
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LLMReply:
    """What came of it: a text, or the reason why there is none. ``cost_usd`` is None where it is unknown."""

    text: str | None
    cost_usd: float | None = None
    error: str | None = None


LanguageModel = Callable[[LLMRequest], LLMReply]
"""Asks a model and blocks until it has answered; never raises for a provider's failure."""


def reply_text(model: LanguageModel | None, request: LLMRequest, on_cost: Callable[[float], None] | None) -> str:
    """Ask, account the cost, and give the reply's text; :class:`Ungraded` where there is none."""
    if model is None:
        raise Ungraded("This test asks a model to judge, and none is set")
    reply = model(request)
    if reply.cost_usd is not None and on_cost is not None:
        on_cost(reply.cost_usd)
    if reply.text is None:
        raise Ungraded(f"The model that judges gave no reply: {reply.error or 'no reason given'}")
    return reply.text


def make_system_message(content: str) -> LLMMessage:
    """A message of the system."""
    return {"role": "system", "content": content}


def make_user_message(content: str) -> LLMMessage:
    """A message of the user."""
    return {"role": "user", "content": content}


def make_assistant_message(content: str) -> LLMMessage:
    """A message of the assistant."""
    return {"role": "assistant", "content": content}
