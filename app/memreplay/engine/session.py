"""The replay engine: plays a conversation turn by turn to each backend, asks the questions and emits events.

It knows no screen, file or provider: events go to a sink, questions through an :class:`Answerer`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from memory_backends.base import ClosingStatus, MemoryBackend, Recall, TokenCounter
from memory_backends.editing import KeyEdit, StoreEdit
from memreplay.conversations.models import Conversation, Question, exchanges_of, message_of
from memreplay.engine.answers import AnswerJudge, ask_fields, choice_order, grade, with_order
from memreplay.engine.backend_driver import BackendDriver, Keeper, PlayedDriver, PlayedMemory
from memreplay.engine.events import AnswerScored, EventSink, QuestionAsked, ReplyReceived, TurnPlayed
from memreplay.errors import UsageError
from memreplay.llm import AGENT_MODEL
from memreplay.llm.model import AnswerRequest, Reply
from memreplay.llm.rate_limiter import StoppedError


@runtime_checkable
class Answerer(Protocol):
    """A port that turns a question into a request, and a request into a reply.

    A memory that is also an answerer is an agent: it answers its questions itself.
    """

    def request(self, question: Question, context: str, model: str, repeat: int) -> AnswerRequest:
        """Return the request that asks this question with this context."""
        ...

    async def answer(self, request: AnswerRequest) -> Reply:
        """Send the request. A failure is a reply with an error."""
        ...

    def context_budget(self, model: str, limited_by_top_k: bool = True) -> int:
        """Return the most tokens of memory in a prompt for this model, of a memory that top-k limits, or does
        not.
        """
        ...


@dataclass(frozen=True)
class Ask:
    """A question to be put to one backend through one model."""

    question: Question
    backend: str
    model: str
    repeat: int = 0


class PlayableSession(Protocol):
    """A port: a conversation that is played turn by turn."""

    @property
    def position(self) -> int:
        """Return the number of turns played so far."""
        ...

    @property
    def finished(self) -> bool:
        """Return whether no turn is left."""
        ...

    async def open(self) -> None:
        """Open its memories, before the first turn."""
        ...

    async def step(self) -> bool:
        """Play the next turn. False if none is left.

        Raises:
            StoppedError: no more calls are made to a model that the turn needs.
        """
        ...

    async def close(self, status: ClosingStatus) -> None:
        """End the conversation: ``resolved``, or ``cancelled`` if it was abandoned."""
        ...


@runtime_checkable
class AskableSession(PlayableSession, Protocol):
    """A port: a session whose memories can be asked the questions of the conversation."""

    def asks(self) -> list[Ask]:
        """Return all questions of the conversation, for each memory and model."""
        ...

    async def ask(self, question: Question, backend: str, model: str) -> AnswerScored:
        """Ask one memory a question in its current state, through one model, and score the reply."""
        ...

    async def grade(self, question: Question, asked: QuestionAsked, reply: Reply) -> AnswerScored:
        """Grade a reply that was received."""
        ...


@dataclass(frozen=True)
class EarlierLimits:
    """The limits of a memory's recalls at turns up to ``until``, before a branch changed them."""

    until: int
    top_k: int
    context_budget: Callable[[str, bool], int]


@dataclass(frozen=True)
class ReplayPlan:
    """The settings of a replay: the models that it asks, the most hits of memory, and so on.

    ``edits`` are made by hand in every memory that holds what they edit, once this many turns were played.
    ``ends_of_exchanges`` are turns of branches at which an exchange was complete.
    If ``edits_of_others``, an edit that matches no memory is not an error.
    ``earlier`` limits, the earliest first, hold at the turns before other ones were chosen.
    ``ask_only`` names backends that are asked without ingesting the conversation. If ``shuffle_seed`` is set, it
    and the question determine the order of the options. ``counter_of`` returns a model's tokenizer, with which
    memory then measures its context for that model. Without a ``judge`` the rules of the grader decide.
    """

    run_id: str
    models: tuple[str, ...]
    top_k: int = 10
    perceive: bool = True
    ask_only: frozenset[str] = frozenset()
    shuffle_seed: int | None = None
    counter_of: Callable[[str], TokenCounter] | None = None
    judge: AnswerJudge | None = None
    edits: tuple[tuple[int, StoreEdit], ...] = ()
    earlier: tuple[EarlierLimits, ...] = ()
    edits_of_others: bool = False
    ends_of_exchanges: frozenset[int] = frozenset()


class EditError(UsageError):
    """An edit by hand cannot be made."""


def _named(edit: StoreEdit) -> str:
    return f"{edit.key}{edit.pointer}" if isinstance(edit, KeyEdit) else f"a point {edit.id}"


