"""Reading long texts: the embedded reader a long history, the patterns of candidate facts what leads them on."""

from __future__ import annotations

import random
import string
import time
from collections.abc import Callable

import pytest

from memory_backends.hybrid.candidates import candidates_of
from memreplay.conversations.models import Question
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.extractive.reader import read_and_answer
from memreplay.llm.prompts import build_request
from tests.stubs.memory import exchange

MOST_SECONDS_A_TEXT = 30
MOST_SECONDS_A_HISTORY = 0.5


def seconds(what: str, work: Callable[[], object]) -> float:
    """The processor's time for it, printed as well."""
    started = time.process_time()
    work()
    took = time.process_time() - started
    print(f"\n{what}: {took:.2f} s")
    return took


@pytest.mark.parametrize(
    "piece", ["1 ", "1.", "a-", "a.b=", "A ", "Ana and ", "my old ", "`", "error: ", "a_", "/a"]
)
def test_no_text_takes_long(piece: str) -> None:
    said = exchange(1, piece * 8000, "Noted.")
    assert seconds(repr(piece), lambda: candidates_of(said)) < MOST_SECONDS_A_TEXT


def test_a_history_of_eight_thousand_tokens_is_read_in_a_blink() -> None:
    rng = random.Random(1)
    words = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(3, 9))) for _ in range(800)]
    context = "\n".join(f"{'AB'[n % 2]}nn: " + " ".join(rng.choices(words, k=15)) + "." for n in range(350))
    choices = (words[3], words[4], words[9])
    question = Question(
        id="q",
        kind="choice",
        type="t",
        text=f"What about {words[3]} and {words[5]}?",
        expected=choices[0],
        choices=choices,
        correct_index=0,
    )
    request = build_request(question, context, EXTRACTIVE_MODEL, None)
    prompt = request.messages[0].content
    assert seconds("8000 tokens of history", lambda: read_and_answer(prompt)) < MOST_SECONDS_A_HISTORY
