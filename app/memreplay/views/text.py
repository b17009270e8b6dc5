"""Text as rows of terminal cells: escaped, wrapped by cell width, toned. No screen is needed for it.

All text from a conversation or a store passes through :func:`visible` before it reaches a row. A row is plain text
in spans; the tone of a span is a name that the style sheet maps to a colour, never markup.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby
from typing import Any, Final, Literal, get_args

from rich.cells import cell_len, chop_cells

from memory_backends.text import folded
from memreplay.printable import printable_lines

Tone = Literal[
    "plain",
    "dim",
    "strong",
    "title",
    "key",
    "value",
    "added",
    "removed",
    "changed",
    "good",
    "bad",
    "warn",
    "lost",
    "doubt",
    "accent",
    "current",
    "selected",
    "cursor",
    "thumb",
    "evidence",
    "live",
    "recorded",
    "found",
]
TONES: Final[tuple[Tone, ...]] = get_args(Tone)

_DOT = " · "
_TAB = "    "
_TOKEN = re.compile(r"\s+|\S+")


@dataclass(frozen=True)
class Span:
    """A stretch of plain text in one tone."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Row:
    """One row on the screen. ``fill`` tones the whole row, including cells without text."""

    spans: tuple[Span, ...] = ()
    fill: Tone | None = None

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True)
class Line:
    """One line before it is wrapped.

    ``hang`` is the indent of the rows after the first, in cells; ``most`` is the maximum number of rows, the last
    of which ends in an ellipsis; ``fill`` tones the whole rows; ``about`` is what the line leads to.
    """

    spans: tuple[Span, ...]
    hang: int = 0
    most: int | None = None
    fill: Tone | None = None
    about: Hashable | None = None


def cells(text: str) -> int:
    """Return the width in cells of a text that passed through :func:`visible`."""
    return len(text) if text.isascii() else cell_len(text)


def visible(text: str) -> str:
    """Return the text as rows can show it: printable, with its line breaks, and with spaces for tabs."""
    return printable_lines(text).replace("\t", _TAB)


def visible_data(value: Any) -> Any:
    """Return plain data with every text in it as :func:`visible` shows it, keys included."""
    match value:
        case str():
            return visible(value)
        case Mapping():
            return {visible_data(key): visible_data(each) for key, each in value.items()}
        case list() | tuple():
            return [visible_data(each) for each in value]
    return value


def one_line(text: str) -> str:
    """Return the visible text on one line: a line break shows as ⏎."""
    return visible(text).replace("\n", " ⏎ ")


def words_in(text: str) -> tuple[str, ...]:
    """Return the words of a search, folded, the longest first."""
    return tuple(sorted(set(folded(visible(text)).split()), key=len, reverse=True))


def holds_words(source: Line, words: Sequence[str]) -> bool:
    """Return whether a line holds all of these folded words."""
    text = folded("".join(span.text for span in source.spans))
    return all(word in text for word in words)


@lru_cache(maxsize=4096)
def marked(row: Row, words: tuple[str, ...]) -> Row:
    """Return the row with these folded words toned as found."""
    spans: list[Span] = []
    for span in row.spans:
        # Folding may change the number of characters, so each is folded alone.
        plain = [folded(character) for character in span.text]
        starts = [0, *accumulate(map(len, plain))]
        text = "".join(plain)
        hits: set[int] = set()
        for match in re.finditer("|".join(map(re.escape, words)), text) if words else ():
            first, last = bisect_right(starts, match.start()) - 1, bisect_left(starts, match.end())
            hits.update(range(first, last))
        for is_hit, places in groupby(range(len(span.text)), key=hits.__contains__):
            part = "".join(span.text[place] for place in places)
            spans.append(Span(part, "found" if is_hit else span.tone))
    return Row(tuple(_joined(spans)), row.fill)


def line(
    *parts: str | Span,
    hang: int = 0,
    most: int | None = None,
    fill: Tone | None = None,
    about: Hashable | None = None,
) -> Line:
    """Return a line of spans; a bare string is plain."""
    spans = tuple(Span(part) if isinstance(part, str) else part for part in parts)
    return Line(spans, hang=hang, most=most, fill=fill, about=about)


def paragraphs(text: str, tone: Tone = "plain", *, indent: int = 0, most: int | None = None) -> list[Line]:
    """Return a text as indented lines, one per line of its own."""
    margin = Span(" " * indent, tone)
    lines = [Line((margin, Span(part, tone)), hang=indent, most=most) for part in visible(text).split("\n")]
    return lines if most is None else lines[:most]


def clip(text: str, width: int) -> str:
    """Return the text cut to a width in cells, with an ellipsis if it was longer."""
    if cells(text) <= width:
        return text
    if width <= 1:
        return "…" if width == 1 else ""
    return chop_cells(text, width - 1)[0] + "…"


