"""Asks the wrong answers of a finished run again without a screen, or estimates what that would take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from memreplay.batch.estimate import (
    JUDGING_ANSWERS,
    Estimate,
    EstimatedJudging,
    Estimates,
    EstimatingModel,
    estimate_change,
)
from memreplay.batch.progress import duration
from memreplay.batch.recorded_run import Ending
from memreplay.errors import RecordingError, UsageError
from memreplay.llm import AGENT_MODEL
from memreplay.llm.caching import request_key
from memreplay.recording.counterfactuals import ReaskStore, ask_of, reasks_in
from memreplay.recording.reader import Recording, RunInfo
from memreplay.runtime.changes import Selection, WrongAnswers, changes_of, is_wrong, paid_replies
from memreplay.runtime.reasking import Progress, Reasking
from memreplay.runtime.recorded import lineage_of, settings_of_run
from memreplay.settings import Settings
from memreplay.signals import two_step_interrupt
from memreplay.terminal import say
from memreplay.text import counted, dollars

_SECONDS_BETWEEN_LINES = 10.0


async def reask(path: Path, run_id: str | None, given: Settings, selection: Selection) -> Ending:
    """Ask the wrong answers of a run again, and record the replies. What was not asked can be asked later.

    Raises:
        MemreplayError: the recording or a key is unusable; nothing was asked.
    """
    with ReaskStore.open(path) as store:
        run = _finished(store.recording, run_id)
        reasking = Reasking(
            settings_of_run(run.settings, given), run.id, _say_warning, lineage_of(store.recording, run)
        )
        try:
            progress = Progress(wrong=_count_wrong(store.recording, run, selection))
            await reasking.check(run.settings["model"] if progress.wrong else ())
            for sentence in _left_out(store.recording, run):
                say(sentence)
            say(
                f"asking {counted(progress.wrong, 'wrong answer')} again, each under at most"
                f" {counted(len(selection.interventions), 'change')}"
            )
            ending = await _ask_all(store, run, reasking, selection, progress)
        finally:
            await reasking.close()
    say(_summary(progress))
    given_up = reasking.rate_limiters.unavailable
    for why in given_up.values():
        say(why)
    return "stopped" if ending == "complete" and given_up else ending


async def _ask_all(
    store: ReaskStore, run: RunInfo, reasking: Reasking, selection: Selection, progress: Progress
) -> Ending:
    task = asyncio.current_task()
    assert task is not None
    stopped_now = False

    def finish_calls() -> None:
        say("finishing the calls in progress; Ctrl-C again stops at once")
        reasking.stop()

    def stop_now() -> None:
        nonlocal stopped_now
        stopped_now = True
        say("stopping at once; replies of calls in progress are lost")
        task.cancel()

    try:
        with two_step_interrupt(finish_calls, stop_now), _shown(progress) as on_reply:
            for conversation in store.recording.conversation_ids(run.id):
                if reasking.stopping or (selection.limit or progress.wrong) <= progress.answers:
                    break
                await reasking.ask(store, conversation, selection, progress, lambda reask: on_reply())
    except asyncio.CancelledError:
        if not stopped_now:
            raise
        task.uncancel()
        return "interrupted"
    except RecordingError as error:
        say(f"memreplay: {error}")
        return "stopped"
    return "interrupted" if reasking.stopping else "complete"


def _finished(recording: Recording, run_id: str | None) -> RunInfo:
    run = recording.run(run_id)
    if run.status != "finished":
        raise UsageError(
            f"{recording.path}: run {run.id} is {run.status}; finish it with --batch --resume, then ask why"
        )
    if "imported_from" in run.settings or not {"model", "backend"} <= run.settings.keys():
        raise UsageError(f"{recording.path}: run {run.id} was imported: which prompts it used is not recorded")
    return run


def _count_wrong(recording: Recording, run: RunInfo, selection: Selection) -> int:
    """The wrong answers that are to be asked again; prompts are not read for it."""
    wrong = sum(
        is_wrong(answer) and selection.takes(answer.asked)
        for conversation in recording.conversation_ids(run.id)
        for answer in recording.asks(run.id, conversation)
    )
    return wrong if selection.limit is None else min(wrong, selection.limit)


def _left_out(recording: Recording, run: RunInfo) -> Iterator[str]:
    """What is wrong in a run and cannot be asked again, with the reason."""
    agents = sum(
        is_wrong(answer) and answer.asked.model == AGENT_MODEL
        for conversation in recording.conversation_ids(run.id)
        for answer in recording.asks(run.id, conversation)
    )
    if agents:
        yield f"{counted(agents, 'wrong answer')} of agents left out: memreplay did not make their prompts"
    if any(size.conversing for size in recording.sizes(run.id)):
        yield "tests in which the agent converses are left out: each answer is part of what is said next"


@contextmanager
def _shown(progress: Progress) -> Iterator[Callable[[], None]]:
    """A line on standard error every ten seconds."""
    began = last = monotonic()

    def on_reply() -> None:
        nonlocal last
        if monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = monotonic()
            rate = progress.answers / (last - began)
            left = duration((progress.wrong - progress.answers) / rate) if rate else "–"
            calls = f"{progress.asked} asked, {progress.reused} reused, {progress.errors} errors"
            say(f"{progress.answers}/{progress.wrong} wrong answers ({calls}, {left} left)")

    yield on_reply


def _summary(progress: Progress) -> str:
    paid = "unknown" if progress.unpriced and not progress.paid_usd else dollars(progress.paid_usd)
    judged = f" {progress.judged} judged," if progress.judged else ""
    return (
        f"{progress.answers} of {counted(progress.wrong, 'wrong answer')} done: {progress.asked} asked,{judged}"
        f" {progress.reused} replies reused, {progress.recorded} changes asked before, {progress.errors} errors;"
        f" paid {paid}{'+' if progress.unpriced and progress.paid_usd else ''}"
    )


# ---- estimates -------------------------------------------------------------------------------------------------


async def estimate_reasking(path: Path, run_id: str | None, given: Settings, selection: Selection) -> Estimates:
    """The calls that asking a finished run's wrong answers again would take, without those already recorded.

    Those of the run's judge come last.

    Raises:
        RecordingError: the file cannot be read.
    """
    recording = Recording.open(path)
    run = _finished(recording, run_id)
    reasking = Reasking(settings_of_run(run.settings, given), run.id, _say_warning, lineage_of(recording, run))
    model, judge = EstimatingModel(reasking.reply_cache), reasking.settings.judge
    judging = EstimatedJudging(judge, reasking.reply_cache, reasking.settings) if judge else None
    estimates: Estimates = {}
    left = selection.limit
    try:
        for conversation in recording.conversation_ids(run.id):
            wrong = WrongAnswers(recording.timeline(run.id, conversation), selection)
            chosen = wrong.chosen[:left]
            left = None if left is None else left - len(chosen)
            recorded = reasks_in(recording, run.id, conversation, wrong.asked)
            done = {reask.key for reask in recorded if reask.reply.error is None}
            if judging is not None:
                for reask in recorded:
                    if reask.score is None and reask.reply.error is None:
                        await judging.add(wrong.question(reask.question_id), reask.reply)
            paid = paid_replies(wrong.timeline, reasking.settings.api_base)
            async with reasking.rebuilding(wrong.conversation) as memory_of:
                for answer in chosen:
                    asked = answer.asked
                    model.current = estimates.setdefault((asked.backend, asked.model), Estimate())
                    model.current.asked += 1
                    wanted = [name for name in selection.interventions if (*ask_of(asked), name) not in done]
                    for change in await changes_of(wrong.case(answer), wanted, memory_of, reasking.settings):
                        known = paid.get(request_key(change.request)) if change.request is not None else None
                        if known is None:
                            await estimate_change(change, model, judging)
                        elif judging is not None:
                            await judging.add(wrong.question(asked.question_id), known)
    finally:
        await reasking.close()
        recording.close()
    if judging is not None and judge is not None:
        estimates[JUDGING_ANSWERS, judge] = judging.estimate
    return estimates


def _say_warning(sentence: str) -> None:
    say(f"warning: {sentence}")
