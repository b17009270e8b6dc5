"""OpenTelemetry spans of calls to models: OTLP JSON (``resourceSpans``), or spans as SDKs print them.

A thread is ``gen_ai.conversation.id`` or the session, else the trace. Read are ``gen_ai.input.messages`` and
``gen_ai.output.messages`` (structured or as JSON text, with ``gen_ai.system_instructions``), the numbered
attributes of OpenLLMetry (``gen_ai.prompt.0.content``) and OpenInference
(``llm.input_messages.0.message.content``, ``input.value``), the attributes of the AI SDK and Pydantic AI, and the
events before 1.37. Sources of the format: the semantic conventions for generative AI, those of OpenInference and
OpenLLMetry in their repositories, the telemetry of the AI SDK and Pydantic AI, and the JSON encoding of OTLP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import MessageReader, decoded, side
from memreplay.conversations.models import Conversation
from memreplay.conversations.traces import Call, read_calls
from memreplay.conversations.validation_errors import LoadCallbacks, Place, shown
from memreplay.errors import DatasetError

NAME = "OpenTelemetry spans"
SIGNATURE = 'OpenTelemetry spans (with "resourceSpans", or "attributes" and "context")'


_COLUMN = "attributes."
"""Begins the names of attributes in a table of Phoenix."""


def detect(file: DatasetFile) -> bool:
    of_sdk = "attributes" in file.fields and not file.fields.isdisjoint({"context", "traceId", "trace_id"})
    of_table = "context.trace_id" in file.fields and any(name.startswith(_COLUMN) for name in file.fields)
    return "resourceSpans" in file.fields or of_sdk or of_table or _is_page(file.first)


def _is_page(value: Any) -> bool:
    """Return whether a value is a page of spans, as Phoenix's server returns them."""
    listed = value.get("data") if isinstance(value, dict) else None
    first = listed[0] if isinstance(listed, list) and listed else None
    return isinstance(first, dict) and {"attributes", "context"} <= first.keys()


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield a conversation for each thread. Spans without messages are counted."""
    return read_calls(file, callbacks, _calls)


def _calls(value: Any, place: Place, reader: MessageReader) -> Iterator[Call | DatasetError]:
    for at, span in _spans_in(value, place):
        try:
            attributes = attributes_of(span, at)
        except DatasetError as error:
            yield error
            continue
        given, returned = sides_of(span, attributes)
        if given is not None or returned is not None:
            yield _call(span, attributes, given, returned, at, reader)
        else:
            reader.left_out.add("span", "without messages is not shown", at)


def _spans_in(value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    """Yield what stands in the place of spans, however deep. Go writes an empty list as null."""
    name = next((each for each in _LISTS if isinstance(value, dict) and each in value), None)
    if name is None or (name == "data" and not _is_page(value)):
        yield place, value
    elif isinstance(value[name], list):
        for index, each in enumerate(value[name]):
            yield from _spans_in(each, place.at(name, index))
    elif value[name] is not None:
        yield place.at(name), value[name]


_LISTS = ("resourceSpans", "scopeSpans", "spans", "data")


def attributes_of(span: Any, place: Place) -> dict[str, Any]:
    """Return the attributes of a span with dotted names.

    Raises:
        DatasetError: it is no object, or they are neither an object nor a list of keys and values.
    """
    if not isinstance(span, dict):
        raise place.error(f"is {shown(span)}", "a span, or a list of spans")
    columns = {name[len(_COLUMN) :]: each for name, each in span.items() if name.startswith(_COLUMN)}
    return _flattened(columns or _attributes(span.get("attributes"), place.at("attributes")))


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


def _flattened(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes with dotted names: Phoenix nests them in objects."""
    flat: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, dict) and name in _NESTED:
            flat |= {f"{name}.{inner}": each for inner, each in _flattened(value).items()}
        else:
            flat[name] = value
    return flat


_NESTED = frozenset(
    ("llm", "input", "output", "openinference", "span", "session", "gen_ai", "conversation", "messages", "prompt")
)


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


def sides_of(span: dict[str, Any], attributes: dict[str, Any]) -> tuple[Any, Any]:
    """Return the input and the output of a span: each in the first generation of attributes or events that has it.

    A span may have its input in one and its output in another.
    """
    given = returned = None
    for one, other in _generations(span, attributes):
        given, returned = given or one or None, returned or other or None
        if given and returned:
            break
    return given, returned


