"""OpenTelemetry spans of calls to models: OTLP JSON (``resourceSpans``), or spans as SDKs print them.

A thread is ``gen_ai.conversation.id``, else the trace. The attributes ``gen_ai.input.messages`` and
``gen_ai.output.messages`` are read, structured or as JSON text. Source of the format: the semantic conventions for
generative AI (1.37) and the JSON encoding of OTLP.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import Call, messages_in, moment, threads
from memreplay.conversations.models import Conversation
from memreplay.conversations.validation_errors import LoadCallbacks, Place, shown
from memreplay.errors import DatasetError

NAME = "OpenTelemetry spans"
SIGNATURE = 'OpenTelemetry spans (with "resourceSpans", or "attributes" and "context")'

_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"


def detect(file: DatasetFile) -> bool:
    of_sdk = "attributes" in file.fields and not file.fields.isdisjoint({"context", "traceId", "trace_id"})
    return "resourceSpans" in file.fields or of_sdk


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield a conversation for each thread. Spans without messages are passed over."""
    return threads(file, _calls(file, callbacks), callbacks)


def _calls(file: DatasetFile, callbacks: LoadCallbacks) -> Iterator[Call]:
    for place, value in file.values(callbacks):
        try:
            for at, span in _spans(value, place):
                attributes = _attributes(span.get("attributes"), at.at("attributes"))
                if _INPUT in attributes or _OUTPUT in attributes:
                    yield _call(span, attributes, at.at("attributes"))
        except DatasetError as error:
            callbacks.on_error(error)


def _spans(value: Any, place: Place) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield the spans, however deep they stand."""
    if not isinstance(value, dict):
        raise place.error(f"is {shown(value)}", "a span, or an object with resourceSpans")
    for name in ("resourceSpans", "scopeSpans", "spans"):
        if name in value:
            if not isinstance(value[name], list):
                raise place.at(name).error(f"is {shown(value[name])}", "a list")
            for index, each in enumerate(value[name]):
                yield from _spans(each, place.at(name, index))
            return
    yield place, value


def _attributes(written: Any, place: Place) -> dict[str, Any]:
    if isinstance(written, dict):
        return written
    if written is None:
        return {}
    if not isinstance(written, list):
        raise place.error(f"is {shown(written)}", "a list of key and value, or an object")
    return {
        str(each["key"]): _plain(each.get("value")) for each in written if isinstance(each, dict) and "key" in each
    }


def _plain(value: Any) -> Any:
    """Return a value of OTLP's AnyValue."""
    match value:
        case {"arrayValue": {"values": list(values)}}:
            return [_plain(each) for each in values]
        case {"kvlistValue": {"values": list(values)}}:
            return {
                str(each["key"]): _plain(each.get("value"))
                for each in values
                if isinstance(each, dict) and "key" in each
            }
        case dict() if len(value) == 1:
            return next(iter(value.values()))
    return value


def _call(span: dict[str, Any], attributes: dict[str, Any], place: Place) -> Call:
    context = span["context"] if isinstance(span.get("context"), dict) else span
    trace = context.get("traceId", context.get("trace_id"))
    return Call(
        thread=str(attributes.get("gen_ai.conversation.id") or trace),
        at=moment(span.get("startTimeUnixNano", span.get("start_time"))),
        order=str(context.get("spanId", context.get("span_id", ""))),
        given=messages_in(_decoded(attributes.get(_INPUT), place.at(_INPUT)), "user", place.at(_INPUT)),
        returned=messages_in(_decoded(attributes.get(_OUTPUT), place.at(_OUTPUT)), "assistant", place.at(_OUTPUT)),
    )


def _decoded(value: Any, place: Place) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        raise place.error("is not JSON", "messages as JSON") from None
