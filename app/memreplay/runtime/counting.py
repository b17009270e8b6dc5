"""Models and providers of an estimate: ports that count calls and make none.

Its result is an :class:`Estimates`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

from memory_backends.base import TextEmbedder, TextReranker
from memory_backends.metering import MeteredChat
from memory_backends.registry import settings_taken
from memory_backends.resources import Resources
from memory_backends.retrieval.disk_cache import text_key
from memory_backends.retrieval.embedding import unit_vectors
from memreplay.engine.events import BackendFailed, ReplayEvent
from memreplay.llm.caching import ReplyCache
from memreplay.llm.counting import Certainty, CountingModel, Estimate, Rows, StandIn, emptiest_reply
from memreplay.llm.model import AnswerRequest, Reply
from memreplay.llm.ports import MemoryChatModel, ModelFactExtractor
from memreplay.llm.prompts import KINDS
from memreplay.llm.tokens import token_counter
from memreplay.runtime.embedders import EMBEDDED
from memreplay.settings import Settings
from memreplay.terminal import say

if TYPE_CHECKING:
    from memory_backends.retrieval.embedding import Vector

JUDGE = "(judge)"
"""The part of the judge of answers, in the place of a memory."""

WRITER = " (writer)"
"""Follows the name of a memory, in the part that it spends on writing."""

_LONGEST_REPLY = " word" * KINDS["recall"].reply_tokens


def unknown_reply(key: str) -> Reply:
    """Return a stand-in for a reader's reply: as long as it may be, and another one for each key."""
    return Reply(text=key + _LONGEST_REPLY)


def _read(request: AnswerRequest, key: str) -> Reply:
    return unknown_reply(key)


def _rejection(request: AnswerRequest, key: str) -> Reply:
    """Return a stand-in for a judge's reply."""
    return Reply(text="no")


