"""How one state became another, as lines: kept, added, removed, and changed with before and after side by side.

Stretches without a change are folded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from app.replay.pointers import MISSING, Path

Sign = Literal[" ", "+", "−", "~"]

CONTEXT = 2
"""Unchanged lines that stay beside a change."""

LEAST_FOLDED = 3
"""Unchanged lines from which a stretch is folded."""

_LONGEST_ON_ONE_LINE = 60


@dataclass(frozen=True)
class DiffLine:
    """A place in a state. ``label`` is the name of the field, empty for an item of a list.

    ``before`` and ``after`` are JSON; None on the side where there is nothing. An object or a list that is shown
    member by member is one line with an opening bracket on either side, and its members are deeper.
    """

    sign: Sign
    path: Path
    label: str
    before: str | None
    after: str | None

    @property
    def depth(self) -> int:
        """How deep it lies, 0 for the root's own members."""
        return max(0, len(self.path) - 1)


@dataclass(frozen=True)
class Folded:
    """Lines without a change, to be shown as one."""

    lines: tuple[DiffLine, ...]


Row = DiffLine | Folded


def diff_states(before: Any, after: Any) -> tuple[DiffLine, ...]:
    """Every line of both states. Either may be :data:`~app.replay.pointers.MISSING`."""
    if before is MISSING and after is MISSING:
        return ()
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return tuple(_members((), before, after))
    if before is MISSING:
        return tuple(_whole("+", (), "", after))
    if after is MISSING:
        return tuple(_whole("−", (), "", before))
    return tuple(_compared((), "", before, after))


def fold_unchanged(
    lines: Sequence[DiffLine], context: int = CONTEXT, opened: frozenset[int] = frozenset()
) -> tuple[Row, ...]:
    """The lines with stretches that did not change folded, but for ``context`` lines beside each change.

    ``opened`` are the stretches, numbered from 0 in order, that stay open.
    """
    near = [False] * len(lines)
    for index, line in enumerate(lines):
        if line.sign != " ":
            for beside in range(max(0, index - context), min(len(lines), index + context + 1)):
                near[beside] = True
    rows: list[Row] = []
    start, stretch = 0, 0
    while start < len(lines):
        end = start
        while end < len(lines) and near[end] == near[start]:
            end += 1
        if not near[start] and end - start >= LEAST_FOLDED:
            rows += lines[start:end] if stretch in opened else [Folded(tuple(lines[start:end]))]
            stretch += 1
        else:
            rows += lines[start:end]
        start = end
    return tuple(rows)


def changed_count(lines: Sequence[DiffLine]) -> int:
    """How many lines differ."""
    return sum(line.sign != " " for line in lines)


def _compared(path: Path, label: str, before: Any, after: Any) -> Iterator[DiffLine]:
    if _same(before, after):
        yield from _whole(" ", path, label, after)
    elif isinstance(before, Mapping) and isinstance(after, Mapping) and before and after:
        yield DiffLine(" ", path, label, "{", "{")
        yield from _members(path, before, after)
    elif isinstance(before, list) and isinstance(after, list) and before and after:
        yield DiffLine(" ", path, label, "[", "[")
        yield from _items(path, before, after)
    else:
        yield DiffLine("~", path, label, _json(before), _json(after))


def _members(path: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[DiffLine]:
    """In the order of the newer one; what is gone stands where it stood, after what was before it."""
    gone = _gone_after(before, after)
    for name in gone.get(None, ()):
        yield from _whole("−", (*path, name), name, before[name])
    for name, value in after.items():
        inside = (*path, name)
        if name in before:
            yield from _compared(inside, name, before[name], value)
        else:
            yield from _whole("+", inside, name, value)
        for lost in gone.get(name, ()):
            yield from _whole("−", (*path, lost), lost, before[lost])


def _gone_after(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str | None, list[str]]:
    gone: dict[str | None, list[str]] = {}
    last: str | None = None
    for name in before:
        if name in after:
            last = name
        else:
            gone.setdefault(last, []).append(name)
    return gone


def _items(path: Path, before: Sequence[Any], after: Sequence[Any]) -> Iterator[DiffLine]:
    matcher = SequenceMatcher(None, [_json(item) for item in before], [_json(item) for item in after], False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        paired = min(i2 - i1, j2 - j1) if kind == "replace" else 0
        for offset in range(paired):
            yield from _compared((*path, str(j1 + offset)), "", before[i1 + offset], after[j1 + offset])
        if kind != "equal":
            for index in range(i1 + paired, i2):
                yield from _whole("−", (*path, str(index)), "", before[index])
        for index in range(j1 + paired, j2):
            yield from _whole(" " if kind == "equal" else "+", (*path, str(index)), "", after[index])


def _whole(sign: Sign, path: Path, label: str, value: Any) -> Iterator[DiffLine]:
    """All lines of a value that is the same, new or gone; one line where it is short enough."""
    text = _json(value)
    members: list[tuple[str, str, Any]] = []
    if len(text) > _LONGEST_ON_ONE_LINE or not path:
        if isinstance(value, Mapping):
            members = [(name, name, item) for name, item in value.items()]
        elif isinstance(value, list):
            members = [(str(index), "", item) for index, item in enumerate(value)]
    if not members:
        yield _line(sign, path, label, text)
        return
    if path:
        yield _line(sign, path, label, text[0])
    for name, inner, item in members:
        yield from _whole(sign, (*path, name), inner, item)


def _line(sign: Sign, path: Path, label: str, text: str) -> DiffLine:
    return DiffLine(sign, path, label, None if sign == "+" else text, None if sign == "−" else text)


def _same(before: Any, after: Any) -> bool:
    """Equal as JSON: true is not 1, and the order of fields does not matter."""
    return before == after and _json(before, in_order=True) == _json(after, in_order=True)


def _json(value: Any, *, in_order: bool = False) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=in_order)
