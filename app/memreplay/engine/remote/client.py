"""The HTTP client of a remote agent, with timeouts, a size limit and retries."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from memory_backends.base import BackendError, Role
from memory_backends.stores.retry import with_retry
from memreplay.engine.remote.addresses import AgentAddress
from memreplay.llm.secrets import redact_reply, scrubbed

if TYPE_CHECKING:
    from aiohttp import ClientSession

TURN_SECONDS = 120.0
CONNECT_SECONDS = 5.0
MAX_REPLY_BYTES = 4 * 1024 * 1024
"""The largest reply."""
ATTEMPTS = 4

REPLY_FIELDS: Final = ("reply", "response", "answer", "content", "message", "text")
"""The fields that may hold the text of a JSON reply, in order of preference. Any other reply is the text itself."""

_NOT_OFFERED = frozenset({400, 404, 405, 422, 501})
_NOT_ACCEPTED = frozenset({429, 503})
_MAX_REASON_LENGTH = 200
_UNMISTAKABLE = 12
"""Characters of a token that cannot be an ordinary word."""
_PAGE = re.compile(r"\s*(?:<!doctype html|<html)", re.IGNORECASE)


class AgentError(BackendError):
    """An agent did not answer, or not as expected. The message is one sentence."""


class AgentRefusedError(AgentError):
    """The agent does not accept the token: no request of this run can succeed."""


class NotOfferedError(AgentError):
    """The agent does not support a resource, or rejects the request as invalid."""


class _NotAcceptedError(AgentError):
    """The agent certainly did not process the request, so it may be retried."""


@dataclass(frozen=True)
class Said:
    """A message of the history.

    ``heading`` is the line with the date, before the first message of a dated session.
    """

    role: Role
    label: str
    text: str
    heading: str = ""

    @property
    def lines(self) -> str:
        """Return the message as it stands in a log, without the line break at its end."""
        return f"{self.heading}{self.label}: {self.text}"


class AgentClient:
    """A client of one agent. It connects at first use, in the running event loop."""

    hears_every_turn: ClassVar[bool] = True
    """True if the user's turns are sent to it, false if only questions with what was said before."""

    def __init__(self, address: AgentAddress, token: str | None, turn_seconds: float = TURN_SECONDS) -> None:
        self.address = address
        self._token = token
        self._turn_seconds = turn_seconds
        self._http: ClientSession | None = None

    async def check(self) -> None:
        """Raise :class:`AgentError` unless the agent answers and accepts the token."""
        try:
            await self._json("GET", "health", CONNECT_SECONDS)
        except NotOfferedError:
            return

    async def new_session(self, copy_of: str | None = None) -> str | None:
        """Create a session, empty or as a copy of another; None if the agent does not support that."""
        try:
            made = await self._json("POST", "sessions", self._turn_seconds, {"copy_of": copy_of})
        except NotOfferedError:
            return None
        if not isinstance(made, dict) or not isinstance(made.get("session"), str):
            return None
        # An agent that does not support copies creates an empty session.
        return str(made["session"]) if made.get("copy_of") == copy_of else None

    async def end_session(self, session: str) -> None:
        await self._json("DELETE", f"sessions/{session}", CONNECT_SECONDS)

    async def run_turn(self, history: Sequence[Said], message: str, session: str | None) -> str:
        """Send a message and return the reply. A message that the agent may have processed is never sent again."""
        payload = {"history": "".join(f"{said.lines}\n" for said in history), "message": message}
        return _text_of(await self._json("POST", "", self._turn_seconds, payload, session))

    async def memory_state(self, session: str | None) -> dict[str, Any]:
        """Return the content of its memory. Raises :class:`NotOfferedError`."""
        state = await self._json("GET", "memory_state", self._turn_seconds, None, session)
        return state if isinstance(state, dict) else {"memory_state": state}

    async def aclose(self) -> None:
        """Close the connection."""
        if self._http is not None:
            await self._http.close()
            self._http = None

    async def _json(
        self, method: str, resource: str, seconds: float, body: Any = None, session: str | None = None
    ) -> Any:
        """Send a request, with retries where that is safe. Returns a JSON value, or the text if it is no JSON."""
        repeatable = _NotAcceptedError if method == "POST" else AgentError

        def is_retryable(error: BaseException) -> bool:
            return isinstance(error, repeatable) and not isinstance(error, NotOfferedError | AgentRefusedError)

        where = self.address.beside(resource) if resource else self.address.run_turn
        return await with_retry(
            lambda: self._request(method, where, seconds, body, session), is_retryable, ATTEMPTS
        )

    async def _request(self, method: str, where: str, seconds: float, body: Any, session: str | None) -> Any:
        import aiohttp

        try:
            async with self._connection().request(
                method,
                where,
                json=body,
                **self._addressed(session),
                timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS),
                allow_redirects=False,
            ) as response:
                raw = await _read_body(response.content)
                if response.status >= 300:
                    raise self._error_of(response.status, raw)
        except TimeoutError:
            raise AgentError(f"the agent at {self.address.host} did not answer within {seconds:g} s") from None
        except aiohttp.ClientConnectorError:
            raise _NotAcceptedError(f"the agent at {self.address.host} cannot be reached") from None
        except (aiohttp.ClientError, OSError) as error:
            raise AgentError(
                f"the agent at {self.address.host} closed the connection: {type(error).__name__}"
            ) from None
        if raw is None:
            raise AgentError(f"the agent at {self.address.host} sent more than {MAX_REPLY_BYTES:,} bytes")
        return self._parsed(raw)

    def _parsed(self, raw: bytes) -> Any:
        text = self._without_token(redact_reply(raw.decode("utf-8", "replace")))
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text

    def _without_token(self, text: str) -> str:
        """Return the text without the token, however short it is: an agent may echo what it was sent.

        A short token may be an ordinary word, and is removed only as a whole word.
        """
        if not self._token:
            return text
        written = re.escape(self._token) + "|" + re.escape(json.dumps(self._token)[1:-1])
        pattern = f"(?:{written})" if len(self._token) >= _UNMISTAKABLE else rf"(?<!\w)(?:{written})(?!\w)"
        return re.sub(pattern, "[key]", text)

    def _addressed(self, session: str | None) -> dict[str, Any]:
        """Return how a request says which session it belongs to."""
        return {"params": {"session": session}} if session else {}

    def _error_of(self, status: int, raw: bytes | None) -> AgentError:
        said = self._without_token(scrubbed((raw or b"").decode("utf-8", "replace")))
        said = " ".join(said.split())[:_MAX_REASON_LENGTH]
        sentence = f"the agent at {self.address.host} answered {status}" + (f": {said}" if said else "")
        if status in (401, 403):
            return AgentRefusedError(f"the agent at {self.address.host} refuses the token (MEMREPLAY_AGENT_TOKEN)")
        if status in _NOT_OFFERED:
            return NotOfferedError(sentence)
        return _NotAcceptedError(sentence) if status in _NOT_ACCEPTED else AgentError(sentence)

    def _connection(self) -> ClientSession:
        import aiohttp

        if self._http is None:
            headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
            self._http = aiohttp.ClientSession(headers=headers, trust_env=True)
        return self._http


async def _read_body(stream: Any) -> bytes | None:
    """Return the body, or None if it is too large."""
    chunks, size = [], 0
    async for chunk in stream.iter_any():
        size += len(chunk)
        if size > MAX_REPLY_BYTES:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _text_of(reply: Any) -> str:
    text = reply if isinstance(reply, str) else None
    if isinstance(reply, dict):
        text = next((str(reply[name]) for name in REPLY_FIELDS if isinstance(reply.get(name), str)), None)
    if text is not None and not text.strip():
        raise AgentError("the agent's reply is empty")
    if text is not None and _PAGE.match(text):
        raise AgentError("the agent answered with a web page; is its address right?")
    if text is not None:
        return text
    raise AgentError(f"the agent's reply contains no text; expected JSON with {REPLY_FIELDS[0]!r}, or plain text")
