"""A small conversation and a recorded-style run of it, made by hand: three architectures that disagree."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from memory_backends.base import ChannelScore, Cut, Hit
from memory_backends.stores.trace import (
    AppendChange,
    Change,
    MemoryOperation,
    PromotionDecision,
    SignificanceFactors,
    StoredPoint,
    UpsertChange,
    WriteChange,
)
from memreplay.conversations.models import Conversation, Question, Role, Session, Turn
from memreplay.engine.events import (
    AnswerScored,
    BackendFailed,
    ConversationClosed,
    ConversationOpened,
    Perceived,
    PromotionDecided,
    ReplayEvent,
    StoreOperated,
    TurnPlayed,
)
from memreplay.grading import Outcome
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.recording.writer import RunRecorder
from memreplay.timeline.timeline import Timeline
from tests.stubs.memory import DESCRIPTIONS
from tests.tui.answers import answers

BACKENDS = ("hybrid", "rag", "full_context")
HOSTILE = "[bold red]not red[/] \x1b[31mnor this\x1b[0m \u202eesrever\u202c 日本 👩‍💻 {0.__class__} %s\tend"

_TEXTS: tuple[tuple[int, Role, str], ...] = (
    (1, "user", "Hello. I am Marta Vidal, and I have just joined Nimbus Labs in Barcelona."),
    (1, "assistant", "Welcome aboard, Marta. What will you be working on there?"),
    (1, "user", "A billing service. We run it on PostgreSQL 14, port 6543 because 5432 was taken."),
    (1, "assistant", "Port 6543 it is; keep it in one place, so that nobody has to remember it."),
    (2, "user", "Correction: operations moved us to Girona last week, so no more Barcelona trains."),
    (2, "assistant", "Girona is a pleasant change. Shall I update the commute notes?"),
    (2, "user", f"Please do. And store this line as it is: {HOSTILE}"),
    (2, "assistant", "Stored exactly as you wrote it."),
)


def conversation(conversation_id: str = "tiny-01") -> Conversation:
    """Eight turns in two dated sessions, and three questions."""
    turns = tuple(
        Turn(id=str(number), number=number, session=session, role=role, speaker=None, text=text)
        for number, (session, role, text) in enumerate(_TEXTS, start=1)
    )
    sessions = (
        Session(number=1, id="session_1", date=datetime(2024, 3, 4, 9, 30)),
        Session(number=2, id="session_2", date=datetime(2024, 3, 11, 18, 5), summary="Marta moves to Girona."),
    )
    questions = (
        _question("q1", "early", "What is the user's full name?", "Marta Vidal", ("1",)),
        _question("q2", "early", "Which port does the database listen on?", "6543", ("3",)),
        _question("q3", "middle", "In which city does the user work now?", "Girona", ("5",)),
    )
    return Conversation(id=conversation_id, dataset="tiny", sessions=sessions, turns=turns, questions=questions)


def _question(question_id: str, kind: str, text: str, expected: str, evidence: tuple[str, ...]) -> Question:
    return Question(
        id=question_id,
        kind="recall",
        type=kind,
        text=text,
        expected=expected,
        expected_entities=(expected,),
        evidence=evidence,
        evidence_role="supports",
    )


def timeline(up_to: int | None = None) -> Timeline:
    """The run as a timeline; with ``up_to``, only what happened until that position."""
    known = conversation()
    return Timeline(known, (event for event in events(known) if up_to is None or event.turn <= up_to))


STARTED = "2026-01-05T09:30:00.000Z"
"""When every run of the tests began, since the lists show it."""


def record(path: Path, *conversation_ids: str) -> Path:
    """The run as a recording, of one conversation or of several that are alike."""
    path.write_bytes(_recording(conversation_ids or (conversation().id,)))
    return path


@cache
def _recording(conversation_ids: tuple[str, ...]) -> bytes:
    """The content of a recording, which most tests of the screen begin with: made once."""
    with TemporaryDirectory() as folder:
        return _recorded(Path(folder) / "run.sqlite3", conversation_ids).read_bytes()


def record_changed(path: Path, outcomes: Mapping[tuple[str, str], Outcome], **settings: Any) -> Path:
    """The same run with other settings, and with other outcomes of some answers, by question and backend."""

    def changed(event: ReplayEvent) -> ReplayEvent:
        if not isinstance(event, AnswerScored) or (event.question_id, event.backend) not in outcomes:
            return event
        outcome = outcomes[event.question_id, event.backend]
        score = event.score.model_copy(update={"outcome": outcome, "score": float(outcome == "correct")})
        return event.model_copy(update={"score": score})

    return _recorded(path, (conversation().id,), changed, **settings)


def record_interrupted(path: Path, turn: int) -> Path:
    """The same run as it is saved when its user left after a turn."""

    def until_then(event: ReplayEvent) -> ReplayEvent | None:
        if isinstance(event, ConversationClosed):
            return event.model_copy(update={"status": "cancelled"})
        return event if event.turn <= turn else None

    return _recorded(path, (conversation().id,), until_then, status="interrupted")


def _recorded(
    path: Path,
    conversation_ids: tuple[str, ...],
    change: Callable[[ReplayEvent], ReplayEvent | None] = lambda event: event,
    status: Literal["finished", "interrupted"] = "finished",
    **changed: Any,
) -> Path:
    settings = {"model": [EXTRACTIVE_MODEL], "backend": list(BACKENDS), "top_k": 10, "embedder": "stub-embedder"}
    settings |= changed
    recorder = RunRecorder.start(path, settings, ["tiny"], "fixed")
    for one in map(conversation, conversation_ids):
        recorder.add_conversation(one)
        for event in filter(None, map(change, events(one))):
            recorder.record(event)
    recorder.finish(status)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("update runs set started_at = ?, finished_at = ?", (STARTED, STARTED))
    return path


def events(known: Conversation) -> Iterator[ReplayEvent]:
    """Everything that happens, with fixed durations."""
    name = known.id
    for backend, memory in DESCRIPTIONS.items():
        yield ConversationOpened(conversation=name, turn=0, backend=backend, memory=memory)
    for turn in known.turns:
        yield TurnPlayed(conversation=name, turn=turn.number)
        yield from _hybrid(name, known, turn)
        yield from _rag(name, known, turn)
        yield from _full_context(name, known, turn)
    yield BackendFailed(
        conversation=name, turn=8, backend="rag", phase="recall", error="the collection does not answer"
    )
    yield from answers(known)
    yield _operated(
        name, 9, "hybrid", "redis", "SET", _shared_key(name), WriteChange(value=_shared(name, 8, "resolved"))
    )
    for backend in BACKENDS:
        yield ConversationClosed(conversation=name, turn=9, backend=backend, status="resolved")


def _operated(
    name: str, turn: int, backend: str, store: str, command: str, key: str, change: Change, ms: float = 0.2
) -> StoreOperated:
    operation = MemoryOperation(
        store=store, command=command, key=key, change=change, ms=ms, phase="observe", actor=f"{backend}_agent"
    )
    return StoreOperated(conversation=name, turn=turn, backend=backend, operation=operation)


# ---- hybrid ----------------------------------------------------------------------------------------------------

_SLOTS = {2: ("user.name", "Marta Vidal"), 4: ("database.port", "6543"), 6: ("user.city", "Girona")}


def _personal_key(name: str) -> str:
    return f"personal_state:planner_agent/run-1/{name}/hybrid"


def _shared_key(name: str) -> str:
    return f"shared_state:run-1/{name}/hybrid"


def _hybrid(name: str, known: Conversation, turn: Turn) -> Iterator[ReplayEvent]:
    if turn.role == "user":
        yield Perceived(
            conversation=name,
            turn=turn.number,
            backend="hybrid",
            hits=tuple(_hit(known, earlier, rank) for rank, earlier in enumerate(_before(known, turn), start=1)),
            cut=(),
            tokens=40 * turn.number,
            ms=1.5,
        )
        personal = _personal(name, turn.number)
        yield _operated(
            name, turn.number, "hybrid", "redis", "SET", _personal_key(name), WriteChange(value=personal)
        )
        return
    shared = WriteChange(value=_shared(name, turn.number, "active"))
    yield _operated(name, turn.number, "hybrid", "redis", "SET", _shared_key(name), shared)
    if turn.number in _SLOTS:
        slot, value = _SLOTS[turn.number]
        yield PromotionDecided(
            conversation=name, turn=turn.number, backend="hybrid", decision=_decision(turn, slot, value)
        )


def _personal(name: str, turn: int) -> dict[str, Any]:
    candidates = {"c1": {"content": "the user's name is Marta Vidal", "confidence": 0.95}} if turn < 5 else {}
    return {
        "agent_id": f"planner_agent/run-1/{name}/hybrid",
        "current_task_id": name,
        "scratchpad": {"status": "retrieving", "turn": turn},
        "promotion_candidates": candidates,
        "last_updated": "2024-03-04T09:30:00.000Z",
    }


def _shared(name: str, turn: int, status: str) -> dict[str, Any]:
    said = {slot: {"value": value, "turn": str(at - 1)} for at, (slot, value) in _SLOTS.items() if at <= turn}
    return {
        "event_id": f"run-1/{name}/hybrid",
        "status": status,
        "shared_data": said,
        "participating_agents": ["planner_agent", "consolidation_agent"],
        "created_at": "2024-03-04T09:30:00.000Z",
        "last_updated": "2024-03-04T09:30:00.000Z",
    }


def _decision(turn: Turn, slot: str, value: str) -> PromotionDecision:
    return PromotionDecision(
        candidate_id=f"c{turn.number}",
        content=f"{slot} is {value}",
        slot=slot,
        sources=(str(turn.number - 1),),
        factors=SignificanceFactors(
            certainty=0.95, impact=0.9, age_days=0, accesses=1, age_decay=1, recency_boost=1.03
        ),
        score=0.88 if slot != "database.port" else 0.41,
        threshold=0.6,
        decision="ADD" if slot != "database.port" else "DROP",
        justification="a stated name" if slot != "database.port" else "a number in passing",
    )


# ---- rag and full context --------------------------------------------------------------------------------------


def _rag(name: str, known: Conversation, turn: Turn) -> Iterator[ReplayEvent]:
    if turn.role == "user":
        yield Perceived(
            conversation=name,
            turn=turn.number,
            backend="rag",
            hits=tuple(
                _hit(known, earlier, rank) for rank, earlier in enumerate(_before(known, turn)[:1], start=1)
            ),
            cut=(),
            tokens=20,
            ms=1.0,
        )
        return
    payload = {
        "id": f"point-{turn.number}",
        "content": _exchange_text(known, turn),
        "turn_number": turn.number // 2,
        "turns": [str(turn.number - 1), str(turn.number)],
        "timestamp": "2024-03-04T09:30:00.000Z",
    }
    change = UpsertChange(points=(StoredPoint(id=f"point-{turn.number}", payload=payload),))
    yield _operated(name, turn.number, "rag", "qdrant", "upsert", "goodai_ltm_full_history", change)


def _full_context(name: str, known: Conversation, turn: Turn) -> Iterator[ReplayEvent]:
    key = f"full_history:run-1/{name}/full_context"
    if turn.role == "user":
        cut = (Cut(place=key, turns=("1", "2"), tokens=31),) if turn.number == 7 else ()
        yield Perceived(
            conversation=name, turn=turn.number, backend="full_context", hits=(), cut=cut, tokens=90, ms=0.4
        )
        return
    offset = sum(
        len(_exchange_text(known, earlier).encode()) + 1 for earlier in known.turns[1 : turn.number - 1 : 2]
    )
    change = AppendChange(offset=offset, text=_exchange_text(known, turn) + "\n")
    yield _operated(name, turn.number, "full_context", "redis", "APPEND", key, change)


def _exchange_text(known: Conversation, reply: Turn) -> str:
    return f"User: {known.turns[reply.number - 2].text}\nAI: {reply.text}"


def _before(known: Conversation, turn: Turn) -> list[Turn]:
    return [earlier for earlier in reversed(known.turns[: turn.number - 1]) if earlier.role == "assistant"]


def _hit(known: Conversation, reply: Turn, rank: int) -> Hit:
    return Hit(
        id=f"point-{reply.number}",
        store="qdrant",
        place="hybrid_verbatim",
        rank=rank,
        score=round(0.9 - 0.07 * rank, 3),
        text=_exchange_text(known, reply),
        turns=(str(reply.number - 1), str(reply.number)),
        channels={"dense": ChannelScore(rank=rank, score=0.6), "keyword": ChannelScore(rank=rank + 1, score=2.5)},
        tokens=30,
        in_prompt=rank < 3,
    )
