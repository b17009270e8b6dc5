"""OpenTelemetry spans as operations on a memory, and as what an agent and its model said.

Read are chat spans of the GenAI conventions in all their generations, its memory spans (``search_memory``,
``create_memory``, ``update_memory``, ``upsert_memory``, ``delete_memory``, ``delete_memory_store``, with
``gen_ai.memory.*``), memory-semconv (``memory.operation``), EverOS (``everos.memory.*``), Bedrock AgentCore's
(``CreateEvent`` and others with ``memory.id``), tools that manage or search a memory, and retriever spans of
OpenInference. Source of the shapes: docs/gen-ai of open-telemetry/semantic-conventions-genai, AWS's guide to
AgentCore's spans, and the repositories of the others. A thread is the conversation's id, else the trace.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from memreplay.capture.journal import Journal, Note
from memreplay.capture.langsmith import span_of_run
from memreplay.capture.operations import Kind, Operation, decoded, items_in, kind_by_name
from memreplay.conversations.formats.opentelemetry import THREADS, attributes_of, sides_of
from memreplay.conversations.messages import ChatMessage, LeftOut, MessageReader, side
from memreplay.conversations.validation_errors import Place
from memreplay.errors import DatasetError

_GEN_AI: Final[Mapping[str, Kind]] = {
    "search_memory": "read",
    "create_memory": "write",
    "update_memory": "write",
    "upsert_memory": "write",
    "delete_memory": "remove",
    "delete_memory_store": "clear",
    "create_memory_store": "state",
}
_WITHOUT_CONTENT: Final = (
    "without content (set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true where the agent runs)"
)
_NAMES_A_MEMORY: Final = ("memor", "remember", "recall")
_OF_AGENTCORE: Final[Mapping[str, Kind]] = {
    "CreateEvent": "write",
    "BatchCreateMemoryRecords": "write",
    "BatchUpdateMemoryRecords": "write",
    "RetrieveMemoryRecords": "read",
    "GetEvent": "get",
    "GetMemoryRecord": "get",
    "ListEvents": "list",
    "ListMemoryRecords": "list",
    "DeleteEvent": "remove",
    "DeleteMemoryRecord": "remove",
    "BatchDeleteMemoryRecords": "remove",
}
_OF_SEMCONV: Final[Mapping[str, Kind]] = {
    "cognify": "write",
    "memify": "write",
    "flush": "write",
    "prefetch": "read",
    "invalidate": "remove",
}
"""Kinds of operations of memory-semconv and EverOS whose names do not say it."""
_STEPS: Final = ("embed", "consolidate", "extract", "vector_store", "llm", "rerank", "graph")
"""Begin what follows ``memory.`` in the name of a span that is a part of an operation, and bears its attributes."""
_OWNERS: Final = (
    *("user.id", "enduser.id", "gen_ai.user.id", "memory.user_id", "memory.scope.user_id", "everos.user_id"),
    *("langfuse.user.id", "actor.id", "memory.scope.agent_id"),
)
_SESSIONS: Final = (
    *THREADS,
    *("gen_ai.session.id", "thread.id", "memory.session_id", "memory.scope.run_id"),
)
_STORES: Final = ("gen_ai.memory.store.id", "memory.store", "memory.store.id", "aws.bedrock.memory.id")
_QUERIES: Final = ("gen_ai.memory.query.text", "memory.query", "memory.query.text", "everos.query")
_INPUTS: Final = ("input.value", "langfuse.observation.input", "traceloop.entity.input")
_RESULTS: Final = (
    "gen_ai.tool.call.result",
    "gen_ai.retrieval.documents",
    "output.value",
    "langfuse.observation.output",
    "traceloop.entity.output",
)
_NANOSECONDS: Final = 1e9


def note_spans(journal: Journal, request: Any) -> int:
    """Note the spans of an OTLP request, a single span, or runs of LangSmith; returns their number."""
    spans = list(spans_of(request))
    for span, resource in spans:
        journal.note("span", _started(span), {"span": span, "resource": resource})
    return len(spans)


def spans_of(request: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the spans of an OTLP request, a single span, or runs of LangSmith, each with its resource."""
    found = False
    if not isinstance(request, dict):
        return
    for resource in _listed(request.get("resourceSpans") or request.get("resource_spans")):
        named = resource.get("resource") if isinstance(resource, dict) else None
        for scope in _listed(resource.get("scopeSpans") if isinstance(resource, dict) else None):
            for span in _listed(scope.get("spans") if isinstance(scope, dict) else None):
                found = True
                yield span, named
    for run in request["runs"] if isinstance(request.get("runs"), list) else [request]:
        if isinstance(run, dict) and "run_type" in run:
            found = True
            yield span_of_run(run), None
    if not found and "attributes" in request:
        yield dict(request), None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _started(span: Any) -> float:
    written = span.get("startTimeUnixNano") if isinstance(span, dict) else None
    try:
        at = float(str(written)) / _NANOSECONDS
    except ValueError:
        return time.time()
    return at if 0 < at < 1e11 else time.time()


