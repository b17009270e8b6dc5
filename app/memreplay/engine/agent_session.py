"""The engine where the agent really converses: tests say something, memory is read, a model replies, memory hears.

A run of tests is the conversation of one memory and one model: what they reply decides what is said next. It is
played turn by turn as any other, and knows no screen, no file and no provider.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn, Protocol

from memory_backends.base import ClosingStatus, MemoryBackend, Recall
from memreplay.conversations.models import Conversation, Role, Session, Turn
from memreplay.dataset_interfaces.async_steps import AsyncSteps, on_loop
from memreplay.dataset_interfaces.definitions import Benchmark
from memreplay.dataset_interfaces.language_model import LanguageModel, LLMReply, LLMRequest
from memreplay.dataset_interfaces.master_log import EventType, LogEvent
from memreplay.dataset_interfaces.scheduler import Scheduler
from memreplay.dataset_interfaces.steps import (
    AgentReply,
    CallbackDeregistered,
    CallbackRegistered,
    Filler,
    LlmAsked,
    Say,
    Step,
)
from memreplay.engine.agent_notes import TestNotes
from memreplay.engine.backend_driver import AgentBackendDriver
from memreplay.engine.events import AgentReplied, BenchmarkModelAsked, ClockSet, EventSink, MessagePart, MessageSaid
from memreplay.engine.known_replies import KnownReplies
from memreplay.engine.session import Ask
from memreplay.errors import UsageError
from memreplay.llm.model import AnswerRequest, PromptMessage, Reply
from memreplay.llm.rate_limiter import StoppedError


class Agent(Protocol):
    """A port: the model behind the agent."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    def request(self, message: str, context: str, now: datetime) -> AnswerRequest:
        """The call for the reply to a message, with what memory gave for it."""
        ...

    async def answer(self, request: AnswerRequest) -> Reply:
        """Make the call. A failure is a reply with an error."""
        ...

    def context_budget(self, message: str) -> int:
        """Most tokens of memory beside this message."""
        ...


