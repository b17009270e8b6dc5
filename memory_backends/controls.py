"""Two controls beside the memories: none at all, and the evidence itself.

They are no bounds. Without memory a model abstains, which is right wherever the answer was never said; and a memory
that returns more than the evidence may help the model to more than the evidence alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from memory_backends.base import (
    BackendError,
    Exchange,
    Hit,
    MemoryBackend,
    Message,
    Namespace,
    Recall,
    Snapshot,
    TokenCounter,
)
from memory_backends.resources import Resources
from memory_backends.retrieval.rendering import assemble, under_date
from memory_backends.stores.trace import MemoryTrace

CLOSED_BOOK = "closed_book"
ORACLE = "oracle"
CONTROLS = frozenset({CLOSED_BOOK, ORACLE})
"""Backends that are not memories."""

DATASET = "dataset"
"""The store label of the oracle's hits: they come from the dataset itself."""

_NO_EVIDENCE = "no_evidence: "


class NoEvidenceError(BackendError):
    """A question has no gold evidence, so there is nothing to return."""

    def __init__(self, why: str) -> None:
        super().__init__(_NO_EVIDENCE + why)


def can_be_retried(error: str) -> bool:
    """Return whether it is of use to ask again after an error: not where the oracle has no evidence to return."""
    return not error.startswith(_NO_EVIDENCE)


class ClosedBookBackend(MemoryBackend):
    """Remembers nothing: what the model answers without any memory."""

    name = CLOSED_BOOK
    limited_by_top_k = False

    def __init__(self) -> None:
        self.trace = MemoryTrace()

    @classmethod
    def create(cls, name: str, resources: Resources, evidence: object) -> ClosedBookBackend:
        """Create the memory for the registry."""
        return cls()

    async def open(self, namespace: Namespace) -> None:
        return

    async def observe(self, exchange: Exchange) -> None:
        return

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        return Recall()

    async def snapshot(self) -> Snapshot:
        return Snapshot()


class OracleBackend(MemoryBackend):
    """Returns the gold evidence turns with date and speaker: what the model answers from these alone.

    ``evidence`` maps the text of a question to the ids of its evidence turns.
    """

    name = ORACLE
    limited_by_top_k = False
    place = "evidence"

    def __init__(self, evidence: Mapping[str, tuple[str, ...]], count_tokens: TokenCounter) -> None:
        self.trace = MemoryTrace()
        self._evidence = evidence
        self._count_tokens = count_tokens
        self._messages: dict[str, Message] = {}

    @classmethod
    def create(cls, name: str, resources: Resources, evidence: Mapping[str, tuple[str, ...]]) -> OracleBackend:
        """Create the memory for the registry."""
        return cls(evidence, resources.count_tokens)

    async def open(self, namespace: Namespace) -> None:
        self._messages = {}

    async def observe(self, exchange: Exchange) -> None:
        """Keep the messages, by their turn ids."""
        self._messages.update((message.turn_id, message) for message in exchange.messages)

    def set_token_counter(self, count_tokens: TokenCounter) -> None:
        self._count_tokens = count_tokens

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        """Return all the evidence in one hit, oldest first; turns that do not fit are left out whole.

        Raises :class:`NoEvidenceError` if the question has none, or if none of it was said yet.
        """
        named = self._evidence.get(question, ())
        if not named:
            raise NoEvidenceError("the dataset names no evidence for this question")
        messages = [self._messages[turn] for turn in dict.fromkeys(named) if turn in self._messages]
        if not messages:
            raise NoEvidenceError(f"none of its evidence ({', '.join(named)}) has been said")
        turns = [
            Hit(
                id=message.turn_id,
                store=DATASET,
                place=self.place,
                rank=rank,
                score=None,
                text=under_date(message.line, message.said_at),
                turns=(message.turn_id,),
            )
            for rank, message in enumerate(messages, start=1)
        ]
        numbers = {message.turn_id: message.turn_number for message in messages}
        given = assemble(turns, numbers, context_tokens, self._count_tokens)
        kept = sorted((hit for hit in given.hits if hit.in_prompt), key=lambda hit: numbers[hit.id])
        if not kept or top_k < 1:
            return given.model_copy(update={"hits": (), "context": "", "tokens": 0})
        together = kept[0].model_copy(
            update={
                "id": self.place,
                "rank": 1,
                "text": given.context,
                "turns": tuple(hit.id for hit in kept),
                "tokens": given.tokens,
            }
        )
        return given.model_copy(update={"hits": (together,)})

    async def snapshot(self) -> Snapshot:
        return Snapshot()
