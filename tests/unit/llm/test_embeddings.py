"""Embedding with LiteLLM, against a loopback server that speaks OpenAI's API."""

from __future__ import annotations

import numpy as np
import pytest

from memory_backends.base import BackendError
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.llm.embeddings import TEXTS_PER_CALL, LiteLLMEmbedder
from memreplay.llm.rate_limiter import ModelUnavailableError
from memreplay.runtime.embedders import ensure_embedder_answers, plain_embedder
from tests.stubs.openai_server import Answer, OpenAIServer, Received, embeddings, failure

MODEL = "openai/text-embedding-stub"


def by_length(received: Received) -> Answer:
    return embeddings([[float(len(text)), 1.0] for text in received.body["input"]])


def test_vectors_come_in_the_order_of_the_texts_and_of_unit_length() -> None:
    with OpenAIServer(by_length) as server:
        vectors = LiteLLMEmbedder(MODEL, server.url).embed(["a", "four", "  "])
    (received,) = server.requests
    assert received.path.endswith("/embeddings")
    assert received.body["input"] == ["a", "four", "."]
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)
    assert vectors[1][0] / vectors[1][1] == pytest.approx(4)


def test_many_texts_are_sent_in_several_calls() -> None:
    with OpenAIServer(by_length) as server:
        vectors = LiteLLMEmbedder(MODEL, server.url).embed(["text"] * (TEXTS_PER_CALL + 1))
    assert len(vectors) == TEXTS_PER_CALL + 1
    assert [len(received.body["input"]) for received in server.requests] == [TEXTS_PER_CALL, 1]


def test_the_dimension_takes_one_call() -> None:
    with OpenAIServer(by_length) as server:
        embedder = LiteLLMEmbedder(MODEL, server.url)
        assert embedder.dimension == embedder.dimension == 2
        assert embedder.embed([]).shape == (0, 2)
    assert len(server.requests) == 1


def test_a_transient_failure_is_retried() -> None:
    with OpenAIServer([failure(503), failure(429), embeddings([[1.0, 0.0]])]) as server:
        vectors = LiteLLMEmbedder(MODEL, server.url, first_wait=0.0).embed(["a"])
    assert vectors.tolist() == [[1.0, 0.0]]


def test_a_permanent_failure_is_one_sentence_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-test-0123456789abcdefghijklmnop"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with (
        OpenAIServer([failure(401, f"Incorrect API key provided: {key}")]) as server,
        pytest.raises(ModelUnavailableError, match="the key is not accepted") as caught,
    ):
        LiteLLMEmbedder(MODEL, server.url).embed(["a"])
    assert key not in str(caught.value) and "\n" not in str(caught.value)


def test_too_few_vectors_are_an_error() -> None:
    with OpenAIServer([embeddings([[1.0, 0.0]])]) as server, pytest.raises(BackendError, match="1 vectors for 2"):
        LiteLLMEmbedder(MODEL, server.url).embed(["a", "b"])


@pytest.mark.parametrize("spec", ["word2vec", "litellm:", "fastembed", "openai/text-embedding-3-small", ""])
def test_an_unknown_embedder_is_rejected_with_the_known_ones(spec: str) -> None:
    with pytest.raises(UsageError, match="minilm, fastembed:NAME, litellm:NAME"):
        plain_embedder(spec, None)


def test_a_hosted_embedder_without_its_key_is_reported_before_anything_is_sent() -> None:
    spec = "litellm:openai/text-embedding-3-small"
    with pytest.raises(MissingServerOrKeyError, match="OPENAI_API_KEY"):
        ensure_embedder_answers(spec, plain_embedder(spec, None), None)


def test_a_server_without_vectors_is_reported() -> None:
    with (
        OpenAIServer([failure(404)]) as server,
        pytest.raises(MissingServerOrKeyError, match="its server does not know it"),
    ):
        ensure_embedder_answers(f"litellm:{MODEL}", plain_embedder(f"litellm:{MODEL}", server.url), server.url)
