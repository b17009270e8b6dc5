"""A fact that holds, and an index of all that one speaker said: a statement is compared with them at once."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_backends.hybrid.candidates import Candidate
from memory_backends.hybrid.rules.figures import COUNTED, Figures, family_of, figures_in
from memory_backends.hybrid.rules.pattern import LazyPattern
from memory_backends.hybrid.rules.statements import EVENT
from memory_backends.retrieval.keyword import terms_in, terms_of
from memory_backends.text import MONTHS, SPELLED, WEEKDAYS, numbers_in

Vector = NDArray[np.float32]
Places = NDArray[np.int32]

_IN_ANY_MATTER = frozenset(
    term
    for line in (
        "i me my mine we us our you your he him his she her hers they them their it its who which what there here",
        "now new from up down back end again only just also still last next first each one ones more less than",
        "come came went go gone going get got say said says tell told change changed move moved turn turned out",
        "in on at by to for with have has had do does did be been am are make made take took actually instead",
        "yo mi mis me nos nuestro nuestra tu su sus le les lo la los las se ya ahora final desde semana hoy ayer",
        "va van voy viene vienen dice dijo ha han he hay es son era fue más menos otra otro vez solo también muy",
        "re ve ll don didn am about usual were wrong since used so then too very call called name que pero y o",
        "si como media medio due deadline así asi sorry meant mean mistake mistaken correction update oops",
        "put way thing things same not any more no longer",
        "second minute hour day week month year decade percent per cent euro pound dollar peso km mile metre",
        "meter g kg gram kilo ml litre time pm am",
        "segundo minuto hora día mes año euro céntimo metro kilo gramo litro",
    )
    for word in (*line.split(), *MONTHS, *WEEKDAYS, *SPELLED)
    for term in (*terms_in(word, "english"), *terms_in(word, "spanish"), word)
)
"""Words that say nothing of what a sentence is about; nor do dates, numbers and units."""

_DENIAL = LazyPattern(r"\b(?:not|no\slonger|never|cannot|nunca|ya\sno|no)\b|n['’]?t\b", re.IGNORECASE)
_LOGGED = LazyPattern(r"(?:\w+:\s)?\[?\d{4}-\d\d-\d\d[T\s]\d\d:\d\d")
"""A line of a log: another one is another event, not another value."""


@dataclass(frozen=True)
class KnownFact:
    """A fact that holds. ``matter`` are its stemmed words but for its figures, ``figures`` its values by sort."""

    id: str
    said_by: str
    said: str
    turn: int
    slot: str | None
    value: str
    turns: frozenset[str]
    words: frozenset[str]
    matter: frozenset[str]
    figures: Figures
    denies: bool
    is_instruction: bool
    is_event: bool
    vector: Vector

    @classmethod
    def of(cls, id_: str, candidate: Candidate, vector: Vector) -> KnownFact:
        """What is kept of a candidate."""
        said = candidate.content.removeprefix(f"{candidate.said_by}: ")
        return cls(
            id=id_,
            said_by=candidate.said_by,
            said=said,
            turn=candidate.turn_number,
            slot=candidate.slot,
            value=candidate.value,
            turns=frozenset(candidate.sources),
            words=frozenset(terms_of(said)),
            matter=matter_of(said),
            figures={} if _LOGGED.match(said) else figures_in(said),
            denies=bool(_DENIAL.search(said)),
            is_instruction=candidate.is_instruction,
            is_event=candidate.rule == EVENT,
            vector=vector,
        )

    def tells(self, value: str) -> bool:
        """Whether it tells a value: all its numbers, or, where it has none, all its words."""
        numbers = numbers_in(value)
        if numbers:
            return numbers <= numbers_in(self.said)
        words = frozenset(terms_of(value))
        return bool(words) and words <= self.words


def matter_of(said: str) -> frozenset[str]:
    """The stemmed words of a text that say what it is about."""
    return frozenset(term for term in frozenset(terms_of(said)) - _IN_ANY_MATTER if not term[:1].isdigit())


FIRST_CAPACITY = 64


class FactIndex:
    """The facts of one speaker, each at a place of its own, in the order in which they were written.

    Their vectors lie in one matrix that doubles when it is full. The place of a fact that ended stays empty.
    """

    def __init__(self, dimension: int) -> None:
        self._facts: list[KnownFact] = []
        self._vectors: Vector = np.empty((FIRST_CAPACITY, dimension), dtype=np.float32)
        self._holds = np.zeros(FIRST_CAPACITY, dtype=bool)
        self._place_of: dict[str, int] = {}
        self._with_word: defaultdict[str, array[int]] = defaultdict(_no_places)
        self._with_sort: defaultdict[str, array[int]] = defaultdict(_no_places)
        self._with_slot: defaultdict[str | None, array[int]] = defaultdict(_no_places)
        self._of_turn: defaultdict[str, array[int]] = defaultdict(_no_places)
        self._saying: defaultdict[str, array[int]] = defaultdict(_no_places)

    def __getitem__(self, place: int) -> KnownFact:
        return self._facts[place]

    def add(self, fact: KnownFact) -> None:
        """Give a fact the next place; one of the same id gives up its own."""
        self.remove(fact.id)
        place = len(self._facts)
        if place == len(self._holds):
            self._vectors = np.concatenate([self._vectors, np.empty_like(self._vectors)])
            self._holds = np.concatenate([self._holds, np.zeros_like(self._holds)])
        self._facts.append(fact)
        self._vectors[place], self._holds[place], self._place_of[fact.id] = fact.vector, True, place
        for word in fact.matter:
            self._with_word[word].append(place)
        for sort in {*fact.figures, *map(family_of, fact.figures)}:
            self._with_sort[sort].append(place)
        for turn in fact.turns:
            self._of_turn[turn].append(place)
        self._with_slot[fact.slot].append(place)
        self._saying[fact.said].append(place)

    def remove(self, id_: str) -> None:
        """Forget a fact."""
        place = self._place_of.pop(id_, None)
        if place is not None:
            self._holds[place] = False

    def earlier(self, than: KnownFact, slot: str | None = None) -> NDArray[np.bool_]:
        """Whether each place has a fact of other turns than a statement's own; of a slot, if one is given."""
        is_earlier = self._holds[: len(self._facts)].copy()
        if slot is not None:
            is_earlier &= np.isin(np.arange(len(self._facts)), _view(self._with_slot.get(slot)))
        for turn in than.turns:
            is_earlier[_view(self._of_turn.get(turn))] = False
        return is_earlier

    def with_slot(self, slot: str | None) -> Places:
        """The places of facts that have ever had a slot, in order."""
        return _view(self._with_slot.get(slot))

    def with_values_like(self, figures: Figures) -> Iterator[tuple[str, Places]]:
        """Each sort of value of a statement, and the places of facts with a value that one of it may replace."""
        for sort in figures:
            yield sort, _view(self._with_sort.get(sort))
            if family_of(sort) == COUNTED:
                yield sort, _view(self._with_sort.get("number"))
            elif sort == "number":
                yield sort, _view(self._with_sort.get(COUNTED))

    def saying(self, said: str) -> Places:
        """The places of facts that were read in one sentence, in order."""
        return _view(self._saying.get(said))

    def cosines(self, vector: Vector) -> NDArray[np.float32]:
        """The cosine of a unit vector and the fact at each place. Shape (places,)."""
        # einsum and not a matrix product: that of BLAS starts threads, which take several times as long together.
        cosines: NDArray[np.float32] = np.einsum("ij,j->i", self._vectors[: len(self._facts)], vector)
        return cosines

    def shared(self, words: Iterable[str], weight: Callable[[str], float]) -> NDArray[np.float64]:
        """The weight of the words that the fact at each place has of some. Shape (places,)."""
        total = np.zeros(len(self._facts))
        for word in words:
            if word in self._with_word:
                total[_view(self._with_word[word])] += weight(word)
        return total


def _no_places() -> array[int]:
    return array("i")


def _view(places: array[int] | None) -> Places:
    return np.frombuffer(places, dtype=np.int32) if places else np.empty(0, dtype=np.int32)
