"""Runs of tests, in which the agent really answers: put together from settings, as replays are."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from uuid import uuid4

from app.answering.agent import ModelAgent
from app.answering.judge import Judge, refuse_extractive_judge
from app.answering.model import AnswerModel
from app.answering.model_names import AGENT_MODEL
from app.answering.reachability import ensure_reachable
from app.answering.tokens import token_counter
from app.assembling.assembly import Assembly
from app.assembling.streams import TestStream, wishes_of
from app.conversations.models import Conversation
from app.dataset_interfaces.async_steps import on_loop
from app.dataset_interfaces.definitions import Benchmark
from app.dataset_interfaces.language_model import LanguageModel, LLMReply, LLMRequest
from app.dataset_interfaces.sources import TestSource
from app.replay.agent_plan import AgentPlan
from app.replay.agent_session import AgentSession
from app.replay.events import EventSink, ReplayEvent
from app.replay.known_replies import KnownReplies
from app.replay.session import ReplaySession
from app.settings import Settings


class ConversingAssembly(Assembly):
    """An assembly that can also play runs of tests: each stream by the id of its conversation."""

    def __init__(
        self,
        settings: Settings,
        recording_path: Path,
        streams: Iterable[TestStream] = (),
        *,
        asked_along: tuple[str, ...] = (),
        warn: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        refuse_extractive_judge(settings.judge)
        super().__init__(settings, recording_path, asked_along=asked_along, warn=warn)
        self._streams = {stream.conversation.id: stream for stream in streams}
        judge = settings.judge
        self.judge = Judge(judge, self.answer_model, settings.api_base) if judge is not None else None
        self.authored: dict[tuple[str, int], LLMReply] = {}
        """What a model wrote of the tests: each reply is paid once, however often the tests are made."""

    async def check(self) -> None:
        """Make sure of every server and key that this run needs; those of the judge too."""
        await super().check()
        if self.judge is not None and not self.settings.offline:
            await asyncio.to_thread(ensure_reachable, self.judge.name, self.settings.api_base)

    async def made(self, source: TestSource) -> Benchmark:
        """The tests of a source, made in a thread."""
        loop = asyncio.get_running_loop()
        return await asyncio.to_thread(source.benchmark, wishes_of(self.settings), self._author(loop))

    def start_session(  # type: ignore[override]  # a run of tests is played as any other conversation
        self,
        conversation: Conversation,
        emit: EventSink | None = None,
        *,
        backends: Sequence[str] | None = None,
        perceive: bool = True,
    ) -> ReplaySession | AgentSession:
        """A session of a conversation, or of the stream of tests that has its id."""
        stream = self._streams.get(conversation.id)
        if stream is None:
            return super().start_session(conversation, emit, backends=backends, perceive=perceive)
        if self.recorder is None:
            self.begin_run({conversation.id: stream.source.digest()}, [conversation.dataset])
        return self.start_tests(stream, emit)

    def start_tests(
        self, stream: TestStream, emit: EventSink | None = None, known: KnownReplies | None = None
    ) -> AgentSession:
        """A session of a stream. Every event is recorded before it is passed on; ``known`` is what was paid for."""
        assert self.recorder is not None
        self.recorder.add_conversation(stream.conversation)
        if self.judge is not None and known is not None:
            self.judge.rejected |= known.rejected
        plan = self._plan_of(self.recorder.run_id, stream, self.judge)
        return self._session(stream, self.answer_model, plan, self.recorded(emit), known)

    def rehearsal(self, stream: TestStream, model: AnswerModel, judge: Judge | None) -> AgentSession:
        """A session of a stream that asks others than the run would, and leaves nothing on record."""
        return self._session(
            stream, model, self._plan_of(f"estimate-{uuid4().hex[:8]}", stream, judge), _unrecorded
        )

    def _plan_of(self, run_id: str, stream: TestStream, judge: Judge | None) -> AgentPlan:
        return AgentPlan(run_id, self._maker(stream), self.settings.top_k, judge)

    def _session(
        self,
        stream: TestStream,
        model: AnswerModel,
        plan: AgentPlan,
        emit: EventSink,
        known: KnownReplies | None = None,
    ) -> AgentSession:
        memories = self.backends_for(stream.conversation, [stream.backend])
        if stream.model != AGENT_MODEL:
            memories[stream.backend].read_by(token_counter(stream.model))
        base, room = self.settings.api_base, self.settings.context_tokens
        agent = ModelAgent(stream.model, model, base, room, repeat=stream.repeat)
        return AgentSession(stream.conversation, memories, agent, plan, emit, known)

    def _maker(self, stream: TestStream) -> Callable[[], Benchmark]:
        loop = asyncio.get_running_loop()

        def make() -> Benchmark:
            benchmark = stream.source.benchmark(wishes_of(self.settings), self._author(loop))
            chosen = [
                test for test in benchmark.tests if stream.test_ids is None or test.unique_id in stream.test_ids
            ]
            return Benchmark(benchmark.config, tuple(chosen), benchmark.notes)

        return make

    def _author(self, loop: asyncio.AbstractEventLoop) -> LanguageModel | None:
        """Who writes tests that a model has to write: another text each time it is asked, and always the same."""
        if self.judge is None:
            return None
        judge, asked = self.judge, Counter[str]()

        async def answer(request: LLMRequest) -> LLMReply:
            place = repr(request), asked[repr(request)]
            asked[repr(request)] += 1
            if place not in self.authored:
                self.authored[place] = await judge.answer(request, repeat=place[1])
            return self.authored[place]

        return on_loop(answer, loop)


def _unrecorded(event: ReplayEvent) -> None:
    """A rehearsal leaves nothing behind."""
