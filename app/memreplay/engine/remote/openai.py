"""An agent behind an OpenAI-compatible chat endpoint, which gets the whole history, or remembers it by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urljoin
from uuid import uuid4

from memreplay.engine.remote.addresses import AgentAddress
from memreplay.engine.remote.client import CONNECT_SECONDS, AgentClient, AgentError, NotOfferedError, Said


class HistoryChatClient(AgentClient):
    """The endpoint keeps nothing: each question comes with everything that was said before it."""

    hears_every_turn = False

    async def check(self) -> None:
        """Raise :class:`AgentError` unless the endpoint answers and accepts the token."""
        try:
            models = urljoin(self.address.run_turn, "../models")
            await self._request("GET", models, CONNECT_SECONDS, None, None)
        except NotOfferedError:
            return

    async def new_session(self, copy_of: str | None = None) -> str | None:
        """Return a name that is sent nowhere:

        every request has a history of its own, so every question has a fresh one.
        """
        return uuid4().hex

    async def end_session(self, session: str) -> None:
        """Do nothing: nothing is kept."""

    async def run_turn(self, history: Sequence[Said], message: str, session: str | None) -> str:
        """Send the history and a message; return the reply."""
        messages = [{"role": said.role, "content": _content(said)} for said in history]
        return await self._complete([*messages, {"role": "user", "content": message}], None)

    async def memory_state(self, session: str | None) -> dict[str, Any]:
        raise NotOfferedError("a chat endpoint does not show its memory")

    async def _complete(self, messages: list[dict[str, str]], session: str | None) -> str:
        body = {"model": self.address.chat_model, "messages": messages}
        reply = await self._json("POST", "", self._turn_seconds, body, session)
        try:
            text = reply["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            text = None
        if not isinstance(text, str):
            raise AgentError("the agent's reply contains no text; expected an OpenAI chat completion")
        return text


class SessionChatClient(HistoryChatClient):
    """The endpoint remembers: every user turn is sent alone, under a session that a header of requests names."""

    hears_every_turn = True

    def __init__(self, address: AgentAddress, token: str | None, header: str) -> None:
        super().__init__(address, token)
        self._header = header

    async def new_session(self, copy_of: str | None = None) -> str | None:
        """Return a new name is an empty session; there are no copies."""
        return uuid4().hex if copy_of is None else None

    async def run_turn(self, history: Sequence[Said], message: str, session: str | None) -> str:
        """Send a message alone; the agent knows what was said before it."""
        return await self._complete([{"role": "user", "content": message}], session)

    def _addressed(self, session: str | None) -> dict[str, Any]:
        return {"headers": {self._header: session}} if session else {}


def agent_client(name: str, token: str | None, session_header: str | None) -> AgentClient:
    """Return the client that an agent's name asks for; opens no connection. Raises :class:`UsageError`."""
    address = AgentAddress.read(name)
    if address.chat_model is None:
        return AgentClient(address, token)
    return (
        SessionChatClient(address, token, session_header) if session_header else HistoryChatClient(address, token)
    )


def _content(said: Said) -> str:
    """Return the text, with the speaker's name where it says more than the role."""
    return said.heading + (said.text if said.label in ("User", "AI") else f"{said.label}: {said.text}")
