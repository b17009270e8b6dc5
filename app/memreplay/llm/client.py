"""Calls models, with a rate limit, a timeout and bounded retries: through LiteLLM, or the embedded reader.

What a reply costs is computed here, from LiteLLM's table of prices. LiteLLM's own calculator takes milliseconds a
reply. Almost all replies need none of what it knows: they are text, of a model with a price per token, served at
the standard tier.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from memory_backends.metering import calls_noted_to
from memory_backends.stores.retry import with_answer_kept
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.catalogue import key_for, table_entry
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
from memreplay.llm.litellm_setup import chat_call, loaded_litellm
from memreplay.llm.model import AnswerModel, AnswerRequest, PromptMessage, Reply, TokenUsage
from memreplay.llm.rate_limiter import ModelUnavailableError, RateLimiter, RateLimiters, StoppedError
from memreplay.llm.secrets import redact_reply

if TYPE_CHECKING:
    from tenacity import RetryCallState

_TIER = re.compile(r"(?P<price>\w+_cost_per_token|cache_read_input_token_cost)_above_(?P<thousands>\d+)k_tokens")
_OF_OTHER_THINGS = re.compile(
    r"_(?:batches|priority|flex|balanced|ultrafast|decisions|above_1hr)|audio|image|video|per_query|per_session"
    r"|^(?:cache_creation|citation|output_cost_per_reasoning)"
)
"""Prices that a plain reply never pays: of other service tiers and media, and what its usage would mention."""

_INPUT, _OUTPUT, _CACHED = "input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost"
_PLAIN_DETAILS = frozenset({"cached_tokens", "text_tokens"})


@dataclass(frozen=True)
class _Prices:
    """US dollars per token from ``above`` prompt tokens on; ``cached`` None: cached tokens have no known price."""

    above: int
    prompt: float
    completion: float
    cached: float | None


@lru_cache(maxsize=64)
def _prices_of(model: str) -> tuple[_Prices, ...]:
    """The prices of a model, the tier of the longest prompts first; empty where they are not this simple."""
    entry = table_entry(model) or {}
    priced = {name: price for name, price in entry.items() if re.search("cost|pric|multiplier", name)}
    tiers: dict[int, dict[str, Any]] = {0: {}}
    for name, price in priced.items():
        tier = _TIER.fullmatch(name)
        if name in (_INPUT, _OUTPUT, _CACHED):
            tiers[0][name] = price
        elif tier is not None and tier["price"] in (_INPUT, _OUTPUT, _CACHED):
            tiers.setdefault(int(tier["thousands"]) * 1000, {})[tier["price"]] = price
        elif not _OF_OTHER_THINGS.search(name):
            return ()
    found = []
    for above, prices in sorted(tiers.items(), reverse=True):
        given = {**tiers[0], **prices}
        if not all(_is_price(given.get(name)) for name in (_INPUT, _OUTPUT)):
            return ()
        cached = given.get(_CACHED) if above == 0 or _CACHED in prices else None
        found.append(_Prices(above, given[_INPUT], given[_OUTPUT], cached if _is_price(cached) else None))
    return tuple(found)


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0


class CostMeter:
    """Computes costs. Remembers models of which LiteLLM knows no price, since finding that out takes as long."""

    def __init__(self) -> None:
        self._unknown: set[str] = set()

    def cost(self, litellm: Any, model: str, response: Any, usage: TokenUsage) -> float | None:
        """US dollars of LiteLLM's response, cached tokens at their lower price; None where the price is unknown."""
        if model in self._unknown:
            return None
        if usage.prompt and _is_plain(response):
            tier = next(
                (prices for prices in _prices_of(model) if usage.prompt > prices.above or not prices.above), None
            )
            if tier is not None and (tier.cached is not None or not usage.cached):
                cached = usage.cached * (tier.cached or 0.0)
                return (
                    max(usage.prompt - usage.cached, 0) * tier.prompt + cached + usage.completion * tier.completion
                )
        try:
            cost = float(litellm.completion_cost(completion_response=response, model=model))
        except Exception:
            if table_entry(model) is None:
                self._unknown.add(model)
            return None
        return cost if math.isfinite(cost) else None


