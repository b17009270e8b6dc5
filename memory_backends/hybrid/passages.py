"""Ranked turns to passages: excerpts of the conversation that fit a number of hits and of tokens.

Tokens buy turns and not whole exchanges: of an exchange often one turn answers and the other only cheers. A turn
that ranks well near one that is already in joins its passage, that of the nearest, so that no two passages are
entangled. A passage is one hit: turns of one session, in order, under one date, with a line ``…`` where turns
between them were left out. A hit has ``TURNS_PER_HIT`` turns at most on the average of all hits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from memory_backends.base import Message, TokenCounter
from memory_backends.hybrid.verbatim import RankedTurn
from memory_backends.rendering import BETWEEN_HITS, under_date

TURNS_PER_HIT = 6
"""How far down the ranking, in turns per hit, turns are taken in."""

REACH = 8
"""How many places a turn may be from the nearest turn of its passage."""

GAP = "…"


@dataclass
class Passage:
    """An excerpt of one session, found by its ``best`` turn.

    ``members`` and ``taken`` map places in the conversation to turns: all that belong to it, and those of them that
    there is room for. ``best`` is always among them; where not even for it there was room, ``has_room`` is False,
    and the passage is there to be seen as cut.
    """

    best: RankedTurn
    has_room: bool
    members: dict[int, Message] = field(default_factory=dict)
    taken: dict[int, Message] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The point that its best turn stands in, and which turn of it that is."""
        return f"{self.best.exchange_id}#{self.best.message.turn_id}"

    @property
    def text(self) -> str:
        """The passage as it stands in a context."""
        lines: list[str] = []
        previous: int | None = None
        for place in sorted(self.taken):
            if previous is not None and place != previous + 1:
                lines.append(GAP)
            lines.append(self.taken[place].line)
            previous = place
        return under_date("\n".join(lines), self.best.message.said_at)

    @property
    def turns(self) -> tuple[str, ...]:
        """Ids of its turns, in order."""
        return tuple(self.taken[place].turn_id for place in sorted(self.taken))

    @property
    def turn_number(self) -> int:
        """What passages are put in the order of the conversation by."""
        return self.taken[min(self.taken)].turn_number

    @property
    def left_out(self) -> list[Message]:
        """Members that there is no room for."""
        return [message for place, message in self.members.items() if place not in self.taken]

    def distance(self, item: RankedTurn) -> int:
        """How many places a turn is from the nearest of it; more than ``REACH`` where it is of another session."""
        if item.message.session != self.best.message.session:
            return REACH + 1
        return min(abs(item.place - place) for place in self.members)

    def goes_on_at(self, place: int) -> bool:
        """Whether a turn there needs no gap."""
        return place - 1 in self.taken or place + 1 in self.taken


def passages_of(ranked: Sequence[RankedTurn], limit: int, budget: int, count_tokens: TokenCounter) -> list[Passage]:
    """At most ``limit`` passages, best first, whose turns are taken, best first, while there is room.

    Which turns belong together does not depend on the budget, so that what a budget cuts can be told.
    """
    passages: list[Passage] = []
    left = budget
    for item in ranked[: limit * TURNS_PER_HIT]:
        line = item.message.line
        passage = min(passages, key=lambda passage: passage.distance(item), default=None)
        if passage is not None and passage.distance(item) <= REACH:
            cost = count_tokens(f"{line}\n" if passage.goes_on_at(item.place) else f"{GAP}\n{line}\n")
            room = cost <= left and passage.has_room
        elif len(passages) < limit:
            cost = count_tokens(under_date(line, item.message.said_at) + BETWEEN_HITS)
            room = cost <= left
            passage = Passage(best=item, has_room=room, taken={item.place: item.message})
            passages.append(passage)
        else:
            continue
        passage.members[item.place] = item.message
        if room:
            passage.taken[item.place] = item.message
            left -= cost
    return passages
