"""Embeds texts and scores them for a question with any embedding or reranking model that LiteLLM knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from memory_backends.base import BackendError, TextEmbedder, TextReranker
from memory_backends.metering import calls_noted_to, note_call
from memory_backends.retrieval.embedding import unit_vectors
from memory_backends.stores.trace import ModelCall
from memreplay.llm.catalogue import key_for, table_entry
from memreplay.llm.errors import may_pass, permanent_failure, reason_of, refused_reply, retry_after
from memreplay.llm.litellm_setup import client_for, loaded_litellm
from memreplay.llm.model import MOST_DOLLARS, MOST_TOKENS
from memreplay.llm.rate_limiter import ModelUnavailableError
from memreplay.numbers import finite, finite_count

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
                    **client_for(function, self.model, self._api_base),
                    **given,
                )
            made = read(response)
        except Exception as error:
            why = permanent_failure(error, self.model, has_answered=True)
            if why is not None:
                raise ModelUnavailableError(f"{self._option}: {why}") from None
            said = refused_reply(error) or f"{type(error).__name__}: {reason_of(error)}"
            raise BackendError(f"{self.name} returned no {self._gives}: {said}") from None
        return made, response, (time.perf_counter() - started) * 1000

    def _wait(self, state: RetryCallState) -> float:
        """Seconds before the next attempt: what the provider asks for, else doubled each time."""
        error = state.outcome.exception() if state.outcome else None
        asked = retry_after(error) if error else None
        return self._doubled(state) if asked is None else asked


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


_LARGEST_SCORE = 1e30
"""Largest magnitude of a score, and of a number in a vector, so that their squares fit into a float."""


def _rows(response: Any) -> list[list[float]]:
    rows = [entry["embedding"] for entry in sorted(response.data, key=lambda entry: entry["index"])]
    if len({len(row) for row in rows}) > 1:
        raise ValueError("the vectors differ in length")
    return [[_score(number) for number in row] for row in rows]


def _score(value: Any) -> float:
    score = finite(value, -_LARGEST_SCORE, _LARGEST_SCORE)
    if score is None:
        raise ValueError(f"{str(value)[:40]!r} is no usable number")
    return score


def _call_of(model: str, response: Any, ms: float) -> ModelCall:
    try:
        stated = loaded_litellm().completion_cost(completion_response=response, model=model)
        cost = finite(stated, 0, MOST_DOLLARS)
    except Exception:
        cost = None
    used = finite_count(getattr(getattr(response, "usage", None), "prompt_tokens", None), MOST_TOKENS) or 0
    return ModelCall(purpose="embedding", model=model, prompt_tokens=used, cost_usd=cost, ms=ms)


class LiteLLMReranker(TextReranker):
    """A reranking model by its LiteLLM name. All texts of a question go into one call."""

    def __init__(self, model: str, api_base: str | None, first_wait: float = 0.5) -> None:
        self._model = BlockingModel("--reranker", "scores", model, api_base, first_wait)
        self.name = self._model.name

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the provider's relevance scores.

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
        note_call(_call_of_reranking(self._model.model, response, ms))
        if sorted(scores) != list(range(len(texts))):
            raise BackendError(f"{self.name} did not return one score for each of {len(texts)} texts")
        return [scores[place] for place in range(len(texts))]


def _scores(response: Any) -> dict[int, float]:
    """Place of a text to its score."""
    return {int(result["index"]): _score(result["relevance_score"]) for result in response.results}


def _call_of_reranking(model: str, response: Any, ms: float) -> ModelCall:
    meta = getattr(response, "meta", None) or {}
    billed, counted = meta.get("billed_units") or {}, meta.get("tokens") or {}
    tokens = finite_count(billed.get("total_tokens") or counted.get("input_tokens"), MOST_TOKENS) or 0
    searches = finite_count(billed.get("search_units"), MOST_TOKENS)
    cost = finite(_cost(table_entry(model) or {}, searches, tokens), 0, MOST_DOLLARS)
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
