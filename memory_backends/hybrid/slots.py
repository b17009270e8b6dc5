"""Which slots of the shared workspace matter to a question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory_backends.hybrid.facts import folded
from memory_backends.hybrid.workspace import values_of
from memory_backends.keyword_index import terms_of

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
