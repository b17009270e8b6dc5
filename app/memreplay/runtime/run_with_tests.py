"""Runs that include tests, and the tests that can be picked on the screen."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memreplay.conversations.models import Conversation, Session
from memreplay.conversations.registry import load
from memreplay.engine.agent_session import AgentPlan, AgentSession
from memreplay.engine.events import EventSink
from memreplay.engine.known_replies import KnownReplies
from memreplay.engine.play import Played
from memreplay.engine.session import ReplaySession
from memreplay.errors import UsageError
from memreplay.goodai.dataset import RunConfig
from memreplay.goodai.definitions import Benchmark
from memreplay.goodai.language_model import LanguageModel, LLMReply, LLMRequest
from memreplay.goodai.loading import SHIPPED_DATASETS
from memreplay.goodai.scheduler import on_loop
from memreplay.goodai.sources import TestOptions, TestSource, split_specs
from memreplay.llm import AGENT_MODEL
from memreplay.llm.model import AnswerModel
from memreplay.llm.ports import ModelAgent
from memreplay.llm.tokens import token_counter
from memreplay.runtime.models import Judge
from memreplay.runtime.recorded import settings_to_continue
from memreplay.runtime.run import Run
from memreplay.runtime.work import NOTHING, Work, refuse_agents
from memreplay.settings import Settings
from memreplay.trust import Consent

if TYPE_CHECKING:
    from memreplay.runtime.counting import Counting


def start(
    settings: Settings,
    recording: Path,
    work: Work = NOTHING,
    *,
    streams: Iterable[TestStream] = (),
    resumes: bool = False,
    estimates: bool = False,
    warn: Callable[[str], None] = lambda sentence: None,
) -> RunWithTests:
    """Return a run that is ready to begin, with all that it needs: nothing was asked or recorded yet.

    Without a screen it does ``work``. The screen gives it ``streams`` of tests, and conversations one by one; it
    may go on with an unfinished run (``resumes``). One that ``estimates`` counts the calls that it would make, on
    embedded stores, so that servers stay unchanged.

    Raises:
        UsageError: a setting is unusable, or an option is one that no memory in the run takes.
    """
    counting = None
    if estimates:
        from memreplay.runtime.counting import Counting

        settings = replace(settings, redis_url=None, qdrant_url=None)
        counting = Counting(settings)
    return RunWithTests(settings, recording, work, streams, resumes=resumes, warn=warn, counting=counting)


@dataclass(frozen=True)
class TestStream:
    """The tests of a source that one memory and one model go through in one conversation.

    ``test_ids`` None means all of them; with ``--isolated`` it names one. ``repeat`` counts from 0.
    """

    __test__ = False

    conversation: Conversation
    source: TestSource
    backend: str
    model: str
    test_ids: tuple[str, ...] | None = None
    repeat: int = 0


def test_options_of(settings: Settings) -> TestOptions:
    return TestOptions(settings.examples, settings.memory_span, settings.seed)


def streams_of(source: TestSource, benchmark: Benchmark, settings: Settings) -> list[TestStream]:
    """Return the streams of a source: one per memory, model and repeat, and with ``--isolated`` per test.

    Each is a conversation of its own: ``source@backend``, or ``source/test@backend``, followed by ``@model`` if
    there are several models and ``#2`` in the second repeat.
    """
    ids = tuple(test.unique_id for test in benchmark.tests)
    parts = {f"{source.name}/{test_id}": (test_id,) for test_id in ids} if settings.isolated else {source.name: ids}
    several = len(settings.model) > 1
    streams = []
    for backend in settings.backend:
        for model in settings.model:
            for repeat in range(settings.repeats):
                for name, test_ids in parts.items():
                    full = "@".join([name, backend, model] if several else [name, backend]) + repeat_mark(repeat)
                    conversation = empty_conversation(full, source.name, benchmark.config)
                    streams.append(TestStream(conversation, source, backend, model, test_ids, repeat))
    return streams


def repeat_mark(repeat: int) -> str:
    """Return the suffix of a conversation's name in a repeat, counted from 0."""
    return f"#{repeat + 1}" if repeat else ""


def empty_conversation(conversation_id: str, dataset: str, config: RunConfig) -> Conversation:
    first = Session(number=1, id="1", date=config.start)
    return Conversation(
        id=conversation_id, dataset=dataset, sessions=(first,), turns=(), questions=(), conversing=True
    )


