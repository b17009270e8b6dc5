"""The meaning of a provider's error (retry, wait, call less often, or stop calling), and how to report it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from memory_backends.storable import storable
from memreplay.llm.catalogue import variable_of_key
from memreplay.llm.model import Reply
from memreplay.llm.prompts import one_line
from memreplay.llm.secrets import scrubbed
from memreplay.numbers import finite

LONGEST_WAIT = 60.0
"""Seconds. A retry-after beyond it is an error."""

_LONGEST_STATED = 100 * 366 * 86_400.0
"""Seconds. A retry-after beyond it is no time that anybody means, and counts as none."""

_LONGEST_REASON = 300
_ERROR_NAMES = re.compile(r"^(?:(?:litellm\.)?[A-Za-z]+(?:Error|Exception)(?::| -) )+(?=\S)")
"""LiteLLM names the error two or three times before the provider's message."""

_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\).*", re.DOTALL)
_MESSAGE = re.compile(r'\{.*?"(?:message|error)": *"((?:[^"\\]|\\.)+)"')
_RETRIED_STATUS = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_TOO_MUCH_STATUS = frozenset({429, 503, 529})
_OF_A_TRANSPORT = frozenset({"httpx", "httpcore", "openai", "anthropic", "aiohttp", "botocore", "grpc", "google"})
"""Packages whose errors mean that the server rejected the request or the connection failed."""
_TOKENS_REPORTED = re.compile(r"(?:prompt|input|total|completion|output)_tokens['\"]?\s*[:=]\s*[1-9]")
_NO_CREDIT = re.compile(
    r"insufficient_(?:user_)?quota|billing_hard_limit|credit balance is too low|insufficient (?:balance|credits?)\b"
    r"|(?:run|ran) out of credits|doesn't have any credits|key limit exceeded|arrearage",
    re.IGNORECASE,
)


class RefusedReplyError(Exception):
    """A reply that is not read: it is too large, or sends the call elsewhere. ``str(error)`` is one sentence."""


def refused_reply(error: BaseException) -> str | None:
    """Return why a reply was not read, if that is what an error of LiteLLM comes from."""
    found = (str(each) for each in (error, *_causes(error)) if isinstance(each, RefusedReplyError))
    return next(found, None)


