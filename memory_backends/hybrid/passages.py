"""Ranked exchanges to passages: stretches of the conversation that fit a number of hits and of tokens.

An exchange that ranks well beside one that is already in joins its passage. A passage is one hit however many
exchanges it has, up to ``LONGEST_PASSAGE``: what surrounds an answer is worth more than one more guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from memory_backends.base import Exchange, TokenCounter
from memory_backends.hybrid.verbatim import RankedExchange
from memory_backends.rendering import BETWEEN_HITS, under_date

LONGEST_PASSAGE = 3
"""Most exchanges of one passage."""

NEIGHBOURS_PER_HIT = 6
"""How far down the ranking, in exchanges per hit, neighbours are still taken in."""


@dataclass
class Passage:
    """A stretch of one session, found by its ``best`` exchange.

    ``members`` and ``taken`` map places in the conversation to exchanges: all that belong to it, and those of them
    that there is room for. ``best`` is always among them; where not even for it there was room, ``has_room`` is
    False, and the passage is there to be seen as cut.
    """

    best: RankedExchange
    has_room: bool
    members: dict[int, Exchange] = field(default_factory=dict)
    taken: dict[int, Exchange] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The passage as it stands in a context."""
        said = "\n".join(exchange.text for exchange in self._in_order())
        return under_date(said, self.best.exchange.said_at)

    @property
    def turns(self) -> tuple[str, ...]:
        """Ids of its turns, in order."""
        return tuple(turn for exchange in self._in_order() for turn in exchange.turn_ids)

    @property
    def turn_number(self) -> int:
        """What passages are put in the order of the conversation by."""
        return self._in_order()[0].turn_number

    @property
    def left_out(self) -> list[Exchange]:
        """Members that there is no room for."""
        return [exchange for place, exchange in self.members.items() if place not in self.taken]

    def takes_in(self, item: RankedExchange) -> bool:
        """Whether an exchange lies beside it in the same session, and it is not too long already."""
        is_same_session = self.best.exchange.session == item.exchange.session
        return is_same_session and len(self.members) < LONGEST_PASSAGE and _is_beside(item.place, self.members)

    def _in_order(self) -> list[Exchange]:
        return [self.taken[place] for place in sorted(self.taken)]


def passages_of(
    ranked: Sequence[RankedExchange], limit: int, budget: int, count_tokens: TokenCounter
) -> list[Passage]:
    """At most ``limit`` passages, best first, whose exchanges are taken, best first, while there is room.

    Which exchanges belong together does not depend on the budget, so that what a budget cuts can be told.
    """
    passages: list[Passage] = []
    left = budget
    for item in ranked[: limit * NEIGHBOURS_PER_HIT]:
        passage = next((passage for passage in passages if passage.takes_in(item)), None)
        if passage is not None:
            cost = count_tokens(item.exchange.text + "\n")
            room = cost <= left and passage.has_room and _is_beside(item.place, passage.taken)
        elif len(passages) < limit:
            cost = count_tokens(under_date(item.exchange.text, item.exchange.said_at) + BETWEEN_HITS)
            room = cost <= left
            passage = Passage(best=item, has_room=room, taken={item.place: item.exchange})
            passages.append(passage)
        else:
            continue
        passage.members[item.place] = item.exchange
        if room:
            passage.taken[item.place] = item.exchange
            left -= cost
    return passages


def _is_beside(place: int, others: dict[int, Exchange]) -> bool:
    return place - 1 in others or place + 1 in others
