"""Changes a JSON value at random places, for a search by hypothesis."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hypothesis import strategies as st

NASTY: Final[tuple[Any, ...]] = (
    None, True, 0, -1, 10**30, 1e308, float("nan"), float("inf"), "", " ", "\0", "\ud83d", "\x1b[2J\u202e",
    "9" * 5000,
    [], {}, [[]], [None], {"": None}, "D1:1", "../../x", ["a"] * 50, {"$": "x"}, "2024-13-45T99:99:99",
)  # fmt: skip


def mutated(data: st.DataObject, value: Any, replacements: Sequence[Any]) -> Any:
    """The value, which is changed in place, with one to three of its parts removed or replaced."""
    for _ in range(data.draw(st.integers(1, 3), label="changes")):
        steps = data.draw(st.sampled_from(list(_places(value)) or [()]), label="place")
        if not steps:
            break
        parent = value
        for step in steps[:-1]:
            parent = parent[step]
        if data.draw(st.booleans(), label="removed"):
            del parent[steps[-1]]
        else:
            parent[steps[-1]] = copy.deepcopy(data.draw(st.sampled_from(replacements), label="value"))
    return value


def _places(data: Any, steps: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in the data."""
    if steps:
        yield steps
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in inside:
        yield from _places(value, (*steps, step))
