"""The evidence of a TestConversation question.

The schema names no turns, so they are derived: key turns in the band that the question points at whose text holds
the expected entities, as few as hold all of them that are held at all; the later ones where there is a choice,
because a value that was corrected is right as it was said last.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.conversations.models import InfoLocation, Turn
from app.conversations.normalise import stands_in

BANDS: dict[InfoLocation, range] = {
    "early": range(1, 5),
    "middle": range(5, 9),
    "recent": range(9, 1_000_000_000),
}
"""Turn numbers, 1-based, of each location."""


def derived_evidence(turns: Sequence[Turn], location: InfoLocation, entities: Sequence[str]) -> tuple[str, ...]:
    """Ids of the evidence turns, in order; empty where no key turn of the band holds any entity."""
    held_by_turn: list[tuple[Turn, frozenset[str]]] = []
    for turn in turns:
        if turn.number in BANDS[location] and turn.key_info is not None and turn.key_info.contains_key_info:
            held = frozenset(entity for entity in entities if stands_in(entity, turn.text))
            held_by_turn.append((turn, held))
    return tuple(turn.id for turn in _latest_minimal_cover(held_by_turn))


def _latest_minimal_cover(held_by_turn: Sequence[tuple[Turn, frozenset[str]]]) -> tuple[Turn, ...]:
    """The fewest turns that hold together all that any of them holds; of equally few, the latest.

    Dynamic programming over the sets of entities held so far, from the last turn to the first: a cover found
    earlier consists of later turns, and only a strictly smaller one replaces it.
    """
    covers: dict[frozenset[str], tuple[Turn, ...]] = {frozenset(): ()}
    for turn, held in reversed(held_by_turn):
        for entities, cover in list(covers.items()):
            together = entities | held
            if together not in covers or len(cover) + 1 < len(covers[together]):
                covers[together] = (turn, *cover)
    return covers[max(covers, key=len)]
