"""Runs without a screen, from Python: settings and datasets as arguments, messages to a logger.

The event loop is in a thread of its own, so that a caller with a running loop, such as a notebook, can wait for it.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from memory_backends.base import BackendError
from memory_backends.plugins import hand_over
from memreplay.api.recorded import RecordedRun, aopen_run
from memreplay.batch.progress import BatchProgress, shown_progress
from memreplay.batch.recorded_run import TERMINAL, Ending, RunPlan, Surroundings, run_recorded
from memreplay.conversations.models import Conversation
from memreplay.errors import EXIT_STOPPED, MemreplayError, UsageError
from memreplay.goodai.sources import split_specs
from memreplay.paths import new_recording_path
from memreplay.runtime.effects import without_effect
from memreplay.runtime.run import start
from memreplay.runtime.work import check_settings, work_of
from memreplay.settings import Settings, read_settings

T = TypeVar("T")


class BackgroundLoop:
    """Runs coroutines. A caller that is interrupted while it waits cancels its coroutine, and lets it clean up."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = Thread(target=self._run, name="memreplay", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            self._loop.close()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it and wait for its result, on any thread, also inside a running loop, which it blocks."""
        outcome = self._start(coroutine)
        try:
            return outcome.result()
        finally:
            if not outcome.done():
                self._cancel_tasks()
                wait_for([outcome])

    async def acall(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it while the caller's own loop goes on."""
        outcome = self._start(coroutine)
        future = asyncio.wrap_future(outcome)
        # Of a cancelled call nobody asks for the outcome, which asyncio would report.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            return await asyncio.shield(future)
        finally:
            if not outcome.done():
                self._cancel_tasks()
                await asyncio.to_thread(wait_for, [outcome])

    def _start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        outcome: Future[T] = Future()

        async def main() -> None:
            try:
                outcome.set_result(await coroutine)
            except BaseException as error:
                outcome.set_exception(error)

        def begin() -> None:
            task = self._loop.create_task(main())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._loop.call_soon_threadsafe(begin)
        return outcome

    def _cancel_tasks(self) -> None:
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._tasks])

    def close(self) -> None:
        """Stop the loop and its thread. Nothing may be under way."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_LOG = logging.getLogger("memreplay")

P = ParamSpec("P")
R = TypeVar("R")


class IncompleteRunError(MemreplayError):
    """A run that stopped before its end, by what only its owner can fix. What was finished is in ``recording``."""

    exit_code = EXIT_STOPPED

    def __init__(self, reason: str, recording: Path) -> None:
        super().__init__(f"{reason}; to continue, run it again with recording={str(recording)!r} and resume=True")
        self.recording = recording


async def arun(
    datasets: Sequence[str | Path | Conversation] | str | Path | Conversation = (),
    backends: Sequence[object] | str = (),
    model: Sequence[str] | str = (),
    *,
    recording: str | Path | None = None,
    resume: bool = False,
    retry_errors: bool = False,
    evidence: str | Path | None = None,
    answer_key: str | Path | None = None,
    perceive: bool = False,
    progress: bool = False,
    **settings: Any,
) -> RecordedRun:
    """Replay conversations to memories, ask the questions, score and record the answers.

    ``datasets`` are ids, globs, files and folders, or conversations; the shipped ones if none is given.
    ``backends`` are names, or memory classes and objects of your own. ``recording`` is the file to record into;
    an existing one gains a run. ``resume``, ``retry_errors`` and ``perceive`` are the options of
    ``memreplay --batch``; ``settings`` are its other options by name (``top_k=5``), and come from the environment
    and the configuration files where they are not given. Messages go to the logger ``memreplay``; with
    ``progress`` they and a progress display go to standard error.

    Raises:
        IncompleteRunError: a model was given up, or the disk is full; what was finished is on record.
        MemreplayError: an argument, a dataset, a server or a key is unusable; nothing was asked.
    """
    read = settings_of(backends, model, settings)
    if resume and recording is None:
        raise UsageError("resume needs recording, the file with the run to continue")
    if retry_errors and not resume:
        raise UsageError("retry_errors needs resume=True")
    path = Path(recording) if recording is not None else new_recording_path()
    said: list[str] = []

    def say(sentence: str) -> None:
        said.append(sentence)
        (TERMINAL.say if progress else _LOG.info)(sentence)

    around = Surroundings(
        say, shown_progress if progress else _counted, lambda first, second, farewell: nullcontext()
    )
    specs = [datasets] if isinstance(datasets, str | Path | Conversation) else datasets
    plan = RunPlan(perceive, resume, retry_errors)

    async def do() -> tuple[Ending, str]:
        named, sources = split_specs(str(each) for each in specs if not isinstance(each, Conversation))
        work = work_of(
            read,
            [*(each for each in specs if isinstance(each, Conversation)), *named],
            has_tests=bool(sources),
            evidence=Path(evidence) if evidence is not None else None,
            answer_key=Path(answer_key) if answer_key is not None else None,
            warn=_LOG.warning,
        )
        given = {name for name, is_given in (("evidence", evidence), ("answer_key", answer_key)) if is_given}
        for sentence in without_effect(
            read, work, has_tests=bool(sources), options={*given, *(["perceive"] if perceive else [])}
        ):
            around.say(f"warning: {sentence}")
        run = start(read, path, work, warn=lambda sentence: around.say(f"warning: {sentence}"))
        tests = None
        if sources:
            from memreplay.goodai.run import TestsRunner

            tests = TestsRunner(run, sources, retry_errors=retry_errors)
        ending = await run_recorded(run, plan, around, tests)
        return ending, run.run_id

    with BackgroundLoop() as loop:
        ending, run_id = await loop.acall(do())
    if ending != "complete":
        raise IncompleteRunError("; ".join(said[-1:]) or ending, path)
    return await aopen_run(path, run_id, answer_key=answer_key)


def settings_of(backends: Sequence[object] | str, model: Sequence[str] | str, others: dict[str, Any]) -> Settings:
    """Return the settings that these arguments give, over those of the environment and the configuration files.

    Raises:
        UsageError: one is unknown or unusable, or a memory is none.
    """
    known = [each.name for each in fields(Settings)]
    for name in others:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            raise UsageError(f"{name} is not a setting" + (f"; did you mean {close[0]}?" if close else ""))
    given = [backends] if isinstance(backends, str) or not isinstance(backends, Sequence) else backends
    try:
        names = tuple(each if isinstance(each, str) else hand_over(each) for each in given)
    except BackendError as error:
        raise UsageError(str(error)) from None
    if len(set(names)) < len(names):
        raise UsageError(f"two memories have one name ({', '.join(names)}); set the attribute `name` of each")
    models = (model,) if isinstance(model, str) else tuple(model)
    settings = read_settings(**others | {"backend": names, "model": models})
    check_settings(settings)
    return settings


@contextmanager
def _counted(totals: Any) -> Iterator[BatchProgress]:
    """Progress that nobody sees."""
    yield BatchProgress(totals)


def _blocking(function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]:
    """Return the function for callers that wait, also inside a running event loop."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with BackgroundLoop() as loop:
            return loop.call(function(*args, **kwargs))

    return call


run = _blocking(arun)
