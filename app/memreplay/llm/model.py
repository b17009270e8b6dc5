"""The port to answering models: requests and replies. No provider is imported here."""

from __future__ import annotations

from typing import Any, Protocol

from memory_backends.storable import StorableText
from memreplay.conversations.models import Frozen

MOST_TOKENS = 10**9
"""No prompt is that long. A larger number, or a negative one, is a fault of the provider's server."""

MOST_DOLLARS = 1e6
"""No call costs as much."""


class PromptMessage(Frozen):
    """A message of a prompt. Its content is ``"".join(segments)``.

    The memory's context is one segment, so that a recording stores it once however many questions share it.
    """

    role: str
    segments: tuple[StorableText, ...]

    @property
    def content(self) -> str:
        return "".join(self.segments)


class AnswerRequest(Frozen):
    """One call of a model. Equal requests share one reply; ``repeat`` tells deliberate repetitions apart.

    ``marks_prefix`` asks the provider to cache all but the last segment of each message. It changes only the price.
    ``raw_messages`` are messages in OpenAI's form that a memory sends, tool calls included; then ``messages`` is
    empty. With ``accepts_cut_reply`` the caller reads a reply that its limit cut, as its own client would.
    """

    model: str
    api_base: str | None
    messages: tuple[PromptMessage, ...]
    parameters: dict[str, Any]
    repeat: int = 0
    marks_prefix: bool = False
    raw_messages: tuple[dict[str, Any], ...] = ()
    accepts_cut_reply: bool = False


class TokenUsage(Frozen):
    """Tokens as the provider counted them. ``cached`` is the part of ``prompt`` served from its cache."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


class Reply(Frozen):
    """The result of a call: a text, or an error with its reason; never both.

    ``refused`` marks a provider's refusal (content filter). ``cost_usd`` is None where the price is unknown.
    ``ms`` is the time of the call; ``reused`` means that the reply comes from the cache. ``earlier_questions`` and
    ``earlier_conversations`` count what an agent without a fresh session had already seen. ``tool_calls`` are
    those that the model wants, in OpenAI's form. ``cut_at`` is the limit in tokens at which the reply was cut.
    ``read_less``: by its own count the server read clearly less than the prompt. ``served_by`` is the model that
    answered, if that is not the one that was asked.
    """

    text: StorableText | None
    error: StorableText | None = None
    refused: bool = False
    usage: TokenUsage = TokenUsage()
    cost_usd: float | None = None
    ms: float = 0.0
    reused: bool = False
    earlier_questions: int = 0
    earlier_conversations: int = 0
    tool_calls: tuple[dict[str, Any], ...] = ()
    cut_at: int | None = None
    read_less: bool = False
    served_by: StorableText | None = None

    @property
    def was_billed(self) -> bool:
        """Return whether the provider charges for it: an empty reply is an error, and has used tokens."""
        return self.error is None or self.usage.prompt + self.usage.completion > 0


class AnswerModel(Protocol):
    """A port: calls a model. A provider's failure is a :class:`Reply` with an error, never an exception."""

    async def answer(self, request: AnswerRequest) -> Reply: ...
