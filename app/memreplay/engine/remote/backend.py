"""A remote agent as a backend that ingests the conversation, and as the answerer of its own questions."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter

from memory_backends.base import BackendError, ClosingStatus, Exchange, MemoryBackend, Namespace, Recall, Snapshot
from memory_backends.retrieval.rendering import date_heading
from memory_backends.snapshots import SnapshotDiffer
from memory_backends.stores.trace import MemoryTrace
from memreplay.conversations.models import Question
from memreplay.engine.remote.client import AgentClient, AgentError, AgentRefusedError, NotOfferedError, Said
from memreplay.llm import AGENT_MODEL
from memreplay.llm.model import AnswerRequest, PromptMessage, Reply
from memreplay.llm.prompts import question_prompt
from memreplay.llm.rate_limiter import ModelUnavailableError

ACTOR = "remote_agent"
AGENT_STORE = "agent"
"""The label of what an agent shows of its state, where it names no stores."""


@dataclass
class RemoteAgent:
    """The state of one agent in one run, shared by all its conversations.

    An agent without sessions has a single memory for everything. Its conversations then run one after the other,
    and the earlier questions and conversations are counted. If ``serves_without_sessions`` is False, it is refused.
    """

    client: AgentClient
    serves_without_sessions: bool = True
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    questions: int = 0
    conversations: int = 0


class AgentBackend(MemoryBackend):
    """Sends one conversation to an agent, and its questions.

    Each user turn is sent as a benchmark runner would send it, with the dataset's history; the agent's replies to
    them are dropped. Each question goes to a copy of the session if the agent can copy sessions. What the agent
    retrieves is unknown, so recalls are empty. ``GET /memory_state``, if supported, is the snapshot.
    """

    def __init__(self, name: str, agent: RemoteAgent) -> None:
        self.name = name
        self.trace = MemoryTrace()
        self._agent = agent
        self._client = agent.client
        self._differ = SnapshotDiffer(self.trace)
        self._asking = asyncio.Lock()
        self._session: str | None = None
        self._makes_copies = True
        self._shows_state = True
        self._holds_lock = False
        self._earlier_conversations = 0
        self._reset()

    def _reset(self) -> None:
        self.questions = 0
        self._history: list[Said] = []
        self._ingested: set[tuple[str, ...]] = set()
        self._dated_session: int | None = None

    # ---- the memory ----------------------------------------------------------------------------------------

    async def open(self, namespace: Namespace) -> None:
        """Create a session if the agent supports sessions; else wait until its single memory is free."""
        self._release_agent()
        self._reset()
        self._session = await self._client.new_session()
        if self._session is None:
            if not self._agent.serves_without_sessions:
                raise AgentError(
                    "the agent has a single memory: it can only be asked at the end of what was played"
                )
            await self._agent.lock.acquire()
            self._holds_lock = True
            self._earlier_conversations = self._agent.conversations
            self._agent.conversations += 1
        with self.trace.caused_by("open", ACTOR):
            await self._note_state()

    async def observe(self, exchange: Exchange) -> None:
        """Send the user's message to the agent. The assistant's reply is in the history of the next one."""
        if exchange.turn_ids in self._ingested:
            return
        self._ingested.add(exchange.turn_ids)
        with self.trace.caused_by("observe", ACTOR, exchange.turn_ids):
            heading = self._heading(exchange)
            said = "\n".join(message.text for message in exchange.messages if message.role == "user")
            if said and self._client.hears_every_turn:
                await self._say(heading + said)
            first, *rest = exchange.messages
            self._history.append(Said(first.role, first.label, first.text, heading))
            self._history += [Said(message.role, message.label, message.text) for message in rest]
            await self._note_state()

    async def _say(self, message: str) -> None:
        try:
            await self._client.run_turn(self._history, message, self._session)
        except AgentRefusedError as error:
            raise ModelUnavailableError(f"{self.name} is unavailable: {error}; set a valid token") from None

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        """Empty: the agent retrieves on its own when it answers."""
        return Recall()

    async def snapshot(self) -> Snapshot:
        """Return the memory state that the agent reports; empty if it does not support that."""
        if not self._shows_state:
            return Snapshot()
        try:
            state = await self._client.memory_state(self._session)
        except NotOfferedError:
            self._shows_state = False
            return Snapshot()
        if set(state) == set(Snapshot.model_fields):
            with suppress(ValueError):
                return Snapshot.model_validate(state)
        return Snapshot(values={AGENT_STORE: {"memory_state": state}})

    async def close(self, status: ClosingStatus) -> None:
        """End the session and release the agent."""
        self._release_agent()
        if self._session is not None:
            with suppress(AgentError):
                await self._client.end_session(self._session)
            self._session = None

    # ---- the answerer --------------------------------------------------------------------------------------

    def request(self, question: Question, context: str, model: str, repeat: int) -> AnswerRequest:
        """Return the message that asks the question; the history is sent with it."""
        message = PromptMessage(role="user", segments=(question_prompt(question),))
        return AnswerRequest(
            model=AGENT_MODEL,
            api_base=self._client.address.run_turn,
            messages=(message,),
            parameters={},
            repeat=repeat,
        )

    async def answer(self, request: AnswerRequest) -> Reply:
        """Ask a copy of the session, or the session itself if the agent cannot copy it."""
        async with self._asking:
            started = perf_counter()
            try:
                reply = await self._answer(request.messages[0].content)
            except AgentRefusedError as error:
                raise ModelUnavailableError(f"{self.name} is unavailable: {error}; set a valid token") from None
            except AgentError as error:
                reply = Reply(text=None, error=str(error))
            return reply.model_copy(update={"ms": (perf_counter() - started) * 1000})

    def context_budget(self, model: str, limited_by_top_k: bool = True) -> int:
        """0: an agent gets no context."""
        return 0

    async def _answer(self, message: str) -> Reply:
        copy = await self._copy_session()
        if copy is None:
            counter = self._agent if self._session is None else self
            earlier, counter.questions = counter.questions, counter.questions + 1
            text = await self._client.run_turn(self._history, message, self._session)
            return Reply(text=text, earlier_questions=earlier, earlier_conversations=self._earlier_conversations)
        try:
            return Reply(text=await self._client.run_turn(self._history, message, copy))
        finally:
            with suppress(AgentError):
                await self._client.end_session(copy)

    async def _copy_session(self) -> str | None:
        if self._session is None or not self._makes_copies:
            return None
        copy = await self._client.new_session(copy_of=self._session)
        self._makes_copies = copy is not None
        return copy

    # ---- helpers -------------------------------------------------------------------------------------------

    def _heading(self, exchange: Exchange) -> str:
        """Return the date line before the first message of a dated session; empty for other messages."""
        if exchange.said_at is None or exchange.session == self._dated_session:
            return ""
        self._dated_session = exchange.session
        return f"{date_heading(exchange.said_at)}\n"

    async def _note_state(self) -> None:
        """Trace the reported state. A failure to get it leaves the panel empty, but does not break the memory."""
        started = perf_counter()
        try:
            self._differ.note(await self.snapshot(), (perf_counter() - started) * 1000)
        except (BackendError, ValueError) as error:
            ms = (perf_counter() - started) * 1000
            self.trace.note(AGENT_STORE, "memory_state", "memory_state", None, ms, str(error))

    def _release_agent(self) -> None:
        if self._holds_lock:
            self._holds_lock = False
            self._agent.lock.release()
