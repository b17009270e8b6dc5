"""Imports LiteLLM once, late, offline and silently.

The calls that a memory makes through LiteLLM by itself, past the model that memreplay gives it, are counted.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from threading import Lock, Thread
from types import ModuleType
from typing import Any

from memory_backends.metering import call_began, call_ended, watch_calls
from memory_backends.stores.trace import ModelCall
from memreplay.llm.model import MOST_DOLLARS, MOST_TOKENS, AnswerRequest, Reply
from memreplay.numbers import finite, finite_count

_importing = Lock()


def loaded_litellm() -> ModuleType:
    """Return the configured module. The first call takes seconds: make it in a thread."""
    with _importing:
        return _load()


def warm_up() -> Thread:
    """Start the import in a thread, ahead of need.

    The program waits for it at its end: Python aborts when it has to stop a thread that initialises compiled code.
    """
    thread = Thread(target=loaded_litellm, name="import-litellm")
    thread.start()
    return thread


@lru_cache(maxsize=1)
def _load() -> ModuleType:
    # Set before the import, or LiteLLM downloads its price list and logs that to standard error.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # Or it loads the .env of a folder that it guesses, which could send prompts and keys to another server.
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    import litellm

    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(logging.CRITICAL)
        logger.propagate = False
    # A call cancelled right after its start (Ctrl-C twice) leaves one of LiteLLM's coroutines behind.
    warnings.filterwarnings("ignore", r"coroutine '.*acompletion' was never awaited", RuntimeWarning)
    # A reply of another shape than OpenAI's; what cannot be read becomes an error with its reason.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = True
    from litellm.llms.custom_httpx.http_handler import get_ssl_configuration

    from memreplay.llm.bounded_http import BoundedAsyncClient, BoundedClient

    # A proxy, and the certificates, are those of the environment, as with LiteLLM's own clients.
    verify = get_ssl_configuration()
    litellm.client_session = BoundedClient(verify=verify)
    litellm.aclient_session = BoundedAsyncClient(verify=verify)
    return litellm


_TAKE_A_CLIENT: Mapping[str, frozenset[str]] = {
    "acompletion": frozenset(
        "anthropic azure_ai databricks deepseek fireworks_ai gemini groq hosted_vllm huggingface mistral ollama"
        " ollama_chat openrouter together_ai xai".split()
    ),
    "embedding": frozenset("cohere gemini hosted_vllm jina_ai lm_studio voyage".split()),
    "rerank": frozenset("azure_ai cohere hosted_vllm huggingface infinity jina_ai voyage".split()),
}
"""Functions of LiteLLM → providers that it calls with a client that is given to it.

Most others it calls through OpenAI's client, which it builds around ``client_session`` or ``aclient_session``.
"""


@lru_cache(maxsize=64)
def client_for(function: str, model: str, api_base: str | None) -> Mapping[str, Any]:
    """Return the arguments that make LiteLLM call a model with our clients; empty where it does so anyway."""
    litellm = loaded_litellm()
    try:
        provider = litellm.get_llm_provider(model, api_base=api_base)[1]
    except Exception:
        return {}  # the call itself says what is wrong
    if provider not in _TAKE_A_CLIENT[function]:
        return {}
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler, HTTPHandler

    if function != "acompletion":
        return {"client": HTTPHandler(client=litellm.client_session)}
    handler = AsyncHTTPHandler()
    handler.client = litellm.aclient_session
    return {"client": handler}


_watching: list[object] = []


def watch_litellm() -> None:
    """Report calls of LiteLLM from now on. LiteLLM is not imported for it."""
    watch_calls(_start)


def _start() -> None:
    litellm = sys.modules.get("litellm")
    if _watching or litellm is None or not hasattr(litellm, "callbacks"):
        return
    from litellm.integrations.custom_logger import CustomLogger

    class Meter(CustomLogger):
        """The beginning of a call is seen in the caller's context, its end in the background."""

        def log_pre_api_call(self, model: Any, messages: Any, kwargs: Any) -> None:
            call_began(str(kwargs.get("litellm_call_id")))

        def log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
            _ended(kwargs, response_obj, start_time, end_time, None)

        def log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
            _ended(kwargs, None, start_time, end_time, type(kwargs.get("exception")).__name__)

        async def async_log_success_event(
            self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
        ) -> None:
            self.log_success_event(kwargs, response_obj, start_time, end_time)

        async def async_log_failure_event(
            self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
        ) -> None:
            self.log_failure_event(kwargs, response_obj, start_time, end_time)

    _watching.append(Meter())
    litellm.callbacks.append(_watching[0])


def _ended(kwargs: Any, response: Any, start: datetime, end: datetime, error: str | None) -> None:
    usage = getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    prompt, completion, cached = (
        finite_count(stated, MOST_TOKENS) or 0
        for stated in (
            getattr(usage, "prompt_tokens", None),
            getattr(usage, "completion_tokens", None),
            getattr(details, "cached_tokens", None),
        )
    )
    call = ModelCall(
        purpose="embedding" if "embedding" in str(kwargs.get("call_type")) else "chat",
        model=str(kwargs.get("model")),
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        cost_usd=finite(kwargs.get("response_cost"), 0, MOST_DOLLARS) or None,
        ms=(end - start).total_seconds() * 1000,
        error=error,
        **_text_of(kwargs, response, error),
    )
    call_ended(str(kwargs.get("litellm_call_id")), call)


def _text_of(kwargs: Any, response: Any, error: str | None) -> dict[str, Any]:
    """Return what a memory sent to a chat model, and what came back; empty where LiteLLM does not say it."""
    from memreplay.llm.parameters import HARMLESS
    from memreplay.llm.ports import text_of_call

    messages = kwargs.get("messages")
    if not isinstance(messages, list) or not all(isinstance(one, Mapping) for one in messages):
        return {}
    given = {name: value for name, value in (kwargs.get("optional_params") or {}).items() if name in HARMLESS}
    choices = getattr(response, "choices", None) or [None]
    message, reason = getattr(choices[0], "message", None), getattr(choices[0], "finish_reason", None)
    limit = given.get("max_completion_tokens", given.get("max_tokens"))
    spent = getattr(getattr(response, "usage", None), "completion_tokens", None)
    text, wanted = getattr(message, "content", None), getattr(message, "tool_calls", None) or ()
    reply = Reply(
        text=text if isinstance(text, str) else None,
        error=error,
        refused=reason == "content_filter",
        cut_at=finite_count(limit or spent, MOST_TOKENS) if reason == "length" else None,
        tool_calls=tuple(each.model_dump() for each in wanted if hasattr(each, "model_dump")),
    )
    sent = tuple(dict(one) for one in messages)
    request = AnswerRequest(
        model=str(kwargs.get("model")), api_base=None, messages=(), parameters=given, raw_messages=sent
    )
    return text_of_call(request, reply)
