"""One memory under many settings: filled once for all that change only what is read from it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from memory_backends.base import BackendError, MemoryBackend, Recall
from memory_backends.registry import backend_class, settings_taken, texts_to_embed
from memreplay.conversations.models import Conversation, Question, exchanges_of
from memreplay.debugger.budget import facts_of, has_evidence
from memreplay.debugger.sweep import Found
from memreplay.engine.answers import score_by_rules
from memreplay.engine.backend_driver import BackendDriver
from memreplay.engine.events import BackendFailed, ReplayEvent
from memreplay.engine.session import ReplayPlan, ReplaySession
from memreplay.errors import MemreplayError, UsageError
from memreplay.llm.model import AnswerRequest, Reply
from memreplay.llm.rate_limiter import StoppedError
from memreplay.llm.tokens import context_budget, token_counter
from memreplay.runtime.elsewhere import LOST, refuse_other_versions, settings_for_workers, versions, workers_of
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
_FOLLOWED_BY_ALL = ("context_tokens", "embedder")
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
    is_ranked = getattr(backend_class(backend), "limited_by_top_k", True)
    followed = {*settings_taken(backend), *_FOLLOWED_BY_ALL, *(["top_k"] if is_ranked else [])}
    for values in product(*(axis.values for axis in axes)):
        chosen = dict(zip((axis.name for axis in axes), values, strict=True))
        own = for_one_memory(replace(settings, **chosen), backend)
        words = {name: _named(name, getattr(own, name), name in followed) for name in chosen}
        written_by = " ".join(text for name, text in words.items() if name not in _READING)
        every = " ".join(words.values())
        made.setdefault(every, Setting(every, written_by, own))
    return list(made.values())


def _named(name: str, value: Any, is_followed: bool) -> str:
    flag = name.replace("_", "-")
    return f"{flag}={_in_words(value)}" if is_followed else f"{flag} has no effect"


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


def answerable_questions(conversation: Conversation) -> list[Question]:
    """Return the questions that name the turns with their answer, those of a report's column *answer in prompt*.

    A fact that is asked in words and with options is one. Where no question names turns, it is all whose answer
    was said.
    """
    facts = facts_of(conversation)
    named = {facts[each.id]: each for each in reversed(conversation.questions) if has_evidence(each)}
    return list(reversed(named.values())) or [each for each in conversation.questions if not each.abstain]


@dataclass(frozen=True)
class Reading:
    """A conversation that is to be played to a memory, which is then read under several settings. They hold no key.

    ``versions`` are those of the sweep's own process.
    """

    conversation: Conversation
    backend: str
    settings: Sequence[Settings]
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Read:
    """Recalls of a memory, one per answerable question, by setting. A setting that failed has a sentence."""

    by_setting: Sequence[Sequence[Recall] | str]
    warnings: Sequence[str] = ()


def read_elsewhere(work: Reading) -> Read:
    """Fill a memory and read from it, in a worker.

    Raises:
        UsageError: this worker has other versions.
    """
    refuse_other_versions([work.backend], work.versions)
    return asyncio.run(filled_and_read(work))


async def filled_and_read(work: Reading) -> Read:
    """Fill a memory, and read from it under each setting. What fails costs the settings that it fails under."""
    settings, warnings = work.settings[0], list[str]()
    try:
        models = RunModels(settings, lambda: _NAMESPACE, warnings.append)
        try:
            memories = RunMemories(settings, warnings.append)
            try:
                memories.use_models(models.extractor, models.chat)
                return Read(await _read(work, models, memories), tuple(warnings))
            finally:
                await memories.close()
        finally:
            models.close()
    except (MemreplayError, BackendError, StoppedError) as error:
        return Read([str(error)] * len(work.settings), tuple(warnings))


async def _read(work: Reading, models: RunModels, memories: RunMemories) -> list[Sequence[Recall] | str]:
    conversation, backend, settings = work.conversation, work.backend, work.settings[0]
    failures: list[str] = []

    def note(event: ReplayEvent) -> None:
        if isinstance(event, BackendFailed):
            failures.append(f"memory failed at turn {event.turn} ({event.phase}): {event.error}")

    await memories.embed_ahead(texts_to_embed([backend], exchanges_of(conversation)))
    memory = memories.fresh(conversation, [backend])[backend]
    plan = ReplayPlan(
        run_id=_NAMESPACE,
        models=settings.model,
        perceive=memory.perceive_changes_recall,
        counter_of=token_counter,
    )
    session = ReplaySession(conversation, {backend: memory}, models.answerer(models.answer_model), plan, note)
    await session.open()
    try:
        await session.play()
        if failures:
            return [failures[0]] * len(work.settings)
        return [await _under(each, work, memory, session.driver(backend)) for each in work.settings]
    finally:
        await session.close("resolved")


async def _under(
    settings: Settings, work: Reading, memory: MemoryBackend, driver: BackendDriver
) -> Sequence[Recall] | str:
    model = settings.model[0]
    memory.set_token_counter(token_counter(model))
    budget = context_budget(model, settings.context_tokens, memory.limited_by_top_k)
    recalls: list[Recall] = []
    for question in answerable_questions(work.conversation):
        end = len(work.conversation.turns)
        recall = await driver.recall(question.text, settings.top_k, budget, end, model)
        if isinstance(recall, str):
            return f"{question.id}: {recall}"
        recalls.append(recall)
    return recalls


async def sweep(
    conversations: Sequence[Conversation],
    backend: str,
    settings: Sequence[Setting],
    *,
    asks: bool,
    begun: Callable[[Conversation], None],
    warn: Callable[[str], None],
) -> tuple[dict[str, list[Found]], dict[str, str]]:
    """Return what a memory returns for all answerable questions, by the words of a setting; and why others failed.

    The workers of the settings fill and read the memories, if there are any; the models are asked here. ``begun``
    is called each time that a memory is to be filled.

    Raises:
        MissingServerOrKeyError: the workers cannot be started or reached.
        UsageError: a worker has other versions.
    """
    first, groups = settings[0].settings, list(fillings(settings))
    models = RunModels(first, lambda: _NAMESPACE, warn)
    failed: dict[str, str] = {}
    try:
        async with workers_of(first) as elsewhere:
            places = elsewhere.places if elsewhere is not None else 1
            turn, known = asyncio.Semaphore(places), versions([backend])

            async def read(conversation: Conversation, group: Sequence[Setting]) -> Read:
                async with turn:
                    begun(conversation)
                    if elsewhere is None:
                        return await filled_and_read(
                            Reading(conversation, backend, [each.settings for each in group], known)
                        )
                    travelling = [settings_for_workers(each.settings, places) for each in group]
                    work = Reading(conversation, backend, travelling, known)
                    try:
                        return await elsewhere.call(read_elsewhere, work) or Read([LOST] * len(group))
                    except StoppedError as error:
                        return Read([str(error)] * len(group))

            async def found(conversation: Conversation, group: Sequence[Setting]) -> list[list[Found]]:
                done = await read(conversation, group)
                for warning in done.warnings:
                    warn(warning)
                rows: list[list[Found]] = []
                for each, recalls in zip(group, done.by_setting, strict=True):
                    if isinstance(recalls, str):
                        failed.setdefault(each.words, f"{conversation.id}: {recalls}")
                    answered = [] if isinstance(recalls, str) else recalls
                    rows.append(await _found(conversation, each.settings, answered, models, asks=asks))
                return rows

            tasks = {
                (group[0].words, place): asyncio.create_task(found(conversation, group))
                for place, conversation in enumerate(conversations)
                for group in groups
            }
            await asyncio.gather(*tasks.values())
    finally:
        models.close()
    rows: dict[str, list[Found]] = {each.words: [] for each in settings if each.words not in failed}
    for place in range(len(conversations)):
        for group in groups:
            for each, new in zip(group, tasks[group[0].words, place].result(), strict=True):
                if each.words in rows:
                    rows[each.words] += new
    return rows, {each.words: failed[each.words] for each in settings if each.words in failed}


async def _found(
    conversation: Conversation, settings: Settings, recalls: Sequence[Recall], models: RunModels, *, asks: bool
) -> list[Found]:
    """Return whether each recall holds the answer, and with ``asks`` whether the model then gives it."""
    answerer, found = models.answerer(models.answer_model), list[Found]()
    for question, recall in zip(answerable_questions(conversation), recalls, strict=False):
        request = answerer.request(question, recall.context, settings.model[0], 0)
        right = None
        if asks:
            reply = await answerer.answer(request)
            right = None if reply.error else _is_right(question, request, reply)
        holds = Answerable(question, conversation.turns_by_id).held_by(_pieces(recall))
        cost = cost_of_call(request).usd
        found.append(Found(f"{conversation.id}/{question.id}", holds, recall.tokens, cost, right))
    return found


def _is_right(question: Question, request: AnswerRequest, reply: Reply) -> bool:
    return score_by_rules(question, request.messages, (), reply).outcome == "correct"


def _pieces(recall: Recall) -> list[Piece]:
    given = [
        Piece(hit.text, frozenset((*hit.turns, *hit.sources)), frozenset(hit.turns))
        for hit in recall.hits
        if hit.in_prompt
    ]
    return given if any(piece.text for piece in given) else [Piece(recall.context)]
