"""The engine: plays a conversation turn by turn to every backend, asks the questions, and emits what happens.

It knows no screen, no file and no provider: events go to a sink, questions through an :class:`Answerer`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol, TypeVar, runtime_checkable

from app.answering.model import AGENT_MODEL, AnswerRequest, Reply
from app.conversations.exchanges import exchanges_of, message_of
from app.conversations.models import Conversation, Question
from app.replay.answer_score import ask_fields, score_answer
from app.replay.events import (
    AnswerScored,
    BackendFailed,
    ConversationClosed,
    ConversationOpened,
    Observed,
    Perceived,
    QuestionAsked,
    ReplayEvent,
    ReplyReceived,
    Settled,
    TurnPlayed,
    event_of,
)
from app.replay.shuffling import choice_order, with_order
from memory_backends.base import BackendError, ClosingStatus, MemoryBackend, Namespace, Recall, TokenCounter
from memory_backends.operations import Phase

T = TypeVar("T")

_MEMORY_IS_INCOMPLETE_AFTER: frozenset[Phase] = frozenset({"open", "observe", "consolidate"})

EventSink = Callable[[ReplayEvent], None]
"""Takes an event in; when it returns from a :class:`ReplyReceived`, the reply is safe."""


@runtime_checkable
class Answerer(Protocol):
    """A port: how a question becomes a request, and a request a reply.

    A memory that is an answerer too is an agent: it answers what it is asked by itself.
    """

    def request(self, question: Question, context: str, model: str, repeat: int) -> AnswerRequest:
        """The call that asks this question with this context."""
        ...

    async def answer(self, request: AnswerRequest) -> Reply:
        """Make the call. A failure is a reply with an error."""
        ...

    def context_budget(self, model: str) -> int:
        """Most tokens of memory in a prompt for this model."""
        ...


@dataclass(frozen=True)
class Ask:
    """A question on its way to one backend through one model."""

    question: Question
    backend: str
    model: str
    repeat: int = 0


@dataclass(frozen=True)
class ReplayPlan:
    """What a replay does beside playing: which models it asks, and how many hits memory may take.

    ``ask_only`` names backends that are asked without hearing the conversation. Options are shown in an order drawn
    from ``shuffle_seed`` and the question, where it is set. ``counter_of`` gives the tokenizer of a model, by which
    memory then measures what it gives to it.
    """

    run_id: str
    models: tuple[str, ...]
    top_k: int = 10
    perceive: bool = True
    ask_only: frozenset[str] = frozenset()
    shuffle_seed: int | None = None
    counter_of: Callable[[str], TokenCounter] | None = None


class ReplaySession:
    """One conversation, played to several backends.

    ``position`` is the number of turns played so far. A backend that fails to take in an exchange is out: its
    questions end in an error, since what it would answer from is no longer the conversation.
    """

    def __init__(
        self,
        conversation: Conversation,
        backends: Mapping[str, MemoryBackend],
        answerer: Answerer,
        plan: ReplayPlan,
        emit: EventSink,
    ) -> None:
        self.conversation = conversation
        self.position = 0
        self._backends = backends
        self._listening = {name: backend for name, backend in backends.items() if name not in plan.ask_only}
        self._answerer = answerer
        self._plan = plan
        self._emit = emit
        self._exchange_ending_at = {exchange.turn_number: exchange for exchange in exchanges_of(conversation)}
        self._locks = {name: asyncio.Lock() for name in backends}
        self._broken: dict[str, str] = {}

    @property
    def finished(self) -> bool:
        """Whether every turn was played."""
        return self.position >= len(self.conversation.turns)

    async def open(self) -> None:
        """Open every backend, empty."""
        for name, backend in self._listening.items():
            namespace = Namespace(run_id=self._plan.run_id, conversation_id=self.conversation.id, backend=name)
            await self._guarded(name, "open", backend.open(namespace))
            self._emit(ConversationOpened(conversation=self.conversation.id, turn=0, backend=name))

    async def step(self) -> bool:
        """Play the next turn to every backend. False where there is none left."""
        if self.finished:
            return False
        self.position += 1
        self._emit(TurnPlayed(conversation=self.conversation.id, turn=self.position))
        for name in self._listening:
            async with self._locks[name]:
                await self._hear(name)
        return True

    async def play(self) -> None:
        """Play all turns that are left."""
        while await self.step():
            pass

    async def _hear(self, name: str) -> None:
        """One backend hears the current turn: it perceives a user's, and observes a completed exchange."""
        backend = self._backends[name]
        turn = self.conversation.turns[self.position - 1]
        if self._plan.perceive and turn.role == "user":
            message = message_of(self.conversation, turn)
            started = perf_counter()
            budget = self._room_for(name, self._plan.models[0])
            recall = await self._guarded(name, "perceive", backend.perceive(message, self._plan.top_k, budget))
            if recall is not None:
                self._emit(
                    Perceived(
                        conversation=self.conversation.id,
                        turn=self.position,
                        backend=name,
                        hits=recall.hits,
                        missed=recall.missed,
                        why_empty=recall.why_empty,
                        cut=recall.cut,
                        tokens=recall.tokens,
                        ms=_ms_since(started),
                    )
                )
        exchange = self._exchange_ending_at.get(self.position)
        if exchange is None:
            return
        started = perf_counter()
        await self._guarded(name, "observe", backend.observe(exchange))
        self._emit(
            Observed(
                conversation=self.conversation.id,
                turn=self.position,
                backend=name,
                turns=exchange.turn_ids,
                ms=_ms_since(started),
            )
        )
        started = perf_counter()
        await self._guarded(name, "consolidate", backend.settle())
        self._emit(
            Settled(conversation=self.conversation.id, turn=self.position, backend=name, ms=_ms_since(started))
        )

    async def ask(
        self, question: Question, backend: str, model: str, *, repeat: int = 0, by_hand: bool = False
    ) -> AnswerScored:
        """Put a question to one backend as its memory stands, through one model, and score the reply."""
        model = self._through(backend, model)
        async with self._locks[backend]:
            started = perf_counter()
            recall = await self._recall(question, backend, model)
            recall_ms = _ms_since(started)
        given = recall if isinstance(recall, Recall) else Recall()
        answerer = self._answerer_of(backend)
        order = choice_order(question, self._plan.shuffle_seed)
        request = answerer.request(with_order(question, order), given.context, model, repeat)
        asked = QuestionAsked(
            conversation=self.conversation.id,
            turn=self.position,
            backend=backend,
            model=model,
            question_id=question.id,
            repeat=repeat,
            by_hand=by_hand,
            hits=given.hits,
            missed=given.missed,
            why_empty=given.why_empty,
            cut=given.cut,
            context_tokens=given.tokens,
            prompt=request.messages if isinstance(recall, Recall) else (),
            recall_ms=recall_ms,
            choice_order=order,
        )
        self._emit(asked)
        if isinstance(recall, Recall):
            reply = await answerer.answer(request)
        else:
            reply = Reply(text=None, error=recall)
        self._emit(ReplyReceived(**ask_fields(asked), reply=reply))
        scored = score_answer(question, asked, reply)
        self._emit(scored)
        return scored

    async def _recall(self, question: Question, name: str, model: str) -> Recall | str:
        """What memory gives for the question, or the sentence of why it gives nothing."""
        if name in self._broken:
            return self._broken[name]
        backend, budget = self._backends[name], self._room_for(name, model)
        failed: list[str] = []
        recall = await self._guarded(
            name, "recall", backend.recall(question.text, self._plan.top_k, budget), failed
        )
        return recall if recall is not None else failed[0]

    def _room_for(self, name: str, model: str) -> int:
        """Most tokens that a memory may give to this model, which are from now on counted as the model counts."""
        if self._plan.counter_of is not None and model != AGENT_MODEL:
            self._backends[name].read_by(self._plan.counter_of(model))
        return self._answerer_of(name).context_budget(model)

    def asks(self) -> list[Ask]:
        """Every question of the conversation, of every backend, through every model; agents answer themselves."""
        return [
            Ask(question, backend, model)
            for question in self.conversation.questions
            for backend in self._backends
            for model in self.models_asked_of(backend, self._plan.models)
        ]

    def models_asked_of(self, backend: str, models: Sequence[str]) -> list[str]:
        """Which of these models a backend's questions go through: all of them, or an agent's through itself."""
        return list(dict.fromkeys(self._through(backend, model) for model in models))

    def _through(self, name: str, model: str) -> str:
        """What a backend's question really goes through: an agent asks no model."""
        return model if self._answerer_of(name) is self._answerer else AGENT_MODEL

    def _answerer_of(self, name: str) -> Answerer:
        backend = self._backends[name]
        return backend if isinstance(backend, Answerer) else self._answerer

    async def close(self, status: ClosingStatus) -> None:
        """End the conversation in every backend: ``resolved``, or ``cancelled`` where it was abandoned."""
        end = len(self.conversation.turns) + 1
        for name, backend in self._listening.items():
            async with self._locks[name]:
                await self._guarded(name, "close", backend.close(status), turn=end)
            self._emit(ConversationClosed(conversation=self.conversation.id, turn=end, backend=name, status=status))

    async def _guarded(
        self,
        name: str,
        phase: Phase,
        work: Awaitable[T],
        failures: list[str] | None = None,
        *,
        turn: int | None = None,
    ) -> T | None:
        """Let a backend work; emit what it did, and its failure where it fails. None where it failed."""
        at = self.position if turn is None else turn
        result: T | None = None
        failure: str | None = None
        if name in self._broken and phase != "close":
            _discard(work)
            return None
        try:
            result = await work
        except BackendError as error:
            failure = str(error)
        except Exception as error:
            # A plugged-in memory may raise anything; the run and the other memories go on.
            failure = f"{type(error).__name__}: {error}"
        for entry in self._backends[name].trace.drain():
            self._emit(event_of(entry, self.conversation.id, at, name))
        if failure is not None:
            self._emit(
                BackendFailed(conversation=self.conversation.id, turn=at, backend=name, phase=phase, error=failure)
            )
            if phase in _MEMORY_IS_INCOMPLETE_AFTER:
                self._broken[name] = f"memory failed at turn {at} ({phase}): {failure}"
            if failures is not None:
                failures.append(failure)
        return result


def _ms_since(started: float) -> float:
    return round((perf_counter() - started) * 1000, 3)


def _discard(work: Awaitable[object]) -> None:
    if isinstance(work, Coroutine):
        work.close()
