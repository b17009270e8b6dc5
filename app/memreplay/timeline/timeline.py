"""A conversation's events, indexed by position: what every panel reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memory_backends.base import Snapshot
from memory_backends.stores.trace import Change, Extraction, MemoryOperation, PromotionDecision
from memreplay.conversations.exchanges import exchanges_of
from memreplay.conversations.models import Conversation, Question
from memreplay.engine.agent_session import grown
from memreplay.engine.events import (
    AnswerScored,
    BackendFailed,
    ClockSet,
    FactsExtracted,
    MessageSaid,
    Perceived,
    PromotionDecided,
    QuestionAsked,
    ReplayEvent,
    ReplyReceived,
    StoreOperated,
    TestBegan,
    TestScored,
)
from memreplay.timeline.event_store import EventArchive, MemoryArchive, Note, Write, note_of, operation_of
from memreplay.timeline.fold import MISSING, CollectionHistory, LazySequence, LogHistory, Piece, StateHistory
from memreplay.timeline.ledger import Ledger, Track
from memreplay.timeline.markers import Markers


@dataclass(frozen=True)
class AskKey:
    """Which ask an event belongs to."""

    backend: str
    model: str
    question_id: str
    repeat: int
    turn: int
    by_hand: bool


@dataclass
class Answer:
    """One ask as far as it has come: asked, replied, scored."""

    asked: QuestionAsked
    received: ReplyReceived | None = None
    scored: AnswerScored | None = None


class Asks:
    """All asks of a conversation, in the order in which they were asked."""

    def __init__(self) -> None:
        self._answers: dict[AskKey, Answer] = {}

    def apply(self, event: QuestionAsked | ReplyReceived | AnswerScored) -> None:
        """An ask that begins, or what came of one that has begun."""
        match event:
            case QuestionAsked():
                self._answers[ask_key(event)] = Answer(asked=event)
            case ReplyReceived():
                self._answers[ask_key(event)].received = event
            case AnswerScored():
                self._answers[ask_key(event)].scored = event

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers.values())


def ask_key(event: QuestionAsked | ReplyReceived | AnswerScored) -> AskKey:
    """The ask of an event."""
    return AskKey(event.backend, event.model, event.question_id, event.repeat, event.turn, event.by_hand)


class Timeline:
    """The events of one conversation, and what each store held at each position.

    The conversation of a run of tests grows with them; ``tests`` are its tests' beginnings and scores.

    Events are appended in the order in which they happened. ``reached`` is the last position with an event:
    the frontier of a live replay, the end of a finished one. ``marks`` are what is worth a tick at a position.
    """

    def __init__(
        self, conversation: Conversation, events: Iterable[ReplayEvent] = (), archive: EventArchive | None = None
    ) -> None:
        self.conversation = conversation
        self.archive: EventArchive = archive or MemoryArchive()
        self.marks = Markers(conversation)
        self.backends: list[str] = []
        self.reached = 0
        self._states: dict[str, dict[str, StateHistory]] = defaultdict(dict)
        self._logs: dict[str, dict[str, LogHistory]] = defaultdict(dict)
        self._collections: dict[str, dict[str, CollectionHistory]] = defaultdict(dict)
        self._perceived: dict[str, Track] = defaultdict(Track)
        self._extracted: dict[str, Track] = defaultdict(Track)
        self._failed: dict[str, Track] = defaultdict(Track)
        self._ledgers: dict[str, Ledger] = {}
        self._asks = Asks()
        self.tests: list[TestBegan | TestScored] = []
        self._observed: dict[int, dict[str, int]] = {}
        for note in self.archive.notes():
            self._take_in(note)
        for event in events:
            self.append(event)

    @property
    def last_turn(self) -> int:
        """Number of turns of the conversation."""
        return len(self.conversation.turns)

    def rest_in(self, archive: EventArchive) -> None:
        """Let all events that are still to come rest there. Nothing may have happened yet."""
        assert not self.backends
        self.archive = archive

    def append(self, event: ReplayEvent) -> None:
        """Take in what happened next."""
        self._take_in(note_of(self.archive.keep(event), event))

    def _take_in(self, note: Note) -> None:
        self.reached = max(self.reached, note.turn)
        if note.backend is None:
            return
        if note.backend not in self.backends:
            self.backends.append(note.backend)
        self.marks.apply(note)
        match note.kind:
            case "store_operated":
                if note.write is not None:
                    self._fold(note, note.backend, note.write)
            case "promotion_decided":
                assert note.verdict is not None
                self._ledger(note.backend).add(note.turn, note.ref, note.verdict)
            case "perceived":
                self._perceived[note.backend].add(note.turn, note.ref)
            case "facts_extracted":
                self._extracted[note.backend].add(note.turn, note.ref)
            case "backend_failed":
                self._failed[note.backend].add(note.turn, note.ref)
            case "question_asked" | "reply_received" | "answer_scored":
                self._take_in_whole(self.archive.event(note.ref))
            case "message_said" | "clock_set" | "test_began" | "test_scored":
                self._take_in_whole(self.archive.event(note.ref))
            case _:
                pass

    def _fold(self, note: Note, backend: str, write: Write) -> None:
        key = write.key
        match write.store, write.kind:
            case "redis", "append":
                self._logs[backend].setdefault(key, LogHistory()).add(note.turn, note.ref, write.offset, write.text)
            case "redis", "remove" if key in self._logs[backend]:
                self._logs[backend][key].clear(note.turn, note.ref)
                if key in self._states[backend]:
                    self._states[backend][key].add(note.turn, note.ref, write.pointers, whole=write.whole)
            case "redis", _:
                history = self._states[backend].get(key)
                if history is None:
                    history = self._states[backend][key] = StateHistory(self.change)
                history.add(note.turn, note.ref, write.pointers, whole=write.whole)
            case _:
                points = self._collections[backend].get(key)
                if points is None:
                    points = self._collections[backend][key] = CollectionHistory(self.change)
                change = points.remove if write.kind == "remove" else points.add
                change(note.turn, note.ref, write.ids)

    def _take_in_whole(self, event: ReplayEvent) -> None:
        match event:
            case QuestionAsked() | ReplyReceived() | AnswerScored():
                self._asks.apply(event)
            case MessageSaid(message=said):
                turns = self.conversation.turns
                self.conversation = grown(self.conversation, event)
                self._observed.pop(said.session, None)
                if not turns or turns[-1].session != said.session:
                    self.marks.begin_session(said.number, said.session, self.conversation.date_of(said))
            case ClockSet():
                self.conversation = grown(self.conversation, event)
            case TestBegan() | TestScored():
                self.tests.append(event)
            case _:
                pass

    def _ledger(self, backend: str) -> Ledger:
        return self._ledgers.setdefault(backend, Ledger(self._decision))

    # ---- what stands at a position -------------------------------------------------------------------------

    def events_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """Everything that one backend did at exactly this position, in order."""
        return self.archive.at(backend, turn)

    def operations_at(self, backend: str, turn: int) -> Sequence[MemoryOperation]:
        """The store commands of one backend at exactly this position, in order, loaded as they are read."""
        return LazySequence(self.archive.operation_at(backend, turn), operation_of)

    def failures_at(self, backend: str, turn: int) -> list[BackendFailed]:
        """What one backend could not do at exactly this position."""
        events = (self.archive.event(ref) for ref in self._failed[backend].refs_at(turn))
        return [event for event in events if isinstance(event, BackendFailed)]

    def state_keys(self, backend: str) -> list[str]:
        """Redis keys of one backend that hold a JSON state at some position, in order of their first write."""
        return list(self._states[backend])

    def state(self, backend: str, key: str) -> StateHistory:
        """The history of a state; empty where there is no such key."""
        return self._states[backend].get(key) or StateHistory(self.change)

    def state_at(self, backend: str, key: str, turn: int) -> Any:
        """The value of a state; :data:`~memreplay.timeline.fold.MISSING` where the key does not exist yet."""
        return self.state(backend, key).value_at(turn)

    def log_keys(self, backend: str) -> list[str]:
        """Redis keys of one backend that hold a log."""
        return list(self._logs[backend])

    def log(self, backend: str, key: str) -> LogHistory:
        """The history of a log; empty where there is no such key."""
        return self._logs[backend].get(key) or LogHistory()

    def log_at(self, backend: str, key: str, turn: int) -> Sequence[Piece]:
        """The pieces of a log, each with the position at which it was appended."""
        return self.log(backend, key).pieces_at(turn)

    def log_size_at(self, backend: str, key: str, turn: int) -> int:
        """Bytes of a log."""
        return self.log(backend, key).size_at(turn)

    def collections(self, backend: str) -> list[str]:
        """Qdrant collections of one backend."""
        return list(self._collections[backend])

    def collection(self, backend: str, name: str) -> CollectionHistory:
        """The history of a collection."""
        return self._collections[backend].get(name) or CollectionHistory(self.change)

    def perceived_at(self, backend: str, turn: int) -> Perceived | None:
        """The latest read path of an ordinary turn, at or before this position."""
        ref = self._perceived[backend].latest(turn)
        return None if ref is None else self.perceived(ref)

    def perceived_track(self, backend: str) -> Track:
        """Where all read paths of ordinary turns are."""
        return self._perceived[backend]

    def perceived(self, ref: int) -> Perceived:
        """A read path by its reference."""
        event = self.archive.event(ref)
        assert isinstance(event, Perceived)
        return event

    def ledger(self, backend: str) -> Ledger:
        """The promotion ledger of one backend."""
        return self._ledger(backend)

    def change(self, ref: int) -> Change | None:
        """What the operation of a reference changed."""
        event = self.archive.event(ref)
        assert isinstance(event, StoreOperated)
        return event.operation.change

    def _decision(self, ref: int) -> PromotionDecision:
        event = self.archive.event(ref)
        assert isinstance(event, PromotionDecided)
        return event.decision

    def extractions(self, backend: str) -> Sequence[Extraction]:
        """All calls of one backend's extractor, in order."""
        events = map(self.archive.event, self._extracted[backend].refs)
        return [event.extraction for event in events if isinstance(event, FactsExtracted)]

    def snapshot_at(self, backend: str, turn: int) -> Snapshot:
        """All that the stores of one backend held, folded: equal to what :meth:`snapshot` read there."""
        redis: dict[str, Any] = {key: history.value_at(turn) for key, history in self._states[backend].items()}
        for key, log in self._logs[backend].items():
            # A key that held a text and then a state has a history of either kind.
            if (text := log.value_at(turn)) is not MISSING:
                redis[key] = text
        return Snapshot(
            redis={key: value for key, value in redis.items() if value is not MISSING},
            qdrant={name: history.points_at(turn) for name, history in self._collections[backend].items()},
        )

    # ---- questions and answers --------------------------------------------------------------------------------

    def answers(self) -> Iterator[Answer]:
        """All asks so far, in the order in which they were asked."""
        return iter(self._asks)

    def observed_at(self, turn_id: str) -> int | None:
        """The position at which memory is told of a turn: where its exchange ends. None for an unknown turn."""
        turn = self.conversation.turns_by_id.get(turn_id)
        return None if turn is None else self._observed_in(turn.session)[turn_id]

    def _observed_in(self, session: int) -> dict[str, int]:
        """Where each turn of a session is observed: an exchange never crosses a session."""
        if session not in self._observed:
            turns = tuple(turn for turn in self.conversation.turns if turn.session == session)
            exchanges = exchanges_of(self.conversation.model_copy(update={"turns": turns}))
            self._observed[session] = {id_: each.turn_number for each in exchanges for id_ in each.turn_ids}
        return self._observed[session]

    def question(self, question_id: str) -> Question | None:
        """A question of the conversation by its id."""
        return next((q for q in self.conversation.questions if q.id == question_id), None)
