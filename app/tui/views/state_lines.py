"""A JSON state as lines, with what changed since the position before: ``+`` added, ``−`` removed, ``~`` changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final, Literal

from app.replay.fold import Missing
from app.tui.text import Line, Span, Tone, visible

Sign = Literal[" ", "+", "−", "~"]

_TONE: Final[dict[Sign, Tone]] = {" ": "plain", "+": "added", "−": "removed", "~": "changed"}
_INDENT = 2
_SHORT = 60
_ROWS_OF_WHAT_IS_GONE = 2


@dataclass(frozen=True)
class StateLines:
    """The lines of a state, and which of them is the first that changed; None where nothing did."""

    lines: tuple[Line, ...]
    first_change: int | None


def state_lines(before: Any, after: Any) -> StateLines:
    """The state ``after``, marked by how it differs from ``before``. Either may be missing."""
    if isinstance(after, Missing):
        gone = () if isinstance(before, Missing) else (_gone(0, "", before),)
        return StateLines(gone, 0 if gone else None)
    if isinstance(before, Missing):
        return StateLines(tuple(_value("+", 0, "", after, "")), 0)
    lines: list[Line] = []
    first: int | None = None
    for sign, line in _compared(0, "", before, after, ""):
        if sign != " " and first is None:
            first = len(lines)
        lines.append(line)
    return StateLines(tuple(lines), first)


def _compared(depth: int, label: str, before: Any, after: Any, comma: str) -> Iterator[tuple[Sign, Line]]:
    if before == after and type(before) is type(after):
        for line in _value(" ", depth, label, after, comma):
            yield " ", line
    elif isinstance(before, Mapping) and isinstance(after, Mapping) and before and after:
        yield " ", _line(" ", depth, label, "{")
        yield from _compared_members(depth + 1, before, after)
        yield " ", _line(" ", depth, "", "}" + comma)
    elif isinstance(before, list) and isinstance(after, list) and before and after:
        yield " ", _line(" ", depth, label, "[")
        yield from _compared_items(depth + 1, before, after)
        yield " ", _line(" ", depth, "", "]" + comma)
    else:
        yield from _replaced(depth, label, before, after, comma)


def _compared_members(
    depth: int, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[Sign, Line]]:
    for index, (key, value) in enumerate(after.items(), start=1):
        comma = "," if index < len(after) else ""
        if key in before:
            yield from _compared(depth, key, before[key], value, comma)
        else:
            for line in _value("+", depth, key, value, comma):
                yield "+", line
    for key, value in before.items():
        if key not in after:
            yield "−", _gone(depth, key, value)


def _compared_items(depth: int, before: Sequence[Any], after: Sequence[Any]) -> Iterator[tuple[Sign, Line]]:
    matcher = SequenceMatcher(None, [_json(item) for item in before], [_json(item) for item in after], False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind != "equal":
            for item in before[i1:i2]:
                yield "−", _gone(depth, "", item)
        sign: Sign = " " if kind == "equal" else "+"
        for index in range(j1, j2):
            for line in _value(sign, depth, "", after[index], "," if index + 1 < len(after) else ""):
                yield sign, line


def _replaced(depth: int, label: str, before: Any, after: Any, comma: str) -> Iterator[tuple[Sign, Line]]:
    lines = list(_value("~", depth, label, after, comma))
    was = Span(f"   was {visible(_json(before))}", "dim")
    lines[-1] = Line((*lines[-1].spans, was), hang=lines[-1].hang)
    for line in lines:
        yield "~", line


def _value(sign: Sign, depth: int, label: str, value: Any, comma: str) -> Iterator[Line]:
    """All lines of a value; one line where it is short enough to be read on one."""
    text = _json(value)
    container = isinstance(value, Mapping | list) and bool(value)
    if not container or (len(text) <= _SHORT and not _nested(value)):
        yield _line(sign, depth, label, text + comma)
        return
    opening, closing = ("{", "}") if isinstance(value, Mapping) else ("[", "]")
    yield _line(sign, depth, label, opening)
    members = list(value.items()) if isinstance(value, Mapping) else [("", item) for item in value]
    for index, (key, item) in enumerate(members, start=1):
        yield from _value(sign, depth + 1, key, item, "," if index < len(members) else "")
    yield _line(sign, depth, "", closing + comma)


def _gone(depth: int, label: str, value: Any) -> Line:
    line = _line("−", depth, label, _json(value))
    return Line(line.spans, line.hang, most=_ROWS_OF_WHAT_IS_GONE)


def _nested(value: Mapping[str, Any] | list[Any]) -> bool:
    items = value.values() if isinstance(value, Mapping) else value
    return any(isinstance(item, Mapping | list) and item for item in items)


def _line(sign: Sign, depth: int, label: str, text: str) -> Line:
    tone = _TONE[sign]
    margin = " " * (_INDENT * depth)
    name = (Span(f"{visible(_json(label))}: ", tone if sign != " " else "key"),) if label else ()
    return Line(
        (Span(f"{sign} ", tone), Span(margin), *name, Span(visible(text), tone)),
        hang=2 + _INDENT * (depth + 1),
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
