"""One table, made once, says the same in every format, and nothing in it is carried out."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from memreplay.numbers import UNKNOWN, counted, dollars, interval, number, share, share_of, whole_share
from memreplay.printable import printable, printable_lines
from memreplay.rich_console import PrintableConsole
from memreplay.views.document import LinesDocument
from memreplay.views.table import Column, Table, as_csv, as_lines, as_markdown, for_terminal, legend
from memreplay.views.text import Span
from tests.tables import failing
from tests.unit.views.test_panels import text_of

COLUMNS = (Column("memory", align="left"), Column("right", "right answers"), Column("cost"))
TABLE = Table("Scores", COLUMNS, [["rag", Span("1/2", "good"), "$0.10"], ["all", "1/2", None]], totals=1)
HOSTILE = Table.of("Names", ("name", "said"), [["\x1b[2J|@all", "=1+1\n*b*"]], align="left")


def printed(table: Table) -> list[list[str]]:
    console = PrintableConsole(file=io.StringIO(), width=60)
    console.print(for_terminal(table))
    assert isinstance(console.file, io.StringIO)
    return [line.split() for line in console.file.getvalue().splitlines() if line.strip(" ─")]


def test_a_table_is_the_same_in_every_format() -> None:
    rows = [["memory", "right", "cost"], ["rag", "1/2", "$0.10"], ["all", "1/2", UNKNOWN]]
    assert printed(TABLE) == rows
    assert [line.split() for line in text_of(LinesDocument(as_lines(TABLE)), 60).splitlines()] == rows
    assert list(as_markdown(TABLE)) == [
        "| memory | right | cost |",
        "| --- | ---: | ---: |",
        "| rag | 1/2 | $0.10 |",
        f"| **all** | 1/2 | {UNKNOWN} |",
    ]
    assert as_csv(TABLE).splitlines() == ["memory,right,cost", "rag,1/2,$0.10", "all,1/2,"]
    assert legend([TABLE, TABLE]) == [("Scores", [("right", "right answers")])]


def test_columns_of_a_screen_are_aligned_and_keep_the_tones_of_cells() -> None:
    heading, first, _ = as_lines(TABLE)
    assert "".join(span.text for span in heading.spans) == "memory  right   cost"
    assert "".join(span.text for span in first.spans) == "rag       1/2  $0.10"
    assert [span.tone for span in first.spans] == ["plain", "good", "plain"]


def test_no_cell_acts_on_a_terminal_makes_markup_or_is_calculated() -> None:
    assert printed(HOSTILE)[1:] == [["\\u001b[2J|@all", "=1+1\\n*b*"]]
    assert list(as_markdown(HOSTILE))[2] == "| \\\\u001b\\[2J\\|@\u200ball | =1+1 \\*b\\* |"
    assert as_csv(HOSTILE).splitlines()[1:] == ["\\u001b[2J|@all,\"'=1+1", '*b*"']


def test_values_of_csv_are_written_as_values() -> None:
    table = Table.of("Values", "abcd", [[True, 0.1 + 0.2, 3, None]])
    assert as_csv(table).splitlines()[1] == "true,0.3,3,"


def test_numbers_are_written_in_one_way() -> None:
    def check(written: str, expected: str) -> None:
        assert written == expected

    assert (
        failing(
            [
                (share(2 / 3), "66.7 %"),
                (whole_share(2 / 3), "67 %"),
                (share_of(0.5, 60), "50.0 % of 60"),
                (interval((0.333, 0.512)), "33–51"),
                (number(12345.67), "12,346"),
                (number(1.25, 2), "1.25"),
                (counted(1, "part"), "1 part"),
                (counted(2000, "part"), "2,000 parts"),
                (dollars(0.00012345), "$0.000123"),
                (dollars(1234.5), "$1,234.50"),
            ],
            check,
        )
        == []
    )


def test_what_is_unknown_is_a_dash() -> None:
    assert {write(None) for write in (share, whole_share, interval, number, dollars)} == {UNKNOWN}
    assert share_of(None, 3) == UNKNOWN


@given(st.text(st.characters(codec=None)))
def test_text_from_outside_is_printable_and_stays_so(text: str) -> None:
    line, lines = printable(text), printable_lines(text)
    assert not set(line) & set("\n\r\t\x1b\u202e\u200b") and not set(lines) & set("\r\x1b\u202e\u200b")
    assert printable(line) == line and printable_lines(lines) == lines
    (line + lines).encode("utf-8")
