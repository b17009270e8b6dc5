"""The smallest conversation that still fails: sessions, exchanges, turns, sentences and words are removed from it.

The algorithm knows no memory: it is given a test that says which of some smaller conversations still fails. It
proposes several at a time, in the order in which it would try them one by one, so that they can be tried in
parallel; the result is the same.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from memory_backends.text import sentences_of
from memreplay.conversations.models import Conversation, Question, Session, Turn, exchanges_of
from memreplay.scoring.holding import Answerable, Piece

T = TypeVar("T")

FirstFailing = Callable[[Sequence[Conversation]], Awaitable[int | None]]
"""Returns the place of the first conversation that fails as the whole one does; None if none does. It raises
StopShrinking to end the search."""


_BETWEEN_CLAUSES = re.compile(r"(?<=[,;:–—])\s+")


class StopShrinking(Exception):
    """The search ends here; the smallest conversation that was found so far stands."""


async def minimal(
    parts: Sequence[T],
    first_failing: Callable[[Sequence[Sequence[T]]], Awaitable[int | None]],
    at_once: int = 1,
) -> list[T]:
    """Return parts that still fail together, and of which none can be left out alone (delta debugging).

    ``at_once`` proposals are made together. The next ones assume that none of them fails, so that the result does
    not depend on their number.
    """
    kept = list(parts)
    if kept and await first_failing([[]]) is not None:
        return []
    size = max(len(kept) // 2, 1)
    while True:
        first, before = 0, len(kept)
        while first < len(kept):
            places = range(first, len(kept), size)[:at_once]
            rests = [rest for place in places if (rest := kept[:place] + kept[place + size :])]
            found = await first_failing(rests) if rests else None
            if found is None:
                first = places[-1] + size
            else:
                kept, first = rests[found], places[found]
        if size == 1 and len(kept) == before:
            return kept
        size = max(size // 2, 1)


def only_question(conversation: Conversation, question: Question) -> Conversation:
    """Return the conversation with this question alone, and without summaries, which no memory is given."""
    sessions = tuple(session.model_copy(update={"summary": None}) for session in conversation.sessions)
    fields = {name: getattr(conversation, name) for name in Conversation.model_fields}
    return Conversation(**fields | {"questions": (question,), "sessions": sessions})


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


def with_exchanges_apart(conversation: Conversation) -> Conversation | None:
    """Return the conversation with each exchange in a session of its own, on the date of its session.

    A turn of an exchange can then be left out, and what remains does not join the next exchange. None where a
    session has no date: only dated sessions can be written.
    """
    if any(session.date is None for session in conversation.sessions):
        return None
    last = {exchange.turn_ids[-1] for exchange in exchanges_of(conversation)}
    turns: list[Turn] = []
    sessions: list[Session] = []
    begins, of = True, 0
    for turn in conversation.turns:
        if begins or turn.session != of:
            date = conversation.sessions_by_number[turn.session].date
            sessions.append(Session(number=len(sessions) + 1, id=str(len(sessions) + 1), date=date))
        turns.append(turn.model_copy(update={"session": len(sessions)}))
        begins, of = turn.id in last, turn.session
    fields = {name: getattr(conversation, name) for name in Conversation.model_fields}
    return Conversation(**fields | {"turns": tuple(turns), "sessions": tuple(sessions)})


def with_other_words(conversation: Conversation, of: Callable[[str], str]) -> Conversation:
    """Return the conversation with other words, in its questions too, and another id: ``of`` replaces a text."""
    turns = tuple(
        turn.model_copy(update={"text": of(turn.text), "speaker": turn.speaker and of(turn.speaker)})
        for turn in conversation.turns
    )
    sessions = tuple(session.model_copy(update={"summary": None}) for session in conversation.sessions)
    fields = {name: getattr(conversation, name) for name in Conversation.model_fields}
    questions = tuple(_with_other_words(question, of) for question in conversation.questions)
    others = {"id": "case", "dataset": "case", "title": None}
    return Conversation(**fields | {"turns": turns, "sessions": sessions, "questions": questions} | others)


def _with_other_words(question: Question, of: Callable[[str], str]) -> Question:
    lists = ("expected_entities", "choices", "supersedes")
    replaced: dict[str, object] = {name: tuple(map(of, getattr(question, name))) for name in lists}
    replaced["suggested"] = question.suggested and of(question.suggested)
    return question.model_copy(update=replaced | {"text": of(question.text), "expected": of(question.expected)})


class Shrinking:
    """The search for the smallest conversation. ``best`` is the smallest one so far that still fails.

    Evidence turns are never removed, and what is left of one still holds its part of the answer, so that a perfect
    memory knows it. They lose sentences and their first and last clauses, but no single words, without which they
    might say something else. The same holds for turns that tempt to a wrong answer.
    ``on_smaller`` is called when a smaller one is found. ``at_once`` are proposed to the test together.
    """

    def __init__(
        self,
        conversation: Conversation,
        first_failing: FirstFailing,
        on_smaller: Callable[[Conversation], None] = lambda smaller: None,
        at_once: int = 1,
    ) -> None:
        """The conversation has one question; it is known to fail."""
        self.best = conversation
        self._question = conversation.questions[0]
        self._answerable = Answerable(self._question, conversation.turns_by_id, conversation.days_by_session)
        self._evidence = frozenset(self._question.evidence)
        self._first_failing, self._on_smaller, self._at_once = first_failing, on_smaller, at_once

    async def run(self, first_guess: Collection[str] = ()) -> None:
        """Shrink. ``first_guess`` are turns that may be enough, with the evidence.

        Raises:
            StopShrinking: of the test; ``best`` is valid, though perhaps not minimal.
        """
        if first_guess:
            guessed = self._exchanges_with({*first_guess, *self._evidence})
            await self._try([{turn.id: turn.text for turn in self.best.turns if turn.id in guessed}])
        await self._shrink_groups(self._sessions())
        await self.shrink_turns()
        await self._separate_exchanges()
        await self._shrink_sentences()
        if await self._join_turns():
            await self._shrink_sentences()
        for turn in self.best.turns:
            is_evidence = turn.id in self._evidence
            parts = _BETWEEN_CLAUSES.split(turn.text) if is_evidence else turn.text.split()
            await self._shrink_text(turn, parts, at_its_ends=is_evidence)
        await self.shrink_turns()

    async def shrink_turns(self) -> None:
        """Remove exchanges and turns until none can be removed alone."""
        before = 0
        while before != len(self.best.turns):
            before = len(self.best.turns)
            await self._shrink_groups(self._exchanges())
            await self._shrink_groups([(turn.id,) for turn in self.best.turns])

    async def _shrink_sentences(self) -> None:
        for turn in self.best.turns:
            await self._shrink_text(turn, sentences_of(turn.text))

    async def _separate_exchanges(self) -> None:
        """Separate the exchanges if fewer turns are needed then: one without a reply joins the next exchange."""
        joined, apart = self.best, with_exchanges_apart(self.best)
        if apart is None or all(len(exchange.messages) == 1 for exchange in exchanges_of(joined)):
            return
        if await self._first_failing([apart]) is not None:
            self.best = apart
            await self.shrink_turns()
            if len(self.best.turns) == len(joined.turns):
                self.best = joined

    async def _join_turns(self) -> bool:
        """Let one turn say what two said, and return whether that was possible."""
        joined, first = False, 0
        while True:
            pairs = self._pairs()[first:][: self._at_once]
            if not pairs:
                return joined
            texts = {turn.id: turn.text for turn in self.best.turns}
            proposals = [
                {id_: text for id_, text in texts.items() if id_ != other.id} | {one.id: f"{one.text} {other.text}"}
                for one, other in pairs
            ]
            found = await self._try(proposals)
            joined = joined or found is not None
            first += len(pairs) if found is None else found

    def _pairs(self) -> list[tuple[Turn, Turn]]:
        """Return each turn that can be left out, but the last of its speaker, with the next of its speaker."""
        latest: dict[tuple[str, str | None], Turn] = {}
        pairs: list[tuple[Turn, Turn]] = []
        for turn in self.best.turns:
            if turn.id not in self._evidence:
                said_by = (turn.role, turn.speaker)
                if said_by in latest:
                    pairs.append((latest[said_by], turn))
                latest[said_by] = turn
        return pairs

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

        def proposed(kept: Sequence[tuple[str, ...]]) -> Mapping[str, str]:
            stay = {turn for group in kept for turn in group}
            return {id_: text for id_, text in texts.items() if id_ not in gone or id_ in stay}

        async def first_failing(several: Sequence[Sequence[tuple[str, ...]]]) -> int | None:
            return await self._try([proposed(kept) for kept in several])

        await minimal(removable, first_failing, self._at_once)

    async def _shrink_text(self, turn: Turn, parts: Sequence[str], *, at_its_ends: bool = False) -> None:
        """Remove parts of what a turn says."""
        if len(parts) < 2:
            return
        texts = {other.id: other.text for other in self.best.turns}

        async def first_failing(several: Sequence[Sequence[int]]) -> int | None:
            said = [" ".join(parts[place] for place in kept) for kept in several]
            places = [
                place
                for place, kept in enumerate(several)
                if kept
                and not (at_its_ends and kept[-1] - kept[0] >= len(kept))
                and self._may_say(turn, said[place])
            ]
            found = await self._try([texts | {turn.id: said[place]} for place in places])
            return None if found is None else places[found]

        await minimal(range(len(parts)), first_failing, self._at_once)

    def _may_say(self, turn: Turn, text: str) -> bool:
        """Return whether a turn may say only this. Evidence still has its part of the answer, and what it shares
        with the question.
        """
        if turn.id not in self._evidence:
            return True
        cut, answerable = Piece(text, frozenset({turn.id})), self._answerable
        holds = turn.id not in answerable.evidence or answerable.part_held_by(turn.id, [cut])
        return holds and answerable.topic_in(turn.text) <= answerable.topic_in(text)

    async def _try(self, proposals: Sequence[Mapping[str, str]]) -> int | None:
        """Return the place of the first proposal that fails, by the texts of its turns, and take it."""
        candidates = {
            place: candidate
            for place, texts in enumerate(proposals)
            if (candidate := with_turns(self.best, texts)).turns and candidate.turns != self.best.turns
        }
        found = await self._first_failing(list(candidates.values())) if candidates else None
        if found is None:
            return None
        place = list(candidates)[found]
        self.best = candidates[place]
        self._on_smaller(self.best)
        return place
