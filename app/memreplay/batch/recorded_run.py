"""A recorded run, from the first check to its end in the recording, however it ends."""

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
from memreplay.batch.runner import BatchRunner
from memreplay.batch.selection import AskPlan
from memreplay.batch.tests_runner import TestsRunner
from memreplay.conversations.models import Conversation
from memreplay.dataset_interfaces.sources import TestSource
from memreplay.errors import MissingServerOrKeyError, RecordingError
from memreplay.llm.rate_limiter import ModelUnavailableError
from memreplay.recording.reader import ANY_STATUS, UNFINISHED
from memreplay.runtime.run import Run, content_digest
from memreplay.runtime.run_with_tests import RunWithTests


@contextmanager
def two_step_interrupt(first: Callable[[], None], second: Callable[[], None]) -> Iterator[None]:
    """In the running event loop, call ``first`` at the first Ctrl-C and ``second`` at the next.

    SIGTERM counts as the second. On platforms without such handlers Ctrl-C ends the process at once.
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
    """``retry_errors`` retries the questions of the resumed run that ended in an error."""

    perceive: bool
    resume: bool
    retry_errors: bool


async def run_recorded(
    run: RunWithTests,
    conversations: Sequence[Conversation],
    sources: Sequence[TestSource],
    plan: RunPlan,
) -> bool:
    """Run and record. False if incomplete: interrupted, a model given up, or the recording cannot be written.

    Raises:
        MemreplayError: a server, a key or the recording is unusable; nothing was asked.
    """
    complete = False
    try:
        await run.check()
        tests = TestsRunner(run, sources, retry_errors=plan.retry_errors)
        await _prepare(tests)
        _begin(run, conversations, tests, plan)
        complete = await _play(run, conversations, tests, plan)
    finally:
        complete = await _finish(run, "finished" if complete else "interrupted") and complete
    return complete


async def _prepare(tests: TestsRunner) -> None:
    try:
        await tests.prepare(_say)
    except ModelUnavailableError as error:
        raise MissingServerOrKeyError(f"the model cannot write the tests: {error}") from None


def _begin(run: Run, conversations: Sequence[Conversation], tests: TestsRunner, plan: RunPlan) -> None:
    digests = {conversation.id: content_digest(conversation) for conversation in conversations}
    digests |= {source.name: source.digest() for source in tests.sources}
    datasets = list(dict.fromkeys(conversation.dataset for conversation in conversations))
    datasets += [source.name for source in tests.sources]
    statuses = ANY_STATUS if plan.retry_errors else UNFINISHED
    run.begin_run(digests, datasets, resume=statuses if plan.resume else ())
    if tests.sources:
        _say(f"running {_count(tests.totals.total(), 'test')}, counted over all memories")
    if not conversations:
        return
    questions = sum(len(conversation.questions) for conversation in conversations)
    notes = [f"asking {_count(questions, 'question')} of {_count(len(conversations), 'conversation')}"]
    notes += [f"also running the {name} baseline" for name in run.implicit_baselines]
    if not plan.perceive:
        notes.append("no retrieval at ordinary turns (--perceive records it)")
    _say("; ".join(notes))


async def _play(run: Run, conversations: Sequence[Conversation], tests: TestsRunner, plan: RunPlan) -> bool:
    asking = AskPlan(
        backends=run.backend_names,
        baselines=run.implicit_baselines,
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

        def finish_calls() -> None:
            _say("finishing the calls in progress; Ctrl-C again stops at once")
            runner.stop()
            tests.stop()

        def stop_now() -> None:
            nonlocal stopped_now
            stopped_now = True
            _say("stopping at once; replies of calls in progress are lost")
            task.cancel()

        try:
            with two_step_interrupt(finish_calls, stop_now):
                await _run_all(runner, conversations, tests, progress)
        except asyncio.CancelledError:
            if not stopped_now:
                raise
            task.uncancel()
            return False
        except RecordingError as error:
            _say(f"memreplay: {error}")
            return False
    _say(_summary(progress))
    given_up = run.rate_limiters.unavailable
    if given_up:
        whole = progress.overall
        _say("\n".join([*given_up.values(), f"{_count(whole.total - whole.done, 'question')} not answered"]))
    if (errors := progress.overall.errors) and not runner.stopping:
        _say(
            f"{_count(errors, 'answer')} ended in an error; to retry, run the same command with"
            f" --recording {run.recording_path} --resume --retry-errors"
        )
    return not runner.stopping and not given_up


async def _run_all(
    runner: BatchRunner, conversations: Sequence[Conversation], tests: TestsRunner, progress: BatchProgress
) -> None:
    """Of several errors at once, raise the first."""
    try:
        await runner.run(conversations)
        await tests.run(progress)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


async def _finish(run: Run, status: Literal["finished", "interrupted"]) -> bool:
    """Whether the end of the run could be recorded too."""
    try:
        await run.finish(status)
    except RecordingError as error:
        _say(f"memreplay: {error}")
        return False
    return True


def _summary(progress: BatchProgress) -> str:
    whole = progress.overall
    return (
        f"{whole.asked} asked, {whole.reused} replies reused from other runs,"
        f" {whole.resumed} answers resumed; paid {whole.cost}"
    )


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
