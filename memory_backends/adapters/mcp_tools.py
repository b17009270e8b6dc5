"""Which tools of an MCP server add, search and list memories, and what their results say.

They are found by name, or named: ``mcp[add=TOOL.ARGUMENT search=TOOL.ARGUMENT list=TOOL]:COMMAND``. A server
without a tool that lists cannot show what it holds.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memory_backends.base import BackendError

Use = Literal["add", "search", "list"]

_NAME = re.compile(r"mcp(?:\[(?P<tools>[^\]]*)\])?:(?P<command>.+)", re.DOTALL)
_NAMED = re.compile(r"(?P<use>add|search|list)=(?P<tool>[^.\s]+)(?:\.(?P<argument>\S+))?")
_LIKELY: Mapping[Use, re.Pattern[str]] = {
    "add": re.compile(r"(^|[_-])(add|store|save|remember|retain|write|insert)([_-]|$)", re.IGNORECASE),
    "search": re.compile(r"(^|[_-])(search|query|retrieve|recall|find)([_-]|$)", re.IGNORECASE),
    "list": re.compile(r"(^|[_-])(list|get[_-]all|dump)([_-]|$)", re.IGNORECASE),
}
_TEXTS = ("memory", "text", "content", "fact", "document", "value")
"""Fields of an item that may hold its text, in order of preference."""
_LIMITS = ("limit", "top_k", "k", "n_results", "max_results")


@dataclass(frozen=True)
class Tool:
    """A tool, the argument that takes the text, and the one that takes the number of results, if any."""

    name: str
    argument: str | None = None
    takes_a_list: bool = False
    limit: str | None = None

    def arguments(self, text: str, most: int) -> dict[str, Any]:
        """What to call it with."""
        given: dict[str, Any] = {self.argument: [text] if self.takes_a_list else text} if self.argument else {}
        return given | ({self.limit: most} if self.limit else {})


def read_name(spelled: str) -> tuple[dict[Use, Tool], str]:
    """The named tools, and the command. Raises :class:`BackendError`."""
    match = _NAME.fullmatch(spelled)
    expected = 'expected "mcp:COMMAND" or "mcp[add=TOOL.ARGUMENT search=TOOL.ARGUMENT list=TOOL]:COMMAND"'
    if match is None or not match["command"].strip():
        raise BackendError(f"{spelled!r} names no MCP server; {expected}")
    tools: dict[Use, Tool] = {}
    for part in (match["tools"] or "").split():
        named = _NAMED.fullmatch(part)
        if named is None:
            raise BackendError(f"{part!r} names no tool; {expected}")
        tools[named["use"]] = Tool(named["tool"], named["argument"])  # type: ignore[index]  # one of Use
    try:
        shlex.split(match["command"])
    except ValueError as error:
        raise BackendError(f"the command of the MCP server cannot be read: {error}") from None
    return tools, match["command"]


def tool_for(use: Use, named: Mapping[Use, Tool], listed: Sequence[Any]) -> Tool | None:
    """The tool for a use; None if there is no tool that lists. Raises :class:`BackendError`."""
    schemas = {
        tool.name: getattr(tool, "input_schema", None) or getattr(tool, "inputSchema", {}) for tool in listed
    }
    if use in named:
        chosen = [named[use].name] if named[use].name in schemas else []
    else:
        chosen = [
            name
            for name in schemas
            if _LIKELY[use].search(name) and (use != "list" or not _required(schemas[name]))
        ]
    if len(chosen) != 1:
        if use == "list" and use not in named:
            return None
        have = ", ".join(f"{name}({', '.join(schema.get('properties', {}))})" for name, schema in schemas.items())
        raise BackendError(
            f"which tool of the MCP server is to {use} memories? Name it: mcp[{use}=TOOL.ARGUMENT]:COMMAND."
            f" It has {have or 'none'}"
        )
    fields = schemas[chosen[0]].get("properties", {})
    limit = next((name for name in _LIMITS if name in fields), None)
    argument = named[use].argument if use in named else None
    if use != "list" and argument is None:
        required = _required(schemas[chosen[0]]) or list(fields)
        if len(required) != 1:
            raise BackendError(
                f"which argument of {chosen[0]} takes the text? Name it: mcp[{use}={chosen[0]}.ARGUMENT]:COMMAND."
                f" It has {', '.join(fields) or 'none'}"
            )
        argument = required[0]
    takes_a_list = bool(argument) and fields.get(argument, {}).get("type") == "array"
    return Tool(chosen[0], argument, takes_a_list, limit)


def _required(schema: Mapping[str, Any]) -> list[str]:
    return [str(name) for name in schema.get("required", ())]


def items_of(result: Any) -> Iterator[tuple[str, str, float | None]]:
    """Id, text and score of each item in a tool's result."""
    structured = getattr(result, "structured_content", getattr(result, "structuredContent", None))
    values = (
        [structured] if structured else [_parsed(block.text) for block in result.content if hasattr(block, "text")]
    )
    for value in values:
        for item in _listed(value):
            text = _text(item)
            if text.strip():
                digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
                known = item if isinstance(item, Mapping) else {}
                score = known.get("score")
                yield str(known.get("id") or digest), text, float(score) if isinstance(score, int | float) else None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _listed(value: Any) -> list[Any]:
    """The items of a result: a list, or the one list in an object, else the value itself."""
    if isinstance(value, list):
        return value
    if isinstance(value, Mapping):
        lists = [inner for inner in value.values() if isinstance(inner, list)]
        if len(lists) == 1:
            return lists[0]
        if set(value) == {"result"}:
            return _listed(_parsed(value["result"]) if isinstance(value["result"], str) else value["result"])
    return [value]


def _text(item: Any) -> str:
    if isinstance(item, Mapping):
        named = next((item[name] for name in _TEXTS if isinstance(item.get(name), str)), None)
        return named if named is not None else json.dumps(item, ensure_ascii=False)
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
