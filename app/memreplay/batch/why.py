"""Asks the wrong answers of a finished run again without a screen, or estimates what that would take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from memreplay.batch.estimate import estimate_change
from memreplay.batch.progress import duration
from memreplay.batch.recorded_run import Ending
from memreplay.engine.answers import grade
from memreplay.errors import RecordingError, UsageError
from memreplay.llm import AGENT_MODEL
from memreplay.llm.caching import request_key
from memreplay.llm.counting import Estimate, Rows
from memreplay.numbers import counted, dollars
from memreplay.recording.counterfactuals import ReaskStore, ask_of, reasks_in
from memreplay.recording.overview import progress_of
from memreplay.recording.reader import Recording, RunInfo
from memreplay.runtime.changes import Selection, WrongAnswers, changes_of, is_wrong, paid_replies
from memreplay.runtime.counting import Counting, Estimates, OccasionalLines
from memreplay.runtime.reasking import Progress, Reasking
from memreplay.runtime.recorded import lineage_of, settings_of_run
from memreplay.settings import Settings
from memreplay.signals import two_step_interrupt
from memreplay.terminal import say
from memreplay.trust import Consent, refuse

_SECONDS_BETWEEN_LINES = 10.0


async def reask(
    path: Path, run_id: str | None, given: Settings, selection: Selection, consent: Consent = refuse
) -> Ending:
    """Ask the wrong answers of a run again, and record the replies. What was not asked can be asked later.

    Raises:
        MemreplayError: the recording or a key is unusable; nothing was asked.
    """
    with ReaskStore.open(path) as store:
        run = _finished(store.recording, run_id)
        reasking = Reasking(
            settings_of_run(run.settings, given, path, consent),
            run.id,
            _say_warning,
            lineage_of(store.recording, run),
        )
        try:
            progress = Progress(wrong=_count_wrong(store.recording, run, selection))
            await reasking.check(reasking.settings.model if progress.wrong else ())
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
            f"{recording.path}: run {run.id} is {progress_of(recording.path, run)};"
            " finish it with --batch --resume, then ask why"
        )
    if "imported_from" in run.settings or not {"model", "backend"} <= run.settings.keys():
        raise UsageError(f"{recording.path}: run {run.id} was imported: which prompts it used is not recorded")
    return run


def _count_wrong(recording: Recording, run: RunInfo, selection: Selection) -> int:
    """Return the wrong answers that are to be asked again; prompts are not read for it."""
    wrong = sum(
        is_wrong(answer) and selection.takes(answer.asked)
        for conversation in recording.conversation_ids(run.id)
        for answer in recording.asks(run.id, conversation)
    )
    return wrong if selection.limit is None else min(wrong, selection.limit)


def _left_out(recording: Recording, run: RunInfo) -> Iterator[str]:
    """Yield what is wrong in a run and cannot be asked again, with the reason."""
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
    """Print a line on standard error every ten seconds."""
    began = last = monotonic()

    def on_reply() -> None:
        nonlocal last
        if monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = monotonic()
            rate = progress.answers / (last - began)
            left = duration((progress.wrong - progress.answers) / rate) if rate else "–"
            calls = f"{progress.asked} asked, {progress.reused} reused, {counted(progress.errors, 'error')}"
            say(f"{progress.answers}/{progress.wrong} wrong answers ({calls}, {left} left)")

    yield on_reply


def _summary(progress: Progress) -> str:
    paid = "unknown" if progress.unpriced and not progress.paid_usd else dollars(progress.paid_usd)
    judged = f" {progress.judged} judged," if progress.judged else ""
    return (
        f"{progress.answers} of {counted(progress.wrong, 'wrong answer')} done: {progress.asked} asked,{judged}"
        f" {counted(progress.reused, 'reply')} reused, {counted(progress.recorded, 'change')} asked before,"
        f" {counted(progress.errors, 'error')};"
        f" paid {paid}{'+' if progress.unpriced and progress.paid_usd else ''}"
    )


# ---- estimates -------------------------------------------------------------------------------------------------


async def estimate_reasking(
    path: Path, run_id: str | None, given: Settings, selection: Selection, consent: Consent = refuse
) -> Estimates:
    """Return the calls that asking a finished run's wrong answers again would take, without those already
    recorded.

    Raises:
        RecordingError: the file cannot be read.
    """
    recording = Recording.open(path)
    run = _finished(recording, run_id)
    settings = settings_of_run(run.settings, given, path, consent)
    counting = Counting(settings)
    reasking = Reasking(settings, run.id, _say_warning, lineage_of(recording, run), counting)
    rows: Rows = {}
    problems: dict[str, str] = {}
    lines = OccasionalLines()
    left = selection.limit
    try:
        for conversation in recording.conversation_ids(run.id):
            wrong = WrongAnswers(recording.timeline(run.id, conversation), selection)
            chosen = wrong.chosen[:left]
            left = None if left is None else left - len(chosen)
            recorded = reasks_in(recording, run.id, conversation, wrong.asked)
            done = {reask.key for reask in recorded if reask.reply.error is None}
            for reask in recorded:
                if reask.score is None:
                    await wrong.graded(reask, reasking.judge, lambda event: None)
            paid = paid_replies(wrong.timeline, settings.api_base)
            async with reasking.rebuilding(wrong.conversation) as memory_of:
                for place, answer in enumerate(chosen, start=1):
                    asked = answer.asked
                    row = counting.reader.row = rows.setdefault((asked.backend, asked.model), Estimate())
                    row.asked += 1
                    wanted = [name for name in selection.interventions if (*ask_of(asked), name) not in done]
                    for change in await changes_of(wrong.case(answer), wanted, memory_of, settings):
                        if change.request is None:
                            problems.setdefault(asked.backend, change.problem)
                        elif known := paid.get(request_key(change.request)):
                            row.reused += 1
                            await grade(change.case.question, asked, known, reasking.judge, lambda event: None)
                        else:
                            await estimate_change(change, counting.reader, reasking.judge)
                    lines.say(f"{conversation}, wrong answer {place} of {len(chosen)}")
    finally:
        await reasking.close()
        recording.close()
    others = counting.finished(rows)
    for (part, _), row in rows.items():
        row.certainty = "about" if part in problems else row.certainty
    left_out = "what is asked with other limits of it is not counted"
    return Estimates(rows | others, [f"{name}: {left_out}: {why}" for name, why in problems.items()])


def _say_warning(sentence: str) -> None:
    say(f"warning: {sentence}")
