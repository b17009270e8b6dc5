"""Everything a run needs, built from its settings: the one place where the rooms are put together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import orjson

from app.answering.answerer import ModelAnswerer
from app.answering.litellm_port import LiteLLMModel
from app.answering.litellm_setup import loaded_litellm
from app.answering.model import AnswerModel
from app.answering.offline import OfflineModel
from app.answering.pacing import PaceLimits, Paces
from app.answering.reachability import ensure_reachable
from app.answering.reply_cache import CachedModel
from app.answering.shared_prefix import SharedPrefixModel
from app.answering.tokens import token_counter
from app.conversations.models import Conversation
from app.errors import MissingServerOrKeyError, UsageError
from app.paths import cache_folder
from app.recording.interning import text_hash
from app.recording.recorder import RunRecorder, fingerprint
from app.recording.reply_store import SqliteReplyCache
from app.recording.store import RunStatus
from app.replay.events import ReplayEvent
from app.replay.session import EventSink, ReplayPlan, ReplaySession
from app.replay.side_session import SideSession
from app.settings import Settings
from memory_backends.base import MemoryBackend, StoreAddressError, StoreUnavailableError
from memory_backends.clock import system_clock
from memory_backends.embedding import CachedEmbedder, MiniLMEmbedder
from memory_backends.knowledge_store import QdrantConnection
from memory_backends.operating_memory import RedisConnection
from memory_backends.registry import Resources, UnknownBackendError, check_backend_name, create_backend

CLOSED_BOOK = "closed_book"
"""The control that tells what a model knows without any memory."""

_WITHOUT_VECTORS = frozenset({"full_context", CLOSED_BOOK, "oracle"})

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
        redis, qdrant = connections(settings)
        self._resources = Resources(
            redis=redis,
            qdrant=qdrant,
            embedder=CachedEmbedder(MiniLMEmbedder()),
            count_tokens=token_counter(settings.model[0]),
            clock=system_clock,
            ttl_seconds=settings.redis_ttl,
        )
        self.paces = Paces(PaceLimits(settings.concurrency, settings.rpm, settings.tpm))
        self.reply_cache = SqliteReplyCache(cache_folder() / "replies.sqlite3", warn) if settings.cache else None
        self._answerer = self.answerer(self._model())

    def _model(self) -> AnswerModel:
        """From the inside: the provider, long contexts sent ahead, no network if offline, replies on record."""
        model: AnswerModel = SharedPrefixModel(LiteLLMModel(timeout=self.settings.timeout, paces=self.paces))
        if self.settings.offline:
            model = OfflineModel(model)
        return model if self.reply_cache is None else CachedModel(model, self.reply_cache)

    def answerer(self, model: AnswerModel) -> ModelAnswerer:
        """What puts the questions of this run to a model."""
        return ModelAnswerer(model, self.settings.api_base, self.settings.context_tokens)

    async def check(self) -> None:
        """Make sure of every server and key that this run needs.

        Raises:
            MissingServerOrKeyError: one is missing; the sentence says which.
            UsageError: a model is of no known provider.
        """
        try:
            await self._resources.redis.check()
            await self._resources.qdrant.check()
        except StoreUnavailableError as error:
            raise MissingServerOrKeyError(str(error)) from None
        for model in () if self.settings.offline else self.models:
            await asyncio.to_thread(ensure_reachable, model, self.settings.api_base)

    async def warm_up(self) -> None:
        """Load litellm and the embedder in threads, ahead of their first use."""
        await asyncio.gather(
            asyncio.to_thread(loaded_litellm), asyncio.to_thread(self._resources.embedder.embed, ["warm"])
        )

    async def embed_ahead(self, texts: Sequence[str]) -> None:
        """Embed much of a conversation in one go; memories that search by vectors then find them ready."""
        if _WITHOUT_VECTORS.issuperset(self.backend_names):
            return
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
            _recorded(self.recorder.record, emit),
        )

    def plan(self, run_id: str, memories: Mapping[str, MemoryBackend], *, perceive: bool) -> ReplayPlan:
        """How a conversation is replayed to these memories."""
        return ReplayPlan(
            run_id=run_id,
            models=self.models,
            top_k=self.settings.top_k,
            perceive=perceive or any(memory.perceive_changes_recall for memory in memories.values()),
            ask_only=frozenset(self.asked_along),
            shuffle_seed=self.settings.seed if self.settings.shuffle_choices else None,
        )

    def side_session(self, conversation: Conversation, emit: EventSink) -> SideSession:
        """Answers questions at earlier positions, by memories of its own; what is asked is recorded as by hand.

        Where nothing is being recorded, as beside a recording, it is only passed on.
        """
        recorder = self.recorder
        return SideSession(
            conversation,
            lambda name: self.backends_for(conversation, [name])[name],
            self._answerer,
            ReplayPlan(recorder.run_id if recorder else "by-hand", self.models, self.settings.top_k),
            _recorded(recorder.record, emit) if recorder else emit,
        )

    def backends_for(self, conversation: Conversation, names: Sequence[str]) -> dict[str, MemoryBackend]:
        """Fresh memories for a conversation, by name."""
        evidence = {question.text: question.evidence for question in conversation.questions if question.evidence}
        return {name: create_backend(name, self._resources, evidence) for name in names}

    async def finish(self, status: Literal["finished", "interrupted"]) -> None:
        """End the run in the recording, and let go of stores and files.

        Raises:
            RecordingError: the end cannot be written; everything is let go of all the same.
        """
        try:
            if self.recorder is not None:
                self.recorder.finish(status)
        finally:
            if self.reply_cache is not None:
                self.reply_cache.close()
            await self._resources.redis.aclose()
            await self._resources.qdrant.aclose()


def refuse_unknown_backends(names: Sequence[str]) -> None:
    """Make sure that every name is a memory's, before anything is built.

    Raises:
        UsageError: one is not; the sentence names those there are.
    """
    try:
        for name in names:
            check_backend_name(name)
    except UnknownBackendError as error:
        raise UsageError(str(error)) from None


def content_digest(conversation: Conversation) -> str:
    """A hash of all that a conversation holds."""
    return text_hash(orjson.dumps(conversation.model_dump(mode="json")).decode())


def connections(settings: Settings) -> tuple[RedisConnection, QdrantConnection]:
    """The stores: servers where addresses are given, else embedded ones. Nothing is reached yet.

    Raises:
        UsageError: an address cannot be one.
    """
    key = settings.qdrant_api_key
    try:
        redis = RedisConnection.to(settings.redis_url) if settings.redis_url else RedisConnection.embedded()
        if settings.qdrant_url is None:
            return redis, QdrantConnection.embedded()
        return redis, QdrantConnection.to(settings.qdrant_url, api_key=key.get_secret_value() if key else None)
    except StoreAddressError as error:
        raise UsageError(str(error)) from None


def _recorded(record: Callable[[ReplayEvent], None], emit: EventSink | None) -> EventSink:
    if emit is None:
        return record

    def sink(event: ReplayEvent) -> None:
        record(event)
        emit(event)

    return sink
