"""RAG: one document an exchange, found by the raw message, assembled as it was said."""

from __future__ import annotations

from datetime import datetime

import pytest

from memory_backends.base import BackendError, MemoryBackend
from memory_backends.records import RAG_COLLECTION
from memory_backends.registry import create_backend, texts_to_embed
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from tests.stubs.memory import TickingClock, WordEmbedder, count_words, exchange, namespace, play, turns_cut

TALK = [
    exchange(1, "The deadline is Friday.", "Noted, Friday.", 1, datetime(2023, 5, 8, 13, 56)),
    exchange(2, "Tell me a joke.", "A horse walks into a bar.", 1, datetime(2023, 5, 8, 13, 56)),
    exchange(3, "Now the deadline is Monday, the deadline moved.", "Monday.", 2, datetime(2023, 5, 9, 8, 0)),
]


async def opened(name: str) -> MemoryBackend:
    resources = Resources(
        RedisConnection.embedded(), QdrantConnection.embedded(), WordEmbedder(), count_words, TickingClock()
    )
    backend = create_backend(name, resources, {})
    await backend.open(namespace(name))
    return backend


@pytest.fixture
async def backend() -> MemoryBackend:
    backend = await opened("rag")
    await play(backend, TALK)
    return backend


async def test_hits_come_by_rank_and_stand_in_the_context_as_they_were_said(backend):
    recall = await backend.recall("the deadline is Monday", 2, 1000)
    assert [hit.turns for hit in recall.hits] == [("5", "6"), ("1", "2")]
    assert recall.context == (
        "[8 May 2023, 13:56]\nUser: The deadline is Friday.\nAI: Noted, Friday.\n\n"
        "[9 May 2023, 08:00]\nUser: Now the deadline is Monday, the deadline moved.\nAI: Monday."
    )


async def test_a_hit_names_its_point_collection_score_and_channel(backend):
    first, second = (await backend.recall("the deadline is Monday", 2, 1000)).hits
    assert (first.store, first.place, first.rank) == ("qdrant", RAG_COLLECTION, 1)
    assert first.id in (await backend.snapshot()).points["qdrant"][RAG_COLLECTION]
    assert first.score > second.score > 0
    assert second.channels["dense"].rank == 2
    assert first.tokens == count_words(first.text)


async def test_over_the_budget_the_lowest_ranked_is_cut_first(backend):
    best = (await backend.recall("the deadline is Monday", 1, 1000)).tokens
    recall = await backend.recall("the deadline is Monday", 2, best + 3)
    assert [hit.in_prompt for hit in recall.hits] == [True, False]
    assert turns_cut(recall) == {"1", "2"}
    assert "Friday" not in recall.context


async def test_a_hit_that_does_not_fit_leaves_room_for_a_smaller_one(backend):
    recall = await backend.recall("the deadline is Monday, the deadline moved", 3, 26)
    assert [hit.in_prompt for hit in recall.hits] == [False, True, False]


async def test_it_cannot_be_used_before_it_is_open_or_after_it_is_closed(backend):
    await backend.close("resolved")
    with pytest.raises(BackendError, match="not open"):
        await backend.recall("anything", 1, 10)


@pytest.mark.parametrize("name", ["rag", "rag:keyword", "rag:fused"])
async def test_what_missed_the_cut_is_kept_without_its_text(name):
    backend = await opened(name)
    await play(backend, TALK)
    recall = await backend.recall("the deadline moved to Monday", 1, 1000)
    assert [hit.turns for hit in recall.hits] == [("5", "6")]
    assert recall.missed[0].turns == ("1", "2")
    assert [hit.rank for hit in recall.missed] == list(range(2, len(recall.missed) + 2))
    assert all(hit.text == "" and not hit.in_prompt and hit.channels for hit in recall.missed)


@pytest.mark.parametrize(
    ("name", "channels"),
    [("rag", {"dense"}), ("rag:keyword", {"keyword"}), ("rag:fused", {"dense", "keyword"})],
)
async def test_a_hit_keeps_its_rank_in_every_channel(name, channels):
    backend = await opened(name)
    await play(backend, TALK)
    (hit,) = (await backend.recall("the deadline moved to Monday", 1, 1000)).hits
    assert {channel: score.rank for channel, score in hit.channels.items()} == dict.fromkeys(channels, 1)


@pytest.mark.parametrize("name", ["rag", "rag:keyword", "rag:fused"])
async def test_of_an_empty_memory_it_says_that_nothing_is_stored(name):
    backend = await opened(name)
    assert (await backend.recall("the deadline", 5, 1000)).why_empty == "nothing_stored"
    await play(backend, TALK)
    assert (await backend.recall("the deadline", 5, 1000)).why_empty is None


async def test_words_that_nobody_said_find_nothing_above_the_threshold():
    backend = await opened("rag:keyword")
    await play(backend, TALK)
    recall = await backend.recall("zeppelin tickets", 5, 1000)
    assert (recall.hits, recall.missed, recall.why_empty) == ((), (), "below_threshold")


class NeverEmbeds(WordEmbedder):
    """Fails where a text is embedded."""

    def embed(self, texts):
        raise BackendError("a text was embedded")


async def test_the_keyword_variant_embeds_nothing():
    resources = Resources(
        RedisConnection.embedded(), QdrantConnection.embedded(), NeverEmbeds(), count_words, TickingClock()
    )
    backend = create_backend("rag:keyword", resources, {})
    await backend.open(namespace("rag:keyword"))
    await play(backend, TALK)
    recall = await backend.recall("the deadline moved to Monday", 1, 1000)
    assert [hit.turns for hit in recall.hits] == [("5", "6")]
    assert texts_to_embed(["rag:keyword"], TALK) == []


async def test_a_variant_stores_what_rag_stores():
    snapshots = []
    for name in ("rag", "rag:keyword", "rag:fused"):
        backend = await opened(name)
        await play(backend, TALK)
        held = (await backend.snapshot()).points["qdrant"][RAG_COLLECTION].values()
        snapshots.append([{key: value for key, value in payload.items() if key != "id"} for payload in held])
    assert snapshots[0] == snapshots[1] == snapshots[2]
