"""Events as JSON text in a recording; long texts are stored once, by hash, and referenced."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from memory_backends.storable import storable_value
from memreplay.engine.events import REPLAY_EVENT, ReplayEvent
from memreplay.errors import RecordingError

UNREADABLE = (sqlite3.Error, orjson.JSONDecodeError, ValidationError)
"""Errors that a damaged recording causes."""


_INCONSISTENT = (LookupError, TypeError, AttributeError, ValueError, OverflowError, AssertionError, RecursionError)
"""Errors of code that reads a recording whose rows contradict each other, such as a score without its question."""


class DamagedEventError(RecordingError):
    """An event cannot be read. The message lacks the file's name, which the reader adds."""


@contextmanager
def reporting_damage(path: Path) -> Iterator[None]:
    """Report damage that is found in this block in one sentence.

    Raises:
        RecordingError: something in the file is not what memreplay writes.
    """
    try:
        yield
    except DamagedEventError as error:
        raise RecordingError(f"{path}: {error}; expected what memreplay writes") from None
    except UNREADABLE as error:
        raise RecordingError(f"{path}: damaged: {_one_line(error)}; expected what memreplay writes") from None
    except _INCONSISTENT as error:
        what = f"{type(error).__name__}: {_one_line(error)}"
        raise RecordingError(
            f"{path}: damaged: its rows contradict each other ({what}); expected what memreplay writes"
        ) from error


def _one_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        place = "/".join(map(str, first["loc"]))
        return f"{place or 'a value'} cannot be used: {first['msg']}"
    return str(error).partition("\n")[0]


LONG_TEXT = 160
"""Texts of at least this many characters are stored once, in the table ``texts``."""

_REFERENCE = "$"


def text_hash(text: str) -> str:
    """128 bits of BLAKE2b, in hex."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def intern(value: Any, store: Callable[[str, str], None]) -> Any:
    """Replace long texts by references ``{"$": hash}``; pass each to ``store`` as (hash, text)."""
    match value:
        case str() if len(value) >= LONG_TEXT:
            digest = text_hash(value)
            store(digest, value)
            return {_REFERENCE: digest}
        case dict():
            interned = {key: intern(item, store) for key, item in value.items()}
            return {_escaped(key): item for key, item in interned.items()} if len(interned) == 1 else interned
        case list() | tuple():
            return [intern(item, store) for item in value]
        case _:
            return value


def resolve(value: Any, look_up: Callable[[str], str]) -> Any:
    """Replace references by their texts."""
    match value:
        case {"$": str(digest)} if len(value) == 1:
            return look_up(digest)
        case dict():
            resolved = {key: resolve(item, look_up) for key, item in value.items()}
            return {_unescaped(key): item for key, item in resolved.items()} if len(resolved) == 1 else resolved
        case list():
            return [resolve(item, look_up) for item in value]
        case _:
            return value


def _looks_like_reference(key: str) -> bool:
    return bool(key) and set(key) == {_REFERENCE}


def _escaped(key: str) -> str:
    return key + _REFERENCE if _looks_like_reference(key) else key


def _unescaped(key: str) -> str:
    return key[:-1] if _looks_like_reference(key) else key


def to_json(value: Any, option: int | None = None) -> bytes:
    """Plain data as JSON. What JSON and SQLite cannot hold is replaced (:mod:`memory_backends.storable`)."""
    try:
        return orjson.dumps(value, option=option)
    except TypeError:
        return orjson.dumps(storable_value(value), option=option)


def event_to_json(event: ReplayEvent, store: Callable[[str, str], None]) -> str:
    """The body of an event's row. Long texts go to ``store`` as (hash, text)."""
    fields = event.model_dump(mode="json")
    try:
        return orjson.dumps(intern(fields, store)).decode()
    except (TypeError, UnicodeEncodeError):
        # What is stored before the error stays in the table of texts, which does no harm.
        return orjson.dumps(intern(storable_value(fields), store)).decode()


def event_from_json(body: str, look_up: Callable[[str], str]) -> ReplayEvent:
    """The event of a row.

    Raises:
        DamagedEventError: the body is not an event's.
    """
    with reporting_damaged_event():
        return _validated(orjson.loads(body), body, look_up)


def ask_from_json(body: str, look_up: Callable[[str], str]) -> ReplayEvent:
    """The event of an ask without hits, cuts and the prompt's text, which are most of it and its slowest part.

    Raises:
        DamagedEventError: the body is not an event's.
    """
    with reporting_damaged_event():
        fields: dict[str, Any] = orjson.loads(body)
        fields.update((name, ()) for name in ("hits", "missed", "cut") if name in fields)
        judgement = fields.get("judgement", {})
        for message in (*fields.get("prompt", ()), *judgement.get("prompt", ())):
            message["segments"] = ()
        return _validated(fields, body, look_up)


def _validated(fields: dict[str, Any], body: str, look_up: Callable[[str], str]) -> ReplayEvent:
    has_references = f'{{"{_REFERENCE}' in body
    return REPLAY_EVENT.validate_python(resolve(fields, look_up) if has_references else fields)


@contextmanager
def reporting_damaged_event() -> Iterator[None]:
    """Report an event's body that is not what memreplay writes as a :class:`DamagedEventError`."""
    try:
        yield
    except (*UNREADABLE, *_INCONSISTENT) as error:
        raise DamagedEventError(f"a damaged event cannot be read: {_one_line(error)}") from None
