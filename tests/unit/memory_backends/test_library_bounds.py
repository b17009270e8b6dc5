"""What a library returns is bounded, and its numbers are numbers."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from memory_backends.adapters.library import MOST_CHARACTERS, Found, LibraryMemory
from memory_backends.base import BackendError
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memory_backends.stores.trace import FoundPoint
from tests.stubs.memory import TickingClock, WordEmbedder, count_words


class Library(LibraryMemory):
    name = "library"
    store = "library"


def test_more_text_than_an_agent_may_reply_is_an_error_of_the_memory() -> None:
    memory = Library(
        Resources(
            RedisConnection.embedded(), QdrantConnection.embedded(), WordEmbedder(), count_words, TickingClock()
        )
    )
    half = "x" * (MOST_CHARACTERS // 2)
    with pytest.raises(BackendError, match="library returned 4,194,305 characters, more than 4,194,304"):
        memory.recall_of([Found("1", half, None), Found("2", half, None), Found("3", "x", None)], 100)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf"), "text"])
def test_a_score_of_a_found_point_is_a_finite_number(score: object) -> None:
    with pytest.raises(ValidationError):
        FoundPoint.model_validate({"id": "a", "rank": 1, "score": score})