def joined_within(parts: Sequence[str], width: int, order: Sequence[int]) -> str:
    """Return the parts joined by dots, in at most a width: those later in ``order`` are left out first, whole.

    The first of ``order`` always stays; it is clipped if it does not fit alone.
    """
    kept: list[int] = []
    for place in order:
        tried = sorted([*kept, place])
        if kept and cells(_DOT.join(parts[each] for each in tried)) > width:
            break
        kept = tried
    return clip(_DOT.join(parts[each] for each in kept), width)


def shortened(names: Sequence[str], width: int) -> str:
    """Return names side by side in at most a width: the longest lose their ends first, and equally much."""
    room = width - max(0, len(names) - 1)
    most = max((cells(name) for name in names), default=0)
    while most > 1 and sum(min(cells(name), most) for name in names) > room:
        most -= 1
    return clip(" ".join(clip(name, most) for name in names), width)


def pad(text: str, width: int) -> str:
    """Return the text clipped, or padded with spaces, to exactly a width in cells."""
    clipped = clip(text, width)
    return clipped + " " * (width - cells(clipped))


def width_of(spans: Iterable[Span]) -> int:
    """Return the width of the spans in cells."""
    return sum(cells(span.text) for span in spans)


def wrap(source: Line, width: int) -> list[Row]:
    """Return the rows of a line at a width, broken at white space, and within a word only if it is too long."""
    width = max(width, 4)
    if width_of(source.spans) <= width:
        return [Row(source.spans, source.fill)]
    return list(_broken(source, width))


@lru_cache(maxsize=4096)
def _broken(source: Line, width: int) -> tuple[Row, ...]:
    """Return the rows of a line that needs several. Cached: most lines of a panel repeat from one position to
    the next.
    """
    hang = min(source.hang, width // 2)
    margin = [Span(" " * hang)] if hang else []
    rows: list[list[Span]] = [[]]
    used = 0
    for text, tone in _tokens(source.spans):
        size = cells(text)
        if used + size <= width:
            rows[-1].append(Span(text, tone))
            used += size
            continue
        if text.isspace():
            rows.append(list(margin))
            used = hang
            continue
        if used > hang and size <= width - hang:
            rows.append(list(margin))
            used = hang
        for piece in _pieces(text, width - used, width - hang):
            if used + cells(piece) > width:
                rows.append(list(margin))
                used = hang
            rows[-1].append(Span(piece, tone))
            used += cells(piece)
    if rows[-1] == margin and len(rows) > 1:
        rows.pop()
    if source.most is not None and len(rows) > source.most:
        rows = rows[: source.most]
        rows[-1] = _with_ellipsis(rows[-1], width)
    return tuple(Row(tuple(_joined(row)), source.fill) for row in rows)


def estimated_rows(text: str, width: int) -> int:
    """Return an estimate of the rows that a text takes at a width."""
    return len(text) // max(width, 1) + text.count("\n") + 1


def wrapped(lines: Iterable[Line], width: int) -> list[Row]:
    return [row for source in lines for row in wrap(source, width)]


def beside(blocks: Sequence[Sequence[Line]], widths: Sequence[int], gap: int = 2) -> list[Row]:
    """Columns of lines side by side, each wrapped to its width."""
    columns = [wrapped(block, width) for block, width in zip(blocks, widths, strict=True)]
    space = Span(" " * gap)
    rows: list[Row] = []
    for index in range(max((len(column) for column in columns), default=0)):
        spans: list[Span] = []
        for column, width in zip(columns, widths, strict=True):
            given = column[index].spans if index < len(column) else ()
            spans += [*given, Span(" " * max(0, width - width_of(given))), space]
        rows.append(Row(tuple(spans)))
    return rows


def _tokens(spans: Sequence[Span]) -> Iterator[tuple[str, Tone]]:
    for span in spans:
        for match in _TOKEN.finditer(span.text):
            yield match.group(), span.tone


def _pieces(word: str, first: int, rest: int) -> Iterator[str]:
    """Yield a word in pieces: the first fills the rest of the current row, the others a row each."""
    if cells(word) <= rest:
        yield word
        return
    if first >= 4:
        head = chop_cells(word, first)[0]
        yield head
        word = word[len(head) :]
    yield from chop_cells(word, rest)


def _with_ellipsis(row: Sequence[Span], width: int) -> list[Span]:
    spans = list(row)
    while spans and width_of(spans) > width - 1:
        last = spans.pop()
        room = width - 1 - width_of(spans)
        if room > 0:
            spans.append(Span(chop_cells(last.text, room)[0], last.tone))
    return [*spans, Span("…", "dim")]


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    held: Span | None = None
    for span in spans:
        if held is not None and held.tone == span.tone:
            held = Span(held.text + span.text, held.tone)
            continue
        if held is not None:
            yield held
        held = span
    if held is not None:
        yield held


_SHOWN_KEYS: Final = {
    "escape": "esc",
    "ctrl+s": "^s",
    "ctrl+g": "^g",
    "apostrophe": "'",
    "backspace": "⌫",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}


def shown_key(key: str) -> str:
    """Return a key as shown on the screen."""
    return _SHOWN_KEYS.get(key, key)
