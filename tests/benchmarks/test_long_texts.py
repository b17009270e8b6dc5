"""Reading long texts: turns of a megabyte, a long history, and what leads the patterns of candidate facts on."""

from __future__ import annotations

import json
import random
import string
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_backends.hybrid.candidates import candidates_of
from memreplay.conversations.models import LONGEST_TURN, Question
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.extractive.reader import read_and_answer
from memreplay.llm.prompts import build_request
from tests.stubs.in_process import exit_code
from tests.stubs.memory import exchange

MOST_SECONDS_A_TEXT = 30
MOST_SECONDS_A_TURN = 30
"""Of the processor, for a turn of the longest that a dataset may have, with all that a run does beside."""

TURNS: dict[str, Callable[[int], str]] = {
    "sentences": lambda n: f"Ana sold {n % 9} lamps in Rome for {n} euros. ",
    "one line": lambda n: f"{n * 7919:x}",
    "log": lambda n: (
        f"2024-05-08T13:{n % 60:02d}:11.{n % 1000:03d}Z INFO worker[{n}] took {n % 3000} ms status=200\n"
    ),
    "slots": lambda n: f"my thing{n} is value{n * 7 % 1009}. ",
    "marks": lambda n: (".", '""', "...", "?!", "“”", "((", "``", "'.")[n * 7919 % 8],
}
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


@pytest.mark.parametrize("backend", ["hybrid", "rag", "rag:keyword", "full_context"])
@pytest.mark.parametrize("kind", TURNS)
def test_a_turn_of_a_megabyte_is_observed_and_asked_about_in_seconds(
    kind: str, backend: str, tmp_path: Path
) -> None:
    pieces, length = [], 0
    while length < LONGEST_TURN:
        pieces.append(TURNS[kind](len(pieces)))
        length += len(pieces[-1])
    said = ("Hello, my name is Marta.", "Noted.", "".join(pieces)[:LONGEST_TURN], "Thanks.")
    question = {"question": "What is my name?", "expectedAnswer": "Marta", "expectedEntities": ["Marta"]}
    conversation = {
        "id": "long",
        "language": "en",
        "tags": [],
        "turns": [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(said)],
        "recallQuestions": [{**question, "infoLocation": "early", "salienceLevel": "high"}],
    }
    path = tmp_path / "long.json"
    path.write_text(json.dumps(conversation))
    options = ("--batch", "--dataset", path, "--backend", backend, "--fresh", "--recording", tmp_path / "r.sqlite3")
    assert seconds(f"{kind}, {backend}", lambda: exit_code(*options)) < MOST_SECONDS_A_TURN


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
    read_and_answer(prompt)  # the vectors of its sentences are cached from then on
    assert seconds("8000 tokens of history", lambda: read_and_answer(prompt)) < MOST_SECONDS_A_HISTORY
