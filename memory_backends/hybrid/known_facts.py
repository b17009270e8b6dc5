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
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from memory_backends.hybrid.candidates import Candidate
from memory_backends.hybrid.rules.corrections import Revision, gives_a_result, revision_in
from memory_backends.hybrid.rules.figures import UNITS, Figure, figures_in
from memory_backends.hybrid.rules.matching import sort_of
from memory_backends.hybrid.rules.pattern import CAP, LazyPattern
from memory_backends.hybrid.rules.personal import ONE_AT_A_TIME, PEOPLE, RELATIONS, REPORTS
from memory_backends.retrieval.keyword import language_of, terms_in, terms_of
from memory_backends.text import MONTHS, SPELLED, WEEKDAYS, numbers_in

Vector = NDArray[np.float32]

ASSISTANT = "AI"
"""The label of an assistant, and not of the second of two people."""

NAMED_COSINE = 0.25
NAMED_COSINE_ALONE = 0.45
"""Cosine from which a statement is about the fact whose old value it names; and where the value is a mere word."""

SAME_SUBJECT: dict[Revision, float] = {"corrected": 0.3, "changed": 0.3, "none": 0.8}
"""Share of what a later clause is about that an older one says too, by what the later one says of it."""

LEAST_COSINE: dict[Revision, float] = {"corrected": 0.3, "changed": 0.45, "none": 0.45}
"""Cosine that two statements with values of one sort need besides."""

AT_HAND = 6
"""Turns back to which a correction refers that has no subject ("Sorry, 16.", "The 21st, not the 27th")."""

FEW_WORDS = 3
"""Words of matter up to which a single shared one is enough for a denial."""

DENIED = 0.6
LEAST_MUTUAL = 0.3
DENIED_COSINE = 0.5
"""Share of a fact's words that a denial of it has, share of its own words that the fact has, and their cosine."""

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
        "si como media medio due deadline así asi sorry meant mean mistake mistaken correction update oops",
        "put way thing things",
    )
    for word in (*line.split(), *MONTHS, *WEEKDAYS, *SPELLED, *UNITS)
    for term in (*terms_in(word, "english"), *terms_in(word, "spanish"), word)
)
"""Words that say nothing of what a sentence is about; nor do dates and numbers."""


