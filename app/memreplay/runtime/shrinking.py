"""A wrong answer of a recorded run, tried again on smaller conversations until none fails at the same stage."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from memory_backends.base import Namespace, Snapshot
from memory_backends.controls import CONTROLS, ORACLE
from memory_backends.private_files import create_private_file, make_private_folder
from memory_backends.registry import settings_taken, texts_to_embed
from memory_backends.stores.trace import Extraction, ModelCall
from memreplay import __version__
from memreplay.conversations.export import as_test_conversation
from memreplay.conversations.formats.test_conversation import checked, conversation_of
from memreplay.conversations.models import Conversation, Question, exchanges_of
from memreplay.conversations.validation_errors import Place
from memreplay.debugger.shrink import Shrinking, StopShrinking, only_question, with_other_words
from memreplay.engine.backend_driver import PlayedMemory
from memreplay.engine.events import ReplayEvent, call_in
from memreplay.engine.remote.addresses import is_agent
from memreplay.engine.session import Ask, ReplayPlan, ReplaySession
from memreplay.errors import DatasetError, MissingServerOrKeyError, UsageError
from memreplay.grading import Score
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.caching import ReplyCache, request_key
from memreplay.llm.model import AnswerModel, AnswerRequest, Reply
from memreplay.llm.ports import MemoryChatModel, ModelAnswerer, ModelFactExtractor
from memreplay.llm.rate_limiter import StoppedError
from memreplay.llm.tokens import token_counter
from memreplay.numbers import counted
from memreplay.paths import cache_folder
from memreplay.recording.reader import Recording, RunInfo
from memreplay.runtime.bisecting import question_in
from memreplay.runtime.elsewhere import Elsewhere, workers_of
from memreplay.runtime.memories import RunMemories
from memreplay.runtime.models import RunModels
from memreplay.runtime.recorded import lineage_of, settings_of_run
from memreplay.scoring.attribution import Attribution, Attributor
from memreplay.scoring.evidence_trail import Loss
from memreplay.scoring.verdicts import VERDICTS, Label
from memreplay.settings import CHANGE_NO_ANSWER, Settings
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.trust import Consent

_NAMESPACE = "shrinking"
_FEWER_HITS = (1, 2, 3, 5, 7)
"""Values of top-k that are tried in place of the run's, from the number of exchanges with evidence on."""

_CANNOT_BE_SHRUNK: frozenset[Label] = frozenset(
    {"error", "unparsed", "refused", "key_suspect", "not_visible", "no_evidence"}
)
_OF_MEMORY: frozenset[Label] = frozenset({"not_written", "not_retrieved", "cut"})
"""Verdicts that need no reply: the prompt did not hold the answer."""


@dataclass(frozen=True)
class Failure:
    """The stage at which an answer was lost, and for ``not_written`` how."""

    label: Label | None
    loss: Loss | None = None

    @property
    def words(self) -> str:
        return "no failure" if self.label is None else VERDICTS[self.label].words


@dataclass(frozen=True)
class Case:
    """A wrong answer that is to be shrunk. ``hits`` are the turns behind each item that memory retrieved."""

    conversation: Conversation
    question: Question
    backend: str
    model: str
    settings: Settings
    failure: Failure
    hits: tuple[frozenset[str], ...]

    @property
    def needs_replies(self) -> bool:
        """Return whether the verdict depends on what the model says, which may cost."""
        return self.failure.label not in _OF_MEMORY

    @property
    def calls_cost(self) -> bool:
        """Return whether each try calls a model that may cost."""
        return self.settings.extractor is not None or (self.needs_replies and self.model != EXTRACTIVE_MODEL)


def refuse_without_calls(case: Case, calls: int) -> None:
    """Raise a :class:`UsageError` if the case needs calls of models that cost, and none are allowed."""
    if calls:
        return
    if case.settings.extractor is not None:
        raise UsageError(
            f"{case.backend} writes with {case.settings.extractor}, which is called for every conversation that is"
            " tried; allow so many calls with --calls N"
        )
    if case.needs_replies and case.model != EXTRACTIVE_MODEL:
        raise UsageError(
            f"{case.question.id}: {case.failure.words}: each try needs a reply of {case.model}; allow so many calls"
            " with --calls N"
        )


