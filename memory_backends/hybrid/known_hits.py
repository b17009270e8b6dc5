"""What is known of a question, as hits: slots of the workspace, distilled facts, the planner's notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory_backends.base import Hit
from memory_backends.hybrid.workspace import values_of
from memory_backends.records import (
    KNOWLEDGE_COLLECTION,
    KnowledgeDocument,
    PersonalMemoryState,
    SharedWorkspaceState,
)
from memory_backends.retrieval.keyword import terms_of
from memory_backends.retrieval.rendering import date_heading
from memory_backends.stores.qdrant import QDRANT, ScoredPoint
from memory_backends.stores.redis import REDIS
from memory_backends.text import folded_words

DateOf = Callable[[str], datetime | None]
"""The id of a turn to the date on which it was said."""

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
    words = f" {folded_words(question)} "
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
    return {folded_words(term) for word in text.split() for term in terms_of(word)}


def _line(slot: str, held: Mapping[str, Any]) -> str:
    values = values_of(dict(held))
    return f"{slot} = {'; '.join(map(_said, values))}"


def _said(value: Mapping[str, Any]) -> str:
    wrong = f"; no longer {value['instead_of']}" if "instead_of" in value else ""
    return f"{value['value']} ({value['said_by']}, turn {value['turn']}{wrong})"


SHARED_WORDS = 0.3
"""What a fact that has all words of the question gains on one that has none, in cosine."""

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


@dataclass
class FactGroup:
    """Facts of one date that share a hit, the likest first; ``score`` is that of the first."""

    said_at: datetime | None
    score: float
    facts: list[KnowledgeDocument]

    def hit_of(self, facts: Sequence[KnowledgeDocument]) -> Hit:
        """A hit of some of the facts, under the date if the conversation has one."""
        heading = f"{date_heading(self.said_at)} " if self.said_at else ""
        line = heading + "\n".join(fact.content for fact in facts)
        sources = tuple(dict.fromkeys(turn for fact in facts for turn in fact.sources))
        return _known(facts[0].id, QDRANT, KNOWLEDGE_COLLECTION, line, sources, round(self.score, 6))


def fact_groups(
    question: str, facts: Sequence[ScoredPoint], date_of: DateOf, covered: Set[str], facts_per_hit: int
) -> list[FactGroup]:
    """Facts that hold and come from turns that are not covered yet, the likest first.

    Facts of one date that rank well stand together, up to ``facts_per_hit``, in the place of the best of them.
    """
    asked = set(terms_of(question))
    found = [
        (point.score + SHARED_WORDS * _overlap(asked, fact.content), fact)
        for point in facts
        if point.payload.get("kind") == "fact"
        for fact in [KnowledgeDocument.model_validate(point.payload)]
        if fact.superseded_by is None and not covered & set(fact.sources)
    ]
    groups: list[FactGroup] = []
    for score, fact in sorted(found, key=lambda scored: -scored[0]):
        said_at = next((date for date in map(date_of, fact.sources) if date is not None), None)
        fellows = next(
            (each.facts for each in groups if each.said_at == said_at and len(each.facts) < facts_per_hit), None
        )
        if fellows is None:
            groups.append(FactGroup(said_at, score, [fact]))
        else:
            fellows.append(fact)
    return groups


def _overlap(asked: Set[str], text: str) -> float:
    """The share of the question's words that a text has."""
    return len(asked & set(terms_of(text))) / len(asked) if asked else 0.0


def standing_hit(planner: PersonalMemoryState, fits: Callable[[Hit], bool]) -> Hit | None:
    """The planner's standing instructions, whatever the question is: as many of the latest as fit."""
    key = PersonalMemoryState.key(planner.agent_id)
    standing = planner.scratchpad.get("standing", [])
    for first in range(len(standing)):
        latest = standing[first:]
        said = "; ".join(f"{each['text']} ({each['said_by']}, turn {each['turns'][-1]})" for each in latest)
        sources = tuple(turn for each in latest for turn in each["turns"])
        hit = _known(f"{key}#standing", REDIS, key, f"standing instructions = {said}", sources)
        if fits(hit):
            return hit
    return None


def note_hits(question: str, planner: PersonalMemoryState, covered: Set[str]) -> list[Hit]:
    """Recent notes of the planner that share words with the question and whose turns are not covered."""
    asked = set(terms_of(question))
    key = PersonalMemoryState.key(planner.agent_id)
    notes = [note for note in planner.scratchpad.get("noticed", []) if not covered & set(note["turns"])]
    return [
        _known(f"{key}#{note['turns'][-1]}", REDIS, key, note["text"], tuple(note["turns"]))
        for note in reversed(notes)
        if asked and len(asked & set(terms_of(note["text"]))) >= LEAST_OVERLAP * len(asked)
    ]


def _known(
    id_: str, store: str, place: str, line: str, sources: tuple[str, ...], score: float | None = None
) -> Hit:
    return Hit(id=id_, store=store, place=place, rank=1, score=score, text=f"Known: {line}", sources=sources)
