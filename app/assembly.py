"""Everything a run needs, built from its settings: the one place where the rooms are put together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import orjson

from app.answering.answerer import ModelAnswerer
from app.answering.litellm_port import LiteLLMModel
from app.answering.litellm_setup import loaded_litellm
from app.answering.model import AnswerModel
from app.answering.reachability import ensure_reachable
from app.answering.reply_cache import CachedModel
from app.answering.tokens import token_counter
from app.conversations.models import Conversation
from app.errors import MissingServerOrKeyError, UsageError
from app.paths import cache_folder
from app.recording.interning import text_hash
from app.recording.recorder import RunRecorder, fingerprint
from app.recording.reply_store import SqliteReplyCache
from app.replay.events import ReplayEvent
from app.replay.session import EventSink, ReplayPlan, ReplaySession
from app.settings import Settings
from memory_backends.base import MemoryBackend, StoreAddressError, StoreUnavailableError
from memory_backends.clock import system_clock
from memory_backends.embedding import CachedEmbedder, MiniLMEmbedder
from memory_backends.knowledge_store import QdrantConnection
from memory_backends.operating_memory import RedisConnection
from memory_backends.registry import Resources, UnknownBackendError, check_backend_name, create_backend

_SETTINGS_THAT_CHANGE_NO_ANSWER = frozenset({"concurrency", "cache", "redis_ttl"})


class Assembly:
    """The stores, the embedder, the models and the recorder of one run."""

    def __init__(self, settings: Settings, recording_path: Path) -> None:
        self.settings = settings
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
        self._reply_cache = SqliteReplyCache(cache_folder() / "replies.sqlite3") if settings.cache else None
        model: AnswerModel = LiteLLMModel()
        if self._reply_cache is not None:
            model = CachedModel(model, self._reply_cache)
        self.answer_model = model
        self._answerer = ModelAnswerer(model, settings.api_base, settings.context_tokens)

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
        for model in self.models:
            await asyncio.to_thread(ensure_reachable, model, self.settings.api_base)

    async def warm_up(self) -> None:
        """Load litellm and the embedder in threads, ahead of their first use."""
        await asyncio.gather(
            asyncio.to_thread(loaded_litellm), asyncio.to_thread(self._resources.embedder.embed, ["warm"])
        )

    async def embed_ahead(self, texts: Sequence[str]) -> None:
        """Embed a whole conversation in one go; the memories then find its vectors ready."""
        await asyncio.to_thread(self._resources.embedder.embed, texts)

    def begin_run(self, conversations: Mapping[str, str], datasets: Sequence[str], *, resume: bool = False) -> None:
        """Start recording, or take up an unfinished run of equal settings.

        ``conversations`` maps each id to the digest of its content: a changed dataset is another run.

        Raises:
            RecordingError: the file cannot be used, or holds nothing to resume.
        """
        public = self.settings.public()
        decisive = {name: value for name, value in public.items() if name not in _SETTINGS_THAT_CHANGE_NO_ANSWER}
        identity = fingerprint({"settings": decisive, "conversations": dict(conversations)})
        if resume:
            self.recorder = RunRecorder.resume(self.recording_path, identity)
        else:
            self.recorder = RunRecorder.start(self.recording_path, self._recorded_settings(), datasets, identity)

    def _recorded_settings(self) -> dict[str, Any]:
        return self.settings.public() | {
            "embedder": self._resources.embedder.name,
            "redis": self._resources.redis.description,
            "qdrant": self._resources.qdrant.description,
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
        names = self.backend_names if backends is None else backends
        memories = self.backends_for(conversation, names)
        plan = ReplayPlan(
            run_id=self.recorder.run_id,
            models=self.models,
            top_k=self.settings.top_k,
            perceive=perceive or any(memory.perceive_changes_recall for memory in memories.values()),
        )
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

    def backends_for(self, conversation: Conversation, names: Sequence[str]) -> dict[str, MemoryBackend]:
        """Fresh memories for a conversation, by name."""
        evidence = {question.text: question.evidence for question in conversation.questions if question.evidence}
        return {name: create_backend(name, self._resources, evidence) for name in names}

    async def finish(self, status: Literal["finished", "interrupted"]) -> None:
        """End the run in the recording, and let go of stores and files."""
        if self.recorder is not None:
            self.recorder.finish(status)
        if self._reply_cache is not None:
            self._reply_cache.close()
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
