"""Which known fact a new statement ends.

What is kept here of every fact that holds (its words, its precise values by sort, and its vector) comes from the
same writes as the store; the store has the fact itself. Only its own speaker ends a fact: an assistant that
computes another figure corrects nobody.

A statement ends a fact in one of four ways. It *names* the old value ("Friday, not Thursday", "I sold the Volvo").
It gives *another value of the same sort for the same matter* ("the rent is £88"); how much has to be shared depends
on whether it says that something was wrong, that something has changed, or neither. It *denies* what the fact says
("I don't like olives any more"). It names somebody who *takes another's place* ("my boss is Ana"). Shared words and
the cosine of the two decide what is the same matter; what is said of somebody else ("my friend pays £60") ends
nothing.

The constants were chosen on LoCoMo conv-26, 30 and 41, two long histories and conversations written for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_backends.hybrid.candidates import Candidate
from memory_backends.hybrid.rules.corrections import Revision
from memory_backends.hybrid.rules.figures import UNITS, Figure, figures_in
from memory_backends.hybrid.rules.matching import sort_of
from memory_backends.hybrid.rules.pattern import CAP, LazyPattern
from memory_backends.hybrid.rules.personal import ONE_AT_A_TIME, PEOPLE, RELATIONS, REPORTS
from memory_backends.retrieval.keyword import terms_of
from memory_backends.text import MONTHS, SPELLED, WEEKDAYS, numbers_in

Vector = NDArray[np.float32]

ASSISTANT = "AI"
"""The label of an assistant, and not of the second of two people."""

NAMED_COSINE = 0.25
NAMED_COSINE_BY_CHANCE = 0.4
"""Cosine from which a statement is about the fact whose old value it names; and where the value is a mere word or a
bare number, which other facts may tell by chance."""


@dataclass(frozen=True)
class Likeness:
    """How much two statements share: a cosine, and a share and a number of the words that tell their matter."""

    cosine: float
    overlap: float
    words: int = 1


SAME_LEAD: dict[Revision, float] = {"corrected": 0.3, "changed": 0.4, "none": 0.7}
"""Cosine that a statement needs with a fact whose value is said of the same word, or is of a telling sort."""

SAME_MATTER: dict[Revision, Likeness] = {
    "corrected": Likeness(0.4, 0.3),
    "changed": Likeness(0.5, 0.5, words=2),
    "none": Likeness(0.7, 0.6, words=2),
}
"""What any other statement needs to share, by whether it says that something was wrong or has changed."""

FEW_WORDS = 2
FEW_WORDS_COSINE = 0.75
"""Statements of so few words ("My pay. £14.20") are of one matter by one of them, if the cosine is so high."""

DENIED = Likeness(0.5, 0.6, words=2)
"""What a denial needs to share with the fact that it ends."""

LEAST_MUTUAL = 0.3
"""Share of a statement's own words that a fact which it denies has: a long story denies little."""

RAMBLING = 10
"""Words of matter from which a statement tells several things at once, so that a fact must share more of them."""

NAMED_COSINE_ALONE = 0.45
"""Cosine from which a mere word that is taken back is enough."""

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
        "re ve ll don didn about usual were wrong since used so then too very call called name que pero y o",
        "si como media medio due deadline así asi",
    )
    for word in (*line.split(), *MONTHS, *WEEKDAYS, *SPELLED, *UNITS)
    for term in (*terms_of(word), word)
)
"""Words that say nothing of what a sentence is about; nor do dates and numbers."""


@dataclass(frozen=True)
class _Known:
    """A fact that holds. ``matter`` are its stemmed words but for its figures, ``figures`` its values by sort."""

    id: str
    said_by: str
    said: str
    slot: str | None
    value: str
    turns: frozenset[str]
    words: frozenset[str]
    matter: frozenset[str]
    numbers: frozenset[str]
    figures: tuple[Figure, ...]
    names: frozenset[str]
    denies: bool
    vector: Vector

    @classmethod
    def of(cls, id_: str, candidate: Candidate, vector: Vector) -> _Known:
        """What is kept of a candidate."""
        said = candidate.content.removeprefix(f"{candidate.said_by}: ")
        words = frozenset(terms_of(said))
        return cls(
            id=id_,
            said_by=candidate.said_by,
            said=said,
            slot=candidate.slot,
            value=candidate.value,
            turns=frozenset(candidate.sources),
            words=words,
            matter=_matter(said),
            numbers=numbers_in(said),
            figures=() if _LOGGED.match(said) else figures_in(said),
            names=frozenset(re.findall(CAP, said)),
            denies=bool(_DENIAL.search(said)),
            vector=vector,
        )

    def tells(self, value: str) -> bool:
        """Whether it tells a value: all its numbers, or, where it has none, all its words."""
        numbers = numbers_in(value)
        if numbers:
            return numbers <= self.numbers
        words = frozenset(terms_of(value))
        return bool(words) and words <= self.words


