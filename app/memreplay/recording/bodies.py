"""The body of an event as it stands in a recording: JSON with its long texts elsewhere, a long one compressed.

Compression is zlib with a preset dictionary, so that even a short body of a known shape shrinks. Asks are never
compressed, so that SQL can look into them.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import ValidationError

from memreplay.engine.events import REPLAY_EVENT, AskEvent, ReplayEvent
from memreplay.errors import RecordingError

UNREADABLE = (sqlite3.Error, orjson.JSONDecodeError, ValidationError)
"""What reading a damaged recording ends in."""


class DamagedEventError(RecordingError):
    """An event cannot be read; of which file, whoever reads it knows."""


@contextmanager
def reporting_damage(path: Path) -> Iterator[None]:
    """Read a recording in this block, and have damage told in one sentence.

    Raises:
        RecordingError: something in the file is not what memreplay writes.
    """
    try:
        yield
    except DamagedEventError as error:
        raise RecordingError(f"{path}: {error}; expected what memreplay writes") from None
    except UNREADABLE as error:
        raise RecordingError(f"{path}: damaged: {in_short(error)}; expected what memreplay writes") from None


def in_short(error: Exception) -> str:
    """What is wrong, on one line."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        place = "/".join(map(str, first["loc"]))
        return f"{place or 'a value'} cannot be used: {first['msg']}"
    return str(error).partition("\n")[0]


LONG = 160
"""Texts of this many characters and more are stored once."""

_MARK = "$"


