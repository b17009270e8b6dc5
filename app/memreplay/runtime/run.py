"""A run, built from its settings: the one place where models, memories and the recording meet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from memory_backends.base import MemoryBackend
from memory_backends.controls import CLOSED_BOOK
from memreplay.conversations.models import Conversation
from memreplay.engine.events import EventSink, ReplayEvent
from memreplay.engine.play import Played
from memreplay.engine.probes import Probe
from memreplay.engine.remote.addresses import models_asked_of
from memreplay.engine.session import PlayableSession, ReplayPlan, ReplaySession
from memreplay.llm import AGENT_MODEL
from memreplay.llm.catalogue import ensure_reachable
from memreplay.llm.model import AnswerModel
from memreplay.llm.ports import ModelAnswerer
from memreplay.llm.prompt_templates import prompt_template
from memreplay.llm.tokens import token_counter
from memreplay.recording.annotations import annotations_of
from memreplay.recording.bodies import text_hash, to_json
from memreplay.recording.reader import UNFINISHED, RunStatus
from memreplay.recording.writer import RunRecorder, fingerprint
from memreplay.runtime.memories import RunMemories
from memreplay.runtime.models import RunModels
from memreplay.runtime.work import NOTHING, AskPlan, Work, implicit_baselines
from memreplay.scoring.published import LONGMEMEVAL_TYPES
from memreplay.settings import AS_GIVEN, CHANGE_NO_ANSWER, Settings
from memreplay.timeline.annotations import Annotations, SessionAnnotations
from memreplay.timeline.event_store import EventArchive

if TYPE_CHECKING:
    from memreplay.runtime.counting import Counting


class Run:
    """The stores, the embedder, the models and the recorder of one run.

    ``work`` is what it asks without a screen. One that ``resumes`` goes on with the unfinished run of the same
    settings and conversation. ``warn`` receives one sentence for each problem that the run survives. With
    ``counting`` it is an estimate, which makes no call and records nothing.
    One with a ``run_id`` plays a part of that run in another process, and records nothing either.
    """

    def __init__(
        self,
        settings: Settings,
        recording_path: Path,
        work: Work = NOTHING,
        *,
        resumes: bool = False,
        warn: Callable[[str], None] = lambda sentence: None,
        counting: Counting | None = None,
        run_id: str | None = None,
    ) -> None:
        self.settings, self.work, self.counting = settings, work, counting
        self.implicit_baselines = implicit_baselines(settings.backend) if work.conversations else ()
        """Controls that run without being chosen."""
        self.models = settings.model
        self.backend_names = settings.backend
        self.recording_path = recording_path
        self.recorder: RunRecorder | None = None
        self._resumes = resumes
        self._early: dict[str, SessionAnnotations] = {}
        self._kept: dict[str, Sequence[ReplayEvent]] = {}
        self._over = False
        self.warn = warn
        self._template = prompt_template(settings.prompt)
        self._say_what_needs_a_judge()
        self._memories = RunMemories(settings, warn, counting)
        self._id = f"estimate-{uuid4().hex[:8]}" if counting is not None else run_id
        self._models = RunModels(settings, lambda: self.run_id, warn, counting)
        self._memories.use_models(self._models.extractor, self._models.chat)
        self.reply_cache = self._models.reply_cache
        self.rate_limiters = self._models.rate_limiters
        self.answer_model = self._models.answer_model
        self.answer_judge = self._models.judge()
        self._answerer = self.answerer(self.answer_model)

    def _say_what_needs_a_judge(self) -> None:
        """Say before a run that its benchmark is graded by a model, if none is named."""
        questions = [question for each in self.work.conversations for question in each.questions]
        of_longmemeval = [one for one in questions if one.kind == "recall" and one.type in LONGMEMEVAL_TYPES]
        if not of_longmemeval or self.settings.judge is not None:
            return
        rubrics = sum(question.expects_a_rubric for question in of_longmemeval)
        abstain = sum(question.abstain for question in of_longmemeval)
        self.warn(
            f"LongMemEval is graded by a model, and none is named (--judge MODEL): of {len(of_longmemeval):,}"
            f" questions {rubrics:,} expect a description and are not graded, {abstain:,} cannot be answered and"
            " are graded roughly, and the others by rules that are stricter than its judge"
        )

    def answerer(self, model: AnswerModel) -> ModelAnswerer:
        return self._models.answerer(model)

    @property
    def is_over(self) -> bool:
        """Return whether the run has ended, so that its recorder writes no more."""
        return self._over

    @property
    def run_id(self) -> str:
        """Return the id of the run, once it has begun."""
        if self._id is not None:
            return self._id
        assert self.recorder is not None
        return self.recorder.run_id

    async def check(self) -> None:
        """Check every memory, server and key that this run needs.

        Raises:
            MissingServerOrKeyError: one is missing.
            UsageError: a memory cannot be created, or not used offline, or a model has an unknown provider.
        """
        self._memories.refuse_unusable()
        await self._check_reachable(self._models_in_use())
        await self._memories.check()

    async def check_memories(self) -> None:
        """Check what a worker of this run needs: memories, their servers, and the keys of the models they call."""
        self._memories.refuse_unusable()
        await self._check_reachable([self.settings.extractor] if self.settings.extractor else [])
        await self._memories.check()

    async def _check_reachable(self, models: Sequence[str]) -> None:
        for model in models if not self.settings.offline else ():
            await asyncio.to_thread(ensure_reachable, model, self.settings.api_base)

    def _models_in_use(self) -> list[str]:
        names = (*self.backend_names, *self.implicit_baselines)
        models = [model for name in names for model in models_asked_of(name, self.models)]
        models += [name for name in (self.settings.extractor, self.settings.judge) if name]
        return [model for model in dict.fromkeys(models) if model != AGENT_MODEL]

    @property
    def waiting_for(self) -> str:
        """Return what was called and has not answered for a while, in one sentence; else empty."""
        silent = [one for one in (self.rate_limiters.silence(), self._memories.silence) if one]
        return f"waiting for {', '.join(silent)}" if silent else ""

    def try_again(self) -> None:
        """Lift the stop on models that were given up: the cause may have been fixed since."""
        self.rate_limiters.mark_available()

    async def warm_up(self) -> None:
        """Load litellm and the embedder in threads before their first use."""
        await asyncio.gather(self._models.warm_up(), self._memories.warm_up())

    async def embed(self, texts: Sequence[str]) -> None:
        """Embed many texts in one call, so that memories here find the vectors cached."""
        await self._memories.embed_ahead(texts)

    def asking(self, *, retry_errors: bool = False) -> AskPlan:
        """Return who is asked each question of the run, and how often."""
        return AskPlan(
            self.backend_names, self.implicit_baselines, self.models, self.settings.repeats, retry_errors
        )

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
        asked_with = {} if self._template is None else {"prompt": self._template.digest}
        if self.answer_judge is not None and self.answer_judge.rubric.rule is not None:
            asked_with["judge_rubric"] = self.answer_judge.rubric.name
        identity = fingerprint({"settings": decisive, "conversations": dict(conversations), **asked_with})
        if resume:
            self.recorder = RunRecorder.resume(self.recording_path, identity, resume, equal=self._has_settings_of)
        else:
            self.recorder = RunRecorder.start(self.recording_path, self._recorded_settings(), datasets, identity)
        self._memories.hold_lease(self.recorder.run_id)

    def _has_settings_of(self, recorded: Mapping[str, Any]) -> bool:
        """Return whether a recorded run would answer in the same way, if its conversations are the same."""
        given = {**recorded, **recorded.get(AS_GIVEN, {})}
        prompt = None if self._template is None else self._template.text
        return recorded.get("prompt_text") == prompt and all(
            given.get(name) == value
            for name, value in self.settings.public().items()
            if name not in CHANGE_NO_ANSWER
        )

    def _recorded_settings(self) -> dict[str, Any]:
        baseline = {"closed_book_asked_along": CLOSED_BOOK in self.implicit_baselines}
        public, described = self.settings.public(), self._memories.described()
        if self.settings.cluster is None:
            described["workers"] = self.settings.workers or 1
        given = {name: public[name] for name in described if name in public}
        prompt = {} if self._template is None else {"prompt_text": self._template.text}
        return public | described | baseline | prompt | {AS_GIVEN: given}

    def filled_before(self, conversation: Conversation) -> frozenset[str]:
        """Return names of the memories that an earlier run filled with the whole of a conversation."""
        return self._memories.filled_before(conversation, self.backend_names)

    def start_session(
        self,
        conversation: Conversation,
        emit: EventSink | None = None,
        *,
        backends: Sequence[str] | None = None,
        perceive: bool = True,
        played: Played | None = None,
    ) -> ReplaySession:
        """Return a session of one conversation. Every event is recorded before it is passed on.

        What was ``played`` in another process is recorded in the place of memories here.
        """
        if self.recorder is None:
            resume = UNFINISHED if self._resumes else ()
            self.begin_run({conversation.id: content_digest(conversation)}, [conversation.dataset], resume=resume)
        assert self.recorder is not None
        self.recorder.add_conversation(conversation)
        self._save_early_annotations(conversation.id)
        if self._resumes:
            self._kept[conversation.id] = self.recorder.keep_answers(conversation.id)
        memories = self.backends_for(conversation, self.backend_names if backends is None else backends)
        plan = self.plan(self.recorder.run_id, memories, perceive=perceive)
        self._memories.hold_lease(plan.run_id)
        # What a memory perceives at a turn is what it holds then, not what it holds in the end.
        # A branch is played in the namespace of its trunk, from the beginning.
        is_branch = plan.run_id != self.recorder.run_id
        keeper = None if plan.perceive or is_branch else self._memories.keeper(conversation)
        elsewhere = played.memories if played is not None else None
        return ReplaySession(conversation, memories, self._answerer, plan, self.recorded(emit), keeper, elsewhere)

    def session_for(self, conversation: Conversation, emit: EventSink) -> PlayableSession:
        """Return a session of a conversation for the screen, which can play any kind of session."""
        return self.start_session(conversation, emit)

    def unrecorded_session(
        self, conversation: Conversation, memories: Mapping[str, MemoryBackend], emit: EventSink, *, perceive: bool
    ) -> ReplaySession:
        """Return a session of a conversation with memories of :meth:`backends_for`, of which nothing is
        recorded.
        """
        plan = self.plan(self.run_id, memories, perceive=perceive)
        keeper = None if plan.perceive else self._memories.keeper(conversation)
        return ReplaySession(conversation, memories, self._answerer, plan, emit, keeper)

    def recorded(self, emit: EventSink | None) -> EventSink:
        """Return a sink that records every event of the run before it passes it on."""
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
        )

    def kept_events(self, conversation_id: str) -> Sequence[ReplayEvent]:
        """Return what a resumed run keeps of the earlier attempt at a conversation: questions that were
        answered.
        """
        return self._kept.get(conversation_id, ())

    def live_archive(self, conversation: Conversation) -> EventArchive:
        """Return the stored events of a session that is being recorded."""
        assert self.recorder is not None
        return self.recorder.live_archive(conversation.id)

    def side_session(self, conversation: Conversation, emit: EventSink) -> Probe:
        """Return what answers questions at earlier positions, from memories of its own. Events are marked as asked
        by hand.

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
        """Return new memories for a conversation, by name.

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
        """Save the user's notes from before there was a recording."""
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


def start(
    settings: Settings,
    recording: Path,
    work: Work = NOTHING,
    *,
    resumes: bool = False,
    estimates: bool = False,
    warn: Callable[[str], None] = lambda sentence: None,
) -> Run:
    """Return a run that is ready to begin, with all that it needs: nothing was asked or recorded yet.

    Without a screen it does ``work``. The screen gives it conversations one by one; it may go on with an unfinished
    run (``resumes``). One that ``estimates`` counts the calls that it would make, on embedded stores, so that
    servers stay unchanged.

    Raises:
        UsageError: a setting is unusable, or an option is one that no memory in the run takes.
    """
    counting = None
    if estimates:
        from memreplay.runtime.counting import Counting

        settings = replace(settings, redis_url=None, qdrant_url=None)
        counting = Counting(settings)
    return Run(settings, recording, work, resumes=resumes, warn=warn, counting=counting)


def content_digest(conversation: Conversation) -> str:
    return text_hash(to_json(conversation.model_dump(mode="json")).decode())


def _recorded(record: Callable[[ReplayEvent], None], emit: EventSink | None) -> EventSink:
    if emit is None:
        return record

    def sink(event: ReplayEvent) -> None:
        record(event)
        emit(event)

    return sink