def status_of(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def timed_out(error: BaseException) -> bool:
    return isinstance(error, TimeoutError) or type(error).__name__ == "Timeout"


def is_refusal(error: BaseException) -> bool:
    """Return whether the provider's content filter refused to answer."""
    return type(error).__name__ == "ContentPolicyViolationError"


def _message_of(error: BaseException) -> str:
    return f"{error} {getattr(error, 'body', '')}"


def has_no_credit(error: BaseException) -> bool:
    """Many providers say so in words alone, OpenAI with the status of a rate limit."""
    return status_of(error) == 402 or _NO_CREDIT.search(_message_of(error)) is not None


def is_unreadable_reply(error: BaseException) -> bool:
    """Return whether the provider answered, and its reply cannot be read. It may have been billed.

    LiteLLM gives such an error status 500, like one that the provider sends: only its causes tell them apart.
    """
    if status_of(error) != 500 or timed_out(error):
        return False
    return not any(
        isinstance(cause, OSError) or type(cause).__module__.partition(".")[0] in _OF_A_TRANSPORT
        for cause in _causes(error)
    )


def was_billed(error: BaseException) -> bool:
    """Return whether a reply that cannot be read reports the tokens that it used."""
    if not is_unreadable_reply(error):
        return False
    return any(
        _TOKENS_REPORTED.search(f"{cause} {getattr(cause, 'doc', '')}") for cause in (error, *_causes(error))
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen = {error}
    cause = error.__cause__ or error.__context__
    while cause is not None and cause not in seen:
        yield cause
        seen.add(cause)
        cause = cause.__cause__ or cause.__context__


def may_pass(error: BaseException) -> bool:
    """Return whether the next attempt may succeed."""
    if (
        refused_reply(error)
        or is_refusal(error)
        or has_no_credit(error)
        or was_billed(error)
        or too_long_a_wait(error)
    ):
        return False
    return timed_out(error) or type(error).__name__ == "APIConnectionError" or status_of(error) in _RETRIED_STATUS


def no_connection(error: BaseException, api_base: str | None = None) -> str | None:
    """Return why no connection could be made: the port refuses it, or the name is not known. None where one was."""
    found = next((cause for cause in _causes(error) if type(cause).__name__ == "ConnectError"), None)
    return None if found is None else reason_of(found) + _through_a_proxy(api_base)


def is_rate_limit(error: BaseException) -> bool:
    return status_of(error) == 429


def is_too_much(error: BaseException) -> bool:
    """Return whether the provider is overloaded: a rate limit, a 5xx for overload, a timeout."""
    return timed_out(error) or status_of(error) in _TOO_MUCH_STATUS


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that the provider asks to wait; None where it states none, or none that can be meant."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    stated = headers.get("retry-after") or (getattr(error, "litellm_response_headers", None) or {}).get(
        "retry-after"
    )
    return None if stated is None else _seconds_in(str(stated))


def _seconds_in(stated: str) -> float | None:
    """Return the seconds from now in a header, which holds them, or a date."""
    try:
        return finite(float(stated), 0.0, _LONGEST_STATED)
    except ValueError:
        pass
    try:
        then = parsedate_to_datetime(stated)
    except (ValueError, OverflowError):
        return None
    seconds = ((then if then.tzinfo else then.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()
    return finite(max(seconds, 0.0), 0.0, _LONGEST_STATED)


def too_long_a_wait(error: BaseException) -> str | None:
    """Return until when the provider asks to wait, if that is longer than a call waits."""
    asked = retry_after(error)
    if asked is None or asked <= LONGEST_WAIT:
        return None
    until = datetime.now(UTC) + timedelta(seconds=asked)
    return f"the provider asks to wait {asked:.0f} s, until {until:%Y-%m-%d %H:%M} UTC"


def reason_of(error: BaseException) -> str:
    """Return the provider's message in one line, without keys; of a JSON body only its message."""
    said = _ERROR_NAMES.sub("", one_line(_TRACEBACK.sub("", storable(str(error)))))
    message = _MESSAGE.search(said)
    return scrubbed(_unescaped(message[1]) if message else said)[:_LONGEST_REASON]


def _unescaped(text: str) -> str:
    try:
        return one_line(str(json.loads(f'"{text}"')))
    except ValueError:
        return text


def failed_reply(error: BaseException, timeout: float, api_base: str | None = None) -> Reply:
    """Return the error as a reply: its reason in one line, without keys. ``timeout`` in seconds."""
    if isinstance(error, MemoryError):
        return Reply(text=None, error="out of memory while the model was asked")
    if is_refusal(error):
        return Reply(text="", refused=True)
    if said := refused_reply(error):
        return Reply(text=None, error=f"the provider's reply was not read: {said}")
    if timed_out(error):
        return Reply(text=None, error=f"the model did not answer within {timeout:g} s")
    if is_unreadable_reply(error):
        return Reply(text=None, error=f"the provider's reply cannot be read: {reason_of(error)}")
    name, reason = type(error).__name__, reason_of(error)
    if wait := too_long_a_wait(error):
        return Reply(text=None, error=f"{wait}: {reason}")
    if _CONNECTION_FAILED.search(f"{name} {reason}"):
        reason += _through_a_proxy(api_base)
    return Reply(text=None, error=f"{name}: {reason}" if reason else name)


_CONNECTION_FAILED = re.compile(r"connection error|APIConnectionError|cannot connect|connect call failed", re.I)


def _through_a_proxy(api_base: str | None) -> str:
    """Return which variable of the environment sends calls through a proxy, and how to go around it; else empty."""
    base = urlsplit(api_base or "https://")
    scheme, host = base.scheme or "https", base.hostname
    proxies = getproxies()
    name = next((each for each in (scheme, "all") if each in proxies), None)
    if name is None or (host and proxy_bypass(host)):
        return ""
    around = f"; NO_PROXY={host} goes around it" if host else ""
    return f" (through the proxy of {name.upper()}_PROXY{around})"


_NO_MODEL = re.compile(r"model_not_found|invalid_model|\binvalid model\b|not a valid model", re.IGNORECASE)
_ABOUT_THE_PROMPT = re.compile(r"moderat|flagged|content.?policy|blocked|safety", re.IGNORECASE)


def permanent_failure(error: BaseException, model: str, *, has_answered: bool) -> str | None:
    """Return why no call of the model can succeed, and how to fix it, in one sentence; None where another call
    may.

    A 403 may be a gateway's objection to one prompt, so it counts only while the model has not answered any.
    """
    status, message, reason = status_of(error), _message_of(error), reason_of(error)
    if has_no_credit(error):
        return f"{model} is unavailable: the account has no credit left; top it up ({reason})"
    if status == 401:
        return f"{model} is unavailable: the key is not accepted; set a valid one{_in(model)} ({reason})"
    if status == 404 or (status == 400 and _NO_MODEL.search(message)):
        return (
            f"{model} is unavailable: its server does not know it; add it there, or start another run with the"
            f" right --model and --api-base ({reason})"
        )
    if status == 403 and not has_answered and not _ABOUT_THE_PROMPT.search(message):
        return f"{model} is unavailable: the key{_in(model)} has no access to it; grant it access ({reason})"
    return None


def _in(model: str) -> str:
    """`` in OPENAI_API_KEY``, where the variable is known."""
    name = variable_of_key(model)
    return f" in {name}" if name else ""