def _is_plain(response: Any) -> bool:
    """Whether the provider counted only text, read or cached, and served it at the standard tier."""
    if getattr(response, "service_tier", None) not in (None, "default", "standard"):
        return False
    usage = getattr(response, "usage", None)
    if getattr(usage, "cost", None) is not None or getattr(usage, "server_tool_use", None) is not None:
        return False
    counted = [
        name
        for details in ("prompt_tokens_details", "completion_tokens_details")
        for name, count in _counts(getattr(usage, details, None))
        if count
    ]
    return _PLAIN_DETAILS.issuperset(counted)


def _counts(details: Any) -> list[tuple[str, Any]]:
    return list(vars(details).items()) if details is not None and hasattr(details, "__dict__") else []


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
        self._costs = CostMeter()
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
        # A run that finds all its replies on disk calls no model.
        from tenacity import AsyncRetrying, retry_if_exception

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
            # It takes 0.02 s to import; a run that finds all its replies on disk needs none.
            from memreplay.llm.extractive.reader import read

            return await with_answer_kept(asyncio.wait_for(read(request), self._timeout))
        if self._litellm is None:
            self._litellm = await asyncio.to_thread(loaded_litellm)
        started = time.perf_counter()
        call = chat_call(self._litellm)(
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
            **request.parameters,
        )
        with calls_noted_to(None):  # the caller counts the reply
            response = await with_answer_kept(asyncio.wait_for(call, self._timeout))
        elapsed = (time.perf_counter() - started) * 1000
        return _reply(request, response, elapsed, partial(self._costs.cost, self._litellm, request.model, response))

    def _key_for(self, request: AnswerRequest) -> str | None:
        """Found out once: it takes longer than the rest of the call."""
        place = (request.model, request.api_base)
        if place not in self._keys:
            self._keys[place] = key_for(*place)
        return self._keys[place]


def _as_sent(message: PromptMessage, *, marked: bool) -> Mapping[str, Any]:
    """The message for LiteLLM. Marked: all but its last segment is one block for the provider's prompt cache."""
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
    """An estimate; the provider counts them in its reply."""
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


def _reply(
    request: AnswerRequest, response: Any, elapsed: float, cost_of: Callable[[TokenUsage], float | None]
) -> Reply:
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
    prompt, completion, cached = map(_tokens, counts)
    used = TokenUsage(prompt=prompt, completion=completion, cached=cached)
    return Reply(
        text=None if is_empty else redact_reply(text or refusal or ""),
        error=_why_empty(choices[0].finish_reason, message) if is_empty else None,
        refused=refused,
        usage=used,
        cost_usd=cost_of(used) if usage is not None and all(map(_is_credible, counts)) else None,
        ms=elapsed,
        tool_calls=tuple(map(_tool_call, wanted)),
    )


def _tool_call(call: Any) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": redact_reply(call.function.arguments or "")}
    return {"id": call.id, "type": "function", "function": function}


_MOST_TOKENS = 10**9
"""No prompt is that long. A larger number, or a negative one, is a fault of the provider's server."""


def _is_credible(tokens: Any) -> bool:
    return tokens is None or (isinstance(tokens, int) and 0 <= tokens <= _MOST_TOKENS)


def _tokens(count: Any) -> int:
    """A count that the provider states; 0 where it states none, or none that can be true."""
    return count if count is not None and _is_credible(count) else 0


def _why_empty(finish_reason: str | None, message: Any) -> str:
    """An empty reply is no answer, right or wrong: the reason that the provider gives."""
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
        """The embedded reader's reply, or an error."""
        if request.model == EXTRACTIVE_MODEL:
            return await self._inner.answer(request)
        return Reply(text=None, error="offline: this call is not recorded")


class NeverUnavailableModel:
    """For a server that keeps running: calls an unavailable model again, since the user may have fixed it."""

    def __init__(self) -> None:
        self._rate_limiters = RateLimiters()
        self._inner = LiteLLMModel(rate_limiters=self._rate_limiters)

    async def answer(self, request: AnswerRequest) -> Reply:
        """The reply. Every failure is one, with its reason."""
        self._rate_limiters.mark_available()
        try:
            return await self._inner.answer(request)
        except ModelUnavailableError as error:
            return Reply(text=None, error=str(error))