_LOGGED = LazyPattern(r"(?:\w+:\s)?\[?\d{4}-\d\d-\d\d[T\s]\d\d:\d\d")
"""A line of a log: another one is another event, not another value."""

_NOW = LazyPattern(r"\b(?:now|these\sdays|from\shere\son|ahora)\b", re.IGNORECASE)


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
            named = _likest([fact for fact in earlier if _names(new, candidate.taken_back, fact)], new)
            if named is not None or candidate.retracts:
                return named
        return _likest(
            [
                fact
                for fact in earlier
                if _gives_another_value(candidate, new, fact)
                or _denies(candidate, new, fact)
                or _succeeds(candidate, new, fact)
            ],
            new,
        )


def _names(new: _Known, old_value: str, fact: _Known) -> bool:
    if not fact.tells(old_value):
        return False
    if _is_telling(old_value):
        return _cosine(new, fact) >= NAMED_COSINE
    shared = (new.matter & fact.matter) - frozenset(terms_of(old_value))
    if _cosine(new, fact) >= NAMED_COSINE_ALONE and not numbers_in(old_value):
        return True
    return bool(shared) and _cosine(new, fact) >= NAMED_COSINE_BY_CHANCE


def _is_telling(value: str) -> bool:
    """Whether a value is hardly met by chance: an amount, a time, a date in full, or a name."""
    if sort_of(value) is not None:
        return not numbers_in(value) or len(value) >= SHORTEST_TELLING
    return value[:1].isupper()


def _gives_another_value(candidate: Candidate, new: _Known, fact: _Known) -> bool:
    if candidate.revises != "corrected" and _is_of_another(
        candidate.content.removeprefix(f"{candidate.said_by}: "), fact
    ):
        return False
    told = {(figure.sort, figure.value) for figure in fact.figures}
    return any(
        _may_follow(figure, old) and _is_of_one_matter(candidate, figure, old, new, fact)
        for figure in new.figures
        if (figure.sort, figure.value) not in told
        for old in fact.figures
    )


def _is_of_one_matter(candidate: Candidate, figure: Figure, old: Figure, new: _Known, fact: _Known) -> bool:
    """Whether two values of one sort are said of the same: by the word before them, their sort, or the rest."""
    revises, cosine = candidate.revises, _cosine(new, fact)
    is_same_lead = bool(figure.lead) and figure.lead == old.lead
    is_day = figure.sort in ("date", "weekday")
    if is_day and (revises == "none" or not new.matter):
        return False
    if len(new.matter) > RAMBLING and len(new.matter & fact.matter) < LEAST_MUTUAL * len(fact.matter) + 1:
        return False
    if is_same_lead or figure.is_telling:
        return cosine >= SAME_LEAD[revises]
    around = new.matter if revises == "none" or is_day else new.matter | _matter(candidate.context)
    shared, smaller = len(around & fact.matter), min(len(new.matter), len(fact.matter))
    needed = SAME_MATTER[revises]
    if revises == "changed" and shared and new.matter:
        if figure.sort == "called" or (figure.sort.startswith("amount") and new.names & fact.names):
            return cosine >= SAME_LEAD[revises]
        if max(len(new.matter), len(fact.matter)) <= FEW_WORDS:
            return cosine >= FEW_WORDS_COSINE and not is_day
    return shared >= max(needed.overlap * smaller, needed.words) and cosine >= needed.cosine


