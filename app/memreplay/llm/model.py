"""The port to answering models: what is sent, what comes back. No provider is imported here."""

from __future__ import annotations

from typing import Any, Protocol

from memreplay.conversations.models import Frozen


class PromptMessage(Frozen):
    """A message of a prompt. Its content is ``"".join(segments)``.

    The memory's context is a segment of its own, so that a recording keeps one copy of it however many
    questions share it.
    """

    role: str
    segments: tuple[str, ...]

    @property
    def content(self) -> str:
        """The message as it is sent."""
        return "".join(self.segments)


class AnswerRequest(Frozen):
    """One call of a model. Two equal requests may share one reply; ``repeat`` keeps wanted repetitions apart.

    ``marks_prefix`` asks the provider to keep all but the last segment of each message for the calls to come: it
    changes the price and nothing else.
    """

    model: str
    api_base: str | None
    messages: tuple[PromptMessage, ...]
    parameters: dict[str, Any]
    repeat: int = 0
    marks_prefix: bool = False


class TokenUsage(Frozen):
    """Tokens as the provider counted them. ``cached`` is the part of ``prompt`` served from its cache."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


class Reply(Frozen):
    """What came of a call: a text, or an error with its reason; never both.

    ``refused`` marks a provider's refusal (content filter). ``cost_usd`` is None where the price is unknown.
    ``ms`` is the time of the call that was paid; ``reused`` says that it was paid by another run. An agent that
    could not be given a fresh session had heard ``earlier_questions`` and ``earlier_conversations`` by then.
    """

    text: str | None
    error: str | None = None
    refused: bool = False
    usage: TokenUsage = TokenUsage()
    cost_usd: float | None = None
    ms: float = 0.0
    reused: bool = False
    earlier_questions: int = 0
    earlier_conversations: int = 0


class AnswerModel(Protocol):
    """A port: asks a model. A provider's failure is a :class:`Reply` with an error, never an exception."""

    async def answer(self, request: AnswerRequest) -> Reply:
        """Ask once."""
        ...
