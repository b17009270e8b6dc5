"""Loads plug-in memories: ``package.module:Class``, or the name of an entry point ``memreplay.backends``."""

from __future__ import annotations

import asyncio
import copy
import importlib
import inspect
import json
import re
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from memory_backends.base import (
    BackendError,
    ClosingStatus,
    Exchange,
    MemoryBackend,
    MemoryDescription,
    Message,
    Namespace,
    Recall,
    Snapshot,
    StoreLostError,
    TokenCounter,
)
from memory_backends.metering import MeteredChat, calls_noted_to, calls_reported, start_watching
from memory_backends.snapshots import COMMAND, Provenance, SnapshotDiffer, beyond_limits
from memory_backends.stores.trace import MemoryTrace

if TYPE_CHECKING:
    from memory_backends.resources import Resources

Given = TypeVar("Given")

REQUIRED = ("open", "observe", "recall", "snapshot")
"""Methods that a memory must have; the rest of the protocol has defaults."""

_KNOWN = "provenance.json"

_UNKNOWN, _EVERYTHING = "memory", "(all)"
_SNAPSHOT = "snapshot"
"""The label under which a memory itself is checked, beside any stores of ours that it uses."""

"""Store and key of a snapshot that failed."""


class PluginAdapter(MemoryBackend):
    """Wraps an object that has the :data:`REQUIRED` methods, plain functions or coroutines.

    Entries of its own trace are passed on. Other changes are derived from snapshots, taken after every method that
    may write, and so are the turns that its items and hits come from. A result of the wrong type is a
    :class:`BackendError`. Plain functions run in one thread of their own. ``trace`` and ``chat`` are those of the
    resources that it was made from.
    """

    def __init__(
        self, name: str, inner: Any, trace: MemoryTrace | None = None, chat: MeteredChat | None = None
    ) -> None:
        self.name = name
        self.trace = trace or MemoryTrace()
        self.perceive_changes_recall = bool(getattr(inner, "perceive_changes_recall", False))
        self.limited_by_top_k = bool(getattr(inner, "limited_by_top_k", True))
        self.description = getattr(inner, "description", MemoryDescription())
        self.can_be_kept = _overrides(inner, "save") and _overrides(inner, "load")
        self._inner = inner
        self._chat = chat
        self._actor = type(inner).__name__
        self._differ = SnapshotDiffer(self.trace)
        self._provenance = Provenance()
        self._observing: tuple[str, ...] = ()
        self._beyond = ""
        self._thread: ThreadPoolExecutor | None = None
        self.trace.stores[_SNAPSHOT] = self

    async def check(self) -> None:
        """Compare what the memory holds with what it held after its last write, and its own stores with theirs.

        Raises:
            StoreLostError: something is gone. A memory that cannot say what it holds has lost nothing.
        """
        own = getattr(self._inner, "trace", None)
        if isinstance(own, MemoryTrace) and own is not self.trace:
            for store in own.stores.values():
                await store.check()
        await self._check_snapshot()

    async def _check_snapshot(self) -> None:
        try:
            held = await self.snapshot()
            gone, all_ = self._differ.lost_since(held) if held.is_known else (0, 0)
        except Exception:  # a plug-in may raise anything; what it holds is unknown then
            return
        if gone:
            raise StoreLostError(
                f"{self.name} lost {gone:,} of the {all_:,} items that it held after its last write"
                " (deleted or expired without a write)"
            )

    async def open(self, namespace: Namespace) -> None:
        self._provenance = Provenance()
        with self.trace.caused_by("open", self._actor):
            await self._writing("open", namespace)

    async def perceive(self, message: Message, top_k: int, context_tokens: int) -> Recall:
        if not self._has("perceive"):
            return Recall()
        with self.trace.caused_by("perceive", self._actor, (message.turn_id,)):
            recall = _checked(Recall, "perceive", await self._writing("perceive", message, top_k, context_tokens))
            return self._provenance.completed(recall)

    async def observe(self, exchange: Exchange) -> None:
        if self.description.is_known:
            # After the write, what was lost before it would look as if the memory had removed it.
            await self._check_snapshot()
        self._provenance.heard(exchange)
        self._observing = exchange.turn_ids
        with self.trace.caused_by("observe", self._actor, exchange.turn_ids):
            await self._writing("observe", exchange)

    async def settle(self) -> None:
        if self._has("settle"):
            with self.trace.caused_by("consolidate", self._actor):
                await self._writing("settle")

    def set_token_counter(self, count_tokens: TokenCounter) -> None:
        if self._has("set_token_counter"):
            self._inner.set_token_counter(count_tokens)

    async def recall(self, question: str, top_k: int, context_tokens: int) -> Recall:
        with self.trace.caused_by("recall", self._actor):
            recall = _checked(Recall, "recall", await self._call("recall", question, top_k, context_tokens))
            self._pass_on_trace()
            return self._provenance.completed(recall)

    async def snapshot(self) -> Snapshot:
        held = _checked(Snapshot, "snapshot", await self._call("snapshot"))
        self._beyond = beyond_limits(held)
        return Snapshot(is_known=False) if self._beyond else held

    async def close(self, status: ClosingStatus) -> None:
        if self._has("close"):
            with self.trace.caused_by("close", self._actor):
                await self._writing("close", status)
        if self._thread is not None:
            self._thread.shutdown(wait=False)
            self._thread = None

    async def save(self, path: Path) -> None:
        await self._call("save", path)
        known = json.dumps(self._provenance.state())
        (path / _KNOWN).write_text(known, encoding="utf-8", errors="surrogatepass")

    async def load(self, path: Path) -> None:
        await self._call("load", path)
        known = json.loads((path / _KNOWN).read_text(encoding="utf-8", errors="surrogatepass"))
        self._provenance.restore(known)
        self._differ.start_from(await self.snapshot())

    async def _writing(self, method: str, *arguments: Any) -> Any:
        """Call it, then record what it did, even if it failed half-way."""
        try:
            return await self._call(method, *arguments)
        finally:
            self._pass_on_trace()
            await self._note_snapshot()

    async def _call(self, method: str, *arguments: Any) -> Any:
        call = getattr(self._inner, method)
        if self._chat is not None:
            self._chat.serve_threads()
        start_watching()
        noted = self.trace.model_called
        try:
            with calls_noted_to(noted):
                if inspect.iscoroutinefunction(inspect.unwrap(call)):
                    return await call(*arguments)
                returned = await self._in_thread(call, *arguments)
                return await returned if isinstance(returned, Awaitable) else returned
        finally:
            await calls_reported(noted)
            if self._chat is not None and self._chat.stopped is not None:
                # Whatever the library made of it, the run is stopping.
                stopped, self._chat.stopped = self._chat.stopped, None
                raise stopped

    async def _in_thread(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Always the same thread: a SQLite connection, for one, can be used in no other."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"memory-{self.name}")
        context = copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._thread, context.run, call, *arguments)

    def _pass_on_trace(self) -> None:
        own = getattr(self._inner, "trace", None)
        if isinstance(own, MemoryTrace):
            entries = own.drain()
            self._differ.leave_out(entries)
            self.trace.extend(entries)

    async def _note_snapshot(self) -> None:
        """Note a snapshot. If it fails, the panel stays empty, and the memory continues."""
        started = perf_counter()
        try:
            held = await self.snapshot()
            if not held.is_known:
                self.description = self.description.model_copy(update={"is_known": False})
                raise BackendError(self._beyond or "it cannot list what it holds")
            ms = (perf_counter() - started) * 1000
            self._provenance.note(held, self._observing)
            self._differ.note(held, ms, self._provenance.late)
        except Exception as error:
            ms = (perf_counter() - started) * 1000
            self.trace.note(_UNKNOWN, COMMAND, _EVERYTHING, None, ms, f"{type(error).__name__}: {error}")

    def _has(self, method: str) -> bool:
        return _overrides(self._inner, method)


