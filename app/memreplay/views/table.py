"""A table, made once by a view, and its renderers: for a terminal, as Markdown, as CSV, as lines of a screen.

The renderer for pages is the macro in ``pages/assets/table.html``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from memreplay.numbers import UNKNOWN
from memreplay.printable import printable, printable_lines
from memreplay.views.text import Line, Span, Tone, cells, line, one_line, pad

Cell = str | int | float | bool | None | Span
"""A text, a text with a tone, or a value for CSV. None is an empty cell in CSV, elsewhere a dash."""

_GAP = "  "

_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Beginnings of a text that a spreadsheet may evaluate as a formula (OWASP, "CSV Injection")."""

_SPECIAL = re.compile(r"[\\`*_\[\]<>&|#~]")
_MENTION = re.compile(r"(?<!\w)@")


@dataclass(frozen=True)
class Column:
    """The heading of a column, what it means if that has to be said, and how cells and heading are shown."""

    heading: str
    meaning: str = ""
    align: Literal["left", "right"] = "right"
    tone: Tone = "dim"


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns, the first of which names the row. The last ``totals`` rows sum up the others."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    totals: int = 0

    @classmethod
    def of(
        cls,
        title: str,
        headings: Iterable[str],
        rows: Sequence[Sequence[Cell]],
        *,
        totals: int = 0,
        align: Literal["left", "right"] = "right",
    ) -> Table:
        """Return a table whose columns need no explanation. Those after the first are aligned as ``align`` says."""
        first, *others = headings
        columns = [Column(first, align="left"), *(Column(heading, align=align) for heading in others)]
        return cls(title, columns, rows, totals)

    @property
    def headings(self) -> list[str]:
        return [column.heading for column in self.columns]

    @property
    def texts(self) -> list[list[str]]:
        """Return the cells of all rows as they are shown."""
        return [list(map(text_of, row)) for row in self.rows]


def text_of(cell: Cell) -> str:
    """Return a cell as it is shown."""
    match cell:
        case None:
            return UNKNOWN
        case Span():
            return cell.text
    return str(cell)


def legend(tables: Iterable[Table]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return by title the meaning of each heading, unless a table before has it with the same meaning.

    A heading such as *abstained* means one thing in the table of replies and another in that of verdicts.
    """
    known: set[tuple[str, str]] = set()
    found = []
    for table in tables:
        meanings = [(column.heading, column.meaning) for column in table.columns if column.meaning]
        new = [each for each in meanings if each not in known]
        known.update(new)
        if new:
            found.append((table.title, new))
    return found


def for_terminal(table: Table) -> RichTable:
    """Return the table for a console. Its title is left to the caller."""
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for place, column in enumerate(table.columns):
        # A name that is broken over several rows cannot be told from several names.
        shown.add_column(Text(printable(column.heading)), justify=column.align, no_wrap=place == 0)
    for place, row in enumerate(table.texts):
        if table.totals and place == len(table.rows) - table.totals:
            shown.add_section()
        shown.add_row(*(Text(printable(cell)) for cell in row))
    return shown


def as_markdown(table: Table) -> Iterator[str]:
    """Yield the lines of a table in GitHub's dialect, without its title."""
    yield f"| {' | '.join(map(plain, table.headings))} |"
    yield f"|{'|'.join(' --- ' if column.align == 'left' else ' ---: ' for column in table.columns)}|"
    for place, row in enumerate(table.texts):
        name, *rest = map(plain, row)
        is_total = place >= len(table.rows) - table.totals
        yield f"| {' | '.join([f'**{name}**' if is_total else name, *rest])} |"


def plain(text: str) -> str:
    """Return a text as Markdown on one line that makes no markup and mentions nobody."""
    escaped = _SPECIAL.sub(lambda match: f"\\{match[0]}", printable(" ".join(text.split())))
    return _MENTION.sub("@\u200b", escaped)


def in_html(text: str) -> str:
    """Return a text for the inside of an HTML element in Markdown, where backslashes escape nothing."""
    return _MENTION.sub("@\u200b", escape(printable(" ".join(text.split()))))


def as_csv(table: Table) -> str:
    """Return the rows below their headings. A text that a spreadsheet would evaluate is preceded by a quote."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(table.headings)
    for row in table.rows:
        writer.writerow(map(_csv_cell, row))
    return text.getvalue()


def _csv_cell(cell: Cell) -> str | int | float | None:
    match cell:
        case bool():
            return "true" if cell else "false"
        case float():
            # Significant digits, not decimals: a price may be tiny.
            return float(f"{cell:.9g}")
        case int() | None:
            return cell
    text = text_of(cell)
    escaped = printable_lines(text)
    return f"'{escaped}" if text.lstrip(" ").startswith(_STARTS_A_FORMULA) else escaped


def as_lines(table: Table) -> list[Line]:
    """Return the table as lines of a screen, each of one row."""
    heads = [Span(one_line(column.heading), column.tone) for column in table.columns]
    rows = [heads, *([_span(cell) for cell in row] for row in table.rows)]
    widths = [max(cells(row[place].text) for row in rows) for place in range(len(heads))]
    return [line(*_padded(row, widths, table.columns), most=1) for row in rows]


def _span(cell: Cell) -> Span:
    return Span(one_line(text_of(cell)), cell.tone if isinstance(cell, Span) else "plain")


def _padded(row: Sequence[Span], widths: Sequence[int], columns: Sequence[Column]) -> Iterator[Span]:
    for place, (span, width, column) in enumerate(zip(row, widths, columns, strict=True)):
        space = " " * (width - cells(span.text))
        text = f"{space}{span.text}" if column.align == "right" else pad(span.text, width)
        yield Span(text if place == 0 else _GAP + text, span.tone)