def operations_of_span(note: Note, path: Path, left_out: LeftOut) -> Iterator[Operation]:
    """Yield the operation of a span; nothing for one that neither concerns a memory nor says anything."""
    place = Place(path, note.key)
    span = note.body.get("span")
    if not isinstance(span, dict):
        left_out.add("span", "that is no object is not shown", place)
        return
    try:
        attributes = attributes_of(span, place)
    except DatasetError:
        left_out.add("span", "whose attributes cannot be read is not shown", place)
        return
    resource = note.body.get("resource")
    common = {
        "note": note.key,
        "at": note.at,
        "ms": _duration(span),
        "owner": _first(attributes, _OWNERS),
        "session": _first(attributes, _SESSIONS) or str(span.get("traceId") or "") or None,
        "error": _error_of(span, attributes),
    }
    name = str(span.get("name") or "")
    operation = str(attributes.get("gen_ai.operation.name") or "")
    found = _kind(operation, name, attributes)
    if found is not None:
        kind, call = found
        yield from _memory(kind, call, common, attributes, resource, place, left_out)
        return
    given, returned = sides_of(span, attributes)
    if given is None and returned is None:
        what = "without content" if operation in ("chat", "text_completion", "generate_content") else ""
        if what:
            left_out.add("chat span", _WITHOUT_CONTENT, place)
        else:
            left_out.add("span", "without a memory or a message is not shown", place)
        return
    yield from _chat(common, given, returned, place, left_out)


def _kind(operation: str, name: str, attributes: Mapping[str, Any]) -> tuple[Kind, str] | None:
    """Return what a span does to a memory, and under which name; None if it concerns none."""
    if operation in _GEN_AI:
        return _GEN_AI[operation], operation
    if named := attributes.get("memory.operation"):
        return _named(str(named), name)
    if name.startswith("everos.memory.") or ".memory." in name:
        return _named(name.rpartition(".")[2], name)
    of_agentcore = str(attributes.get("rpc.method") or name.rpartition(".")[2])
    if of_agentcore in _OF_AGENTCORE and "memory.id" in attributes:
        return _OF_AGENTCORE[of_agentcore], of_agentcore
    tool = attributes.get("gen_ai.tool.name") or attributes.get("tool.name")
    if isinstance(tool, str) and any(part in tool.lower() for part in _NAMES_A_MEMORY):
        return _kind_of_tool(tool, attributes) or "read", tool
    if attributes.get("openinference.span.kind") == "RETRIEVER":
        return "read", name or "retrieve"
    return None


def _named(operation: str, span: str) -> tuple[Kind, str] | None:
    """Return what an operation of a memory does; None if the span is only a step of one, or nobody knows."""
    if span.startswith(tuple(f"memory.{step}" for step in _STEPS)):
        return None
    kind = _OF_SEMCONV.get(operation.lower()) or kind_by_name(operation)
    return None if kind is None else (kind, operation)


def _kind_of_tool(tool: str, attributes: Mapping[str, Any]) -> Kind | None:
    arguments = _arguments(attributes)
    action = arguments.get("action") if isinstance(arguments, dict) else None
    if tool == "manage_memory":
        return "remove" if action == "delete" else "write"
    return kind_by_name(tool)


def _arguments(attributes: Mapping[str, Any]) -> Any:
    for name in ("gen_ai.tool.call.arguments", "tool.parameters", *_INPUTS):
        if name in attributes:
            return decoded(attributes[name])
    return {}


