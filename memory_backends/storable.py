"""Makes values from outside safe to store: JSON, SQLite, Redis and Qdrant all take UTF-8 text and 64-bit integers.

A provider, an agent, a plug-in or a file may send more: half a surrogate pair, or an integer of thirty digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Any

from pydantic import AfterValidator

_LARGEST_SCORE = 1e300

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1

MOST_LEVELS = 250
"""Values inside each other, in a state. Pydantic writes no event with more than 255."""


def is_deeper(value: Any, levels: int = MOST_LEVELS) -> bool:
    """Return whether a value has values inside each other on more levels than these."""
    inside = [value]
    for _ in range(levels + 1):
        inside = [
            part
            for each in inside
            if isinstance(each, Mapping | list | tuple)
            for part in (each.values() if isinstance(each, Mapping) else each)
        ]
        if not inside:
            return False
    return True


def storable(text: str) -> str:
    """Return the text as valid Unicode: surrogate pairs are joined, half a pair becomes U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


StorableText = Annotated[str, AfterValidator(storable)]
"""Text from outside, as a field of a model."""


def finite_score(value: Any) -> float | None:
    """Return a score from outside as a number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _LARGEST_SCORE:
        return None
    return float(value) if isfinite(value) else None


FiniteScore = Annotated[float | None, AfterValidator(finite_score)]
"""A score from outside; NaN and infinity, which JSON cannot hold and nothing can rank, are no score."""


def storable_value(value: Any) -> Any:
    """Return a copy of plain data without invalid text, and with integers beyond 64 bits as their digits."""
    match value:
        case str():
            return storable(value)
        case bool():
            return value
        case int() if not _SMALLEST <= value <= _LARGEST:
            return _digits(value)
        case dict():
            return {
                storable(key) if isinstance(key, str) else key: storable_value(item) for key, item in value.items()
            }
        case list() | tuple():
            return [storable_value(item) for item in value]
    return value


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # Python converts no more than 4,300 digits
        return f"an integer of {number.bit_length()} bits"
