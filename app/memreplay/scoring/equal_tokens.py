"""What a memory's ranking holds within a number of tokens, so that hits of different size can be compared.

A hit may be one message or a passage of twenty: at equally many hits, the memory with the larger ones has an
advantage.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory_backends.base import Hit
from memreplay.conversations.models import Frozen
from memreplay.scoring.holding import Answerable, Piece

TOKEN_BUDGETS = (256, 512, 1024, 2048)
HEADLINE_TOKENS = 1024
"""The budget at which memories are compared where one figure is quoted."""


class HeldAt(Frozen):
    """What the first hits of one question hold, as many as fit a budget.

    ``recall`` is the share of evidence turns that they hold word for word; ``evidence`` is whether they hold the
    answer: all evidence turns, or its content (see :mod:`memreplay.scoring.holding`).
    """

    recall: float
    evidence: bool


def piece_of(hit: Hit) -> Piece:
    """The hit as a text with the turns it comes from."""
    return Piece(hit.text, frozenset((*hit.turns, *hit.sources)), frozenset(hit.turns))


def held_at_tokens(answerable: Answerable, hits: Sequence[Hit]) -> dict[str, HeldAt]:
    """What the hits hold, by budget, in order of rank. Of the first hit that does not fit, the beginning counts.

    The hits are those that memory returned, whether or not they reached the prompt. The question needs evidence.
    """
    ranked = sorted(hits, key=lambda hit: hit.rank)
    return {str(budget): _held(answerable, _cut(ranked, budget)) for budget in TOKEN_BUDGETS}


def _cut(ranked: Sequence[Hit], budget: int) -> list[Piece]:
    """The hits up to a number of tokens; the last one is cut in proportion to its length."""
    pieces: list[Piece] = []
    left = budget
    for hit in ranked:
        if hit.tokens > left:
            beginning = hit.text[: len(hit.text) * left // hit.tokens]
            # Its words are compared with the turns: what the hit says of itself no longer holds.
            return [*pieces, Piece(beginning, frozenset((*hit.turns, *hit.sources)))]
        pieces.append(piece_of(hit))
        left -= hit.tokens
    return pieces


def _held(answerable: Answerable, pieces: Sequence[Piece]) -> HeldAt:
    found = sum(answerable.is_verbatim(turn, pieces) for turn in answerable.evidence)
    return HeldAt(recall=found / len(answerable.evidence), evidence=answerable.held_by(pieces))
