"""Calls models, with a rate limit, a timeout and bounded retries: through LiteLLM, or the embedded reader."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from memory_backends.metering import calls_noted_to
from memory_backends.stores.retry import with_answer_kept
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.catalogue import key_for
from memreplay.llm.errors import (
    failed_reply,
    is_rate_limit,
    is_too_much,
    is_unreadable_reply,
    may_pass,
    permanent_failure,
    retry_after,
    timed_out,
)
from memreplay.llm.extractive.reader import read
from memreplay.llm.litellm_setup import client_for, loaded_litellm
from memreplay.llm.model import (
    MOST_DOLLARS,
    MOST_TOKENS,
    AnswerModel,
    AnswerRequest,
    PromptMessage,
    Reply,
    TokenUsage,
)
from memreplay.llm.rate_limiter import ModelUnavailableError, RateLimiter, RateLimiters, StoppedError
from memreplay.llm.secrets import redact_reply
from memreplay.numbers import finite, finite_count

ATTEMPTS = 4
"""Attempts at one call, the first one included."""

ATTEMPTS_AT_UNREADABLE = 2
"""Attempts that end in a reply that cannot be read: each may have been billed."""

ATTEMPTS_AGAINST_RATE_LIMIT = 12
"""Attempts that end in a rate limit; they do not count as failures."""

TIMEOUT = 120.0
"""Seconds for one attempt."""

_LONGEST_BACK_OFF = 30.0
_CHARACTERS_PER_TOKEN = 4


class LiteLLMModel:
    """Calls any model that LiteLLM knows, and the embedded reader, which needs no LiteLLM.

    ``timeout`` bounds one attempt, in seconds; ``attempts`` includes the first one.
    """

    def __init__(
        self, timeout: float = TIMEOUT, attempts: int = ATTEMPTS, rate_limiters: RateLimiters | None = None
    ) -> None:
        self._timeout = timeout
        self._attempts = attempts
        self._rate_limiters = rate_limiters or RateLimiters()
        self._litellm: Any = None
        self._keys: dict[tuple[str, str | None], str | None] = {}

    async def answer(self, request: AnswerRequest) -> Reply:
        """Call the model, again after transient failures. A call that fails for good is a reply with its reason.

        Raises:
            StoppedError: the run is stopping; no call is under way.
            ModelUnavailableError: no call of this model can succeed.
        """
        try:
            return await self._with_retries(request)
        except StoppedError:
            raise
        except Exception as error:
            limiter = self._rate_limiters.of(request.model)
            why = permanent_failure(error, request.model, has_answered=limiter.has_answered)
            if why is None:
                return failed_reply(error, self._timeout)
            limiter.mark_unavailable(why)
            raise ModelUnavailableError(why) from None

    async def _with_retries(self, request: AnswerRequest) -> Reply:
        limiter = self._rate_limiters.of(request.model)
        attempts: Counter[str] = Counter()

        def exhausted(state: RetryCallState) -> bool:
            error = _error_of(state)
            if is_rate_limit(error):
                attempts["rate limited"] += 1
                return attempts["rate limited"] >= ATTEMPTS_AGAINST_RATE_LIMIT
            attempts["failed"] += 1
            attempts["unreadable"] += is_unreadable_reply(error)
            return attempts["failed"] >= self._attempts or attempts["unreadable"] >= ATTEMPTS_AT_UNREADABLE

        retrying = AsyncRetrying(
            retry=retry_if_exception(may_pass), stop=exhausted, wait=_back_off, sleep=limiter.sleep, reraise=True
        )
        return await retrying(self._attempt, request, limiter)

    async def _attempt(self, request: AnswerRequest, limiter: RateLimiter) -> Reply:
        expected = _expected_tokens(request)
        async with limiter.call(expected) as begun:
            try:
                reply = await self._call(request)
            except Exception as error:
                if timed_out(error):
                    limiter.stayed_silent(self._timeout)
                else:
                    limiter.heard()
                if is_too_much(error):
                    limiter.rejected(begun, min(retry_after(error) or 0.0, _LONGEST_BACK_OFF * 2))
                else:
                    limiter.failed()
                raise
            used = reply.usage.prompt + reply.usage.completion
            limiter.succeeded(used - expected if used else 0)
            return reply

    async def _call(self, request: AnswerRequest) -> Reply:
        if request.model == EXTRACTIVE_MODEL:
            return await with_answer_kept(asyncio.wait_for(read(request), self._timeout))
        if self._litellm is None:
            self._litellm = await asyncio.to_thread(loaded_litellm)
        started = time.perf_counter()
        call = self._litellm.acompletion(
            model=request.model,
            messages=[
                *request.raw_messages,
                *(_as_sent(message, marked=request.marks_prefix) for message in request.messages),
            ],
            api_base=request.api_base,
            api_key=self._key_for(request),
            timeout=self._timeout,
            drop_params=True,
            num_retries=0,
            max_retries=0,
            # The caller counts the reply: no callback has to see it.
            **{"no-log": True},
            **client_for("acompletion", request.model, request.api_base),
            **request.parameters,
        )
        with calls_noted_to(None):
            response = await with_answer_kept(asyncio.wait_for(call, self._timeout))
        elapsed = (time.perf_counter() - started) * 1000
        return _reply(request, response, elapsed)

    def _key_for(self, request: AnswerRequest) -> str | None:
        """Found out once: it takes longer than the rest of the call."""
        place = (request.model, request.api_base)
        if place not in self._keys:
            self._keys[place] = key_for(*place)
        return self._keys[place]


def _as_sent(message: PromptMessage, *, marked: bool) -> Mapping[str, Any]:
    """Return the message for LiteLLM. Marked: all but its last segment is one block for the provider's prompt
    cache.
    """
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
    """Return an estimate; the provider counts them in its reply."""
    characters = sum(len(segment) for message in request.messages for segment in message.segments)
    characters += sum(len(str(message.get("content") or "")) for message in request.raw_messages)
    return characters // _CHARACTERS_PER_TOKEN + int(request.parameters.get("max_tokens") or 0)


def _error_of(state: RetryCallState) -> BaseException:
    error = state.outcome.exception() if state.outcome else None
    assert error is not None, "only failed attempts are retried"
    return error


def _back_off(state: RetryCallState) -> float:
    """Seconds before the next attempt: what the provider asks for, else doubled each time; with jitter."""
    doubled, asked = min(0.25 * 2**state.attempt_number, _LONGEST_BACK_OFF), retry_after(_error_of(state))
    return (doubled if asked is None else asked) + random.uniform(0, doubled / 2)


def _reply(request: AnswerRequest, response: Any, elapsed: float) -> Reply:
    choices = getattr(response, "choices", None)
    if not choices:
        return Reply(text=None, error="the provider's reply holds no answer")
    message = choices[0].message
    text = message.content or ""
    # LiteLLM moves the field "refusal" of OpenAI there.
    refusal = (getattr(message, "provider_specific_fields", None) or {}).get("refusal")
    refused = choices[0].finish_reason == "content_filter" or bool(refusal)
    wanted = (getattr(message, "tool_calls", None) or ()) if "tools" in request.parameters else ()
    is_empty = not text.strip() and not refused and not wanted
    usage = getattr(response, "usage", None)
    counts = [
        getattr(usage, "prompt_tokens", None),
        getattr(usage, "completion_tokens", None),
        getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None),
    ]
    prompt, completion, cached = (finite_count(count, MOST_TOKENS) or 0 for count in counts)
    used = TokenUsage(prompt=prompt, completion=completion, cached=cached)
    return Reply(
        text=None if is_empty else redact_reply(text or refusal or ""),
        error=_why_empty(choices[0].finish_reason, message) if is_empty else None,
        refused=refused,
        usage=used,
        cost_usd=_cost_of(response) if usage is not None and all(map(_is_credible, counts)) else None,
        ms=elapsed,
        tool_calls=tuple(map(_tool_call, wanted)),
    )


def _cost_of(response: Any) -> float | None:
    """Return US dollars, cached tokens at their lower price; None where LiteLLM knows no price.

    ``_hidden_params["response_cost"]`` is where LiteLLM documents the cost that it computes for every call.
    """
    cost = (getattr(response, "_hidden_params", None) or {}).get("response_cost")
    return finite(cost, 0, MOST_DOLLARS)


def _tool_call(call: Any) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": redact_reply(call.function.arguments or "")}
    return {"id": call.id, "type": "function", "function": function}


def _is_credible(tokens: Any) -> bool:
    return tokens is None or finite_count(tokens, MOST_TOKENS) is not None


def _why_empty(finish_reason: str | None, message: Any) -> str:
    """Return an empty reply is no answer, right or wrong: the reason that the provider gives."""
    if finish_reason == "length":
        return "the reply is empty: the token limit was reached before any text"
    if getattr(message, "tool_calls", None) or getattr(message, "function_call", None):
        return "the reply is empty: the model called a tool"
    return "the reply is empty"


class OfflineModel:
    """Calls only the embedded reader, which needs no network."""

    def __init__(self, inner: AnswerModel) -> None:
        self._inner = inner

    async def answer(self, request: AnswerRequest) -> Reply:
        """Return the embedded reader's reply, or an error."""
        if request.model == EXTRACTIVE_MODEL:
            return await self._inner.answer(request)
        return Reply(text=None, error="offline: this call is not recorded")


class NeverUnavailableModel:
    """A model for a server that keeps running: it calls an unavailable model again, since the user may have fixed
    it.
    """

    def __init__(self) -> None:
        self._rate_limiters = RateLimiters()
        self._inner = LiteLLMModel(rate_limiters=self._rate_limiters)

    async def answer(self, request: AnswerRequest) -> Reply:
        """Return the reply. Every failure is one, with its reason."""
        self._rate_limiters.mark_available()
        try:
            return await self._inner.answer(request)
        except ModelUnavailableError as error:
            return Reply(text=None, error=str(error))
