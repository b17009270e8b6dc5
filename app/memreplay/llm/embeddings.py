"""Embeds texts with any embedding model that LiteLLM knows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_backends.base import BackendError, TextEmbedder
from memory_backends.metering import note_call
from memory_backends.retrieval.embedding import unit_vectors
from memory_backends.stores.trace import ModelCall
from memreplay.llm.blocking import BlockingModel
from memreplay.llm.litellm_setup import loaded_litellm

TEXTS_PER_CALL = 128


class LiteLLMEmbedder(TextEmbedder):
    """An embedding model by its LiteLLM name. The first call tells its dimension."""

    def __init__(self, model: str, api_base: str | None, first_wait: float = 0.5) -> None:
        self._model = BlockingModel("--embedder", "vectors", model, api_base, first_wait)
        self.name = self._model.name

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
        rows, response, ms = self._model.call("embedding", _rows, input=texts)
        note_call(_call_of(self._model.model, response, ms))
        if len(rows) != len(texts):
            raise BackendError(f"{self.name} returned {len(rows)} vectors for {len(texts)} texts")
        return rows


def _rows(response: Any) -> list[list[float]]:
    return [entry["embedding"] for entry in sorted(response.data, key=lambda entry: entry["index"])]


def _call_of(model: str, response: Any, ms: float) -> ModelCall:
    try:
        cost: float | None = float(loaded_litellm().completion_cost(completion_response=response, model=model))
    except Exception:
        cost = None
    used = getattr(getattr(response, "usage", None), "prompt_tokens", None) or 0
    return ModelCall(purpose="embedding", model=model, prompt_tokens=used, cost_usd=cost, ms=ms)
