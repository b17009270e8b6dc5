"""The models of a run, from its settings: who is asked, at what pace, and which replies are kept."""

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
    """What answers the questions of a run, and what reads facts for its memories.

    ``run_id`` is asked for only once the run has begun. ``warn`` is given one sentence for each thing that went
    wrong and can be done without.
    """

    def __init__(self, settings: Settings, run_id: Callable[[], str], warn: Callable[[str], None]) -> None:
        self._settings = settings
        keeps_replies = settings.cache or settings.extractor is not None
        self._kept_replies = SqliteReplyCache(cache_folder() / "replies.sqlite3", warn) if keeps_replies else None
        self.reply_cache = self._kept_replies if settings.cache else None
        self.rate_limiters = RateLimiters(RateLimits(settings.concurrency, settings.rpm, settings.tpm))
        model = self._paid_model()
        self.answer_model = CachedModel(model, self.reply_cache) if self.reply_cache else model
        self.extractor = self._extractor(model, run_id)

    def _paid_model(self) -> AnswerModel:
        """From the inside: the provider, long contexts sent ahead, no network if offline."""
        client = LiteLLMModel(timeout=self._settings.timeout, rate_limiters=self.rate_limiters)
        model = SharedPrefixModel(client)
        return OfflineModel(model) if self._settings.offline else model

    def _extractor(self, model: AnswerModel, run_id: Callable[[], str]) -> FactExtractor | None:
        """Its replies are kept in any case, since a run that is resumed takes conversations in anew.

        Without a cache they are kept for this run alone.
        """
        name, kept = self._settings.extractor, self._kept_replies
        if name is None or kept is None:
            return None
        cache = kept if self._settings.cache else RunReplies(kept, run_id)
        return ModelFactExtractor(CachedModel(model, cache), name, self._settings.api_base)

    def answerer(self, model: AnswerModel) -> ModelAnswerer:
        """What puts the questions of this run to a model."""
        return ModelAnswerer(model, self._settings.api_base, self._settings.context_tokens)

    async def warm_up(self) -> None:
        """Load litellm in a thread, ahead of its first use."""
        await asyncio.to_thread(loaded_litellm)

    def close(self) -> None:
        """Let go of the replies that are kept."""
        if self._kept_replies is not None:
            self._kept_replies.close()
