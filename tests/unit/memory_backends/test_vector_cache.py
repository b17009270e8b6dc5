"""Vectors on disk: embedded once for all runs and processes, and only a cache."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from memory_backends.retrieval.embedding import StoredEmbedder
from tests.stubs.memory import WordEmbedder


class CountingEmbedder(WordEmbedder):
    """Remembers what it was asked for."""

    def __init__(self, name: str = "words") -> None:
        self.name = name
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]):
        self.asked += texts
        return super().embed(texts)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "caches" / "vectors.sqlite3"


def test_what_one_run_embedded_no_later_run_embeds_again(path):
    first, second = CountingEmbedder(), CountingEmbedder()
    vectors = StoredEmbedder(first, path).embed(["a cat", "a dog", "a cat"])
    again = StoredEmbedder(second, path).embed(["a dog", "a cat", "a cow", "\ud800"])
    assert first.asked == ["a cat", "a dog"]
    assert second.asked == ["a cow", "\ud800"]
    assert np.array_equal(again[:2], vectors[[1, 0]])


def test_models_do_not_share_vectors(path):
    StoredEmbedder(CountingEmbedder("one"), path).embed(["a cat"])
    other = CountingEmbedder("other")
    StoredEmbedder(other, path).embed(["a cat"])
    assert other.asked == ["a cat"]


def test_a_vector_of_another_length_is_embedded_anew(path):
    class Longer(CountingEmbedder):
        dimension = 12

    StoredEmbedder(CountingEmbedder(), path).embed(["a cat"])
    longer = Longer()
    assert StoredEmbedder(longer, path).embed(["a cat"]).shape == (1, 12)
    assert longer.asked == ["a cat"]


def test_several_runs_at_once_share_the_file(path):
    texts = [f"text {n}" for n in range(200)]

    def run(_: int):
        return StoredEmbedder(CountingEmbedder(), path).embed(texts)

    with ThreadPoolExecutor(4) as runs:
        results = list(runs.map(run, range(4)))
    assert all(np.array_equal(result, results[0]) for result in results)
    with sqlite3.connect(path) as connection:
        assert connection.execute("select count(*) from vectors").fetchone() == (200,)


@pytest.mark.parametrize("spoil", ["folder", "text"])
def test_without_a_usable_file_the_texts_are_embedded_all_the_same(path, spoil):
    path.parent.mkdir(parents=True)
    if spoil == "folder":
        path.mkdir()
    else:
        path.write_text("this is no database\n" * 200)
    counting = CountingEmbedder()
    embedder = StoredEmbedder(counting, path)
    assert embedder.embed(["a cat"]).shape == (1, counting.dimension)
    assert embedder.embed([]).shape == (0, counting.dimension)
    embedder.close()


def test_after_it_is_closed_it_still_embeds(path):
    embedder = StoredEmbedder(CountingEmbedder(), path)
    embedder.close()
    embedder.close()
    assert len(embedder.embed(["a cat"])) == 1


def test_one_that_writes_nothing_finds_vectors_and_remembers_new_ones_in_this_process(path):
    StoredEmbedder(CountingEmbedder(), path).embed(["a cat"])
    asked, later = CountingEmbedder(), CountingEmbedder()
    reading = StoredEmbedder(asked, path, writes=False)
    first, second = reading.embed(["a cat", "a dog"]), reading.embed(["a dog", "a cat"])
    assert asked.asked == ["a dog"] and np.array_equal(first, second[::-1])
    StoredEmbedder(later, path).embed(["a cat", "a dog"])
    assert later.asked == ["a dog"]
