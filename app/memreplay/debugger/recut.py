"""Cut the recorded candidates of a recall at another number of hits or tokens. Asks no model and no memory.

A memory records the hits that it returned and the next candidates below them. Taking more or fewer of them by rank
shows whether a fact was lost to the cut. What the memory would really have returned may differ where its tiers
share a budget, so this says what the recorded ranking would have let in, and nothing about the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory_backends.base import Hit
from memreplay.conversations.models import Conversation
from memreplay.engine.events import QuestionAsked

Tokens = Callable[[str], int]


@dataclass(frozen=True)
class Candidate:
    """Something that was ranked. ``tokens`` of a candidate below the cut are those of its turns as said."""

    hit: Hit
    rank: int
    tokens: int
    is_hit: bool

    @property
    def turns(self) -> tuple[str, ...]:
        """Return the turns that it holds, or was made from."""
        return tuple(dict.fromkeys((*self.hit.turns, *self.hit.sources)))


@dataclass(frozen=True)
class Placement:
    """The place of an evidence turn. ``candidate`` is the best that holds it, None if no recorded one does.

    ``below`` is how many ranks it is below the last hit, 0 for a hit; ``gap`` is its distance in score to the last
    hit of the same store that has a score, None where there is none to compare with.
    """

    turn: str
    candidate: Candidate | None
    inside: bool
    below: int
    gap: float | None


@dataclass(frozen=True)
class Recut:
    """The candidates that a cut lets in. ``more`` is the number of hits on top of the recorded ones."""

    candidates: tuple[Candidate, ...]
    inside: frozenset[int]
    placements: tuple[Placement, ...]
    tokens: int


def candidates_of(conversation: Conversation, asked: QuestionAsked, count: Tokens) -> tuple[Candidate, ...]:
    """Return the hits of a recall by rank, then the candidates below them."""
    hits = sorted(asked.hits, key=lambda hit: hit.rank)
    missed = sorted(asked.missed, key=lambda hit: hit.rank)
    return (
        *(Candidate(hit, place, hit.tokens or count(hit.text), True) for place, hit in enumerate(hits, start=1)),
        *(
            Candidate(hit, place, count(_said(conversation, hit)), False)
            for place, hit in enumerate(missed, start=len(hits) + 1)
        ),
    )


def _said(conversation: Conversation, hit: Hit) -> str:
    """Return the text of a candidate below the cut, of which only the turns are recorded."""
    known = conversation.turns_by_id
    turns = [known[turn] for turn in (hit.turns or hit.sources) if turn in known]
    return hit.text or "\n".join(f"{conversation.label_of(turn)}: {turn.text}" for turn in turns)


def recut(
    candidates: Sequence[Candidate], evidence: Sequence[str], more: int = 0, context_tokens: int | None = None
) -> Recut:
    """Let in the recorded hits and ``more`` candidates (or fewer hits, if negative), as far as the tokens go.

    Without ``context_tokens`` the recorded hits keep their place in the prompt, and further ones are taken to fit.
    As in a recall, one that does not fit is left out, and smaller ones after it may still fit.
    """
    taken = candidates[: max(0, sum(each.is_hit for each in candidates) + more)]
    inside: set[int] = set()
    used = 0
    for each in taken:
        fits = (
            not each.is_hit or each.hit.in_prompt
            if context_tokens is None
            else used + each.tokens <= context_tokens
        )
        if fits:
            inside.add(each.rank)
            used += each.tokens
    placements = tuple(_placed(turn, candidates, frozenset(inside)) for turn in dict.fromkeys(evidence))
    return Recut(tuple(candidates), frozenset(inside), placements, used)


def _placed(turn: str, candidates: Sequence[Candidate], inside: frozenset[int]) -> Placement:
    holding = [each for each in candidates if turn in each.turns]
    # Verbatim before distilled, and what is let in before what is not.
    best = min(
        holding, key=lambda each: (each.rank not in inside, turn not in each.hit.turns, each.rank), default=None
    )
    if best is None:
        return Placement(turn, None, False, 0, None)
    hits = sum(each.is_hit for each in candidates)
    return Placement(turn, best, best.rank in inside, max(0, best.rank - hits), _gap(best, candidates))


def _gap(candidate: Candidate, candidates: Sequence[Candidate]) -> float | None:
    if candidate.is_hit or candidate.hit.score is None:
        return None
    scores = [
        each.hit.score
        for each in candidates
        if each.is_hit and each.hit.place == candidate.hit.place and each.hit.score is not None
    ]
    return scores[-1] - candidate.hit.score if scores else None