class ReplaySession:
    """One conversation, played to several backends.

    ``position`` is the number of turns played so far. A backend that fails to ingest an exchange is out: its
    questions end in an error, since it would no longer answer from the conversation. Those that were ``played`` in
    another process are not called: the session emits what they did there, and asks with what they recalled.
    """

    def __init__(
        self,
        conversation: Conversation,
        backends: Mapping[str, MemoryBackend],
        answerer: Answerer,
        plan: ReplayPlan,
        emit: EventSink,
        keeper: Keeper | None = None,
        played: Mapping[str, PlayedMemory] | None = None,
    ) -> None:
        self.conversation = conversation
        self.position = 0
        self._backends = backends
        self._drivers = {
            name: PlayedDriver(conversation.id, name, backend, emit, played[name])
            if played and name in played
            else BackendDriver(conversation.id, name, backend, emit, keeper)
            for name, backend in backends.items()
        }
        self._ingesting = {name: memory for name, memory in self._drivers.items() if name not in plan.ask_only}
        self._answerer = answerer
        self._plan = plan
        self._emit = emit
        exchanges = exchanges_of(conversation, plan.ends_of_exchanges)
        self._exchange_ending_at = {exchange.turn_number: exchange for exchange in exchanges}

    @property
    def finished(self) -> bool:
        """Return whether all turns were played."""
        return self.position >= len(self.conversation.turns)

    async def open(self) -> None:
        """Open all backends: empty, or filled where the keeper has what an earlier run filled."""
        for memory in self._ingesting.values():
            await memory.open(self._plan.run_id)
        await self._edit_by_hand()

    @property
    def lost(self) -> dict[str, str]:
        """Return the backends whose stores lost something, and what, in one sentence each."""
        return {name: memory.lost for name, memory in self._ingesting.items() if memory.lost is not None}

    async def check_stores(self) -> None:
        """Compare the stores of all memories with what was written there.

        Raises:
            StoppedError: a store is not asked any more.
        """
        stopped: StoppedError | None = None
        for memory in self._ingesting.values():
            try:
                await memory.check_stores(self.position)
            except StoppedError as error:
                stopped = error
        if stopped is not None:
            raise stopped

    async def abandon(self, names: Collection[str]) -> None:
        """Close some memories before the others, without an event."""
        for name in names:
            await self._ingesting.pop(name).abandon()

    async def keep(self) -> None:
        """Keep the memories as they are now for later runs."""
        for memory in self._ingesting.values():
            await memory.keep()

    @property
    def ingesting(self) -> tuple[str, ...]:
        """Return names of the backends that ingest the conversation."""
        return tuple(self._ingesting)

    @property
    def kept_until(self) -> dict[str, int]:
        """Return the backends that an earlier run filled, wholly or up to a turn."""
        return {name: memory.kept_until for name, memory in self._ingesting.items() if memory.kept_until}

    async def step(self) -> bool:
        """Play the next turn to all backends. False if none is left.

        Raises:
            StoppedError: no more calls are made to a model that one memory needs; the others have ingested the
            turn.
        """
        if self.finished:
            return False
        self.position += 1
        self._emit(TurnPlayed(conversation=self.conversation.id, turn=self.position))
        ends = [await self._play_turn(name, memory) for name, memory in self._ingesting.items()]
        for stopped in ends:
            if stopped is not None:
                raise stopped
        await self._edit_by_hand()
        return True

    async def _edit_by_hand(self) -> None:
        """Make the edits that are due at this position.

        Raises:
            EditError: no memory holds what is edited, or one cannot be edited so.
        """
        for turn, edit in self._plan.edits:
            if turn == self.position:
                done = [await memory.edit(edit, self.position) for memory in self._ingesting.values()]
                if problem := next((why for why in done if isinstance(why, str)), None):
                    raise EditError(problem)
                if not any(done) and not self._plan.edits_of_others:
                    raise EditError(f"no memory holds {_named(edit)} after turn {turn}")

    async def play(self) -> None:
        """Play all remaining turns."""
        while await self.step():
            pass

    async def _play_turn(self, name: str, memory: BackendDriver) -> StoppedError | None:
        """Play the turn to one memory; what stopped it, if a model that it needs is not called any more."""
        try:
            async with memory.lock:
                await self._perceive_and_ingest(name, memory)
        except StoppedError as error:
            return error
        return None

    async def _perceive_and_ingest(self, name: str, memory: BackendDriver) -> None:
        """Let one memory perceive a user's turn, and ingest an exchange that the turn completes."""
        turn = self.conversation.turns[self.position - 1]
        if self._plan.perceive and turn.role == "user":
            message = message_of(self.conversation, turn)
            top_k, context_tokens = self._limits_of_perceiving(name, self._plan.models[0])
            await memory.perceive(message, top_k, context_tokens, self.position)
        exchange = self._exchange_ending_at.get(self.position)
        if exchange is not None:
            await memory.ingest(exchange, self.position)

    async def ask(
        self, question: Question, backend: str, model: str, *, repeat: int = 0, by_hand: bool = False
    ) -> AnswerScored:
        """Ask one backend a question in its current state, through one model, and score the reply."""
        model = self._through(backend, model)
        answerer = self._answerer_of(backend)
        recall, recall_ms = await self.recall(question, backend, model)
        recalled = recall if isinstance(recall, Recall) else Recall()
        order = choice_order(question, self._plan.shuffle_seed)
        request = answerer.request(with_order(question, order), recalled.context, model, repeat)
        asked = QuestionAsked(
            conversation=self.conversation.id,
            turn=self.position,
            backend=backend,
            model=model,
            question_id=question.id,
            repeat=repeat,
            by_hand=by_hand,
            hits=recalled.hits,
            missed=recalled.missed,
            why_empty=recalled.why_empty,
            cut=recalled.cut,
            context_tokens=recalled.tokens,
            prompt=request.messages if isinstance(recall, Recall) else (),
            recall_ms=recall_ms,
            choice_order=order,
            ranked=self._backends[backend].limited_by_top_k,
        )
        self._emit(asked)
        if isinstance(recall, Recall):
            reply = await answerer.answer(request)
        else:
            reply = Reply(text=None, error=recall)
        self._emit(ReplyReceived(**ask_fields(asked), reply=reply))
        return await self.grade(question, asked, reply)

    def driver(self, backend: str) -> BackendDriver:
        """Return what calls one of the memories."""
        return self._drivers[backend]

    async def recall(self, question: Question, backend: str, model: str) -> tuple[Recall | str, float]:
        """Return what a backend recalls for a prompt to this model, or why it fails, and how many ms that took."""
        memory = self._drivers[backend]
        async with memory.lock:
            context_tokens = self._context_tokens_for(backend, model)
            recall = await memory.recall(question.text, self._plan.top_k, context_tokens, self.position, model)
            return recall, memory.ms

    async def grade(self, question: Question, asked: QuestionAsked, reply: Reply) -> AnswerScored:
        """Grade a reply that was received.

        Raises:
            StoppedError: the judge cannot be called; the reply can be graded later.
        """
        return await grade(question, asked, reply, self._plan.judge, self._emit)

    def _context_tokens_for(self, name: str, model: str) -> int:
        """Return the most tokens of context for this model. It also makes the memory count tokens like the
        model.
        """
        if self._plan.counter_of is not None and model != AGENT_MODEL:
            self._backends[name].set_token_counter(self._plan.counter_of(model))
        return self._answerer_of(name).context_budget(model, self._backends[name].limited_by_top_k)

    def _limits_of_perceiving(self, name: str, model: str) -> tuple[int, int]:
        """Hits and tokens at this turn."""
        now = self._plan.top_k, self._context_tokens_for(name, model)
        earlier = next((each for each in self._plan.earlier if self.position <= each.until), None)
        if earlier is None:
            return now
        return earlier.top_k, earlier.context_budget(model, self._backends[name].limited_by_top_k)

    def asks(self) -> list[Ask]:
        """Return all questions of the conversation for each backend and model; agents answer without a model."""
        return [
            Ask(question, backend, model)
            for question in self.conversation.questions
            for backend in self._backends
            for model in self.models_asked_of(backend, self._plan.models)
        ]

    def models_asked_of(self, backend: str, models: Sequence[str]) -> list[str]:
        """Return those of the models that a backend's questions go through: all of them, or only itself for an
        agent.
        """
        return list(dict.fromkeys(self._through(backend, model) for model in models))

    def _through(self, name: str, model: str) -> str:
        """Return the model that a backend's question really goes through: an agent uses none."""
        return model if self._answerer_of(name) is self._answerer else AGENT_MODEL

    def _answerer_of(self, name: str) -> Answerer:
        backend = self._backends[name]
        return backend if isinstance(backend, Answerer) else self._answerer

    async def close(self, status: ClosingStatus) -> None:
        """End the conversation in all backends: ``resolved``, or ``cancelled`` if it was abandoned."""
        end = len(self.conversation.turns) + 1
        for memory in self._ingesting.values():
            await memory.close(status, end)
