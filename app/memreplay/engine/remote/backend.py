"""A remote agent as the engine sees it: a memory that hears the conversation, and an answerer of its own."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter

from memory_backends.base import BackendError, ClosingStatus, Exchange, MemoryBackend, Namespace, Recall, Snapshot
from memory_backends.retrieval.rendering import date_heading
from memory_backends.stores.snapshot_diff import SnapshotDiffer
from memory_backends.stores.trace import MemoryTrace
from memreplay.conversations.models import Question
from memreplay.engine.remote.client import AgentClient, AgentError, NotOfferedError
from memreplay.llm import AGENT_MODEL
from memreplay.llm.model import AnswerRequest, PromptMessage, Reply
from memreplay.llm.prompts import question_prompt

ACTOR = "remote_agent"
AGENT_STORE = "agent"
"""The label of what an agent shows of its state, where it names no stores."""


@dataclass
class RemoteAgent:
    """One agent in one run, however many conversations it hears.

    One that offers no sessions has a single memory for everything that is ever said to it: then its conversations
    wait for each other, and what came before is counted; unless it ``serves_without_sessions`` it is left alone.
    """

    client: AgentClient
    serves_without_sessions: bool = True
    alone: asyncio.Lock = field(default_factory=asyncio.Lock)
    questions: int = 0
    conversations: int = 0


class AgentBackend(MemoryBackend):
    """Hears one conversation, and answers its questions itself.

    It is told every user turn as a benchmark runner would tell it, with the history as the dataset has it; what it
    replies to them is dropped. Each question goes to a copy of its session where it makes copies. What it looks up
    stays its own: a recall is empty. ``GET /memory_state``, where there is one, is its snapshot.
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
        self._holds_the_agent = False
        self._earlier_conversations = 0
        self._begin()

    def _begin(self) -> None:
        self.questions = 0
        self._history = ""
        self._heard: set[tuple[str, ...]] = set()
        self._dated_session: int | None = None

    # ---- the memory ----------------------------------------------------------------------------------------

    async def open(self, namespace: Namespace) -> None:
        """A session of its own, where the agent offers sessions; else its one memory, as soon as it is free."""
        self._let_go()
        self._begin()
        self._session = await self._client.new_session()
        if self._session is None:
            if not self._agent.serves_without_sessions:
                raise AgentError("the agent has a single memory: it can only be asked where the replay stands")
            await self._agent.alone.acquire()
            self._holds_the_agent = True
            self._earlier_conversations = self._agent.conversations
            self._agent.conversations += 1
        with self.trace.caused_by("open", ACTOR):
            await self._note_state()

    async def observe(self, exchange: Exchange) -> None:
        """Say the user's words to the agent; the assistant's stand in the history from then on."""
        if exchange.turn_ids in self._heard:
            return
        self._heard.add(exchange.turn_ids)
        with self.trace.caused_by("observe", ACTOR, exchange.turn_ids):
            heading = self._heading(exchange)
            said = "\n".join(message.text for message in exchange.messages if message.role == "user")
            if said:
                await self._client.run_turn(self._history, heading + said, self._session)
            self._history += f"{heading}{exchange.text}\n"
            await self._note_state()

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        """Nothing that anybody else could see."""
        return Recall()

    async def snapshot(self) -> Snapshot:
        """What the agent says that it holds; nothing where it says nothing."""
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
        """Let go of the session, and of the agent."""
        self._let_go()
        if self._session is not None:
            with suppress(AgentError):
                await self._client.end_session(self._session)
            self._session = None

    # ---- the answerer --------------------------------------------------------------------------------------

    def request(self, question: Question, context: str, model: str, repeat: int) -> AnswerRequest:
        """The message that puts the question; the history goes beside it."""
        message = PromptMessage(role="user", segments=(question_prompt(question),))
        return AnswerRequest(
            model=AGENT_MODEL,
            api_base=self._client.address.run_turn,
            messages=(message,),
            parameters={},
            repeat=repeat,
        )

    async def answer(self, request: AnswerRequest) -> Reply:
        """Ask a copy of the session as it stands, or, where there is none to be had, the session itself."""
        async with self._asking:
            started = perf_counter()
            try:
                reply = await self._answer(request.messages[0].content)
            except AgentError as error:
                reply = Reply(text=None, error=str(error))
            return reply.model_copy(update={"ms": (perf_counter() - started) * 1000})

    def context_budget(self, model: str) -> int:
        """It is given no context."""
        return 0

    async def _answer(self, message: str) -> Reply:
        copy = await self._copied()
        if copy is None:
            heard = self._agent if self._session is None else self
            earlier, heard.questions = heard.questions, heard.questions + 1
            text = await self._client.run_turn(self._history, message, self._session)
            return Reply(text=text, earlier_questions=earlier, earlier_conversations=self._earlier_conversations)
        try:
            return Reply(text=await self._client.run_turn(self._history, message, copy))
        finally:
            with suppress(AgentError):
                await self._client.end_session(copy)

    async def _copied(self) -> str | None:
        if self._session is None or not self._makes_copies:
            return None
        copy = await self._client.new_session(copy_of=self._session)
        self._makes_copies = copy is not None
        return copy

    # ---- within --------------------------------------------------------------------------------------------

    def _heading(self, exchange: Exchange) -> str:
        """The date line that stands before the first words of a dated session."""
        if exchange.said_at is None or exchange.session == self._dated_session:
            return ""
        self._dated_session = exchange.session
        return f"{date_heading(exchange.said_at)}\n"

    async def _note_state(self) -> None:
        """A state that cannot be had costs the panel, not the memory."""
        started = perf_counter()
        try:
            self._differ.note(await self.snapshot(), (perf_counter() - started) * 1000)
        except (BackendError, ValueError) as error:
            ms = (perf_counter() - started) * 1000
            self.trace.note(AGENT_STORE, "memory_state", "memory_state", None, ms, str(error))

    def _let_go(self) -> None:
        if self._holds_the_agent:
            self._holds_the_agent = False
            self._agent.alone.release()
