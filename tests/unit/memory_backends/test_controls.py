"""The controls: nothing at all, and exactly the evidence."""

from __future__ import annotations

from datetime import datetime

import pytest

from memory_backends import ARCHITECTURES
from memory_backends.base import Recall
from memory_backends.controls import ClosedBookBackend, NoEvidenceError, OracleBackend
from memory_backends.plugins import PluginError
from memory_backends.registry import (
    BACKEND_NAMES,
    UnknownBackendError,
    check_backend_name,
    create_backend,
)
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from tests.stubs.memory import TickingClock, WordEmbedder, count_words, exchange, namespace, play, turns_cut
from tests.tables import failing

EVIDENCE = {"When?": ("4", "1"), "Later?": ("5",), "Never?": (), "Broken?": ("D:11:26", "2")}

TALK = [
    exchange(1, "I went yesterday.", "Where to?", 1, datetime(2023, 5, 8, 13, 56)),
    exchange(2, "To the group.", "On 7 May, then.", 1, datetime(2023, 5, 8, 13, 56)),
]


@pytest.fixture
async def oracle() -> OracleBackend:
    oracle = OracleBackend(EVIDENCE, count_words)
    await oracle.open(namespace("oracle"))
    await play(oracle, TALK)
    return oracle


async def test_closed_book_remembers_nothing():
    backend = ClosedBookBackend()
    await backend.open(namespace("closed_book"))
    await play(backend, TALK)
    assert await backend.recall("When?", 10, 1000) == Recall()


async def test_the_oracle_gives_the_evidence_in_the_order_it_was_said_with_date_and_speaker(oracle):
    recall = await oracle.recall("When?", 10, 1000)
    assert recall.context == (
        "[8 May 2023, 13:56]\nUser: I went yesterday.\n\n[8 May 2023, 13:56]\nAI: On 7 May, then."
    )
    (hit,) = recall.hits
    assert (hit.store, hit.turns, hit.text) == ("dataset", ("1", "4"), recall.context)
    assert hit.tokens == recall.tokens == count_words(recall.context)


async def test_evidence_that_names_no_turn_is_passed_over(oracle):
    assert (await oracle.recall("Broken?", 10, 1000)).turns_in_context == {"2"}


@pytest.mark.parametrize("question", ["Never?", "Later?", "Not in the dataset?"])
async def test_without_evidence_there_is_no_answer_but_an_error(oracle, question):
    with pytest.raises(NoEvidenceError, match=r"^no_evidence: "):
        await oracle.recall(question, 10, 1000)


async def test_evidence_that_does_not_fit_is_cut_by_whole_turns(oracle):
    recall = await oracle.recall("When?", 10, 18)
    assert recall.turns_in_context == {"4"}
    assert turns_cut(recall) == {"1"}
    assert (await oracle.recall("When?", 10, 3)).hits == ()


async def test_a_reopened_oracle_has_heard_nothing(oracle):
    await oracle.open(namespace("oracle"))
    with pytest.raises(NoEvidenceError, match="has been said"):
        await oracle.recall("When?", 10, 1000)


def test_every_name_makes_the_memory_of_that_name():
    def check(name):
        resources = Resources(
            RedisConnection.embedded(), QdrantConnection.embedded(), WordEmbedder(), count_words, TickingClock()
        )
        try:
            backend = create_backend(name, resources, EVIDENCE)
        except PluginError as error:
            if "it needs a package" in str(error):
                # The extras that are too big for the development tools, such as graphiti's database: a user without
                # them gets this sentence.
                pytest.skip(str(error))
            raise
        assert backend.name == name

    assert failing(BACKEND_NAMES, check) == []


def test_an_unknown_name_is_refused_and_the_known_ones_are_named():
    assert set(ARCHITECTURES) < set(BACKEND_NAMES)
    with pytest.raises(
        UnknownBackendError,
        match=r"'hybird'.*hybrid, rag, rag:keyword, rag:fused, full_context, closed_book, oracle",
    ):
        check_backend_name("hybird")
