"""A conversation of any length, and a run of it as three memories leave it: the shapes and sizes of real events.

A real run of 20,000 turns takes the best part of an hour. This one is made in half a minute, and is what the bounds
are measured on; its rates (store commands, candidates and hits a turn) are those of a real run of 2,000 turns.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from memory_backends.base import ChannelScore, Cut, Hit
from memory_backends.records import KNOWLEDGE_COLLECTION, RAG_COLLECTION, VERBATIM_COLLECTION
from memory_backends.stores.trace import (
    AppendChange,
    Change,
    FoundPoint,
    MemoryOperation,
    PatchChange,
    PatchStep,
    Phase,
    PromotionDecision,
    PublishChange,
    ReadChange,
    SearchChange,
    SignificanceFactors,
    StoredPoint,
    UpsertChange,
    WriteChange,
)
from memreplay.conversations.models import Conversation, Question, Session, Turn
from memreplay.engine.events import (
    AnswerScored,
    BackgroundWorkSettled,
    ConversationClosed,
    ConversationOpened,
    Observed,
    Perceived,
    PromotionDecided,
    QuestionAsked,
    ReplayEvent,
    ReplyReceived,
    StoreOperated,
    TurnPlayed,
)
from memreplay.grading import Outcome, RetrievalScore, Score
from memreplay.llm.model import PromptMessage, Reply
from tests.stubs.memory import DESCRIPTIONS

BACKENDS = ("hybrid", "rag", "full_context")
TURNS_A_SESSION = 40
HITS = 10
MISSED = 10
CUT_TURNS_LISTED = 200
CHANNELS = ("dense", "dense_near", "keyword", "keyword_near", "keyword_wide", "session", "speaker")
KEYFRAME_EVERY = 64

_HEADS, _TAILS = ("bra", "cle", "dor", "fim", "gul"), ("ana", "eto", "ilo", "onda", "uve")
_WORDS = [head + tail for head in _HEADS for tail in _TAILS]
_CITIES = ("Girona", "Vic", "Reus", "Olot", "Sitges")


def conversation(turns: int, questions: int = 60) -> Conversation:
    """Dated sessions of 40 turns, each turn of some 150 characters; every tenth says where somebody lives."""
    chance = random.Random(turns)
    said = []
    for number in range(1, turns + 1):
        text = " ".join(chance.choices(_WORDS, k=24)) + f" {number}."
        if number % 10 == 1:
            text += f" My sister moved to {_CITIES[number // 10 % len(_CITIES)]} in year {number}."
        said.append(
            Turn(
                id=str(number),
                number=number,
                session=1 + (number - 1) // TURNS_A_SESSION,
                role="user" if number % 2 else "assistant",
                speaker=None,
                text=text,
            )
        )
    start = datetime(2024, 1, 1, 9)
    sessions = tuple(
        Session(number=number, id=f"session_{number}", date=start + timedelta(days=number))
        for number in range(1, said[-1].session + 1)
    )
    step = max(10, turns // questions // 10 * 10)
    asked = tuple(
        Question(
            id=f"q{number}",
            kind="recall",
            type="fact",
            text=f"Where did the sister move in year {number}?",
            expected=_CITIES[number // 10 % len(_CITIES)],
            evidence=(str(number),),
            evidence_role="supports",
        )
        for number in range(1, turns, step)
    )
    return Conversation(id="synthetic", dataset="synthetic", sessions=sessions, turns=tuple(said), questions=asked)


def events(known: Conversation) -> Iterator[ReplayEvent]:
    """Everything that happens in a run, in order."""
    run = _Run(known)
    for backend in BACKENDS:
        yield ConversationOpened(conversation=known.id, turn=0, backend=backend, memory=DESCRIPTIONS[backend])
    yield from run.opened()
    for turn in known.turns:
        run.turn = turn.number
        yield TurnPlayed(conversation=known.id, turn=turn.number)
        yield from run.heard(turn) if turn.role == "user" else run.observed(turn)
    yield from run.asked()
    for backend in BACKENDS:
        yield ConversationClosed(
            conversation=known.id, turn=len(known.turns) + 1, backend=backend, status="resolved"
        )


class _Run:
    """The memories' states, as far as the next change depends on them."""

    def __init__(self, known: Conversation) -> None:
        self.known = known
        self.turn = 0
        self._chance = random.Random(5)
        self._planner = f"personal_state:planner_agent/run/{known.id}/hybrid"
        self._consolidation = f"personal_state:consolidation_agent/run/{known.id}/hybrid"
        self._shared = f"shared_state:run/{known.id}/hybrid"
        self._log = f"full_history:run/{known.id}/full_context"
        self._states: dict[str, dict[str, Any]] = {}
        self._writes: dict[str, int] = {}
        self._size = 0

    def opened(self) -> Iterator[ReplayEvent]:
        for key in (self._planner, self._consolidation):
            state = {"agent_id": key, "scratchpad": {"status": "waiting"}, "promotion_candidates": {}}
            yield self._written(key, "open", state)
        yield self._written(self._shared, "open", {"status": "active", "shared_data": {}, "last_updated": "0"})

    # ---- the read path ---------------------------------------------------------------------------------

    def heard(self, turn: Turn) -> Iterator[ReplayEvent]:
        for key in (self._planner, self._shared):
            yield self._read(key)
        yield self._searched("hybrid", KNOWLEDGE_COLLECTION, turn, 20)
        yield self._searched("hybrid", VERBATIM_COLLECTION, turn, 100)
        earlier = self._places(HITS + MISSED)
        hits = tuple(self._hit(place, rank, CHANNELS, VERBATIM_COLLECTION) for rank, place in enumerate(earlier, 1))
        noted = [{"id": hit.id, "turns": list(hit.turns)} for hit in hits[:8]]
        steps = {"status": "answering", "turn": turn.id, "query": turn.text[:160], "hits": noted}
        yield self._patched(self._planner, "perceive", {f"/scratchpad/{name}": v for name, v in steps.items()})
        yield self._perceived("hybrid", hits)
        yield self._searched("rag", RAG_COLLECTION, turn, 10)
        dense = tuple(self._hit(place, rank, ("dense",), RAG_COLLECTION) for rank, place in enumerate(earlier, 1))
        yield self._perceived("rag", dense)
        yield self._operated("full_context", "redis", "GET", self._log, ReadChange(found=True, size=9), "perceive")
        cut = tuple(str(number) for number in range(1, turn.number))[:CUT_TURNS_LISTED]
        yield Perceived(
            conversation=self.known.id,
            turn=self.turn,
            backend="full_context",
            hits=(),
            cut=(Cut(place=self._log, turns=cut, tokens=30 * len(cut)),),
            tokens=3000,
            ms=1.0,
        )

    def _perceived(self, backend: str, hits: tuple[Hit, ...]) -> Perceived:
        return Perceived(
            conversation=self.known.id,
            turn=self.turn,
            backend=backend,
            hits=hits[:HITS],
            missed=tuple(hit.model_copy(update={"text": "", "in_prompt": False}) for hit in hits[HITS:]),
            cut=(),
            tokens=1500,
            ms=20.123,
        )

    def _places(self, count: int) -> list[int]:
        """Numbers of assistant turns that end an exchange said before."""
        before = (self.turn - 1) // 2
        return [2 * place for place in self._chance.sample(range(1, before + 1), min(count, before))]

    def _hit(self, place: int, rank: int, channels: tuple[str, ...], collection: str) -> Hit:
        return Hit(
            id=_point("exchange", place),
            store="qdrant",
            place=collection,
            rank=rank,
            score=self._score(),
            text=self._exchange(place),
            turns=(str(place - 1), str(place)),
            channels={
                name: ChannelScore(rank=self._chance.randrange(1, 10_000), score=self._score()) for name in channels
            },
            tokens=60,
        )

    def _score(self) -> float:
        """With six digits, as memories round them."""
        return round(self._chance.random(), 6)

    def _searched(self, backend: str, collection: str, turn: Turn, limit: int) -> StoreOperated:
        found = tuple(
            FoundPoint(id=_point("exchange", place), rank=rank, score=self._score())
            for rank, place in enumerate(self._places(limit), start=1)
        )
        change = SearchChange(query=turn.text, limit=limit, found=found, stored=self.turn // 2)
        return self._operated(backend, "qdrant", "query_points", collection, change, "perceive")

    # ---- the write path --------------------------------------------------------------------------------

    def observed(self, turn: Turn) -> Iterator[ReplayEvent]:
        text = self._exchange(turn.number)
        payload = {
            "id": _point("exchange", turn.number),
            "content": text,
            "turn_number": turn.number // 2,
            "turns": [str(turn.number - 1), str(turn.number)],
            "timestamp": "2024-01-01T09:00:00.000Z",
        }
        said = str(turn.number - 1)
        point = UpsertChange(points=(StoredPoint(id=payload["id"], payload=payload),))
        yield self._operated("hybrid", "qdrant", "upsert", VERBATIM_COLLECTION, point, "observe")
        yield self._read(self._planner, "observe")
        yield from self._staged(said, turn.number % 10 == 2)
        yield self._done("hybrid", Observed)
        yield self._read(self._planner, "consolidate")
        if turn.number % 10 == 2:
            yield from self._consolidated(said)
        yield self._done("hybrid", BackgroundWorkSettled)
        yield self._operated("rag", "qdrant", "upsert", RAG_COLLECTION, point, "observe")
        yield from (self._done("rag", Observed), self._done("rag", BackgroundWorkSettled))
        change = AppendChange(offset=self._size, text=text + "\n")
        self._size += len(change.text.encode())
        yield self._operated("full_context", "redis", "APPEND", self._log, change, "observe")
        yield from (self._done("full_context", Observed), self._done("full_context", BackgroundWorkSettled))

    def _staged(self, said: str, holds_facts: bool) -> Iterator[ReplayEvent]:
        changes: dict[str, Any] = {"/scratchpad/status": "listening", "/scratchpad/turn": str(self.turn)}
        if not holds_facts:
            yield self._patched(self._planner, "observe", changes)
            return
        city = _CITIES[int(said) // 10 % len(_CITIES)]
        for number in (1, 2):
            staged = {"content": f"User: My sister moved to {city}.", "confidence": 0.9, "sources": [said]}
            changes[f"/promotion_candidates/{said}.{number}"] = staged | {"slot": "sister.city", "value": city}
        yield self._patched(self._planner, "observe", changes)
        yield self._read(self._shared, "observe")
        slots = {"/shared_data/sister.city": {"value": city, "turn": said}, "/last_updated": said}
        yield self._patched(self._shared, "observe", slots)
        message = PublishChange(message={"event_id": "e", "changed": ["sister.city"]}, receivers=0)
        yield self._operated("hybrid", "redis", "PUBLISH", f"channel:{self._shared}", message, "observe")

    def _consolidated(self, said: str) -> Iterator[ReplayEvent]:
        for number in (1, 2):
            id_ = _point("fact", int(said) * 10 + number)
            factors = SignificanceFactors(
                certainty=0.9, impact=0.9, age_days=0, accesses=0, age_decay=1, recency_boost=1
            )
            payload = {
                "kind": "fact",
                "id": id_,
                "content": "User: moved",
                "sources": [said],
                "slot": "sister.city",
            }
            change = UpsertChange(
                points=(StoredPoint(id=id_, payload=payload | {"factors": factors.model_dump()}),)
            )
            yield self._operated("hybrid", "qdrant", "upsert", KNOWLEDGE_COLLECTION, change, "consolidate")
            yield PromotionDecided(
                conversation=self.known.id,
                turn=self.turn,
                backend="hybrid",
                decision=PromotionDecision(
                    candidate_id=f"{said}.{number}",
                    content="User: My sister moved.",
                    slot="sister.city",
                    sources=(said,),
                    factors=factors,
                    score=0.81,
                    threshold=0.6,
                    decision="ADD",
                    justification="Rule “city” read a name, and it was not known.",
                    knowledge_id=id_,
                ),
            )
        gone = dict.fromkeys([f"/promotion_candidates/{said}.{number}" for number in (1, 2)], _GONE)
        yield self._patched(self._planner, "consolidate", gone)
        yield self._read(self._consolidation, "consolidate")
        yield self._patched(self._consolidation, "consolidate", {"/scratchpad/last_judged": f"{said}.2"})

    # ---- questions -------------------------------------------------------------------------------------

    def asked(self) -> Iterator[ReplayEvent]:
        for number, question in enumerate(self.known.questions):
            for backend in BACKENDS:
                place: dict[str, Any] = {
                    "conversation": self.known.id,
                    "turn": self.turn,
                    "backend": backend,
                    "model": "stub",
                    "question_id": question.id,
                }
                hits = tuple(
                    self._hit(turn, rank, CHANNELS, VERBATIM_COLLECTION)
                    for rank, turn in enumerate(self._places(HITS), start=1)
                )
                context = "\n".join(hit.text for hit in hits)
                prompt = (PromptMessage(role="user", segments=("Read:\n", context, question.text)),)
                yield QuestionAsked(**place, hits=hits, cut=(), context_tokens=900, prompt=prompt, recall_ms=2.0)
                is_right = (number + BACKENDS.index(backend)) % 3 > 0
                reply = question.expected if is_right else "I cannot tell."
                yield ReplyReceived(**place, reply=Reply(text=reply))
                outcome: Outcome = "correct" if is_right else "wrong"
                score = Score(outcome=outcome, score=float(is_right), predicted=reply)
                yield AnswerScored(**place, score=score, retrieval=RetrievalScore(reciprocal_rank=1.0))

    # ---- what all are made of --------------------------------------------------------------------------

    def _exchange(self, last: int) -> str:
        turns = self.known.turns[max(0, last - 2) : last]
        return "\n".join(f"{self.known.label_of(turn)}: {turn.text}" for turn in turns)

    def _done(self, backend: str, kind: type[Observed] | type[BackgroundWorkSettled]) -> ReplayEvent:
        turns = {"turns": (str(self.turn - 1), str(self.turn))} if kind is Observed else {}
        return kind(conversation=self.known.id, turn=self.turn, backend=backend, ms=1.5, **turns)

    def _read(self, key: str, phase: Phase = "perceive") -> StoreOperated:
        return self._operated("hybrid", "redis", "GET", key, ReadChange(found=True, size=800), phase)

    def _written(self, key: str, phase: Phase, state: dict[str, Any]) -> StoreOperated:
        self._states[key] = state
        return self._operated("hybrid", "redis", "SET", key, WriteChange(value=_copied(state)), phase)

    def _patched(self, key: str, phase: Phase, values: dict[str, Any]) -> StoreOperated:
        state, steps = self._states[key], []
        for path, value in values.items():
            *parents, name = path[1:].split("/")
            holder = state
            for parent in parents:
                holder = holder[parent]
            op = "remove" if value is _GONE else "replace" if name in holder else "add"
            steps.append(
                PatchStep(op=op, path=path, value=None if value is _GONE else value, replaced=holder.get(name))
            )
            if value is _GONE:
                del holder[name]
            else:
                holder[name] = value
        self._writes[key] = self._writes.get(key, 0) + 1
        keyframe = _copied(state) if self._writes[key] % KEYFRAME_EVERY == 0 else None
        return self._operated(
            "hybrid", "redis", "SET", key, PatchChange(steps=tuple(steps), keyframe=keyframe), phase
        )

    def _operated(
        self, backend: str, store: str, command: str, key: str, change: Change, phase: Phase
    ) -> StoreOperated:
        observing = phase in ("observe", "consolidate")
        turns = (str(self.turn - 1), str(self.turn)) if observing else (str(self.turn),)
        operation = MemoryOperation(
            store=store,
            command=command,
            key=key,
            change=change,
            ms=0.312,
            phase=phase,
            actor=f"planner_agent/run/{self.known.id}/{backend}",
            turns=turns if self.turn else (),
        )
        return StoreOperated(conversation=self.known.id, turn=self.turn, backend=backend, operation=operation)


_GONE = object()


def _copied(state: dict[str, Any]) -> dict[str, Any]:
    return {name: dict(value) if isinstance(value, dict) else value for name, value in state.items()}


def _point(kind: str, number: int) -> str:
    return str(uuid5(NAMESPACE_URL, f"{kind} {number}"))
