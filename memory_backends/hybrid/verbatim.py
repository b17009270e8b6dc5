"""The conversation verbatim: every exchange is a point in Qdrant; turns are found and ranked.

A turn's score is the mean of its channels, each scaled to 0..1 over all turns, for every kind of question.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from memory_backends.base import ChannelScore, Clock, Exchange, Message, Namespace, TextReranker
from memory_backends.hybrid.question import ParsedQuestion, parse_question
from memory_backends.records import VERBATIM_COLLECTION, QdrantDocument
from memory_backends.retrieval.keyword import KeywordIndex, Scores, ranks_of, scaled, weighted
from memory_backends.retrieval.rendering import under_date
from memory_backends.retrieval.reranking import CHANNEL, RERANKED, best_first
from memory_backends.stores.qdrant import KnowledgeStore, Point
from memory_backends.text import folded_words, sentences_of

_FIRST_ROWS = 256

MOST_SENTENCES_READ = 1000
"""Sentences of a message that are compared with questions and read for facts: more than anybody says at once. What
follows in a longer one, such as a pasted log, is found with its turn alone."""


def sentences_read(message: Message) -> list[str]:
    """Return the sentences of a message, at most :data:`MOST_SENTENCES_READ`."""
    return sentences_of(message.text)[:MOST_SENTENCES_READ]


class SentenceIndex:
    """Vectors of unit length, each owned by a turn. Turns are numbered from 0 in the order of their addition."""

    def __init__(self, dimension: int) -> None:
        self._vectors = np.empty((_FIRST_ROWS, dimension), dtype=np.float32)
        self._owner: list[int] = []
        self._turns = 0

    def add(self, vectors: Sequence[NDArray[np.float32]]) -> None:
        """Add the next turn with the vectors of its sentences; it may have none."""
        first, end = len(self._owner), len(self._owner) + len(vectors)
        if end > len(self._vectors):
            grown = np.empty((max(end, 2 * len(self._vectors)), self._vectors.shape[1]), dtype=np.float32)
            grown[:first] = self._vectors[:first]
            self._vectors = grown
        for row, vector in enumerate(vectors, start=first):
            self._vectors[row] = vector
        self._owner += [self._turns] * len(vectors)
        self._turns += 1

    def cosines(self, vector: NDArray[np.float32]) -> Scores:
        """Return each sentence's cosine, shape ``(sentences,)``, to six decimals."""
        # einsum and not a matrix product: that of BLAS starts threads, and its last bits change with their number.
        cosines: Scores = np.einsum("ij,j->i", self._vectors[: len(self._owner)], vector).astype(np.float64)
        return np.round(cosines, 6)

    def best(self, cosines: Scores) -> Scores:
        """Return each turn's best cosine, shape ``(turns,)``; a turn without a sentence has the least."""
        best = np.full(self._turns, cosines.min() if len(cosines) else 0.0)
        np.maximum.at(best, np.array(self._owner, dtype=int), cosines)
        return best

    def of(self, turn: int, cosines: Scores) -> tuple[float, ...]:
        """Return the cosines of one turn's sentences, in order."""
        first, end = bisect_left(self._owner, turn), bisect_right(self._owner, turn)
        return tuple(cosines[first:end].tolist())


CHANNELS = ("dense", "sentence", "sentence_near", "keyword", "speaker", "date")
"""The channels, which all count the same.

``dense`` is the cosine of the question and the turn's exchange, averaged with the exchanges beside it; ``sentence``
the cosine of the question's topic and the turn's nearest sentence, ``sentence_near`` the same averaged with the
turns beside it. ``keyword`` is the BM25 of the turn read with two turns on either side. ``speaker`` is 1 where the
question names who speaks, ``date`` where it names the month.

Where this comes from: two dozen sets of channels and weights were tried on LoCoMo conv-26, 30 and 41 and two long
histories. This one, without any weight, had all evidence in 1,000 tokens as often as ten channels with a weight
each (399 of 515 questions against 402; LoCoMo alone 329 of 383 against 326). No other data chose it.
"""

