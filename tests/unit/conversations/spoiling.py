"""Ways of spoiling a sample, for tables of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Step = str | int
Spoil = Callable[[Any], None]


def without(*steps: Step) -> Spoil:
    """Take away the value at the end of these steps."""

    def spoil(data: Any) -> None:
        del _parent(data, steps)[steps[-1]]

    return spoil


def with_value(value: Any, *steps: Step) -> Spoil:
    """Put a value at the end of these steps."""

    def spoil(data: Any) -> None:
        _parent(data, steps)[steps[-1]] = value

    return spoil


def _parent(data: Any, steps: tuple[Step, ...]) -> Any:
    for step in steps[:-1]:
        data = data[step]
    return data
