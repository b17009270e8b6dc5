"""Two values of one state as two columns: what changed stands on the same row, what did not is folded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any, Final

from app.replay.pointers import Missing
from app.tui.text import Line, Span, Tone, line, visible

_AROUND = 2
_NOTHING: Final = Span("  (there is no such key here)", "dim")
_SIGNS: Final[Mapping[str, tuple[tuple[str, Tone], tuple[str, Tone]]]] = {
    "equal": (("  ", "plain"), ("  ", "plain")),
    "replace": (("~ ", "changed"), ("~ ", "changed")),
    "delete": (("− ", "removed"), ("  ", "plain")),
    "insert": (("  ", "plain"), ("+ ", "added")),
}


def sides(before: Any, after: Any) -> tuple[list[Line], list[Line]]:
    """The lines of either column, as many in one as in the other. A value may be missing."""
    old, new = _text(before), _text(after)
    left: list[Line] = [line(_NOTHING)] if isinstance(before, Missing) else []
    right: list[Line] = [line(_NOTHING)] if isinstance(after, Missing) else []
    for group in SequenceMatcher(None, old, new, False).get_grouped_opcodes(_AROUND):
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
    return [] if isinstance(value, Missing) else json.dumps(value, ensure_ascii=False, indent=2).split("\n")
