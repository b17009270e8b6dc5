"""Play conversations in other processes: ``--workers`` of this machine, or the workers of a Dask ``--cluster``.

Both are executors of :mod:`concurrent.futures`. A run has them call :func:`play_elsewhere`, which fills the
memories of a conversation and recalls for its questions; the run records what it returns and puts the questions to
the models. A memory that writes or embeds with a model calls it in the worker, with the keys of the worker's own
environment.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any, TypeVar

import memory_backends
import memreplay
from memory_backends.base import BackendError
from memory_backends.controls import CONTROLS
from memory_backends.registry import BACKEND_NAMES
from memreplay.conversations.models import Conversation
from memreplay.engine.events import ReplayEvent
from memreplay.engine.play import EmbeddingAhead, Played, play_and_recall
from memreplay.engine.remote.addresses import is_agent
from memreplay.engine.session import Ask
from memreplay.errors import MemreplayError, MissingServerOrKeyError, UsageError
from memreplay.llm.rate_limiter import ModelUnavailableError, StoppedError
from memreplay.llm.secrets import without_secrets
from memreplay.runtime.kept_memories import identity
from memreplay.runtime.run import Run
from memreplay.runtime.work import number_of_local_workers
from memreplay.settings import ADDRESSES, Settings, read_settings

T = TypeVar("T")
W = TypeVar("W")

_PACKAGES = ("pydantic", "numpy", "onnxruntime", "tokenizers", "bm25s", "PyStemmer", "qdrant-client", "fakeredis")
"""Packages whose version can change what a memory holds or returns."""

_MOST_LOSSES = 3
"""A conversation that loses its worker more often is given up: it may be what ends them."""

LOST = "its workers were lost, again and again, while they played it"

SECONDS_TO_CONNECT = 30
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_WITHOUT_WORKERS = 120
"""Seconds that a run waits for a Dask worker when all are lost."""

SAFE_PATH = "PYTHONSAFEPATH"
"""Environment variable: if it is not empty, Python does not search the current folder."""

_SAFE_PATH_OF_WORKERS = "worker"
"""The value that a run gives to its workers."""


# What runs in a worker


@dataclass(frozen=True)
class Assignment:
    """A conversation to be played to some of the memories of a run. ``settings`` hold no key.

    ``versions`` are those of the run's own process, which the worker must have too.
    """

    conversation: Conversation
    backends: tuple[str, ...]
    asks: tuple[Ask, ...]
    settings: Settings
    run_id: str
    perceive: bool
    versions: Mapping[str, str]


_stopping = Event()
"""Set in a worker once the run starts nothing new."""


_to_the_run: list[Connection] = []
"""Pipe on which a process of the pool says what it waits for. Empty in the main process."""

_SECONDS_BETWEEN_LOOKS = 0.5


async def _say_what_is_waited_for(run: Run) -> None:
    """Tell the run of every change of what a worker waits for. It ends with the worker's play."""
    said = ""
    try:
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            if run.waiting_for != said:
                said = run.waiting_for
                _tell(said)
    finally:
        if said:
            _tell("")


def _tell(waiting_for: str) -> None:
    with suppress(OSError):
        for pipe in _to_the_run:
            pipe.send(waiting_for)


def play_elsewhere(work: Assignment) -> Played:
    """Fill the memories of a conversation, and recall for all that will be asked.

    Raises:
        UsageError: this worker has other versions, or a memory cannot be created here.
    """
    refuse_other_versions(work.settings.backend, work.versions)
    return asyncio.run(_played(work))


async def _played(work: Assignment) -> Played:
    conversation, warnings = work.conversation, list[str]()
    run = Run(_with_own_servers(work.settings), Path(), warn=warnings.append, run_id=work.run_id)
    telling = asyncio.create_task(_say_what_is_waited_for(run))
    try:

        def filled(known: Conversation) -> frozenset[str]:
            return frozenset() if work.perceive else run.filled_before(known)

        async def embed(texts: Sequence[str]) -> None:
            if not _stopping.is_set():
                await run.embed(texts)

        ahead = EmbeddingAhead([conversation], work.backends, embed, filled=filled)

        async def play_once() -> tuple[Played, Mapping[str, str]]:
            memories = run.backends_for(conversation, work.backends)
            events: list[ReplayEvent] = []
            session = run.unrecorded_session(conversation, memories, events.append, perceive=work.perceive)
            played = await play_and_recall(
                session, events, work.asks, lambda number: ahead.of(conversation, number), _stopping.is_set
            )
            return played, session.lost

        played, lost = await play_once()
        if lost and not _stopping.is_set():
            warnings += [f"{conversation.id}: {why}; it is filled again" for why in dict.fromkeys(lost.values())]
            played, _ = await play_once()
        await ahead.end()
        return replace(played, warnings=tuple(warnings))
    finally:
        telling.cancel()
        await run.finish("interrupted")