def _memory(
    kind: Kind,
    call: str,
    common: dict[str, Any],
    attributes: Mapping[str, Any],
    resource: Any,
    place: Place,
    left_out: LeftOut,
) -> Iterator[Operation]:
    arguments = _arguments(attributes)
    arguments = arguments if isinstance(arguments, dict) else {}
    of_agentcore = call in _OF_AGENTCORE
    store = _first(attributes, ("memory.id", "namespace") if of_agentcore else _STORES)
    memory = "agentcore" if of_agentcore else _memory_of(attributes, resource)
    asked = next((str(arguments[name]) for name in ("query", "content", "input") if arguments.get(name)), "")
    query = _first(attributes, _QUERIES) or asked or _first(attributes, _INPUTS) or ""
    records = _records(attributes)
    items = tuple(items_in(records, store or ""))
    removed: tuple[str, ...] = ()
    named = ("memory.record.id", "event.id") if of_agentcore else ("memory.id", "memory.record.id")
    record = _first(attributes, ("gen_ai.memory.record.id", *named))
    if kind == "remove":
        removed = (record,) if record else tuple(item.id for item in items)
        items = ()
        kind = "remove" if removed else "clear"
        if not removed:
            left_out.add("memory span", "that deletes does not say what", place)
            return
    elif not items and kind == "write" and arguments:
        items = tuple(items_in([arguments], store or ""))
    is_silent = kind in ("read", "write") and not items and not _says_empty(attributes, records)
    is_silent = is_silent and common["error"] is None
    if is_silent:
        left_out.add("memory span", _WITHOUT_CONTENT, place)
    if kind == "state":
        return
    yield Operation(
        kind=kind,
        memory=memory or "memory",
        call=call,
        place=store or "",
        query=query if kind == "read" else "",
        items=items,
        removed=removed,
        is_silent=is_silent,
        **common,
    )


def _memory_of(attributes: Mapping[str, Any], resource: Any) -> str | None:
    """Return the name of a memory; memory-semconv may name it once for all spans of a process."""
    if name := _first(attributes, _MEMORIES):
        return name
    listed = resource.get("attributes") if isinstance(resource, dict) else None
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and each.get("key") == "memory.sut.name":
            value = each.get("value")
            return str(value.get("stringValue") or "") or None if isinstance(value, dict) else None
    return None


_MEMORIES: Final = ("gen_ai.provider.name", "gen_ai.system", "memory.provider", "memory.system", "memory.sut.name")


def _records(attributes: Mapping[str, Any]) -> Any:
    for name in ("gen_ai.memory.records", "memory.records", "memory.results", "everos.memory.results"):
        if name in attributes:
            return decoded(attributes[name])
    documents: dict[str, dict[str, Any]] = {}
    for name, value in attributes.items():
        if not name.startswith("retrieval.documents."):
            continue
        number, _, field = name.removeprefix("retrieval.documents.").partition(".document.")
        if field:
            documents.setdefault(number, {})[field] = value
    if documents:
        return list(documents.values())
    for name in _RESULTS:
        if name in attributes:
            return decoded(attributes[name])
    return None


def _says_empty(attributes: Mapping[str, Any], records: Any) -> bool:
    count = attributes.get("gen_ai.memory.record.count", attributes.get("memory.result.count"))
    return records == [] or str(count) == "0"


def _chat(
    common: dict[str, Any], given: Any, returned: Any, place: Place, left_out: LeftOut
) -> Iterator[Operation]:
    """Yield a call of the agent's model: what it was given is the prompt, what was said the conversation."""
    reader = MessageReader(left_out)
    try:
        asked = side(given, "user", reader, place) if given is not None else ()
        said = side(returned, "assistant", reader, place) if returned is not None else ()
    except DatasetError as error:
        left_out.add("chat span", f"is not shown: {error.problem}", place)
        return
    messages = tuple(each for each in (*asked, *said) if each.role != "other")
    yield Operation(kind="chat", memory="", call="chat", messages=messages, prompt=_in_words(asked), **common)


def _in_words(messages: tuple[ChatMessage, ...]) -> str:
    return "\n\n".join(f"{each.label or each.role}: {each.text}" for each in messages)


def _first(attributes: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((str(attributes[name]) for name in names if attributes.get(name) not in (None, "")), None)


def _duration(span: Mapping[str, Any]) -> float:
    try:
        ms = (float(str(span.get("endTimeUnixNano"))) - float(str(span.get("startTimeUnixNano")))) / 1e6
    except ValueError:
        return 0.0
    return round(ms, 3) if 0 <= ms < 1e9 else 0.0


def _error_of(span: Mapping[str, Any], attributes: Mapping[str, Any]) -> str | None:
    status = span.get("status")
    code = status.get("code") if isinstance(status, dict) else None
    if code in (2, "STATUS_CODE_ERROR", "ERROR"):
        message = status.get("message") if isinstance(status, dict) else None
        return str(message or attributes.get("error.type") or "failed")
    return None