def text_hash(text: str) -> str:
    """128 bits of BLAKE2b, in hex."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def intern(value: Any, keep: Callable[[str, str], None]) -> Any:
    """Replace long texts by references; ``keep`` is given each as (hash, text)."""
    match value:
        case str() if len(value) >= LONG:
            digest = text_hash(value)
            keep(digest, value)
            return {_MARK: digest}
        case dict():
            interned = {key: intern(item, keep) for key, item in value.items()}
            return {_escaped(key): item for key, item in interned.items()} if len(interned) == 1 else interned
        case list() | tuple():
            return [intern(item, keep) for item in value]
        case _:
            return value


def resolve(value: Any, look_up: Callable[[str], str]) -> Any:
    """Put the texts back in the place of their references."""
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


def _is_mark(key: str) -> bool:
    return bool(key) and set(key) == {_MARK}


def _escaped(key: str) -> str:
    return key + _MARK if _is_mark(key) else key


def _unescaped(key: str) -> str:
    return key[:-1] if _is_mark(key) else key


LONG_BODY = 256
"""Bytes of JSON from which a body is compressed."""

_FASTEST = 1
_REFERENCE = b'{"$'
_GIVEN = frozenset({"hits", "missed", "cut"})

DICTIONARY: Final = b"".join(
    (
        b'"decision":{"kind":"decision","candidate_id":"","content":"User: ","slot":null,"sources":[""],"factors":'
        b'{"certainty":0.9,"impact":0.7,"age_days":0.0,"accesses":0,"age_decay":1.0,"recency_boost":1.0},"score":0.6'
        b',"threshold":0.6,"decision":"NO-OP","decision":"UPDATE","decision":"DROP","decision":"ADD","justification":'
        b'"Rule \xe2\x80\x9c\xe2\x80\x9d read , and it was known.","knowledge_id":null,"superseded_id":null}}',
        b'"confidence":0.9,"said_by":"User","slot":null,"value":"","several":false,"impact":0.7,"is_correction":false,'
        b'"taken_back":null,"sources":[""],"turn_number":1,"said_at":null,"rule":"',
        b'"payload":{"kind":"fact","id":"","content":"","slot":"user.","value":"","said_by":"User","significance":0.6,'
        b'"created_at":"2025-01-01T00:00:00.000Z","valid_from":"","valid_to":null,"superseded_by":null},"replaced":null}]}',
        b'"cut":[{"place":"full_history:","turns":["1","2","3","4","5","6","7","8","9","10"],"tokens":0}],"tokens":0,"ms":',
        b'{"conversation":"","turn":1,"backend":"full_context","kind":"observed","turns":["1","2"],"ms":0.1}',
        b'{"conversation":"","turn":1,"backend":"rag","kind":"background_work_settled","ms":0.1}',
        b'{"conversation":"","turn":1,"backend":"hybrid","kind":"perceived","hits":[{"id":"","store":"qdrant","place":'
        b'"goodai_ltm_full_history","place":"hybrid_knowledge","place":"hybrid_verbatim","rank":1,"score":0.5,"text":'
        b'{"$":""},"turns":["1","2"],"sources":[],"channels":{"dense":{"rank":1,"score":0.1},"dense_near":{"rank":2,'
        b'"score":0.2},"keyword":{"rank":3,"score":1.1},"keyword_near":{"rank":4,"score":1.2},"keyword_wide":{"rank":5'
        b',"score":1.3},"session":{"rank":6,"score":1.4},"speaker":{"rank":7,"score":0.0}},"tokens":50,"in_prompt":'
        b'false}],"missed":[],"in_prompt":true},{"id":"',
        b'"change":{"kind":"patch","steps":[{"op":"replace","path":"/shared_data/user.","value":{"value":"","turn":""},'
        b'{"op":"remove","path":"/scratchpad/noticed/0","value":null,"replaced":""},{"op":"add","path":'
        b'"/promotion_candidates/1.1","value":{"content":"User: "},"replaced":null},{"op":"replace","path":'
        b'"/scratchpad/status","value":"listening","replaced":"answering"},{"op":"replace","path":"/scratchpad/turn",'
        b'"value":"2","replaced":"1"},{"op":"replace","path":"/last_updated","value":"2025-01-01T00:00:00.000Z",'
        b'"replaced":"2025-01-01T00:00:00.000Z"}],"keyframe":null},"ms":',
        b'"change":{"kind":"publish","message":{},"receivers":0},"change":{"kind":"append","offset":0,"text":{"$":""}},'
        b'"change":{"kind":"upsert","points":[{"id":"","payload":{"id":"","content":{"$":""},"turn_number":2,'
        b'"timestamp":"2025-01-01T00:00:00.000Z"},"replaced":null}]},"ms":0.3,"phase":"observe","actor":"',
        b'{"conversation":"","turn":1,"backend":"rag","kind":"store_operated","operation":{"kind":"operation","store":"qdrant"'
        b',"command":"query_points","key":"goodai_ltm_full_history","change":{"kind":"search","query":{"$":""},"limit":'
        b'10,"found":[{"id":"","rank":1,"score":0.3},{"id":"","rank":2,"score":0.2}],"stored":10},"ms":1.0,"phase":'
        b'"perceive","actor":"rag_agent","turns":["1"],"error":null}}',
        b'{"conversation":"","turn":1,"backend":"hybrid","kind":"store_operated","operation":{"kind":"operation","store":'
        b'"redis","command":"SET","key":"shared_state:","command":"GET","key":"personal_state:consolidation_agent/"'
        b',"key":"personal_state:planner_agent/","change":{"kind":"read","found":true,"size":900},"ms":0.3,"phase":'
        b'"consolidate","phase":"observe","phase":"perceive","actor":"planner_agent/","turns":["1","2"],"error":null}}',
    )
)
"""What bodies have in common, the commonest last. It is part of the format: another one needs another version."""


def packed(event: ReplayEvent, keep: Callable[[str, str], None]) -> str | bytes:
    """An event as it is stored. ``keep`` is given each long text as (hash, text)."""
    body = orjson.dumps(intern(event.model_dump(mode="json"), keep))
    if len(body) < LONG_BODY or isinstance(event, AskEvent):
        return body.decode()
    compressor = zlib.compressobj(_FASTEST, zdict=DICTIONARY)
    return compressor.compress(body) + compressor.flush()


def whole(parsed: dict[str, Any]) -> None:
    """An event is read as it is."""


def without_what_was_given(parsed: dict[str, Any]) -> None:
    """An ask is read without what memory gave, and its prompt without its text: most of what is recorded of it."""
    parsed.update((name, ()) for name in _GIVEN & parsed.keys())
    for message in parsed.get("prompt", ()):
        message["segments"] = ()


def unpacked(
    body: str | bytes, look_up: Callable[[str], str], thin: Callable[[dict[str, Any]], None] = whole
) -> ReplayEvent:
    """The event of a stored body; ``thin`` takes out of its JSON what is not to be read.

    Raises:
        DamagedEventError: it is no event's.
    """
    data = inflated(body)
    try:
        parsed: dict[str, Any] = orjson.loads(data)
        thin(parsed)
        return REPLAY_EVENT.validate_python(resolve(parsed, look_up) if _REFERENCE in data else parsed)
    except UNREADABLE as error:
        raise DamagedEventError(f"a damaged event cannot be read: {in_short(error)}") from None


def inflated(body: str | bytes) -> bytes:
    """The JSON of a stored body.

    Raises:
        DamagedEventError: it is no event's.
    """
    if isinstance(body, str):
        return body.encode()
    try:
        return zlib.decompressobj(zdict=DICTIONARY).decompress(body)
    except zlib.error as error:
        raise DamagedEventError(f"a damaged event cannot be read: {error}") from None
