"""What memory knows without repeating what was said: notes, slots and distilled facts, as hits for a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory_backends.base import Hit
from memory_backends.hybrid.reading import folded
from memory_backends.hybrid.workspace import values_of
from memory_backends.records import (
    KNOWLEDGE_COLLECTION,
    KnowledgeDocument,
    PersonalMemoryState,
    SharedWorkspaceState,
)
from memory_backends.retrieval.keyword import terms_of
from memory_backends.retrieval.rendering import date_heading
from memory_backends.stores.qdrant import QDRANT, Found
from memory_backends.stores.redis import REDIS

_CUES: Mapping[str, str] = {
    "name": "name called nombre llama apellido",
    "employer": "employer company work works workplace empresa trabaja trabajo",
    "company": "company startup business empresa negocio",
    "job": "job occupation profession work works living trabajo profesión oficio dedica",
    "city": "city live lives living based move moved ciudad vive vivir mudó",
    "origin": "origin originally born country home origen nació país",
    "likes": "like likes love loves enjoy enjoys hobby hobbies gusta encanta",
    "dislikes": "dislike dislikes hate hates odia",
    "prefers": "prefer prefers preference prefiere",
    "allergy": "allergy allergic alergia alérgico alérgica",
    "diet": "diet eat eats vegetarian vegan dieta come",
    "instructions": "instruction instructed rule asked instrucción norma pidió",
    "error": "error message exception fail failed",
    "version": "version image release versión imagen",
    "address": "url address endpoint uri link dirección",
}
"""Words of a question, besides the slot's own name, that ask for it."""

_NOBODY_NAMED = frozenset({"", "user", "config"})
"""Owners of a slot that a question does not have to name."""


@dataclass(frozen=True)
class SlotFact:
    """What one slot holds, as a line, with the turns that said it."""

    name: str
    line: str
    sources: tuple[str, ...]


def slots_for(question: str, shared_data: Mapping[str, Any]) -> list[SlotFact]:
    """Slots that the question asks for, those that were written last first.

    A name comes last: who asks what something is called asks for the thing, and only else for a name.
    """
    asked = _terms(question)
    words = f" {folded(question)} "
    facts = [
        SlotFact(name=slot, line=_line(slot, held), sources=tuple(value["turn"] for value in values_of(held)))
        for slot, held in reversed(list(shared_data.items()))
        if _is_asked_for(slot, asked, words)
    ]
    return sorted(facts, key=lambda fact: fact.name.rpartition(".")[2] == "name")


def _is_asked_for(slot: str, asked: set[str], words: str) -> bool:
    owner, _, attribute = slot.rpartition(".")
    if owner not in _NOBODY_NAMED and f" {owner.replace('_', ' ')} " not in words:
        return False
    own = _terms(attribute.replace("_", " "))
    return bool(own and own <= asked) or bool(asked & _terms(_CUES.get(attribute, "")))


def _terms(text: str) -> set[str]:
    return {folded(term) for word in text.split() for term in terms_of(word)}


def _line(slot: str, held: Mapping[str, Any]) -> str:
    values = values_of(dict(held))
    return f"{slot} = {'; '.join(map(_said, values))}"


def _said(value: Mapping[str, Any]) -> str:
    wrong = f"; no longer {value['instead_of']}" if "instead_of" in value else ""
    return f"{value['value']} ({value['said_by']}, turn {value['turn']}{wrong})"


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
        _known(f"{key}#{slot.name}", REDIS, key, slot.line, slot.sources)
        for slot in slots_for(question, workspace.shared_data)
    ]


def fact_hits(found: Sequence[Found], date_of: DateOf, told: Set[str]) -> list[Hit]:
    """Facts that hold, are near enough to the question, and come from turns of which nothing is told yet."""
    near = [(point.score, point.payload) for point in found if point.score >= LEAST_SIMILARITY]
    facts = [(score, KnowledgeDocument.model_validate(p)) for score, p in near if p.get("kind") == "fact"]
    return [
        _known(fact.id, QDRANT, KNOWLEDGE_COLLECTION, _dated(fact, date_of), tuple(fact.sources), score)
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
        hit = _known(f"{key}#standing", REDIS, key, f"standing instructions = {said}", sources)
        if fits(hit):
            return hit
    return None


def note_hits(question: str, planner: PersonalMemoryState, told: Set[str]) -> list[Hit]:
    """What the planner noticed lately that shares its words with the question, and that nothing else tells."""
    asked = set(terms_of(question))
    key = PersonalMemoryState.key(planner.agent_id)
    notes = [note for note in planner.scratchpad.get("noticed", []) if not told & set(note["turns"])]
    return [
        _known(f"{key}#{note['turns'][-1]}", REDIS, key, note["text"], tuple(note["turns"]))
        for note in reversed(notes)
        if asked and len(asked & set(terms_of(note["text"]))) >= LEAST_OVERLAP * len(asked)
    ]


def _known(
    id_: str, store: str, place: str, line: str, sources: tuple[str, ...], score: float | None = None
) -> Hit:
    return Hit(id=id_, store=store, place=place, rank=1, score=score, text=f"Known: {line}", sources=sources)


def _dated(fact: KnowledgeDocument, date_of: DateOf) -> str:
    """The fact with the date on which the conversation says it, if it has dates."""
    said_at = next((date for date in map(date_of, fact.sources) if date is not None), None)
    return f"{date_heading(said_at)} {fact.content}" if said_at else fact.content
