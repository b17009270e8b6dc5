"""Asks the wrong answers of a recorded run again, under one change at a time.

Replies come from the model that answered, through the same client: paced, retried and cached. A reply that is
recorded already, for this change or for an equal prompt of the run itself, is not asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memreplay.conversations.models import Conversation
from memreplay.engine.answers import grade
from memreplay.engine.events import AnswerJudged, ReplayEvent
from memreplay.errors import RecordingError, UsageError
from memreplay.llm.caching import request_key
from memreplay.llm.catalogue import ensure_reachable
from memreplay.llm.counting import Estimate, prompt_tokens
from memreplay.llm.model import AnswerRequest, Reply
from memreplay.llm.prompts import context_of
from memreplay.llm.rate_limiter import Gate, StoppedError
from memreplay.paths import demo_recordings
from memreplay.recording.counterfactuals import Reask, ReaskKey, ReaskStore, ask_of, reasks_in
from memreplay.recording.reader import Recording
from memreplay.runtime.changes import (
    AskableMemory,
    Change,
    Selection,
    WrongAnswers,
    changes_of,
    changes_of_recording,
    is_wrong,
    paid_replies,
    selectable,
)
from memreplay.runtime.memories import RunMemories
from memreplay.runtime.models import RunModels
from memreplay.runtime.recorded import Lineage, MissingMemory, RebuiltMemory, lineage_of
from memreplay.scoring.counterfactuals import Counterfactual
from memreplay.scoring.verdicts import FROM_MEMORY, INTERVENTIONS, Intervention
from memreplay.scoring.what_if import Given, GivenAnswers, given_answer
from memreplay.settings import Settings
from memreplay.timeline.timeline import Answer, Timeline

if TYPE_CHECKING:
    from memreplay.runtime.counting import Counting

_ANSWERS_AT_ONCE = 4
"""Wrong answers whose prompts are in memory at the same time; each has up to a dozen."""


@dataclass
class Progress:
    """``answers`` of ``wrong`` ones are done; ``asked`` calls were made, ``reused`` replies found.

    ``judged`` are the calls of a judge.
    """

    wrong: int = 0
    answers: int = 0
    asked: int = 0
    reused: int = 0
    recorded: int = 0
    errors: int = 0
    repaired: int = 0
    judged: int = 0
    paid_usd: float = 0.0
    unpriced: int = 0

    def count(self, reply: Reply, repaired: bool) -> None:
        """Count a reply that this process received."""
        self.reused += reply.reused
        self.asked += not reply.reused
        self.errors += reply.error is not None
        self.repaired += repaired
        self._pay(reply)

    def count_judgement(self, event: ReplayEvent) -> None:
        """Count what a judge's call cost."""
        if isinstance(event, AnswerJudged):
            self.judged += not event.judgement.reply.reused
            self._pay(event.judgement.reply)

    def _pay(self, reply: Reply) -> None:
        if reply.error is None and not reply.reused:
            self.paid_usd += reply.cost_usd or 0.0
            self.unpriced += reply.cost_usd is None


