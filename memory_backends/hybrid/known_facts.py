"""Supersession: find the known fact that a new statement ends.

What is kept here of every fact that holds comes from the same writes as the store; the store has the fact itself.
Only its own speaker ends a fact: an assistant that computes another figure corrects nobody.

A statement ends a fact whose slot it fills (:mod:`.consolidation`). Without a slot it ends one only where it says
itself that something is no longer so: it takes back a value that the fact tells, or it says that something has
changed or was wrong, is about the same, and has a value that may replace one of the fact. Of several such facts it
ends the one that is most like it. A model that extracts facts (``--extractor``) names slots, and follows more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_backends.hybrid.candidates import Candidate
from memory_backends.hybrid.rules.figures import Figures, figures_in, may_replace
from memory_backends.hybrid.rules.pattern import LazyPattern
from memory_backends.hybrid.rules.personal import ONE_AT_A_TIME, RELATIONS
from memory_backends.hybrid.rules.statements import EVENT
from memory_backends.retrieval.keyword import terms_in, terms_of
from memory_backends.text import MONTHS, SPELLED, WEEKDAYS, numbers_in

Vector = NDArray[np.float32]

ASSISTANT = "AI"
"""The label of an assistant, and not of the second of two people."""

ALIKE = 0.4
"""Cosine from which a statement may change the value of a fact that it does not name."""

_IN_ANY_MATTER = frozenset(
    term
    for line in (
        "i my mine we us our you your he his him she her hers them who what which its here there now new up",
        "down back end again only just also still last next first each one ones more less than same any",
        "longer way thing things come came went go gone going get got put say said says tell told make made",
        "take took call called name turn turned out change changed move moved have had do does did been am",
        "are were re ve ll don didn about use usual since used so too very instead actually wrong sorry meant",
        "mean mistake mistaken correction update oops ahora final semana hoy ayer va van voy viene vienen",
        "dice dijo menos vez solo si así asi medio media due deadline second minute hour day week month year",
        "decade percent per cent euro pound dollar peso km mile metre meter g kg gram kilo ml litre time pm",
        "segundo minuto hora día mes año céntimo metro gramo litro",
    )
    for word in (*line.split(), *MONTHS, *WEEKDAYS, *SPELLED)
    for term in (*terms_in(word, "english"), *terms_in(word, "spanish"), word)
)
"""Stop words for topics, including dates, numbers and units."""

_LOGGED = LazyPattern(r"(?:\w+:\s)?\[?\d{4}-\d\d-\d\d[T\s]\d\d:\d\d")
"""A line of a log: another one is another event, not another value."""

_NOW = LazyPattern(r"\b(?:now|these\sdays|from\shere\son|ahora)\b", re.IGNORECASE)


@dataclass(frozen=True)
class KnownFact:
    """A fact that holds. ``matter`` are its stemmed words but for its figures, ``figures`` its values by sort."""

    id: str
    said: str
    turn: int
    slot: str | None
    value: str
    turns: frozenset[str]
    words: frozenset[str]
    matter: frozenset[str]
    figures: Figures
    is_event: bool
    vector: Vector

    @classmethod
    def of(cls, id_: str, candidate: Candidate, vector: Vector) -> KnownFact:
        """Return what is kept of a candidate."""
        said = candidate.content.removeprefix(f"{candidate.said_by}: ")
        words = frozenset(terms_of(said))
        return cls(
            id=id_,
            said=said,
            turn=candidate.turn_number,
            slot=candidate.slot,
            value=candidate.value,
            turns=frozenset(candidate.sources),
            words=words,
            matter=frozenset(term for term in words - _IN_ANY_MATTER if not term[:1].isdigit()),
            figures={} if _LOGGED.match(said) else figures_in(said),
            is_event=candidate.rule == EVENT,
            vector=vector,
        )

    def tells(self, value: str) -> bool:
        """Return whether the text contains the value: its numbers, or its words if it has none."""
        numbers = numbers_in(value)
        if numbers:
            return numbers <= numbers_in(self.said)
        words = frozenset(terms_of(value))
        return bool(words) and words <= self.words


class KnownFacts:
    """The facts of one conversation that hold, by speaker."""

    def __init__(self) -> None:
        self._of_speaker: dict[str, dict[str, KnownFact]] = {}
        self._speaker_of: dict[str, str] = {}
        self._last_to_end: tuple[int, str] | None = None

    def add(self, id_: str, candidate: Candidate, vector: Vector) -> None:
        """Keep a fact that was written. Writing it again replaces it."""
        self.end(id_)
        self._speaker_of[id_] = candidate.said_by
        self._of_speaker.setdefault(candidate.said_by, {})[id_] = KnownFact.of(id_, candidate, vector)

    def end(self, id_: str) -> None:
        """Forget a fact that no longer holds."""
        if (speaker := self._speaker_of.pop(id_, None)) is not None:
            del self._of_speaker[speaker][id_]

    def may_be_of_one_matter(self, id_: str, candidate: Candidate, vector: Vector) -> bool:
        """Return whether a fact and a candidate share a word that says what they are about, or one of them has
        none.
        """
        fact = self._of_speaker.get(self._speaker_of.get(id_, ""), {}).get(id_)
        new = KnownFact.of("", candidate, vector)
        if fact is None or not new.matter:
            return True
        return not fact.matter.isdisjoint(new.matter) or (not fact.matter and len(new.matter) == 1)

    def ended_by(self, candidate: Candidate, vector: Vector) -> tuple[str, ...]:
        """Return the ids of the facts that a candidate ends, the likeliest first: those of one sentence."""
        new = KnownFact.of("", candidate, vector)
        if candidate.said_by == ASSISTANT or self._last_to_end == (new.turn, new.said):
            return ()
        earlier = [
            fact
            for fact in self._of_speaker.get(candidate.said_by, {}).values()
            if fact.turns.isdisjoint(new.turns) and (not candidate.is_instruction or fact.slot == candidate.slot)
        ]
        ended = next((fact for fact in reversed(earlier) if _succeeds(candidate, new, fact)), None)
        ended = (
            ended or max(_that_may_end(candidate, new, earlier), default=(None, None), key=lambda one: one[1])[0]
        )
        if ended is None:
            return ()
        self._last_to_end = (new.turn, new.said)
        return (ended.id, *(fact.id for fact in earlier if fact.said == ended.said and fact is not ended))


def _that_may_end(
    candidate: Candidate, new: KnownFact, earlier: list[KnownFact]
) -> Iterator[tuple[KnownFact, tuple[bool, float]]]:
    """Yield the facts that a candidate may end, each with whether it names their value and how alike they are."""
    if candidate.taken_back is None and candidate.revises == "none":
        return
    for fact in earlier:
        likeness, shared = float(fact.vector @ new.vector), new.matter & fact.matter
        if candidate.taken_back is not None and fact.tells(candidate.taken_back):
            # A bare number may be said of anything.
            if shared or not new.matter or not candidate.taken_back.isdigit():
                yield fact, (True, likeness)
        elif candidate.revises == "none" or likeness < ALIKE or not shared:
            continue
        elif candidate.is_instruction or (
            2 * len(shared) >= min(len(new.matter), len(fact.matter))
            and may_replace(_telling(new.figures, len(shared)), fact.figures)
            and (not fact.is_event or candidate.revises == "corrected")
        ):
            yield fact, (False, likeness)


def _telling(figures: Figures, shared: int) -> Figures:
    """Return the values that may replace another where so many words are shared: by one word alone, no date or
    time.
    """
    return figures if shared > 1 else {sort: figures[sort] for sort in figures.keys() - {"day", "time", "year"}}


def _succeeds(candidate: Candidate, new: KnownFact, fact: KnownFact) -> bool:
    """Return whether somebody takes another's place: "my boss is Ana" after "my boss is Eve"; of several, only
    "now".
    """
    if candidate.slot is None or fact.slot != candidate.slot or "." not in candidate.slot:
        return False
    relation = candidate.slot.rpartition(".")[2]
    if relation not in RELATIONS:
        return False
    is_other = new.words.isdisjoint(frozenset(terms_of(fact.value)))
    return is_other and (relation in ONE_AT_A_TIME or bool(_NOW.search(candidate.content)))