def check_worker(settings: Settings, expected: Mapping[str, str]) -> MemreplayError | None:
    """Return why this process cannot play conversations, if it cannot."""

    async def check() -> None:
        refuse_other_versions(settings.backend, expected)
        run = Run(_with_own_servers(settings), Path())
        try:
            await run.check_memories()
        finally:
            await run.finish("interrupted")

    try:
        asyncio.run(check())
    except MemreplayError as error:
        return error
    return None


def refuse_other_versions(backends: Sequence[str], expected: Mapping[str, str]) -> None:
    """Raise UsageError if this process has other versions: rows must not depend on where they were computed."""
    here = versions(backends)
    other = [f"{name} {here.get(name)}, not {its}" for name, its in expected.items() if here.get(name) != its]
    if other:
        raise UsageError(f"other versions than the run has: {'; '.join(other)}; install the same versions")


def versions(backends: Sequence[str] = ()) -> dict[str, str]:
    """Return what must be equal in every process: code, libraries and memories that are not ours, by name."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2]), "memreplay": _code_digest()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found | {name: _version_of(name) for name in backends if name not in BACKEND_NAMES}


def _version_of(backend: str) -> str:
    """Return a digest of a memory of the user's own, or why it cannot be loaded."""
    try:
        return sha256(repr(identity(backend)).encode()).hexdigest()[:12]
    except BackendError as error:
        return f"cannot be used ({error})"


