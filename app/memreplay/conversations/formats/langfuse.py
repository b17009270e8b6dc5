"""Traces of Langfuse: traces or observations as a list or JSON Lines, a page of the API, a session, or a download.

A thread is the ``sessionId``, else the trace. A trace without input and output is read from its generations.
Source of the format: Langfuse's API reference (traces, observations, sessions), its guide to exports, and the
file that the Download button of a trace writes (``downloadTrace.ts`` in its repository).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import MessageReader, side
from memreplay.conversations.models import Conversation
from memreplay.conversations.traces import Call, read_calls
from memreplay.conversations.validation_errors import LoadCallbacks, Place
from memreplay.conversations.validation_errors import shown as in_words
from memreplay.errors import DatasetError

NAME = "Langfuse traces"
SIGNATURE = 'Langfuse traces (with "input", "output" and "sessionId", "traceId" or "observations")'

_GENERATION = "GENERATION"
_MARKS = frozenset({"sessionId", "traceId", "observations", "session_id", "trace_id"})


def detect(file: DatasetFile) -> bool:
    traced = {"input", "output"} & file.fields and _MARKS & file.fields
    whole = {"trace", "observations"} <= file.fields or {"id", "traces"} <= file.fields
    return bool(traced) or whole or file.fields >= {"data", "meta"}


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield a conversation for each session."""
    return read_calls(file, callbacks, _calls)


def _calls(value: Any, place: Place, reader: MessageReader) -> Iterator[Call | DatasetError]:
    meta = value.get("meta") if isinstance(value, dict) else None
    pages = meta.get("totalPages") if isinstance(meta, dict) else None
    if isinstance(pages, int) and pages > 1:
        reader.left_out.add("page", "of this export is not in the file", place, pages - 1)
    for at, trace, session in _traces(value, place):
        if isinstance(trace, dict):
            yield from _of_trace(trace, session, at, reader)
        else:
            yield at.error(f"is {in_words(trace)}", "a trace")


def _traces(value: Any, place: Place) -> Iterator[tuple[Place, Any, str | None]]:
    if isinstance(value, dict) and isinstance(value.get("trace"), dict):
        yield place.at("trace"), {**value["trace"], "observations": value.get("observations")}, None
        return
    for name in ("traces", "data"):
        if isinstance(value, dict) and isinstance(value.get(name), list):
            session = str(value["id"]) if name == "traces" else None
            yield from ((place.at(name, i), each, session) for i, each in enumerate(value[name]))
            return
    yield place, value, None


def _of_trace(trace: dict[str, Any], session: str | None, place: Place, reader: MessageReader) -> Iterator[Call]:
    named = trace.get("sessionId") or trace.get("session_id") or session
    thread = str(named or trace.get("traceId") or trace.get("trace_id") or trace.get("id"))
    if trace.get("type", _GENERATION) != _GENERATION:
        reader.left_out.add("observation", f"of type {trace['type']} is not shown", place)
        return
    inside = trace.get("observations")
    listed = [
        (place.at("observations", index), each)
        for index, each in enumerate(inside if isinstance(inside, list) else ())
        if isinstance(each, dict)
    ]
    call = _call(trace, thread, place, reader)
    if call.given or call.returned:
        yield call
        shown = {each.text for each in (*call.given, *call.returned)}
        for at, each in listed:
            own = _call(each, thread, at, MessageReader())
            if each.get("type") != _GENERATION or not shown.issuperset(m.text for m in (*own.given, *own.returned)):
                reader.left_out.add("observation", "inside a trace with messages is not shown", at)
        return
    if not listed:
        reader.left_out.add("trace", "without input and output is not shown", place)
    kinds = {each.get("type") for _, each in listed}
    for at, each in listed:
        is_outermost = _GENERATION not in kinds and not each.get("parentObservationId")
        if each.get("type") == _GENERATION or (is_outermost and (each.get("input") or each.get("output"))):
            yield _call(each, thread, at, reader)
        else:
            reader.left_out.add("observation", f"of type {each.get('type')} is not shown", at)


def _call(written: dict[str, Any], thread: str, place: Place, reader: MessageReader) -> Call:
    begun = next((written[name] for name in ("timestamp", "startTime", "start_time") if written.get(name)), None)
    return Call(
        thread=thread,
        at=reader.time(begun, place),
        order=str(written.get("id", "")),
        given=side(written.get("input"), "user", reader, place.at("input")),
        returned=side(written.get("output"), "assistant", reader, place.at("output")),
        place=place,
        name=str(written.get("name") or ""),
        trace=str(written.get("traceId") or written.get("trace_id") or written.get("id") or ""),
    )
