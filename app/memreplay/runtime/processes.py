"""Workers as plain processes of this machine, each asked through two pipes: no Dask, and no open port."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import select
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any, BinaryIO

from memreplay.runtime.worker import MemoryHost

_BYTES_OF_LENGTH = 8
_BYTES_AT_ONCE = 2**20
"""How much a pipe's reader takes in before it is asked for it."""

_SECONDS_TO_END = 2.0
_SECONDS_TO_GIVE_WAY = 0.5
_OBJECTS_BETWEEN_COLLECTIONS = 10_000
"""As in the run: what a memory makes stays, so that looking for cycles finds little."""

_PROGRAM = """\
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = sys.argv[1:]
from memreplay.runtime.processes import work
work()
"""
"""Ctrl-C in the terminal is for the run, also while a worker still imports."""


class Processes:
    """A number of processes, each with a host of memories: the part of Dask's client that workers need.

    A process that ends is replaced. ``environment`` is added to theirs.
    """

    def __init__(self, number: int, environment: Mapping[str, str]) -> None:
        self._number, self._environment = number, environment
        self._running: dict[str, _Worker] = {}
        self._names = count(1)

    async def ncores(self) -> dict[str, int]:
        """The processes that run, by name, with one core each."""
        for name in [name for name, worker in self._running.items() if worker.ended]:
            await self._running.pop(name).end()
        while len(self._running) < self._number:
            self._running[f"process {next(self._names)}"] = await _Worker.started(self._environment)
        return dict.fromkeys(self._running, 1)

    async def run(self, function: Callable[..., Any], *arguments: Any, workers: list[str]) -> dict[str, Any]:
        """What a function returns there, by name. Raises an OSError if a process ends before that."""
        return {name: await self._running[name].ask(function, *arguments) for name in workers}

    async def submit(self, made: object, *arguments: Any, workers: list[str], **_: object) -> _Worker:
        """A worker, once it has a host of memories. Raises as :meth:`run`."""
        worker = self._running[workers[0]]
        await worker.ask(None, *arguments)
        return worker

    async def close(self) -> None:
        """End all processes."""
        await asyncio.gather(*(worker.end() for worker in self._running.values()))


class _Worker:
    """A process. What it is asked at the same time it does at the same time, as far as memories wait."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process, self._in, self._out = process, process.stdin, process.stdout
        self._numbers = count()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self.ended = False
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def started(cls, environment: Mapping[str, str]) -> _Worker:
        # -P: the current folder may hold a signal.py.
        call = (sys.executable, "-P", "-c", _PROGRAM, *_searched())
        env = {**os.environ, **environment}
        return cls(
            await asyncio.create_subprocess_exec(*call, stdin=PIPE, stdout=PIPE, env=env, limit=_BYTES_AT_ONCE)
        )

    async def ask(self, what: Callable[..., Any] | str | None, *arguments: Any) -> Any:
        """What a function, or a method of the host, returns there; None makes the host."""
        if self.ended:
            raise OSError("the process has ended")
        number = next(self._numbers)
        self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self._in.write(_frame((number, what, arguments)))
            await self._in.drain()
            return await self._asked[number]
        finally:
            answer = self._asked.pop(number)
            if answer.done() and not answer.cancelled():
                # Read, or asyncio reports an error that nobody waits for after a failed write.
                answer.exception()

    async def end(self) -> None:
        """At the end of its input it ends by itself, unless it is busy."""
        self._in.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _SECONDS_TO_END)
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await asyncio.wait([self._listening])

    async def _listen(self) -> None:
        try:
            async for number, result, error in _frames(self._out):
                asked = self._asked.get(number)
                if asked is None or asked.done():
                    continue
                if error is None:
                    asked.set_result(result)
                else:
                    asked.set_exception(error)
        finally:
            # Also after a reply that cannot be read here.
            self.ended = True
            for asked in self._asked.values():
                if not asked.done():
                    asked.set_exception(OSError("the process has ended"))


def _searched() -> list[str]:
    """Where a worker looks for modules: as this process does, and last in the current folder.

    A memory of the user's own that is in that folder is found; no module there stands in for another.
    """
    here = Path.cwd()
    elsewhere = [path for path in sys.path if Path(path).resolve() != here]
    return [*elsewhere, str(here)] if len(elsewhere) < len(sys.path) else elsewhere


def work() -> None:
    """A worker's whole life: do what is asked until the input ends."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, 20, 20)
    # A memory may print or read: what it prints goes to standard error.
    given, answers = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 0)
    Thread(target=_end_with_the_run, args=(given.fileno(),), daemon=True).start()
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    asyncio.run(_work(given, answers))


def _end_with_the_run(given: int) -> None:
    """End the process once nobody can ask it any more, also while a memory keeps its event loop busy."""
    hung_up = select.poll()
    hung_up.register(given, 0)
    hung_up.poll()
    sleep(_SECONDS_TO_GIVE_WAY)
    os._exit(0)


async def _work(given: BinaryIO, answers: BinaryIO) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(_BYTES_AT_ONCE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), given)
    out, _ = await loop.connect_write_pipe(asyncio.Protocol, answers)
    host: MemoryHost | None = None

    async def done(what: Callable[..., Any] | str | None, arguments: tuple[Any, ...]) -> Any:
        nonlocal host
        if what is None:
            host = MemoryHost(*arguments)
            return None
        if isinstance(what, str):
            return await getattr(host, what)(*arguments)
        return what(*arguments)

    async def answer(number: int, what: Callable[..., Any] | str | None, arguments: tuple[Any, ...]) -> None:
        result, error = None, None
        try:
            result = await done(what, arguments)
        except Exception as failure:
            error = failure
        try:
            frame = _frame((number, result, error))
            if error is not None:
                pickle.loads(frame[_BYTES_OF_LENGTH:])
        except Exception as failure:
            # Of a memory that is not ours anything may come, also errors that can be written and not read.
            said = failure if error is None else error
            frame = _frame((number, None, TypeError(f"no other process can have the result: {said}")))
        out.write(frame)

    under_way: set[asyncio.Task[None]] = set()
    async for asked in _frames(reader):
        task = asyncio.create_task(answer(*asked))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    # The run has ended. A thread that waits for a server would hold this process for as long.
    sys.stderr.flush()
    os._exit(0)


def _frame(value: object) -> bytes:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return len(data).to_bytes(_BYTES_OF_LENGTH) + data


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[Any]:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            length = int.from_bytes(await reader.readexactly(_BYTES_OF_LENGTH))
            yield pickle.loads(await reader.readexactly(length))
