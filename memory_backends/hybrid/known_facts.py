"""Which known fact a new statement ends.

What is kept here of every fact that holds (its words, its precise values by sort, and its vector) comes from the
same writes as the store; the store has the fact itself. Only its own speaker ends a fact: an assistant that
computes another figure corrects nobody.

A statement is compared with every earlier one: the cosine of the two, the words that they share, and whether a
value of one may take the place of one of the other. It can end only the likeliest of them, and does so where the
evidence is enough: how far the likeliest is ahead of the next, how surely its value may be replaced, and whether
the statement says that something has changed or was wrong.

The weights began as those of a logistic regression; ``rules/README.md`` names the conversations.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import log10, sqrt

import numpy as np
from numpy.typing import NDArray

from memory_backends.hybrid.candidates import Candidate
from memory_backends.hybrid.rules.corrections import Revision
from memory_backends.hybrid.rules.figures import Figures, figures_in, replaceable
from memory_backends.hybrid.rules.pattern import LazyPattern
from memory_backends.hybrid.rules.personal import ONE_AT_A_TIME, PEOPLE, RELATIONS, REPORTS
from memory_backends.hybrid.rules.statements import EVENT
from memory_backends.retrieval.keyword import terms_in, terms_of
from memory_backends.text import MONTHS, SPELLED, WEEKDAYS, folded_words, numbers_in

Vector = NDArray[np.float32]

ASSISTANT = "AI"
"""The label of an assistant, and not of the second of two people."""

SHARED_WORD = 0.12
"""What a word that both statements have adds to their cosine, if no other fact has it; as much for each of its own
words and for those of the message around it."""

MOST_SHARED = 3.0
REPLACEABLE = (0.0, 0.1, 0.2, 0.2)
NAMED = 0.4
"""What a value that may be replaced adds, by how surely; and the old value itself, where the statement names it."""

LEAST_LEAD = 0.1
MOST_LEAD = 0.5
LEAST_NEXT = 0.4
"""How far the likeliest fact has to be ahead of the next, what counts as much as any lead beyond it, and how likely
the next is at least: a conversation that has just begun has few facts to choose from."""

LEAD_WEIGHT = 12.0
SHARE_WEIGHT = 1.2
MOST_SHARE = 0.6
NAMED_WEIGHT = 3.0
SAYS: dict[Revision, float] = {"none": -1.0, "hinted": 0.7, "changed": 2.5, "dropped": 2.5, "corrected": 2.2}
ENOUGH = 5.2
"""Weights of the evidence that a statement ends a fact: the lead, the share of its words that the fact has, the old
value if it names it, what it says of earlier statements, and how surely its value may replace one (0 to 3). With
ten times as many facts 1 more is needed: of more facts, one is sooner like the statement by chance."""

GIVEN_UP = 2.0
TELLING = 0.7
"""What counts for a value where a statement gives something up, and the weight of a word that one fact alone has,
which both must then share."""

DENIED = 0.5
"""Share of a fact's words that a denial of it has."""

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

_NOW = LazyPattern(r"\b(?:now|these\sdays|from\shere\son|ahora)\b", re.IGNORECASE)


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
    figures: Figures
    denies: bool
    is_instruction: bool
    is_event: bool
    vector: Vector

    @classmethod
    def of(cls, id_: str, candidate: Candidate, vector: Vector) -> _Known:
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
            matter=_matter(said),
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


_CLAUSE = LazyPattern(
    r".+?(?:[,;](?=\s)\s|\s[-–—]\s|\s(?=(?:and|but|so|because|which|y|pero|porque|así\sque)\s)|$)", re.IGNORECASE
)


@dataclass(frozen=True)
class Ended:
    """The facts of a sentence that no longer holds, the likeliest first, and what else the sentence says."""

    ids: tuple[str, ...]
    rest: str | None