def _denies(candidate: Candidate, new: _Known, fact: _Known) -> bool:
    """Whether one of them denies what the other says: "I don't like olives any more" after "I like olives"."""
    if new.denies == fact.denies or candidate.revises == "none":
        return False
    shared = len(new.matter & fact.matter)
    if (
        shared
        and max(len(new.matter), len(fact.matter)) <= FEW_WORDS + 1
        and _cosine(new, fact) >= FEW_WORDS_COSINE
    ):
        return True
    is_mutual = shared >= DENIED.overlap * len(fact.matter) and shared >= LEAST_MUTUAL * len(new.matter)
    return is_mutual and shared >= DENIED.words and _cosine(new, fact) >= DENIED.cosine


_DENIAL = LazyPattern(r"\b(?:not|no\slonger|never|cannot|nunca|ya\sno|no)\b|n['’]t\b", re.IGNORECASE)
_OWNER = LazyPattern(
    rf"\b(?:[Mm]y|[Hh]is|[Hh]er|[Tt]he|[Aa]|[Mm]i|[Ss]u|[Ee]l|[Ll]a)\s(?:\w+\s)?(?P<owner>{PEOPLE})\b(?!['’]?s?\s{REPORTS})"
)
_BESIDES = LazyPattern(
    r"\b(?:other|another|second|also|as\swell|too|extra|besides|plus|last\s(?:year|month|week|night|time)|yesterday|back\sthen|at\sfirst|used\sto|ago"
    r"|(?:just|only)\s(?:this|for|today|tonight)|this\stime|for\sonce|if|unless|maybe|might|perhaps|could|would|whether|otr[oa]s?|también|además|ayer"
    r"|pasad[oa]|antes|solo\s(?:esta|este|hoy)|si|quizás?|igual)\b",
    re.IGNORECASE,
)
"""What is said besides something else, of another time, or not for certain."""


_SUBJECT = LazyPattern(r"([A-Z]\w+)\s(?:\w+s|has|had|will)\s")
_FIRST_PERSON = LazyPattern(r"(?:I|my|we|our|yo|mi|mis|nuestr[oa]s?)\b", re.IGNORECASE)
_POSSESSED = LazyPattern(r"\b([^\W\d_]+)(?:['’]s|s['’])\s(\w+(?:\s\w+)?)")


def _is_of_another(said: str, fact: _Known) -> bool:
    """Whether a statement is about somebody or something else than the fact, or holds besides it."""
    if _BESIDES.search(said):
        return True
    subject = _SUBJECT.match(fact.said)
    if subject and frozenset(terms_of(subject[1])).isdisjoint(terms_of(said)) and _FIRST_PERSON.match(said):
        return True
    owners = [match["owner"] for match in _OWNER.finditer(said)]
    owners += [match[1] for match in _POSSESSED.finditer(said) if not fact.words.isdisjoint(terms_of(match[2]))]
    return any(frozenset(terms_of(owner)) - fact.words for owner in owners)


def _succeeds(candidate: Candidate, new: _Known, fact: _Known) -> bool:
    """Whether somebody takes another's place: "my boss is Ana" after "my boss is Eve"; of several, only "now"."""
    if candidate.slot is None or fact.slot != candidate.slot or "." not in candidate.slot:
        return False
    relation = candidate.slot.rpartition(".")[2]
    if relation not in RELATIONS:
        return False
    is_only_one = relation in ONE_AT_A_TIME and not _BESIDES.search(candidate.content)
    is_other = new.words.isdisjoint(frozenset(terms_of(fact.value)))
    return is_other and (is_only_one or bool(_NOW.search(candidate.content)))


def _may_follow(new: Figure, old: Figure) -> bool:
    """Whether a value may have taken the place of another: of its sort, not the same, and figures compare."""
    parts, old_parts = set(new.value.split()), set(old.value.split())
    # "The 25th" says no other day than "25 September".
    if new.sort != old.sort or parts <= old_parts or old_parts <= parts:
        return False
    one, other = _figure(new.value), _figure(old.value)
    return not one or not other or max(one, other) <= MOST_TIMES * min(one, other)


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


def _matter(said: str) -> frozenset[str]:
    """The stemmed words of a text that say what it is about."""
    return frozenset(term for term in frozenset(terms_of(said)) - _IN_ANY_MATTER if not term[:1].isdigit())
