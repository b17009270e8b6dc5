"""The part of a memory's ranking within a number of tokens, so that hits of different size can be compared.

A hit may be one message or a passage of twenty: at equally many hits, the memory with the larger ones has an
advantage. Figures are read off the recorded ranking, as memories fill a prompt: the best first, nothing in part,
and what does not fit is left out for smaller things after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from memory_backends.base import Excerpt, Hit
from memreplay.conversations.models import Frozen
from memreplay.scoring.holding import Answerable, Piece, heading_of

TOKEN_BUDGETS = (256, 512, 1024, 2048)
HEADLINE_TOKENS = 1024
"""The budget at which memories are compared where one figure is quoted."""


class HeldAt(Frozen):
    """The part of one question's hits that a prompt of a number of tokens would hold.

    ``recall`` is the share of evidence turns that it holds word for word; ``evidence`` is whether it holds the
    answer: all evidence turns, or its content (see :mod:`memreplay.scoring.holding`). In results ``recall`` is null
    for a memory that holds no turn word for word.
    """

    recall: float | None
    evidence: bool


class _Portion(NamedTuple):
    """A part that is taken or left out as a whole: a hit, or one turn of a hit that memory filled turn by turn."""

    hit: Hit
    excerpt: Excerpt | None
    tokens: float

    @property
    def order(self) -> tuple[bool, int]:
        return (False, self.excerpt.rank) if self.excerpt else (True, self.hit.rank)


def held_at_tokens(
    answerable: Answerable, hits: Sequence[Hit], piece_of: Callable[[Hit], Piece]
) -> dict[str, HeldAt]:
    """Return what a prompt would hold of the hits, by budget. The question needs evidence.

    The hits are those that memory returned, whether or not they reached the prompt. Turns that a memory took one by
    one (``Hit.excerpts``) come in that order, then other hits by their rank.
    """
    portions = sorted((portion for hit in hits for portion in _portions(hit)), key=lambda portion: portion.order)
    return {str(budget): _held(answerable, _fitting(portions, budget, piece_of)) for budget in TOKEN_BUDGETS}


def _portions(hit: Hit) -> Iterator[_Portion]:
    """Yield the turns of a hit, which share its tokens by their length; the whole hit if it names no excerpts."""
    length = sum(excerpt.end - excerpt.start for excerpt in hit.excerpts)
    if not length:
        yield _Portion(hit, None, hit.tokens)
    for excerpt in hit.excerpts:
        yield _Portion(hit, excerpt, hit.tokens * (excerpt.end - excerpt.start) / max(length, 1))


def _fitting(portions: Sequence[_Portion], budget: int, piece_of: Callable[[Hit], Piece]) -> list[Piece]:
    """Return the texts of the portions that fit, the best first; the turns of one hit are one text."""
    whole: list[Piece] = []
    taken: dict[str, list[Excerpt]] = {}
    hits = {portion.hit.id: portion.hit for portion in portions}
    left: float = budget
    for hit, excerpt, tokens in portions:
        if tokens > left:
            continue
        left -= tokens
        if excerpt is None:
            whole.append(piece_of(hit))
        else:
            taken.setdefault(hit.id, []).append(excerpt)
    return [*(_joined(piece_of(hits[id_]), excerpts) for id_, excerpts in taken.items()), *whole]


def _joined(whole: Piece, excerpts: Sequence[Excerpt]) -> Piece:
    """Return the excerpts of a hit as one text, under the date that the hit stands under."""
    places = sorted((excerpt.start, excerpt.end) for excerpt in excerpts)
    parts = [heading_of(whole.text), *(whole.text[start:end] for start, end in places)]
    turns = frozenset(excerpt.turn for excerpt in excerpts)
    return replace(whole, text="\n".join(filter(None, parts)), turns=turns, verbatim=whole.verbatim & turns)


def _held(answerable: Answerable, pieces: Sequence[Piece]) -> HeldAt:
    found = sum(answerable.is_verbatim(turn, pieces) for turn in answerable.evidence)
    return HeldAt(recall=found / len(answerable.evidence), evidence=answerable.held_by(pieces))
