"""Which known fact a new statement ends.

What is kept here of every fact that holds (its words, numbers, sorts of values and vector) comes from the same
writes as the store; the store has the fact itself. Only its own speaker ends a fact: an assistant that computes
another figure corrects nobody.

Two forms end a fact. A statement that *names* the old value ("Friday, not Thursday", "I no longer swim") ends the
fact that tells this value of the same matter. One that says that something has *changed* ("the rent is now £88",
"we're back to 7 pm") ends the fact that gives another value of the same sort for the same matter. Shared words and
the cosine of the two decide what is the same matter.

The constants were chosen on LoCoMo conv-26, 30 and 41 and two long histories.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_backends.hybrid.candidates import Candidate
from memory_backends.hybrid.rules.corrections import says_change
from memory_backends.hybrid.rules.matching import sort_of, specific_values
from memory_backends.retrieval.keyword import terms_of
from memory_backends.text import MONTHS, NUMBERS, WEEKDAYS, folded_words, numbers_in

Vector = NDArray[np.float32]

RELATION = "relation"
"""The rule of who is whose."""

ASSISTANT = "AI"
"""The label of an assistant, and not of the second of two people."""

NAMED_COSINE = 0.25
NAMED_COSINE_BY_CHANCE = 0.4
"""Cosine from which a statement is about the fact whose old value it names; and where the value is a mere word or a
bare number, which other facts may tell by chance."""

CHANGED_COSINE = 0.6
CHANGED_OVERLAP = 0.5
"""Cosine, and share of the statement's words, from which one that names no old value is about a fact's matter."""

SHORTEST_TELLING = 3
"""Characters of an amount, a time or a date in full."""

MOST_TIMES = 3.0
"""A figure that has changed is at most so many times the old one, or the old one so many times the new."""

_IN_ANY_MATTER = frozenset(
    term
    for line in (
        "i me my mine we us our you your he him his she her hers they them their it its who which what there here",
        "now new from up down back end again only just also still last next first each one ones more less than",
        "come came go went gone going get got say said says tell told change changed move moved turn turned out",
        "in on at by to for with have has had do does did be been am make made take took actually instead",
        "yo mi mis me nos nuestro nuestra tu su sus le les lo la los las se ya ahora final desde semana hoy ayer",
        "va van voy viene vienen dice dijo ha han he hay es son era fue más menos otra otro vez solo también muy",
        "so then too very que pero y o si como media medio due deadline",
    )
    for word in (*line.split(), *MONTHS, *WEEKDAYS, *NUMBERS)
    for term in terms_of(word)
)
"""Words that say nothing of what a sentence is about; nor do dates and numbers."""


@dataclass(frozen=True)
class _Known:
    """A fact that holds. ``matter`` are its stemmed words but for its figures, ``sorts`` its values by sort."""

    id: str
    said_by: str
    slot: str | None
    value: str
    turns: frozenset[str]
    words: frozenset[str]
    matter: frozenset[str]
    numbers: frozenset[str]
    sorts: dict[str, frozenset[str]]
    vector: Vector

    @classmethod
    def of(cls, id_: str, candidate: Candidate, vector: Vector) -> _Known:
        """What is kept of a candidate."""
        said = candidate.content.removeprefix(f"{candidate.said_by}: ")
        values = specific_values(said)
        words = frozenset(terms_of(said))
        sorts: dict[str, frozenset[str]] = {}
        for value in values:
            sort = sort_of(value)
            if sort is not None:
                sorts[sort] = sorts.get(sort, frozenset()) | {_canonical(value)}
        return cls(
            id=id_,
            said_by=candidate.said_by,
            slot=candidate.slot,
            value=candidate.value,
            turns=frozenset(candidate.sources),
            words=words,
            matter=frozenset(term for term in words - _IN_ANY_MATTER if not term[:1].isdigit()),
            numbers=numbers_in(said),
            sorts=sorts,
            vector=vector,
        )

    def tells(self, value: str) -> bool:
        """Whether it tells a value: all its numbers, or, where it has none, all its words."""
        numbers = numbers_in(value)
        if numbers:
            return numbers <= self.numbers
        words = frozenset(terms_of(value))
        return bool(words) and words <= self.words


class KnownFacts:
    """The facts of one conversation that hold, in the order in which they were written."""

    def __init__(self) -> None:
        self._facts: dict[str, _Known] = {}

    def add(self, id_: str, candidate: Candidate, vector: Vector) -> None:
        """Keep a fact that was written. Writing it again replaces it."""
        self._facts.pop(id_, None)
        self._facts[id_] = _Known.of(id_, candidate, vector)

    def end(self, id_: str) -> None:
        """Forget a fact that no longer holds."""
        self._facts.pop(id_, None)

    def may_be_of_one_matter(self, id_: str, candidate: Candidate, vector: Vector) -> bool:
        """Whether a fact and a candidate share a word that says what they are about, or one of them has none."""
        fact, new = self._facts.get(id_), _Known.of("", candidate, vector)
        if fact is None or not new.matter:
            return True
        return not fact.matter.isdisjoint(new.matter) or (not fact.matter and len(new.matter) == 1)

    def ended_by(self, candidate: Candidate, vector: Vector) -> str | None:
        """The id of the fact that a candidate ends, if any; of several the likest, and of equal ones the latest."""
        if candidate.said_by == ASSISTANT or candidate.is_instruction:
            return None
        new = _Known.of("", candidate, vector)
        earlier = [
            fact for fact in self._facts.values() if fact.said_by == new.said_by and not fact.turns & new.turns
        ]
        if candidate.taken_back is not None:
            return _likest([fact for fact in earlier if _names(new, candidate.taken_back, fact)], new)
        if says_change(candidate.content):
            return _likest(
                [fact for fact in earlier if _changes(new, fact) or _succeeds(candidate, new, fact)], new
            )
        return None


def _names(new: _Known, old_value: str, fact: _Known) -> bool:
    if not fact.tells(old_value):
        return False
    if _is_telling(old_value):
        return _cosine(new, fact) >= NAMED_COSINE
    shared = (new.matter & fact.matter) - frozenset(terms_of(old_value))
    return bool(shared) and _cosine(new, fact) >= NAMED_COSINE_BY_CHANCE


def _is_telling(value: str) -> bool:
    """Whether a value is hardly met by chance: an amount, a time, a date in full, or a name."""
    if sort_of(value) is not None:
        return not numbers_in(value) or len(value) >= SHORTEST_TELLING
    return value[:1].isupper()


def _changes(new: _Known, fact: _Known) -> bool:
    shared = len(new.matter & fact.matter)
    if not shared or shared < CHANGED_OVERLAP * len(new.matter) or _cosine(new, fact) < CHANGED_COSINE:
        return False
    both = new.sorts.keys() & fact.sorts.keys()
    return any(_may_follow(new.sorts[sort], fact.sorts[sort]) for sort in both)


def _succeeds(candidate: Candidate, new: _Known, fact: _Known) -> bool:
    """Whether somebody takes another's place: "my boss is now Ana" after "my boss is Eve"."""
    return (
        candidate.rule == RELATION
        and fact.slot == candidate.slot
        and new.words.isdisjoint(frozenset(terms_of(fact.value)))
    )


def _may_follow(values: frozenset[str], old_values: frozenset[str]) -> bool:
    """Whether values of one sort may have taken the place of others: all differ, and figures compare."""
    if not values.isdisjoint(old_values):
        return False
    figures, old_figures = [[_figure(value) for value in some] for some in (values, old_values)]
    if None in (*figures, *old_figures):
        return True
    return any(max(a, b) <= MOST_TIMES * min(a, b) for a in figures for b in old_figures if a and b)


def _figure(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _likest(facts: list[_Known], new: _Known) -> str | None:
    """The fact with most in common, the latest of equal ones."""

    def likeness(place: int) -> tuple[float, int]:
        shared = len(new.matter & facts[place].matter) / max(len(new.matter), 1)
        return _cosine(new, facts[place]) + shared, place

    return facts[max(range(len(facts)), key=likeness)].id if facts else None


def _cosine(one: _Known, other: _Known) -> float:
    return round(float(np.dot(one.vector, other.vector)), 6)


def _canonical(value: str) -> str:
    return " ".join(sorted(numbers_in(value))) or folded_words(value)