def case_in(
    recording: Recording, run: RunInfo, wanted: str, backend: str | None, given: Settings, consent: Consent
) -> Case:
    """Return the wrong answer of a recorded run to a question, by its id or the end of it.

    Raises:
        NotAllowedError: the recording asks for what neither the user's settings nor ``consent`` allow.
        UsageError: the run has no answer to this question, or it cannot be shrunk.
    """
    if not {"model", "backend"} <= run.settings.keys():
        raise UsageError(f"run {run.id} does not say how its memories were set up, so they cannot be filled again")
    of_run = settings_of_run(run.settings, given, recording.path, consent)
    if lineage_of(recording, run).edits:
        raise UsageError(f"run {run.id} is a branch with changes by hand in its stores, which no dataset holds")
    timeline, question = _asked(recording, run, wanted)
    if not timeline.conversation.can_be_replayed:
        raise UsageError(f"{question.id}: tests in which the agent converses cannot be shrunk")
    attributor = Attributor(timeline)
    answers = [
        answer
        for answer in timeline.answers()
        if answer.asked.question_id == question.id and not answer.asked.by_hand
    ]
    wrong = {
        answer.asked.backend: answer
        for answer in reversed(answers)
        if answer.asked.backend not in CONTROLS
        and answer.asked.backend in of_run.backend
        and answer.asked.model in of_run.model
        and answer.scored
        and answer.scored.score.outcome != "correct"
    }
    if backend is None and len(wrong) == 1:
        (backend,) = wrong
    if not wrong and answers:
        raise UsageError(f"no memory of this run answers {question.id} wrongly: there is nothing to shrink")
    if backend is None or backend not in wrong:
        names = ", ".join(sorted(wrong)) or "no memory"
        raise UsageError(f"--backend: expected a memory that answers {question.id} wrongly: {names}")
    answer = wrong[backend]
    # A judge of stages is not asked about the smaller conversations, so the rules decide about this one too.
    found = attributor.attribute(replace(answer, stages_judged={}))
    label = found.label if found else None
    if found is None or label is None or label in _CANNOT_BE_SHRUNK or is_agent(backend):
        raise UsageError(
            f"{question.id} of {backend} cannot be shrunk: {found.detail if found else 'it was not scored'}"
        )
    if attributor.closed_book_is_right(answer.asked) and not question.abstain:
        raise UsageError(
            f"{question.id}: the model knows the answer without any memory, so it tells nothing of one"
        )
    settings = for_one_memory(of_run, backend)
    hits = tuple(frozenset((*hit.turns, *hit.sources)) for hit in answer.asked.hits)
    return Case(
        conversation=only_question(timeline.conversation, question),
        question=question,
        backend=backend,
        model=answer.asked.model,
        settings=replace(settings, model=(answer.asked.model,)),
        failure=Failure(label, found.loss),
        hits=hits,
    )


def _asked(recording: Recording, run: RunInfo, wanted: str) -> tuple[Timeline, Question]:
    found = [
        (id_, question)
        for id_ in recording.conversation_ids(run.id)
        if (question := question_in(recording.conversation(run.id, id_), wanted)) is not None
    ]
    if len(found) != 1:
        raise UsageError(
            f"--question {wanted}: " + ("several have this id" if found else "no question has this id")
        )
    return recording.timeline(run.id, found[0][0]), found[0][1]


def for_one_memory(settings: Settings, backend: str) -> Settings:
    """Return the settings for one memory alone, without options that it does not take."""
    taken = settings_taken(backend)
    others = {
        name: getattr(Settings(), name)
        for name in ("ablate", "tier_share", "extractor", "reranker")
        if name not in taken
    }
    return replace(settings, backend=(backend,), repeats=1, **others)


def as_in_a_file(conversation: Conversation) -> Conversation:
    """Return the conversation as it will be read from the dataset file that is written of it.

    Raises:
        UsageError: the format cannot hold it.
    """
    place = Place(Path(f"{conversation.id}.json"))
    try:
        return conversation_of(checked(as_test_conversation(conversation), place), conversation.dataset)
    except DatasetError as error:
        raise UsageError(f"{conversation.id} cannot be written as a dataset: {error}") from None


@dataclass(frozen=True)
class Tried:
    """A conversation that was played to the memory, and what came of its question. ``writing`` are the calls of the
    model that the memory writes with.
    """

    conversation: Conversation
    question: Question
    answer: Answer
    attribution: Attribution
    oracle_is_right: bool | None
    stored: Snapshot
    writing: Sequence[ModelCall | Extraction] = ()

    @property
    def failure(self) -> Failure:
        return Failure(self.attribution.label, self.attribution.loss)


