"""A conversation's events, indexed by position: what every panel reads. Live and recorded are one code path."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from app.conversations.models import Conversation, Question
from app.replay.events import (
    AnswerScored,
    BackendEvent,
    BackendFailed,
    ClockSet,
    Decided,
    MessageSaid,
    Operated,
    Perceived,
    QuestionAsked,
    ReplayEvent,
    ReplyReceived,
    TestBegan,
    TestScored,
)
from app.replay.fold import MISSING, CollectionHistory, LogHistory, StateHistory
from app.replay.growing import grown
from memory_backends.base import Snapshot
from memory_backends.operations import (
    AppendChange,
    MemoryOperation,
    PatchChange,
    PromotionDecision,
    RemoveChange,
    UpsertChange,
    WriteChange,
)


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


class Timeline:
    """The events of one conversation, and what each store held at each position.

    The conversation of a run of tests grows with them; ``tests`` are its tests' beginnings and scores.

    Events are appended in the order in which they happened. ``reached`` is the last position with an event:
    the frontier of a live replay, the end of a finished one.
    """

    def __init__(self, conversation: Conversation, events: Iterable[ReplayEvent] = ()) -> None:
        self.conversation = conversation
        self.backends: list[str] = []
        self.reached = 0
        self._by_place: dict[tuple[str, int], list[ReplayEvent]] = defaultdict(list)
        self._states: dict[str, dict[str, StateHistory]] = defaultdict(dict)
        self._logs: dict[str, dict[str, LogHistory]] = defaultdict(dict)
        self._collections: dict[str, dict[str, CollectionHistory]] = defaultdict(dict)
        self._perceived: dict[str, list[Perceived]] = defaultdict(list)
        self._decided: dict[str, list[tuple[int, PromotionDecision]]] = defaultdict(list)
        self._eventful: list[int] = []
        self._answers: dict[AskKey, Answer] = {}
        self.tests: list[TestBegan | TestScored] = []
        for event in events:
            self.append(event)

    @property
    def last_turn(self) -> int:
        """Number of turns of the conversation."""
        return len(self.conversation.turns)

    def append(self, event: ReplayEvent) -> None:
        """Take in what happened next."""
        self.reached = max(self.reached, event.turn)
        if not isinstance(event, BackendEvent):
            return
        if event.backend not in self.backends:
            self.backends.append(event.backend)
        self._by_place[event.backend, event.turn].append(event)
        match event:
            case Operated():
                self._fold(event.backend, event.turn, event.operation)
            case Decided():
                self._decided[event.backend].append((event.turn, event.decision))
                self._mark(event.turn)
            case Perceived():
                self._perceived[event.backend].append(event)
            case BackendFailed():
                self._mark(event.turn)
            case MessageSaid() | ClockSet():
                self.conversation = grown(self.conversation, event)
            case TestBegan() | TestScored():
                self.tests.append(event)
            case QuestionAsked():
                self._answers[_key(event)] = Answer(asked=event)
            case ReplyReceived():
                self._answers[_key(event)].received = event
            case AnswerScored():
                self._answers[_key(event)].scored = event
            case _:
                pass

    def _fold(self, backend: str, turn: int, operation: MemoryOperation) -> None:
        change, key = operation.change, operation.key
        match operation.store, change:
            case "redis", AppendChange():
                self._logs[backend].setdefault(key, LogHistory()).add(turn, change)
            case "redis", RemoveChange() if key in self._logs[backend]:
                self._logs[backend][key].add(turn, change)
            case "redis", WriteChange() | PatchChange() | RemoveChange():
                self._states[backend].setdefault(key, StateHistory()).add(turn, change)
            case "qdrant", UpsertChange() | RemoveChange():
                self._collections[backend].setdefault(key, CollectionHistory()).add(turn, change)
            case _:
                return
        self._mark(turn)

    def _mark(self, turn: int) -> None:
        if not self._eventful or self._eventful[-1] < turn:
            self._eventful.append(turn)
        elif self._eventful[bisect_right(self._eventful, turn) - 1] != turn:
            insort(self._eventful, turn)

    # ---- what stands at a position -------------------------------------------------------------------------

    def events_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """Everything that one backend did at exactly this position, in order."""
        return self._by_place.get((backend, turn), ())

    def operations_at(self, backend: str, turn: int) -> list[MemoryOperation]:
        """The store commands of one backend at exactly this position, in order."""
        return [event.operation for event in self.events_at(backend, turn) if isinstance(event, Operated)]

    def failures_at(self, backend: str, turn: int) -> list[BackendFailed]:
        """What one backend could not do at exactly this position."""
        return [event for event in self.events_at(backend, turn) if isinstance(event, BackendFailed)]

    def state_keys(self, backend: str) -> list[str]:
        """Redis keys of one backend that hold a JSON state at some position, in order of their first write."""
        return list(self._states[backend])

    def state_at(self, backend: str, key: str, turn: int) -> Any:
        """The value of a state; :data:`~app.replay.fold.MISSING` where the key does not exist yet."""
        history = self._states[backend].get(key)
        return history.value_at(turn) if history else MISSING

    def state_changed_at(self, backend: str, key: str, turn: int) -> bool:
        """Whether a state was written at exactly this position."""
        history = self._states[backend].get(key)
        return history.changed_at(turn) if history else False

    def log_keys(self, backend: str) -> list[str]:
        """Redis keys of one backend that hold a log."""
        return list(self._logs[backend])

    def log_at(self, backend: str, key: str, turn: int) -> Sequence[tuple[int, str]]:
        """The pieces of a log, each with the position at which it was appended."""
        history = self._logs[backend].get(key)
        return history.pieces_at(turn) if history else ()

    def log_size_at(self, backend: str, key: str, turn: int) -> int:
        """Bytes of a log."""
        history = self._logs[backend].get(key)
        return history.size_at(turn) if history else 0

    def collections(self, backend: str) -> list[str]:
        """Qdrant collections of one backend."""
        return list(self._collections[backend])

    def collection(self, backend: str, name: str) -> CollectionHistory:
        """The history of a collection."""
        return self._collections[backend].get(name, CollectionHistory())

    def perceived_at(self, backend: str, turn: int) -> Perceived | None:
        """The latest read path of an ordinary turn, at or before this position."""
        perceived = self._perceived[backend]
        index = bisect_right(perceived, turn, key=lambda event: event.turn)
        return perceived[index - 1] if index else None

    def decisions_until(self, backend: str, turn: int) -> list[tuple[int, PromotionDecision]]:
        """The promotion ledger up to this position: position and decision, oldest first."""
        decided = self._decided[backend]
        return decided[: bisect_right(decided, turn, key=lambda entry: entry[0])]

    def snapshot_at(self, backend: str, turn: int) -> Snapshot:
        """All that the stores of one backend held, folded: equal to what :meth:`snapshot` read there."""
        redis: dict[str, Any] = {key: history.value_at(turn) for key, history in self._states[backend].items()}
        redis |= {key: history.value_at(turn) for key, history in self._logs[backend].items()}
        return Snapshot(
            redis={key: value for key, value in redis.items() if value is not MISSING},
            qdrant={name: history.points_at(turn) for name, history in self._collections[backend].items()},
        )

    # ---- moving and answers --------------------------------------------------------------------------------

    def next_eventful(self, turn: int) -> int | None:
        """The next position at which a store changed, a candidate was judged or something failed."""
        index = bisect_right(self._eventful, turn)
        return self._eventful[index] if index < len(self._eventful) else None

    def previous_eventful(self, turn: int) -> int | None:
        """The previous such position."""
        index = bisect_right(self._eventful, turn - 1)
        return self._eventful[index - 1] if index else None

    def answers(self) -> Iterator[Answer]:
        """All asks so far, in the order in which they were asked."""
        return iter(self._answers.values())

    def question(self, question_id: str) -> Question | None:
        """A question of the conversation by its id."""
        return next((q for q in self.conversation.questions if q.id == question_id), None)


def _key(event: QuestionAsked | ReplyReceived | AnswerScored) -> AskKey:
    return AskKey(event.backend, event.model, event.question_id, event.repeat, event.turn, event.by_hand)
