"""What a reranker changes: the order of hits, never what is stored. Its scores are paid for once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from memory_backends.base import BackendError, TextReranker
from memory_backends.metering import note_call
from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.retrieval.fastembed_models import FastembedReranker
from memory_backends.retrieval.reranking import RERANKED, StoredReranker
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memory_backends.stores.trace import ModelCall
from tests.stubs.memory import TickingClock, WordEmbedder, count_words, exchange, namespace, play

SEARCHING = ["rag", "rag:keyword", "rag:fused", "hybrid"]
PLENTY = 10_000


class ByNumber(TextReranker):
    """The higher the day a text names, the better; it notes its calls."""

    name = "by-number"

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.asked.append((query, list(texts)))
        note_call(ModelCall(purpose="reranking", model=self.name, prompt_tokens=7))
        return [
            float(max((word for word in text.split() if word.isdecimal()), key=int, default="0")) for text in texts
        ]


DAYS = [exchange(day, f"It rained on day {day} of the trip", "So it did") for day in range(1, 13)]


@pytest.fixture
async def resources():
    redis, qdrant = RedisConnection.embedded(), QdrantConnection.embedded()
    yield Resources(redis, qdrant, WordEmbedder(), count_words, TickingClock())
    await redis.aclose()
    await qdrant.aclose()


async def filled(name, resources, reranker, exchanges=DAYS):
    backend = create_backend(name, replace(resources, reranker=reranker), {})
    await backend.open(namespace(name))
    await play(backend, exchanges)
    await backend.settle()
    backend.trace.drain()
    return backend


def days_of(recall):
    """The latest day that each hit with turns of the conversation names."""
    return [max(int(word) for word in hit.text.split() if word.isdecimal()) for hit in recall.hits if hit.turns]


@pytest.mark.parametrize("name", SEARCHING)
async def test_its_scores_decide_which_candidates_become_hits(name, resources):
    backend = await filled(name, resources, ByNumber())
    recall = await backend.recall("Did it rain on day 1 of the trip?", 3, PLENTY)
    days = days_of(recall)
    assert days[0] == 12 and days == sorted(days, reverse=True)
    best = recall.hits[0]
    assert best.channels["reranker"].rank == 1 and best.score == best.channels["reranker"].score == 12.0
    assert len(best.channels) > 1, "those of the search are there too"
    assert "reranker" in backend.description.channels
    await backend.close("resolved")


@pytest.mark.parametrize("name", SEARCHING)
async def test_it_is_asked_once_for_a_question_and_once_for_a_turn(name, resources):
    reranker = ByNumber()
    backend = await filled(name, resources, reranker)
    reranker.asked.clear()
    await backend.recall("Did it rain on day 1?", 3, PLENTY)
    await backend.perceive(DAYS[0].messages[0], 3, PLENTY)
    assert [query for query, _ in reranker.asked] == ["Did it rain on day 1?", DAYS[0].messages[0].text]
    calls = [entry for entry in backend.trace.drain() if isinstance(entry, ModelCall)]
    assert [(call.phase, call.prompt_tokens) for call in calls] == [("recall", 7), ("perceive", 7)]
    await backend.close("resolved")


@pytest.mark.parametrize("name", SEARCHING)
async def test_what_lies_below_its_candidates_follows_unscored(name, resources):
    reranker = ByNumber()
    many = [exchange(day, f"It rained on day {day}", "So it did") for day in range(1, RERANKED + 10)]
    backend = await filled(name, resources, reranker, many)
    recall = await backend.recall("Did it rain on day 5?", RERANKED, PLENTY)
    assert all(len(texts) <= RERANKED for _, texts in reranker.asked)
    ranked = [*(hit for hit in recall.hits if hit.turns), *recall.missed]
    scored = [hit.score is not None for hit in ranked]
    assert False in scored and scored == sorted(scored, reverse=True)
    await backend.close("resolved")


@pytest.mark.parametrize("name", SEARCHING)
async def test_without_one_nothing_is_different(name, resources):
    backend = await filled(name, resources, None)
    recall = await backend.recall("Did it rain on day 1 of the trip?", 3, PLENTY)
    assert all("reranker" not in hit.channels for hit in recall.hits)
    assert "reranker" not in backend.description.channels
    await backend.close("resolved")


async def test_its_failure_is_the_failure_of_the_question(resources):
    class Out(ByNumber):
        healthy = True

        def score(self, query, texts):
            if not self.healthy:
                raise BackendError("The reranker is out")
            return super().score(query, texts)

    reranker = Out()
    backend = await filled("rag", resources, reranker)
    reranker.healthy = False
    with pytest.raises(BackendError, match="reranker is out"):
        await backend.recall("Did it rain?", 3, PLENTY)
    await backend.close("resolved")


def test_what_one_run_scored_no_later_run_pays_again(tmp_path):
    first, second = ByNumber(), ByNumber()
    path = tmp_path / "caches" / "scores.sqlite3"
    assert StoredReranker(first, path).score("when?", ["day 3", "day 5", "day 3"]) == [3.0, 5.0, 3.0]
    assert StoredReranker(second, path).score("when?", ["day 5", "day 9", "\ud800"]) == [5.0, 9.0, 0.0]
    StoredReranker(second, path).score("where?", ["day 5"])
    assert first.asked == [("when?", ["day 3", "day 5"])]
    assert second.asked == [("when?", ["day 9", "\ud800"]), ("where?", ["day 5"])]


def test_models_do_not_share_scores(tmp_path):
    other = ByNumber()
    other.name = "another"
    StoredReranker(ByNumber(), tmp_path / "scores.sqlite3").score("when?", ["day 3"])
    StoredReranker(other, tmp_path / "scores.sqlite3").score("when?", ["day 3"])
    assert len(other.asked) == 1


def test_equal_questions_at_the_same_time_are_paid_once(tmp_path):
    reranker = ByNumber()
    stored = StoredReranker(reranker, tmp_path / "scores.sqlite3")
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: stored.score("when?", ["day 3", "day 5"]), range(20)))
    assert len(reranker.asked) == 1 and found == [[3.0, 5.0]] * 20


def test_a_cache_that_cannot_be_written_loses_no_score(tmp_path):
    (tmp_path / "file").write_text("no folder")
    stored = StoredReranker(ByNumber(), tmp_path / "file" / "scores.sqlite3")
    assert stored.score("when?", ["day 3"]) == [3.0]
    stored.close()


class TextCrossEncoder:
    """What fastembed's class of this name does, as far as it is used."""

    def __init__(self, model_name: str) -> None:
        if model_name == "unfetchable":
            raise ValueError("could not be fetched")

    @staticmethod
    def list_supported_models():
        return [{"model": "Xenova/ms-marco-MiniLM-L-6-v2"}, {"model": "unfetchable"}]

    def rerank(self, query, documents):
        return (float(len(set(query.split()) & set(text.split()))) for text in documents)


@pytest.fixture
def fastembed(monkeypatch):
    for name in ("fastembed", "fastembed.rerank", "fastembed.rerank.cross_encoder"):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        module.__path__ = []
        module.TextCrossEncoder = TextCrossEncoder
        monkeypatch.setitem(sys.modules, name, module)


def test_fastembed_scores_by_its_cross_encoder(fastembed):
    reranker = FastembedReranker("Xenova/ms-marco-MiniLM-L-6-v2")
    assert reranker.score("a red kayak", ["a cat", "the red kayak", ""]) == [1.0, 2.0, 0.0]
    assert reranker.name == "fastembed:Xenova/ms-marco-MiniLM-L-6-v2"


@pytest.mark.parametrize(
    ("model", "says"), [("nobody/nothing", "knows no model 'nobody/nothing'"), ("unfetchable", "cannot be loaded")]
)
def test_a_cross_encoder_that_cannot_be_had_is_reported(fastembed, model, says):
    with pytest.raises(BackendError, match=says):
        FastembedReranker(model).score("a", ["b"])
