"""A recorded run, from the first check to its end in the recording, however it ends."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from memreplay.batch.progress import BatchProgress, shown_progress
from memreplay.batch.runner import BatchRunner
from memreplay.errors import MissingServerOrKeyError, RecordingError
from memreplay.llm.rate_limiter import ModelUnavailableError
from memreplay.numbers import counted
from memreplay.recording.reader import ANY_STATUS, UNFINISHED
from memreplay.runtime.elsewhere import Elsewhere, workers_of
from memreplay.runtime.run import Run, content_digest
from memreplay.signals import two_step_interrupt
from memreplay.terminal import say

Ending = Literal["complete", "interrupted", "stopped"]
"""The end of a run: everything was asked; the user stopped it; or something that only its owner can fix did."""


@dataclass(frozen=True)
class Surroundings:
    """The functions through which a run reports to its caller.

    ``say`` gets its messages, ``progress`` counts its answers by backend and model, and ``interrupts`` calls its
    first argument at the first request to stop, and its second at the next; its third is the last sentence of a
    process that had to be ended.
    """

    say: Callable[[str], None] = say
    progress: Callable[[Mapping[tuple[str, str], int]], AbstractContextManager[BatchProgress]] = shown_progress
    interrupts: Callable[[Callable[[], None], Callable[[], None], str], AbstractContextManager[None]] = (
        two_step_interrupt
    )


TERMINAL = Surroundings()
"""Messages and progress on standard error, Ctrl-C and signals."""


@dataclass(frozen=True)
class RunPlan:
    """``retry_errors`` retries the questions of the resumed run that ended in an error.

    ``to_retry`` are the options with which the same command does so.
    """

    perceive: bool = False
    resume: bool = False
    retry_errors: bool = False
    to_retry: str = "--resume --retry-errors"


class Tests(Protocol):
    """A port: tests in which the agent converses, which a run plays after it has asked its questions."""

    @property
    def digests(self) -> dict[str, str]:
        """Return the digest of each source of tests by its name."""
        ...

    @property
    def totals(self) -> Counter[tuple[str, str]]:
        """Return the number of tests by memory and model, once they are created."""
        ...

    async def prepare(self, report: Callable[[str], None]) -> None:
        """Create the tests; ``report`` receives what is to be said about them."""
        ...

    async def run(self, progress: BatchProgress) -> None:
        """Play all that are not recorded to their end."""
        ...

    def stop(self) -> None:
        """Stop after the current messages."""
        ...


def to_continue(ending: Ending, recording: Path) -> str:
    """Return how an incomplete run ended, and how to continue it."""
    return (
        f"{ending}; everything finished so far is saved. To continue, run the same command with"
        f" --recording {recording} --resume"
    )


async def run_recorded(
    run: Run, plan: RunPlan, around: Surroundings = TERMINAL, tests: Tests | None = None
) -> Ending:
    """Do the work of a run, and record it. A run that is not complete can be resumed.

    Raises:
        MemreplayError: a server, a key or the recording is unusable; nothing was asked.
    """
    ending: Ending = "interrupted"
    try:
        await run.check()
        if tests is not None:
            await _prepare(tests, around)
        async with workers_of(run.settings) if run.work.conversations else nullcontext() as elsewhere:
            _begin(run, tests, plan, around)
            ending = await _play(run, tests, plan, around, elsewhere)
    finally:
        ending = await _finish(run, ending, around)
    return ending


async def _prepare(tests: Tests, around: Surroundings) -> None:
    try:
        await tests.prepare(around.say)
    except ModelUnavailableError as error:
        raise MissingServerOrKeyError(f"the model cannot write the tests: {error}") from None


def _begin(run: Run, tests: Tests | None, plan: RunPlan, around: Surroundings) -> None:
    conversations, of_tests = run.work.conversations, tests.digests if tests is not None else {}
    digests = {conversation.id: content_digest(conversation) for conversation in conversations}
    datasets = [*dict.fromkeys(conversation.dataset for conversation in conversations), *of_tests]
    statuses = ANY_STATUS if plan.retry_errors else UNFINISHED
    run.begin_run(digests | of_tests, datasets, resume=statuses if plan.resume else ())
    if tests is not None:
        around.say(f"running {counted(tests.totals.total(), 'test')}, counted over all memories")
    if not conversations:
        return
    questions = sum(len(conversation.questions) for conversation in conversations)
    notes = [f"asking {counted(questions, 'question')} of {counted(len(conversations), 'conversation')}"]
    notes += [f"also running the {name} baseline" for name in run.implicit_baselines]
    if not plan.perceive:
        notes.append("no retrieval at ordinary turns (--perceive records it)")
    around.say("; ".join(notes))


async def _play(
    run: Run, tests: Tests | None, plan: RunPlan, around: Surroundings, elsewhere: Elsewhere | None
) -> Ending:
    asking = run.asking(retry_errors=plan.retry_errors)
    totals = Counter((ask.backend, ask.model) for each in run.work.conversations for ask in asking.asks_of(each))
    if tests is not None:
        totals += tests.totals
    task = asyncio.current_task()
    assert task is not None
    interrupted = stopped_now = False
    with around.progress(totals) as progress:
        runner = BatchRunner(run, progress, asking, perceive=plan.perceive, elsewhere=elsewhere)

        def finish_calls() -> None:
            nonlocal interrupted
            interrupted = True
            around.say("finishing the calls in progress; Ctrl-C again stops at once")
            runner.stop()
            if tests is not None:
                tests.stop()

        def stop_now() -> None:
            nonlocal stopped_now
            stopped_now = True
            around.say("stopping at once; replies of calls in progress are lost")
            task.cancel()

        try:
            with around.interrupts(finish_calls, stop_now, to_continue("interrupted", run.recording_path)):
                watch = asyncio.create_task(_watch(run, progress, elsewhere))
                try:
                    await _run_all(runner, tests, progress)
                finally:
                    watch.cancel()
        except asyncio.CancelledError:
            if not stopped_now:
                raise
            task.uncancel()
            return "interrupted"
        except RecordingError as error:
            around.say(f"memreplay: {error}")
            return "stopped"
    if lost := runner.asked_again:
        around.say(
            f"{counted(lost, 'question')} had no reply on disk when the run was killed, and were asked again: calls"
            " that were under way may cost twice"
        )
    around.say(_summary(progress))
    given_up = run.rate_limiters.unavailable
    if given_up:
        whole = progress.overall
        missing = counted(whole.total - whole.done, "question")
        around.say("\n".join([*given_up.values(), f"{missing} not answered, or not graded"]))
    if run.rate_limiters.never_found and progress.overall.done == progress.overall.errors:
        raise MissingServerOrKeyError("no question was answered: a model's server cannot be reached")
    if (errors := progress.overall.errors) and not runner.stopping:
        options = f" with --recording {run.recording_path} {plan.to_retry}" if plan.to_retry else " again"
        mendable = errors > progress.overall.lasting_errors
        advice = f"to retry, run the same command{options}" if mendable else "no retry can mend that"
        around.say(f"{counted(errors, 'answer')} ended in an error; {advice}")
    if interrupted:
        return "interrupted"
    return "stopped" if given_up or runner.stopping else "complete"


_SECONDS_BETWEEN_LOOKS = 0.25


async def _watch(run: Run, progress: BatchProgress, elsewhere: Elsewhere | None) -> None:
    """Say what the run waits for, and put what was asked on disk: after a crash it is known what was under way."""
    while True:
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
        progress.waiting(run.waiting_for or (elsewhere.waiting_for if elsewhere is not None else ""))
        if elsewhere is not None:
            progress.at_work(f"{elsewhere.places} {elsewhere.where}", elsewhere.at_work())
        if run.recorder is not None:
            with suppress(RecordingError):  # the run itself meets it at its next write
                run.recorder.flush()


async def _run_all(runner: BatchRunner, tests: Tests | None, progress: BatchProgress) -> None:
    """Run all parts; raise the first of several errors."""
    try:
        await runner.run()
        if tests is not None:
            await tests.run(progress)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


async def _finish(run: Run, ending: Ending, around: Surroundings) -> Ending:
    """Record how the run ended; it is stopped if that cannot be written."""
    try:
        await run.finish("finished" if ending == "complete" else "interrupted")
    except RecordingError as error:
        if ending != "stopped":  # its reason has been printed, and is likely to be the same
            around.say(f"memreplay: {error}")
        return "stopped"
    return ending


def _summary(progress: BatchProgress) -> str:
    whole, judge = progress.overall, progress.judging
    others = (
        f"; judge: {judge.asked} asked, {counted(judge.reused, 'reply')} reused, {judge.errors} without a verdict,"
        f" paid {judge.cost}"
        if judge.done
        else ""
    )
    if progress.reading.asked:
        times = counted(progress.reading.asked, "time")
        others += f"; memories called models to read {times}, paid {progress.reading.cost}"
    return (
        f"{whole.asked} asked, {counted(whole.reused, 'reply')} reused from other runs,"
        f" {counted(whole.resumed, 'answer')} resumed; paid {whole.cost}{others}"
    )
