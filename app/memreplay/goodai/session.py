"""The engine of test runs, in which the agent really converses.

For each message of a test, memory is read, a model replies, and memory ingests both. The replies decide what is
said next, so each run is a conversation of one memory and one model. It is played turn by turn like any other, and
knows no screen, file or provider.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from memory_backends.base import ClosingStatus, Exchange, MemoryBackend, Message, Recall
from memreplay.conversations.models import Conversation, Role, Turn
from memreplay.engine.backend_driver import BackendDriver
from memreplay.engine.events import (
    AgentReplied,
    BenchmarkModelAsked,
    ClockSet,
    EventSink,
    MessagePart,
    MessageSaid,
    ReplayEvent,
    TestBegan,
    TestScored,
    TestWaited,
    extended,
    shown_expectation,
)
from memreplay.errors import UsageError
from memreplay.goodai.actions import (
    AgentReply,
    CallbackDeregistered,
    CallbackRegistered,
    Filler,
    LlmAsked,
    Say,
    Step,
    TestBegins,
    TestEnded,
    TestWaits,
    TimeJumps,
)
from memreplay.goodai.language_model import LanguageModel, LLMReply, LLMRequest
from memreplay.goodai.master_log import EventType, LogEvent
from memreplay.goodai.scheduler import AsyncSteps, Scheduler, on_loop
from memreplay.goodai.sources import Benchmark
from memreplay.llm.model import AnswerRequest, PromptMessage, Reply
from memreplay.llm.rate_limiter import StoppedError


class Agent(Protocol):
    """A port: the model that replies for the agent."""

    @property
    def name(self) -> str:
        """Return the model's name."""
        ...

    def request(self, message: str, context: str, now: datetime) -> AnswerRequest:
        """Return the model request for the reply to a message, with the context that memory returned for it."""
        ...

    async def answer(self, request: AnswerRequest) -> Reply:
        """Send the request. A failure is a reply with an error."""
        ...

    def context_budget(self, message: str, limited_by_top_k: bool = True) -> int:
        """Return the most tokens that fit beside this message, of a memory that top-k limits, or does not."""
        ...


class BenchmarkModel(Protocol):
    """A port: the model that datasets call."""

    @property
    def name(self) -> str:
        """Return the model's name."""
        ...

    async def answer(self, request: LLMRequest) -> LLMReply:
        """Call the model once. A failure is a reply with an error."""
        ...


@dataclass(frozen=True)
class AgentPlan:
    """The plan of a run of tests: its tests and schedule, the most hits of memory, and the judge.

    ``benchmark`` creates the tests, possibly with a model, so it is called in a thread. Without a ``judge``, tests
    that need one are not graded.
    """

    run_id: str
    benchmark: Callable[[], Benchmark]
    top_k: int = 10
    judge: BenchmarkModel | None = None