@dataclass(frozen=True)
class _Known:
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
            turn=candidate.turn_number,
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

    def is_soon_after(self, fact: _Known) -> bool:
        """Whether what the other says is still at hand."""
        return self.turn - fact.turn <= AT_HAND

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
        self._having: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, id_: str, candidate: Candidate, vector: Vector) -> None:
        """Keep a fact that was written. Writing it again replaces it."""
        self._facts.pop(id_, None)
        self._facts[id_] = _Known.of(id_, candidate, vector)
        known = self._facts[id_]
        for word in known.matter | {figure.sort for figure in known.figures}:
            self._having[word].add(known.said)

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
        """The id of the fact that a candidate ends, if any."""
        if candidate.said_by == ASSISTANT:
            return None
        new = _Known.of("", candidate, vector)
        earlier = [
            fact for fact in self._facts.values() if fact.said_by == new.said_by and not fact.turns & new.turns
        ]
        if candidate.is_instruction:
            earlier = [fact for fact in earlier if fact.slot == candidate.slot]
        if candidate.taken_back is not None:
            named = self._named(new, candidate.taken_back, earlier)
            if named is not None or candidate.retracts:
                return named
        if candidate.is_instruction:
            return None
        told_anew = self._told_anew(candidate, new, earlier)
        if told_anew is not None:
            return told_anew
        return _likest(
            [fact for fact in earlier if _denies(candidate, new, fact) or _succeeds(candidate, new, fact)], new
        )

    def _named(self, new: _Known, old_value: str, earlier: Sequence[_Known]) -> str | None:
        """The fact whose value is named as the old one: the only one that tells it, or the likest of those."""
        telling = [fact for fact in earlier if fact.tells(old_value)]
        if len(telling) == 1 and _is_telling(old_value) and new.is_soon_after(telling[0]):
            return telling[0].id
        least = NAMED_COSINE if _is_telling(old_value) else NAMED_COSINE_ALONE
        is_bare = old_value.isdigit()
        return _likest(
            [
                fact
                for fact in telling
                if _cosine(new, fact) >= least and not (is_bare and new.matter.isdisjoint(fact.matter))
            ],
            new,
        )

    def _told_anew(self, candidate: Candidate, new: _Known, earlier: Sequence[_Known]) -> str | None:
        """The fact whose value the candidate tells anew: of the same sort and the same subject, and no other is.

        A correction may tell the wrong value beside the right one, or have no subject and refer to what was just
        said.
        """
        said = candidate.content.removeprefix(f"{candidate.said_by}: ")
        told = {(figure.sort, figure.value) for figure in new.figures}
        best: dict[str, float] = {}
        for fact in earlier:
            if candidate.revises != "corrected" and _is_of_another(said, fact):
                continue
            known = {(figure.sort, figure.value) for figure in fact.figures}
            for figure in new.figures:
                if (figure.sort, figure.value) in known:
                    continue
                revises = _revision(candidate, figure)
                if revises is None:
                    continue
                for old in fact.figures:
                    if not _may_follow(figure, old):
                        continue
                    if revises != "corrected" and old.is_past:
                        continue
                    is_named = revises == "corrected" and (old.sort, old.value) in told
                    is_only_one = figure.is_telling and len(self._having[figure.sort]) == 1
                    is_sure = is_named or is_only_one
                    share = 1.0 if is_sure else self._same_subject(figure, old, candidate, new, fact)
                    if share >= SAME_SUBJECT[revises] and (is_named or _cosine(new, fact) >= LEAST_COSINE[revises]):
                        best[fact.id] = max(best.get(fact.id, 0.0), share)
        if not best:
            return None
        most = max(best.values())
        return [id_ for id_, share in best.items() if share == most][-1]

    def _same_subject(self, figure: Figure, old: Figure, candidate: Candidate, new: _Known, fact: _Known) -> float:
        """How much of what a value is said of, the older clause says too; rare words weigh more.

        0 where the older one is mostly about something else.
        """
        about, of_old = _about(figure, new, candidate.context), _about(old, fact)
        if not about:
            return float(candidate.revises == "corrected" and new.is_soon_after(fact))
        shared = self._weight(about & of_old)
        if not shared or shared < LEAST_MUTUAL * self._weight(of_old):
            return 0.0
        return shared / self._weight(about)

    def _weight(self, words: Iterable[str]) -> float:
        return sum(1 / sqrt(max(len(self._having[word]), 1)) for word in words)


def _revision(candidate: Candidate, figure: Figure) -> Revision | None:
    """What a value says of an earlier one; None where it is likely to be just another value.

    What happens on another day is mostly something else, unless the clause itself says that the day has changed.
    Without any sign of a change, only what is said to be so takes the place of a value.
    """
    revises = candidate.revises
    if figure.sort in ("date", "weekday") and revises == "changed":
        return revision_in(figure.clause)
    if figure.sort in ("date", "weekday") and revises == "none":
        return None
    return None if revises == "none" and (figure.is_past or not figure.is_stated) else revises


def _about(figure: Figure, known: _Known, context: str = "") -> frozenset[str]:
    """The words that say what a value is said of: those of its clause, else of its statement or of what led to it.

    What it counts is one of them, if that is telling.
    """
    of_clause = frozenset(terms_in(figure.clause, language_of(known.said)))
    sort = {figure.sort} if figure.is_telling else set()
    return (known.matter & of_clause or known.matter or _matter(context)) | sort


def _is_telling(value: str) -> bool:
    """Whether a value is hardly met by chance: a number, an amount, a time, a date, or a name."""
    return bool(numbers_in(value)) or sort_of(value) is not None or value[:1].isupper()


def _denies(candidate: Candidate, new: _Known, fact: _Known) -> bool:
    """Whether one of them denies what the other says: "I don't like olives any more" after "I like olives"."""
    if new.denies == fact.denies or candidate.revises == "none":
        return False
    shared = len(new.matter & fact.matter)
    is_mutual = shared >= DENIED * len(fact.matter) and shared >= LEAST_MUTUAL * len(new.matter)
    is_one_word = shared == 1 and max(len(new.matter), len(fact.matter)) > FEW_WORDS
    return bool(shared) and is_mutual and not is_one_word and _cosine(new, fact) >= DENIED_COSINE


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
    if gives_a_result(said):
        return False
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