CHANNEL_WORDS: Mapping[str, str] = {
    "dense": "nearness in meaning of the exchange that the turn is in, averaged with the exchanges beside it",
    "sentence": "nearness of the question's topic to the nearest sentence of the turn",
    "sentence_near": "the same, averaged with the turns beside it",
    "keyword": "rare words shared with the turn and two turns on either side (BM25)",
    "speaker": "1 if the question names who speaks",
    "date": "1 if the question names the month",
}
"""The measure of each channel, for the legend of a screen."""

_CHANNELS_OF: Mapping[str, frozenset[str]] = {
    "dense": frozenset({"dense", "sentence", "sentence_near"}),
    "keyword": frozenset({"keyword"}),
    "speaker": frozenset({"speaker"}),
    "date": frozenset({"date"}),
}
"""The channels that go with a mechanism that is switched off."""

KEYWORD_REACH = 2
"""Turns on either side that a turn's words are read with."""

NEIGHBOUR_WEIGHT = 0.5
SEARCH_DEPTH = 100
"""Exchanges that the dense search returns; the others score like the last of these."""


@dataclass(frozen=True)
class Channels:
    """The scores of all turns in every channel, shape ``(turns,)`` each, and their 1-based ranks there."""

    scores: Mapping[str, Scores]
    ranks: Mapping[str, NDArray[np.int_]]

    def of(self, place: int) -> dict[str, ChannelScore]:
        """Rank and score of one turn in every channel."""
        return {
            name: ChannelScore(rank=int(self.ranks[name][place]), score=round(float(values[place]), 6))
            for name, values in self.scores.items()
        }


@dataclass(frozen=True)
class RankedTurn:
    """A turn and how it was found.

    ``exchange_id`` is the point that holds it, ``place`` its 0-based place in the conversation; ``score`` is
    at most 1, or the reranker's, and then None if it was not asked about this turn. ``likeness`` has the cosine of
    the topic and each of its :func:`sentences_read`.
    """

    exchange_id: str
    place: int
    message: Message
    score: float | None
    found_by: Channels
    likeness: tuple[float, ...]
    reranked: ChannelScore | None = None

    @property
    def channels(self) -> dict[str, ChannelScore]:
        """Return its rank and score in every channel."""
        return self.found_by.of(self.place) | ({CHANNEL: self.reranked} if self.reranked else {})


