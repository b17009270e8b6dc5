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
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import log10, sqrt

import numpy as np
from numpy.typing import NDArray

from memory_backends.hybrid.candidates import Candidate
from memory_backends.hybrid.fact_index import FactIndex, KnownFact, Vector, matter_of
from memory_backends.hybrid.rules.corrections import Revision
from memory_backends.hybrid.rules.figures import figures_in, replaceable
from memory_backends.hybrid.rules.pattern import LazyPattern
from memory_backends.hybrid.rules.personal import ONE_AT_A_TIME, PEOPLE, RELATIONS, REPORTS
from memory_backends.retrieval.keyword import terms_of
from memory_backends.text import folded_words

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

FELLOWS = 16
"""Facts among which the second likeliest sentence is looked for."""

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

_NOW = LazyPattern(r"\b(?:now|these\sdays|from\shere\son|ahora)\b", re.IGNORECASE)


_CLAUSE = LazyPattern(
    r".+?(?:[,;](?=\s)\s|\s[-–—]\s|\s(?=(?:and|but|so|because|which|y|pero|porque|así\sque)\s)|$)", re.IGNORECASE
)


@dataclass(frozen=True)
class Ended:
    """The facts of a sentence that no longer holds, the likeliest first, and what else the sentence says."""

    ids: tuple[str, ...]
    rest: str | None


class KnownFacts:
    """The facts of one conversation that hold, by speaker."""

    def __init__(self) -> None:
        self._facts: dict[str, KnownFact] = {}
        self._of_speaker: dict[str, FactIndex] = {}
        self._having: Counter[str] = Counter()
        self._last_counted: tuple[int, str] | None = None
        self._last_to_end: tuple[int, str] | None = None

    def add(self, id_: str, candidate: Candidate, vector: Vector) -> None:
        """Keep a fact that was written. Writing it again replaces it."""
        known = KnownFact.of(id_, candidate, vector)
        if self._last_counted != (known.turn, known.said):
            # The facts of one sentence are added one after another: its words count once.
            self._having.update(known.matter)
            self._last_counted = (known.turn, known.said)
        self._keep(known)

    def add_rest(self, id_: str, of: str, said: str, vector: Vector) -> None:
        """Keep what else the sentence of a fact says."""
        rest = replace(
            self._facts[of],
            id=id_,
            said=said,
            slot=None,
            value=said,
            words=frozenset(terms_of(said)),
            matter=matter_of(said),
            figures=figures_in(said),
            vector=vector,
        )
        self._keep(rest)

    def _keep(self, fact: KnownFact) -> None:
        self.end(fact.id)
        self._facts[fact.id] = fact
        if fact.said_by != ASSISTANT:
            self._of_speaker.setdefault(fact.said_by, FactIndex(len(fact.vector))).add(fact)

    def end(self, id_: str) -> None:
        """Forget a fact that no longer holds."""
        fact = self._facts.pop(id_, None)
        if fact is not None and fact.said_by in self._of_speaker:
            self._of_speaker[fact.said_by].remove(id_)

    def may_be_of_one_matter(self, id_: str, candidate: Candidate, vector: Vector) -> bool:
        """Whether a fact and a candidate share a word that says what they are about, or one of them has none."""
        fact, new = self._facts.get(id_), KnownFact.of("", candidate, vector)
        if fact is None or not new.matter:
            return True
        return not fact.matter.isdisjoint(new.matter) or (not fact.matter and len(new.matter) == 1)

    def ended_by(self, candidate: Candidate, vector: Vector) -> Ended | None:
        """What a candidate ends, if anything. A sentence ends one earlier sentence, whatever else is read in it."""
        new, known = KnownFact.of("", candidate, vector), self._of_speaker.get(candidate.said_by)
        if known is None or self._last_to_end == (new.turn, new.said):
            return None
        is_earlier = known.earlier(new, candidate.slot if candidate.is_instruction else None)
        same_slot = known.with_slot(candidate.slot) if candidate.slot else ()
        in_place = (known[place] for place in reversed(same_slot) if is_earlier[place])
        ended = next((fact for fact in in_place if _succeeds(candidate, new, fact)), None)
        ended = ended or self._likeliest(candidate, new, known, is_earlier)
        if ended is None:
            return None
        self._last_to_end = (new.turn, new.said)
        fellows = [known[place].id for place in known.saying(ended.said) if is_earlier[place]]
        ids = (ended.id, *(id_ for id_ in fellows if id_ != ended.id))
        return Ended(ids, self._rest_of(ended, candidate, new))

    def _rest_of(self, fact: KnownFact, candidate: Candidate, new: KnownFact) -> str | None:
        """The sentence of a fact without the clause that a candidate ends; None where it tells nothing else."""
        clauses = [match[0] for match in _CLAUSE.finditer(fact.said)]
        if len(clauses) == 1 or fact.is_instruction:
            return None
        wrong = candidate.taken_back

        def likeness(clause: str) -> float:
            is_named = wrong is not None and folded_words(wrong) in folded_words(clause)
            sure = is_named * NAMED_WEIGHT + replaceable(new.figures, figures_in(clause))
            return sure + self._weight(matter_of(clause) & new.matter)

        like = [likeness(clause) for clause in clauses]
        if not any(like):
            return None
        wrong_place = like.index(max(like))
        rest = [clause for place, clause in enumerate(clauses) if place != wrong_place]
        if not any(figures_in(clause) or len(matter_of(clause)) > 1 for clause in rest):
            return None
        clauses[wrong_place] = "… "
        return " ".join("".join(clauses).split())

    def _likeliest(
        self, candidate: Candidate, new: KnownFact, known: FactIndex, is_earlier: NDArray[np.bool_]
    ) -> KnownFact | None:
        """The fact that a candidate most likely ends, if the evidence is enough."""
        count = int(is_earlier.sum())
        if not count:
            return None
        around = new.matter | matter_of(candidate.context)
        like = known.cosines(new.vector) + SHARED_WORD * (
            np.minimum(known.shared(new.matter, self._weight_of), MOST_SHARED)
            + np.minimum(known.shared(around, self._weight_of), MOST_SHARED)
        )
        like[~is_earlier] = -np.inf
        best, most, following = None, -1.0, LEAST_NEXT
        # What values may add decides only between facts that can reach the next likeliest with it.
        most_added = np.full(len(like), NAMED if candidate.taken_back else 0.0)
        for sort, places in known.with_values_like(new.figures):
            added = REPLACEABLE[1] if sort == "name" else REPLACEABLE[-1]
            most_added[places] = np.maximum(most_added[places], added + (NAMED if candidate.taken_back else 0.0))
        for place in _reaching_the_next(like, most_added, known):
            fact = known[place]
            likeness = (
                float(like[place])
                + REPLACEABLE[replaceable(new.figures, fact.figures)]
                + (NAMED if _names(candidate, new, fact) else 0.0)
            )
            if best is not None and fact.said != best.said:
                following = max(following, min(likeness, most))
            if likeness >= most:
                best, most = fact, likeness
        lead = min(most - following, MOST_LEAD)
        if best is None or lead < LEAST_LEAD:
            return None
        return best if self._evidence(candidate, new, best, lead) >= ENOUGH + log10(count) else None

    def _evidence(self, candidate: Candidate, new: KnownFact, fact: KnownFact, lead: float) -> float:
        """How much speaks for a candidate ending the fact that it is most like."""
        shared = self._weight(new.matter & fact.matter)
        share = shared / max(self._weight(new.matter), TELLING)
        sure = float(replaceable(new.figures, fact.figures))
        if fact.is_event and sure < 2 and candidate.revises != "corrected":
            # A later change does not undo an event.
            return 0.0
        is_named = _names(candidate, new, fact)
        if candidate.revises != "corrected" and not is_named and not _is_of_one_matter(candidate, new, fact, sure):
            return 0.0
        if new.denies != fact.denies and shared >= DENIED * self._weight(fact.matter):
            sure += 1.0
        if candidate.is_instruction:
            if candidate.revises == "none":
                # Another instruction stands beside the first, unless it says that something has changed.
                return 0.0
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
        return sum(map(self._weight_of, words))

    def _weight_of(self, word: str) -> float:
        return 1 / sqrt(1 + self._having[word])


