"""HTTP client of a remote agent: one request at a time, bounded in time, size and retries."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from memory_backends.base import BackendError
from memory_backends.stores.retry import with_retry
from memreplay.errors import UsageError
from memreplay.llm import AGENT_MODEL
from memreplay.llm.secrets import redact_reply, scrubbed

if TYPE_CHECKING:
    from aiohttp import ClientSession

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


TURN_SECONDS = 120.0
CONNECT_SECONDS = 5.0
MOST_BYTES = 4 * 1024 * 1024
"""Of a reply; more is not read."""
ATTEMPTS = 4

REPLY_FIELDS: Final = ("reply", "response", "answer", "content", "message", "text")
"""Where the text of a reply is looked for, in this order; a reply that is no JSON is the text itself."""

_NOT_OFFERED = frozenset({400, 404, 405, 422, 501})
_NOT_TAKEN_IN = frozenset({429, 503})
_LONGEST_REASON = 200


class AgentError(BackendError):
    """An agent did not answer, or not with what was asked for: one sentence."""


class NotOfferedError(AgentError):
    """The agent has no such resource, or makes nothing of what it was sent."""


class _NotTakenInError(AgentError):
    """The agent has surely not begun with a request, which may therefore be repeated."""


class AgentClient:
    """The line to one agent. Connections are made at first use, in the running event loop."""

    def __init__(self, address: AgentAddress, token: str | None, turn_seconds: float = TURN_SECONDS) -> None:
        self.address = address
        self._token = token
        self._turn_seconds = turn_seconds
        self._http: ClientSession | None = None

    async def check(self) -> None:
        """Raise :class:`AgentError` unless somebody answers there and lets us in."""
        try:
            await self._json("GET", "health", CONNECT_SECONDS)
        except NotOfferedError:
            return

    async def new_session(self, copy_of: str | None = None) -> str | None:
        """A fresh session, or one that remembers what another does; None where the agent offers none of that."""
        try:
            made = await self._json("POST", "sessions", self._turn_seconds, {"copy_of": copy_of})
        except NotOfferedError:
            return None
        if not isinstance(made, dict) or not isinstance(made.get("session"), str):
            return None
        # An agent that knows nothing of copies would answer from an empty memory.
        return str(made["session"]) if made.get("copy_of") == copy_of else None

    async def end_session(self, session: str) -> None:
        """Let go of a session."""
        await self._json("DELETE", f"sessions/{session}", CONNECT_SECONDS)

    async def run_turn(self, history: str, message: str, session: str | None) -> str:
        """Say something, and get the reply. What may have been taken in is never said again."""
        payload = {"history": history, "message": message}
        return _text_of(await self._json("POST", "", self._turn_seconds, payload, session))

    async def memory_state(self, session: str | None) -> dict[str, Any]:
        """What it holds. Raises :class:`NotOfferedError`."""
        state = await self._json("GET", "memory_state", self._turn_seconds, None, session)
        return state if isinstance(state, dict) else {"memory_state": state}

    async def aclose(self) -> None:
        """Hang up."""
        if self._http is not None:
            await self._http.close()
            self._http = None

    async def _json(
        self, method: str, resource: str, seconds: float, body: Any = None, session: str | None = None
    ) -> Any:
        """One request, again where it was surely not taken in; a JSON value, or the text where it is none."""
        repeatable = _NotTakenInError if method == "POST" else AgentError

        def may_pass(error: BaseException) -> bool:
            return isinstance(error, repeatable) and not isinstance(error, NotOfferedError)

        return await with_retry(lambda: self._request(method, resource, seconds, body, session), may_pass, ATTEMPTS)

    async def _request(self, method: str, resource: str, seconds: float, body: Any, session: str | None) -> Any:
        import aiohttp

        where = self.address.beside(resource) if resource else self.address.run_turn
        try:
            async with self._opened().request(
                method,
                where,
                json=body,
                params={"session": session} if session else None,
                timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS),
                allow_redirects=False,
            ) as response:
                raw = await _bounded(response.content)
                if response.status >= 300:
                    raise self._refused(response.status, raw)
        except TimeoutError:
            raise AgentError(f"the agent at {self.address.host} did not answer within {seconds:g} s") from None
        except aiohttp.ClientConnectorError:
            raise _NotTakenInError(f"the agent at {self.address.host} cannot be reached") from None
        except (aiohttp.ClientError, OSError) as error:
            raise AgentError(f"the agent at {self.address.host} hung up: {type(error).__name__}") from None
        if raw is None:
            raise AgentError(f"the agent at {self.address.host} sent more than {MOST_BYTES:,} bytes")
        return _parsed(raw)

    def _refused(self, status: int, raw: bytes | None) -> AgentError:
        said = " ".join(scrubbed((raw or b"").decode("utf-8", "replace")).split())[:_LONGEST_REASON]
        sentence = f"the agent at {self.address.host} answered {status}" + (f": {said}" if said else "")
        if status in (401, 403):
            return AgentError(f"the agent at {self.address.host} refuses the token (MEMREPLAY_AGENT_TOKEN)")
        if status in _NOT_OFFERED:
            return NotOfferedError(sentence)
        return _NotTakenInError(sentence) if status in _NOT_TAKEN_IN else AgentError(sentence)

    def _opened(self) -> ClientSession:
        import aiohttp

        if self._http is None:
            headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
            self._http = aiohttp.ClientSession(headers=headers, trust_env=True)
        return self._http


async def _bounded(stream: Any) -> bytes | None:
    """What comes, unless it is more than is read."""
    chunks, size = [], 0
    async for chunk in stream.iter_any():
        size += len(chunk)
        if size > MOST_BYTES:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _parsed(raw: bytes) -> Any:
    text = redact_reply(raw.decode("utf-8", "replace"))
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text_of(reply: Any) -> str:
    """The words of a reply."""
    if isinstance(reply, str):
        return reply
    if isinstance(reply, dict):
        for name in REPLY_FIELDS:
            if isinstance(reply.get(name), str):
                return str(reply[name])
    raise AgentError(f"the agent's reply holds no text; expected JSON with {REPLY_FIELDS[0]!r}, or plain text")
