"""Embeds texts with any embedding model that LiteLLM knows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from memory_backends.base import BackendError, TextEmbedder
from memory_backends.metering import calls_noted_to, note_call
from memory_backends.retrieval.embedding import unit_vectors
from memory_backends.stores.trace import ModelCall
from memreplay.llm.catalogue import key_for
from memreplay.llm.errors import may_pass, permanent_failure, reason_of
from memreplay.llm.litellm_setup import loaded_litellm
from memreplay.llm.rate_limiter import ModelUnavailableError

TEXTS_PER_CALL = 128
ATTEMPTS = 4
TIMEOUT_SECONDS = 60.0


class LiteLLMEmbedder(TextEmbedder):
    """An embedding model by its LiteLLM name. The first call tells its dimension."""

    def __init__(self, model: str, api_base: str | None, first_wait: float = 0.5) -> None:
        self.name = f"litellm:{model}"
        self._model = model
        self._api_base = api_base
        self._first_wait = first_wait

    @cached_property
    def dimension(self) -> int:
        """Raises :class:`BackendError` if the model does not answer."""
        return int(self.embed(["dimension"]).shape[1])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of unit length.

        Raises:
            BackendError: the model does not answer.
            ModelUnavailableError: no call of it can succeed.
        """
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        # Providers reject a blank text.
        given = [text if text.strip() else "." for text in texts]
        rows = [
            row
            for start in range(0, len(given), TEXTS_PER_CALL)
            for row in self._call(given[start : start + TEXTS_PER_CALL])
        ]
        return unit_vectors(np.array(rows, dtype=np.float32))

    def _call(self, texts: list[str]) -> list[list[float]]:
        litellm = loaded_litellm()
        started = time.perf_counter()
        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_exponential(multiplier=self._first_wait, max=10),
            retry=retry_if_exception(may_pass),
            reraise=True,
        )
        try:
            with calls_noted_to(None):  # it is counted below
                response: Any = retrying(
                    litellm.embedding,
                    model=self._model,
                    input=texts,
                    api_base=self._api_base,
                    api_key=key_for(self._model, self._api_base),
                    timeout=TIMEOUT_SECONDS,
                    num_retries=0,
                    max_retries=0,
                )
            data = sorted(response.data, key=lambda entry: entry["index"])
            rows = [entry["embedding"] for entry in data]
        except Exception as error:
            why = permanent_failure(error, self._model, has_answered=True)
            if why is not None:
                raise ModelUnavailableError(f"--embedder: {why}") from None
            raise BackendError(
                f"{self.name} returned no vectors: {type(error).__name__}: {reason_of(error)}"
            ) from None
        note_call(_call_of(litellm, self._model, response, (time.perf_counter() - started) * 1000))
        if len(rows) != len(texts):
            raise BackendError(f"{self.name} returned {len(rows)} vectors for {len(texts)} texts")
        return rows


def _call_of(litellm: Any, model: str, response: Any, ms: float) -> ModelCall:
    try:
        cost: float | None = float(litellm.completion_cost(completion_response=response, model=model))
    except Exception:
        cost = None
    used = getattr(getattr(response, "usage", None), "prompt_tokens", None) or 0
    return ModelCall(purpose="embedding", model=model, prompt_tokens=used, cost_usd=cost, ms=ms)
