"""Runs of LangSmith as spans: its calls of tools and retrievers are what an agent did with its memory.

Source of the format: LangSmith's documentation, "Run (span) data format", and the tools of LangMem.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from memreplay.capture.operations import decoded
from memreplay.conversations.messages import moment

_THREADS = ("session_id", "thread_id", "conversation_id")
_OWNERS = ("user_id", "langgraph_auth_user_id")
_LONGEST_LITERAL = 100_000
_NEW_ITEM = re.compile(r"(?:created?|updated?|deleted?) memory ([\w-]{1,64})")
"""The answer of LangMem's tool that manages a memory: the id of an item is nowhere else."""


def span_of_run(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a span that says what a run says."""
    extra = decoded(run.get("extra"))
    metadata = extra.get("metadata") if isinstance(extra, dict) else None
    metadata = metadata if isinstance(metadata, dict) else {}
    known = {**metadata, **run}
    attributes = {
        "gen_ai.conversation.id": _first(known, ("thread_id",)) or _first(metadata, _THREADS),
        "user.id": _first(known, _OWNERS),
        **_attributes(run),
    }
    error = run.get("error")
    return {
        "traceId": str(run.get("trace_id") or run.get("id") or ""),
        "spanId": str(run.get("id") or ""),
        "name": str(run.get("name") or ""),
        "startTimeUnixNano": _nanoseconds(run.get("start_time")),
        "endTimeUnixNano": _nanoseconds(run.get("end_time")),
        "attributes": {name: value for name, value in attributes.items() if value is not None},
        "status": {"code": 2, "message": str(error)[:1000]} if error else {},
    }


def _attributes(run: Mapping[str, Any]) -> dict[str, Any]:
    given, returned = decoded(run.get("inputs")), decoded(run.get("outputs"))
    match run.get("run_type"):
        case "tool":
            arguments, result = _inside(given, "input"), _inside(returned, "output")
            if isinstance(result, dict) and "content" in result:
                result = decoded(result["content"])
            if isinstance(result, str) and isinstance(arguments, dict) and (named := _NEW_ITEM.match(result)):
                arguments = {"id": named[1], **{name: each for name, each in arguments.items() if each is not None}}
            return {
                "gen_ai.tool.name": str(run.get("name") or ""),
                "gen_ai.tool.call.arguments": arguments,
                "gen_ai.tool.call.result": result,
            }
        case "retriever":
            query = given.get("query", given.get("input")) if isinstance(given, dict) else given
            return {"openinference.span.kind": "RETRIEVER", "input.value": query, "output.value": returned}
        case "llm":
            return {"openinference.span.kind": "LLM", "input.value": given, "output.value": returned}
    return {}


def _inside(value: Any, name: str) -> Any:
    """Return what stands alone under a name: as JSON, or as Python writes it."""
    inside = decoded(value[name]) if isinstance(value, dict) and set(value) == {name} else value
    if isinstance(inside, str) and inside.startswith("{") and len(inside) <= _LONGEST_LITERAL:
        try:
            return ast.literal_eval(inside)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return inside
    return inside


def _first(known: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((str(known[name]) for name in names if known.get(name)), None)


def _nanoseconds(written: Any) -> str:
    at = moment(written)
    return "" if at is None else str(int(at.timestamp() * 1e6) * 1000)
