"""Calls models, with a rate limit, a timeout and bounded retries: through LiteLLM, or the embedded reader."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
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
    no_connection,
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
from memreplay.llm.parameters import LONGER_BY, LearntParameters, limit_of
from memreplay.llm.prompts import one_line
from memreplay.llm.rate_limiter import ModelUnavailableError, RateLimiter, RateLimiters, StoppedError
from memreplay.llm.secrets import redact_reply, scrubbed
from memreplay.llm.tokens import token_counter
from memreplay.numbers import finite, finite_count

ATTEMPTS = 4
"""Attempts at one call, the first one included."""

ATTEMPTS_AT_UNREADABLE = 2
"""Attempts that end in a reply that cannot be read: each may have been billed."""

ATTEMPTS_AGAINST_RATE_LIMIT = 12
"""Attempts that end in a rate limit; they do not count as failures."""

TIMEOUT = 120.0
"""Seconds for one attempt."""

_LONGEST_BACK_OFF, _BACK_OFF_WITHOUT_A_SERVER = 30.0, 4.0
"""Seconds. A server that restarts is there again at once."""

_CHARACTERS_PER_TOKEN = 4


class LiteLLMModel:
    """Calls any model that LiteLLM knows, and the embedded reader, which needs no LiteLLM.

    ``timeout`` bounds one attempt, in seconds, but none of the embedded reader, which waits for no server;
    ``attempts`` includes the first one. What a server does not accept, and a limit that cut a reply, are learnt for
    the model, and said once through ``warn``.
    """

    def __init__(
        self,
        timeout: float = TIMEOUT,
        attempts: int = ATTEMPTS,
        rate_limiters: RateLimiters | None = None,
        warn: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self._timeout = timeout
        self._attempts = attempts
        self._rate_limiters = rate_limiters or RateLimiters()
        self._warn = warn
        self._learnt: dict[tuple[str, str | None], LearntParameters] = {}
        self._remarked: set[tuple[str, str]] = set()
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
                return failed_reply(error, self._timeout, request.api_base)
            limiter.mark_unavailable(why)
            raise ModelUnavailableError(why) from None

    async def _with_retries(self, request: AnswerRequest) -> Reply:
        limiter = self._rate_limiters.of(request.model)
        attempts: Counter[str] = Counter()

        def exhausted(state: RetryCallState) -> bool:
            error = _error_of(state)
            if no_connection(error):
                return False  # the rate limiter gives up a server that stays away
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
                reply = await self._adapted(request)
            except Exception as error:
                if timed_out(error):
                    limiter.stayed_silent(self._timeout)
                elif why := no_connection(error, request.api_base):
                    limiter.was_absent(why)
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

    async def _adapted(self, request: AnswerRequest) -> Reply:
        """Call with parameters that the server accepts, and once more if the reply was cut by its limit."""
        if request.model == EXTRACTIVE_MODEL:
            return await with_answer_kept(read(request))
        learnt = self._learnt.setdefault((request.model, request.api_base), LearntParameters())
        earlier: Reply | None = None
        while True:
            parameters = learnt.applied_to(request)
            try:
                reply = await self._call(request, parameters)
            except Exception as error:
                change = learnt.learn_from(error, parameters)
                if change is None:
                    raise
                if change:
                    self._warn(f"{request.model}: {change}")
                continue
            self._remark(request, reply)
            if reply.cut_at is None or request.accepts_cut_reply:
                return _paid_together(earlier, reply)
            if earlier is not None or limit_of(parameters) != limit_of(request.parameters):
                return _paid_together(earlier, _unanswered(reply))
            earlier = reply
            if not learnt.is_longer:
                learnt.is_longer = True
                self._warn(
                    f"{request.model}: a reply was cut by its limit of {reply.cut_at:,} tokens; the limits of this"
                    f" model are raised by {LONGER_BY:,} from now on (--reply-tokens sets one)"
                )

    def _remark(self, request: AnswerRequest, reply: Reply) -> None:
        """Say once of a model that another one answers in its place, or that its server cuts prompts."""
        remarks = {}
        if reply.served_by:
            remarks["served"] = f"its server answers with another model, {reply.served_by}"
        if reply.read_less:
            remarks["read less"] = (
                f"its server counted {reply.usage.prompt:,} tokens of a prompt that has clearly more: it cuts"
                " prompts, and wrong answers to them are not the model's; give it a larger window"
            )
        for kind, remark in remarks.items():
            if (request.model, kind) not in self._remarked:
                self._remarked.add((request.model, kind))
                self._warn(f"{request.model}: {remark}")

    async def _call(self, request: AnswerRequest, parameters: Mapping[str, Any]) -> Reply:
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
            **_window_for(request),
            **parameters,
        )
        with calls_noted_to(None):
            response = await with_answer_kept(asyncio.wait_for(call, self._timeout))
        elapsed = (time.perf_counter() - started) * 1000
        reply = _reply(request, response, elapsed, limit_of(parameters))
        if _was_cut(request, reply.usage.prompt):
            reply = reply.model_copy(update={"read_less": True})
        return reply

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
    error = _error_of(state)
    longest = _BACK_OFF_WITHOUT_A_SERVER if no_connection(error) else _LONGEST_BACK_OFF
    doubled, asked = min(0.25 * 2**state.attempt_number, longest), retry_after(error)
    return (doubled if asked is None else asked) + random.uniform(0, doubled / 2)


def _paid_together(earlier: Reply | None, reply: Reply) -> Reply:
    """Return a reply with what an earlier attempt cost as well."""
    if earlier is None:
        return reply
    costs = (earlier.cost_usd, reply.cost_usd)
    usage = TokenUsage(
        prompt=earlier.usage.prompt + reply.usage.prompt,
        completion=earlier.usage.completion + reply.usage.completion,
        cached=earlier.usage.cached + reply.usage.cached,
    )
    cost = None if None in costs else sum(each or 0.0 for each in costs)
    return reply.model_copy(update={"usage": usage, "cost_usd": cost, "ms": earlier.ms + reply.ms})


def _unanswered(reply: Reply) -> Reply:
    """Return a cut reply as the error that it is: what it would have said is unknown."""
    said = f", after “{one_line(reply.text)[:_SHOWN_OF_CUT]}…”" if reply.text else ", before any text"
    why = f"the reply was cut by its limit of {reply.cut_at:,} tokens{said}; --reply-tokens N raises the limit"
    return reply.model_copy(update={"text": None, "error": why})


_SHOWN_OF_CUT = 80
"""Characters."""

_OLLAMA = ("ollama/", "ollama_chat/")
_SMALLEST_WINDOW = 4096


def _window_for(request: AnswerRequest) -> dict[str, int]:
    """Return the window to ask of Ollama, which else cuts a longer prompt in silence."""
    if not request.model.startswith(_OLLAMA):
        return {}
    needed, window = _expected_tokens(request), _SMALLEST_WINDOW
    while window < needed * 1.25:
        window *= 2
    return {"num_ctx": window}


_READ_SHARE = 0.5
"""Tokenisers differ; below this share of what we count, a prompt was cut."""

_FEW_TOKENS, _STEP_OF_WINDOWS = 20, 64


def _was_cut(request: AnswerRequest, counted: int) -> bool:
    """Return whether a server counted clearly fewer tokens than it was sent, and as many as a usual window has.

    Any other small number may be that of a server which does not count.
    """
    text = "".join(message.content for message in request.messages)
    if not counted or counted % _STEP_OF_WINDOWS or counted >= len(text) / (_CHARACTERS_PER_TOKEN + 1):
        return False
    return counted < _READ_SHARE * token_counter(request.model)(text) - _FEW_TOKENS


def _served_by(request: AnswerRequest, response: Any) -> str | None:
    """Return the model that answered, if its name is not the asked one, nor a dated version of it."""
    served = str(getattr(response, "model", None) or "")
    asked, short = request.model.lower(), served.rpartition("/")[2].lower()
    wanted = asked.rpartition("/")[2]
    if not short or short.startswith(wanted) or wanted.startswith(short) or short in asked:
        return None
    return one_line(scrubbed(served))[:_LONGEST_NAME]


_LONGEST_NAME = 100
"""Characters of the name of a model that a server states."""


def _reply(request: AnswerRequest, response: Any, elapsed: float, limit: int | None) -> Reply:
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
    is_cut = choices[0].finish_reason == "length" and not refused
    return Reply(
        text=None if is_empty else redact_reply(text or refusal or ""),
        error=_why_empty(choices[0].finish_reason, message) if is_empty else None,
        cut_at=(limit or completion) if is_cut else None,
        served_by=_served_by(request, response),
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
