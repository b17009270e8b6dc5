"""Runs of tests: without a screen, as an estimate, and on the screen."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from memreplay.conversations.log_options import DEFAULT_LOG_OPTIONS, LogOptions
from memreplay.conversations.models import Conversation, Session
from memreplay.conversations.registry import load
from memreplay.conversations.validation_errors import SILENT, OnOpened, OnWarning
from memreplay.engine.events import BenchmarkModelAsked, ConversationClosed, EventSink, ReplayEvent
from memreplay.engine.session import PlayableSession
from memreplay.errors import UsageError
from memreplay.goodai.dataset import DynamicExample, RunConfig
from memreplay.goodai.language_model import Judge, LanguageModel, LLMReply, LLMRequest, ModelAgent
from memreplay.goodai.scheduler import on_loop
from memreplay.goodai.session import AgentPlan, AgentSession, KnownReplies, failed_replies
from memreplay.goodai.sources import SHIPPED_DATASETS, Benchmark, TestOptions, TestSource, split_specs
from memreplay.llm import AGENT_MODEL
from memreplay.llm.counting import Estimate, Rows, not_asked
from memreplay.llm.model import AnswerModel, AnswerRequest, Reply, TokenUsage
from memreplay.llm.rate_limiter import StoppedError
from memreplay.llm.tokens import token_counter
from memreplay.recording.run_rows import PaidByTests
from memreplay.runtime.counting import Estimates, Failures, OccasionalLines
from memreplay.runtime.run import Run
from memreplay.runtime.work import refuse_agents, stratified_sample
from memreplay.scoring.rows import TEST_KINDS
from memreplay.settings import Settings

if TYPE_CHECKING:
    from memreplay.runtime.counting import Counting


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


class TestSessions:
    """Creates the tests of a run, and the sessions that play them."""

    __test__ = False

    def __init__(self, run: Run) -> None:
        self._run, self.settings = run, run.settings
        # For an estimate no tests are written by a model.
        judge = run.settings.judge if run.counting is None else None
        self.judge = Judge(judge, run.answer_model, run.settings.api_base) if judge is not None else None
        self.authored: dict[tuple[str, int], LLMReply] = {}
        """Replies of the judge while it wrote tests: paid once, however often the tests are created."""

    async def made(self, source: TestSource) -> Benchmark:
        """Return the tests of a source, created in a thread."""
        loop = asyncio.get_running_loop()
        return await asyncio.to_thread(source.benchmark, test_options_of(self.settings), self._author(loop))

    def start(
        self, stream: TestStream, emit: EventSink | None = None, known: KnownReplies | None = None
    ) -> AgentSession:
        """Return a session of a stream. Each event is recorded before it is passed on; ``known`` replies are
        reused.
        """
        assert self._run.recorder is not None
        self._run.recorder.add_conversation(stream.conversation)
        if self.judge is not None and known is not None:
            self.judge.rejected |= known.rejected
        plan = self._plan_of(stream, self.judge)
        return self._session(stream, self._run.answer_model, plan, self._run.recorded(emit), known)

    def rehearse(
        self, stream: TestStream, model: AnswerModel, judge: Judge | None, emit: EventSink
    ) -> AgentSession:
        """Return a session of a stream with other models than those of the run; nothing is recorded."""
        return self._session(stream, model, self._plan_of(stream, judge), emit)

    def _plan_of(self, stream: TestStream, judge: Judge | None) -> AgentPlan:
        return AgentPlan(self._run.run_id, self._maker(stream), self.settings.top_k, judge)

    def _session(
        self,
        stream: TestStream,
        model: AnswerModel,
        plan: AgentPlan,
        emit: EventSink,
        known: KnownReplies | None = None,
    ) -> AgentSession:
        memories = self._run.backends_for(stream.conversation, [stream.backend])
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


def chosen_tests(benchmarks: Sequence[Benchmark], settings: Settings) -> list[Benchmark]:
    """Return each benchmark with the tests to run: the first ``limit`` in all, or a sample stratified by
    dataset.
    """
    places = [(at, test) for at, benchmark in enumerate(benchmarks) for test in benchmark.tests]
    kept = {(at, test.unique_id) for at, test in places[: settings.limit]}
    if settings.sample is not None:
        by_dataset = ((test.dataset_name, (at, test.unique_id)) for at, test in places)
        kept = stratified_sample(by_dataset, settings.sample, settings.seed)
    return [
        replace(benchmark, tests=tuple(test for test in benchmark.tests if (at, test.unique_id) in kept))
        for at, benchmark in enumerate(benchmarks)
    ]


class ProgressOfTests(Protocol):
    """A port: what counts the replies and tests of a run."""

    def observe_test(self, event: ReplayEvent, *, resumed: bool) -> None:
        """Count an event of a test."""
        ...

    def add_recorded_reply(self, event: ReplayEvent) -> None:
        """Count the cost of a reply that is recorded already, of a test that is not finished."""
        ...


STREAMS_AT_ONCE = 4
"""Parallel conversations by default; each waits for one reply at a time."""


class TestsRunner:
    """Plays the tests of sources without a screen: each memory and model goes through all of them.

    Each reply is paid for once.
    """

    __test__ = False

    def __init__(self, run: Run, sources: Sequence[TestSource], *, retry_errors: bool = False) -> None:
        self._run, self._sources, self._retry_errors = run, sources, retry_errors
        self._sessions = TestSessions(run)
        self.totals: Counter[tuple[str, str]] = Counter()
        """Number of tests by memory and model."""
        self._streams: list[TestStream] = []
        self._stopping = False
        self._slots = asyncio.Semaphore(run.settings.concurrency or STREAMS_AT_ONCE)

    @property
    def digests(self) -> dict[str, str]:
        """Return the digest of each source by its name."""
        return {source.name: source.digest() for source in self._sources}

    async def prepare(self, report: Callable[[str], None]) -> None:
        """Create the tests; ``report`` receives the notes of their source.

        Raises:
            MemreplayError: they cannot be created.
        """
        made = [await self._sessions.made(source) for source in self._sources]
        for source, benchmark in zip(self._sources, chosen_tests(made, self._run.settings), strict=True):
            for note in benchmark.notes:
                report(note)
            streams = streams_of(source, benchmark, self._run.settings) if benchmark.tests else []
            for stream in streams:
                self.totals[stream.backend, stream.model] += len(stream.test_ids or ())
            self._streams += streams

    def stop(self) -> None:
        """Stop after the current messages; the run can be resumed."""
        self._stopping = True

    async def run(self, progress: ProgressOfTests) -> None:
        """Play all streams that are not recorded to their end."""
        recorder = self._run.recorder
        assert recorder is not None
        if not self._streams or self._stopping:
            return
        for stream in self._streams:
            # Add them all first: this fixes the order of rows, whichever finishes first.
            recorder.add_conversation(stream.conversation)
        self._record_writing()
        async with asyncio.TaskGroup() as group:
            for stream in self._streams:
                group.create_task(self._run_one(stream, progress))

    async def _run_one(self, stream: TestStream, progress: ProgressOfTests) -> None:
        async with self._slots:
            recorder = self._run.recorder
            assert recorder is not None
            known = self._recorded(stream)
            removed_failures = self._retry_errors and self._remove_failures(known)
            if removed_failures:
                known = self._recorded(stream)
            if not removed_failures and any(isinstance(event, ConversationClosed) for event in known):
                for event in known:
                    progress.observe_test(event, resumed=True)
                return
            if self._stopping:
                return
            recorder.forget_ingestion(stream.conversation.id, [stream.backend])
            for event in known:
                progress.add_recorded_reply(event)
            session = self._sessions.start(
                stream,
                lambda event: progress.observe_test(event, resumed=False),
                KnownReplies(known, strict=not self._retry_errors, moved=self._move),
            )
            with suppress(StoppedError):
                await session.open()
                while not self._stopping and await session.step():
                    pass
            if session.finished:
                await session.close("resolved")

    def _remove_failures(self, known: Sequence[ReplayEvent]) -> bool:
        """Remove failed replies so that they are asked again; whether there were any. Their cost stays recorded."""
        recorder = self._run.recorder
        assert recorder is not None
        replies, calls = failed_replies(known)
        for reply in replies:
            recorder.replace(reply, None)
        for call in calls:
            recorder.replace(call, call.model_copy(update={"used": False}))
        return bool(replies or calls)

    def _move(self, event: PaidByTests, turn: int) -> None:
        assert self._run.recorder is not None
        self._run.recorder.replace(event, event.model_copy(update={"turn": turn}))

    def _record_writing(self) -> None:
        """Record the cost of writing the tests, in the first conversation of the run."""
        first, recorder, judge = self._streams[0], self._run.recorder, self._sessions.judge
        assert recorder is not None
        calls = [event for event in self._recorded(first) if isinstance(event, BenchmarkModelAsked)]
        if judge is None or any(not call.test_id for call in calls):
            return
        for reply in self._sessions.authored.values():
            call = BenchmarkModelAsked(
                conversation=first.conversation.id,
                turn=0,
                backend=first.backend,
                test_id="",
                model=judge.name,
                reply=reply.text,
                error=reply.error,
                cost_usd=reply.cost_usd,
            )
            recorder.record(call)

    def _recorded(self, stream: TestStream) -> list[ReplayEvent]:
        recorder = self._run.recorder
        assert recorder is not None
        reader = recorder.reader()
        try:
            kinds = (*TEST_KINDS, "conversation_closed")
            return list(reader.events(recorder.run_id, stream.conversation.id, kinds))
        finally:
            reader.close()


JUDGING = "(judge, at least)"
"""The part of the judge of tests, in the place of a memory."""

_SHORT_REPLY = "Thank you for telling me. I will keep it in mind, and come back to it whenever you want me to."


def _short_reply(request: AnswerRequest, key: str) -> Reply:
    return Reply(text=_SHORT_REPLY, usage=TokenUsage(completion=token_counter(request.model)(_SHORT_REPLY)))


async def estimate_tests(run: Run, sources: Sequence[TestSource]) -> Estimates:
    """Return what the tests of a run that ``estimates`` would take, their judge included. It is over afterwards.

    Tests are rehearsed with an agent that always gives the same short reply. The length of its prompts depends on
    that reply; the choice of prompts does only in dynamic tests and tests with callbacks. For each test only the
    first call to the judge is counted.

    Raises:
        UsageError: a model would have to write tests first, or a dataset's code fails.
    """
    assert run.counting is not None
    try:
        return await _estimate(run, run.counting, sources)
    finally:
        await run.finish("interrupted")


async def _estimate(run: Run, counting: Counting, sources: Sequence[TestSource]) -> Estimates:
    settings, sessions = run.settings, TestSessions(run)
    agent, judging = counting.model(_short_reply), counting.model(not_asked)
    judge = Judge(settings.judge, judging, settings.api_base) if settings.judge else None
    made = chosen_tests([await _create_tests(sessions, source) for source in sources], settings)
    rows: Rows = {}
    lines, failures = OccasionalLines(), Failures()
    for source, benchmark in zip(sources, made, strict=True):
        for stream in streams_of(source, benchmark, settings) if benchmark.tests else []:
            agent.row = rows.setdefault((stream.backend, stream.model), Estimate())
            agent.row.asked += len(stream.test_ids or ()) if stream.repeat == 0 else 0
            session = sessions.rehearse(stream, agent, judge, failures.note)
            await session.open()
            while await session.step():
                lines.say(f"{stream.conversation.id}, turn {session.position}")
            await session.close("resolved")
    if judge is not None:
        judging.row.asked = sum(len(benchmark.tests) for benchmark in made)
        judging.row.certainty = "about"
        rows[JUDGING, judge.name] = judging.row
    for row in rows.values():
        if row.calls:
            row.certainty = "about"
    rows |= counting.finished({})
    return Estimates(rows, [*failures.marked(rows), *_caveats(made)])


async def _create_tests(sessions: TestSessions, source: TestSource) -> Benchmark:
    try:
        return await sessions.made(source)
    except UsageError as error:
        raise UsageError(f"--estimate calls no model, so it cannot have tests written: {error}") from None


def _caveats(made: Iterable[Benchmark]) -> Iterator[str]:
    tests = [test for benchmark in made for test in benchmark.tests]
    yield f'Assumes that the agent always replies: "{_SHORT_REPLY}"'
    free = sum(isinstance(test, DynamicExample) or test.uses_callback for test in tests)
    if free:
        yield (
            f"{free} of {len(tests)} tests depend on the agent's replies (dynamic tests, callbacks), and may take"
            " more or fewer calls."
        )


@dataclass(frozen=True)
class ListedTests:
    """A shipped dataset of tests in the list of the start screen."""

    id: str
    description: str


def listed_tests() -> list[ListedTests]:
    """Return the shipped datasets of tests; their files are not executed."""
    return [ListedTests(entry.key, f"interactive tests: {entry.name}") for entry in SHIPPED_DATASETS]


class ScreenRun(Run):
    """A run on the screen, some of whose conversations are streams of tests."""

    def __init__(self, settings: Settings, recording_path: Path, streams: Iterable[TestStream]) -> None:
        super().__init__(settings, recording_path)
        self._streams = {stream.conversation.id: stream for stream in streams}

    def session_for(self, conversation: Conversation, emit: EventSink) -> PlayableSession:
        """Return a session of a conversation, or of the stream of tests with its id."""
        stream = self._streams.get(conversation.id)
        if stream is None:
            return super().session_for(conversation, emit)
        if self.recorder is None:
            self.begin_run({conversation.id: stream.source.digest()}, [conversation.dataset])
        return TestSessions(self).start(stream, emit)


class ShownTests:
    """Maps a picked conversation to the tests that it stands for."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._streams: dict[str, TestStream] = {}

    def load(
        self,
        specs: Sequence[str],
        evidence: Path | None,
        logs: LogOptions = DEFAULT_LOG_OPTIONS,
        warn: OnWarning = SILENT.on_warning,
        on_opened: OnOpened = SILENT.on_opened,
    ) -> Iterator[Conversation]:
        """Return the conversations that the specs name, read as the iterator advances; tests are still empty
        conversations.

        Raises:
            MemreplayError: a dataset is unusable.
        """
        named, sources = split_specs(specs)
        if sources:
            refuse_agents(self._settings)
        if sources and self._settings.limit is not None:
            raise UsageError("--limit counts tests only with --batch; on the screen use --examples")
        streams = [stream for source in sources for stream in self._streams_of(source)]
        self._streams |= {stream.conversation.id: stream for stream in streams}
        replayed = load(named, evidence, warn, on_opened, logs) if named else ()
        return chain(replayed, (stream.conversation for stream in streams))

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

    def assemble(self, backends: Sequence[str], model: str, recording: Path) -> Run:
        """Return a run of these memories and this model, which plays any conversation that was loaded."""
        settings = replace(self._settings, backend=tuple(backends), model=(model,))
        streams = [replace(stream, backend=backends[0], model=model) for stream in self._streams.values()]
        return ScreenRun(settings, recording, streams)