class AgentSession:
    """A conversation of one memory and one model with a set of tests, as far as it was played.

    ``position`` is the number of turns so far. A message and its reply are one turn each.
    """

    def __init__(
        self,
        conversation: Conversation,
        backends: Mapping[str, MemoryBackend],
        agent: Agent,
        plan: AgentPlan,
        emit: EventSink,
        known: KnownReplies | None = None,
    ) -> None:
        """``backends`` holds exactly one memory under its name."""
        ((self._name, backend),) = backends.items()
        self.conversation = conversation
        self.position = 0
        self._agent = agent
        self._plan = plan
        self._emit = emit
        self._known = known or KnownReplies()
        self._memory = _Memory(conversation.id, self._name, backend, plan.top_k, emit)
        self._steps: AsyncSteps | None = None
        self._message: Say | Filler | None = None
        self._recall: Recall | str = Recall()
        self._user_turn: Turn | None = None
        self._registered: list[str] = []
        self._stuck: StoppedError | None = None

    @property
    def finished(self) -> bool:
        """Return whether every test is over."""
        return self._steps is not None and self._message is None

    async def open(self) -> None:
        """Open the empty memory, create the tests and advance to the first message.

        Raises:
            UsageError: the code of a dataset failed.
        """
        await self._memory.open(self._plan.run_id)
        loop = asyncio.get_running_loop()

        def recorded(event: LogEvent) -> None:
            # Runs in the thread of a step: a paid reply is recorded before the dataset sees it.
            if event.type is EventType.LLM_CALL:
                asyncio.run_coroutine_threadsafe(self._record_model_call(event), loop).result()

        judge = self._plan.judge
        asked: LanguageModel | None = on_loop(judge.answer, loop) if judge is not None else None
        made = await asyncio.to_thread(self._plan.benchmark)
        self._steps = AsyncSteps(Scheduler(made.tests, made.config, asked, self._known.judged, recorded))
        await self._advance(None)

    async def step(self) -> bool:
        """Play the next turn: a message, or the reply to it. False if none is left.

        Raises:
            StoppedError: no more calls are made to the model that replies; the turn can be played later. Or to the
                judge or the fact extractor; then this session cannot continue.
        """
        if self._stuck is not None:
            raise self._stuck
        if self._message is None:
            return False
        self.position += 1
        if self._user_turn is None:
            self._user_turn = await self._play_message(self._message)
            return True
        try:
            reply = await self._reply(self._message)
        except StoppedError:
            self.position -= 1
            raise
        try:
            await self._end_exchange(self._message, self._user_turn, reply)
            self._user_turn = None
            await self._advance(reply)
        except StoppedError as error:
            self._stuck = error
            raise
        return True

    async def play(self) -> None:
        """Play all remaining turns."""
        while await self.step():
            pass

    async def close(self, status: ClosingStatus) -> None:
        """End the conversation: ``resolved``, or ``cancelled`` if it was abandoned."""
        await self._memory.close(status, self.position + 1)

    # ---- one turn ------------------------------------------------------------------------------------------

    async def _play_message(self, message: Say | Filler) -> Turn:
        """Play the user's turn, and read memory for it if the agent has to reply."""
        turn = self._emit_message("user", message.message, _part_of(message), message)
        self._recall = Recall()
        if isinstance(message, Say):
            context_tokens = self._agent.context_budget(message.message, self._memory.limited_by_top_k)
            self._recall = await self._memory.read(turn, message.sent_at, context_tokens)
        return turn

    async def _end_exchange(self, message: Say | Filler, said: Turn, reply: AgentReply) -> None:
        """Play the agent's turn with its own or a supplied reply, and let memory ingest both turns."""
        part: MessagePart = "supplied" if isinstance(message, Filler) else "reply"
        answered = self._emit_message("assistant", reply.text, part, message, reply.error)
        ingested = [said] if reply.error is not None else [said, answered]
        await self._memory.ingest_turns(ingested, message.sent_at, self.position)

    async def _reply(self, message: Say | Filler) -> AgentReply:
        if isinstance(message, Filler):
            return AgentReply(message.reply)
        known = self._known.reply(self.position, self._test_of(message), message.message)
        event = known or await self._ask(message)
        if known is None:
            self._emit(event)
        reply = event.reply
        if reply.error is not None:
            return AgentReply("", reply.error)
        return AgentReply("", "the provider refused") if reply.refused else AgentReply(reply.text or "")

    async def _ask(self, message: Say) -> AgentReplied:
        recall, prompt = self._recall, tuple[PromptMessage, ...]()
        if isinstance(recall, str):
            reply = Reply(text=None, error=recall)
        else:
            request = self._agent.request(message.message, recall.context, message.sent_at)
            reply, prompt = await self._agent.answer(request), recorded_prompt(request.messages, recall)
        return AgentReplied(
            conversation=self.conversation.id,
            turn=self.position,
            backend=self._name,
            model=self._agent.name,
            test_id=self._test_of(message),
            prompt=prompt,
            reply=reply,
        )

    def _test_of(self, message: Say) -> str | None:
        """Return the test that the reply is charged to: the message's, else one that registered for all replies."""
        return message.test_id or next(iter(self._registered), None)

    def _emit_message(
        self,
        role: Role,
        text: str,
        part: MessagePart,
        message: Say | Filler,
        error: str | None = None,
    ) -> Turn:
        turn = Turn(
            id=str(self.position),
            number=self.position,
            session=self.conversation.sessions[-1].number,
            role=role,
            speaker=None,
            text=text,
        )
        said = MessageSaid(
            conversation=self.conversation.id,
            turn=self.position,
            backend=self._name,
            message=turn,
            said_at=message.sent_at,
            part=part,
            test_id=message.test_id,
            error=error,
        )
        self._emit(said)
        self.conversation = extended(self.conversation, said)
        return turn

    # ---- between turns -------------------------------------------------------------------------------------

    async def _advance(self, reply: AgentReply | None) -> None:
        """Advance to the next message. Events on the way belong to the turn that was just played."""
        assert self._steps is not None
        step: Step | None = await self._steps.next(reply)
        while step is not None and not isinstance(step, Say | Filler):
            self._track_calls(step)
            event = self._event_of(step)
            if event is not None:
                self._emit(event)
            if isinstance(event, ClockSet):
                self.conversation = extended(self.conversation, event)
            step = await self._steps.next()
        self._message = step

    def _track_calls(self, step: Step) -> None:
        match step:
            case CallbackRegistered():
                self._registered.append(step.test_id)
            case CallbackDeregistered() if step.test_id in self._registered:
                self._registered.remove(step.test_id)
            case LlmAsked(reused=True):
                self._known.called(step.test_id, self.position)
            case _:
                pass

    def _event_of(self, step: Step) -> ClockSet | TestBegan | TestScored | TestWaited | None:
        at: dict[str, Any] = {
            "conversation": self.conversation.id,
            "backend": self._name,
            "turn": self.position,
        }
        match step:
            case TestBegins():
                return TestBegan(**at, test_id=step.test_id, dataset=step.dataset, description=step.description)
            case TestWaits():
                return TestWaited(**at, test_id=step.test_id, tokens=step.tokens, until=step.until)
            case TimeJumps():
                session = self.conversation.sessions[-1].number + 1
                return ClockSet(**at, before=step.before, after=step.after, session=session)
            case TestEnded():
                return TestScored(
                    **at,
                    model=self._agent.name,
                    test_id=step.test_id,
                    dataset=step.dataset,
                    score=step.score,
                    max_score=step.max_score,
                    reasoning=step.reasoning,
                    ungraded=step.ungraded,
                    questions=step.questions,
                    responses=step.responses,
                    expected=shown_expectation(step.expected_responses),
                    distance_tokens=step.tokens,
                )
            case _:
                return None

    async def _record_model_call(self, event: LogEvent) -> None:
        judge = self._plan.judge
        self._emit(
            BenchmarkModelAsked(
                conversation=self.conversation.id,
                turn=self.position,
                backend=self._name,
                test_id=event.test_id,
                model=judge.name if judge is not None else None,
                reply=event.data["response"],
                error=event.data.get("error"),
                cost_usd=event.data.get("cost_usd"),
            )
        )


