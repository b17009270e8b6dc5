"""The consolidation agent: judges staged candidates and distils the significant ones into long-term memory.

Each candidate is scored (CIAR) and becomes one of four things. ADD: it is new. UPDATE: it takes the place of a
fact that it corrects, which stays stored. NO-OP: it was known, and its turns are added to the known fact's
sources. DROP: it is not significant enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import exp, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_backends.base import Clock, Message, Namespace, TextEmbedder
from memory_backends.hybrid.candidates import LONGEST_CONTENT, Candidate, is_instruction
from memory_backends.hybrid.known_facts import KnownFacts
from memory_backends.hybrid.planner import PlannerAgent, staged_candidates
from memory_backends.hybrid.rules.matching import is_of_a_kind, same_value, says_no_more
from memory_backends.hybrid.verbatim import MOST_SENTENCES_READ
from memory_backends.hybrid.workspace import SharedWorkspace
from memory_backends.records import KNOWLEDGE_COLLECTION, KnowledgeDocument, PersonalMemoryState, iso_utc
from memory_backends.resources import MemoryOptions
from memory_backends.retrieval.embedding import vectors_of
from memory_backends.stores.qdrant import KnowledgeStore, Point
from memory_backends.stores.redis import OperatingMemory
from memory_backends.stores.trace import MemoryTrace, PromotionDecision, SignificanceFactors
from memory_backends.text import folded_words, numbers_in, sentences_of

PROMOTION_THRESHOLD = 0.6
DECAY_PER_DAY = 0.1
BOOST_PER_LOG_ACCESS = 0.05
MOST_BOOST = 1.3

_SECONDS_A_DAY = 86_400.0


def age_in_days(said_at: datetime | None, now: datetime | None) -> float:
    """Days between two dates of the conversation; 0 where either is unknown, or where ``now`` is the earlier."""
    if said_at is None or now is None:
        return 0.0
    return max(0.0, (now - said_at).total_seconds() / _SECONDS_A_DAY)


def factors_of(certainty: float, impact: float, age_days: float, accesses: int) -> SignificanceFactors:
    """Return the factors of a significance. ``certainty`` and ``impact`` lie in 0..1; ``accesses`` counts
    mentions.
    """
    return SignificanceFactors(
        certainty=certainty,
        impact=impact,
        age_days=age_days,
        accesses=accesses,
        age_decay=exp(-DECAY_PER_DAY * age_days),
        recency_boost=min(MOST_BOOST, 1.0 + BOOST_PER_LOG_ACCESS * log(1 + accesses)),
    )


def significance(factors: SignificanceFactors) -> float:
    """Return the score: the product of the factors."""
    return factors.certainty * factors.impact * factors.age_decay * factors.recency_boost


NEAR_DUPLICATE = 0.95
"""Cosine similarity from which two facts without a slot are the same, if they also name the same numbers."""

NEIGHBOURS = 5
"""Facts among which a near duplicate is looked for."""

OF_MANY_THINGS = "deadline"
"""The slot whose values may be of different things."""

MOST_REMEMBERED_DROPS = 32

MOST_SOURCES = 8
"""Turns that a fact names as its sources: the first that said it, and the latest."""


class ConsolidationAgent:
    """Owns ``personal_state:{agent_id}`` of its own, where it keeps its tally and what it dropped how often."""

    def __init__(
        self,
        memory: OperatingMemory,
        knowledge: KnowledgeStore,
        planner: PlannerAgent,
        workspace: SharedWorkspace,
        embedder: TextEmbedder,
        trace: MemoryTrace,
        namespace: Namespace,
        clock: Clock,
        options: MemoryOptions,
    ) -> None:
        self._options = options
        self._memory = memory
        self._knowledge = knowledge
        self._planner = planner
        self._workspace = workspace
        self._embedder = embedder
        self._trace = trace
        self._namespace = namespace
        self._clock = clock
        self._current: dict[str, str] = {}
        self._facts = KnownFacts()
        self.agent_id = namespace.agent_id("consolidation")
        self.key = PersonalMemoryState.key(self.agent_id)

    async def consolidate(self, now: datetime | None) -> None:
        """Judge everything that is staged. ``now`` is the conversation's own date, if it has one."""
        candidates = staged_candidates(await self._planner.read())
        if not candidates:
            return
        state = await self._own_state()
        dropped: dict[str, int] = state.scratchpad.get("dropped", {})
        judged = [(candidate, self._factors(candidate, dropped, now)) for candidate in candidates]
        worthy = [candidate for candidate, factors in judged if self._is_worthy(factors)]
        vectors = await self._vectors(worthy)
        tally: dict[str, int] = dict(state.scratchpad.get("decisions", {}))
        for candidate, factors in judged:
            vector = vectors.get(candidate.id)
            if vector is None:
                decision = _decision(candidate, factors, "DROP", self._why_dropped())
                dropped = _with_drop(dropped, candidate)
            else:
                decision = await self._promote(candidate, factors, vector)
            self._trace.decide(decision)
            tally[decision.decision] = tally.get(decision.decision, 0) + 1
        await self._planner.unstage([candidate.id for candidate in candidates])
        await self._workspace.join(self.agent_id)
        scratchpad = {"status": "idle", "last_judged": candidates[-1].id, "decisions": tally, "dropped": dropped}
        updated = {"scratchpad": scratchpad, "last_updated": self._clock()}
        await self._memory.write_state(self.key, state.model_copy(update=updated))

    def _is_worthy(self, factors: SignificanceFactors) -> bool:
        return self._options.keeps("promotion") and significance(factors) >= PROMOTION_THRESHOLD

    def _why_dropped(self) -> str:
        on = self._options.keeps("promotion")
        return "it is not significant enough" if on else "promotion is switched off"

    async def _own_state(self) -> PersonalMemoryState:
        state = await self._memory.read_state(self.key, PersonalMemoryState)
        return state or PersonalMemoryState(
            agent_id=self.agent_id, current_task_id=self._namespace.conversation_id, last_updated=self._clock()
        )

    def _factors(self, candidate: Candidate, dropped: dict[str, int], now: datetime | None) -> SignificanceFactors:
        age, accesses = age_in_days(candidate.said_at, now), dropped.get(_gist(candidate), 0)
        # What was dropped before is not known, so that saying it again is no repetition.
        impact = candidate.impact if accesses else round(candidate.impact * candidate.news, 4)
        return factors_of(candidate.certainty, impact, age, accesses)

    async def _vectors(self, candidates: Sequence[Candidate]) -> dict[str, NDArray[np.float32]]:
        if not candidates:
            return {}
        texts = [candidate.content for candidate in candidates]
        vectors = await vectors_of(self._embedder, texts)
        return {candidate.id: vector for candidate, vector in zip(candidates, vectors, strict=True)}

    async def _promote(
        self, candidate: Candidate, factors: SignificanceFactors, vector: NDArray[np.float32]
    ) -> PromotionDecision:
        id_ = self._knowledge_id(candidate)
        known = await self._held([id_, self._current.get(candidate.slot or "")])
        current = [fact for fact in known if fact.superseded_by is None]
        same = next((fact for fact in current if fact.id == id_ or _repeats(candidate, fact)), None)
        replaced = next(
            (fact for fact in current if fact is not same and self._is_of(fact, candidate, vector)), None
        )
        if not known and candidate.slot is None:
            same = await self._duplicate(candidate, vector)
        ended = [replaced] if replaced is not None else []
        if same is None and replaced is None:
            ended = await self._ended_by(candidate, vector)
            replaced = next(iter(ended), None)
            if candidate.slot is None and replaced is not None and _puts_right(candidate, replaced):
                candidate = candidate.model_copy(update={"slot": replaced.slot})
        if not self._options.keeps("supersession"):
            replaced = None
        if same is not None:
            return await self._merge(candidate, factors, same)
        if any(fact.id == id_ for fact in known):
            # A value that was corrected and holds again is a fact of its own: the old one keeps its dates.
            id_ = self._namespace.point_id(id_, candidate.turn_number)
        await self._write(candidate, factors, vector, id_)
        if replaced is None:
            return _decision(candidate, factors, "ADD", "it was not known", knowledge_id=id_)
        over = {"valid_to": iso_utc(candidate.said_at or self._clock()), "superseded_by": id_}
        for fact in ended:
            await self._knowledge.change_payload(KNOWLEDGE_COLLECTION, fact.id, over)
            self._facts.end(fact.id)
            if is_instruction(fact.slot):
                await self._planner.withdraw(fact.value or "", fact.said_by)
        why = f"it {'corrects' if candidate.is_correction else 'takes the place of'} {replaced.value!r}"
        return _decision(candidate, factors, "UPDATE", why, knowledge_id=id_, superseded_id=replaced.id)

    async def _held(self, ids: Sequence[str | None]) -> list[KnowledgeDocument]:
        wanted = list(dict.fromkeys(id_ for id_ in ids if id_))
        held = await self._knowledge.fetch(KNOWLEDGE_COLLECTION, wanted)
        return [KnowledgeDocument.model_validate(point.payload) for point in held]

    def _is_of(self, fact: KnowledgeDocument, candidate: Candidate, vector: NDArray[np.float32]) -> bool:
        """Return whether the fact in the candidate's slot is of its matter: many things have a deadline."""
        if candidate.slot != OF_MANY_THINGS or candidate.is_correction:
            return True
        return self._facts.may_be_of_one_matter(fact.id, candidate, vector)

    async def _duplicate(self, candidate: Candidate, vector: NDArray[np.float32]) -> KnowledgeDocument | None:
        """Return the current fact that says the same in nearly the same words."""
        found = await self._knowledge.search(KNOWLEDGE_COLLECTION, candidate.content, vector, NEIGHBOURS)
        for point in found:
            fact = KnowledgeDocument.model_validate(point.payload)
            if point.score < NEAR_DUPLICATE:
                break
            if fact.superseded_by is None and numbers_in(fact.content) == numbers_in(candidate.content):
                return fact
        return None

    async def _ended_by(self, candidate: Candidate, vector: NDArray[np.float32]) -> list[KnowledgeDocument]:
        """Return the current facts that the candidate ends: the one whose slot holds what it takes back, or
        others.
        """
        if candidate.taken_back:
            for fact in await self._held(list(self._current.values())):
                if fact.superseded_by is None and _puts_right(candidate, fact):
                    return [fact]
        return await self._held(self._facts.ended_by(candidate, vector))

    async def _merge(
        self, candidate: Candidate, factors: SignificanceFactors, known: KnowledgeDocument
    ) -> PromotionDecision:
        """Add the candidate's turns to a known fact's sources; once, however often it is observed.

        Of more than :data:`MOST_SOURCES` the first and the latest are kept; ``accesses`` counts them all.
        """
        if not set(candidate.sources) <= set(known.sources):
            fields = {
                "sources": _bounded([*known.sources, *candidate.sources]),
                "accesses": known.accesses + 1,
            }
            await self._knowledge.change_payload(KNOWLEDGE_COLLECTION, known.id, fields)
        return _decision(candidate, factors, "NO-OP", "it was known already", knowledge_id=known.id)

    async def _write(
        self, candidate: Candidate, factors: SignificanceFactors, vector: NDArray[np.float32], id_: str
    ) -> None:
        now = self._clock()
        document = KnowledgeDocument(
            id=id_,
            content=candidate.content,
            slot=candidate.slot,
            value=candidate.value,
            said_by=candidate.said_by,
            sources=list(candidate.sources),
            confidence=candidate.certainty,
            significance=significance(factors),
            factors=factors.model_dump(),
            justification=candidate.justification or f"rule “{candidate.rule}”",
            accesses=factors.accesses,
            created_at=now,
            valid_from=candidate.said_at or now,
        )
        point = Point(id=id_, vector=vector, payload=document.model_dump(mode="json"))
        await self._knowledge.upsert(KNOWLEDGE_COLLECTION, [point])
        self._facts.add(id_, candidate, vector)
        if candidate.slot is not None and not candidate.several:
            self._current[candidate.slot] = id_

    def _knowledge_id(self, candidate: Candidate) -> str:
        said = candidate.value if candidate.slot else candidate.content
        return self._namespace.point_id("fact", candidate.slot or "", folded_words(said) or said)


