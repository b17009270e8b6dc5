"""The one way to a model: LiteLLM, with a rate limit, a time limit and a bounded retry."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from typing import Any

from memory_backends.stores.retry import with_answer_kept
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.catalogue import key_for
from memreplay.llm.errors import failed_reply, is_rate_limit, is_too_much, may_pass, permanent_failure, retry_after
from memreplay.llm.litellm_setup import loaded_litellm
from memreplay.llm.model import AnswerModel, AnswerRequest, PromptMessage, Reply, TokenUsage
from memreplay.llm.rate_limiter import ModelUnavailableError, RateLimiter, RateLimiters, StoppedError
from memreplay.llm.secrets import redact_reply

ATTEMPTS = 4
"""Most attempts at one call, the first one included, whatever fails."""

ATTEMPTS_AGAINST_RATE_LIMIT = 12
"""Most attempts where the provider only asks for patience."""

TIMEOUT = 120.0
"""Seconds that one attempt may take."""

_FIRST_WAIT = 0.5
_LONGEST_BACK_OFF = 30.0
_CHARACTERS_A_TOKEN = 4


class LiteLLMModel:
    """Asks any model that LiteLLM knows, the embedded reader included.

    ``timeout`` in seconds bounds one attempt; ``attempts`` counts the first one. ``paces`` may be shared with
    whoever wants to know how many calls there can be at once.
    """

    def __init__(
        self, timeout: float = TIMEOUT, attempts: int = ATTEMPTS, paces: RateLimiters | None = None
    ) -> None:
        self._timeout = timeout
        self._attempts = attempts
        self._paces = paces or RateLimiters()
        self._litellm: Any = None

    async def answer(self, request: AnswerRequest) -> Reply:
        """Ask once, again after passing failures. A failure of this call comes back as a reply with its reason.

        Raises:
            StoppedError: the run ends, and no call is under way.
            ModelUnavailableError: no call of this model can succeed, this one neither.
        """
        try:
            if self._litellm is None:
                self._litellm = await asyncio.to_thread(loaded_litellm)
            return await self._patiently(request)
        except StoppedError:
            raise
        except Exception as error:
            pace = self._paces.of(request.model)
            why = permanent_failure(error, request.model, has_answered=pace.has_answered)
            if why is None:
                return failed_reply(error, self._timeout)
            pace.give_up(why)
            raise ModelUnavailableError(why) from None

    async def _patiently(self, request: AnswerRequest) -> Reply:
        pace = self._paces.of(request.model)
        attempt, rate_limited = 0, 0
        while True:
            try:
                return await self._attempt(request, pace)
            except StoppedError:
                raise
            except Exception as error:
                if is_rate_limit(error):
                    rate_limited += 1
                else:
                    attempt += 1
                if not may_pass(error) or attempt >= self._attempts or rate_limited >= ATTEMPTS_AGAINST_RATE_LIMIT:
                    raise
                seconds = _back_off(attempt + rate_limited, retry_after(error))
            await pace.rest(seconds)

    async def _attempt(self, request: AnswerRequest, pace: RateLimiter) -> Reply:
        expected = _expected_tokens(request)
        async with pace.call(expected) as begun:
            try:
                reply = await self._call(request)
            except Exception as error:
                if is_too_much(error):
                    pace.turned_away(begun, min(retry_after(error) or 0.0, _LONGEST_BACK_OFF * 2))
                else:
                    pace.failed()
                raise
            used = reply.usage.prompt + reply.usage.completion
            pace.kept_up(used - expected if used else 0)
            return reply

    async def _call(self, request: AnswerRequest) -> Reply:
        started = time.perf_counter()
        call = self._litellm.acompletion(
            model=request.model,
            messages=[_as_sent(message, marked=request.marks_prefix) for message in request.messages],
            api_base=request.api_base,
            api_key=key_for(request.model, request.api_base) if request.model != EXTRACTIVE_MODEL else None,
            timeout=self._timeout,
            drop_params=True,
            num_retries=0,
            max_retries=0,
            **request.parameters,
        )
        response = await with_answer_kept(asyncio.wait_for(call, self._timeout))
        elapsed = (time.perf_counter() - started) * 1000
        return _reply(self._litellm, request, response, elapsed)


def _as_sent(message: PromptMessage, *, marked: bool) -> Mapping[str, Any]:
    """The message for LiteLLM; marked, all but its last segment is a block that the provider shall keep."""
    if not marked or len(message.segments) < 2:
        return {"role": message.role, "content": message.content}
    shared, rest = "".join(message.segments[:-1]), message.segments[-1]
    return {
        "role": message.role,
        "content": [
            {"type": "text", "text": shared, "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": rest},
        ],
    }


def _expected_tokens(request: AnswerRequest) -> int:
    """About what a call will use; the true number is known when it is back."""
    characters = sum(len(segment) for message in request.messages for segment in message.segments)
    return characters // _CHARACTERS_A_TOKEN + int(request.parameters.get("max_tokens") or 0)


def _back_off(attempts: int, asked: float | None) -> float:
    """Seconds before the next attempt: what the provider asked for, else doubled each time; with jitter."""
    doubled = min(_FIRST_WAIT * 2 ** (attempts - 1), _LONGEST_BACK_OFF)
    return (asked if asked is not None else doubled) + random.uniform(0, doubled / 2)


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
        text=redact_reply(message.content or refusal or ""),
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
    """In US dollars, with the lower price of cached tokens; None where LiteLLM knows no price.

    The embedded reader is truly free.
    """
    if model == EXTRACTIVE_MODEL:
        return 0.0
    try:
        return float(litellm.completion_cost(completion_response=response, model=model))
    except Exception:
        return None


class OfflineModel:
    """Lets only the embedded reader be asked; it needs no network."""

    def __init__(self, inner: AnswerModel) -> None:
        self._inner = inner

    async def answer(self, request: AnswerRequest) -> Reply:
        """The embedded reader's reply, or an error."""
        if request.model == EXTRACTIVE_MODEL:
            return await self._inner.answer(request)
        return Reply(text=None, error="offline: this call is not on record")


class UnstoppableModel:
    """Asks through LiteLLM whoever was wrong the last time: a key, or a model, may have been put right since."""

    def __init__(self) -> None:
        self._paces = RateLimiters()
        self._inner = LiteLLMModel(paces=self._paces)

    async def answer(self, request: AnswerRequest) -> Reply:
        """The reply. Every failure is one, with its reason."""
        self._paces.try_again()
        try:
            return await self._inner.answer(request)
        except ModelUnavailableError as error:
            return Reply(text=None, error=str(error))
