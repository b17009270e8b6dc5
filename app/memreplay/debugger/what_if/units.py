"""Takes a recorded context apart into units that can be moved, added and removed, and puts it together again.

A unit is a hit; where the whole context is one verbatim log, a unit is a message of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_backends.base import Hit
from memory_backends.retrieval.rendering import BETWEEN_HITS, under_date
from memreplay.conversations.exchanges import message_of
from memreplay.conversations.models import Conversation


@dataclass(frozen=True)
class Unit:
    """A part of a context.

    ``turns`` stand in it word for word, ``sources`` are turns that it was made from. ``number`` is the 1-based
    number of its last turn, None if it has no place in the conversation. ``rank`` is 1-based; None for text that is
    no hit, such as a heading. ``date`` is the heading of a message in a log, which shows only above the first
    message of its session.
    """

    text: str
    turns: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    number: int | None = None
    rank: int | None = None
    session: int | None = None
    date: str = ""

    @property
    def is_line(self) -> bool:
        """Whether it is a message of a log."""
        return self.session is not None


def units_of(context: str, hits: Sequence[Hit], conversation: Conversation) -> tuple[Unit, ...] | None:
    """The units of a context, in its order; None if the hits in the prompt do not tell how it was put together."""
    shown = [hit for hit in hits if hit.in_prompt and hit.text.strip()]
    places = _places(context, shown)
    if not shown or places is None:
        return None
    units: list[Unit] = []
    end = 0
    for start, hit in places:
        if between := context[end:start].strip("\n"):
            units.append(Unit(between))
        units.append(_unit(hit, conversation))
        end = start + len(hit.text)
    if rest := context[end:].strip("\n"):
        units.append(Unit(rest))
    if len(units) == 1 and len(shown[0].turns) > 1:
        return _messages(shown[0], conversation)
    return tuple(units)


def _places(context: str, hits: Sequence[Hit]) -> list[tuple[int, Hit]] | None:
    """Where each hit stands; None if one is not found. The longest first: a short one may stand inside another."""
    taken: list[tuple[int, Hit]] = []
    for hit in sorted(hits, key=lambda hit: -len(hit.text)):
        start = context.find(hit.text)
        while any(start < at + len(other.text) and at < start + len(hit.text) for at, other in taken):
            start = context.find(hit.text, start + 1)
            if start < 0:
                break
        if start < 0:
            return None
        taken.append((start, hit))
    return sorted(taken, key=lambda place: place[0])


def _unit(hit: Hit, conversation: Conversation) -> Unit:
    known = [conversation.turns_by_id[turn].number for turn in hit.turns if turn in conversation.turns_by_id]
    return Unit(
        hit.text, frozenset(hit.turns), frozenset(hit.sources), max(known, default=None), rank=max(hit.rank, 1)
    )


def _messages(log: Hit, conversation: Conversation) -> tuple[Unit, ...] | None:
    """The messages of a log; None if it does not hold all of its turns as lines."""
    units = turns_as_units(log.turns, conversation)
    if len(units) != len(log.turns) or any(unit.text not in log.text for unit in units):
        return None
    # The end of a log is what a memory keeps, so its oldest message counts as its lowest-ranked.
    return tuple(Unit(**{**vars(unit), "rank": len(units) - place}) for place, unit in enumerate(units))


def turns_as_units(turns: Iterable[str], conversation: Conversation) -> list[Unit]:
    """These turns as messages under their dates, in the order of the conversation; unknown ids are left out."""
    known = {turn: conversation.turns_by_id[turn] for turn in turns if turn in conversation.turns_by_id}
    units = []
    for turn in sorted(known.values(), key=lambda turn: turn.number):
        message = message_of(conversation, turn)
        dated = under_date(message.line, message.said_at)
        date = dated[: len(dated) - len(message.line)].strip("\n")
        units.append(Unit(message.line, frozenset([turn.id]), number=turn.number, session=turn.session, date=date))
    return units


def joined(units: Iterable[Unit]) -> str:
    """One context. Hits stand apart; messages of one session follow each other below one date."""
    text = ""
    before: Unit | None = None
    for unit in units:
        continues = unit.is_line and before is not None and before.session == unit.session
        if before is not None:
            text += "\n" if unit.is_line and before.is_line else BETWEEN_HITS
        text += unit.text if continues or not unit.date else f"{unit.date}\n{unit.text}"
        before = unit
    return text


def apart(units: Iterable[Unit]) -> list[Unit]:
    """Messages as hits of their own, each under its date."""
    return [
        Unit(f"{unit.date}\n{unit.text}" if unit.date else unit.text, unit.turns, unit.sources, unit.number)
        if unit.is_line
        else unit
        for unit in units
    ]
