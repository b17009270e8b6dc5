"""The events of one conversation, indexed by position. Every panel reads it."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_backends.base import MemoryDescription, Snapshot
from memory_backends.stores.trace import Change, Extraction, MemoryOperation, ModelCall, PromotionDecision
from memreplay.conversations.models import Conversation, Question, exchanges_of
from memreplay.engine.events import (
    AnswerJudged,
    AnswerScored,
    BackendFailed,
    ClockSet,
    ConversationOpened,
    FactsExtracted,
    MessageSaid,
    ModelCalled,
    Perceived,
    PromotionDecided,
    QuestionAsked,
    ReplayEvent,
    ReplyReceived,
    StoreOperated,
    TestBegan,
    TestScored,
    extended,
)
from memreplay.llm.judging import Judgement, Stage
from memreplay.timeline.event_store import (
    DecisionSummary,
    EventArchive,
    EventSummary,
    MemoryArchive,
    WriteSummary,
    operation_of,
    summarize,
)
from memreplay.timeline.fold import MISSING, CollectionHistory, LazySequence, LogHistory, Piece, StateHistory
from memreplay.timeline.markers import Markers

LedgerEntry = tuple[int, PromotionDecision]
"""The position of a decision, and the decision."""


class PositionIndex:
    """Positions and references of events, ordered by position. An event that arrives late is inserted in order."""

    def __init__(self) -> None:
        self.turns = array("I")
        self.refs = array("q")

    def __len__(self) -> int:
        return len(self.turns)

    def add(self, turn: int, ref: int) -> int:
        """Add an event and return its 0-based place."""
        if not self.turns or self.turns[-1] <= turn:
            self.turns.append(turn)
            self.refs.append(ref)
            return len(self.turns) - 1
        place = bisect_right(self.turns, turn)
        self.turns.insert(place, turn)
        self.refs.insert(place, ref)
        return place

    def latest(self, turn: int) -> int | None:
        """Return the reference of the last event at or before a position, if there is one."""
        end = bisect_right(self.turns, turn)
        return self.refs[end - 1] if end else None

    def refs_at(self, turn: int) -> array[int]:
        """References of the events at exactly this position."""
        return self.refs[bisect_left(self.turns, turn) : bisect_right(self.turns, turn)]


class Ledger:
    """The promotion decisions of one backend.

    Decisions are loaded on access. Counts by kind and source turns are indexed without loading.
    """

    def __init__(self, load: Callable[[int], PromotionDecision]) -> None:
        self._load = load
        self._track = PositionIndex()
        self._turns_of_kind: dict[str, array[int]] = defaultdict(lambda: array("I"))
        self._from: dict[str, list[int]] = defaultdict(list)

    def add(self, turn: int, ref: int, decision: DecisionSummary) -> None:
        """Append a decision; positions never decrease."""
        place = self._track.add(turn, ref)
        self._turns_of_kind[decision.decision].append(turn)
        for source in decision.sources:
            self._from[source].append(place)

    def counts_until(self, turn: int) -> Mapping[str, int]:
        """Return the number of decisions of each kind up to a position."""
        return {kind: bisect_right(turns, turn) for kind, turns in self._turns_of_kind.items()}

    def at(self, turn: int) -> list[PromotionDecision]:
        """Return the decisions of exactly this position, in order."""
        return [self._load(ref) for ref in self._track.refs_at(turn)]

    def until(self, turn: int) -> Sequence[LedgerEntry]:
        """Return all decisions up to a position, oldest first, as a view that loads nothing."""
        return LazySequence(range(bisect_right(self._track.turns, turn)), self._entry)

    def about_turn(self, turn_id: str) -> list[LedgerEntry]:
        """Return the decisions on candidates that were distilled from a turn, oldest first."""
        return [self._entry(place) for place in self._from.get(turn_id, ())]

    def _entry(self, place: int) -> LedgerEntry:
        return self._track.turns[place], self._load(self._track.refs[place])


@dataclass(frozen=True)
class AskKey:
    """Identifies one ask: a question put once to one backend through one model."""

    backend: str
    model: str
    question_id: str
    repeat: int
    turn: int
    by_hand: bool


@dataclass
class Answer:
    """One ask, as far as it has got: asked, replied, judged, scored. A judge may have been asked several times.

    ``stages_judged`` is what a judge of stages said of it later.
    """

    asked: QuestionAsked
    received: ReplyReceived | None = None
    judged: list[AnswerJudged] = field(default_factory=list)
    scored: AnswerScored | None = None
    stages_judged: Mapping[Stage, Judgement] = field(default_factory=dict)

    @property
    def judgement(self) -> Judgement | None:
        """Return what the judge said last; None if none was asked."""
        return self.judged[-1].judgement if self.judged else None

    @property
    def error(self) -> str | None:
        """Return why there is no reply, or why the rules failed to grade it; None for a graded answer."""
        if self.received is not None and self.received.reply.error is not None:
            return self.received.reply.error
        return self.scored.score.error if self.scored is not None else None


_PLAYED = frozenset({"turn_played", "message_said"})


class AnswerIndex:
    """The answers of a conversation by their ask, in the order in which they were asked."""

    def __init__(self) -> None:
        self._answers: dict[AskKey, Answer] = {}

    def apply(self, event: QuestionAsked | ReplyReceived | AnswerJudged | AnswerScored) -> None:
        match event:
            case QuestionAsked():
                self._answers[ask_key(event)] = Answer(asked=event)
            case ReplyReceived():
                self._answers[ask_key(event)].received = event
            case AnswerJudged():
                self._answers[ask_key(event)].judged.append(event)
            case AnswerScored():
                self._answers[ask_key(event)].scored = event

    def judge_stages(self, judged: Mapping[tuple[str, str, str, int], Mapping[Stage, Judgement]]) -> None:
        """Add what a judge of stages said, by backend, model, question id and repeat."""
        for key, answer in self._answers.items():
            if not key.by_hand:
                answer.stages_judged = judged.get((key.backend, key.model, key.question_id, key.repeat), {})

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers.values())


def ask_key(event: QuestionAsked | ReplyReceived | AnswerJudged | AnswerScored) -> AskKey:
    return AskKey(event.backend, event.model, event.question_id, event.repeat, event.turn, event.by_hand)


class Timeline:
    """The events of one conversation, and the content of each store at each position.

    Append events in the order in which they happened. ``reached`` is the last position with an event: the frontier
    of a live replay, the end of a finished one. ``played`` is the last turn that the memories heard: an interrupted
    run is closed after the last turn, but the memories never heard those in between. In a run of tests the
    conversation grows with its events, and ``tests`` holds the start and the score of each test.
    """

    def __init__(
        self, conversation: Conversation, events: Iterable[ReplayEvent] = (), archive: EventArchive | None = None
    ) -> None:
        self.conversation = conversation
        self.answered_by_hand: dict[str, Question] = {}
        """Questions typed in whose right answer the user said, by their ids."""
        self.archive: EventArchive = archive or MemoryArchive()
        self.marks = Markers(conversation)
        self.backends: list[str] = []
        self.reached = 0
        self.played = 0
        self._states: dict[str, dict[str, StateHistory]] = defaultdict(dict)
        self._logs: dict[str, dict[str, LogHistory]] = defaultdict(dict)
        self._collections: dict[str, dict[str, CollectionHistory]] = defaultdict(dict)
        self._perceived: dict[str, PositionIndex] = defaultdict(PositionIndex)
        self._called: dict[str, PositionIndex] = defaultdict(PositionIndex)
        self._failed: dict[str, PositionIndex] = defaultdict(PositionIndex)
        self._store_labels: dict[str, dict[str, str]] = defaultdict(dict)
        self._opened: dict[str, int] = {}
        self._descriptions: dict[int, MemoryDescription] = {}
        self._ledgers: dict[str, Ledger] = {}
        self._answers = AnswerIndex()
        self.tests: list[TestBegan | TestScored] = []
        self._observed: dict[int, dict[str, int]] = {}
        for summary in self.archive.summaries():
            self._index(summary)
        for event in events:
            self.append(event)

    def was_heard(self, position: int) -> bool:
        """Return whether the memories heard the turn at a position. A run that records no turns counts as heard."""
        return position <= self.played or self.played in (0, self.last_turn) or self.conversation.end is None

    @property
    def last_turn(self) -> int:
        """Return the number of turns of the conversation."""
        return len(self.conversation.turns)

    def rest_in(self, archive: EventArchive) -> None:
        """Store all further events in this archive. No event may have been appended yet."""
        assert not self.backends
        self.archive = archive

    def append(self, event: ReplayEvent) -> None:
        self._index(summarize(self.archive.keep(event), event))

    def _index(self, summary: EventSummary) -> None:
        self.reached = max(self.reached, summary.turn)
        if summary.kind in _PLAYED:
            self.played = max(self.played, summary.turn)
        if summary.backend is None:
            return
        if summary.backend not in self.backends:
            self.backends.append(summary.backend)
        self.marks.apply(summary)
        match summary.kind:
            case "store_operated":
                if summary.write is not None:
                    self._fold(summary, summary.backend, summary.write)
            case "promotion_decided":
                assert summary.decision is not None
                self._ledger(summary.backend).add(summary.turn, summary.ref, summary.decision)
            case "conversation_opened":
                self._opened[summary.backend] = summary.ref
            case "perceived":
                self._perceived[summary.backend].add(summary.turn, summary.ref)
            case "facts_extracted" | "model_called":
                self._called[summary.backend].add(summary.turn, summary.ref)
            case "backend_failed":
                self._failed[summary.backend].add(summary.turn, summary.ref)
            case (
                "question_asked"
                | "reply_received"
                | "answer_judged"
                | "answer_scored"
                | "message_said"
                | "clock_set"
                | "test_began"
                | "test_scored"
            ):
                self._index_whole(self.archive.event(summary.ref))
            case _:
                pass

    def _fold(self, summary: EventSummary, backend: str, write: WriteSummary) -> None:
        key = write.key
        self._store_labels[backend][key] = write.store
        match write.kind:
            case "append":
                self._logs[backend].setdefault(key, LogHistory()).add(
                    summary.turn, summary.ref, write.offset, write.text
                )
            case "upsert" | "remove" if write.kind == "upsert" or write.ids:
                points = self._collections[backend].get(key)
                if points is None:
                    points = self._collections[backend][key] = CollectionHistory(self.change)
                change = points.remove if write.kind == "remove" else points.add
                change(summary.turn, summary.ref, write.ids)
            case "remove" if key in self._logs[backend]:
                self._logs[backend][key].clear(summary.turn, summary.ref)
                if key in self._states[backend]:
                    self._states[backend][key].add(summary.turn, summary.ref, write.pointers, whole=write.whole)
            case _:
                history = self._states[backend].get(key)
                if history is None:
                    history = self._states[backend][key] = StateHistory(self.change)
                history.add(summary.turn, summary.ref, write.pointers, whole=write.whole)

    def _index_whole(self, event: ReplayEvent) -> None:
        match event:
            case QuestionAsked() | ReplyReceived() | AnswerJudged() | AnswerScored():
                self._answers.apply(event)
            case MessageSaid(message=said):
                turns = self.conversation.turns
                self.conversation = extended(self.conversation, event)
                self._observed.pop(said.session, None)
                if not turns or turns[-1].session != said.session:
                    self.marks.begin_session(said.number, said.session, self.conversation.date_of(said))
            case ClockSet():
                self.conversation = extended(self.conversation, event)
            case TestBegan() | TestScored():
                self.tests.append(event)
            case _:
                pass

    def _ledger(self, backend: str) -> Ledger:
        return self._ledgers.setdefault(backend, Ledger(self._decision))

    def description(self, backend: str) -> MemoryDescription:
        """Return what a memory says of its stores and panels; the default until it was opened."""
        ref = self._opened.get(backend)
        if ref is None:
            return MemoryDescription()
        if ref not in self._descriptions:
            event = self.archive.event(ref)
            assert isinstance(event, ConversationOpened)
            self._descriptions[ref] = event.memory
        return self._descriptions[ref]

    # ---- what stands at a position -------------------------------------------------------------------------

    def events_at(self, backend: str, turn: int) -> Sequence[ReplayEvent]:
        """Return all events of one backend at exactly this position, in order."""
        return self.archive.at(backend, turn)

    def kept_until(self, backend: str, turn: int) -> Iterator[ReplayEvent]:
        """Return what one backend heard, decided and changed up to a position, with its opening, in order."""
        return self.archive.kept_until(backend, turn)

    def operations_at(self, backend: str, turn: int) -> Sequence[MemoryOperation]:
        """Return the store operations of one backend at exactly this position, in order, loaded on access."""
        return LazySequence(self.archive.operation_at(backend, turn), operation_of)

    def failures_at(self, backend: str, turn: int) -> list[BackendFailed]:
        """Return the failures of one backend at exactly this position."""
        events = (self.archive.event(ref) for ref in self._failed[backend].refs_at(turn))
        return [event for event in events if isinstance(event, BackendFailed)]

    def state_keys(self, backend: str) -> list[str]:
        """Keys of one backend that hold a JSON state at some position, in order of their first write."""
        return list(self._states[backend])

    def state(self, backend: str, key: str) -> StateHistory:
        """Return the history of a state; empty for an unknown key."""
        return self._states[backend].get(key) or StateHistory(self.change)

    def state_at(self, backend: str, key: str, turn: int) -> Any:
        """Return the value of a state; :data:`~memreplay.timeline.fold.MISSING` if the key does not exist yet."""
        return self.state(backend, key).value_at(turn)

    def log_keys(self, backend: str) -> list[str]:
        """Keys of one backend that hold a log."""
        return list(self._logs[backend])

    def log(self, backend: str, key: str) -> LogHistory:
        """Return the history of a log; empty for an unknown key."""
        return self._logs[backend].get(key) or LogHistory()

    def log_at(self, backend: str, key: str, turn: int) -> Sequence[Piece]:
        """Return the pieces of a log, each with the position at which it was appended."""
        return self.log(backend, key).pieces_at(turn)

    def log_size_at(self, backend: str, key: str, turn: int) -> int:
        """Bytes of a log."""
        return self.log(backend, key).size_at(turn)

    def collections(self, backend: str) -> list[str]:
        """Collections of points of one backend."""
        return list(self._collections[backend])

    def collection(self, backend: str, name: str) -> CollectionHistory:
        """Return the history of a collection."""
        return self._collections[backend].get(name) or CollectionHistory(self.change)

    def store_label(self, backend: str, key: str) -> str:
        """Return the label of the store that a key or collection of one backend is in."""
        return self._store_labels[backend].get(key, "")

    def perceived_at(self, backend: str, turn: int) -> Perceived | None:
        """Return the latest read path of an ordinary turn at or before this position."""
        ref = self._perceived[backend].latest(turn)
        return None if ref is None else self.perceived(ref)

    def perceived_index(self, backend: str) -> PositionIndex:
        """Return the positions and references of all read paths of ordinary turns."""
        return self._perceived[backend]

    def perceived(self, ref: int) -> Perceived:
        """Return a read path by its reference."""
        event = self.archive.event(ref)
        assert isinstance(event, Perceived)
        return event

    def ledger(self, backend: str) -> Ledger:
        """Return the promotion decisions of one backend."""
        return self._ledgers.setdefault(backend, Ledger(self._decision))

    def change(self, ref: int) -> Change | None:
        """Return the change made by the operation with this reference."""
        event = self.archive.event(ref)
        assert isinstance(event, StoreOperated)
        return event.operation.change

    def _decision(self, ref: int) -> PromotionDecision:
        event = self.archive.event(ref)
        assert isinstance(event, PromotionDecided)
        return event.decision

    def calls_a_model(self, backend: str) -> bool:
        """Return whether one backend ever called a model that writes texts."""
        return bool(self._called[backend])

    def calls_at(self, backend: str, turn: int) -> list[ModelCall | Extraction]:
        """Return the calls of models that write texts, by one backend at exactly this position, in order."""
        return self._calls(self._called[backend].refs_at(turn))

    def extractions(self, backend: str) -> Sequence[Extraction]:
        """Return all calls of one backend's extractor, in order."""
        return [each for each in self._calls(self._called[backend].refs) if isinstance(each, Extraction)]

    def _calls(self, refs: Iterable[int]) -> list[ModelCall | Extraction]:
        calls: list[ModelCall | Extraction] = []
        for event in map(self.archive.event, refs):
            match event:
                case FactsExtracted(extraction=extraction):
                    calls.append(extraction)
                case ModelCalled(call=call):
                    calls.append(call)
                case _:
                    pass
        return calls

    def snapshot_at(self, backend: str, turn: int) -> Snapshot:
        """Return all that the stores of one backend held, folded: equal to what :meth:`snapshot` read there."""
        held: dict[str, Any] = {key: history.value_at(turn) for key, history in self._states[backend].items()}
        for key, log in self._logs[backend].items():
            # A key that held first a log and then a state has a history of each kind.
            if (text := log.value_at(turn)) is not MISSING:
                held[key] = text
        values: dict[str, dict[str, Any]] = defaultdict(dict)
        points: dict[str, dict[str, Any]] = defaultdict(dict)
        labels = self._store_labels[backend]
        for key, value in held.items():
            if value is not MISSING:
                values[labels[key]][key] = value
        for name, history in self._collections[backend].items():
            points[labels[name]][name] = history.points_at(turn)
        return Snapshot(values=values, points=points)

    # ---- questions and answers --------------------------------------------------------------------------------

    def answers(self) -> Iterator[Answer]:
        """Return all answers so far, in the order in which they were asked."""
        return iter(self._answers)

    def judge_stages(self, judged: Mapping[tuple[str, str, str, int], Mapping[Stage, Judgement]]) -> None:
        """Add what a judge of stages said, by backend, model, question id and repeat."""
        self._answers.judge_stages(judged)

    def observed_at(self, turn_id: str) -> int | None:
        """Return the position at which memory ingests a turn: the end of its exchange. None for an unknown turn."""
        turn = self.conversation.turns_by_id.get(turn_id)
        return None if turn is None else self._observed_in(turn.session).get(turn_id)

    def _observed_in(self, session: int) -> dict[str, int]:
        """Return the position at which each turn of a session is ingested: an exchange never crosses a session."""
        if session not in self._observed:
            turns = tuple(turn for turn in self.conversation.turns if turn.session == session)
            exchanges = exchanges_of(self.conversation.model_copy(update={"turns": turns}))
            self._observed[session] = {id_: each.turn_number for each in exchanges for id_ in each.turn_ids}
        return self._observed[session]

    def question(self, question_id: str) -> Question | None:
        """Return a question by its id: of the conversation, or one asked by hand whose answer is known."""
        own = next((q for q in self.conversation.questions if q.id == question_id), None)
        return own or self.answered_by_hand.get(question_id)
