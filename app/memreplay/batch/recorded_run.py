"""One run from its first check to its end in the recording, whatever ends it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from memreplay.batch.progress import BatchProgress, shown_progress
from memreplay.batch.resume import Asking
from memreplay.batch.runner import BatchRunner
from memreplay.batch.tests_runner import TestsRunner
from memreplay.conversations.models import Conversation
from memreplay.dataset_interfaces.sources import TestSource
from memreplay.errors import MissingServerOrKeyError, RecordingError
from memreplay.llm.rate_limiter import ModelUnavailableError
from memreplay.recording.reader import ANY_STATUS, UNFINISHED
from memreplay.runtime.run import Run, content_digest
from memreplay.runtime.test_runs import RunWithTests


@contextmanager
def two_step_interrupt(first: Callable[[], None], second: Callable[[], None]) -> Iterator[None]:
    """In the running event loop, call ``first`` at the first Ctrl-C and ``second`` at the next.

    A request to terminate counts as the second. Where the platform has no such handlers, Ctrl-C stays what it
    was: the end at once.
    """
    loop = asyncio.get_running_loop()
    steps = iter((first,))

    def interrupted() -> None:
        next(steps, second)()

    with suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGINT, interrupted)
        loop.add_signal_handler(signal.SIGTERM, second)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)
            loop.remove_signal_handler(signal.SIGTERM)


@dataclass(frozen=True)
class RunPlan:
    """How a batch is run. ``retry_errors`` asks again what ended in an error in the run that is resumed."""

    perceive: bool
    resume: bool
    retry_errors: bool


async def run_recorded(
    run: RunWithTests,
    conversations: Sequence[Conversation],
    sources: Sequence[TestSource],
    plan: RunPlan,
) -> bool:
    """Run and record. False where it did not come to its end: stopped, a model given up, a recording not writable.

    Raises:
        MemreplayError: nothing was asked, since a server, a key or the recording is not to be had.
    """
    complete = False
    try:
        await run.check()
        tests = TestsRunner(run, sources, retry_errors=plan.retry_errors)
        await _prepare(tests)
        _begin(run, conversations, tests, plan)
        complete = await _run(run, conversations, tests, plan)
    finally:
        complete = await _finish(run, "finished" if complete else "interrupted") and complete
    return complete


async def _prepare(tests: TestsRunner) -> None:
    try:
        await tests.prepare(_say)
    except ModelUnavailableError as error:
        raise MissingServerOrKeyError(f"the tests cannot be written: {error}") from None


def _begin(run: Run, conversations: Sequence[Conversation], tests: TestsRunner, plan: RunPlan) -> None:
    digests = {conversation.id: content_digest(conversation) for conversation in conversations}
    digests |= {source.name: source.digest() for source in tests.sources}
    datasets = list(dict.fromkeys(conversation.dataset for conversation in conversations))
    datasets += [source.name for source in tests.sources]
    statuses = ANY_STATUS if plan.retry_errors else UNFINISHED
    run.begin_run(digests, datasets, resume=statuses if plan.resume else ())
    if tests.sources:
        _say(f"conversing: {tests.totals.total()} tests to be scored, all memories together")
    if not conversations:
        return
    questions = sum(len(conversation.questions) for conversation in conversations)
    notes = [f"asking {_counted(questions, 'question')} of {_counted(len(conversations), 'conversation')}"]
    notes += [f"{name} is asked along" for name in run.implicit_baselines]
    if not plan.perceive:
        notes.append("what memory would give to ordinary turns is not read (--perceive)")
    _say("; ".join(notes))


async def _run(run: Run, conversations: Sequence[Conversation], tests: TestsRunner, plan: RunPlan) -> bool:
    asking = Asking(
        backends=run.backend_names,
        along=run.implicit_baselines,
        models=run.models,
        repeats=run.settings.repeats,
        retry_errors=plan.retry_errors,
    )
    totals = Counter(
        (ask.backend, ask.model) for conversation in conversations for ask in asking.asks_of(conversation)
    )
    totals += tests.totals
    task = asyncio.current_task()
    assert task is not None
    stopped_now = False
    with shown_progress(totals) as progress:
        runner = BatchRunner(run, progress, asking, perceive=plan.perceive)

        def finish_what_is_under_way() -> None:
            _say("finishing the calls under way; Ctrl-C again stops at once")
            runner.stop()
            tests.stop()

        def stop_now() -> None:
            nonlocal stopped_now
            stopped_now = True
            _say("stopping at once, as told; replies under way are lost")
            task.cancel()

        try:
            with two_step_interrupt(finish_what_is_under_way, stop_now):
                await _until_over(runner, conversations, tests, progress)
        except asyncio.CancelledError:
            if not stopped_now:
                raise
            task.uncancel()
            return False
        except RecordingError as error:
            _say(f"memreplay: {error}")
            return False
    _say(_summary(progress))
    given_up = run.paces.given_up
    if given_up:
        whole = progress.overall
        _say("\n".join([*given_up.values(), f"{whole.total - whole.done:,} answers are still to be had"]))
    if (errors := progress.overall.errors) and not runner.stopping:
        _say(
            f"{_counted(errors, 'ask')} ended in an error; to ask them again, give the same options and:"
            f" --recording {run.recording_path} --resume --retry-errors"
        )
    return not runner.stopping and not given_up


async def _until_over(
    runner: BatchRunner, conversations: Sequence[Conversation], tests: TestsRunner, progress: BatchProgress
) -> None:
    """Run; of several errors at once, the first is raised."""
    try:
        await runner.run(conversations)
        await tests.run(progress)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


async def _finish(run: Run, status: Literal["finished", "interrupted"]) -> bool:
    """Whether the end of the run is on record too."""
    try:
        await run.finish(status)
    except RecordingError as error:
        _say(f"memreplay: {error}")
        return False
    return True


def _summary(progress: BatchProgress) -> str:
    whole = progress.overall
    kept = f"{whole.reused} replies taken from other runs, {whole.carried} answers from before"
    return f"{whole.asked} asked now, {kept}; paid {whole.cost}"


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
