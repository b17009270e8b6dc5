"""The one way to a model: LiteLLM, with a time limit, a bounded retry, and failures as data."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from app.answering.litellm_setup import loaded_litellm
from app.answering.model import EXTRACTIVE_MODEL, AnswerRequest, Reply, TokenUsage
from app.answering.prompts import one_line
from app.answering.reachability import key_for
from app.answering.secrets import scrubbed

LONGEST_WAIT = 60.0
"""Seconds; a provider that asks for more is not waited for."""

_FIRST_WAIT = 0.5
_LONGEST_REASON = 300
_RETRIED_STATUS = frozenset({408, 409, 429, 500, 502, 503, 504, 529})


class LiteLLMModel:
    """Asks any model that LiteLLM knows, the embedded reader included.

    ``timeout`` in seconds bounds one attempt; ``attempts`` counts the first one. ``sleep`` can be replaced.
    """

    def __init__(
        self, timeout: float = 120.0, attempts: int = 4, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._timeout = timeout
        self._attempts = attempts
        self._sleep = sleep

    async def answer(self, request: AnswerRequest) -> Reply:
        """Ask once, again after passing failures. Every failure comes back as a reply with its reason."""
        try:
            litellm = await asyncio.to_thread(loaded_litellm)
            retrying = AsyncRetrying(
                stop=stop_after_attempt(self._attempts),
                wait=_wait,
                retry=retry_if_exception(_passes),
                sleep=self._sleep,
                reraise=True,
            )
            return await retrying(self._attempt, litellm, request)
        except Exception as error:
            return _failure(error, self._timeout)

    async def _attempt(self, litellm: Any, request: AnswerRequest) -> Reply:
        started = time.perf_counter()
        call = litellm.acompletion(
            model=request.model,
            messages=[{"role": message.role, "content": message.content} for message in request.messages],
            api_base=request.api_base,
            api_key=key_for(request.model, request.api_base) if request.model != EXTRACTIVE_MODEL else None,
            timeout=self._timeout,
            drop_params=True,
            num_retries=0,
            max_retries=0,
            **request.parameters,
        )
        response = await asyncio.wait_for(call, self._timeout)
        elapsed = (time.perf_counter() - started) * 1000
        return _reply(litellm, request, response, elapsed)


def _reply(litellm: Any, request: AnswerRequest, response: Any, elapsed: float) -> Reply:
    choices = getattr(response, "choices", None)
    if not choices:
        return Reply(text=None, error="the provider's reply holds no answer")
    message = choices[0].message
    # LiteLLM moves OpenAI's own field there.
    refusal = (getattr(message, "provider_specific_fields", None) or {}).get("refusal")
    refused = choices[0].finish_reason == "content_filter" or bool(refusal)
    usage = getattr(response, "usage", None)
    return Reply(
        text=message.content or refusal or "",
        refused=refused,
        usage=TokenUsage(
            prompt=getattr(usage, "prompt_tokens", None) or 0,
            completion=getattr(usage, "completion_tokens", None) or 0,
            cached=getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None) or 0,
        ),
        cost_usd=_cost(litellm, request.model, response),
        ms=elapsed,
    )


def _cost(litellm: Any, model: str, response: Any) -> float | None:
    """In US dollars; None where LiteLLM knows no price. The embedded reader is truly free."""
    if model == EXTRACTIVE_MODEL:
        return 0.0
    try:
        return float(litellm.completion_cost(completion_response=response, model=model))
    except Exception:
        return None


def _passes(error: BaseException) -> bool:
    """Whether a failure may be gone at the next attempt."""
    if (asked := _retry_after(error)) is not None and asked > LONGEST_WAIT:
        return False
    if isinstance(error, TimeoutError) or type(error).__name__ in ("Timeout", "APIConnectionError"):
        return True
    return getattr(error, "status_code", None) in _RETRIED_STATUS


def _wait(state: RetryCallState) -> float:
    """Seconds before the next attempt: what the provider asked for, else doubled each time, with jitter."""
    error = state.outcome.exception() if state.outcome else None
    asked = _retry_after(error) if error else None
    doubled = _FIRST_WAIT * 2 ** (state.attempt_number - 1)
    return (asked if asked is not None else doubled) + random.uniform(0, doubled / 2)


def _retry_after(error: BaseException) -> float | None:
    """Seconds that the provider asks to wait for, if it does."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    stated = headers.get("retry-after") or (getattr(error, "litellm_response_headers", None) or {}).get(
        "retry-after"
    )
    try:
        return max(float(stated), 0.0) if stated is not None else None
    except ValueError:
        return None


def _failure(error: Exception, timeout: float) -> Reply:
    name = type(error).__name__
    reason = scrubbed(one_line(str(error)))[:_LONGEST_REASON]
    if name == "ContentPolicyViolationError":
        return Reply(text="", refused=True)
    if isinstance(error, TimeoutError) or name == "Timeout":
        return Reply(text=None, error=f"the model did not answer within {timeout:g} s")
    asked = _retry_after(error)
    if asked is not None and asked > LONGEST_WAIT:
        return Reply(text=None, error=f"the provider asks to wait {asked:g} s: {reason}")
    return Reply(text=None, error=f"{name}: {reason}" if reason else name)