class Reasking:
    """The models and the rebuilt memories of a recorded run, with what was changed by hand if it is a branch.

    ``warn`` gets a sentence for each survived problem. With ``counting`` they are those of an estimate.
    """

    def __init__(
        self,
        settings: Settings,
        run_id: str,
        warn: Callable[[str], None],
        lineage: Lineage | None = None,
        counting: Counting | None = None,
    ) -> None:
        self.settings, self.run_id = settings, run_id
        self._lineage = lineage or Lineage()
        self._models = RunModels(settings, lambda: run_id, warn, counting)
        self._memories = RunMemories(settings, counting=counting)
        self._memories.use_models(self._models.extractor, self._models.chat)
        self._answerer = self._models.answerer(self._models.answer_model)
        self.judge = self._models.judge()
        self.reply_cache = self._models.reply_cache
        self.rate_limiters = self._models.rate_limiters
        self._lanes: dict[str, Gate] = {}
        self.stopping = False

    async def check(self, models: Collection[str]) -> None:
        """Raise MissingServerOrKeyError if a model's key or server is missing."""
        if not self.settings.offline:
            for model in models:
                await asyncio.to_thread(ensure_reachable, model, self.settings.api_base)

    def stop(self) -> None:
        """Ask nothing new; calls under way are awaited, and their replies kept."""
        self.stopping = True
        self.rate_limiters.stop()
        for lane in self._lanes.values():
            lane.close()

    async def close(self) -> None:
        """Release models, stores and files."""
        self._models.close()
        await self._memories.close()

    async def ask(
        self,
        store: ReaskStore,
        conversation_id: str,
        selection: Selection,
        progress: Progress,
        on_reply: Callable[[Reask], None] = lambda reask: None,
    ) -> None:
        """Ask the wrong answers of a conversation again; those of a model that is given up stay unasked.

        Raises:
            RecordingError: the recording cannot be written.
        """
        wrong = WrongAnswers(store.recording.timeline(self.run_id, conversation_id), selection)
        recorded = reasks_in(store.recording, self.run_id, conversation_id, wrong.asked)
        known = {reask.key: reask for reask in recorded}
        answering = _Answering(self, store, wrong, known, progress, on_reply)
        left = None if selection.limit is None else max(selection.limit - progress.answers, 0)
        try:
            async with self.rebuilding(wrong.conversation) as memory_of:
                await answering.run(wrong.chosen[:left], selection.interventions, memory_of)
        finally:
            store.grade(self.run_id, conversation_id, answering.new)

    @asynccontextmanager
    async def rebuilding(self, conversation: Conversation) -> AsyncIterator[Callable[[str], AskableMemory]]:
        """Memories of a conversation by name, rebuilt when first used and released afterwards."""
        made: dict[str, RebuiltMemory | MissingMemory] = {}

        def of(name: str) -> AskableMemory:
            if name not in made and name not in self.settings.backend:
                made[name] = MissingMemory(f"{name} is not among the memories of the run's settings")
            if name not in made:
                try:
                    made[name] = RebuiltMemory(
                        conversation, name, self._memories, self._answerer, self.settings, self._lineage
                    )
                except UsageError as error:
                    made[name] = MissingMemory(str(error))
            return made[name]

        try:
            yield of
        finally:
            for memory in made.values():
                await memory.close()

    async def reply(self, request: AnswerRequest) -> Reply:
        """Return the reply of the model, once there is a place among its parallel calls.

        An answer may name any model; only those of the run's settings are asked.
        """
        if request.model not in self.settings.model:
            return Reply(text=None, error=f"{request.model} is not among the models of the run's settings")
        pace = self.rate_limiters.of(request.model)
        lane = self._lanes.setdefault(request.model, Gate(lambda: 2 * pace.concurrency))
        async with lane:
            return await self._models.answer_model.answer(request)


