"""Calls LiteLLM from a thread, for what it has no coroutine of ours: embedding and reranking."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from memory_backends.base import BackendError
from memory_backends.metering import calls_noted_to
from memreplay.llm.catalogue import key_for
from memreplay.llm.errors import may_pass, permanent_failure, reason_of, retry_after
from memreplay.llm.litellm_setup import loaded_litellm
from memreplay.llm.rate_limiter import ModelUnavailableError

ATTEMPTS = 4
TIMEOUT_SECONDS = 60.0

T = TypeVar("T")


class BlockingModel:
    """A model by its LiteLLM name. ``option`` names it on the command line; ``gives`` is what it returns."""

    def __init__(self, option: str, gives: str, model: str, api_base: str | None, first_wait: float) -> None:
        self.name = f"litellm:{model}"
        self.model = model
        self._option, self._gives = option, gives
        self._api_base = api_base
        self._doubled = wait_exponential(multiplier=first_wait, max=10)

    def call(self, function: str, read: Callable[[Any], T], **given: Any) -> tuple[T, Any, float]:
        """Call a function of LiteLLM, again after transient failures.

        Returns what ``read`` makes of the response, the response, and the milliseconds it took.

        Raises:
            BackendError: the model does not answer, or ``read`` fails.
            ModelUnavailableError: no call of it can succeed.
        """
        litellm = loaded_litellm()
        started = time.perf_counter()
        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=self._wait,
            retry=retry_if_exception(may_pass),
            reraise=True,
        )
        try:
            with calls_noted_to(None):  # the caller counts it
                response = retrying(
                    getattr(litellm, function),
                    model=self.model,
                    api_base=self._api_base,
                    api_key=key_for(self.model, self._api_base),
                    timeout=TIMEOUT_SECONDS,
                    num_retries=0,
                    max_retries=0,
                    **given,
                )
            made = read(response)
        except Exception as error:
            why = permanent_failure(error, self.model, has_answered=True)
            if why is not None:
                raise ModelUnavailableError(f"{self._option}: {why}") from None
            raise BackendError(
                f"{self.name} returned no {self._gives}: {type(error).__name__}: {reason_of(error)}"
            ) from None
        return made, response, (time.perf_counter() - started) * 1000

    def _wait(self, state: RetryCallState) -> float:
        """Seconds before the next attempt: what the provider asks for, else doubled each time."""
        error = state.outcome.exception() if state.outcome else None
        asked = retry_after(error) if error else None
        return self._doubled(state) if asked is None else asked
