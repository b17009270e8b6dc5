"""What Jupyter shows of runs, rows and memories: plain tables. Conversations are data: all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from memreplay.errors import UsageError

if TYPE_CHECKING:
    import pandas

_MOST_CHARACTERS = 300
_MOST_ROWS = 60


def table_html(headings: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> str:
    """A table of at most 60 rows; longer cells are cut."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:_MOST_ROWS])
    left_out = len(rows) - _MOST_ROWS
    more = f"<p>{left_out:,} more rows</p>" if left_out > 0 else ""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    match value:
        case None:
            text = "–"
        case float():
            text = f"{value:.3f}"
        case _:
            text = str(value)
    if len(text) > _MOST_CHARACTERS:
        text = text[: _MOST_CHARACTERS - 1] + "…"
    return f"<td style='text-align:left'>{escape(text)}</td>"


def data_frame(rows: Iterable[dict[str, Any]]) -> pandas.DataFrame:
    """A pandas data frame with a row for each.

    Raises:
        UsageError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise UsageError("to_pandas() needs pandas: pip install pandas") from None
    return pandas.DataFrame(list(rows))
