"""Numbers as they come from outside, and as they are shown everywhere: counts, shares, intervals and prices."""

from __future__ import annotations

import re
from math import floor, isfinite, log10
from typing import Any

UNKNOWN = "–"

_FIGURES = 3
_MOST_DECIMALS = 12
_LEAST_P = 0.001
_FINAL_Y = re.compile(r"(?<![aeiou])y$")


def finite(value: Any, least: float, most: float) -> float | None:
    """Return a number that a server, a file or a library states; None for anything but a number within the bounds.

    The bounds are included. A text, a truth value, NaN and infinity are no numbers.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        return None
    return float(value) if isfinite(value) else None


def finite_count(value: Any, most: int) -> int | None:
    """Return a count that somebody else states, from 0 to ``most``; None for anything else."""
    return value if isinstance(value, int) and finite(value, 0, most) is not None else None


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 part``, ``2,000 parts``, ``3 replies``."""
    return f"{count:,} {noun if count == 1 else _FINAL_Y.sub('ie', noun) + 's'}"


def number(value: float | None, decimals: int = 0) -> str:
    """Return a number with separated thousands: ``12,345``."""
    return UNKNOWN if value is None else f"{value:,.{decimals}f}"


def share(value: float | None) -> str:
    """Return a share of 1 in per cent: ``41.7 %``."""
    return UNKNOWN if value is None else f"{100 * value:.1f} %"


def whole_share(value: float | None) -> str:
    """Return a share of 1 in whole per cent, for narrow places: ``42 %``."""
    return UNKNOWN if value is None else f"{100 * value:.0f} %"


def estimate(figure: str) -> str:
    """Return a figure with the mark of what was not measured: ``~42 %``."""
    return figure if figure == UNKNOWN else f"~{figure}"


def share_of(value: float | None, n: int) -> str:
    """Return a share with the number that it is a share of: ``41.7 % of 60``."""
    return UNKNOWN if value is None else f"{share(value)} of {n}"


def points(difference: float) -> str:
    """Return a difference of two shares in points of per cent: ``12.5 points``."""
    return f"{100 * difference:.1f} points"


def interval(bounds: tuple[float, float] | None) -> str:
    """Return the bounds of a share in whole per cent, without the unit: ``33–51``."""
    return UNKNOWN if bounds is None else f"{100 * bounds[0]:.0f}–{100 * bounds[1]:.0f}"


def p_value(value: float) -> str:
    """Return a p-value with three decimals; one that would be 0 is ``< 0.001``."""
    return f"{value:.3f}" if value >= _LEAST_P else f"< {_LEAST_P}"


def dollars(amount: float | None) -> str:
    """Return US dollars with cents; below one dollar with three significant digits, as a tiny price is not 0."""
    if amount is None:
        return UNKNOWN
    if amount == 0:
        return "$0"
    if abs(amount) >= 1:
        return f"${amount:,.2f}"
    decimals = min(_FIGURES - 1 - floor(log10(abs(amount))), _MOST_DECIMALS)
    return f"${amount:.{decimals}f}"
