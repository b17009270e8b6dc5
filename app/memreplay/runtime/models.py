"""The models of a run: rate limits, reply cache, extractor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from memory_backends.base import FactExtractor
from memreplay.llm.answerer import ModelAnswerer
from memreplay.llm.caching import CachedModel, RunReplies, SharedPrefixModel
from memreplay.llm.client import LiteLLMModel, OfflineModel
from memreplay.llm.extraction import ModelFactExtractor
from memreplay.llm.litellm_setup import loaded_litellm
from memreplay.llm.model import AnswerModel
from memreplay.llm.rate_limiter import RateLimiters, RateLimits
from memreplay.paths import cache_folder
from memreplay.recording.reply_store import SqliteReplyCache
from memreplay.settings import Settings


class RunModels:
    """The model that answers questions, and the one that extracts facts.

    ``run_id`` is called only once the run has begun. ``warn`` receives a sentence for each problem that the run
    survives.
    """

    def __init__(self, settings: Settings, run_id: Callable[[], str], warn: Callable[[str], None]) -> None:
        self._settings = settings
        needs_store = settings.cache or settings.extractor is not None
        self._reply_store = SqliteReplyCache(cache_folder() / "replies.sqlite3", warn) if needs_store else None
        self.reply_cache = self._reply_store if settings.cache else None
        self.paces = RateLimiters(RateLimits(settings.concurrency, settings.rpm, settings.tpm))
        model = self._paid_model()
        self.answer_model = CachedModel(model, self.reply_cache) if self.reply_cache else model
        self.extractor = self._extractor(model, run_id)

    def _paid_model(self) -> AnswerModel:
        """From the inside out: provider, shared prefixes sent first, offline switch."""
        model: AnswerModel = SharedPrefixModel(LiteLLMModel(timeout=self._settings.timeout, paces=self.paces))
        return OfflineModel(model) if self._settings.offline else model

    def _extractor(self, model: AnswerModel, run_id: Callable[[], str]) -> FactExtractor | None:
        """Its replies are always cached, since a resumed run ingests conversations again.

        With ``--no-cache`` they are cached for this run alone.
        """
        name, store = self._settings.extractor, self._reply_store
        if name is None or store is None:
            return None
        cache = store if self._settings.cache else RunReplies(store, run_id)
        return ModelFactExtractor(CachedModel(model, cache), name, self._settings.api_base)

    def answerer(self, model: AnswerModel) -> ModelAnswerer:
        return ModelAnswerer(model, self._settings.api_base, self._settings.context_tokens)

    async def warm_up(self) -> None:
        """Import litellm in a thread before its first use."""
        await asyncio.to_thread(loaded_litellm)

    def close(self) -> None:
        if self._reply_store is not None:
            self._reply_store.close()
