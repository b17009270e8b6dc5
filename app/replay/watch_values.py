"""What the conditions of a watch mean for a value."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from app.replay.folding import folded
from app.replay.watch_syntax import Compare, CompareOp, Condition, Contains, Exists

_OPERATORS: Final[Mapping[CompareOp, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def value_holds(condition: Condition, value: Any) -> bool:
    """Whether a condition other than ``changed`` holds for a value that there is."""
    match condition:
        case Exists():
            return True
        case Compare(op, literal):
            return compares(op, value, literal)
        case Contains(text):
            wanted = folded(text)
            if isinstance(value, str):
                return wanted in folded(value)
            return isinstance(value, list | Mapping) and any(folded(str(item)) == wanted for item in value)
        case _:
            return False


def compares(op: CompareOp, value: Any, literal: Any) -> bool:
    """JSON's equality, where true is not 1; an order only between numbers or between texts."""
    numbers = _is_number(value) and _is_number(literal)
    if op in ("==", "!="):
        alike = type(value) is type(literal) or numbers
        return (alike and value == literal) is (op == "==")
    return (numbers or (isinstance(value, str) and isinstance(literal, str))) and _OPERATORS[op](value, literal)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