class RunWithTests(Run):
    """A run that can also play streams of tests, each by the id of its conversation."""

    def __init__(
        self,
        settings: Settings,
        recording_path: Path,
        work: Work = NOTHING,
        streams: Iterable[TestStream] = (),
        *,
        resumes: bool = False,
        warn: Callable[[str], None] = lambda sentence: None,
        counting: Counting | None = None,
    ) -> None:
        super().__init__(settings, recording_path, work, resumes=resumes, warn=warn, counting=counting)
        self._streams = {stream.conversation.id: stream for stream in streams}
        # For an estimate no tests are written by a model.
        judge = settings.judge if counting is None else None
        self.judge = Judge(judge, self.answer_model, settings.api_base) if judge is not None else None
        self.authored: dict[tuple[str, int], LLMReply] = {}
        """Replies of the judge while it wrote tests: paid once, however often the tests are created."""

    async def made(self, source: TestSource) -> Benchmark:
        """Return the tests of a source, created in a thread."""
        loop = asyncio.get_running_loop()
        return await asyncio.to_thread(source.benchmark, test_options_of(self.settings), self._author(loop))

    def start_session(  # type: ignore[override]  # a run of tests is played as any other conversation
        self,
        conversation: Conversation,
        emit: EventSink | None = None,
        *,
        backends: Sequence[str] | None = None,
        perceive: bool = True,
        played: Played | None = None,
    ) -> ReplaySession | AgentSession:
        """Return a session of a conversation, or of the stream of tests with its id."""
        stream = self._streams.get(conversation.id)
        if stream is None:
            return super().start_session(conversation, emit, backends=backends, perceive=perceive, played=played)
        if self.recorder is None:
            self.begin_run({conversation.id: stream.source.digest()}, [conversation.dataset])
        return self.start_tests(stream, emit)

    def start_tests(
        self, stream: TestStream, emit: EventSink | None = None, known: KnownReplies | None = None
    ) -> AgentSession:
        """Return a session of a stream. Each event is recorded before it is passed on; ``known`` replies are
        reused.
        """
        assert self.recorder is not None
        self.recorder.add_conversation(stream.conversation)
        if self.judge is not None and known is not None:
            self.judge.rejected |= known.rejected
        plan = self._plan_of(self.run_id, stream, self.judge)
        return self._session(stream, self.answer_model, plan, self.recorded(emit), known)

    def rehearsal_of_tests(
        self, stream: TestStream, model: AnswerModel, judge: Judge | None, emit: EventSink
    ) -> AgentSession:
        """Return a session of a stream with other models than those of the run; nothing is recorded."""
        return self._session(stream, model, self._plan_of(self.run_id, stream, judge), emit)

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
            memories[stream.backend].set_token_counter(token_counter(stream.model))
        base, room = self.settings.api_base, self.settings.context_tokens
        agent = ModelAgent(stream.model, model, base, room, repeat=stream.repeat)
        return AgentSession(stream.conversation, memories, agent, plan, emit, known)

    def _maker(self, stream: TestStream) -> Callable[[], Benchmark]:
        loop = asyncio.get_running_loop()

        def make() -> Benchmark:
            benchmark = stream.source.benchmark(test_options_of(self.settings), self._author(loop))
            chosen = [
                test for test in benchmark.tests if stream.test_ids is None or test.unique_id in stream.test_ids
            ]
            return Benchmark(benchmark.config, tuple(chosen), benchmark.notes)

        return make

    def _author(self, loop: asyncio.AbstractEventLoop) -> LanguageModel | None:
        """Writes tests: the same request again yields another text, but the same sequence every time."""
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


@dataclass(frozen=True)
class ListedTests:
    """A shipped dataset of tests in the list of the start screen."""

    id: str
    description: str


def listed_tests() -> list[ListedTests]:
    """Return the shipped datasets of tests; their files are not executed."""
    return [ListedTests(entry.key, f"interactive tests: {entry.name}") for entry in SHIPPED_DATASETS]


class ShownTests:
    """Maps a picked conversation to the tests that it stands for."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._streams: dict[str, TestStream] = {}

    def load(self, specs: Sequence[str], evidence: Path | None) -> list[Conversation]:
        """Return the conversations that the specs name; tests are still empty conversations.

        Raises:
            MemreplayError: a dataset is unusable.
        """
        named, sources = split_specs(specs)
        refuse_agents(self._settings, sources)
        if sources and self._settings.limit is not None:
            raise UsageError("--limit counts tests only with --batch; on the screen use --examples")
        streams = [stream for source in sources for stream in self._streams_of(source)]
        self._streams |= {stream.conversation.id: stream for stream in streams}
        replayed = list(load(named, evidence, lambda sentence: None)) if named else []
        return [*replayed, *(stream.conversation for stream in streams)]

    def _streams_of(self, source: TestSource) -> list[TestStream]:
        """Return one stream, or with ``--isolated`` one per test; memory and model are chosen later."""
        if not self._settings.isolated:
            return [TestStream(empty_conversation(source.name, source.name, RunConfig()), source, "", "")]
        made = source.benchmark(test_options_of(self._settings), None)
        ids = [test.unique_id for test in made.tests]
        return [
            TestStream(
                empty_conversation(f"{source.name}/{name}", source.name, made.config), source, "", "", (name,)
            )
            for name in ids
        ]

    def resume(self, recording: Path, recorded: Mapping[str, Any], consent: Consent) -> RunWithTests:
        """Return the run that goes on with the unfinished run of a recording, with its settings.

        Raises:
            NotAllowedError: they ask for what neither the user's settings nor ``consent`` allow.
            UsageError: the run was started without a screen, and asks what the screen does not.
        """
        if recorded.get("closed_book_asked_along"):
            raise UsageError(
                f"{recording}: this run was started with --batch; repeat that command with --recording {recording}"
                " --resume"
            )
        settings = settings_to_continue(recorded, self._settings, recording, consent)
        return start(settings, recording, resumes=True)

    def assemble(self, backends: Sequence[str], model: str, recording: Path) -> RunWithTests:
        settings = replace(self._settings, backend=tuple(backends), model=(model,))
        streams = [replace(stream, backend=backends[0], model=model) for stream in self._streams.values()]
        return start(settings, recording, streams=streams)
