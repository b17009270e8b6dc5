"""The models of a run: those that answer, with rate limits and reply cache; extractor; judge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from memory_backends.metering import ChatModel, FactExtractor
from memreplay.errors import UsageError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.caching import CachedModel, ReplyCache, RunReplies, SharedPrefixModel
from memreplay.llm.client import LiteLLMModel, OfflineModel
from memreplay.llm.judging import ModelJudge, rubric_named
from memreplay.llm.litellm_setup import loaded_litellm
from memreplay.llm.model import AnswerModel
from memreplay.llm.parameters import ParameterisedModel, Role
from memreplay.llm.ports import MemoryChatModel, ModelAnswerer, ModelFactExtractor
from memreplay.llm.prompt_templates import prompt_template
from memreplay.llm.rate_limiter import RateLimiters, RateLimits
from memreplay.paths import cache_folder
from memreplay.recording.reply_store import SqliteReplyCache
from memreplay.settings import Settings

if TYPE_CHECKING:
    from memreplay.runtime.counting import Counting


class RunModels:
    """The model that answers questions, and the one that extracts facts.

    ``run_id`` is called only once the run has begun. ``warn`` receives a sentence for each problem that the run
    survives. With ``counting`` they are those of an estimate: calls are counted, and none is made.
    """

    def __init__(
        self,
        settings: Settings,
        run_id: Callable[[], str],
        warn: Callable[[str], None],
        counting: Counting | None = None,
    ) -> None:
        self._settings, self._warn = settings, warn
        needs_store = settings.cache or settings.extractor is not None
        self._reply_store = SqliteReplyCache(cache_folder() / "replies.sqlite3", warn) if needs_store else None
        self.reply_cache = self._reply_store if settings.cache else None
        self.rate_limiters = RateLimiters(RateLimits(settings.concurrency, settings.rpm, settings.tpm))
        self.answer_model: AnswerModel
        self.judging_model: AnswerModel
        self.extractor: FactExtractor | None = None
        self.chat: ChatModel | None = None
        self.writing_model: AnswerModel | None = None
        """The model under ``extractor`` and ``chat``, for requests that are made already."""
        if counting is not None:
            counting.use_caches(self.reply_cache, self._written_replies(run_id))
            self.answer_model = self._as("reader", counting.reader)
            self.judging_model = self._as("judge", counting.judge)
            return
        model = self._paid_model()
        cached = CachedModel(model, self.reply_cache) if self.reply_cache else model
        self.answer_model, self.judging_model = self._as("reader", cached), self._as("judge", cached)
        self._make_writing_models(model, run_id)

    def _as(self, role: Role, model: AnswerModel) -> AnswerModel:
        """Return a model that is called with what the user sets for a role."""
        reply_tokens = self._settings.reply_tokens if role == "reader" else None
        return ParameterisedModel(model, role, self._settings.model_args, reply_tokens)

    def _paid_model(self) -> AnswerModel:
        """Wrap a provider's model, from the inside out: shared prefixes sent first, offline switch."""
        model: AnswerModel = SharedPrefixModel(
            LiteLLMModel(timeout=self._settings.timeout, rate_limiters=self.rate_limiters, warn=self._warn)
        )
        return OfflineModel(model) if self._settings.offline else model

    def _make_writing_models(self, model: AnswerModel, run_id: Callable[[], str]) -> None:
        """Make the models that memories write with. Replies are always cached, since a resumed run ingests
        conversations again.
        """
        name, replies, base = self._settings.extractor, self._written_replies(run_id), self._settings.api_base
        if name is not None and replies is not None:
            cached = self._as("writer", CachedModel(model, replies))
            self.writing_model = cached
            self.extractor, self.chat = ModelFactExtractor(cached, name, base), MemoryChatModel(cached, name, base)

    def _written_replies(self, run_id: Callable[[], str]) -> ReplyCache | None:
        """Return where replies to memories are kept: with ``--no-cache`` for this run alone."""
        store = self._reply_store
        return store if store is None or self._settings.cache else RunReplies(store, run_id)

    def judge(self) -> ModelJudge | None:
        """Return what grades replies to recall questions, if a judge is named.

        Raises:
            UsageError: the embedded reader is named, which only picks sentences; or the rubric is unusable.
        """
        settings = self._settings
        rubric = rubric_named(settings.judge_rubric)
        if settings.judge is None:
            return None
        if settings.judge == EXTRACTIVE_MODEL:
            raise UsageError(f"--judge {settings.judge}: the embedded reader cannot judge; name a language model")
        return ModelJudge(settings.judge, self.judging_model, settings.api_base, rubric)

    def answerer(self, model: AnswerModel) -> ModelAnswerer:
        settings = self._settings
        return ModelAnswerer(model, settings.api_base, settings.context_tokens, prompt_template(settings.prompt))

    async def warm_up(self) -> None:
        """Import LiteLLM in a thread before its first use, if any model needs it."""
        names = {*self._settings.model, self._settings.extractor, self._settings.judge}
        if names - {EXTRACTIVE_MODEL, None}:
            await asyncio.to_thread(loaded_litellm)

    def close(self) -> None:
        if self._reply_store is not None:
            self._reply_store.close()
