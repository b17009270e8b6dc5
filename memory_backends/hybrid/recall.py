"""Share one context among the results of the tiers.

The planner's own notes, slots of the shared workspace that the question asks for, and distilled facts have a share
each of the hits and tokens; passages of the conversation have all the rest. Known things come first in the
context, and first among them the planner's standing instructions, whatever is asked. In the ranking they come
last: a rank is a rank of evidence, and they hold no turn verbatim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any

from memory_backends.base import Cut, Hit, Recall, TokenCounter
from memory_backends.hybrid.passages import TURNS_PER_HIT, Passage, passages_of
from memory_backends.hybrid.verbatim import RankedTurn
from memory_backends.hybrid.workspace import values_of
from memory_backends.records import (
    KNOWLEDGE_COLLECTION,
    VERBATIM_COLLECTION,
    KnowledgeDocument,
    PersonalMemoryState,
    SharedWorkspaceState,
)
from memory_backends.resources import MemoryOptions
from memory_backends.retrieval.keyword import terms_of
from memory_backends.retrieval.rendering import BETWEEN_HITS, assemble, date_heading
from memory_backends.stores.qdrant import QDRANT, ScoredPoint
from memory_backends.stores.redis import REDIS
from memory_backends.text import folded_words

DateOf = Callable[[str], datetime | None]
"""The id of a turn to the date on which it was said."""

LEAST_TOP_K_TO_SHARE = 3
"""Hits from which a tier has a place, however small its share is; below, all are passages."""

FIRST = 0
"""The turn number of what precedes all passages."""


@dataclass(frozen=True)
class TierResults:
    """Results of the tiers for a question, best first; empty if a tier is off."""

    question: str
    planner: PersonalMemoryState
    workspace: SharedWorkspaceState
    facts: Sequence[ScoredPoint]
    turns: Sequence[RankedTurn]
    date_of: DateOf

    @property
    def nothing_is_stored(self) -> bool:
        """Return whether memory is empty."""
        return not (self.turns or self.facts or self.workspace.shared_data)


@dataclass(frozen=True)
class RecallLimits:
    """Limits of a recall: hits of all tiers together, tokens, the share of each tier, and missed candidates."""

    top_k: int
    context_tokens: int
    shares: Mapping[str, float]
    depth: int
    facts_per_hit: int = 1

    @classmethod
    def of(cls, options: MemoryOptions, top_k: int, context_tokens: int, depth: int) -> RecallLimits:
        """Limits with the tiers that are on. Where there are no passages, distilled facts have all that they leave.

        A hit then holds as many facts of a day as a passage holds turns.
        """
        shares = {tier: share if options.keeps(tier) else 0.0 for tier, share in options.shares.items()}
        if options.keeps("verbatim"):
            return cls(top_k, context_tokens, shares, depth)
        if shares.get("knowledge"):
            shares["knowledge"] = 1.0 - sum(share for tier, share in shares.items() if tier != "knowledge")
        return cls(top_k, context_tokens, shares, depth, facts_per_hit=TURNS_PER_HIT)

    @property
    def facts(self) -> int:
        """Distilled facts that are looked at."""
        return max(KNOWLEDGE_DEPTH, 2 * self.top_k * self.facts_per_hit)

    @property
    def turns(self) -> int:
        """Return turns that are looked at: for passages, and for what they leave out."""
        return self.top_k * TURNS_PER_HIT + self.depth

    def hits_of(self, tier: str) -> int:
        """Most hits of a tier; at least one for that with most of the room, as facts have without passages."""
        share = self.shares.get(tier, 0.0)
        has_a_place = share > 0.5 or (share and self.top_k >= LEAST_TOP_K_TO_SHARE)
        return max(int(share * self.top_k), 1 if has_a_place else 0)

    @property
    def known(self) -> int:
        """Most hits of all tiers but the passages: their shares together, and at least one.

        Else each would round up to a hit of its own, and leave none of three to the passages.
        """
        return min(self.top_k, max(1, ceil(round(self.top_k * sum(self.shares.values()), 6))))

    def tokens_of(self, tier: str) -> float:
        """Most tokens of a tier."""
        return self.shares.get(tier, 0.0) * self.context_tokens


def compose(results: TierResults, limits: RecallLimits, count_tokens: TokenCounter) -> Recall:
    """Return a context of at most ``limits.top_k`` hits of all tiers together and ``limits.context_tokens``
    tokens.
    """
    standing = _standing(results, limits, count_tokens)
    obeyed = {turn for hit in standing for turn in hit.sources}
    asked_for = [hit for hit in slot_hits(results.question, results.workspace) if not obeyed >= set(hit.sources)]
    slots = _affordable(asked_for, "shared", limits, count_tokens)
    passages = _passages(results, limits, [*standing, *slots], count_tokens)
    covered = {
        *obeyed,
        *(turn for passage in passages if passage.has_room for turn in passage.turns),
        *(turn for slot in slots for turn in slot.sources),
    }
    # Where facts stand for the conversation, an instruction or a slot covers no other fact of its turn.
    said_already = covered if limits.facts_per_hit == 1 else set()
    facts, no_room = _fitting_facts(_fact_groups(results, said_already, limits), limits, count_tokens)
    covered |= {turn for fact in facts for turn in fact.sources}
    noted = [*standing, *note_hits(results.question, results.planner, covered)]
    notes = _affordable(noted, "personal", limits, count_tokens)
    known = [*notes, *slots, *facts][: limits.known]
    if len(known) != len(standing) + len(slots):
        passages = _passages(results, limits, known, count_tokens)
    said = [_passage_hit(passage) for passage in passages]
    numbers = {hit.id: FIRST for hit in known} | {passage.id: passage.turn_number for passage in passages}
    # Known things are put in first, so that the share that was reserved for them is theirs.
    recalled = assemble([*known, *said], numbers, limits.context_tokens, count_tokens)
    ranked = [*recalled.hits[len(known) :], *recalled.hits[: len(known)]]
    ranked += no_room[: limits.top_k - len(ranked)]
    return recalled.model_copy(
        update={
            "hits": tuple(hit.model_copy(update={"rank": n}) for n, hit in enumerate(ranked, start=1)),
            "missed": _missed(results.turns, passages, len(ranked), limits.depth),
            "cut": (*recalled.cut, *_left_out(passages, count_tokens), *_cut_facts(no_room)),
            "why_empty": None if ranked else "nothing_stored" if results.nothing_is_stored else "below_threshold",
        }
    )


def _standing(results: TierResults, limits: RecallLimits, count_tokens: TokenCounter) -> list[Hit]:
    """Return the standing instructions that fit into the planner's share: one hit, or none."""
    hit = standing_hit(results.planner, lambda hit: bool(_affordable([hit], "personal", limits, count_tokens)))
    return [] if hit is None else [hit]