def _generations(span: dict[str, Any], attributes: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the input and the output as each generation of attributes or events holds them."""
    instructions, messages = attributes.get("gen_ai.system_instructions"), attributes.get("gen_ai.input.messages")
    yield _with_system(instructions, messages), attributes.get("gen_ai.output.messages")
    if "ai.prompt.messages" in attributes:
        yield attributes["ai.prompt.messages"], _of_ai_sdk(attributes)
    for name in ("pydantic_ai.all_messages", "all_messages_events"):
        if isinstance(messages := decoded(attributes.get(name)), list):
            yield _split_at_the_reply(messages)
    for prefix, suffix in (("gen_ai.prompt", "gen_ai.completion"), ("llm.input_messages", "llm.output_messages")):
        yield _numbered(attributes, prefix), _numbered(attributes, suffix)
    yield _in_events(span)
    if attributes.get("openinference.span.kind") in ("LLM", "CHAIN", "AGENT"):
        yield attributes.get("input.value"), attributes.get("output.value")


def _of_ai_sdk(attributes: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the reply in a span of the AI SDK."""
    text, calls = attributes.get("ai.response.text"), decoded(attributes.get("ai.response.toolCalls"))
    parts = [{"type": "text", "text": text}] if isinstance(text, str) and text else []
    parts += [{"type": "tool-call", **each} for each in calls or () if isinstance(each, dict)]
    return [{"role": "assistant", "content": parts}] if parts else None


def _split_at_the_reply(messages: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return all messages of an agent's run as its input and the reply at their end."""
    end = len(messages)
    while end and isinstance(messages[end - 1], dict) and messages[end - 1].get("role") == "assistant":
        end -= 1
    return messages[:end], messages[end:]


def _with_system(instructions: Any, given: Any) -> Any:
    parts, messages = decoded(instructions), decoded(given)
    if not parts or not isinstance(messages, list):
        return messages
    return [{"role": "system", "parts": parts if isinstance(parts, list) else [parts]}, *messages]


_INDEX = re.compile(r"\.(\d+)\.(?:message\.)?(.+)")
_TOOL_FIELD = re.compile(r"tool_calls\.(\d+)\.(?:tool_call\.)?(?:function\.)?(id|name|arguments)")
_CONTENT_FIELD = re.compile(r"contents?\.(\d+)\.message_content\.(\w+)")


def _numbered(attributes: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the messages whose fields are attributes with numbers: ``gen_ai.prompt.0.content``."""
    if isinstance(attributes.get(prefix), list):
        return [_listed(each) for each in attributes[prefix] if isinstance(each, dict)]
    found: dict[int, dict[str, Any]] = {}
    calls: dict[tuple[int, int], dict[str, Any]] = {}
    parts: dict[tuple[int, int], dict[str, Any]] = {}
    for key, value in attributes.items():
        place = _INDEX.fullmatch(key[len(prefix) :]) if key.startswith(f"{prefix}.") else None
        if place is None:
            continue
        number, name = int(place[1]), place[2]
        message = found.setdefault(number, {})
        call, part = _TOOL_FIELD.fullmatch(name), _CONTENT_FIELD.fullmatch(name)
        if call:
            calls.setdefault((number, int(call[1])), {})[call[2]] = value
        elif part:
            parts.setdefault((number, int(part[1])), {})[part[2]] = value
        elif name in ("role", "content", "name", "tool_call_id", "reasoning"):
            message[name] = decoded(value) if _is_list(value) else value
    for (number, _), call_fields in sorted(calls.items()):
        found[number].setdefault("tool_calls", []).append(call_fields)
    for (number, _), part_fields in sorted(parts.items()):
        found[number].setdefault("content", []).append(part_fields)
    default = "assistant" if "completion" in prefix or "output" in prefix else "user"
    return [{"role": default, **found[number]} for number in sorted(found)]


def _listed(written: dict[str, Any]) -> dict[str, Any]:
    """Return a message of OpenInference from its object, or from fields with dotted names."""
    dotted = {name.removeprefix("message."): each for name, each in written.items() if name.startswith("message.")}
    message = written.get("message", dotted or written)
    contents = message.get("contents") if isinstance(message, dict) else None
    if isinstance(contents, list):
        return {**message, "content": [c.get("message_content", c) for c in contents if isinstance(c, dict)]}
    return message if isinstance(message, dict) else {"content": message}


def _is_list(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("[{")


_EVENT = re.compile(r"gen_ai\.(system|user|assistant|tool|choice|content\.prompt|content\.completion)(\.message)?")


def _in_events(span: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return the messages in the events of a span, as before 1.37."""
    given: list[Any] = []
    returned: list[Any] = []
    events = span.get("events")
    for event in events if isinstance(events, list) else ():
        if not isinstance(event, dict):
            continue
        fields = _attributes(event.get("attributes"), Place(Path("event")))
        named = _EVENT.fullmatch(str(event.get("name") or fields.get("event.name") or ""))
        if named is None:
            if "gen_ai.input.messages" in fields or "gen_ai.output.messages" in fields:
                given += _as_list(
                    _with_system(fields.get("gen_ai.system_instructions"), fields.get("gen_ai.input.messages"))
                )
                returned += _as_list(decoded(fields.get("gen_ai.output.messages")))
            continue
        body = decoded(
            fields.get("gen_ai.prompt", fields.get("gen_ai.completion", fields.get("body", event.get("body"))))
        )
        body = body if body is not None else fields
        if named[1] == "choice":
            message = decoded(body.get("message", body)) if isinstance(body, dict) else body
            message = message if isinstance(message, dict) else {"content": message}
            returned.append({"role": "assistant", **message})
        elif named[1].startswith("content"):
            (given if named[1].endswith("prompt") else returned).extend(_as_list(body))
        elif isinstance(body, dict):
            given.append({"role": named[1], **body})
    return given, returned


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


THREADS = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
)
"""Attributes that name the conversation of a span."""


def _call(
    span: dict[str, Any], attributes: dict[str, Any], given: Any, returned: Any, place: Place, reader: MessageReader
) -> Call:
    context = span["context"] if isinstance(span.get("context"), dict) else span
    trace = str(context.get("traceId", context.get("trace_id", span.get("context.trace_id", ""))))
    begun = span.get("startTimeUnixNano", span.get("start_time", span.get("start_time_unix_nano")))
    inside = place.at("attributes")
    return Call(
        thread=str(next((attributes[name] for name in THREADS if attributes.get(name)), trace)),
        at=reader.time(begun, place),
        order=str(context.get("spanId", context.get("span_id", span.get("context.span_id", "")))),
        given=side(given, "user", reader, inside.at("gen_ai.input.messages")),
        returned=side(returned, "assistant", reader, inside.at("gen_ai.output.messages")),
        place=place,
        name=str(span.get("name") or ""),
        trace=trace,
    )
