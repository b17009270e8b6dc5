"""Scores texts for a question with any reranking model that LiteLLM knows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from memory_backends.base import BackendError, TextReranker
from memory_backends.metering import note_call
from memory_backends.stores.trace import ModelCall
from memreplay.llm.blocking import BlockingModel
from memreplay.llm.catalogue import table_entry


class LiteLLMReranker(TextReranker):
    """A reranking model by its LiteLLM name. All texts of a question go into one call."""

    def __init__(self, model: str, api_base: str | None, first_wait: float = 0.5) -> None:
        self._model = BlockingModel("--reranker", "scores", model, api_base, first_wait)
        self.name = self._model.name

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """The provider's relevance scores.

        Raises:
            BackendError: the model does not answer, or not for every text.
            ModelUnavailableError: no call of it can succeed.
        """
        if not texts:
            return []
        # Providers reject a blank text.
        asked, *given = (text if text.strip() else "." for text in (query, *texts))
        scores, response, ms = self._model.call(
            "rerank", _scores, query=asked, documents=given, return_documents=False
        )
        note_call(_call_of(self._model.model, response, ms))
        if sorted(scores) != list(range(len(texts))) or not all(map(math.isfinite, scores.values())):
            raise BackendError(f"{self.name} did not return one score for each of {len(texts)} texts")
        return [scores[place] for place in range(len(texts))]


def _scores(response: Any) -> dict[int, float]:
    """Place of a text to its score."""
    return {int(result["index"]): float(result["relevance_score"]) for result in response.results}


def _call_of(model: str, response: Any, ms: float) -> ModelCall:
    meta = getattr(response, "meta", None) or {}
    billed, counted = meta.get("billed_units") or {}, meta.get("tokens") or {}
    tokens = billed.get("total_tokens") or counted.get("input_tokens") or 0
    cost = _cost(table_entry(model) or {}, billed.get("search_units"), tokens)
    return ModelCall(purpose="reranking", model=model, prompt_tokens=tokens, cost_usd=cost, ms=ms)


def _cost(prices: Mapping[str, Any], searches: int | None, tokens: int) -> float | None:
    """US dollars; None where the price, or what it is multiplied with, is unknown.

    LiteLLM's own calculator returns 0 there.
    """
    for price, amount in (
        (prices.get("input_cost_per_query"), searches),
        (prices.get("input_cost_per_token"), tokens),
    ):
        if price:
            return price * amount if amount else None
    return 0.0 if prices else None