def _repeats(candidate: Candidate, fact: KnowledgeDocument) -> bool:
    return candidate.slot is not None and says_no_more(candidate.value, fact.value or "")


def _puts_right(candidate: Candidate, fact: KnowledgeDocument) -> bool:
    """Return whether a candidate without a slot takes back just the value that the slot of a fact holds."""
    wrong = candidate.taken_back
    return bool(
        wrong
        and not candidate.retracts
        and fact.slot
        and fact.value
        and same_value(fact.value, wrong)
        and is_of_a_kind(candidate.value, fact.value)
    )


def _bounded(sources: Sequence[str]) -> list[str]:
    first, *rest = dict.fromkeys(sources)
    return [first, *rest[-(MOST_SOURCES - 1) :]]


def _gist(candidate: Candidate) -> str:
    return f"{candidate.slot or candidate.rule}: {folded_words(candidate.value)}"[:60]


def _with_drop(dropped: dict[str, int], candidate: Candidate) -> dict[str, int]:
    """Return the tally of drops with one more, the latest last; the oldest are forgotten."""
    gist = _gist(candidate)
    rest = {key: count for key, count in dropped.items() if key != gist}
    latest = {**rest, gist: dropped.get(gist, 0) + 1}
    return dict(list(latest.items())[-MOST_REMEMBERED_DROPS:])


