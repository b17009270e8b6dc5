"""How a price is told, wherever one is."""

from __future__ import annotations

from math import floor, log10

UNKNOWN = "–"

_FIGURES = 3
_MOST_DECIMALS = 12


def dollars(amount: float | None) -> str:
    """US dollars: cents from one dollar on, three figures below it, so that a tiny price is not shown as none.

    None, a price that nobody knows, is a dash.
    """
    if amount is None:
        return UNKNOWN
    if amount == 0:
        return "$0"
    if abs(amount) >= 1:
        return f"${amount:,.2f}"
    decimals = min(_FIGURES - 1 - floor(log10(abs(amount))), _MOST_DECIMALS)
    return f"${amount:.{decimals}f}"
