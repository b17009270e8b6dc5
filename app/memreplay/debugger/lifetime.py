"""The turns between which a question can be answered, found by bisection over a conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from memory_backends.base import Recall
from memreplay.conversations.models import Question
from memreplay.scoring.holding import Answerable, Piece
from memreplay.scoring.stored import StoredMemory
from memreplay.timeline.timeline import Timeline

IsKnown = Callable[[int], Awaitable[bool]]
"""Tells whether the answer is known once this many turns were played."""


@dataclass(frozen=True)
class Lifetime:
    """``learnt`` is the first turn after which the answer is known; None if no turn was found.

    ``forgotten`` is the first turn after which it is no longer known; None if it is known to the end. ``probed``
    are the turns that were tried. Between them it is assumed that the answer is learnt once and forgotten at most
    once.
    """

    learnt: int | None
    forgotten: int | None
    probed: tuple[int, ...]

    def knows(self, turn: int) -> bool:
        """Return whether the answer is known after a turn."""
        if self.learnt is None or turn < self.learnt:
            return False
        return self.forgotten is None or turn < self.forgotten


async def lifetime(is_known: IsKnown, heard: int, last: int) -> Lifetime:
    """Find when an answer is learnt and forgotten, with a number of probes that grows with the logarithm of turns.

    ``heard`` is the turn after which memory has heard the evidence, ``last`` the last turn.
    """
    found: dict[int, bool] = {}

    async def known(turn: int) -> bool:
        if turn not in found:
            found[turn] = await is_known(turn)
        return found[turn]

    async def first_after(low: int, high: int, wanted: bool) -> int:
        """Return the first turn after ``low`` where it is as ``wanted``, which it is at ``high`` and not at
        ``low``.
        """
        while high - low > 1:
            middle = (low + high) // 2
            if await known(middle) == wanted:
                high = middle
            else:
                low = middle
        return high

    inside = await _some_turn(known, heard, last)
    if inside is None:
        return Lifetime(None, None, tuple(found))
    learnt = 0 if await known(0) else await first_after(0, inside, True)
    forgotten = None if await known(last) else await first_after(inside, last, False)
    return Lifetime(learnt, forgotten, tuple(found))


async def _some_turn(known: IsKnown, heard: int, last: int) -> int | None:
    """Return a turn at which the answer is known: the last, or one at doubling distances after it was heard."""
    if await known(last):
        return last
    distance = 0
    while heard + distance < last:
        if await known(heard + distance):
            return heard + distance
        distance = 2 * distance or 1
    return None


def heard_at(question: Question, timeline: Timeline) -> int:
    """Return the position at which memory has heard all evidence; 1 if none is named."""
    heard = [timeline.observed_at(turn) for turn in question.evidence]
    return max([position for position in heard if position is not None], default=1)


def stored_at(timeline: Timeline, backend: str, question: Question, turn: int) -> bool:
    """Return whether what a memory stores after a turn holds the answer, from the recording alone."""
    memory = StoredMemory(timeline.kept_until(backend, turn))
    return Answerable(question, timeline.conversation.turns_by_id, timeline.conversation.days_by_session).held_by(
        memory.stored
    )


def stores_are_seen(timeline: Timeline, backend: str, turn: int) -> bool:
    """Return whether all that a memory stored up to a turn could be listed."""
    return StoredMemory(timeline.kept_until(backend, turn)).is_known


def has_written(timeline: Timeline, backend: str) -> bool:
    """Return whether any write of a memory is recorded: some write where no trace reaches."""
    end = timeline.last_turn
    return any(timeline.archive.written_at(backend, position) for position in range(end + 1))


def given_holds(timeline: Timeline, question: Question, recall: Recall) -> bool:
    """Return whether what a memory returned for the question holds the answer."""
    pieces = [
        Piece(hit.text, frozenset((*hit.turns, *hit.sources)), frozenset(hit.turns))
        for hit in recall.hits
        if hit.in_prompt
    ]
    if recall.context and not any(piece.text for piece in pieces):
        pieces.append(Piece(recall.context))
    return Answerable(question, timeline.conversation.turns_by_id, timeline.conversation.days_by_session).held_by(
        pieces
    )
