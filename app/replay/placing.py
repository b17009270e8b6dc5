"""How far a turn came in one read path, and at which rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from app.conversations.models import Frozen
from memory_backends.base import ChannelScore, Hit

Reach = Literal["in_prompt", "cut", "missed", "not_found"]
"""How far a turn came in one read path: into the prompt, retrieved and cut by the budget, ranked below the cut, or
not among the candidates on record."""

Form = Literal["verbatim", "distilled"]


class Placing(Frozen):
    """How one read path dealt with the turn.

    ``rank`` is 1-based in all channels together, None where it was not found; ``channels`` its rank and score in
    each; ``form`` whether its words or a distillate were found.
    """

    turn: int
    reach: Reach
    rank: int | None = None
    score: float | None = None
    channels: Mapping[str, ChannelScore] = {}
    form: Form | None = None


def placing_in(
    position: int, turn_id: str, hits: Sequence[Hit], missed: Sequence[Hit], cut: Iterable[str]
) -> Placing:
    """How a read path dealt with a turn: the best that it did with its words, else with a distillate of it."""
    ranked = [
        *(("in_prompt" if hit.in_prompt else "cut", hit) for hit in hits if _names(hit, turn_id)),
        *(("missed", hit) for hit in missed if _names(hit, turn_id)),
    ]
    order = {"in_prompt": 0, "cut": 1, "missed": 2}
    best = min(ranked, key=lambda one: (order[one[0]], turn_id not in one[1].turns, one[1].rank), default=None)
    was_cut = turn_id in set(cut)
    if best is None:
        return Placing(turn=position, reach="cut" if was_cut else "not_found")
    reach, hit = best
    return Placing(
        turn=position,
        reach="cut" if was_cut and reach == "missed" else reach,
        rank=hit.rank,
        score=hit.score,
        channels=hit.channels,
        form="verbatim" if turn_id in hit.turns else "distilled",
    )


def _names(hit: Hit, turn_id: str) -> bool:
    return turn_id in hit.turns or turn_id in hit.sources