def _overrides(memory: object, method: str) -> bool:
    """Return whether a memory implements a method itself."""
    written = getattr(type(memory), method, None)
    return written is not None and written is not getattr(MemoryBackend, method)


def missing_methods(candidate: type) -> list[str]:
    """Return what is wrong with the required methods of a class."""
    return [
        f"it has no {name}()"
        for name in REQUIRED
        if getattr(candidate, name, None) in (None, getattr(MemoryBackend, name))
    ]


def _checked(wanted: type[Given], method: str, given: Any) -> Given:
    if not isinstance(given, wanted):
        raise BackendError(f"{method}() returned a {type(given).__name__}, not a {wanted.__name__}")
    return given


GROUP = "memreplay.backends"

_SPELLING = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*):(?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)")


class PluginError(BackendError):
    """A plug-in that cannot be used: not found, of the wrong shape, or failing while it is loaded."""


def announced() -> dict[str, EntryPoint]:
    """Entry points of installed packages, by name."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


_handed_over: dict[str, object] = {}
"""Classes, and objects to copy for each conversation, that this process uses under a name."""


def hand_over(memory: object) -> str:
    """Make a memory class, or an object of one, usable in this process; the name that it then has.

    That is the object's own ``name``, else the name of its class. An object is copied for each conversation, since
    a memory serves one. A later memory of the same name takes the place of an earlier one.

    Raises:
        PluginError: it is not a memory.
    """
    found = memory if inspect.isclass(memory) else type(memory)
    own = getattr(memory, "name", None)
    name = own if isinstance(own, str) and own.strip() else found.__name__
    _check_class(name, found, made_by_us=found is memory)
    _handed_over[name] = memory
    return name


def is_handed_over(name: str) -> bool:
    """Return whether a class or object of this process has this name, which no other process can import."""
    return name in _handed_over


def is_plugin(name: str) -> bool:
    """Return whether a name was handed over, has the form ``package.module:Class``, or is an entry point."""
    return name in _handed_over or _SPELLING.fullmatch(name) is not None or name in announced()


def load_plugin(name: str) -> type:
    """Return the class of that name.

    The current folder is searched first, as with ``python -m``. Raises :class:`PluginError`.
    """
    if name in _handed_over:
        given = _handed_over[name]
        return given if inspect.isclass(given) else type(given)
    spelled = _SPELLING.fullmatch(name)
    if spelled is None and (entry := announced().get(name)) is not None:
        spelled = _SPELLING.fullmatch(entry.value.partition("[")[0].strip())
    if spelled is None:
        raise PluginError(f"{name!r} is not a memory; expected package.module:Class")
    found = _attribute(name, _module(name, spelled["module"]), spelled["name"])
    if not inspect.isclass(found):
        raise PluginError(f"{name}: {spelled['name']} is not a class")
    _check_class(name, found, made_by_us=True)
    return found


def _check_class(name: str, found: type, *, made_by_us: bool) -> None:
    problems = missing_methods(found)
    if problems:
        raise PluginError(f"{name} is not a memory backend: {', '.join(problems)}")
    if not isinstance(getattr(found, "description", MemoryDescription()), MemoryDescription):
        raise PluginError(f"{name}: its description is not a MemoryDescription")
    if made_by_us:
        _arguments_wanted(name, found)


def create_plugin(name: str, resources: Resources) -> PluginAdapter:
    """Return a new memory of that class; its constructor gets the resources if it has one required argument.

    Raises :class:`PluginError`.
    """
    prototype = _handed_over.get(name)
    if prototype is not None and not inspect.isclass(prototype):
        made = adapted(name, lambda: _copied(prototype), resources, wants_resources=False)
    else:
        found = load_plugin(name)
        made = adapted(name, found, resources, wants_resources=bool(_arguments_wanted(name, found)))
    # What a class in a notebook, or an object, would write cannot be told from its name and file.
    made.can_be_kept = made.can_be_kept and prototype is None
    return made


def adapted(
    name: str, found: Callable[..., Any], resources: Resources, *, wants_resources: bool = True
) -> PluginAdapter:
    """Return a new memory of a class, with everything that it writes and calls traced. Raises
    :class:`PluginError`.
    """
    trace = MemoryTrace()
    metered = resources.metered_by(trace)
    try:
        made = found(metered) if wants_resources else found()
    except BackendError as error:
        raise PluginError(f"{name}: {error}") from error
    except Exception as error:
        raise PluginError(f"{name} cannot be created: {_with_place(error)}") from error
    return PluginAdapter(name, made, trace, metered.chat)


def _copied(prototype: object) -> object:
    try:
        return copy.deepcopy(prototype)
    except Exception as error:
        raise PluginError(
            f"it cannot be copied for each conversation ({_with_place(error)}); hand over its class instead"
        ) from error


def _module(name: str, path: str) -> Any:
    try:
        with _current_folder_first():
            return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name is not None and (path == error.name or path.startswith(error.name + ".")):
            raise PluginError(
                f"{name}: there is no module {error.name!r} in the current folder or installed"
            ) from None
        raise PluginError(f"{name} cannot be imported: {_with_place(error)}") from error
    except (Exception, SystemExit) as error:
        raise PluginError(f"{name} cannot be imported: {_with_place(error)}") from error


@contextmanager
def _current_folder_first() -> Iterator[None]:
    """Search the current folder first: console scripts do not, and installed packages often leave a ``tests``
    behind.

    Afterwards it is searched last, for later imports of the memory, so that it shadows nothing else.
    """
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
        if here not in sys.path:
            sys.path.append(here)


def _attribute(name: str, module: Any, path: str) -> Any:
    found = module
    for part in path.split("."):
        if not hasattr(found, part):
            raise PluginError(f"{name}: there is no {path} in {module.__name__}")
        found = getattr(found, part)
    return found


def _arguments_wanted(name: str, found: type) -> int:
    """Return how many arguments its constructor requires: none, or one."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return 0
    named = [
        parameter
        for parameter in parameters
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    wanted = [parameter for parameter in named if parameter.default is parameter.empty]
    if len(wanted) > 1 or any(parameter.kind is parameter.KEYWORD_ONLY for parameter in wanted):
        raise PluginError(
            f"{name} cannot be created: its __init__ requires {', '.join(parameter.name for parameter in wanted)}; "
            "expected no argument, or one for the resources"
        )
    return len(wanted)


def _with_place(error: BaseException) -> str:
    """Return the error, with the file and line where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}{place}" if said else f"{type(error).__name__}{place}"
