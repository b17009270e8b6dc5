"""The smallest conversation that still fails: sessions, exchanges, turns, sentences and words are removed from it.

The algorithm knows no memory: it is given a test that says whether a smaller conversation still fails.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from memory_backends.text import sentences_of
from memreplay.conversations.models import Conversation, Question, Turn, exchanges_of
from memreplay.text import occurs_in

T = TypeVar("T")

StillFails = Callable[[Conversation], Awaitable[bool]]
"""Tells whether a smaller conversation fails as the whole one does. It raises StopShrinking to end the search."""


class StopShrinking(Exception):
    """The search ends here; the smallest conversation that was found so far stands."""


async def minimal(parts: Sequence[T], fails: Callable[[Sequence[T]], Awaitable[bool]]) -> list[T]:
    """Return parts that still fail together, and of which none can be left out alone (delta debugging)."""
    kept = list(parts)
    if kept and await fails([]):
        return []
    size = max(len(kept) // 2, 1)
    while True:
        first, before = 0, len(kept)
        while first < len(kept):
            rest = kept[:first] + kept[first + size :]
            if rest and await fails(rest):
                kept = rest
            else:
                first += size
        if size == 1 and len(kept) == before:
            return kept
        size = max(size // 2, 1)


def only_question(conversation: Conversation, question: Question) -> Conversation:
    """Return the conversation with this question alone."""
    return conversation.model_copy(update={"questions": (question,)})


def with_turns(conversation: Conversation, texts: Mapping[str, str]) -> Conversation:
    """Return the conversation with these turns alone, by their ids, with these texts; it keeps the other ids."""
    turns = [turn for turn in conversation.turns if turn.id in texts]
    numbered = tuple(
        turn.model_copy(update={"number": number, "text": texts[turn.id]}) for number, turn in enumerate(turns, 1)
    )
    used = {turn.session for turn in numbered}
    sessions = tuple(session for session in conversation.sessions if session.number in used)
    # A copy would keep the turns by id that the whole conversation remembers.
    fields = {name: getattr(conversation, name) for name in Conversation.model_fields}
    return Conversation(**fields | {"turns": numbered, "sessions": sessions})


def with_other_words(conversation: Conversation, of: Callable[[str], str]) -> Conversation:
    """Return the conversation with other words, in its questions too: ``of`` replaces a text."""
    turns = tuple(
        turn.model_copy(update={"text": of(turn.text), "speaker": turn.speaker and of(turn.speaker)})
        for turn in conversation.turns
    )
    sessions = tuple(session.model_copy(update={"summary": None}) for session in conversation.sessions)
    fields = {name: getattr(conversation, name) for name in Conversation.model_fields}
    questions = tuple(_with_other_words(question, of) for question in conversation.questions)
    return Conversation(**fields | {"turns": turns, "sessions": sessions, "questions": questions, "title": None})


def _with_other_words(question: Question, of: Callable[[str], str]) -> Question:
    lists = ("expected_entities", "choices", "supersedes")
    replaced: dict[str, object] = {name: tuple(map(of, getattr(question, name))) for name in lists}
    return question.model_copy(update=replaced | {"text": of(question.text), "expected": of(question.expected)})


class Shrinking:
    """The search for the smallest conversation. ``best`` is the smallest one so far that still fails.

    Evidence turns are never removed, and keep the sentences with the answer, so that a perfect memory still knows
    it. ``on_smaller`` is called when a smaller one is found.
    """

    def __init__(
        self,
        conversation: Conversation,
        still_fails: StillFails,
        on_smaller: Callable[[Conversation], None] = lambda smaller: None,
    ) -> None:
        """The conversation has one question; it is known to fail."""
        self.best = conversation
        self._question = conversation.questions[0]
        self._evidence = frozenset(self._question.evidence)
        self._still_fails, self._on_smaller = still_fails, on_smaller

    async def run(self, first_guess: Collection[str] = ()) -> None:
        """Shrink. ``first_guess`` are turns that may be enough, with the evidence.

        Raises:
            StopShrinking: of the test; ``best`` is valid, though perhaps not minimal.
        """
        if first_guess:
            guessed = self._exchanges_with({*first_guess, *self._evidence})
            await self._try({turn.id: turn.text for turn in self.best.turns if turn.id in guessed})
        await self._shrink_groups(self._sessions())
        before = 0
        while before != len(self.best.turns):
            before = len(self.best.turns)
            await self._shrink_groups(self._exchanges())
            await self._shrink_groups([(turn.id,) for turn in self.best.turns])
        for turn in self.best.turns:
            await self._shrink_text(turn, sentences_of(turn.text), " ")
        for turn in self.best.turns:
            if turn.id not in self._evidence:
                await self._shrink_text(turn, turn.text.split(), " ")
        before = 0
        while before != len(self.best.turns):
            before = len(self.best.turns)
            await self._shrink_groups(self._exchanges())

    def _sessions(self) -> list[tuple[str, ...]]:
        numbers = dict.fromkeys(turn.session for turn in self.best.turns)
        return [tuple(turn.id for turn in self.best.turns if turn.session == number) for number in numbers]

    def _exchanges(self) -> list[tuple[str, ...]]:
        """Return the turns of each exchange; what nobody says to the other goes with nothing."""
        said = [tuple(message.turn_id for message in exchange.messages) for exchange in exchanges_of(self.best)]
        return said + [(turn.id,) for turn in self.best.turns if turn.role == "other"]

    def _exchanges_with(self, turns: Collection[str]) -> set[str]:
        return {turn for group in self._exchanges() if not set(turns).isdisjoint(group) for turn in group}

    async def _shrink_groups(self, groups: Iterable[tuple[str, ...]]) -> None:
        """Remove as many groups of turns as possible, but none with evidence."""
        removable = [group for group in groups if self._evidence.isdisjoint(group)]
        gone = {turn for group in removable for turn in group}
        texts = {turn.id: turn.text for turn in self.best.turns}

        async def fails(kept: Sequence[tuple[str, ...]]) -> bool:
            stay = {turn for group in kept for turn in group}
            return await self._try({id_: text for id_, text in texts.items() if id_ not in gone or id_ in stay})

        await minimal(removable, fails)

    async def _shrink_text(self, turn: Turn, parts: Sequence[str], between: str) -> None:
        """Remove parts of what a turn says."""
        if len(parts) < 2:
            return
        texts = {other.id: other.text for other in self.best.turns}
        needed = self._answers_in(turn) if turn.id in self._evidence else ()
        if needed is None:
            return

        async def fails(kept: Sequence[int]) -> bool:
            text = between.join(parts[place] for place in kept)
            if not text or any(not occurs_in(answer, text) for answer in needed):
                return False
            return await self._try(texts | {turn.id: text})

        await minimal(range(len(parts)), fails)

    def _answers_in(self, turn: Turn) -> tuple[str, ...] | None:
        """Return the words of the answer that an evidence turn says; None if it says it in words of its own."""
        answers = (self._question.expected, *self._question.expected_entities)
        return tuple(answer for answer in answers if answer and occurs_in(answer, turn.text)) or None

    async def _try(self, texts: Mapping[str, str]) -> bool:
        candidate = with_turns(self.best, texts)
        if not candidate.turns or candidate.turns == self.best.turns or not await self._still_fails(candidate):
            return False
        self.best = candidate
        self._on_smaller(candidate)
        return True
