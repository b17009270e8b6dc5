"""Ranked turns to passages: excerpts of the conversation that fit a number of hits and of tokens.

Tokens buy turns and not whole exchanges: of an exchange often one turn answers and the other only cheers. A turn
that ranks well near one that is already in joins its passage, that of the nearest, so that no two passages are
entangled. Of one of the best turns that does not fit and is longer than a turn's share, the nearest
sentences are taken. A passage is one hit: turns of one session, in order, under one date, with a line ``…``
where turns between them were left out. One that has ``TURNS_PER_HIT`` turns takes only what lies between them, so
that the first hits have little beside the best turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from memory_backends.base import Excerpt, Message, TokenCounter
from memory_backends.hybrid.verbatim import RankedTurn
from memory_backends.retrieval.rendering import BETWEEN_HITS, under_date
from memory_backends.text import sentences_of

LEFT_OUT = "…"


def excerpt_of(message: Message, likeness: Sequence[float], fits: Callable[[str], bool]) -> str | None:
    """Return a line of sentences as they were said, in order, with ``…`` where some were left out; None where
    none fits.

    ``likeness`` has a number for each sentence; of two equal ones the earlier is taken first. Sentences at the end
    of a very long turn have none, and are left out.
    """
    sentences = sentences_of(message.text)
    chosen: list[int] = []
    for place in sorted(range(len(likeness)), key=lambda place: -likeness[place]):
        more = sorted([*chosen, place])
        if fits(_line(message, sentences, more)):
            chosen = more
    return _line(message, sentences, chosen) if chosen else None


def _line(message: Message, sentences: Sequence[str], chosen: Sequence[int]) -> str:
    """``chosen`` are places in order."""
    parts: list[str] = []
    for before, place in pairwise([-1, *chosen, len(sentences)]):
        if place > before + 1:
            parts.append(LEFT_OUT)
        parts += sentences[place : place + 1]
    return f"{message.label}: {' '.join(parts)}"


TURNS_PER_HIT = 6
"""Most turns of a passage, and how far down the ranking, in turns per hit, turns are taken in."""

TURNS_AN_EXCHANGE = 2
"""Rank, in turns per hit, down to which a turn that does not fit may be taken in part."""

REACH = 8
"""Largest distance of a turn from the nearest turn of its passage."""

GAP = "…"


@dataclass
class Passage:
    """An excerpt of one session, found by its ``best`` turn.

    ``members``, ``taken`` and ``parts`` map places in the conversation to turns: all that belong to it, those of
    them that there is room for, and for some of the others a line of their sentences. ``ranks`` are the ranks of
    all members, from 1. Where there was no room for ``best``, nothing else is taken; ``has_room`` is False, and
    the passage is there to be seen as cut.
    """

    best: RankedTurn
    has_room: bool = True
    members: dict[int, Message] = field(default_factory=dict)
    taken: dict[int, Message] = field(default_factory=dict)
    parts: dict[int, str] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return the point that holds its best turn, and the id of that turn."""
        return f"{self.best.exchange_id}#{self.best.message.turn_id}"

    @property
    def text(self) -> str:
        """Return the passage as it appears in a context."""
        return under_date("\n".join(line for _, line in self._lines), self.best.message.said_at)

    @property
    def excerpts(self) -> tuple[Excerpt, ...]:
        """Return where its turns stand in the text, in order."""
        found: list[Excerpt] = []
        start = len(under_date("", self.best.message.said_at))
        for place, line in self._lines:
            end = start + len(line)
            if place is not None:
                found.append(
                    Excerpt(turn=self.members[place].turn_id, rank=self.ranks[place], start=start, end=end)
                )
            start = end + len("\n")
        return tuple(found)

    @property
    def turns(self) -> tuple[str, ...]:
        """Return ids of the turns that it has whole, in order."""
        whole = self._whole
        return tuple(whole[place].turn_id for place in sorted(whole))

    @property
    def turns_in_part(self) -> tuple[str, ...]:
        """Return ids of the turns of which it has sentences, in order."""
        return tuple(self.members[place].turn_id for place in sorted(self.parts))

    @property
    def turn_number(self) -> int:
        """Return what passages are put in the order of the conversation by."""
        return self.members[min([*self._whole, *self.parts])].turn_number

    @property
    def left_out(self) -> list[Message]:
        """Members that there is no room for, or only for a part of."""
        return [message for place, message in self.members.items() if place not in self.taken]

    @property
    def is_empty(self) -> bool:
        """Return whether it has no text."""
        return not (self.taken or self.parts)

    @property
    def _lines(self) -> list[tuple[int | None, str]]:
        """Return its lines with the place of their turn; a line that stands for a gap has none."""
        shown = {place: message.line for place, message in self._whole.items()} | self.parts
        lines: list[tuple[int | None, str]] = []
        for place in sorted(shown):
            if lines and place - 1 not in shown:
                lines.append((None, GAP))
            lines.append((place, shown[place]))
        return lines

    @property
    def _whole(self) -> dict[int, Message]:
        """Return the turns that are taken; of a passage that is cut, its best."""
        return {self.best.place: self.best.message} if self.is_empty else self.taken

    def distance(self, item: RankedTurn) -> int:
        """Return how many places a turn is from the nearest of it; more than ``REACH`` where it is of another
        session.
        """
        if item.message.session != self.best.message.session:
            return REACH + 1
        return min(abs(item.place - place) for place in self.members)

    def takes(self, item: RankedTurn, others: Sequence[Passage]) -> bool:
        """Return whether a turn may join: it is near, no other passage lies between, and there is room for it."""
        if self.distance(item) > REACH:
            return False
        nearest = min(self.members, key=lambda place: abs(place - item.place))
        between = range(min(nearest, item.place) + 1, max(nearest, item.place))
        if any(place in between for other in others if other is not self for place in other.members):
            return False
        is_inside = min(self.members) < item.place < max(self.members)
        return is_inside or len(self.members) < TURNS_PER_HIT

    def is_adjacent_to(self, place: int) -> bool:
        """Return whether a turn there needs no gap."""
        return any(beside in self.taken or beside in self.parts for beside in (place - 1, place + 1))


