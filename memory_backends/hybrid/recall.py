"""From what the tiers found to one context: which tier gets how much of it.

The planner's own notes, slots of the shared workspace that the question asks for, and distilled facts have a share
each of the hits and of the tokens; passages of what was said have all the rest. Known things stand first in the
context, and of them what the planner was told to do from now on, whatever is asked. In the ranking they come last:
a rank is a rank of evidence, and they hold no turn word for word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory_backends.base import Cut, Hit, Recall, TokenCounter
from memory_backends.hybrid.known import DateOf, fact_hits, note_hits, slot_hits, standing_hit
from memory_backends.hybrid.passages import TURNS_PER_HIT, Passage, passages_of
from memory_backends.hybrid.verbatim import RankedTurn
from memory_backends.records import VERBATIM_COLLECTION, PersonalMemoryState, SharedWorkspaceState
from memory_backends.retrieval.rendering import BETWEEN_HITS, assemble
from memory_backends.stores.qdrant import QDRANT, Found

LEAST_LIMIT_TO_SHARE = 3
"""Hits from which a tier has a place, however small its share is; below, all are passages."""

FIRST = 0
"""The turn number of what stands before all passages."""


@dataclass(frozen=True)
class Finds:
    """What the tiers hold for a question, and in which tiers there is anything at all.

    ``facts`` and ``turns`` are best first. A tier that is switched off found nothing.
    """

    question: str
    planner: PersonalMemoryState
    workspace: SharedWorkspaceState
    facts: Sequence[Found]
    turns: Sequence[RankedTurn]
    date_of: DateOf

    @property
    def nothing_is_stored(self) -> bool:
        """Whether memory is empty."""
        return not (self.turns or self.facts or self.workspace.shared_data)


@dataclass(frozen=True)
class Room:
    """What a recall may take: hits of all tiers together, tokens, the share of each tier, and missed candidates."""

    top_k: int
    context_tokens: int
    shares: Mapping[str, float]
    depth: int

    @property
    def turns(self) -> int:
        """Turns that are looked at: for passages, and for what they leave out."""
        return self.top_k * TURNS_PER_HIT + self.depth

    def hits_of(self, tier: str) -> int:
        """Most hits of a tier."""
        share = self.shares.get(tier, 0.0)
        return max(int(share * self.top_k), 1 if share and self.top_k >= LEAST_LIMIT_TO_SHARE else 0)

    def tokens_of(self, tier: str) -> float:
        """Most tokens of a tier."""
        return self.shares.get(tier, 0.0) * self.context_tokens


def compose(finds: Finds, room: Room, count_tokens: TokenCounter) -> Recall:
    """A context of at most ``room.top_k`` hits of all tiers together and ``room.context_tokens`` tokens."""
    standing = _standing(finds, room, count_tokens)
    obeyed = {turn for hit in standing for turn in hit.sources}
    asked_for = [hit for hit in slot_hits(finds.question, finds.workspace) if not obeyed >= set(hit.sources)]
    slots = _affordable(asked_for, "shared", room, count_tokens)
    passages = _passages(finds, room, [*standing, *slots], count_tokens)
    told = {
        *obeyed,
        *(turn for passage in passages if passage.has_room for turn in passage.turns),
        *(turn for slot in slots for turn in slot.sources),
    }
    facts = _affordable(fact_hits(finds.facts, finds.date_of, told), "knowledge", room, count_tokens)
    told |= {turn for fact in facts for turn in fact.sources}
    noted = [*standing, *note_hits(finds.question, finds.planner, told)]
    notes = _affordable(noted, "personal", room, count_tokens)
    known = [*notes, *slots, *facts][: room.top_k]
    if len(known) > len(standing) + len(slots):
        passages = _passages(finds, room, known, count_tokens)
    said = [_passage_hit(passage) for passage in passages]
    numbers = {hit.id: FIRST for hit in known} | {passage.id: passage.turn_number for passage in passages}
    # Known things are put in first, so that the share that was reserved for them is theirs.
    recalled = assemble([*known, *said], numbers, room.context_tokens, count_tokens)
    ranked = [*recalled.hits[len(known) :], *recalled.hits[: len(known)]]
    return recalled.model_copy(
        update={
            "hits": tuple(hit.model_copy(update={"rank": n}) for n, hit in enumerate(ranked, start=1)),
            "missed": _missed(finds.turns, passages, len(ranked), room.depth),
            "cut": (*recalled.cut, *_left_out(passages, count_tokens)),
            "why_empty": None if ranked else "nothing_stored" if finds.nothing_is_stored else "below_threshold",
        }
    )


def _standing(finds: Finds, room: Room, count_tokens: TokenCounter) -> list[Hit]:
    """The standing instructions that fit into the planner's share: one hit, or none."""
    hit = standing_hit(finds.planner, lambda hit: bool(_affordable([hit], "personal", room, count_tokens)))
    return [] if hit is None else [hit]


def _left_out(passages: Sequence[Passage], count_tokens: TokenCounter) -> list[Cut]:
    """What would have stood in the passages, had there been room."""
    messages = [message for passage in passages for message in passage.left_out]
    if not messages:
        return []
    turns = tuple(message.turn_id for message in messages)
    return [
        Cut(place=VERBATIM_COLLECTION, turns=turns, tokens=sum(count_tokens(message.line) for message in messages))
    ]


def _passages(finds: Finds, room: Room, known: Sequence[Hit], count_tokens: TokenCounter) -> list[Passage]:
    """Passages for what the known things leave of the limit and the budget."""
    context_tokens = room.context_tokens - _cost(known, count_tokens)
    return passages_of(finds.turns, max(room.top_k - len(known), 0), context_tokens, count_tokens)


def _affordable(hits: Sequence[Hit], tier: str, room: Room, count_tokens: TokenCounter) -> list[Hit]:
    """The first hits of a tier that fit into its share."""
    most_hits, most_tokens = room.hits_of(tier), room.tokens_of(tier)
    taken: list[Hit] = []
    for hit in hits[: 2 * most_hits]:
        if len(taken) < most_hits and _cost([*taken, hit], count_tokens) <= most_tokens:
            taken.append(hit)
    return taken


def _cost(hits: Sequence[Hit], count_tokens: TokenCounter) -> int:
    return sum(count_tokens(hit.text + BETWEEN_HITS) for hit in hits)


def _passage_hit(passage: Passage) -> Hit:
    return Hit(
        id=passage.id,
        store=QDRANT,
        place=VERBATIM_COLLECTION,
        rank=1,
        score=passage.best.score,
        text=passage.text,
        turns=passage.turns,
        sources=passage.turns_in_part,
        channels=passage.best.channels,
    )


def _missed(turns: Sequence[RankedTurn], passages: Sequence[Passage], hits: int, depth: int) -> tuple[Hit, ...]:
    """The best turns that are part of no passage."""
    chosen = {place for passage in passages for place in passage.members}
    below = [turn for turn in turns[: depth + len(chosen)] if turn.place not in chosen][:depth]
    return tuple(
        Hit(
            id=f"{turn.exchange_id}#{turn.message.turn_id}",
            store=QDRANT,
            place=VERBATIM_COLLECTION,
            rank=rank,
            score=turn.score,
            text="",
            turns=(turn.message.turn_id,),
            channels=turn.channels,
            in_prompt=False,
        )
        for rank, turn in enumerate(below, start=hits + 1)
    )