class KnownFacts:
    """The facts of one conversation that hold, in the order in which they were written."""

    def __init__(self) -> None:
        self._facts: dict[str, _Known] = {}
        self._having: Counter[str] = Counter()
        self._last_to_end: tuple[int, str] | None = None

    def add(self, id_: str, candidate: Candidate, vector: Vector) -> None:
        """Keep a fact that was written. Writing it again replaces it."""
        self._facts.pop(id_, None)
        known = self._facts[id_] = _Known.of(id_, candidate, vector)
        self._having.update(known.matter)

    def add_rest(self, id_: str, of: str, said: str, vector: Vector) -> None:
        """Keep what else the sentence of a fact says."""
        self._facts[id_] = replace(
            self._facts[of],
            id=id_,
            said=said,
            slot=None,
            value=said,
            words=frozenset(terms_of(said)),
            matter=_matter(said),
            figures=figures_in(said),
            vector=vector,
        )

    def end(self, id_: str) -> None:
        """Forget a fact that no longer holds."""
        self._facts.pop(id_, None)

    def may_be_of_one_matter(self, id_: str, candidate: Candidate, vector: Vector) -> bool:
        """Whether a fact and a candidate share a word that says what they are about, or one of them has none."""
        fact, new = self._facts.get(id_), _Known.of("", candidate, vector)
        if fact is None or not new.matter:
            return True
        return not fact.matter.isdisjoint(new.matter) or (not fact.matter and len(new.matter) == 1)

    def ended_by(self, candidate: Candidate, vector: Vector) -> Ended | None:
        """What a candidate ends, if anything. A sentence ends one earlier sentence, whatever else is read in it."""
        new = _Known.of("", candidate, vector)
        if candidate.said_by == ASSISTANT or self._last_to_end == (new.turn, new.said):
            return None
        earlier = [
            fact for fact in self._facts.values() if fact.said_by == new.said_by and not fact.turns & new.turns
        ]
        if candidate.is_instruction:
            earlier = [fact for fact in earlier if fact.slot == candidate.slot]
        succeeded = [fact for fact in earlier if _succeeds(candidate, new, fact)]
        ended = succeeded[-1] if succeeded else self._likeliest(candidate, new, earlier)
        if ended is None:
            return None
        self._last_to_end = (new.turn, new.said)
        fellows = [fact.id for fact in earlier if fact.said == ended.said and fact is not ended]
        return Ended((ended.id, *fellows), self._rest_of(ended, candidate, new))

    def _rest_of(self, fact: _Known, candidate: Candidate, new: _Known) -> str | None:
        """The sentence of a fact without the clause that a candidate ends; None where it tells nothing else."""
        clauses = [match[0] for match in _CLAUSE.finditer(fact.said)]
        if len(clauses) == 1 or fact.is_instruction:
            return None
        wrong = candidate.taken_back

        def likeness(clause: str) -> float:
            is_named = wrong is not None and folded_words(wrong) in folded_words(clause)
            sure = is_named * NAMED_WEIGHT + replaceable(new.figures, figures_in(clause))
            return sure + self._weight(_matter(clause) & new.matter)

        like = [likeness(clause) for clause in clauses]
        if not any(like):
            return None
        wrong_place = like.index(max(like))
        rest = [clause for place, clause in enumerate(clauses) if place != wrong_place]
        if not any(figures_in(clause) or len(_matter(clause)) > 1 for clause in rest):
            return None
        clauses[wrong_place] = "… "
        return " ".join("".join(clauses).split())

    def _likeliest(self, candidate: Candidate, new: _Known, earlier: Sequence[_Known]) -> _Known | None:
        """The fact that a candidate most likely ends, if the evidence is enough."""
        if not earlier:
            return None
        around = new.matter | _matter(candidate.context)
        cosines = np.stack([fact.vector for fact in earlier]) @ new.vector
        best, most, following = earlier[0], -1.0, LEAST_NEXT
        more = SHARED_WORD * sum(min(self._weight(words), MOST_SHARED) for words in (new.matter, around))
        sure = REPLACEABLE[-1] + (NAMED if candidate.taken_back else 0.0)
        for fact, cosine in zip(earlier, cosines.tolist(), strict=True):
            if cosine + sure + (0.0 if fact.matter.isdisjoint(around) else more) < following:
                # It cannot be the likeliest or the next, as is most often so.
                continue
            like = (
                cosine
                + SHARED_WORD * min(self._weight(new.matter & fact.matter), MOST_SHARED)
                + SHARED_WORD * min(self._weight(around & fact.matter), MOST_SHARED)
                + REPLACEABLE[replaceable(new.figures, fact.figures)]
                + (NAMED if _names(candidate, new, fact) else 0.0)
            )
            if fact.said != best.said:
                following = max(following, min(like, most))
            if like >= most:
                best, most = fact, like
        lead = min(most - following, MOST_LEAD)
        enough = ENOUGH + log10(len(earlier))
        return best if lead >= LEAST_LEAD and self._evidence(candidate, new, best, lead) >= enough else None

    def _evidence(self, candidate: Candidate, new: _Known, fact: _Known, lead: float) -> float:
        """How much speaks for a candidate ending the fact that it is most like."""
        shared = self._weight(new.matter & fact.matter)
        share = shared / max(self._weight(new.matter), TELLING)
        sure = float(replaceable(new.figures, fact.figures))
        if fact.is_event and sure < 2 and candidate.revises != "corrected":
            # A later change does not undo an event.
            return 0.0
        is_named = _names(candidate, new, fact)
        if new.denies != fact.denies and shared >= DENIED * self._weight(fact.matter):
            sure += 1.0
        if candidate.is_instruction and candidate.revises != "none":
            sure += 1.0
        if is_named:
            sure += NAMED_WEIGHT
        elif candidate.revises == "dropped" and shared >= TELLING:
            sure += GIVEN_UP
        elif not sure or (candidate.revises in ("none", "hinted") and _is_of_another(new, fact)):
            return 0.0
        return LEAD_WEIGHT * lead + SHARE_WEIGHT * min(share, MOST_SHARE) + sure + SAYS[candidate.revises]

    def _weight(self, words: Iterable[str]) -> float:
        """How much words say: the less, the more facts have them."""
        return sum(1 / sqrt(1 + self._having[word]) for word in words)