def _left_out(passages: Sequence[Passage], count_tokens: TokenCounter) -> list[Cut]:
    """Return turns that the passages would have, if there were room."""
    messages = [message for passage in passages for message in passage.left_out]
    if not messages:
        return []
    turns = tuple(message.turn_id for message in messages)
    return [
        Cut(place=VERBATIM_COLLECTION, turns=turns, tokens=sum(count_tokens(message.line) for message in messages))
    ]


def _passages(
    results: TierResults, limits: RecallLimits, known: Sequence[Hit], count_tokens: TokenCounter
) -> list[Passage]:
    """Passages in the hits and tokens that the known things leave."""
    context_tokens = limits.context_tokens - _cost(known, count_tokens)
    return passages_of(results.turns, max(limits.top_k - len(known), 0), context_tokens, count_tokens)


def _affordable(hits: Sequence[Hit], tier: str, limits: RecallLimits, count_tokens: TokenCounter) -> list[Hit]:
    """Return the first hits of a tier that fit into its share."""
    most_hits, most_tokens = limits.hits_of(tier), limits.tokens_of(tier)
    taken: list[Hit] = []
    for hit in hits[: 2 * most_hits]:
        if len(taken) < most_hits and _cost([*taken, hit], count_tokens) <= most_tokens:
            taken.append(hit)
    return taken


