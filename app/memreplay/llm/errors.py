"""What a provider's failure means: retry, wait, send less or give up; and how to report it."""

from __future__ import annotations

import json
import re

from memreplay.llm.catalogue import variable_of_key
from memreplay.llm.model import Reply
from memreplay.llm.prompts import one_line
from memreplay.llm.secrets import scrubbed

LONGEST_WAIT = 60.0
"""Seconds; a provider that asks for more is not waited for."""

_LONGEST_REASON = 300
_NAMES_BEFORE_A_REASON = re.compile(r"^(?:(?:litellm\.)?[A-Za-z]+(?:Error|Exception)(?::| -) )+(?=\S)")
"""LiteLLM names a failure two or three times before it says what the provider said."""

_MESSAGE = re.compile(r'\{.*?"(?:message|error)": *"((?:[^"\\]|\\.)+)"')
_RETRIED_STATUS = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_TOO_MUCH_STATUS = frozenset({429, 503, 529})
_NO_CREDIT = re.compile(
    r"insufficient_(?:user_)?quota|billing_hard_limit|credit balance is too low|insufficient (?:balance|credits?)\b"
    r"|(?:run|ran) out of credits|doesn't have any credits|key limit exceeded|arrearage",
    re.IGNORECASE,
)


def status_of(error: BaseException) -> int | None:
    """The HTTP status of a failure, where it has one."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def timed_out(error: BaseException) -> bool:
    """Whether the provider did not answer in time."""
    return isinstance(error, TimeoutError) or type(error).__name__ == "Timeout"


def is_refusal(error: BaseException) -> bool:
    """Whether it is the provider's content filter: a reply of its kind."""
    return type(error).__name__ == "ContentPolicyViolationError"


def words_of(error: BaseException) -> str:
    """All that is known of what the provider said."""
    return f"{error} {getattr(error, 'body', '')}"


def has_no_credit(error: BaseException) -> bool:
    """Whether the account is empty, which many providers say in words alone: OpenAI with a rate limit's status."""
    return status_of(error) == 402 or _NO_CREDIT.search(words_of(error)) is not None


def may_pass(error: BaseException) -> bool:
    """Whether a failure may be gone at the next attempt."""
    asked = retry_after(error)
    if is_refusal(error) or (asked is not None and asked > LONGEST_WAIT):
        return False
    if has_no_credit(error):
        return False
    return timed_out(error) or type(error).__name__ == "APIConnectionError" or status_of(error) in _RETRIED_STATUS


def is_rate_limit(error: BaseException) -> bool:
    """Whether the provider asks to be asked less often."""
    return status_of(error) == 429


def is_too_much(error: BaseException) -> bool:
    """Whether the provider has more to do than it can: a rate limit, an overload, a call that hangs."""
    return timed_out(error) or status_of(error) in _TOO_MUCH_STATUS


def retry_after(error: BaseException) -> float | None:
    """Seconds that the provider asks to wait for, if it does."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    stated = headers.get("retry-after") or (getattr(error, "litellm_response_headers", None) or {}).get(
        "retry-after"
    )
    try:
        return max(float(stated), 0.0) if stated is not None else None
    except ValueError:
        return None


def reason_of(error: BaseException) -> str:
    """What the provider said, in one line, without keys; of a JSON body the message alone."""
    said = _NAMES_BEFORE_A_REASON.sub("", one_line(str(error)))
    message = _MESSAGE.search(said)
    return scrubbed(_unescaped(message[1]) if message else said)[:_LONGEST_REASON]


def _unescaped(text: str) -> str:
    try:
        return one_line(str(json.loads(f'"{text}"')))
    except ValueError:
        return text


def failed_reply(error: BaseException, timeout: float) -> Reply:
    """The failure as data: its reason in one line, without keys. ``timeout`` in seconds."""
    if is_refusal(error):
        return Reply(text="", refused=True)
    if timed_out(error):
        return Reply(text=None, error=f"the model did not answer within {timeout:g} s")
    name, reason = type(error).__name__, reason_of(error)
    asked = retry_after(error)
    if asked is not None and asked > LONGEST_WAIT:
        return Reply(text=None, error=f"the provider asks to wait {asked:g} s: {reason}")
    return Reply(text=None, error=f"{name}: {reason}" if reason else name)


_NO_MODEL = re.compile(r"model_not_found|invalid_model|\binvalid model\b|not a valid model", re.IGNORECASE)
_ABOUT_THE_PROMPT = re.compile(r"moderat|flagged|content.?policy|blocked|safety", re.IGNORECASE)


def permanent_failure(error: BaseException, model: str, *, has_answered: bool) -> str | None:
    """Why a model need not be asked again, and what would mend it, in one sentence; None where asking may help.

    A 403 may be a gateway's objection to one prompt: it only counts where the model has not answered yet.
    """
    status, said, reason = status_of(error), words_of(error), reason_of(error)
    if has_no_credit(error):
        return f"{model} is asked no more, for the account has no credit left: top it up ({reason})"
    if status == 401:
        return f"{model} is asked no more, for the key is not accepted: set a right one{_in(model)} ({reason})"
    if status == 404 or (status == 400 and _NO_MODEL.search(said)):
        return (
            f"{model} is asked no more, for there is no such model where it was asked for: put it there, or start"
            f" another run with the right --model and --api-base ({reason})"
        )
    if status == 403 and not has_answered and not _ABOUT_THE_PROMPT.search(said):
        return f"{model} is asked no more, for the key{_in(model)} has no right to it: get it the right ({reason})"
    return None


def _in(model: str) -> str:
    """Where the key stands, where that can be told."""
    name = variable_of_key(model)
    return f" in {name}" if name else ""