def passages_of(
    ranked: Sequence[RankedTurn], top_k: int, context_tokens: int, count_tokens: TokenCounter
) -> list[Passage]:
    """At most ``top_k`` passages, best first, whose turns are taken, best first, while there is room.

    Which turns belong together does not depend on the budget, so that cuts can be reported.
    """
    passages: list[Passage] = []
    left = context_tokens
    room = context_tokens // max(top_k * TURNS_AN_EXCHANGE, 1)
    for rank, item in enumerate(ranked[: top_k * TURNS_PER_HIT], start=1):
        taking = [passage for passage in passages if passage.takes(item, passages)]
        passage = min(taking, key=lambda passage: passage.distance(item), default=None)
        if passage is None:
            if len(passages) == top_k:
                continue
            passage = Passage(best=item)
            passages.append(passage)
        passage.members[item.place] = item.message
        passage.ranks[item.place] = rank
        cost_of = partial(_cost, passage, item, count_tokens=count_tokens)
        cost = cost_of(item.message.line)
        if not passage.has_room:
            continue
        if cost <= left:
            passage.taken[item.place] = item.message
            left -= cost
        elif rank <= top_k * TURNS_AN_EXCHANGE and cost > room:
            left -= _take_part(passage, item, min(left, room), cost_of)
        passage.has_room = not passage.is_empty
    return passages


def _take_part(passage: Passage, item: RankedTurn, room: int, cost_of: Callable[[str], int]) -> int:
    """Add the sentences of a turn that fit to its passage; returns their tokens."""
    part = excerpt_of(item.message, item.likeness, lambda line: cost_of(line) <= room)
    if part is None:
        return 0
    cost = cost_of(part)
    passage.parts[item.place] = part
    return cost


def _cost(passage: Passage, item: RankedTurn, line: str, count_tokens: TokenCounter) -> int:
    """Return the tokens of a line of a turn at its place in the passage."""
    if passage.is_empty:
        return count_tokens(under_date(line, item.message.said_at) + BETWEEN_HITS)
    return count_tokens(f"{line}\n" if passage.is_adjacent_to(item.place) else f"{GAP}\n{line}\n")
