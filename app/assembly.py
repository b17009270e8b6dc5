"""Everything a run needs, built from its settings: the one place where the rooms are put together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import orjson

from app.agents.address import AgentAddress, is_agent, models_asked_of
from app.agents.backend import AgentBackend
from app.agents.client import AgentError
from app.answering.answerer import ModelAnswerer
from app.answering.extraction import ModelFactExtractor
from app.answering.litellm_port import LiteLLMModel
from app.answering.litellm_setup import loaded_litellm
from app.answering.model import AGENT_MODEL, AnswerModel
from app.answering.offline import OfflineModel
from app.answering.pacing import PaceLimits, Paces
from app.answering.reachability import ensure_reachable
from app.answering.reply_cache import CachedModel, RunReplies
from app.answering.shared_prefix import SharedPrefixModel
from app.answering.tokens import token_counter
from app.conversations.models import Conversation
from app.embedders import ensure_embedder_answers
from app.errors import MissingServerOrKeyError, UsageError
from app.paths import cache_folder
from app.recording.annotations import annotations_of
from app.recording.interning import text_hash
from app.recording.recorder import RunRecorder, fingerprint
from app.recording.reply_store import SqliteReplyCache
from app.recording.store import RunStatus
from app.replay.annotations import Annotations, SessionAnnotations
from app.replay.archive import EventArchive
from app.replay.events import ReplayEvent
from app.replay.session import EventSink, ReplayPlan, ReplaySession
from app.replay.side_session import SideSession
from app.resources import agents_of, resources_of
from app.settings import Settings
from memory_backends.base import BackendError, MemoryBackend, StoreUnavailableError
from memory_backends.extraction import FactExtractor
from memory_backends.registry import Evidence, check_backend_name, create_backend

CLOSED_BOOK = "closed_book"
"""The control that tells what a model knows without any memory."""

_SETTINGS_THAT_CHANGE_NO_ANSWER = frozenset(
    {"concurrency", "rpm", "tpm", "timeout", "cache", "offline", "redis_ttl"}
)


class Assembly:
    """The stores, the embedder, the models and the recorder of one run.

    ``asked_along`` are controls that are asked without being chosen. ``warn`` is given one sentence for each thing
    that went wrong and can be done without.
    """

    def __init__(
        self,
        settings: Settings,
        recording_path: Path,
        *,
        asked_along: tuple[str, ...] = (),
        warn: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self.settings = settings
        self.asked_along = asked_along
        self.models = settings.model
        self.backend_names = settings.backend
        self.recording_path = recording_path
        self.recorder: RunRecorder | None = None
        self._over = False
        self._agents = agents_of(settings)
        resources, self._vectors = resources_of(settings)
        keeps_replies = settings.cache or settings.extractor is not None
        self._kept_replies = SqliteReplyCache(cache_folder() / "replies.sqlite3", warn) if keeps_replies else None
        self.reply_cache = self._kept_replies if settings.cache else None
        self.paces = Paces(PaceLimits(settings.concurrency, settings.rpm, settings.tpm))
        model = self._paid_model()
        self._resources = replace(resources, extractor=self._extractor(model))
        self.answer_model = CachedModel(model, self.reply_cache) if self.reply_cache else model
        self._answerer = self.answerer(self.answer_model)

    def _paid_model(self) -> AnswerModel:
        """From the inside: the provider, long contexts sent ahead, no network if offline."""
        model: AnswerModel = SharedPrefixModel(LiteLLMModel(timeout=self.settings.timeout, paces=self.paces))
        return OfflineModel(model) if self.settings.offline else model

    def answerer(self, model: AnswerModel) -> ModelAnswerer:
        """What puts the questions of this run to a model."""
        return ModelAnswerer(model, self.settings.api_base, self.settings.context_tokens)

    def _extractor(self, model: AnswerModel) -> FactExtractor | None:
        """Its replies are kept in any case, since a run that is resumed takes conversations in anew.

        Without a cache they are kept for this run alone.
        """
        name, kept = self.settings.extractor, self._kept_replies
        if name is None or kept is None:
            return None
        cache = kept if self.settings.cache else RunReplies(kept, lambda: self._run_id)
        return ModelFactExtractor(CachedModel(model, cache), name, self.settings.api_base)

    @property
    def _run_id(self) -> str:
        assert self.recorder is not None
        return self.recorder.run_id

    async def check(self) -> None:
        """Make sure of every memory, server and key that this run needs.

        Raises:
            MissingServerOrKeyError: one is missing; the sentence says which.
            UsageError: a memory cannot be made, or not asked offline, or a model is of no known provider.
        """
        self._made(self.backend_names, {})
        if self.settings.offline and self._agents:
            raise UsageError(f"--offline reaches no network, and {next(iter(self._agents))} is asked over one")
        base = self.settings.api_base
        for model in () if self.settings.offline else self._models_in_use():
            await asyncio.to_thread(ensure_reachable, model, base)
        await asyncio.to_thread(ensure_embedder_answers, self.settings.embedder, self._vectors, base)
        try:
            await self._resources.redis.check()
            await self._resources.qdrant.check()
            for agent in self._agents.values():
                await agent.client.check()
        except (StoreUnavailableError, AgentError) as error:
            raise MissingServerOrKeyError(str(error)) from None

    def _models_in_use(self) -> list[str]:
        names = (*self.backend_names, *self.asked_along)
        models = [model for name in names for model in models_asked_of(name, self.models)]
        models += [self.settings.extractor] if self.settings.extractor else []
        return [model for model in dict.fromkeys(models) if model != AGENT_MODEL]

    async def warm_up(self) -> None:
        """Load litellm and the embedder in threads, ahead of their first use."""
        await asyncio.gather(
            asyncio.to_thread(loaded_litellm), asyncio.to_thread(self._resources.embedder.embed, ["warm"])
        )

    async def embed_ahead(self, texts: Sequence[str]) -> None:
        """Embed much of a conversation in one go; memories that search by vectors then find them ready."""
        # What cannot be embedded now is an error of the memory that needs it, when it needs it.
        with suppress(BackendError):
            await asyncio.to_thread(self._resources.embedder.embed, texts)

    def begin_run(
        self,
        conversations: Mapping[str, str],
        datasets: Sequence[str],
        *,
        resume: Collection[RunStatus] = (),
    ) -> None:
        """Start recording, or take up a run of equal settings that has one of the statuses of ``resume``.

        ``conversations`` maps each id to the digest of its content: a changed dataset is another run.

        Raises:
            RecordingError: the file cannot be used, or holds nothing to resume.
        """
        public = self.settings.public()
        decisive = {name: value for name, value in public.items() if name not in _SETTINGS_THAT_CHANGE_NO_ANSWER}
        identity = fingerprint({"settings": decisive, "conversations": dict(conversations)})
        if resume:
            self.recorder = RunRecorder.resume(self.recording_path, identity, resume)
        else:
            self.recorder = RunRecorder.start(self.recording_path, self._recorded_settings(), datasets, identity)

    def _recorded_settings(self) -> dict[str, Any]:
        return self.settings.public() | {
            "embedder": self._resources.embedder.name,
            "tier_share": [f"{tier}={share:g}" for tier, share in self._resources.hybrid.shares.items()],
            "redis": self._resources.redis.description,
            "qdrant": self._resources.qdrant.description,
            "closed_book_asked_along": CLOSED_BOOK in self.asked_along,
        }

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
            self.begin_run({conversation.id: content_digest(conversation)}, [conversation.dataset])
        assert self.recorder is not None
        self.recorder.add_conversation(conversation)
        memories = self.backends_for(conversation, self.backend_names if backends is None else backends)
        plan = self.plan(self.recorder.run_id, memories, perceive=perceive)
        return ReplaySession(
            conversation,
            memories,
            self._answerer,
            plan,
            self.recorded(emit),
        )

    def recorded(self, emit: EventSink | None) -> EventSink:
        """A sink that records every event of the run before it passes it on."""
        assert self.recorder is not None
        return _recorded(self.recorder.record, emit)

    def plan(self, run_id: str, memories: Mapping[str, MemoryBackend], *, perceive: bool) -> ReplayPlan:
        """How a conversation is replayed to these memories."""
        return ReplayPlan(
            run_id=run_id,
            models=self.models,
            top_k=self.settings.top_k,
            perceive=perceive or any(memory.perceive_changes_recall for memory in memories.values()),
            ask_only=frozenset(self.asked_along),
            shuffle_seed=self.settings.seed if self.settings.shuffle_choices else None,
            counter_of=token_counter,
        )

    def live_archive(self, conversation: Conversation) -> EventArchive:
        """Where the events of a started session rest; they are given to it in the order of their recording."""
        assert self.recorder is not None
        return self.recorder.live_archive(conversation.id)

    def side_session(self, conversation: Conversation, emit: EventSink) -> SideSession:
        """Answers questions at earlier positions, by memories of its own; what is asked is recorded as by hand.

        Where nothing is being recorded, as beside a recording, it is only passed on.
        """
        recorder = self.recorder
        return SideSession(
            conversation,
            lambda name: self._beside(conversation, name),
            self._answerer,
            ReplayPlan(
                recorder.run_id if recorder else "by-hand",
                self.models,
                self.settings.top_k,
                counter_of=token_counter,
            ),
            _recorded(recorder.record, emit) if recorder else emit,
        )

    def _beside(self, conversation: Conversation, name: str) -> MemoryBackend:
        """A memory beside those of the session. The one memory of an agent without sessions cannot be had twice."""
        if is_agent(name):
            return AgentBackend(name, replace(self._agents[name], serves_without_sessions=False))
        return self.backends_for(conversation, [name])[name]

    def backends_for(self, conversation: Conversation, names: Sequence[str]) -> dict[str, MemoryBackend]:
        """Fresh memories for a conversation, by name.

        Raises:
            UsageError: one cannot be made.
        """
        evidence = {question.text: question.evidence for question in conversation.questions if question.evidence}
        return self._made(names, evidence)

    def _made(self, names: Sequence[str], evidence: Evidence) -> dict[str, MemoryBackend]:
        try:
            return {
                name: AgentBackend(name, self._agents[name])
                if is_agent(name)
                else create_backend(name, self._resources, evidence)
                for name in names
            }
        except BackendError as error:
            raise UsageError(str(error)) from None

    def annotations(self, conversation_id: str) -> Annotations:
        """Bookmarks and watches of a conversation: in the run's recording, as soon as there is one."""
        if self.recorder is None:
            return SessionAnnotations("Nothing is recorded yet.")
        if self._over:
            return annotations_of(self.recording_path, self.recorder.run_id, conversation_id)
        return self.recorder.annotations(conversation_id)

    async def finish(self, status: Literal["finished", "interrupted"]) -> None:
        """End the run in the recording, and let go of stores and files.

        Raises:
            RecordingError: the end cannot be written; everything is let go of all the same.
        """
        self._over = True
        try:
            if self.recorder is not None:
                self.recorder.finish(status)
        finally:
            if self._kept_replies is not None:
                self._kept_replies.close()
            self._vectors.close()
            for agent in self._agents.values():
                await agent.client.aclose()
            await self._resources.redis.aclose()
            await self._resources.qdrant.aclose()


def refuse_unknown_backends(names: Sequence[str]) -> None:
    """Make sure that every name is a memory's, before anything is built; plugged-in ones are imported.

    Raises:
        UsageError: one is not, or cannot be plugged in.
    """
    try:
        for name in names:
            if is_agent(name):
                AgentAddress.read(name)
            else:
                check_backend_name(name)
    except BackendError as error:
        raise UsageError(str(error)) from None


def content_digest(conversation: Conversation) -> str:
    """A hash of all that a conversation holds."""
    return text_hash(orjson.dumps(conversation.model_dump(mode="json")).decode())


def _recorded(record: Callable[[ReplayEvent], None], emit: EventSink | None) -> EventSink:
    if emit is None:
        return record

    def sink(event: ReplayEvent) -> None:
        record(event)
        emit(event)

    return sink
