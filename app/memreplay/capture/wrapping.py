"""``memreplay.record``: wrap a memory so that everything an agent does with it is noted in a recording.

The wrapper passes every call through unchanged, and every result and exception back. It takes notes beside that,
and fails in silence: an agent must not notice it.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar, cast

import wrapt

from memreplay.capture.journal import Journal
from memreplay.capture.operations import Kind, Library, library_of
from memreplay.errors import UsageError

Memory = TypeVar("Memory")

_log = logging.getLogger("memreplay.capture")
_journals: dict[Path, Journal] = {}
_opening = threading.Lock()
_latest: Journal | None = None
_turn: ContextVar[str | None] = ContextVar("memreplay_turn", default=None)
_numbers = itertools.count(1)


def _journal(path: str | Path) -> Journal:
    global _latest
    resolved = Path(path).resolve()
    with _opening:
        if resolved not in _journals:
            _journals[resolved] = Journal(resolved)
        _latest = _journals[resolved]
        return _latest


def record(
    memory: Memory,
    recording: str | Path,
    *,
    name: str | None = None,
    writes: Iterable[str] = (),
    reads: Iterable[str] = (),
    removes: Iterable[str] = (),
    lists: Iterable[str] = (),
) -> Memory:
    """Return a memory that does what ``memory`` does, and notes every call of it in a recording.

    The memories of mem0, LangGraph (stores and checkpointers), Graphiti, Letta and Chroma are known. Of any other
    object, name the methods that write, read, remove, and list all items; a dotted name is a method of an
    attribute. ``name`` is what the memory is called on the screen. ``memreplay RECORDING`` shows what happened.

    Raises:
        RecordingError: the file is no recording, or cannot be written.
        UsageError: the memory is of no known library and none of its methods is named, or it lacks one of them.
    """
    library = library_of(memory)
    named: dict[str, Kind] = {
        **dict.fromkeys(writes, "write"),
        **dict.fromkeys(reads, "read"),
        **dict.fromkeys(removes, "remove"),
        **dict.fromkeys(lists, "list"),
    }
    kinds: dict[str, Kind] = {**(library.methods if library else {}), **named}
    if not kinds:
        raise UsageError(
            f"record: {type(memory).__name__} is of no library that memreplay knows; name its methods, as in"
            ' record(memory, "agent.sqlite3", writes=["add"], reads=["search"])'
        )
    for method in named:
        if not callable(_attribute(memory, method)):
            raise UsageError(f"record: {type(memory).__name__} has no method {method}")
    called = name or (library.name if library else type(memory).__name__.lower())
    wrapper = _Recorder(_journal(recording), library, called, kinds, _collection_of(memory))
    return cast("Memory", _RecordedMemory(memory, wrapper))


def _attribute(value: object, dotted: str) -> Any:
    for part in dotted.split("."):
        value = getattr(value, part, None)
    return value


def _collection_of(memory: object) -> str:
    """Return the name of a Chroma collection."""
    name = getattr(memory, "name", None)
    return name if isinstance(name, str) else ""


@contextmanager
def turn(
    session: str,
    role: str,
    text: str,
    *,
    user: str | None = None,
    name: str | None = None,
    recording: str | Path | None = None,
) -> Iterator[None]:
    """Note a message of the conversation; what the agent does with its memory inside the block belongs to it.

    ``role`` is ``user`` or ``assistant``; ``user`` says whose memory it is where an agent serves several, and
    ``name`` who speaks. Without ``recording`` it goes where :func:`record` last recorded.
    """
    journal = None
    try:
        journal = _journal(recording) if recording is not None else _latest
    except Exception as error:
        _log.warning("a turn was not recorded: %s", error)
    if journal is None:
        _log.warning("a turn was not recorded: call memreplay.record() before it, or name the recording")
        yield
        return
    id_ = f"{os.getpid()}-{next(_numbers)}"
    journal.note(
        "message",
        time.time(),
        {"turn": id_, "session": session, "role": role, "text": text, "user": user, "name": name},
    )
    token = _turn.set(id_)
    try:
        yield
    finally:
        _turn.reset(token)


class _Recorder:
    """Takes the notes of one memory."""

    def __init__(
        self, journal: Journal, library: Library | None, name: str, kinds: Mapping[str, Kind], place: str
    ) -> None:
        self.kinds = kinds
        self._journal = journal
        self._base = {"library": library.name if library else None, "memory": name, "place": place or None}

    def is_on_the_way(self, path: str) -> bool:
        """Return whether an attribute leads to a method that is recorded."""
        return any(name.startswith(f"{path}.") for name in self.kinds)

    def wrapped(self, path: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that takes a note of each call."""

        def call(*args: Any, **kwargs: Any) -> Any:
            noted = _Call(path, method, args, kwargs)
            try:
                result = method(*args, **kwargs)
            except BaseException as error:
                self._note(noted, None, error)
                raise
            if inspect.iscoroutine(result):
                return self._awaited(result, noted)
            if isinstance(result, asyncio.Future):
                result.add_done_callback(lambda done: self._settled(done, noted))
                return result
            self._note(noted, result)
            return result

        return call

    async def _awaited(self, coroutine: Coroutine[Any, Any, Any], noted: _Call) -> Any:
        try:
            result = await coroutine
        except BaseException as error:
            self._note(noted, None, error)
            raise
        self._note(noted, result)
        return result

    def _settled(self, done: asyncio.Future[Any], noted: _Call) -> None:
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        self._note(noted, None if error is not None else done.result(), error)

    def _note(self, call: _Call, result: Any, error: BaseException | None = None) -> None:
        try:
            self._journal.note(
                "call",
                call.started,
                {
                    **self._base,
                    "method": call.path,
                    "kind": self.kinds[call.path],
                    "arguments": call.arguments(),
                    "result": result,
                    "error": None if error is None else f"{type(error).__name__}: {error}",
                    "ms": call.ms,
                    "turn": _turn.get(),
                },
            )
        except Exception as problem:
            _log.warning("a call of %s was not recorded: %s", call.path, problem)


class _Call:
    """A call of a recorded method, from its beginning on."""

    def __init__(
        self, path: str, method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        self.path = path
        self._method, self._args, self._kwargs = method, args, kwargs
        self.started, self._begun = time.time(), time.perf_counter()

    @property
    def ms(self) -> float:
        """Return how long ago it began."""
        return round((time.perf_counter() - self._begun) * 1000, 3)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that are not None, by name."""
        names = _parameters(self._method)
        given = {**dict(zip(names, self._args, strict=False)), **self._kwargs}
        if len(self._args) > len(names):
            given["more"] = self._args[len(names) :]
        return {name: value for name, value in given.items() if value is not None}


def _parameters(method: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a method's positional parameters, without the one that it is bound to."""
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):
        return ()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(each.name for each in parameters if each.kind in positional)


class _RecordedMemory(wrapt.ObjectProxy[Any]):
    """Stands for a memory: the same type, attributes and operators; its methods take notes."""

    def __init__(self, wrapped: object, recorder: _Recorder, path: str = "") -> None:
        super().__init__(wrapped)
        self._self_recorder = recorder
        self._self_path = path

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__wrapped__, name)
        path = f"{self._self_path}.{name}" if self._self_path else name
        recorder: _Recorder = self._self_recorder
        if path in recorder.kinds and callable(value):
            return recorder.wrapped(path, value)
        if recorder.is_on_the_way(path):
            return _RecordedMemory(value, recorder, path)
        return value
