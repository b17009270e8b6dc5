"""Names of remote agents: their URLs. Light to import: the screen checks names before its first frame."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urljoin

from memory_backends.addresses import parse_address
from memory_backends.base import BackendError
from memory_backends.registry import check_backend_name
from memreplay.errors import UsageError
from memreplay.llm import AGENT_MODEL

EXPECTED = "expected http://host[:port]/run_turn"
EXPECTED_OF_OPENAI = "expected openai:[MODEL@]http://host[:port]/v1"

_OPENAI = re.compile(r"openai:(?:(?P<model>(?:(?!://)[^@\s])+)@)?(?P<url>.*)", re.IGNORECASE | re.DOTALL)


def is_agent(name: str) -> bool:
    """Return whether a backend's name is the URL of an agent, with or without the protocol that it speaks."""
    return name.lower().startswith(("http://", "https://", "openai:"))


def models_asked_of(name: str, models: tuple[str, ...]) -> tuple[str, ...]:
    """Return the models that a backend's questions go through; an agent answers itself."""
    return (AGENT_MODEL,) if is_agent(name) else models


@dataclass(frozen=True)
class AgentAddress:
    """The URL of an agent. It contains no secret, so it can be shown and recorded.

    ``chat_model`` is set if it is an OpenAI-compatible chat endpoint: the model to ask there.
    """

    run_turn: str
    chat_model: str | None = None

    @classmethod
    def read(cls, name: str) -> AgentAddress:
        """Parse a backend's name.

        Raises:
            UsageError: it is no URL, or one with a password, query or fragment.
        """
        spelled = _OPENAI.fullmatch(name)
        url, expected = (spelled["url"], EXPECTED_OF_OPENAI) if spelled else (name, EXPECTED)
        try:
            address = parse_address(url, ("http", "https"))
        except ValueError as error:
            raise UsageError(f"the agent's address is no valid URL: {error}; {expected}") from None
        if not address.rest.strip("/"):
            raise UsageError(f"{address.scheme}://{address.netloc} is no agent's address; {expected}")
        if address.user or address.password or "?" in address.rest or "#" in address.rest:
            raise UsageError(
                f"an agent's address is recorded, so it must contain no secret: {expected}, without user, password,"
                " query or fragment; put a token into MEMREPLAY_AGENT_TOKEN"
            )
        if spelled is None:
            return cls(address.url)
        completions = address.url.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
        return cls(completions, spelled["model"] or DEFAULT_CHAT_MODEL)

    @property
    def host(self) -> str:
        """``host:port``, as in the URL."""
        return parse_address(self.run_turn).netloc

    def beside(self, name: str) -> str:
        """Return the URL of another resource of the agent, such as ``memory_state``."""
        return urljoin(self.run_turn.rstrip("/"), name)


DEFAULT_CHAT_MODEL = "default"
"""Sent to a chat endpoint where no model is named: agents that are no bare models ignore it."""


def refuse_unknown_backends(names: Sequence[str]) -> None:
    """Raise UsageError for a name of no memory, before anything is built; imports plugins."""
    try:
        for name in names:
            if is_agent(name):
                AgentAddress.read(name)
            else:
                check_backend_name(name)
    except BackendError as error:
        raise UsageError(str(error)) from None