@dataclass
class Progress:
    """``turns`` are left of the ``first``; ``tried`` were played, ``known`` were tried by an earlier command."""

    first: int
    turns: int
    top_k: int
    tried: int = 0
    known: int = 0
    calls: int = 0
    cost_usd: float = 0.0

    @property
    def effort(self) -> str:
        """Return in words what the search took."""
        known = f", {self.known} known from before" if self.known else ""
        calls = f"{counted(self.calls, 'call')}, ${self.cost_usd:.4f}" if self.calls else "no call"
        return f"{counted(self.tried, 'try')}{known}, {calls}"


class Shrinker:
    """Shrinks one case. ``report`` is called after each try and whenever the conversation gets smaller.

    An answer that was not retrieved lost its place to as many other items as top-k lets through. Top-k is lowered
    with the conversation, unless ``same_hits`` keeps that of the run, so that fewer others are enough.

    ``calls`` is the most calls of a model that costs, ``tries`` the most conversations that are tried. What became
    of each candidate is kept by its content, so that a later command tries none of them again.

    With workers, several candidates are played at once, where that calls no model that costs. The result is the
    same: of those that fail, the first in order is taken.
    """

    def __init__(
        self,
        case: Case,
        *,
        calls: int = 0,
        tries: int | None = None,
        same_hits: bool = False,
        report: Callable[[Progress], None] = lambda progress: None,
        warn: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self.case, self._tries, self._report = case, tries, report
        self._same_hits = same_hits
        self.settings = case.settings
        self.stopping = False
        self.best = only_question(case.conversation, case.question)
        turns = len(self.best.turns)
        self.progress = Progress(first=turns, turns=turns, top_k=case.settings.top_k)
        self.ended_early: str | None = None
        self._models = RunModels(case.settings, lambda: _NAMESPACE, warn)
        self._model = _Budgeted(self._models.answer_model, self._models.reply_cache, calls, self.progress)
        self._memories = RunMemories(case.settings, warn)
        extractor, base = case.settings.extractor, case.settings.api_base
        if extractor is not None:
            self._memories.use_models(
                ModelFactExtractor(self._model, extractor, base), MemoryChatModel(self._model, extractor, base)
            )
        self._known = _KnownVerdicts(case)
        self._ahead: set[str] = set()
        self._decided = 0
        self._elsewhere: Elsewhere | None = None
        self._oracle_matters = False

    async def run(self) -> None:
        """Shrink as far as possible, or until :meth:`stop`.

        Raises:
            MissingServerOrKeyError: a model that the memory needs is unavailable.
            UsageError: the rebuilt memory does not fail as it did in the run, or more calls are needed to say so.
        """
        try:
            whole = await self.tried(self.best)
        except StopShrinking as stop:
            raise UsageError(
                f"{self.case.question.id}: {stop}, and the whole conversation is not played yet; replies are kept:"
                " to continue, run the same command with more"
            ) from None
        except StoppedError as error:
            raise MissingServerOrKeyError(str(error)) from None
        if whole.failure != self.case.failure:
            raise UsageError(
                f"{self.case.question.id}: filled again, {self.case.backend} does not fail as it did in the run"
                f" ({self.case.failure.words}), but so: {whole.failure.words}. {whole.attribution.detail}"
            )
        self._decided = 1
        self._oracle_matters = bool(whole.oracle_is_right)
        alone = replace(self.settings, workers=None, cluster=None)
        async with workers_of(alone if self.case.calls_cost else self.settings) as self._elsewhere:
            try:
                if self.case.failure.label == "not_retrieved" and not self._same_hits:
                    await self._lower_top_k()
                await self._shrinking().run(frozenset().union(*self.case.hits[: self.settings.top_k]))
            except StopShrinking as stop:
                self.ended_early = str(stop)
        self._elsewhere = None

    def _shrinking(self) -> Shrinking:
        at_once = self._elsewhere.places if self._elsewhere is not None else 1
        return Shrinking(self.best, self._first_failing, self._smaller, at_once)

    def stop(self) -> None:
        """End the search after the present try."""
        self.stopping = True

    async def close(self) -> None:
        """Release models and stores."""
        self._models.close()
        self._known.close()
        await self._memories.close()

    async def replayed(self) -> Tried:
        """Return the smallest conversation, played once more."""
        return await self.tried(self.best)

    async def replace_words(self, of: Callable[[str], str]) -> bool:
        """Replace the texts of the smallest conversation and its question, if it then still fails. Turns that it
        no longer needs go.
        """
        other = with_other_words(self.best, of)
        try:
            if self.stopping or await self._first_failing([other]) is None:
                return False
            self.best = other
            await self._shrinking().shrink_turns()
        except StopShrinking as stop:
            self.ended_early = str(stop)
        return self.best.questions == other.questions

    async def _lower_top_k(self) -> None:
        most, evidence = self.settings.top_k, set(self.case.question.evidence)
        needed = sum(not evidence.isdisjoint(exchange.turn_ids) for exchange in exchanges_of(self.best))
        for top_k in (each for each in _FEWER_HITS if needed <= each < most):
            self.settings = replace(self.settings, top_k=top_k)
            if await self._first_failing([self.best]) is not None:
                self.progress.top_k = top_k
                return
        self.settings = replace(self.settings, top_k=most)

    def _smaller(self, conversation: Conversation) -> None:
        self.best = conversation
        self.progress.turns = len(conversation.turns)
        self._report(self.progress)

    async def _first_failing(self, candidates: Sequence[Conversation]) -> int | None:
        """Return the place of the first that fails as the case does. Workers play all of them meanwhile."""
        keys = [_digest([as_test_conversation(each), self.settings.top_k]) for each in candidates]
        at_work: dict[str, asyncio.Task[bool]] = {}
        if self._elsewhere is not None and not self.stopping:
            for key, candidate in zip(keys, candidates, strict=True):
                if self._known.get(key):
                    break
                if self._known.get(key) is None and key not in at_work:
                    at_work[key] = asyncio.create_task(self._fails(candidate))
        try:
            for place, (key, candidate) in enumerate(zip(keys, candidates, strict=True)):
                if self.stopping:
                    raise StopShrinking("interrupted")
                fails = self._known.get(key)
                if fails is not None and key not in self._ahead:
                    self.progress.known += 1
                else:
                    if self._tries is not None and self._decided >= self._tries:
                        raise StopShrinking(f"{self._tries} conversations were tried")
                    self._decided += 1
                    self._ahead.discard(key)
                    if fails is None:
                        fails = await (at_work.pop(key) if key in at_work else self._fails(candidate))
                        self._known.put(key, fails)
                    self._report(self.progress)
                if fails:
                    return place
            return None
        finally:
            # Their verdicts are of use if the search comes to them.
            for key, found in zip(
                at_work, await asyncio.gather(*at_work.values(), return_exceptions=True), strict=True
            ):
                if isinstance(found, bool):
                    self._known.put(key, found)
                    self._ahead.add(key)

    async def _fails(self, candidate: Conversation) -> bool:
        try:
            tried = await self.tried(candidate)
        except DatasetError:
            return False
        except StoppedError as error:
            raise StopShrinking(str(error)) from None
        return tried.failure == self.case.failure and not (self._oracle_matters and not tried.oracle_is_right)

    async def tried(self, candidate: Conversation) -> Tried:
        """Play a conversation to the memory, as it is read from its file, and ask the question.

        Raises:
            StopShrinking: the verdict needs a call of the model that is beyond the budget.
            StoppedError: a model is unavailable.
        """
        self._model.is_spent = False
        conversation = as_in_a_file(candidate)
        wanted = self.case.question.kind
        question = next(each for each in conversation.questions if each.kind == wanted)
        reads = self.case.needs_replies or self.case.model == EXTRACTIVE_MODEL
        checks_oracle = self.case.model == EXTRACTIVE_MODEL and not question.abstain
        names = [self.case.backend, *([ORACLE] if checks_oracle else [])]
        answerer = self._models.answerer(self._model if reads else _Silent())
        events: list[ReplayEvent] = []
        played = await self._played(conversation, question)
        async with self._session(conversation, names, answerer, events.append, played) as (session, snapshot):
            await session.play()
            for name in names:
                await session.ask(question, name, self.case.model)
            stored = await snapshot() if played is None else Snapshot()
        self.progress.tried += 1
        if self._model.is_spent:
            raise StopShrinking("the calls of --calls are used up")
        timeline = Timeline(conversation, events)
        by_backend = {answer.asked.backend: answer for answer in timeline.answers()}
        answer, oracle = by_backend[self.case.backend], by_backend.get(ORACLE)
        if not reads and answer.scored is not None and answer.asked.prompt:
            wrong = Score(outcome="wrong", score=0.0)
            answer.scored = answer.scored.model_copy(update={"score": wrong})
        attribution = Attributor(timeline).attribute(answer) or Attribution(label=None, detail="It was not scored.")
        right = None if oracle is None or oracle.scored is None else oracle.scored.score.outcome == "correct"
        writing = [call for event in events if (call := call_in(event)) is not None]
        return Tried(conversation, question, answer, attribution, right, stored, writing)

    async def _played(self, conversation: Conversation, question: Question) -> Mapping[str, PlayedMemory] | None:
        """Return what the memory did and recalled in a worker; None where it is played here."""
        if self._elsewhere is None:
            return None
        name = self.case.backend
        asks = [Ask(question, name, self.case.model)]
        # A small conversation is filled anew, and not kept for other runs.
        settings = replace(self.settings, fresh=True)
        played = await self._elsewhere.play(settings, _NAMESPACE, conversation, [name], asks, perceive=False)
        if played.stopped is not None:
            raise played.stopped
        return played.memories

    @asynccontextmanager
    async def _session(
        self,
        conversation: Conversation,
        names: Sequence[str],
        answerer: ModelAnswerer,
        emit: Callable[[ReplayEvent], None],
        played: Mapping[str, PlayedMemory] | None,
    ) -> AsyncIterator[tuple[ReplaySession, Callable[[], Any]]]:
        if played is None:
            await self._memories.embed_ahead(texts_to_embed([self.case.backend], exchanges_of(conversation)))
        memories = self._memories.fresh(conversation, names)
        memory = memories[self.case.backend]
        plan = ReplayPlan(
            run_id=_NAMESPACE,
            models=self.settings.model,
            top_k=self.settings.top_k,
            perceive=memory.perceive_changes_recall,
            shuffle_seed=self.settings.seed if self.settings.shuffle_choices else None,
            counter_of=token_counter,
            judge=self._models.judge(),
        )
        session = ReplaySession(conversation, memories, answerer, plan, emit, played=played)
        try:
            await session.open()
            yield session, memory.snapshot
        finally:
            await session.close("resolved")
            for name in names:
                await self._memories.forget(
                    Namespace(run_id=_NAMESPACE, conversation_id=conversation.id, backend=name)
                )


class _Silent:
    """Takes the place of a model whose reply no verdict needs."""

    async def answer(self, request: AnswerRequest) -> Reply:
        return Reply(text="I do not know.")


class _Budgeted:
    """A model that is called at most so often; the embedded reader and cached replies are free."""

    def __init__(self, model: AnswerModel, cache: ReplyCache | None, calls: int, progress: Progress) -> None:
        self._model, self._cache, self._calls, self._progress = model, cache, calls, progress
        self.is_spent = False

    async def answer(self, request: AnswerRequest) -> Reply:
        """Return the reply, or an error beyond the budget."""
        if request.model == EXTRACTIVE_MODEL or (
            self._cache is not None and self._cache.get(request_key(request)) is not None
        ):
            return await self._model.answer(request)
        if self._progress.calls >= self._calls:
            self.is_spent = True
            return Reply(text=None, error="beyond the budget of --calls")
        self._progress.calls += 1
        reply = await self._model.answer(request)
        self._progress.cost_usd += reply.cost_usd or 0.0
        return reply


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, ensure_ascii=False, default=str).encode()).hexdigest()


class _KnownVerdicts:
    """Verdicts on the candidates of a case that were tried. If the user's cache is used, they are kept in a file of
    its folder. The file holds digests, not texts.
    """

    def __init__(self, case: Case) -> None:
        self._known: dict[str, bool] = {}
        self._file: int | None = None
        if case.settings.cache:
            self._open(case)

    def _open(self, case: Case) -> None:
        decisive = {
            name: value
            for name, value in case.settings.public().items()
            if name not in {*CHANGE_NO_ANSWER, "top_k"}
        }
        name = _digest([__version__, decisive, case.failure.label, case.failure.loss, case.question.model_dump()])
        folder = cache_folder() / "shrinking"
        make_private_folder(folder)
        path = folder / f"{name[:32]}.txt"
        if path.exists():
            for line in path.read_text(encoding="ascii", errors="replace").splitlines():
                key, _, fails = line.partition(" ")
                if fails in ("0", "1"):
                    self._known[key] = fails == "1"
        else:
            create_private_file(path)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND)

    def get(self, key: str) -> bool | None:
        return self._known.get(key)

    def put(self, key: str, fails: bool) -> None:
        self._known[key] = fails
        if self._file is not None:
            os.write(self._file, f"{key} {int(fails)}\n".encode())

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
