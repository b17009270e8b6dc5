"""The engine: plays a conversation turn by turn to every backend, asks the questions, and emits what happens.

It knows no screen, no file and no provider: events go to a sink, questions through an :class:`Answerer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol, runtime_checkable

from memory_backends.base import ClosingStatus, MemoryBackend, Recall, TokenCounter
from memreplay.conversations.exchanges import exchanges_of, message_of
from memreplay.conversations.models import Conversation, Question
from memreplay.engine.answers import ask_fields, choice_order, score_answer, with_order
from memreplay.engine.backend_driver import BackendDriver, ms_since
from memreplay.engine.events import AnswerScored, EventSink, QuestionAsked, ReplyReceived, TurnPlayed
from memreplay.llm import AGENT_MODEL
from memreplay.llm.model import AnswerRequest, Reply
from memreplay.llm.rate_limiter import StoppedError


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
        self._memories = {
            name: BackendDriver(conversation.id, name, backend, emit) for name, backend in backends.items()
        }
        self._listening = {name: memory for name, memory in self._memories.items() if name not in plan.ask_only}
        self._answerer = answerer
        self._plan = plan
        self._emit = emit
        self._exchange_ending_at = {exchange.turn_number: exchange for exchange in exchanges_of(conversation)}

    @property
    def finished(self) -> bool:
        """Whether every turn was played."""
        return self.position >= len(self.conversation.turns)

    async def open(self) -> None:
        """Open every backend, empty."""
        for memory in self._listening.values():
            await memory.open(self._plan.run_id)

    async def step(self) -> bool:
        """Play the next turn to every backend. False where there is none left.

        Raises:
            StoppedError: a model that a memory asks is asked no more; the others have heard the turn.
        """
        if self.finished:
            return False
        self.position += 1
        self._emit(TurnPlayed(conversation=self.conversation.id, turn=self.position))
        halted: StoppedError | None = None
        for name, memory in self._listening.items():
            try:
                async with memory.alone:
                    await self._hear(name, memory)
            except StoppedError as error:
                halted = error
        if halted is not None:
            raise halted
        return True

    async def play(self) -> None:
        """Play all turns that are left."""
        while await self.step():
            pass

    async def _hear(self, name: str, memory: BackendDriver) -> None:
        """One memory hears the current turn: it perceives a user's, and observes a completed exchange."""
        turn = self.conversation.turns[self.position - 1]
        if self._plan.perceive and turn.role == "user":
            message = message_of(self.conversation, turn)
            budget = self._room_for(name, self._plan.models[0])
            await memory.perceive(message, self._plan.top_k, budget, self.position)
        exchange = self._exchange_ending_at.get(self.position)
        if exchange is not None:
            await memory.hear(exchange, self.position)

    async def ask(
        self, question: Question, backend: str, model: str, *, repeat: int = 0, by_hand: bool = False
    ) -> AnswerScored:
        """Put a question to one backend as its memory stands, through one model, and score the reply."""
        model = self._through(backend, model)
        answerer, memory = self._answerer_of(backend), self._memories[backend]
        async with memory.alone:
            started = perf_counter()
            budget = self._room_for(backend, model)
            recall = await memory.recall(question.text, self._plan.top_k, budget, self.position)
            recall_ms = ms_since(started)
        given = recall if isinstance(recall, Recall) else Recall()
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

    def _room_for(self, name: str, model: str) -> int:
        """Most tokens that a memory may give to this model, which are from now on counted as the model counts."""
        if self._plan.counter_of is not None and model != AGENT_MODEL:
            self._backends[name].set_token_counter(self._plan.counter_of(model))
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
        for memory in self._listening.values():
            await memory.close(status, end)