class VerbatimMemory:
    """The exchanges of one conversation, in Qdrant. What is kept here beside them comes from the same writes."""

    def __init__(
        self,
        store: KnowledgeStore,
        namespace: Namespace,
        clock: Clock,
        dimension: int,
        channels: Sequence[str] = CHANNELS,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._clock = clock
        self._kept = frozenset(channels)
        self._exchanges: dict[str, int] = {}
        self._forgotten: set[int] = set()
        self._exchange_sessions: list[int] = []
        self._messages: list[Message] = []
        self._labels: list[str] = []
        self._owner: list[int] = []
        self._keywords = KeywordIndex()
        self._sentences = SentenceIndex(dimension)

    def id_of(self, exchange: Exchange) -> str:
        """Return the id of the point that it is, or would be, stored as."""
        return self._namespace.point_id("exchange", exchange.turn_number)

    async def store(
        self, exchange: Exchange, vector: NDArray[np.float32], sentences: Sequence[NDArray[np.float32]]
    ) -> None:
        """Write an exchange, with the vectors of its :func:`sentences_in`. Writing it again changes nothing."""
        id_ = self.id_of(exchange)
        if id_ in self._exchanges:
            return
        document = QdrantDocument(
            id=id_,
            content=exchange.text,
            turn_number=len(self._exchanges) + 1,
            turns=list(exchange.turn_ids),
            timestamp=exchange.said_at or self._clock(),
        )
        point = Point(id=id_, vector=vector, payload=document.model_dump(mode="json"))
        await self._store.upsert(VERBATIM_COLLECTION, [point])
        self._exchanges[id_] = len(self._exchanges)
        self._exchange_sessions.append(exchange.session)
        left = iter(sentences)
        for message in exchange.messages:
            self._sentences.add(list(islice(left, len(sentences_read(message)))))
            self._keywords.add(message.session, message.text)
            self._messages.append(message)
            self._labels.append(folded_words(message.label))
            self._owner.append(self._exchanges[id_])

    async def forget(self, id_: str) -> None:
        """Delete an exchange: no turn of it is found again."""
        await self._store.remove(VERBATIM_COLLECTION, [id_])
        self._forgotten.add(self._exchanges[id_])

    def parse(self, question: str) -> ParsedQuestion:
        """Return the question, parsed with the speakers so far."""
        return parse_question(question, frozenset(self._labels))

    async def rank(
        self, asked: ParsedQuestion, vector: NDArray[np.float32], topic: NDArray[np.float32], count: int
    ) -> list[RankedTurn]:
        """Return the ``count`` best turns, best first; of two equal ones the earlier first.

        ``vector`` is that of the question's text, ``topic`` that of its topic.
        """
        if not self._messages:
            return []
        found = await self._store.search(VERBATIM_COLLECTION, asked.text, vector, SEARCH_DEPTH)
        dense = np.full(len(self._exchanges), min((point.score for point in found), default=0.0))
        for point in found:
            dense[self._exchanges[point.id]] = point.score
        cosines = self._sentences.cosines(topic)
        channels = self._channels(asked, dense, self._sentences.best(cosines))
        total = sum((scaled(values) for values in channels.values()), np.zeros(len(self)))
        scores = total / max(len(self._kept), 1)
        found_by = Channels(channels, {name: ranks_of(values) for name, values in channels.items()})
        ids = list(self._exchanges)
        return [
            RankedTurn(
                exchange_id=ids[self._owner[place]],
                place=place,
                message=self._messages[place],
                score=round(float(scores[place]), 6),
                found_by=found_by,
                likeness=self._sentences.of(place, cosines),
            )
            for place in islice(self._remembered(np.argsort(-np.round(scores, 9), kind="stable")), count)
        ]

    def _remembered(self, places: NDArray[np.int_]) -> Iterator[int]:
        return (int(place) for place in places if self._owner[int(place)] not in self._forgotten)

    def __len__(self) -> int:
        """Return how many turns there are."""
        return len(self._messages)

    def _channels(self, asked: ParsedQuestion, dense: Scores, sentence: Scores) -> dict[str, Scores]:
        """Return the score of every turn, in the channels that are on and differ between turns."""
        owner = np.array(self._owner)
        sessions = np.array([message.session for message in self._messages])
        channels = {
            "dense": _smoothed(dense, np.array(self._exchange_sessions))[owner],
            "sentence": sentence,
            "sentence_near": _smoothed(sentence, sessions),
            "keyword": self._keywords.scores(asked.topic, reach=KEYWORD_REACH),
            "speaker": np.array([float(label in asked.speakers) for label in self._labels]),
            "date": np.array([float(asked.means_date(message.said_at)) for message in self._messages]),
        }
        return {
            name: values for name, values in channels.items() if name in self._kept and values.max() > values.min()
        }


async def reranked(reranker: TextReranker, question: str, turns: Sequence[RankedTurn]) -> list[RankedTurn]:
    """Return the first turns by the reranker's scores; the others follow as they were, without a score."""
    texts = [under_date(turn.message.line, turn.message.said_at) for turn in turns[:RERANKED]]
    best = await best_first(reranker, question, texts)
    return [
        *(replace(turns[place], score=scored.score, reranked=scored) for place, scored in best),
        *(replace(turn, score=None) for turn in turns[len(best) :]),
    ]


def channels_kept(ablated: Iterable[str]) -> list[str]:
    """Return the channels that are left when these mechanisms are switched off."""
    off = {channel for mechanism in ablated for channel in _CHANNELS_OF.get(mechanism, ())}
    return [channel for channel in CHANNELS if channel not in off]


def sentences_in(exchange: Exchange) -> list[str]:
    """Return the sentences of all its messages, in order: what is embedded beside the exchange itself."""
    return [sentence for message in exchange.messages for sentence in sentences_read(message)]


def _smoothed(values: Scores, sessions: NDArray[np.int_]) -> Scores:
    """Return each value averaged with those beside it in its session, which count half."""
    around = [NEIGHBOUR_WEIGHT]
    return weighted(values, sessions, around) / weighted(np.ones(len(values)), sessions, around)
