"""Traces exported from Langfuse: traces or observations as a list or JSON Lines, a page of the API, or a session.

A thread is the ``sessionId``, else the trace. A trace without input and output is read from its generations. Source
of the format: Langfuse's API reference (traces, observations, sessions) and its guide to exports.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import Call, messages_in, moment, threads
from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import LoadCallbacks, Place, shown
from memreplay.errors import DatasetError

NAME = "Langfuse traces"
SIGNATURE = 'Langfuse traces (with "input", "output" and "sessionId", "traceId" or "observations")'

_MARKS = frozenset({"sessionId", "traceId", "observations", "session_id"})


def detect(file: DatasetFile) -> bool:
    traced = {"input", "output"} & file.fields and _MARKS & file.fields
    return bool(traced) or file.fields >= {"data", "meta"} or {"id", "traces"} <= file.fields


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield a conversation for each session."""
    return threads(file, _calls(file, callbacks), callbacks)


def _calls(file: DatasetFile, callbacks: LoadCallbacks) -> Iterator[Call]:
    for place, value in file.values(callbacks):
        for at, trace, session in _traces(value, place):
            try:
                if not isinstance(trace, dict):
                    raise at.error(f"is {shown(trace)}", "a trace")
                yield from _of_trace(trace, session, at)
            except DatasetError as error:
                callbacks.on_error(error)


def _traces(value: Any, place: Place) -> Iterator[tuple[Place, Any, str | None]]:
    for name in ("traces", "data"):
        if isinstance(value, dict) and isinstance(value.get(name), list):
            session = str(value["id"]) if name == "traces" else None
            yield from ((place.at(name, i), each, session) for i, each in enumerate(value[name]))
            return
    yield place, value, None


def _of_trace(trace: dict[str, Any], session: str | None, place: Place) -> Iterator[Call]:
    named = trace.get("sessionId") or trace.get("session_id") or session
    thread = str(named or trace.get("traceId") or trace.get("id"))
    if trace.get("type", "GENERATION") != "GENERATION":
        return
    call = _call(trace, thread, place)
    if call.given or call.returned:
        yield call
        return
    inside = trace.get("observations")
    for index, each in enumerate(inside if isinstance(inside, list) else ()):
        if isinstance(each, dict) and each.get("type") == "GENERATION":
            yield _call(each, thread, place.at("observations", index))


def _call(written: dict[str, Any], thread: str, place: Place) -> Call:
    return Call(
        thread=thread,
        at=moment(written.get("timestamp", written.get("startTime"))),
        order=str(written.get("id", "")),
        given=messages_in(written.get("input"), "user", place.at("input")),
        returned=messages_in(written.get("output"), "assistant", place.at("output")),
    )
