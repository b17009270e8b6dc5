"""Reranking with LiteLLM, against a loopback server that speaks Cohere's API."""

from __future__ import annotations

import pytest

from memory_backends.base import BackendError
from memory_backends.metering import MeteredReranker
from memory_backends.stores.trace import MemoryTrace, ModelCall
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.llm.embeddings import LiteLLMReranker
from memreplay.llm.rate_limiter import ModelUnavailableError
from memreplay.runtime.embedders import ensure_reranker_answers, plain_reranker, stored_reranker
from tests.stubs.openai_server import Answer, OpenAIServer, Received, failure, rerankings

MODEL = "cohere/rerank-v3.5"
UNPRICED = "cohere/rerank-of-our-own"


def by_length(received: Received) -> Answer:
    return rerankings([float(len(text)) for text in received.body["documents"]])


def calls_of(model: str, answer: Answer) -> list[ModelCall]:
    trace = MemoryTrace()
    with OpenAIServer([answer]) as server, trace.caused_by("recall", "test"):
        MeteredReranker(LiteLLMReranker(model, server.url), trace).score("who?", ["a"])
    return [entry for entry in trace.drain() if isinstance(entry, ModelCall)]


def test_scores_come_in_the_order_of_the_texts_from_one_call() -> None:
    with OpenAIServer(by_length) as server:
        scores = LiteLLMReranker(MODEL, server.url).score("who?", ["four", "a", "  "])
    (received,) = server.requests
    assert received.path.endswith("/rerank")
    assert received.body["query"] == "who?" and received.body["documents"] == ["four", "a", "."]
    assert scores == [4.0, 1.0, 1.0]


def test_a_call_counts_with_its_price_in_the_trace_of_the_memory_that_made_it() -> None:
    (call,) = calls_of(MODEL, rerankings([0.5], searches=2))
    assert call.purpose == "reranking" and call.phase == "recall" and call.model == MODEL
    assert call.cost_usd == pytest.approx(2 * 0.002)


@pytest.mark.parametrize(("model", "searches"), [(UNPRICED, 1), (MODEL, None)])
def test_an_unknown_price_is_none_and_not_nothing(model: str, searches: int | None) -> None:
    (call,) = calls_of(model, rerankings([0.5], searches=searches))
    assert call.cost_usd is None


def test_a_transient_failure_is_retried() -> None:
    with OpenAIServer([failure(503), failure(429), rerankings([0.5])]) as server:
        assert LiteLLMReranker(MODEL, server.url, first_wait=0.0).score("who?", ["a"]) == [0.5]


def test_it_waits_as_long_as_the_provider_asks() -> None:
    with OpenAIServer([failure(429, retry_after="0"), rerankings([0.5])]) as server:
        assert LiteLLMReranker(MODEL, server.url, first_wait=10.0).score("who?", ["a"]) == [0.5]


def test_a_permanent_failure_is_one_sentence_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "co-test-0123456789abcdefghijklmnop"
    monkeypatch.setenv("COHERE_API_KEY", key)
    with (
        OpenAIServer([failure(401, f"invalid api token: {key}")]) as server,
        pytest.raises(ModelUnavailableError, match=r"--reranker: .* the key is not accepted") as caught,
    ):
        LiteLLMReranker(MODEL, server.url).score("who?", ["a"])
    assert key not in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("scores", [[0.5], [0.5, float("nan")], [0.5, 0.4, 0.3]])
def test_anything_but_one_score_for_each_text_is_an_error(scores: list[float]) -> None:
    with (
        OpenAIServer([rerankings(scores)]) as server,
        pytest.raises(BackendError, match=r"one score for each of 2 texts|no usable number"),
    ):
        LiteLLMReranker(MODEL, server.url).score("who?", ["a", "b"])


@pytest.mark.parametrize("spec", ["bge", "litellm:", "fastembed", "cohere/rerank-v3.5", "minilm", ""])
def test_an_unknown_reranker_is_rejected_with_the_known_forms(spec: str) -> None:
    with pytest.raises(UsageError, match="fastembed:NAME, litellm:NAME"):
        plain_reranker(spec, None)


def test_a_hosted_reranker_without_its_key_is_reported_before_anything_is_sent() -> None:
    spec = f"litellm:{MODEL}"
    with pytest.raises(MissingServerOrKeyError, match="COHERE_API_KEY"):
        ensure_reranker_answers(spec, plain_reranker(spec, None), None)


def test_offline_only_scores_that_were_paid_for_are_used() -> None:
    spec = f"litellm:{MODEL}"
    with OpenAIServer(by_length) as server:
        online = stored_reranker(spec, server.url, offline=False)
        online.score("who?", ["four", "a"])
        online.close()
        offline = stored_reranker(spec, server.url, offline=True)
        assert offline.score("who?", ["a", "four"]) == [1.0, 4.0]
        with pytest.raises(BackendError, match="offline"):
            offline.score("who?", ["another"])
        offline.close()
    assert len(server.requests) == 1
