"""The body of an event as it stands in a recording: JSON with its long texts elsewhere; a big one is compressed.

Asks are never compressed, so that SQL can look into them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import orjson

from app.recording.interning import intern, resolve
from app.replay.events import REPLAY_EVENT, AskEvent, ReplayEvent

BIG = 1024
"""Bytes of JSON from which a body is compressed (zlib)."""

_FASTEST = 1
_REFERENCE = b'{"$'


def packed(event: ReplayEvent, keep: Callable[[str, str], None]) -> str | bytes:
    """An event as it is stored. ``keep`` is given each long text as (hash, text)."""
    body = orjson.dumps(intern(event.model_dump(mode="json"), keep))
    if len(body) < BIG or isinstance(event, AskEvent):
        return body.decode()
    return zlib.compress(body, _FASTEST)


def unpacked(body: str | bytes, look_up: Callable[[str], str]) -> ReplayEvent:
    """The event of a stored body."""
    return REPLAY_EVENT.validate_python(plain(body, look_up))


def plain(body: str | bytes, look_up: Callable[[str], str]) -> dict[str, Any]:
    """The JSON of a stored body, with its texts in their place."""
    data = zlib.decompress(body) if isinstance(body, bytes) else body.encode()
    parsed: dict[str, Any] = orjson.loads(data)
    return resolve(parsed, look_up) if _REFERENCE in data else parsed
