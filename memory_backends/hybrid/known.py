"""What memory knows without repeating what was said: notes, slots and distilled facts, as hits for a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from datetime import datetime

from memory_backends.base import Hit
from memory_backends.hybrid.slots import slots_for
from memory_backends.keyword_index import terms_of
from memory_backends.knowledge_store import Found
from memory_backends.records import (
    KNOWLEDGE_COLLECTION,
    KnowledgeDocument,
    PersonalMemoryState,
    SharedWorkspaceState,
)
from memory_backends.rendering import date_heading

DateOf = Callable[[str], datetime | None]
"""The id of a turn to the date on which it was said."""

LEAST_SIMILARITY = 0.5
"""Cosine from which a distilled fact is worth a line."""

LEAST_OVERLAP = 0.5
"""Share of the question's words that a note must have to be worth a line."""

KNOWLEDGE_DEPTH = 20
"""Distilled facts that are looked at for a question."""


def slot_hits(question: str, workspace: SharedWorkspaceState) -> list[Hit]:
    """Slots of the workspace that the question asks for."""
    key = SharedWorkspaceState.key(workspace.event_id)
    return [
        _known(f"{key}#{slot.name}", "redis", key, slot.line, slot.sources)
        for slot in slots_for(question, workspace.shared_data)
    ]


def fact_hits(found: Sequence[Found], date_of: DateOf, told: Set[str]) -> list[Hit]:
    """Facts that hold, are near enough to the question, and come from turns of which nothing is told yet."""
    near = [(point.score, point.payload) for point in found if point.score >= LEAST_SIMILARITY]
    facts = [(score, KnowledgeDocument.model_validate(p)) for score, p in near if p.get("kind") == "fact"]
    return [
        _known(fact.id, "qdrant", KNOWLEDGE_COLLECTION, _dated(fact, date_of), tuple(fact.sources), score)
        for score, fact in facts
        if fact.superseded_by is None and not told & set(fact.sources)
    ]


def standing_hit(planner: PersonalMemoryState, fits: Callable[[Hit], bool]) -> Hit | None:
    """What the planner was told to do from now on, whatever is asked: as many of the latest as fit."""
    key = PersonalMemoryState.key(planner.agent_id)
    standing = planner.scratchpad.get("standing", [])
    for first in range(len(standing)):
        told = standing[first:]
        said = "; ".join(f"{each['text']} ({each['said_by']}, turn {each['turns'][-1]})" for each in told)
        sources = tuple(turn for each in told for turn in each["turns"])
        hit = _known(f"{key}#standing", "redis", key, f"standing instructions = {said}", sources)
        if fits(hit):
            return hit
    return None


def note_hits(question: str, planner: PersonalMemoryState, told: Set[str]) -> list[Hit]:
    """What the planner noticed lately that shares its words with the question, and that nothing else tells."""
    asked = set(terms_of(question))
    key = PersonalMemoryState.key(planner.agent_id)
    notes = [note for note in planner.scratchpad.get("noticed", []) if not told & set(note["turns"])]
    return [
        _known(f"{key}#{note['turns'][-1]}", "redis", key, note["text"], tuple(note["turns"]))
        for note in reversed(notes)
        if asked and len(asked & set(terms_of(note["text"]))) >= LEAST_OVERLAP * len(asked)
    ]


def _known(
    id_: str, store: str, place: str, line: str, sources: tuple[str, ...], score: float | None = None
) -> Hit:
    return Hit.model_validate(
        {
            "id": id_,
            "store": store,
            "place": place,
            "rank": 1,
            "score": score,
            "text": f"Known: {line}",
            "sources": sources,
        }
    )


def _dated(fact: KnowledgeDocument, date_of: DateOf) -> str:
    """The fact with the date on which the conversation says it, if it has dates."""
    said_at = next((date for date in map(date_of, fact.sources) if date is not None), None)
    return f"{date_heading(said_at)} {fact.content}" if said_at else fact.content
