"""A run, built from its settings: the one place where models, memories and the recording meet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from memory_backends.base import Exchange, MemoryBackend
from memory_backends.controls import CLOSED_BOOK, CONTROLS
from memreplay.conversations.models import Conversation
from memreplay.engine.events import EventSink, ReplayEvent
from memreplay.engine.probes import Probe
from memreplay.engine.remote.addresses import is_agent, models_asked_of
from memreplay.engine.session import ReplayPlan, ReplaySession
from memreplay.errors import MissingServerOrKeyError
from memreplay.llm import AGENT_MODEL
from memreplay.llm.catalogue import ensure_reachable
from memreplay.llm.model import AnswerModel
from memreplay.llm.ports import ModelAnswerer
from memreplay.llm.tokens import token_counter
from memreplay.recording.annotations import annotations_of
from memreplay.recording.bodies import text_hash, to_json
from memreplay.recording.reader import UNFINISHED, RunStatus
from memreplay.recording.writer import RunRecorder, fingerprint
from memreplay.runtime.clusters import number_of_workers, refuse_unusable_cluster, started_workers
from memreplay.runtime.memories import RunMemories
from memreplay.runtime.models import RunModels
from memreplay.runtime.worker import Ports
from memreplay.runtime.worker_memory import WorkerMemory
from memreplay.runtime.workers import Port, Workers, WorkerStatus
from memreplay.settings import AS_GIVEN, CHANGE_NO_ANSWER, Settings
from memreplay.timeline.annotations import Annotations, SessionAnnotations
from memreplay.timeline.event_store import EventArchive

if TYPE_CHECKING:
    from memreplay.runtime.counting import Counting


class Run:
    """The stores, the embedder, the models and the recorder of one run.

    ``implicit_baselines`` are controls that run without being chosen. One that ``resumes`` goes on with the
    unfinished run of the same settings and conversation. ``warn`` receives one sentence for each
    problem that the run survives. With ``counting`` it is an estimate, which makes no call and records nothing.
    """

    def __init__(
        self,
        settings: Settings,
        recording_path: Path,
        *,
        implicit_baselines: tuple[str, ...] = (),
        resumes: bool = False,
        warn: Callable[[str], None] = lambda sentence: None,
        counting: Counting | None = None,
    ) -> None:
        self.settings = settings
        self.implicit_baselines = implicit_baselines
        self.models = settings.model
        self.backend_names = settings.backend
        self.recording_path = recording_path
        self.recorder: RunRecorder | None = None
        self._resumes = resumes
        self._early: dict[str, SessionAnnotations] = {}
        self._kept: dict[str, Sequence[ReplayEvent]] = {}
        self._over = False
        self._workers: Workers | None = None
        self._processes = 1
        self._warn = warn
        self._memories = RunMemories(settings, warn, counting)
        self._models = RunModels(settings, lambda: self._run_id if counting is None else "estimate", warn, counting)
        self._memories.use_models(self._models.extractor, self._models.chat)
        self.reply_cache = self._models.reply_cache
        self.rate_limiters = self._models.rate_limiters
        self.answer_model = self._models.answer_model
        self.answer_judge = self._models.judge()
        self._answerer = self.answerer(self.answer_model)

    def answerer(self, model: AnswerModel) -> ModelAnswerer:
        return self._models.answerer(model)

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, so that its recorder writes no more."""
        return self._over

    @property
    def _run_id(self) -> str:
        assert self.recorder is not None
        return self.recorder.run_id

    async def check(self) -> None:
        """Check every memory, server and key that this run needs.

        Raises:
            MissingServerOrKeyError: one is missing.
            UsageError: a memory cannot be created, or not used offline, or a model has an unknown provider.
        """
        refuse_unusable_cluster(self.settings)
        self._memories.refuse_unusable()
        if not self.settings.offline:
            for model in self._models_in_use():
                await asyncio.to_thread(ensure_reachable, model, self.settings.api_base)
        await self._memories.check()

    def _models_in_use(self) -> list[str]:
        names = (*self.backend_names, *self.implicit_baselines)
        models = [model for name in names for model in models_asked_of(name, self.models)]
        models += [name for name in (self.settings.extractor, self.settings.judge) if name]
        return [model for model in dict.fromkeys(models) if model != AGENT_MODEL]

    def try_again(self) -> None:
        """Lift the stop on models that were given up: the cause may have been fixed since."""
        self.rate_limiters.mark_available()

    async def warm_up(self) -> None:
        """Load litellm and the embedder in threads before their first use."""
        await asyncio.gather(self._models.warm_up(), self._memories.warm_up())

    @asynccontextmanager
    async def with_workers(self, conversations: Sequence[Conversation], streams: int = 0) -> AsyncIterator[None]:
        """Inside, sessions keep their memories in the workers that the settings name or these conversations need.

        ``streams`` of tests each make a conversation more; with them only named workers are used.

        Raises:
            MissingServerOrKeyError: the scheduler does not answer, or has no worker.
            UsageError: a worker has other versions.
        """
        self._processes = number_of_workers(self.settings, () if streams else conversations)
        if self._processes == 1 and self.settings.cluster is None:
            yield
            return
        extractor, chat = self._models.extractor, self._models.chat
        ports: dict[str, Port] = {}
        if extractor is not None:
            ports["extractor"] = extractor.extract
        if chat is not None:
            ports["chat"] = chat.complete
        names = Ports(extractor.name if extractor else None, chat.name if chat else None)
        async with AsyncExitStack() as stack:
            try:
                self._workers = await stack.enter_async_context(
                    started_workers(self.settings, self._processes, ports, names)
                )
                self._workers.conversations = len(conversations) + streams
            except MissingServerOrKeyError as error:
                if self.settings.workers is not None or self.settings.cluster is not None:
                    raise
                self._processes = 1
                self._warn(f"memories are held in this process: {error}")
            yield

    @property
    def places(self) -> int:
        """How many conversations can be ingested at a time: one, or one for each worker."""
        return 1 if self._workers is None else len(self._workers)

    def workers_at_work(self) -> Sequence[WorkerStatus]:
        """The workers of the run, and what they are doing."""
        return () if self._workers is None else self._workers.status()

    @property
    def has_workers(self) -> bool:
        """Whether memories are held in workers."""
        return self._workers is not None

    async def embed(self, texts: Sequence[str]) -> None:
        """Embed many texts in one call, so that memories here find the vectors cached."""
        await self._memories.embed_ahead(texts)

    async def texts_on_worker(
        self, conversation: Conversation, exchanges: Sequence[Exchange], backends: Sequence[str]
    ) -> list[str]:
        """What memories will embed of exchanges of a conversation, found by the worker that will hold them."""
        assert self._workers is not None
        return await self._workers.texts_to_embed(conversation.id, exchanges, backends)

    async def embed_on_worker(self, conversation: Conversation, texts: Sequence[str]) -> None:
        """Embed texts there."""
        assert self._workers is not None
        await self._workers.embed_ahead(conversation.id, texts)

    def begin_run(
        self,
        conversations: Mapping[str, str],
        datasets: Sequence[str],
        *,
        resume: Collection[RunStatus] = (),
    ) -> None:
        """Start recording, or resume a run with the same settings and one of these statuses.

        ``conversations`` maps each id to the digest of its content: a changed dataset makes another run.

        Raises:
            RecordingError: the file is unusable, or has no run to resume.
        """
        public = self.settings.public()
        decisive = {name: value for name, value in public.items() if name not in CHANGE_NO_ANSWER}
        identity = fingerprint({"settings": decisive, "conversations": dict(conversations)})
        if resume:
            self.recorder = RunRecorder.resume(self.recording_path, identity, resume)
        else:
            self.recorder = RunRecorder.start(self.recording_path, self._recorded_settings(), datasets, identity)

    def _recorded_settings(self) -> dict[str, Any]:
        baseline = {"closed_book_asked_along": CLOSED_BOOK in self.implicit_baselines}
        public, described = self.settings.public(), self._memories.described()
        if self.settings.cluster is None:
            described["workers"] = self._processes
        given = {name: public[name] for name in described if name in public}
        return public | described | baseline | {AS_GIVEN: given}

    def filled_before(self, conversation: Conversation) -> frozenset[str]:
        """Names of the memories that an earlier run filled with the whole of a conversation."""
        return self._memories.filled_before(conversation, self.backend_names)

    def start_session(
        self,
        conversation: Conversation,
        emit: EventSink | None = None,
        *,
        backends: Sequence[str] | None = None,
        perceive: bool = True,
    ) -> ReplaySession:
        """A session of one conversation. Every event is recorded before it is passed on."""
        if self.recorder is None:
            resume = UNFINISHED if self._resumes else ()
            self.begin_run({conversation.id: content_digest(conversation)}, [conversation.dataset], resume=resume)
        assert self.recorder is not None
        self.recorder.add_conversation(conversation)
        self._save_early_annotations(conversation.id)
        if self._resumes:
            self._kept[conversation.id] = self.recorder.keep_answers(conversation.id)
        memories = self._placed(conversation, self.backend_names if backends is None else backends)
        plan = self.plan(self.recorder.run_id, memories, perceive=perceive)
        # What a memory perceives at a turn is what it holds then, not what it holds in the end.
        # A branch is played in the namespace of its trunk, from the beginning.
        is_branch = plan.run_id != self.recorder.run_id
        keeper = None if plan.perceive or is_branch else self._memories.keeper(conversation)
        return ReplaySession(conversation, memories, self._answerer, plan, self.recorded(emit), keeper)

    def rehearsal(
        self, conversation: Conversation, memories: Mapping[str, MemoryBackend], emit: EventSink, *, perceive: bool
    ) -> ReplaySession:
        """A session of a conversation with memories of :meth:`backends_for`, of which nothing is recorded."""
        plan = self.plan(f"estimate-{uuid4().hex[:8]}", memories, perceive=perceive)
        keeper = None if plan.perceive else self._memories.keeper(conversation)
        return ReplaySession(conversation, memories, self._answerer, plan, emit, keeper)

    def _placed(self, conversation: Conversation, names: Sequence[str]) -> dict[str, MemoryBackend]:
        """New memories for a conversation, in workers if there are any. Agents and controls have none to place."""
        memories = self.backends_for(conversation, names)
        if self._workers is not None:
            for name in memories.keys() - {*CONTROLS}:
                if not is_agent(name):
                    memories[name] = WorkerMemory(self._workers, conversation.id, memories[name])
        return memories

    def recorded(self, emit: EventSink | None) -> EventSink:
        """A sink that records every event of the run before it passes it on."""
        assert self.recorder is not None
        return _recorded(self.recorder.record, emit)

    def plan(self, run_id: str, memories: Mapping[str, MemoryBackend], *, perceive: bool) -> ReplayPlan:
        return ReplayPlan(
            run_id=run_id,
            models=self.models,
            top_k=self.settings.top_k,
            perceive=perceive or any(memory.perceive_changes_recall for memory in memories.values()),
            ask_only=frozenset(self.implicit_baselines),
            shuffle_seed=self.settings.seed if self.settings.shuffle_choices else None,
            counter_of=token_counter,
            judge=self.answer_judge,
            side_by_side=self._workers is not None,
        )

    def kept_events(self, conversation_id: str) -> Sequence[ReplayEvent]:
        """What a resumed run keeps of the earlier attempt at a conversation: questions that were answered."""
        return self._kept.get(conversation_id, ())

    def live_archive(self, conversation: Conversation) -> EventArchive:
        """The stored events of a session that is being recorded."""
        assert self.recorder is not None
        return self.recorder.live_archive(conversation.id)

    def side_session(self, conversation: Conversation, emit: EventSink) -> Probe:
        """Answers questions at earlier positions from memories of its own. Events are marked as asked by hand.

        They are recorded if this run records; beside an opened recording they are only passed on.
        """
        recorder = self.recorder
        run_id = recorder.run_id if recorder else "by-hand"
        return Probe(
            conversation,
            lambda name: self._memories.beside(conversation, name),
            self._answerer,
            ReplayPlan(run_id, self.models, self.settings.top_k, counter_of=token_counter, judge=self.answer_judge),
            _recorded(recorder.record, emit) if recorder else emit,
            self._memories.forget,
        )

    def backends_for(self, conversation: Conversation, names: Sequence[str]) -> dict[str, MemoryBackend]:
        """New memories for a conversation, by name.

        Raises:
            UsageError: one cannot be created.
        """
        return self._memories.fresh(conversation, names)

    def annotations(self, conversation_id: str) -> Annotations:
        """Bookmarks and watches of a conversation, saved in the run's recording once there is one."""
        if self.recorder is None:
            return self._early.setdefault(conversation_id, SessionAnnotations())
        if self._over:
            return annotations_of(self.recording_path, self.recorder.run_id, conversation_id)
        return self.recorder.annotations(conversation_id)

    def _save_early_annotations(self, conversation_id: str) -> None:
        """What the user noted before there was a recording."""
        assert self.recorder is not None
        early = self._early.pop(conversation_id, None)
        if early is not None:
            saved = self.recorder.annotations(conversation_id)
            for bookmark in early.bookmarks():
                saved.set_bookmark(bookmark)
            saved.set_breakpoints([*saved.breakpoints(), *early.breakpoints()])

    async def finish(self, status: Literal["finished", "interrupted"]) -> None:
        """Record the end of the run, and release stores and files.

        Raises:
            RecordingError: the end cannot be written; everything is released all the same.
        """
        self._over = True
        try:
            if self.recorder is not None:
                self.recorder.finish(status)
        finally:
            self._models.close()
            await self._memories.close()


def content_digest(conversation: Conversation) -> str:
    return text_hash(to_json(conversation.model_dump(mode="json")).decode())


def _recorded(record: Callable[[ReplayEvent], None], emit: EventSink | None) -> EventSink:
    if emit is None:
        return record

    def sink(event: ReplayEvent) -> None:
        record(event)
        emit(event)

    return sink