def _fact_groups(results: TierResults, covered: Set[str], limits: RecallLimits) -> list[FactGroup]:
    return fact_groups(results.question, results.facts, results.date_of, covered, limits.facts_per_hit)


def _fitting_facts(
    groups: Sequence[FactGroup], limits: RecallLimits, count_tokens: TokenCounter
) -> tuple[list[Hit], list[Hit]]:
    """Return the hits of facts that fit into their share, and those of facts that only the tokens leave out.

    Of a group that does not fit as a whole, the facts that do are taken, best first.
    """
    most_hits, most_tokens = limits.hits_of("knowledge"), limits.tokens_of("knowledge")
    taken: list[Hit] = []
    left_out: list[Hit] = []
    for place, group in enumerate(groups[: 2 * most_hits]):
        if len(taken) == most_hits:
            break
        fitting: list[KnowledgeDocument] = []
        for fact in group.facts:
            if _cost([*taken, group.hit_of([*fitting, fact])], count_tokens) <= most_tokens:
                fitting.append(fact)
        if fitting:
            taken.append(group.hit_of(fitting))
        if place < most_hits and (rest := [fact for fact in group.facts if fact not in fitting]):
            hit = group.hit_of(rest)
            left_out.append(hit.model_copy(update={"tokens": count_tokens(hit.text), "in_prompt": False}))
    return taken, left_out


def _cut_facts(left_out: Sequence[Hit]) -> list[Cut]:
    """No turn is named: these facts are not the words of any."""
    tokens = sum(hit.tokens for hit in left_out)
    return [Cut(place=KNOWLEDGE_COLLECTION, turns=(), tokens=tokens)] if left_out else []


def _cost(hits: Sequence[Hit], count_tokens: TokenCounter) -> int:
    return sum(count_tokens(hit.text + BETWEEN_HITS) for hit in hits)


def _passage_hit(passage: Passage) -> Hit:
    return Hit(
        id=passage.id,
        store=QDRANT,
        place=VERBATIM_COLLECTION,
        rank=1,
        score=passage.best.score,
        text=passage.text,
        turns=passage.turns,
        sources=passage.turns_in_part,
        excerpts=passage.excerpts,
        channels=passage.best.channels,
    )


def _missed(turns: Sequence[RankedTurn], passages: Sequence[Passage], hits: int, depth: int) -> tuple[Hit, ...]:
    """Return the best turns that are part of no passage."""
    chosen = {place for passage in passages for place in passage.members}
    below = [turn for turn in turns[: depth + len(chosen)] if turn.place not in chosen][:depth]
    return tuple(
        Hit(
            id=f"{turn.exchange_id}#{turn.message.turn_id}",
            store=QDRANT,
            place=VERBATIM_COLLECTION,
            rank=rank,
            score=turn.score,
            text="",
            turns=(turn.message.turn_id,),
            channels=turn.channels,
            in_prompt=False,
        )
        for rank, turn in enumerate(below, start=hits + 1)
    )


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
    """The value of one slot as a line, with the turns that said it."""

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
"""Bonus, in cosine, of a fact that has all words of the question."""

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
        """Return a hit of some of the facts, under the date if the conversation has one."""
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
    """Return the share of the question's words that a text has."""
    return len(asked & set(terms_of(text))) / len(asked) if asked else 0.0


def standing_hit(planner: PersonalMemoryState, fits: Callable[[Hit], bool]) -> Hit | None:
    """Return the planner's standing instructions, whatever the question is: as many of the latest as fit."""
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