@dataclass
class _Answering:
    """The wrong answers of one conversation on their way through the model."""

    reasking: Reasking
    store: ReaskStore
    wrong: WrongAnswers
    known: dict[ReaskKey, Reask]
    progress: Progress
    on_reply: Callable[[Reask], None]
    new: list[Reask] = field(default_factory=list)

    async def run(
        self,
        answers: Sequence[Answer],
        interventions: Sequence[Intervention],
        memory_of: Callable[[str], AskableMemory],
    ) -> None:
        """Ask them, a few at a time."""
        self._paid = paid_replies(self.wrong.timeline, self.reasking.settings.api_base)
        for each in self.known.values():
            if each.score is None or each.score.problem is not None:
                await self._grade(each)
        room = asyncio.Semaphore(_ANSWERS_AT_ONCE)

        async def one(answer: Answer) -> None:
            async with room:
                await self._ask_all(answer, interventions, memory_of)

        await together([one(answer) for answer in answers])

    async def _ask_all(
        self,
        answer: Answer,
        interventions: Sequence[Intervention],
        memory_of: Callable[[str], AskableMemory],
    ) -> None:
        if self.reasking.stopping or answer.asked.model in self.reasking.rate_limiters.unavailable:
            return
        done = [name for name in interventions if self._is_done((*ask_of(answer.asked), name))]
        self.progress.recorded += len(done)
        left = [name for name in interventions if name not in done]
        if left:
            changes = await changes_of(self.wrong.case(answer), left, memory_of, self.reasking.settings)
            await together([self._ask(change) for change in changes])
        self.progress.answers += 1

    def _is_done(self, key: ReaskKey) -> bool:
        """Return whether a reply to this change is recorded. An error is asked again."""
        return key in self.known and self.known[key].reply.error is None

    async def _ask(self, change: Change) -> None:
        try:
            reply = await self._reply(change)
        except StoppedError:
            return
        asked, request = change.case.asked, change.request
        reask = Reask(
            **dict(zip(("backend", "model", "question_id", "repeat"), ask_of(asked), strict=True)),
            intervention=change.intervention,
            context=context_of(request.messages) if request else "",
            reply=reply,
        )
        # The reply is on disk before it is graded, and no await may part it from its storing.
        self.store.add(self.reasking.run_id, reask, asked)
        graded = await self._grade(reask)
        self.progress.count(reply, repaired=graded.score is not None and graded.score.outcome == "correct")
        self.on_reply(graded)

    async def _grade(self, reask: Reask) -> Reask:
        """Return the re-ask with its score; without one if the judge cannot be called, so that it is graded next
        time.
        """
        try:
            graded = await self.wrong.graded(reask, self.reasking.judge, self.progress.count_judgement)
        except StoppedError:
            return reask
        self.new.append(graded)
        return graded

    async def _reply(self, change: Change) -> Reply:
        """Return the reply: of the run itself where it asked the same, else of the model."""
        if change.request is None:
            return Reply(text=None, error=change.problem)
        paid = self._paid.get(request_key(change.request))
        return paid.model_copy(update={"reused": True}) if paid else await self.reasking.reply(change.request)


