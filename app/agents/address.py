"""Where an agent is: the URL that takes its turns. What else it offers stands beside that."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from app.answering.model_names import AGENT_MODEL
from app.errors import UsageError

EXPECTED = "expected http://host[:port]/run_turn"


def is_agent(name: str) -> bool:
    """Whether a backend's name is the address of an agent."""
    return name.lower().startswith(("http://", "https://"))


def models_asked_of(name: str, models: tuple[str, ...]) -> tuple[str, ...]:
    """The models that a backend's questions go through: an agent's through none but itself."""
    return (AGENT_MODEL,) if is_agent(name) else models


@dataclass(frozen=True)
class AgentAddress:
    """The address of an agent, fit to be shown and recorded: it holds no secret."""

    run_turn: str

    @classmethod
    def read(cls, name: str) -> AgentAddress:
        """Read what was given as a backend's name.

        Raises:
            UsageError: it is no address, or one with a password or a query in it.
        """
        try:
            parts = urlsplit(name)
            _ = parts.port
        except ValueError:
            raise UsageError(f"the agent's address cannot be read; {EXPECTED}") from None
        if not parts.hostname or not parts.path.strip("/"):
            raise UsageError(f"{parts.scheme}://{parts.hostname or ''} is no agent's address; {EXPECTED}")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise UsageError(
                f"an agent's address is recorded as it stands: {EXPECTED}, without user, password or query;"
                " a token goes into MEMREPLAY_AGENT_TOKEN"
            )
        return cls(name)

    @property
    def host(self) -> str:
        """``host:port`` as it was given."""
        return urlsplit(self.run_turn).netloc

    def beside(self, name: str) -> str:
        """Another resource of the agent, such as ``memory_state``."""
        return urljoin(self.run_turn.rstrip("/"), name)