def recorded_prompt(messages: Sequence[PromptMessage], recall: Recall) -> tuple[PromptMessage, ...]:
    """Return the prompt to record. A context that is the whole log in Redis is left out: the trace already holds
    it.
    """
    if not recall.context or any(hit.text for hit in recall.hits if hit.in_prompt):
        return tuple(messages)
    return tuple(
        message.model_copy(
            update={"segments": tuple("" if part == recall.context else part for part in message.segments)}
        )
        for message in messages
    )


def _part_of(message: Say | Filler) -> MessagePart:
    if isinstance(message, Filler) or message.is_filling:
        return "filler"
    return "question" if message.is_question else "script"


_LABELS = {"user": "User", "assistant": "AI"}


class _Memory(BackendDriver):
    """A memory that reads and ingests the turns of a run of tests."""

    def __init__(self, conversation: str, name: str, backend: MemoryBackend, top_k: int, emit: EventSink) -> None:
        super().__init__(conversation, name, backend, emit)
        self._has_read_path = type(backend).perceive is not MemoryBackend.perceive
        self._top_k = top_k

    async def read(self, turn: Turn, said_at: datetime, context_tokens: int) -> Recall | str:
        """Return its recall for a user's message, or a sentence that says why it failed.

        A memory without a read path for ordinary turns recalls as for a question.
        """
        if self._has_read_path:
            return await self.perceive(_message(turn, said_at), self._top_k, context_tokens, turn.number)
        return await self._read("recall", self._backend.recall(turn.text, self._top_k, context_tokens), turn.number)

    async def ingest_turns(self, turns: Sequence[Turn], said_at: datetime, position: int) -> None:
        """Ingest turns as one exchange, and wait for the background work that this starts."""
        if self.broken is None:
            await self.ingest(Exchange(messages=tuple(_message(turn, said_at) for turn in turns)), position)


