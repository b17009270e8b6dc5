"""One memory under many settings: filled once for all that change only what is read from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from memory_backends.base import MemoryBackend, Recall
from memory_backends.registry import texts_to_embed
from memreplay.conversations.models import Conversation, Question, exchanges_of
from memreplay.debugger.sweep import Found
from memreplay.engine.answers import score_reply
from memreplay.engine.backend_driver import BackendDriver
from memreplay.engine.events import BackendFailed, ReplayEvent
from memreplay.engine.session import ReplayPlan, ReplaySession
from memreplay.errors import UsageError
from memreplay.llm.ports import ModelAnswerer
from memreplay.llm.tokens import context_budget, token_counter
from memreplay.runtime.memories import RunMemories
from memreplay.runtime.models import RunModels
from memreplay.runtime.reasking import cost_of_call
from memreplay.runtime.shrinking import for_one_memory
from memreplay.scoring.holding import Answerable, Piece
from memreplay.settings import Settings, read_settings

_NAMESPACE = "sweeping"
_READING = ("top_k", "context_tokens")
"""Settings that change only what is read, so that the memory need not be filled again."""
AXES = (*_READING, "embedder", "reranker", "extractor", "ablate", "tier_share")
_NOTHING = "none"


@dataclass(frozen=True)
class Axis:
    """A setting and the values that are tried."""

    name: str
    values: tuple[Any, ...]

    @classmethod
    def read(cls, text: str) -> Axis:
        """Return the axis that ``NAME=a,b,c`` names.

        Raises:
            UsageError: the setting cannot be swept, or a value is unusable.
        """
        spelt, _, values = text.partition("=")
        name = spelt.strip().replace("-", "_")
        if name not in AXES or not values.strip():
            known = ", ".join(each.replace("_", "-") for each in AXES)
            raise UsageError(f"--over {text}: expected NAME=a,b,c with one of {known}")
        given = [value.strip() for value in values.split(",")]
        defaults = Settings()
        return cls(
            name,
            tuple(
                getattr(defaults, name) if value == _NOTHING else getattr(read_settings(**{name: value}), name)
                for value in given
            ),
        )


@dataclass(frozen=True)
class Setting:
    """Settings of one memory, with their words. What is stored depends on those of them that are ``written_by``."""

    words: str
    written_by: str
    settings: Settings


def settings_of_sweep(settings: Settings, backend: str, axes: Sequence[Axis]) -> list[Setting]:
    """Return the settings of one memory; those that differ only in what it does not take are one."""
    made: dict[str, Setting] = {}
    for values in product(*(axis.values for axis in axes)):
        chosen = dict(zip((axis.name for axis in axes), values, strict=True))
        own = for_one_memory(replace(settings, **chosen), backend)
        words = {name: f"{name.replace('_', '-')}={_in_words(getattr(own, name))}" for name in chosen}
        written_by = " ".join(text for name, text in words.items() if name not in _READING)
        every = " ".join(words.values())
        made.setdefault(every, Setting(every, written_by, own))
    return list(made.values())


def _in_words(value: Any) -> str:
    if value in (None, ()):
        return _NOTHING
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)


def fillings(settings: Sequence[Setting]) -> Iterator[list[Setting]]:
    """Yield the settings in groups: one filled memory serves a group."""
    groups: dict[str, list[Setting]] = {}
    for each in settings:
        groups.setdefault(each.written_by, []).append(each)
    yield from groups.values()


async def sweep(
    conversation: Conversation,
    backend: str,
    settings: Sequence[Setting],
    *,
    asks: bool,
    warn: Callable[[str], None],
) -> dict[str, list[Found]]:
    """Return what one memory returns for the answerable questions of a conversation, by the words of a setting.

    Raises:
        UsageError: the memory cannot be made, or failed.
    """
    found: dict[str, list[Found]] = {}
    for group in fillings(settings):
        found |= await _Filled(conversation, backend, group, warn).read(asks)
    return found


def answerable_questions(conversation: Conversation) -> list[Question]:
    """Return the questions whose answer was said."""
    return [question for question in conversation.questions if not question.abstain]


class _Filled:
    def __init__(
        self, conversation: Conversation, backend: str, group: Sequence[Setting], warn: Callable[[str], None]
    ) -> None:
        self._conversation, self._backend, self._group = conversation, backend, group
        self._settings = group[0].settings
        self._models = RunModels(self._settings, lambda: _NAMESPACE, warn)
        self._memories = RunMemories(self._settings, warn)
        self._memories.use_models(self._models.extractor, self._models.chat)
        self._failure: str | None = None

    async def read(self, asks: bool) -> dict[str, list[Found]]:
        """Fill the memory, and read from it under each setting of the group."""
        conversation = self._conversation
        try:
            await self._memories.embed_ahead(texts_to_embed([self._backend], exchanges_of(conversation)))
            memory = self._memories.fresh(conversation, [self._backend])[self._backend]
            answerer = ModelAnswerer(self._models.answer_model, self._settings.api_base, None)
            plan = ReplayPlan(
                run_id=_NAMESPACE,
                models=self._settings.model,
                perceive=memory.perceive_changes_recall,
                counter_of=token_counter,
            )
            session = ReplaySession(conversation, {self._backend: memory}, answerer, plan, self._note)
            await session.open()
            try:
                await session.play()
                if self._failure is not None:
                    raise UsageError(f"{self._backend}: {self._failure}")
                return {each.words: await self._under(each.settings, memory, asks) for each in self._group}
            finally:
                await session.close("resolved")
        finally:
            self._models.close()
            await self._memories.close()

    def _note(self, event: ReplayEvent) -> None:
        if isinstance(event, BackendFailed):
            self._failure = f"memory failed at turn {event.turn} ({event.phase}): {event.error}"

    async def _under(self, settings: Settings, memory: MemoryBackend, asks: bool) -> list[Found]:
        model = settings.model[0]
        memory.set_token_counter(token_counter(model))
        budget = context_budget(model, settings.context_tokens, memory.limited_by_top_k)
        driver = BackendDriver(self._conversation.id, self._backend, memory, self._note)
        answerer = ModelAnswerer(self._models.answer_model, settings.api_base, settings.context_tokens)
        end = len(self._conversation.turns)
        found: list[Found] = []
        for question in answerable_questions(self._conversation):
            recall = await driver.recall(question.text, settings.top_k, budget, end, model)
            if isinstance(recall, str):
                raise UsageError(f"{self._backend}: {question.id}: {recall}")
            request = answerer.request(question, recall.context, model, 0)
            right = None
            if asks:
                reply = await answerer.answer(request)
                right = None if reply.error else score_reply(question, reply).outcome == "correct"
            holds = Answerable(question, self._conversation.turns_by_id).held_by(_pieces(recall))
            found.append(Found(question.id, holds, recall.tokens, cost_of_call(request).usd, right))
        return found


def _pieces(recall: Recall) -> list[Piece]:
    given = [
        Piece(hit.text, frozenset((*hit.turns, *hit.sources)), frozenset(hit.turns))
        for hit in recall.hits
        if hit.in_prompt
    ]
    return given if any(piece.text for piece in given) else [Piece(recall.context)]