class Counting:
    """The models of one estimate. The rows of its readers are the caller's; all others are kept here.

    What memories hold, and find, depends on replies, vectors and scores. Where these are not cached, stand-ins take
    their place, and the rows that depend on them are marked.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._others: Rows = {}
        self._guessed: set[str] = set()
        self._embedding: set[str] = set()
        self._guesses_vectors = self._guesses_scores = False
        self._reads_for = ""
        self._writers: dict[str, CountingModel] = {}

    def use_caches(self, replies: ReplyCache | None, written: ReplyCache | None) -> None:
        """Find replies to readers and judges in one cache, those to memories in the other."""
        self._replies, self._written = replies, written
        self._seen: set[str] = set()
        self.reader, self.judge = self.model(_read, self._guessed_reader), self.model(_rejection)

    def model(self, stand_in: StandIn, guessing: Callable[[], str] = lambda: "") -> CountingModel:
        """Return a model whose replies are those of readers and judges, where they are cached."""
        seen = self._seen if self._replies is not None else None
        return CountingModel(self._replies, seen, stand_in, guessing)

    def read_for(self, name: str, row: Estimate) -> None:
        """Count what the reader is asked from now on in the row of a memory, in whose prompts is what it finds."""
        self._reads_for, self.reader.row = name, row

    def _guessed_reader(self) -> str:
        name = self._reads_for
        return name if name and self._certainty_of_reading(name) != "exact" else ""

    def resources_of(self, name: str, resources: Resources) -> Resources:
        """Return the resources for a memory, with models to write by that count calls in a row of its own."""
        if self._settings.embedder != EMBEDDED:
            resources = replace(resources, embedder=_NotedEmbedder(resources.embedder, self._embedding, name))
        extractor, base = self._settings.extractor, self._settings.api_base
        if extractor is None:
            return resources
        if name not in self._writers:
            row = self._others[f"{name}{WRITER}", extractor] = Estimate()

            def stand_in(request: AnswerRequest, key: str) -> Reply:
                self._guessed.add(name)
                if request.raw_messages:
                    # What a library asks depends on earlier replies; our own extraction does not.
                    row.certainty = "about"
                return emptiest_reply(request, key)

            self._writers[name] = CountingModel(self._written, self._seen, stand_in)
            self._writers[name].row = row
        model = self._writers[name]
        return replace(
            resources,
            extractor=ModelFactExtractor(model, extractor, base),
            chat=MeteredChat(MemoryChatModel(model, extractor, base)),
        )

    def embedder(self, name: str, dimension: int, provider_model: str | None) -> TextEmbedder:
        """Return what takes the place of an embedder.

        Without ``provider_model`` it calls nobody, so nothing is counted.
        """
        return _CountingEmbedder(self, name, dimension, provider_model)

    def reranker(self, name: str, provider_model: str | None) -> TextReranker:
        """Return what takes the place of a reranker, likewise."""
        return _CountingReranker(self, name, provider_model)

    def finished(self, readers: Rows) -> Rows:
        """Return the rows of all parts but readers, once everything is counted; and mark those of readers."""
        for (name, _), row in readers.items():
            row.certainty = self._certainty_of_reading(name) if row.calls else row.certainty
        rows = {part: row for part, row in self._others.items() if row.calls or row.reused}
        judge = self.judge.row
        judge.asked = judge.calls + judge.reused
        if self._settings.judge is not None and judge.asked:
            if judge.calls and any(row.calls for row in readers.values()):
                judge.certainty = "tokens about"
            rows[JUDGE, self._settings.judge] = judge
        return rows

    def _certainty_of_reading(self, name: str) -> Certainty:
        guessed = (
            name in self._guessed
            or (self._guesses_vectors and name in self._embedding)
            or (self._guesses_scores and "reranker" in settings_taken(name))
        )
        return "tokens about" if guessed else "exact"

    def count_vectors(self, model: str | None, texts: Sequence[str]) -> None:
        """Count the calls that embed texts."""
        from memreplay.llm.embeddings import TEXTS_PER_CALL

        self._guesses_vectors = True
        if model is not None:
            row = self._others.setdefault(("(embedder)", model), Estimate(certainty="about"))
            row.calls += -(-len(texts) // TEXTS_PER_CALL)
            row.prompt_tokens += sum(map(token_counter(model), texts))

    def count_scores(self, model: str | None, query: str, texts: Sequence[str]) -> None:
        """Count the call that scores texts."""
        self._guesses_scores = True
        if model is not None:
            row = self._others.setdefault(("(reranker)", model), Estimate())
            row.calls += 1
            row.certainty = "about" if self._guessed or self._guesses_vectors else row.certainty
            row.prompt_tokens += sum(map(token_counter(model), (query, *texts)))


class _CountingEmbedder(TextEmbedder):
    """Returns a vector of its own for each text, which says nothing of its meaning."""

    def __init__(self, counting: Counting, name: str, dimension: int, model: str | None) -> None:
        self.name = name
        self._counting, self._dimension, self._model = counting, dimension, model

    @property
    def dimension(self) -> int:
        """Return the dimension of the cached vectors, if there are any."""
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Vector:
        """Vectors of unit length."""
        import numpy as np

        if texts:
            self._counting.count_vectors(self._model, texts)
        drawn = np.empty((len(texts), self._dimension), dtype=np.float32)
        for row, text in zip(drawn, texts, strict=True):
            row[:] = np.random.default_rng(int.from_bytes(text_key(text))).standard_normal(self._dimension)
        return unit_vectors(drawn)


class _NotedEmbedder(TextEmbedder):
    """An embedder that notes which memory uses it."""

    def __init__(self, inner: TextEmbedder, users: set[str], user: str) -> None:
        self.name = inner.name
        self._inner, self._users, self._user = inner, users, user

    @property
    def dimension(self) -> int:
        """Return the dimension of the inner embedder."""
        return self._inner.dimension

    def embed(self, texts: Sequence[str]) -> Vector:
        """Vectors of the inner embedder."""
        self._users.add(self._user)
        return self._inner.embed(texts)


class _CountingReranker(TextReranker):
    """Leaves the texts in their order."""

    def __init__(self, counting: Counting, name: str, model: str | None) -> None:
        self.name = name
        self._counting, self._model = counting, model

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score a text, the highest for the first."""
        if texts:
            self._counting.count_scores(self._model, query, texts)
        return [float(-place) for place in range(len(texts))]


SECONDS_BETWEEN_LINES = 10.0


class OccasionalLines:
    """Says on standard error how far an estimate is, every ten seconds; a quick one says nothing."""

    def __init__(self) -> None:
        self._last = monotonic()

    def say(self, sentence: str) -> None:
        """Say this if it is time for a line."""
        if monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = monotonic()
            say(f"estimating: {sentence}")


@dataclass(frozen=True)
class Estimates:
    """The estimated calls and cost of a command, part by part, with the limits of the estimate in sentences."""

    rows: Rows
    notes: Sequence[str] = ()


class Failures:
    """Reasons why memories could not go on, by memory. Most often an estimate had no real reply for them."""

    def __init__(self) -> None:
        self._why: dict[str, str] = {}

    def note(self, event: ReplayEvent) -> None:
        """Note the first failure of a memory."""
        if isinstance(event, BackendFailed):
            why = f"it failed at turn {event.turn} ({event.phase}): {event.error}"
            self._why.setdefault(event.backend, why)

    def marked(self, rows: Rows) -> list[str]:
        """Mark the rows of these memories; one sentence for each memory."""
        for (part, _), row in rows.items():
            if part.removesuffix(WRITER) in self._why:
                row.certainty = "cannot be estimated"
        return [f"{name} cannot be estimated: {why}" for name, why in self._why.items()]