class BenchmarkModel(Protocol):
    """A port: the model that datasets ask."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    async def answer(self, request: LLMRequest) -> LLMReply:
        """Ask once. A failure is a reply with an error."""
        ...


@dataclass(frozen=True)
class AgentPlan:
    """How a run of tests is played: its tests and schedule, the hits that memory may take, and who judges.

    ``benchmark`` makes the tests anew, and may ask a model for it; it is called in a thread. Without a ``judge``
    tests that need one are not graded.
    """

    run_id: str
    benchmark: Callable[[], Benchmark]
    top_k: int = 10
    judge: BenchmarkModel | None = None


def grown(conversation: Conversation, event: MessageSaid | ClockSet) -> Conversation:
    """The conversation with a message more, or with the session that begins when the clock is set."""
    match event:
        case MessageSaid():
            return _with(conversation, turns=(*conversation.turns, event.message))
        case ClockSet():
            session = Session(number=event.session, id=str(event.session), date=event.after)
            return _with(conversation, sessions=(*conversation.sessions, session))


def _with(conversation: Conversation, **changed: Any) -> Conversation:
    """A copy without what was worked out of the old one; its parts are valid, and are not gone through again."""
    fields = {name: getattr(conversation, name) for name in Conversation.model_fields}
    return Conversation.model_construct(**fields | changed)


class AgentSession:
    """A conversation that one memory and one model have with tests, as far as it was played.

    ``position`` is the number of turns so far. A message and its reply are a turn each.
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
        """``backends`` holds just one memory under its name."""
        ((self._name, backend),) = backends.items()
        self.conversation = conversation
        self.position = 0
        self._agent = agent
        self._plan = plan
        self._emit = emit
        self._known = known or KnownReplies()
        self._memory = AgentBackendDriver(conversation.id, self._name, backend, plan.top_k, emit)
        self._notes = TestNotes(conversation.id, self._name, agent.name)
        self._steps: AsyncSteps | None = None
        self._message: Say | Filler | None = None
        self._recall: Recall | str = Recall()
        self._heard: Turn | None = None
        self._watching: list[str] = []
        self._stuck: StoppedError | None = None

    @property
    def finished(self) -> bool:
        """Whether every test is over."""
        return self._steps is not None and self._message is None

    async def open(self) -> None:
        """Open the memory, empty, make the tests and go up to the first message.

        Raises:
            UsageError: a dataset's code fails.
        """
        await self._memory.open(self._plan.run_id)
        loop = asyncio.get_running_loop()

        def recorded(event: LogEvent) -> None:
            # In the thread of a step: what a model was paid for is on record before the dataset sees it.
            if event.type is EventType.LLM_CALL:
                asyncio.run_coroutine_threadsafe(self._record_model_call(event), loop).result()

        judge = self._plan.judge
        asked: LanguageModel | None = on_loop(judge.answer, loop) if judge is not None else None
        made = await asyncio.to_thread(self._plan.benchmark)
        self._steps = AsyncSteps(Scheduler(made.tests, made.config, asked, self._known.judged, recorded))
        await self._advance(None)

    async def step(self) -> bool:
        """Play the next turn: a message, or the reply to it. False where there is none left.

        Raises:
            StoppedError: the model that replies is asked no more, and the turn is still to be played; or the one
                that judges, or reads facts, is not, and then there is no going on in this session.
        """
        if self._stuck is not None:
            raise self._stuck
        if self._message is None:
            return False
        self.position += 1
        if self._heard is None:
            self._heard = await self._say(self._message)
        else:
            reply = await self._words_in_their_turn(self._message)
            try:
                await self._replied(self._message, self._heard, reply)
                self._heard = None
                await self._advance(reply)
            except StoppedError as error:
                self._stuck = error
                raise
        return True

    async def play(self) -> None:
        """Play all turns that are left."""
        while await self.step():
            pass

    def asks(self) -> list[Ask]:
        """None: the tests ask, while they are played."""
        return []

    async def ask(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: what is said in a run of tests is for the tests to say.

        Raises:
            UsageError: always.
        """
        raise UsageError("in a run of tests the tests ask; nothing else can be asked in it")

    async def close(self, status: ClosingStatus) -> None:
        """End the conversation: ``resolved``, or ``cancelled`` where it was abandoned."""
        await self._memory.close(status, self.position + 1)

    # ---- one turn ------------------------------------------------------------------------------------------

    async def _say(self, message: Say | Filler) -> Turn:
        """The user's turn: the message, and what memory gives for it where the agent has to reply."""
        turn = self._told("user", message.message, _part_of(message), message)
        self._recall = Recall()
        if isinstance(message, Say):
            budget = self._agent.context_budget(message.message)
            self._recall = await self._memory.read(turn, message.sent_at, budget)
        return turn

    async def _replied(self, message: Say | Filler, said: Turn, reply: AgentReply) -> None:
        """The agent's turn: its words, or those that are supplied, and memory hears both sides."""
        part: MessagePart = "supplied" if isinstance(message, Filler) else "reply"
        answered = self._told("assistant", reply.text, part, message, reply.error)
        heard = [said] if reply.error is not None else [said, answered]
        await self._memory.hear(heard, message.sent_at, self.position)

    async def _words_in_their_turn(self, message: Say | Filler) -> AgentReply:
        try:
            return await self._words(message)
        except StoppedError:
            self.position -= 1
            raise

    async def _words(self, message: Say | Filler) -> AgentReply:
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
        """Whose the reply is: that of a test that watches, where the message is of none."""
        return message.test_id or next(iter(self._watching), None)

    def _told(
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
        self.conversation = grown(self.conversation, said)
        return turn

    # ---- between turns -------------------------------------------------------------------------------------

    async def _advance(self, reply: AgentReply | None) -> None:
        """Go on to the next message; what happens on the way belongs to the turn that was just played."""
        assert self._steps is not None
        step: Step | None = await self._steps.next(reply)
        while step is not None and not isinstance(step, Say | Filler):
            self._watch(step)
            for event in self._notes.of(step, self.position, self.conversation.sessions[-1].number):
                self._emit(event)
                if isinstance(event, ClockSet):
                    self.conversation = grown(self.conversation, event)
            step = await self._steps.next()
        self._message = step

    def _watch(self, step: Step) -> None:
        match step:
            case CallbackRegistered():
                self._watching.append(step.test_id)
            case CallbackDeregistered() if step.test_id in self._watching:
                self._watching.remove(step.test_id)
            case LlmAsked(reused=True):
                self._known.called(step.test_id, self.position)
            case _:
                pass

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
    """A prompt as it is recorded: a context that is the log in Redis as it stands is in the trace already."""
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
