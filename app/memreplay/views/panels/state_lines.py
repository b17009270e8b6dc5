"""A JSON state as lines, diffed against an earlier one: ``+`` added, ``−`` removed, ``~`` changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any, Final, Literal

from memreplay.timeline.fold import MissingValue, Path
from memreplay.views.text import Line, Span, Tone, line, visible

_ROWS_AROUND = 2
_NOTHING: Final = Span("  (this key does not exist here)", "dim")
_SIGNS: Final[Mapping[str, tuple[tuple[str, Tone], tuple[str, Tone]]]] = {
    "equal": (("  ", "plain"), ("  ", "plain")),
    "replace": (("~ ", "changed"), ("~ ", "changed")),
    "delete": (("− ", "removed"), ("  ", "plain")),
    "insert": (("  ", "plain"), ("+ ", "added")),
}


def sides(before: Any, after: Any) -> tuple[list[Line], list[Line]]:
    """Two columns of equal length, before and after. Either value may be missing."""
    old, new = _text(before), _text(after)
    left: list[Line] = [line(_NOTHING)] if isinstance(before, MissingValue) else []
    right: list[Line] = [line(_NOTHING)] if isinstance(after, MissingValue) else []
    for group in SequenceMatcher(None, old, new, False).get_grouped_opcodes(_ROWS_AROUND):
        if group[0][1] or group[0][3]:
            _both(left, right, line(Span("  ⋯", "dim")))
        for kind, i1, i2, j1, j2 in group:
            for place in range(max(i2 - i1, j2 - j1)):
                left.append(_side(old, i1 + place, i2, *_SIGNS[kind][0]))
                right.append(_side(new, j1 + place, j2, *_SIGNS[kind][1]))
    if not left and not right:
        _both(left, right, line(Span("  nothing changed", "dim")))
    return left, right


def _both(left: list[Line], right: list[Line], one: Line) -> None:
    left.append(one)
    right.append(one)


def _side(lines: list[str], at: int, end: int, sign: str, tone: Tone) -> Line:
    if at >= end:
        return line("")
    return line(Span(sign, tone), Span(visible(lines[at]), tone), most=1)


def _text(value: Any) -> list[str]:
    return [] if isinstance(value, MissingValue) else json.dumps(value, ensure_ascii=False, indent=2).split("\n")


Sign = Literal[" ", "+", "−", "~"]

_TONE: Final[dict[Sign, Tone]] = {" ": "plain", "+": "added", "−": "removed", "~": "changed"}
_INDENT = 2
_SHORT = 60
_ROWS_OF_REMOVED = 2
_AROUND = 1


@dataclass(frozen=True)
class StateLines:
    """The lines of a state, and the index of the first changed one; None if nothing changed.

    ``about`` of a line is its path in the state; closing brackets and removed items have none.
    ``changed`` holds the indexes of the marked lines, if two values were compared.
    """

    lines: tuple[Line, ...]
    first_change: int | None
    changed: frozenset[int] = frozenset()


def state_lines(before: Any, after: Any) -> StateLines:
    """The state ``after``, marked where it differs from ``before``. Either may be missing."""
    if isinstance(after, MissingValue):
        removed = () if isinstance(before, MissingValue) else (_removed(0, "", before, ()),)
        return StateLines(removed, 0 if removed else None)
    if isinstance(before, MissingValue):
        return StateLines(tuple(_value("+", 0, "", after, "", ())), 0)
    compared = list(_compared(0, "", before, after, "", ()))
    changed = [number for number, (sign, _) in enumerate(compared) if sign != " "]
    return StateLines(tuple(line for _, line in compared), min(changed, default=None), frozenset(changed))


def folded(state: StateLines) -> StateLines:
    """The same state with unchanged stretches folded, except one line around each change."""
    if state.first_change is None:
        return StateLines((_fold(len(state.lines)),) if state.lines else (), None)
    if not state.changed:
        return state
    kept = {near for number in state.changed for near in range(number - _AROUND, number + _AROUND + 1)}
    lines: list[Line] = []
    first: int | None = None
    hidden = 0
    for number, each in enumerate(state.lines):
        if number not in kept:
            hidden += 1
            continue
        if hidden:
            lines.append(_fold(hidden))
            hidden = 0
        if number == state.first_change:
            first = len(lines)
        lines.append(each)
    if hidden:
        lines.append(_fold(hidden))
    return StateLines(tuple(lines), first)


def _fold(count: int) -> Line:
    return Line((Span(f"  ⋯ {count} unchanged", "dim"),), hang=2)


def _compared(
    depth: int, label: str, before: Any, after: Any, comma: str, path: Path
) -> Iterator[tuple[Sign, Line]]:
    if before == after and type(before) is type(after):
        for each in _value(" ", depth, label, after, comma, path):
            yield " ", each
    elif isinstance(before, Mapping) and isinstance(after, Mapping) and before and after:
        yield " ", _line(" ", depth, label, "{", path)
        yield from _compared_members(depth + 1, before, after, path)
        yield " ", _line(" ", depth, "", "}" + comma, None)
    elif isinstance(before, list) and isinstance(after, list) and before and after:
        yield " ", _line(" ", depth, label, "[", path)
        yield from _compared_items(depth + 1, before, after, path)
        yield " ", _line(" ", depth, "", "]" + comma, None)
    else:
        yield from _replaced(depth, label, before, after, comma, path)


def _compared_members(
    depth: int, before: Mapping[str, Any], after: Mapping[str, Any], path: Path
) -> Iterator[tuple[Sign, Line]]:
    for index, (key, value) in enumerate(after.items(), start=1):
        comma = "," if index < len(after) else ""
        if key in before:
            yield from _compared(depth, key, before[key], value, comma, (*path, key))
        else:
            for each in _value("+", depth, key, value, comma, (*path, key)):
                yield "+", each
    for key, value in before.items():
        if key not in after:
            yield "−", _removed(depth, key, value, (*path, key))


def _compared_items(
    depth: int, before: Sequence[Any], after: Sequence[Any], path: Path
) -> Iterator[tuple[Sign, Line]]:
    matcher = SequenceMatcher(None, [_json(item) for item in before], [_json(item) for item in after], False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind != "equal":
            for item in before[i1:i2]:
                yield "−", _removed(depth, "", item, None)
        sign: Sign = " " if kind == "equal" else "+"
        for index in range(j1, j2):
            comma = "," if index + 1 < len(after) else ""
            for each in _value(sign, depth, "", after[index], comma, (*path, str(index))):
                yield sign, each


def _replaced(
    depth: int, label: str, before: Any, after: Any, comma: str, path: Path
) -> Iterator[tuple[Sign, Line]]:
    lines = list(_value("~", depth, label, after, comma, path))
    was = Span(f"   was {visible(_json(before))}", "dim")
    lines[-1] = replace(lines[-1], spans=(*lines[-1].spans, was))
    for each in lines:
        yield "~", each


def _value(sign: Sign, depth: int, label: str, value: Any, comma: str, path: Path) -> Iterator[Line]:
    """All lines of a value; a single line if it is short."""
    text = _json(value)
    container = isinstance(value, Mapping | list) and bool(value)
    if not container or (len(text) <= _SHORT and not _nested(value)):
        yield _line(sign, depth, label, text + comma, path)
        return
    opening, closing = ("{", "}") if isinstance(value, Mapping) else ("[", "]")
    yield _line(sign, depth, label, opening, path)
    named = isinstance(value, Mapping)
    members = (
        list(value.items()) if isinstance(value, Mapping) else [(str(at), one) for at, one in enumerate(value)]
    )
    for index, (key, item) in enumerate(members, start=1):
        comma_here = "," if index < len(members) else ""
        yield from _value(sign, depth + 1, key if named else "", item, comma_here, (*path, key))
    yield _line(sign, depth, "", closing + comma, None)


def _removed(depth: int, label: str, value: Any, path: Path | None) -> Line:
    return replace(_line("−", depth, label, _json(value), path), most=_ROWS_OF_REMOVED)


def _nested(value: Mapping[str, Any] | list[Any]) -> bool:
    items = value.values() if isinstance(value, Mapping) else value
    return any(isinstance(item, Mapping | list) and item for item in items)


def _line(sign: Sign, depth: int, label: str, text: str, path: Path | None) -> Line:
    tone = _TONE[sign]
    margin = " " * (_INDENT * depth)
    name = (Span(f"{visible(_json(label))}: ", tone if sign != " " else "key"),) if label else ()
    return Line(
        (Span(f"{sign} ", tone), Span(margin), *name, Span(visible(text), tone)),
        hang=2 + _INDENT * (depth + 1),
        about=path,
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
