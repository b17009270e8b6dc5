"""What is said when all tests wait: trivia, with the reply supplied."""

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
"""Text to its number of tokens in cl100k."""


_REQUEST = (
    "Please read these questions and answers, and reply with a JSON list of the answers alone, in their order.\n"
)


@dataclass(frozen=True)
class Trivia:
    """A question and its answer."""

    question: str
    answer: str


@dataclass(frozen=True)
class FillerText:
    """A message of trivia and the reply that it asks for."""

    message: str
    reply: str


class TriviaFiller:
    """Draws trivia, the same for the same seed."""

    def __init__(self, trivia: Sequence[Trivia], seed: int) -> None:
        self._trivia = trivia
        self._random = Random(seed)

    def text(self, tokens: int) -> FillerText:
        """One question at least; as many as it takes for the message alone to reach ``tokens``."""
        drawn: list[Trivia] = []
        message = _REQUEST
        while not drawn or count_tokens(message) < tokens:
            drawn.append(self._random.choice(self._trivia))
            message += f"Q: {drawn[-1].question} A: {drawn[-1].answer}\n"
        return FillerText(message, json.dumps([entry.answer for entry in drawn], ensure_ascii=False))


@cache
def shipped_trivia() -> tuple[Trivia, ...]:
    """The trivia that comes with the program."""
    return read_trivia(datasets_folder() / "data" / "trivia.json")


def read_trivia(path: Path) -> tuple[Trivia, ...]:
    """Trivia from a JSON list of ``{"question", "answer"}``."""
    try:
        return tuple(Trivia(entry["question"], entry["answer"]) for entry in json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DatasetError(path, "", f"cannot be used ({error!r})", "a list of questions and answers") from None
