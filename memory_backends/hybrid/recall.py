"""From what the tiers found to one context: which tier gets how much of it.

Slots of the shared workspace that the question asks for, and distilled facts that no passage shows, have a small
share of the hits and of the tokens; passages of what was said have all the rest. Known facts stand first in the
context. In the ranking they come last: a rank is a rank of evidence, and they hold no turn word for word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_backends.base import Cut, Hit, Recall, TokenCounter
from memory_backends.hybrid.passages import Passage, passages_of
from memory_backends.hybrid.slots import slots_for
from memory_backends.hybrid.verbatim import RankedExchange
from memory_backends.knowledge_store import Found
from memory_backends.records import (
    KNOWLEDGE_COLLECTION,
    VERBATIM_COLLECTION,
    KnowledgeDocument,
    SharedWorkspaceState,
)
from memory_backends.rendering import BETWEEN_HITS, assemble, date_heading

SLOT_SHARE = 0.1
"""Share of the hits that slots of the workspace may take."""

KNOWLEDGE_SHARE = 0.1
"""Share of the hits that distilled facts may take."""

KNOWN_TOKEN_SHARE = 0.15
"""Share of the token budget that slots and facts may take together."""

LEAST_LIMIT_TO_SHARE = 3
"""Hits from which slots and facts have a place each, however small their share is; below, all are passages."""

LEAST_SIMILARITY = 0.5
"""Cosine from which a distilled fact is worth a line."""

KNOWLEDGE_DEPTH = 20
"""Distilled facts that are looked at for a question."""

FIRST = 0
"""The turn number of what stands before all passages."""


@dataclass(frozen=True)
class Finds:
    """What the tiers hold for a question. ``facts`` and ``exchanges`` are best first."""

    question: str
    workspace: SharedWorkspaceState
    facts: Sequence[Found]
    exchanges: Sequence[RankedExchange]


def compose(finds: Finds, limit: int, budget: int, count_tokens: TokenCounter) -> Recall:
    """A context of at most ``limit`` hits of all tiers together, and of at most ``budget`` tokens."""
    purse = budget * KNOWN_TOKEN_SHARE
    slots = _affordable(_slot_hits(finds), _share(SLOT_SHARE, limit), purse, count_tokens)
    purse -= _cost(slots, count_tokens)
    passages = _passages(finds, limit, slots, budget, count_tokens)
    shown = [turn for passage in passages if passage.has_room for turn in passage.turns]
    told = {*shown, *(turn for slot in slots for turn in slot.sources)}
    facts = _affordable(_fact_hits(finds, told), _share(KNOWLEDGE_SHARE, limit), purse, count_tokens)
    if facts:
        passages = _passages(finds, limit, [*slots, *facts], budget, count_tokens)
    known = [*slots, *facts]
    said = [_passage_hit(passage) for passage in passages]
    numbers = {hit.id: FIRST for hit in known} | {passage.best.id: passage.turn_number for passage in passages}
    # Known facts are put in first, so that the share that was reserved for them is theirs.
    recalled = assemble([*known, *said], numbers, budget, count_tokens)
    ranked = [*recalled.hits[len(known) :], *recalled.hits[: len(known)]]
    return recalled.model_copy(
        update={
            "hits": tuple(hit.model_copy(update={"rank": n}) for n, hit in enumerate(ranked, start=1)),
            "cut": (*recalled.cut, *_left_out(passages, count_tokens)),
        }
    )


def _left_out(passages: Sequence[Passage], count_tokens: TokenCounter) -> list[Cut]:
    """What would have stood beside the passages, had there been room."""
    exchanges = [exchange for passage in passages for exchange in passage.left_out]
    if not exchanges:
        return []
    turns = tuple(turn for exchange in exchanges for turn in exchange.turn_ids)
    return [Cut(place=VERBATIM_COLLECTION, turns=turns, tokens=sum(count_tokens(e.text) for e in exchanges))]


def _passages(
    finds: Finds, limit: int, known: Sequence[Hit], budget: int, count_tokens: TokenCounter
) -> list[Passage]:
    """Passages for what the known facts leave of the limit and the budget."""
    return passages_of(finds.exchanges, limit - len(known), budget - _cost(known, count_tokens), count_tokens)


def _share(share: float, limit: int) -> int:
    return max(int(share * limit), 1 if limit >= LEAST_LIMIT_TO_SHARE else 0)


def _affordable(hits: Sequence[Hit], limit: int, budget: float, count_tokens: TokenCounter) -> list[Hit]:
    """The first ``limit`` hits that fit into the budget together."""
    taken: list[Hit] = []
    for hit in hits[: 2 * limit]:
        if len(taken) < limit and _cost([*taken, hit], count_tokens) <= budget:
            taken.append(hit)
    return taken


def _cost(hits: Sequence[Hit], count_tokens: TokenCounter) -> int:
    return sum(count_tokens(hit.text + BETWEEN_HITS) for hit in hits)


def _slot_hits(finds: Finds) -> list[Hit]:
    key = SharedWorkspaceState.key(finds.workspace.event_id)
    return [
        Hit(
            id=f"{key}#{slot.name}",
            store="redis",
            place=key,
            rank=1,
            score=None,
            text=f"Known: {slot.line}",
            sources=slot.sources,
        )
        for slot in slots_for(finds.question, finds.workspace.shared_data)
    ]


def _fact_hits(finds: Finds, told: set[str]) -> list[Hit]:
    """Facts that hold, are near enough to the question, and come from turns of which nothing is told yet."""
    near = [(point.score, point.payload) for point in finds.facts if point.score >= LEAST_SIMILARITY]
    facts = [(score, KnowledgeDocument.model_validate(p)) for score, p in near if p.get("kind") == "fact"]
    return [
        Hit(
            id=fact.id,
            store="qdrant",
            place=KNOWLEDGE_COLLECTION,
            rank=1,
            score=score,
            text=f"Known: {_dated(fact, finds.exchanges)}",
            sources=tuple(fact.sources),
        )
        for score, fact in facts
        if fact.superseded_by is None and not told & set(fact.sources)
    ]


def _dated(fact: KnowledgeDocument, exchanges: Sequence[RankedExchange]) -> str:
    """The fact with the date on which the conversation says it, if it has dates."""
    dates = (ranked.exchange.said_at for ranked in exchanges if set(ranked.exchange.turn_ids) & set(fact.sources))
    said_at = next((date for date in dates if date is not None), None)
    return f"{date_heading(said_at)} {fact.content}" if said_at else fact.content


def _passage_hit(passage: Passage) -> Hit:
    return Hit(
        id=passage.best.id,
        store="qdrant",
        place=VERBATIM_COLLECTION,
        rank=1,
        score=passage.best.score,
        text=passage.text,
        turns=passage.turns,
        channels=passage.best.channels,
    )