def _decision(
    candidate: Candidate,
    factors: SignificanceFactors,
    decision: Any,
    why: str,
    *,
    knowledge_id: str | None = None,
    superseded_id: str | None = None,
) -> PromotionDecision:
    return PromotionDecision(
        candidate_id=candidate.id,
        content=candidate.content,
        slot=candidate.slot,
        sources=candidate.sources,
        factors=factors,
        score=significance(factors),
        threshold=PROMOTION_THRESHOLD,
        decision=decision,
        justification=f"{candidate.reading}, and {why}.",
        knowledge_id=knowledge_id,
        superseded_id=superseded_id,
    )


def decision_on_the_rest(message: Message) -> PromotionDecision | None:
    """Return the decision to read no more than the beginning of a very long turn, such as a pasted log.

    None where the turn is read to its end.
    """
    sentences = sentences_of(message.text)
    unread = len(sentences) - MOST_SENTENCES_READ
    if unread <= 0:
        return None
    return PromotionDecision(
        candidate_id=f"{message.turn_number}.rest",
        content=f"{message.label}: {sentences[MOST_SENTENCES_READ]}"[:LONGEST_CONTENT],
        slot=None,
        sources=(message.turn_id,),
        factors=factors_of(0.0, 0.0, 0.0, 0),
        score=0.0,
        threshold=PROMOTION_THRESHOLD,
        decision="DROP",
        justification=(
            f"Of the {len(sentences):,} sentences of this turn the first {MOST_SENTENCES_READ:,} were looked at,"
            f" and the other {unread:,}, from this one on, were not. The turn is stored whole."
        ),
    )