def _names(candidate: Candidate, new: _Known, fact: _Known) -> bool:
    """Whether a candidate takes back a value that the fact tells; a bare number only of the same matter."""
    wrong = candidate.taken_back
    if wrong is None or not fact.tells(wrong):
        return False
    return not wrong.isdigit() or not new.matter or not new.matter.isdisjoint(fact.matter)


_OWNER = LazyPattern(
    rf"\b(?:my|his|her|the|a|mi|su|el|la)\s(?:\w+\s)?(?P<owner>{PEOPLE})\b(?!['’]?s?\s{REPORTS})|\b(?P<whose>[^\W\d_]+)(?:['’]s|s['’])\s"
    r"|\b(?P<other>another|others?|also|otr[oa]s?|también)\b",
    re.IGNORECASE,
)


def _is_of_another(new: _Known, fact: _Known) -> bool:
    """Whether a statement is about somebody or something else than the fact: "my friend pays £60"."""
    owners = [match["owner"] or match["whose"] or match["other"] for match in _OWNER.finditer(new.said)]
    return any(fact.words.isdisjoint(terms_of(owner) or (owner.casefold(),)) for owner in owners)


def _succeeds(candidate: Candidate, new: _Known, fact: _Known) -> bool:
    """Whether somebody takes another's place: "my boss is Ana" after "my boss is Eve"; of several, only "now"."""
    if candidate.slot is None or fact.slot != candidate.slot or "." not in candidate.slot:
        return False
    relation = candidate.slot.rpartition(".")[2]
    if relation not in RELATIONS:
        return False
    is_other = new.words.isdisjoint(frozenset(terms_of(fact.value)))
    return is_other and (relation in ONE_AT_A_TIME or bool(_NOW.search(candidate.content)))


def _matter(said: str) -> frozenset[str]:
    """The stemmed words of a text that say what it is about."""
    return frozenset(term for term in frozenset(terms_of(said)) - _IN_ANY_MATTER if not term[:1].isdigit())