def _message(turn: Turn, said_at: datetime) -> Message:
    return Message(
        turn_id=turn.id,
        turn_number=turn.number,
        session=turn.session,
        role=turn.role,
        label=_LABELS[turn.role],
        text=turn.text,
        said_at=said_at,
    )


_Event = TypeVar("_Event", AgentReplied, BenchmarkModelAsked)

Moved = Callable[[AgentReplied | BenchmarkModelAsked, int], None]
"""Called with a reply that is now used at another turn, and that turn."""


class KnownReplies:
    """Recorded replies by the message that they answer, in their original order.

    ``--retry-errors`` may change what precedes a message, so it may be said at another turn than before; ``moved``
    is then called. With ``strict``, an unknown message at a turn with a recorded reply means that the tests differ.
    """

    def __init__(
        self,
        events: Iterable[ReplayEvent] = (),
        *,
        strict: bool = True,
        moved: Moved = lambda event, turn: None,
    ) -> None:
        self._strict, self._moved = strict, moved
        self._replies: defaultdict[tuple[str | None, str], deque[AgentReplied]] = defaultdict(deque)
        self._without_prompt: dict[int, AgentReplied] = {}
        self._turns: set[int] = set()
        self._calls: defaultdict[str, deque[BenchmarkModelAsked]] = defaultdict(deque)
        self.rejected: set[str] = set()
        """Unusable replies of the judge, which must not be served from a cache either."""
        for event in events:
            match event:
                case AgentReplied(prompt=()):
                    self._without_prompt[event.turn] = event
                case AgentReplied():
                    self._replies[event.test_id, event.prompt[-1].content].append(event)
                    self._turns.add(event.turn)
                case BenchmarkModelAsked(used=True):
                    self._calls[event.test_id].append(event)
                case BenchmarkModelAsked(reply=str(text)):
                    self.rejected.add(text)
                case _:
                    pass

    @property
    def judged(self) -> list[LogEvent]:
        """Return the unused calls of the datasets' model, as events of the scheduler's log."""
        return [_logged(call) for calls in self._calls.values() for call in calls]

    def reply(self, turn: int, test_id: str | None, message: str) -> AgentReplied | None:
        """Return the next reply to a message, if one is known.

        Raises:
            UsageError: the recorded reply at this turn answers another message.
        """
        if (failed := self._without_prompt.pop(turn, None)) is not None:
            return failed
        known = self._replies[test_id, message]
        if known:
            return self._at(known.popleft(), turn)
        if self._strict and turn in self._turns:
            raise UsageError(
                f"the run to resume has another message at turn {turn}: its tests differ, or an attempt to fix it"
                " was interrupted; --retry-errors continues that attempt"
            )
        return None

    def called(self, test_id: str, turn: int) -> None:
        """Mark the next known call of a test as used at a turn."""
        if self._calls[test_id]:
            self._at(self._calls[test_id].popleft(), turn)

    def _at(self, event: _Event, turn: int) -> _Event:
        if event.turn != turn:
            self._moved(event, turn)
        return event


def failed_replies(events: Iterable[ReplayEvent]) -> tuple[list[AgentReplied], list[BenchmarkModelAsked]]:
    """Return what to ask again in a run: failed replies of the agent, and calls of the datasets' model.

    These calls are the failed ones, those that a test made after a failed reply of the agent, and the last one of a
    test that was not graded for another reason.
    """
    every = list(events)
    replies = [event for event in every if isinstance(event, AgentReplied) and event.reply.error is not None]
    failed_at = {event.test_id: event.turn for event in reversed(replies)}
    calls = [event for event in every if isinstance(event, BenchmarkModelAsked) and event.used and event.test_id]
    failed = [
        call
        for call in calls
        if call.error is not None or (call.test_id in failed_at and call.turn >= failed_at[call.test_id])
    ]
    retried = {call.test_id for call in failed} | set(failed_at)
    ungraded = {event.test_id for event in every if isinstance(event, TestScored) and event.score is None}
    last = {call.test_id: call for call in calls if call.test_id in ungraded - retried}
    return replies, [*failed, *last.values()]


def _logged(call: BenchmarkModelAsked) -> LogEvent:
    data = {"response": call.reply, "cost_usd": call.cost_usd, "error": call.error}
    return LogEvent(EventType.LLM_CALL, datetime.min, call.test_id, data)
