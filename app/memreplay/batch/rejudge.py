"""Judge the answers of a recorded run again, by several judges and rubrics; each pair is paid for once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from memreplay.batch.recorded_run import Ending
from memreplay.conversations.models import Question
from memreplay.engine.answers import is_for_a_judge
from memreplay.errors import RecordingError, UsageError
from memreplay.grading.failures import GradingError
from memreplay.llm import EXTRACTIVE_MODEL
from memreplay.llm.catalogue import ensure_reachable
from memreplay.llm.counting import Estimate, Rows
from memreplay.llm.judging import BY_STAGES, STAGE_RUBRICS, Judgement, ModelJudge, Rubric, Stage
from memreplay.llm.rate_limiter import StoppedError
from memreplay.numbers import counted, dollars
from memreplay.recording.reader import Recording
from memreplay.recording.rejudgements import Ask, JudgePair, RejudgementStore, ask_of, judgements_of
from memreplay.runtime.counting import Counting, Estimates
from memreplay.runtime.models import RunModels
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.stage_judge import StageCase
from memreplay.settings import Settings
from memreplay.signals import two_step_interrupt
from memreplay.terminal import say

_AT_ONCE = 64


@dataclass
class _Progress:
    asked: int = 0
    reused: int = 0
    without_verdict: int = 0
    paid_usd: float = 0.0
    unpriced: int = 0
    known: int = 0
    rules_failed: int = 0
    stopped: bool = field(default=False)


@dataclass(frozen=True)
class _ReplyJob:
    """A reply that a judge has not graded by its rubric."""

    conversation: str
    ask: Ask
    question: Question
    text: str
    judge: ModelJudge

    async def judgements(self) -> AsyncIterator[tuple[str, Judgement]]:
        """Yield the judgement, under the name of its rubric."""
        yield self.judge.rubric.name, await self.judge.judge(self.question, self.text)

    async def estimate(self) -> None:
        await self.judge.judge(self.question, self.text)


@dataclass(frozen=True)
class _StageJob:
    """A wrong answer of which a judge of stages has not said all; ``known`` is what it said."""

    conversation: str
    ask: Ask
    case: StageCase
    known: dict[Stage, Judgement]
    judge: ModelJudge

    async def judgements(self) -> AsyncIterator[tuple[str, Judgement]]:
        """Yield the judgements of one stage after the other, until one tells or has no verdict."""
        known = dict(self.known)
        while (stage := self.case.to_ask(known)) is not None:
            judgement = known[stage] = await self._asked(stage)
            yield f"{BY_STAGES}/{stage}", judgement
            if judgement.verdict is None:
                return

    async def estimate(self) -> None:
        """Ask about all stages: the second is asked only where the first does not tell."""
        for stage in STAGE_RUBRICS.values():
            if stage not in self.case.known and stage not in self.known:
                await self._asked(stage)

    async def _asked(self, stage: Stage) -> Judgement:
        question, notes = self.case.answerable.question, self.case.notes(stage)
        return await self.judge.judge_stage(question, self.case.said, notes, stage)


async def rejudge(
    path: Path, run_id: str | None, settings: Settings, judges: Sequence[str], rubrics: Sequence[Rubric]
) -> Ending:
    """Ask every judge by every rubric about each answer that it has not judged yet: those in words, and the wrong
    ones by the rubric of stages.

    Raises:
        MemreplayError: the recording or a key is unusable; nothing was asked.
    """
    _refuse_reader(judges)
    with RejudgementStore.open(path) as store:
        run = store.recording.run(run_id)
        models = RunModels(settings, lambda: run.id, say)
        try:
            if not settings.offline:
                for judge in judges:
                    await asyncio.to_thread(ensure_reachable, judge, settings.api_base)
            progress = _Progress()
            made = [
                ModelJudge(judge, models.judging_model, settings.api_base, rubric)
                for judge in judges
                for rubric in rubrics
            ]
            ending = await _judge_all(store, run.id, models, made, progress)
        finally:
            models.close()
        given_up = list(models.rate_limiters.unavailable.values())
    _say(progress, given_up)
    return "stopped" if ending == "complete" and given_up else ending


async def estimate_rejudging(
    path: Path, run_id: str | None, settings: Settings, judges: Sequence[str], rubrics: Sequence[Rubric]
) -> Estimates:
    """Return the calls that :func:`rejudge` would make now, by judge and rubric. Asks nobody, and writes nothing.

    Raises:
        MemreplayError: the recording is unusable, or a judge cannot judge.
    """
    _refuse_reader(judges)
    counting = Counting(settings)
    rows: Rows = {}
    with closing(Recording.open(path)) as recording:
        run = recording.run(run_id)
        models = RunModels(settings, lambda: run.id, say, counting)
        try:
            for judge in judges:
                for rubric in rubrics:
                    row = rows[f"judge by {rubric.name}", judge] = counting.judge.row = Estimate()
                    model = ModelJudge(judge, counting.judge, settings.api_base, rubric)
                    if rubric.name == BY_STAGES:
                        row.certainty = "at most"
                    for job in _jobs(recording, run.id, [model], _Progress()):
                        row.asked += 1
                        await job.estimate()
        finally:
            models.close()
    return Estimates(rows)


def _refuse_reader(judges: Sequence[str]) -> None:
    for judge in judges:
        if judge == EXTRACTIVE_MODEL:
            raise UsageError(f"--judge {judge}: the embedded reader cannot judge; name a language model")


async def _judge_all(
    store: RejudgementStore,
    run_id: str,
    models: RunModels,
    made: Sequence[ModelJudge],
    progress: _Progress,
) -> Ending:
    task = asyncio.current_task()
    assert task is not None

    def finish_calls() -> None:
        say("finishing the calls in progress; Ctrl-C again stops at once")
        progress.stopped = True
        models.rate_limiters.stop()

    stopped_now = False

    def stop_now() -> None:
        nonlocal stopped_now
        stopped_now = True
        say("stopping at once; replies of calls in progress are lost")
        task.cancel()

    waiting: set[asyncio.Task[None]] = set()
    try:
        with two_step_interrupt(finish_calls, stop_now):
            for job in _jobs(store.recording, run_id, made, progress):
                if progress.stopped:
                    break
                waiting.add(asyncio.create_task(_judge(store, run_id, job, progress)))
                if len(waiting) >= _AT_ONCE:
                    done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for each in done:
                        each.result()
            for left in asyncio.as_completed(waiting):
                await left
    except asyncio.CancelledError:
        if not stopped_now:
            raise
        task.uncancel()
        return "interrupted"
    except RecordingError as error:
        say(f"memreplay: {error}")
        return "stopped"
    finally:
        for pending in waiting:
            pending.cancel()
    return "interrupted" if progress.stopped else "complete"


def _jobs(
    recording: Recording, run_id: str, made: Sequence[ModelJudge], progress: _Progress
) -> Iterator[_ReplyJob | _StageJob]:
    for conversation_id in recording.conversation_ids(run_id):
        for judge in made:
            if judge.rubric.name == BY_STAGES:
                yield from _stage_jobs(recording, run_id, conversation_id, judge, progress)
            else:
                yield from _reply_jobs(recording, run_id, conversation_id, judge, progress)


def _reply_jobs(
    recording: Recording, run_id: str, conversation_id: str, judge: ModelJudge, progress: _Progress
) -> Iterator[_ReplyJob]:
    conversation = recording.conversation(run_id, conversation_id)
    questions = {question.id: question for question in conversation.questions}
    known = judgements_of(recording, run_id, conversation_id, JudgePair(judge.name, judge.rubric.name))
    for answer in recording.asks(run_id, conversation_id):
        question = questions.get(answer.asked.question_id)
        if question is None or answer.received is None or answer.asked.by_hand:
            continue
        reply = answer.received.reply
        if not is_for_a_judge(question, reply):
            continue
        ask = ask_of(answer.asked)
        if ask in known and known[ask].verdict is not None:
            progress.known += 1
            continue
        yield _ReplyJob(conversation_id, ask, question, reply.text or "", judge)


def _stage_jobs(
    recording: Recording, run_id: str, conversation_id: str, judge: ModelJudge, progress: _Progress
) -> Iterator[_StageJob]:
    said = {
        stage: judgements_of(recording, run_id, conversation_id, JudgePair(judge.name, rubric))
        for rubric, stage in STAGE_RUBRICS.items()
    }
    timeline = recording.timeline(run_id, conversation_id)
    attributor = Attributor(timeline)
    for answer in timeline.answers():
        if answer.asked.by_hand:
            continue
        try:
            case = attributor.stage_case(answer)
        except GradingError:
            progress.rules_failed += 1
            continue
        if case is None:
            continue
        ask = ask_of(answer.asked)
        known = {stage: each[ask] for stage, each in said.items() if ask in each and each[ask].verdict is not None}
        if case.to_ask(known) is not None:
            yield _StageJob(conversation_id, ask, case, known, judge)
        else:
            progress.known += len(known)


async def _judge(store: RejudgementStore, run_id: str, job: _ReplyJob | _StageJob, progress: _Progress) -> None:
    try:
        async for rubric, judgement in job.judgements():
            store.add(run_id, job.conversation, JudgePair(job.judge.name, rubric), job.ask, judgement)
            _count(judgement, progress)
    except StoppedError:
        return


def _count(judgement: Judgement, progress: _Progress) -> None:
    progress.asked += not judgement.reply.reused
    progress.reused += judgement.reply.reused
    progress.without_verdict += judgement.verdict is None
    if not judgement.reply.reused and judgement.reply.error is None:
        progress.paid_usd += judgement.reply.cost_usd or 0.0
        progress.unpriced += judgement.reply.cost_usd is None


def _say(progress: _Progress, given_up: Sequence[str]) -> None:
    said = f"{counted(progress.asked, 'judgement')} made now"
    if progress.known:
        said += f", {progress.known:,} made before"
    if progress.reused:
        said += f", {progress.reused:,} from the reply cache"
    if progress.rules_failed:
        said += f"; {progress.rules_failed:,} wrong answers left out, since the rules failed on them"
    if progress.without_verdict:
        said += f"; {progress.without_verdict:,} without a verdict, which the same command asks again"
    price = f"; paid {dollars(progress.paid_usd)}" if progress.asked and not progress.unpriced else ""
    say(f"{said}{price}")
    for why in given_up:
        say(why)