def _reaching_the_next(
    like: NDArray[np.float64], most_added: NDArray[np.float64], known: FactIndex
) -> NDArray[np.intp]:
    """The places whose facts may be as like a statement as the second likeliest sentence, in order."""
    likeliest = np.argpartition(-like, min(FELLOWS, len(like) - 1))[:FELLOWS]
    likeliest = likeliest[np.argsort(-like[likeliest])]
    first = known[likeliest[0]].said
    second = next((float(like[place]) for place in likeliest if known[place].said != first), LEAST_NEXT)
    return np.flatnonzero(like + most_added >= max(second, LEAST_NEXT))


def _names(candidate: Candidate, new: KnownFact, fact: KnownFact) -> bool:
    """Whether a candidate takes back a value that the fact tells; a bare number only of the same matter."""
    wrong = candidate.taken_back
    if wrong is None or not fact.tells(wrong):
        return False
    return not wrong.isdigit() or not new.matter or not new.matter.isdisjoint(fact.matter)


def _is_of_one_matter(candidate: Candidate, new: KnownFact, fact: KnownFact, sure: float) -> bool:
    """Whether both are about the same thing: a day or a bare number could belong to anything.

    A statement of a change may leave out what is counted in the same unit; of a statement that says nothing of
    earlier ones the unit is not enough.
    """
    if candidate.revises == "none":
        return not new.matter or any(f"number of {word}" not in new.figures for word in new.matter & fact.matter)
    return sure == 3 or not new.matter or not new.words.isdisjoint(fact.words)


_OWNER = LazyPattern(
    rf"\b(?:my|his|her|the|a|mi|su|el|la)\s(?:\w+\s)?(?P<owner>{PEOPLE})\b(?!['’]?s?\s{REPORTS})|\b(?P<whose>[^\W\d_]+)(?:['’]s|s['’])\s"
    r"|\b(?P<other>another|others?|(?<!^)also|otr[oa]s?|(?<!^)también)\b",
    re.IGNORECASE,
)


def _is_of_another(new: KnownFact, fact: KnownFact) -> bool:
    """Whether the new value belongs to somebody or something else: "my friend pays £60"."""
    clauses = [match[0] for match in _CLAUSE.finditer(new.said)]
    telling = [clause for clause in clauses if replaceable(figures_in(clause), fact.figures)] or clauses
    owners = [
        match["owner"] or match["whose"] or match["other"] for each in telling for match in _OWNER.finditer(each)
    ]
    return any(fact.words.isdisjoint(terms_of(owner) or (owner.casefold(),)) for owner in owners)


def _succeeds(candidate: Candidate, new: KnownFact, fact: KnownFact) -> bool:
    """Whether somebody takes another's place: "my boss is Ana" after "my boss is Eve"; of several, only "now"."""
    if candidate.slot is None or fact.slot != candidate.slot or "." not in candidate.slot:
        return False
    relation = candidate.slot.rpartition(".")[2]
    if relation not in RELATIONS:
        return False
    is_other = new.words.isdisjoint(frozenset(terms_of(fact.value)))
    return is_other and (relation in ONE_AT_A_TIME or bool(_NOW.search(candidate.content)))
