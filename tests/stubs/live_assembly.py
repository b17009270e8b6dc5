"""A live run without a model: the real engine over real memories with embedded stores, and answers from a table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memory_backends.base import MemoryBackend
from memory_backends.registry import create_backend
from memory_backends.resources import Resources
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import RedisConnection
from memreplay.conversations.models import Conversation, Question
from memreplay.engine.answers import AnswerJudge
from memreplay.engine.events import ReplayEvent
from memreplay.engine.probes import Probe
from memreplay.engine.session import ReplayPlan, ReplaySession
from memreplay.llm.model import AnswerRequest, PromptMessage, Reply
from memreplay.recording.annotations import annotations_of
from memreplay.recording.writer import RunRecorder
from memreplay.timeline.annotations import Annotations, SessionAnnotations
from memreplay.timeline.event_store import EventArchive
from tests.stubs.memory import TickingClock, WordEmbedder, count_words

MODEL = "stub/table"


class TableAnswerer:
    """Answers by the text of the question. Each call waits until ``open_gate`` lets it through."""

    def __init__(self, answers: Mapping[str, str], budget: int) -> None:
        self.asked: list[str] = []
        self.open_gate = asyncio.Event()
        self.open_gate.set()
        self._answers = answers
        self._budget = budget

    def request(self, question: Question, context: str, model: str, repeat: int) -> AnswerRequest:
        message = PromptMessage(role="user", segments=(context, question.text))
        return AnswerRequest(model=model, api_base=None, messages=(message,), parameters={}, repeat=repeat)

    async def answer(self, request: AnswerRequest) -> Reply:
        question = request.messages[0].segments[1]
        self.asked.append(question)
        await self.open_gate.wait()
        return Reply(text=self._answers.get(question, "The conversation does not say."))

    def context_budget(self, model: str, limited_by_top_k: bool = True) -> int:
        return self._budget


@dataclass
class StubSettings:
    """Settings that can be shown."""

    shown: dict[str, Any]

    def public(self) -> dict[str, Any]:
        return self.shown


@dataclass
class StubAssembly:
    """What :class:`memreplay.runtime.run.Run` is to the screens. ``trouble`` is raised by its check."""

    backend_names: tuple[str, ...]
    recording_path: Path
    answers: Mapping[str, str] = field(default_factory=dict)
    models: tuple[str, ...] = (MODEL,)
    trouble: Exception | None = None
    budget: int = 60
    backends: dict[str, MemoryBackend] = field(default_factory=dict)
    status: str = "not finished"
    judge: AnswerJudge | None = None

    def __post_init__(self) -> None:
        self.settings = StubSettings({"model": list(self.models), "top_k": 10})
        self.answerer = TableAnswerer(self.answers, self.budget)
        self._recorder: RunRecorder | None = None

    @property
    def recorder(self) -> RunRecorder | None:
        return self._recorder

    @property
    def is_over(self) -> bool:
        return self.status != "not finished"

    def _memories(self, conversation: Conversation, names: Sequence[str]) -> dict[str, MemoryBackend]:
        resources = Resources(
            redis=RedisConnection.embedded(),
            qdrant=QdrantConnection.embedded(),
            embedder=WordEmbedder(),
            count_tokens=count_words,
            clock=TickingClock(),
        )
        evidence = {question.text: question.evidence for question in conversation.questions}
        return {name: create_backend(name, resources, evidence) for name in names}

    def side_session(self, conversation: Conversation, emit: Callable[[ReplayEvent], None]) -> Probe:
        def make(name: str) -> MemoryBackend:
            return self._memories(conversation, [name])[name]

        recorder = self._recorder

        def told(event: ReplayEvent) -> None:
            if recorder is not None:
                recorder.record(event)
            emit(event)

        return Probe(conversation, make, self.answerer, ReplayPlan(run_id="side", models=self.models), told)

    def session_for(self, conversation: Conversation, emit: Callable[[ReplayEvent], None]) -> ReplaySession:
        self.backends = self._memories(conversation, self.backend_names)
        recorder = RunRecorder.start(self.recording_path, self.settings.public(), [conversation.dataset], "fixed")
        recorder.add_conversation(conversation)
        self._recorder = recorder

        def record(event: ReplayEvent) -> None:
            recorder.record(event)
            emit(event)

        plan = ReplayPlan(run_id="run-1", models=self.models, judge=self.judge)
        return ReplaySession(conversation, self.backends, self.answerer, plan, record)

    def annotations(self, conversation_id: str) -> Annotations:
        if self._recorder is None:
            return SessionAnnotations()
        if self.status != "not finished":
            return annotations_of(self.recording_path, self._recorder.run_id, conversation_id)
        return self._recorder.annotations(conversation_id)

    def live_archive(self, conversation: Conversation) -> EventArchive:
        assert self._recorder is not None
        return self._recorder.live_archive(conversation.id)

    def try_again(self) -> None:
        return

    def kept_events(self, conversation_id: str) -> Sequence[ReplayEvent]:
        return ()

    async def warm_up(self) -> None:
        return

    async def check(self) -> None:
        if self.trouble is not None:
            raise self.trouble

    async def finish(self, status: Literal["finished", "interrupted"]) -> None:
        self.status = status
        if self._recorder is not None:
            self._recorder.finish(status)


def forbidden(names: Sequence[str], model: str) -> StubAssembly:
    """An assembly that must not be asked for: a recording needs none."""
    raise AssertionError(f"a recording needs no memory, yet {names} with {model} were asked for")