@cache
def _code_digest() -> str:
    digest = sha256()
    for package in (memreplay, memory_backends):
        folder = Path(str(package.__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _with_own_servers(settings: Settings) -> Settings:
    """Complete the addresses that the run sent, where this machine is configured for the same server.

    They travel without passwords and keys.
    """
    if not any(getattr(settings, name) for name in ADDRESSES):
        return settings
    own = read_settings()
    for name in ADDRESSES:
        address = getattr(own, name)
        if address is not None and without_secrets(address) == getattr(settings, name):
            settings = replace(settings, **{name: address})
    return replace(settings, qdrant_api_key=own.qdrant_api_key)


def dask_setup(worker: Any) -> None:
    """Ignore Ctrl-C, which is for the run. Dask calls this when a local worker starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _search_current_folder_again()


def _obey(run: Connection, to_the_run: Connection) -> None:
    """Stop at the first word of the run, and end once it cannot say any more. A pool's process begins with this."""
    _to_the_run.append(to_the_run)
    _search_current_folder_again()

    def listen() -> None:
        with suppress(EOFError, OSError):
            run.recv_bytes()
            _stopping.set()
            run.recv_bytes()
        # Also while a memory keeps the process busy, or waits for a server in a thread.
        os._exit(0)

    Thread(target=listen, daemon=True, name="run").start()


def _search_current_folder_again() -> None:
    """Let programs that a memory starts search their current folder."""
    if os.environ.get(SAFE_PATH) == _SAFE_PATH_OF_WORKERS:
        del os.environ[SAFE_PATH]


# What runs in the run's own process


class Elsewhere:
    """The workers of a run.

    ``submit`` has one call a function, and raises BrokenExecutor if that worker is lost; after the errors
    ``lost_for_good`` it is not tried again.
    """

    def __init__(
        self,
        where: str,
        places: int,
        submit: Callable[[Callable[[Any], Any], Any], Awaitable[Any]],
        stop: Callable[[], None],
        lost_for_good: tuple[type[Exception], ...] = (),
        waits: Callable[[], Sequence[str]] = lambda: (),
    ) -> None:
        self.where, self.places = where, places
        """``places`` is the number of conversations that are played at a time."""
        self._submit, self._stop, self._lost_for_good = submit, stop, lost_for_good
        self._waits = waits
        self._stopped = False
        self._since: dict[object, tuple[str, float]] = {}

    def stop(self) -> None:
        """Play nothing again, and have workers stop between two turns, or wait for them no longer."""
        if not self._stopped:
            self._stopped = True
            self._stop()

    def at_work(self) -> dict[str, float]:
        """Return the conversations that are being played, with the seconds since they were begun."""
        return {name: monotonic() - since for name, since in self._since.values()}

    @property
    def waiting_for(self) -> str:
        """Return what a worker waits for, in a sentence; empty if none waits. Workers of a cluster do not tell."""
        return next(filter(None, self._waits()), "")

    def plays(self, backends: Sequence[str]) -> bool:
        """Return whether workers have any of these memories to fill. Agents and controls stay with the run."""
        return any(map(_is_filled_by_workers, backends))

    async def play(
        self,
        settings: Settings,
        run_id: str,
        conversation: Conversation,
        backends: Sequence[str],
        asks: Sequence[Ask],
        *,
        perceive: bool,
    ) -> Played:
        """Play a conversation, again if its worker is lost. Memories that lose too many workers have failed.

        Raises:
            StoppedError: the run was stopped, or the scheduler or all workers are lost.
            UsageError: a worker has other versions.
        """
        settings = settings_for_workers(settings, self.places)
        known = versions(settings.backend)
        filled = tuple(name for name in backends if _is_filled_by_workers(name))
        wanted = tuple(ask for ask in asks if ask.backend in filled)
        work = Assignment(conversation, filled, wanted, settings, run_id, perceive, known)
        place = object()
        self._since[place] = (conversation.id, monotonic())
        try:
            played = await self.call(play_elsewhere, work)
        finally:
            del self._since[place]
        return played or Played.failed(conversation, filled, LOST)

    async def call(self, function: Callable[[W], T], work: W) -> T | None:
        """Return what a function of a module makes of its work in a worker, in another one if that is lost.

        None if it loses too many workers. Raises StoppedError as :meth:`play` does.
        """
        for _ in range(_MOST_LOSSES):
            if self._stopped:
                raise StoppedError("the run was stopped")
            try:
                made: T = await self._submit(function, work)
            except BrokenExecutor:
                continue
            except self._lost_for_good:
                break
            return made
        return None


def _is_filled_by_workers(backend: str) -> bool:
    return not is_agent(backend) and backend not in CONTROLS


def settings_for_workers(settings: Settings, places: int = 1) -> Settings:
    """Return the settings as they travel and may be logged: without secrets, with a worker's share of limits."""

    def share(limit: int | None) -> int | None:
        return None if limit is None else max(1, limit // places)

    addresses: dict[str, Any] = {name: without_secrets(getattr(settings, name)) for name in ADDRESSES}
    return replace(
        settings,
        backend=tuple(filter(_is_filled_by_workers, settings.backend)),
        concurrency=share(settings.concurrency),
        rpm=share(settings.rpm),
        tpm=share(settings.tpm),
        qdrant_api_key=None,
        agent_token=None,
        keys={},
        trusted_projects=(),
        **addresses,
    )


@asynccontextmanager
async def workers_of(settings: Settings) -> AsyncIterator[Elsewhere | None]:
    """Start or find the workers that the settings name; None where this process plays by itself.

    Raises:
        MissingServerOrKeyError: no process can be started, the scheduler does not answer, or a worker lacks a
        server.
        UsageError: the workers cannot be used, or have other versions.
    """
    number = settings.workers or 1
    if settings.cluster is None and (number == 1 or not settings_for_workers(settings).backend):
        yield None
        return
    async with (
        _processes(settings, number) if settings.cluster is None else _dask(settings, settings.cluster) as made
    ):
        yield made


class _Process:
    """A pool of one process, so that a lost process costs one conversation. It ends with its pipe."""

    def __init__(self, settings: Settings) -> None:
        context = get_context("spawn")
        heard, self._said = context.Pipe(duplex=False)
        self._told, tell = context.Pipe(duplex=False)
        self._waiting_for = ""
        travelling = settings_for_workers(settings)
        with _in_environment(_own_servers(settings) | _safe_path()), _without_ctrl_c():
            self.executor = ProcessPoolExecutor(1, context, _obey, (heard, tell))
            self.ready = self.executor.submit(check_worker, travelling, versions(travelling.backend))
        heard.close()
        tell.close()

    @property
    def waiting_for(self) -> str:
        """Return what the process waits for, in a sentence; else empty."""
        with suppress(EOFError, OSError):
            while self._told.poll():
                self._waiting_for = self._told.recv()
        return self._waiting_for

    def stop(self) -> None:
        with suppress(OSError):
            self._said.send_bytes(b"stop")

    def end(self) -> None:
        self._said.close()
        self._told.close()
        self.executor.shutdown(wait=False)


@asynccontextmanager
async def _processes(settings: Settings, number: int) -> AsyncIterator[Elsewhere]:
    idle: list[_Process] = []
    running: set[_Process] = set()

    def start() -> _Process:
        process = _Process(settings)
        running.add(process)
        return process

    def lose(process: _Process) -> None:
        running.discard(process)
        process.end()

    async def submit(function: Callable[[W], T], work: W) -> T:
        process = idle.pop() if idle else start()
        try:
            made = await asyncio.wrap_future(process.executor.submit(function, work))
        except BrokenExecutor:
            lose(process)
            raise
        idle.append(process)
        return made

    def stop() -> None:
        for process in running:
            process.stop()

    try:
        try:
            idle += [start() for _ in range(number)]
            for problem in await asyncio.gather(*(asyncio.wrap_future(process.ready) for process in idle)):
                if problem is not None:
                    raise problem
        except (BrokenExecutor, OSError) as error:
            raise MissingServerOrKeyError(f"no process can be started for --workers: {error}") from None
        yield Elsewhere("processes", number, submit, stop, waits=lambda: [each.waiting_for for each in running])
    finally:
        for process in running:
            process.end()


@asynccontextmanager
async def _dask(settings: Settings, cluster: str) -> AsyncIterator[Elsewhere]:
    """Use the workers of a Dask scheduler that runs somewhere, or of one that is started here."""
    from distributed import KilledWorker

    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    ended: asyncio.Future[StoppedError] = asyncio.get_running_loop().create_future()

    def end(why: StoppedError) -> None:
        if not ended.done():
            ended.set_result(why)

    async with _client(settings, cluster) as client:
        executor = client.get_executor(pure=False)

        async def result(future: Future[T]) -> T:
            waited = asyncio.wrap_future(future)
            try:
                both: set[asyncio.Future[Any]] = {waited, ended}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                if waited.done() and not waited.cancelled():
                    return waited.result()
                end(ModelUnavailableError(f"the Dask scheduler at {cluster} is lost"))
                raise ended.result()
            finally:
                waited.cancel()

        async def submit(function: Callable[[W], T], work: W) -> T:
            return await result(executor.submit(function, work))

        async def check() -> int:
            """Return the number of workers, all of which can play."""
            addresses = await _addresses(client)
            travelling = settings_for_workers(settings)
            known = versions(travelling.backend)
            for address in addresses:
                try:
                    problem = await result(executor.submit(check_worker, travelling, known, workers=[address]))
                except ImportError:
                    problem = UsageError("it has no memreplay, or another version of it")
                if problem is not None:
                    raise type(problem)(f"the worker at {address}: {problem}")
            return len(addresses)

        async def watch() -> None:
            seen = monotonic()
            while monotonic() - seen < _SECONDS_WITHOUT_WORKERS:
                await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
                with suppress(OSError, RuntimeError):  # the scheduler may be out of reach for a moment
                    if found := await asyncio.to_thread(client.ncores):
                        elsewhere.places, seen = len(found), monotonic()
            end(ModelUnavailableError(f"no Dask worker is left at {cluster}"))

        number = await check()
        if not number:
            raise MissingServerOrKeyError(f"no worker has started at {cluster}")
        elsewhere = Elsewhere(
            "Dask workers",
            number,
            submit,
            stop=lambda: end(StoppedError("the run was stopped")),
            lost_for_good=(KilledWorker,),
        )
        watching = asyncio.create_task(watch())
        try:
            yield elsewhere
        finally:
            watching.cancel()
            executor.shutdown(wait=False)


async def _addresses(client: Any) -> list[str]:
    """Wait for the first workers; return none if none appears."""
    for _ in range(SECONDS_TO_CONNECT):
        if found := await asyncio.to_thread(client.ncores):
            return sorted(found)
        await asyncio.sleep(1)
    return []


@asynccontextmanager
async def _client(settings: Settings, cluster: str) -> AsyncIterator[Any]:
    from distributed import Client, LocalCluster

    number = number_of_local_workers(cluster)

    def started() -> Any:
        # Dask starts processes with a program of its own, which must not import from the current folder.
        with _in_environment(_own_servers(settings) | _safe_path()):
            return LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=number,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                # Its port for HTTP would be 8787 otherwise, which another program may have.
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                silence_logs=logging.CRITICAL,
                preload=["memreplay.runtime.elsewhere"],
            )

    def connected(address: Any) -> Any:
        return Client(  # type: ignore[no-untyped-call]
            address, timeout=SECONDS_TO_CONNECT, set_as_default=False, direct_to_workers=number is not None
        )

    async with AsyncExitStack() as stack:
        address: Any = cluster
        if number is not None:
            address = await asyncio.to_thread(started)
            stack.push_async_callback(asyncio.to_thread, address.close)
        try:
            client = await asyncio.to_thread(connected, address)
        except (OSError, TimeoutError) as error:
            raise MissingServerOrKeyError(f"no Dask scheduler answers at {cluster}") from error
        stack.push_async_callback(asyncio.to_thread, client.close)
        yield client


def _own_servers(settings: Settings) -> dict[str, str]:
    """Return addresses and keys of servers, for the environment of a process."""
    values = {f"MEMREPLAY_{name.upper()}": getattr(settings, name) for name in (*ADDRESSES, "qdrant_api_key")}
    return {name: value for name, value in values.items() if value is not None}


def _safe_path() -> dict[str, str]:
    return {} if os.environ.get(SAFE_PATH) else {SAFE_PATH: _SAFE_PATH_OF_WORKERS}


@contextmanager
def _in_environment(added: Mapping[str, str]) -> Iterator[None]:
    """Let processes that are started here inherit addresses and keys, which do not travel with their work."""
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Keep Ctrl-C from processes that are started here, also while they still import: it is for the run."""
    # The tracker unblocks the signal when it starts.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
