"""What is said while all tests wait: trivia, with a given reply."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from memreplay.errors import DatasetError
from memreplay.llm.tokens import TokenCounter, token_counter
from memreplay.paths import datasets_folder

count_tokens: TokenCounter = token_counter("cl100k_base")
"""Counts the cl100k tokens of a text."""


_REQUEST = (
    "Please read these questions and answers, and reply with a JSON list of the answers alone, in their order.\n"
)


@dataclass(frozen=True)
class Trivia:
    question: str
    answer: str


@dataclass(frozen=True)
class FillerText:
    """A message of trivia and the reply it asks for."""

    message: str
    reply: str


class TriviaFiller:
    """Draws trivia; equal seeds draw equal trivia."""

    def __init__(self, trivia: Sequence[Trivia], seed: int) -> None:
        self._trivia = trivia
        self._random = Random(seed)

    def text(self, tokens: int) -> FillerText:
        """At least one question, and as many as the message needs to reach ``tokens``."""
        drawn: list[Trivia] = []
        message = _REQUEST
        while not drawn or count_tokens(message) < tokens:
            drawn.append(self._random.choice(self._trivia))
            message += f"Q: {drawn[-1].question} A: {drawn[-1].answer}\n"
        return FillerText(message, json.dumps([entry.answer for entry in drawn], ensure_ascii=False))


@cache
def shipped_trivia() -> tuple[Trivia, ...]:
    return read_trivia(datasets_folder() / "data" / "trivia.json")


def read_trivia(path: Path) -> tuple[Trivia, ...]:
    """Read a JSON list of ``{"question", "answer"}``."""
    try:
        return tuple(Trivia(entry["question"], entry["answer"]) for entry in json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DatasetError(path, "", f"cannot be used ({error!r})", "a list of questions and answers") from None