async def together(work: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Do all of this at the same time. Of several errors at once, the first is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(each)
    except BaseExceptionGroup as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


@dataclass(frozen=True)
class Cost:
    """Tokens of a prompt, and the most that the call costs in US dollars; None where the price is unknown."""

    tokens: int
    usd: float | None


def cost_of_call(request: AnswerRequest) -> Cost:
    """Return what a call would cost at most."""
    tokens, longest = prompt_tokens(request), int(request.parameters.get("max_tokens") or 0)
    return Cost(tokens, Estimate(calls=1, prompt_tokens=tokens, reply_tokens=longest).price(request.model))


def can_be_asked_again(answer: Answer) -> str | None:
    """Return why an answer cannot be asked again; None if it can."""
    if not selectable(answer.asked):
        return "This prompt was not made by memreplay, so it cannot be changed."
    if answer.asked.by_hand or answer.asked.typed is not None:
        return "A question asked by hand can be asked again with a."
    if not is_wrong(answer):
        return "Only a wrong answer is asked again: nothing has to be repaired here."
    return None


class OneAnswer:
    """A wrong answer and its changes. ``path`` is the recording that keeps the replies, if there is one."""

    def __init__(
        self, settings: Settings, run_id: str, path: Path | None, timeline: Timeline, answer: Answer
    ) -> None:
        self.answer = answer
        self.kept_for_session_only = path is None
        self._settings, self._run_id, self._path = settings, run_id, path
        self._timeline = timeline
        self._question = next(q for q in timeline.conversation.questions if q.id == answer.asked.question_id)
        self._reasking: Reasking | None = None

    def recorded_changes(self) -> list[Change]:
        """Return the changes that need no memory. Slow for a long context."""
        wrong = WrongAnswers(self._timeline, Selection(questions=(self._question.id,)))
        self._case = wrong.case(self.answer)
        wanted = [name for name in INTERVENTIONS if name not in FROM_MEMORY]
        return changes_of_recording(self._case, wanted, self._settings)

    def known(self) -> dict[Intervention, Reask]:
        """Return the replies that are recorded already."""
        if self._path is None or not self._path.exists():
            return {}
        asked = {ask_of(self.answer.asked): self.answer.asked}
        with closing(Recording.open(self._path)) as recording:
            found = reasks_in(recording, self._run_id, self._timeline.conversation.id, asked)
        return {reask.intervention: reask for reask in found if reask.score is not None}

    def agreement(self) -> Callable[[Sequence[Counterfactual]], bool]:
        """Return whether independent others gave the same answer in this conversation, by the re-asks there are."""
        conversation = self._timeline.conversation
        questions = {question.id: question for question in conversation.questions}

        def given(answer: Answer) -> Given | None:
            asked, scored = answer.asked, answer.scored
            question = questions.get(asked.question_id)
            if scored is None or question is None or asked.by_hand:
                return None
            return given_answer(conversation.id, question, (asked.backend, asked.model), scored.score, asked.hits)

        this = given(self.answer)
        answers = GivenAnswers(found for each in self._timeline.answers() if (found := given(each)) is not None)

        def others_agree(asked: Sequence[Counterfactual]) -> bool:
            return this is not None and answers.others_agree(this, asked, abstain=self._question.abstain)

        return others_agree

    async def memory_changes(self) -> list[Change]:
        """Return the changes for which the memory is rebuilt, which may take long."""
        reasking = self._opened()
        async with reasking.rebuilding(self._timeline.conversation) as memory_of:
            return await changes_of(self._case, sorted(FROM_MEMORY), memory_of, self._settings)

    async def ask(self, change: Change) -> Reask:
        """Ask under one change; the reply is kept before it is graded."""
        asked = self.answer.asked
        if change.request is None:
            reply = Reply(text=None, error=change.problem)
        else:
            reply = await self._opened().reply(change.request)
        reask = Reask(
            **dict(zip(("backend", "model", "question_id", "repeat"), ask_of(asked), strict=True)),
            intervention=change.intervention,
            context=context_of(change.request.messages) if change.request else "",
            reply=reply,
        )
        self._keep(reask)
        scored = await grade(self._question, asked, reply, self._opened().judge, lambda event: None)
        graded = reask.model_copy(update={"score": scored.score})
        self._keep(graded)
        return graded

    async def close(self) -> None:
        """Release models and stores."""
        if self._reasking is not None:
            await self._reasking.close()
            self._reasking = None

    def _opened(self) -> Reasking:
        if self._reasking is None:
            self._reasking = Reasking(self._settings, self._run_id, lambda sentence: None, self._lineage())
        return self._reasking

    def _lineage(self) -> Lineage:
        if self._path is None or not self._path.exists():
            return Lineage()
        with closing(Recording.open(self._path)) as recording:
            return lineage_of(recording, recording.run(self._run_id))

    def _keep(self, reask: Reask) -> None:
        """Store a reply, and its score once it has one.

        The shipped recording, one in use and one that cannot be written stay as they are.
        """
        if self._path is None or self.kept_for_session_only or _is_shipped(self._path):
            self.kept_for_session_only = True
            return
        try:
            with ReaskStore.open(self._path) as store:
                store.add(self._run_id, reask, self.answer.asked)
                store.grade(self._run_id, self._timeline.conversation.id, [reask])
        except RecordingError:
            self.kept_for_session_only = True


def _is_shipped(path: Path) -> bool:
    return path.resolve() in {shipped.resolve() for shipped in demo_recordings()}
