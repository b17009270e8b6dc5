"""A very long turn is read at its beginning, which is said, in time that grows with its length at most."""

from __future__ import annotations

import time

import pytest

from memory_backends.hybrid.backend import HybridBackend
from memory_backends.hybrid.passages import excerpt_of
from memory_backends.hybrid.verbatim import MOST_SENTENCES_READ
from memory_backends.records import VERBATIM_COLLECTION
from memory_backends.stores.qdrant import QDRANT
from memory_backends.stores.trace import PromotionDecision
from memory_backends.text import sentences_of
from tests.stubs.memory import exchange
from tests.tables import failing

MOST_SECONDS = 5.0
"""Of the processor; it takes a tenth of that, and minutes where the time grows with the square of the length."""


def sentences(number: int) -> str:
    return " ".join(f"Sentence {place} names the lighthouse." for place in range(1, number + 1))


def drops(backend: HybridBackend) -> list[PromotionDecision]:
    return [
        each
        for each in backend.trace.drain()
        if isinstance(each, PromotionDecision) and each.candidate_id.endswith(".rest")
    ]


async def test_what_is_not_read_of_a_turn_is_a_decision_and_the_turn_is_stored_whole(hybrid: HybridBackend) -> None:
    text = f"{sentences(MOST_SENTENCES_READ + 7)} My name is Zoe."
    await hybrid.observe(exchange(1, text, "Noted."))
    (drop,) = drops(hybrid)
    assert (drop.decision, drop.sources) == ("DROP", ("1",))
    assert "first 1,000" in drop.justification and "other 8" in drop.justification
    assert drop.content == "User: Sentence 1001 names the lighthouse."
    (stored,) = (await hybrid.snapshot()).points[QDRANT][VERBATIM_COLLECTION].values()
    assert "My name is Zoe." in stored["content"]


async def test_of_a_turn_of_a_thousand_sentences_nothing_is_left_out(hybrid: HybridBackend) -> None:
    await hybrid.observe(exchange(1, sentences(MOST_SENTENCES_READ), "Noted."))
    assert drops(hybrid) == []


async def test_a_turn_of_a_megabyte_is_observed_and_recalled_in_seconds(hybrid: HybridBackend) -> None:
    began = time.process_time()
    await hybrid.observe(exchange(1, sentences(27_000), "Noted."))
    recall = await hybrid.recall("Which sentence names the lighthouse?", 10, 400)
    assert recall.hits
    assert time.process_time() - began < MOST_SECONDS


def test_an_excerpt_marks_every_gap_and_has_no_sentence_that_is_not_read() -> None:
    said = exchange(1, "One. Two. Three. Four. Five.", "Noted.").messages[0]
    assert excerpt_of(said, (0.9, 0.1, 0.5, 0.4), lambda line: len(line) <= 27) == "User: One. … Three. Four. …"
    assert excerpt_of(said, (0.1, 0.9, 0.8, 0.2), lambda line: len(line) <= 21) == "User: … Two. Three. …"
    assert excerpt_of(said, (0.1,), lambda line: False) is None


def test_sentences_are_found_in_time_that_grows_with_the_length() -> None:
    def check(piece: str) -> None:
        text = piece * (200_000 // len(piece))
        began = time.process_time()
        sentences_of(f"{text}end")
        assert time.process_time() - began < MOST_SECONDS

    assert failing([".", "!?", '"', '."', " ", "\t ", "\n", "a. ", "Mr. ", "?) "], check) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wait... what? Yes!", ["Wait...", "what?", "Yes!"]),
        ("Mr. Smith came. Mrs... who?", ["Mr. Smith came.", "Mrs...", "who?"]),
        ("No. 5 is late. No. Really.", ["No. 5 is late.", "No.", "Really."]),
        ("One  \n\n  two.\tThree", ["One", "two.", "Three"]),
        ('He said "no." Then left.', ['He said "no."', "Then left."]),
    ],
)
def test_where_sentences_end(text: str, expected: list[str]) -> None:
    assert sentences_of(text) == expected
