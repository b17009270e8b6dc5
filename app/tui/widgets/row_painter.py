"""How rows look: tones as the style sheet has them, and each row a strip that is drawn once and then kept.

A move shows mostly rows that were there before, many of them in another place. Textual keeps what it drew by its
place; here it is kept by the row, sides and filters with it, so that only what is new has to be drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from app.tui.text import Row, Tone

_MOST_KEPT = 1024

Place = bool | None
"""Whether the cell after a row shows the place in the document; None where there is no such cell."""


@dataclass(frozen=True)
class Frame:
    """What stands around the rows: strips above and below, and the cells left and right of every row."""

    above: tuple[Strip, ...]
    sides: tuple[Strip, Strip]
    below: tuple[Strip, ...]


class RowPainter:
    """Draws the rows of one view. When what their looks depend on changes: :meth:`forget`."""

    def __init__(self, view: Widget) -> None:
        self._view = view
        self._base: Style | None = None
        self._tones: dict[Tone, Style] = {}
        self._frame: tuple[object, Frame] | None = None
        # By identity: to compare rows by what is in them takes as long as to draw them.
        self._kept: dict[tuple[int, Place], tuple[Row | None, Strip]] = {}

    def forget(self) -> None:
        """Another theme, another state, another size."""
        self._base = None
        self._frame = None
        self._tones.clear()
        self._kept.clear()

    def content(self, row: Row | None, width: int, place: Place) -> Strip:
        """A row in so many cells, with the cell after it."""
        if self._base is None:
            self._base = self._view.rich_style
        whole = base = self._base
        if row is not None and row.fill is not None:
            base = base + self._tone(row.fill)
        spans = () if row is None else row.spans
        strip = Strip([Segment(span.text, base + self._tone(span.tone)) for span in spans])
        strip = strip.adjust_cell_length(width, base)
        if place is None:
            return strip
        return Strip([*strip, Segment(" ", whole + self._tone("thumb") if place else whole)], width + 1)

    def frame(self, titles: object, draw: Callable[[], Frame]) -> Frame:
        """What stands around the rows; drawn again where the titles in it are others."""
        if self._frame is None or self._frame[0] != titles:
            self._frame = titles, draw()
        return self._frame[1]

    def lines(self, rows: Sequence[tuple[Row | None, Place]], width: int) -> list[Strip]:
        """Rows as they stand on the screen, with what is left and right of them."""
        if len(self._kept) > _MOST_KEPT:
            self._kept.clear()
        return [self._line(row, width, place) for row, place in rows]

    def _line(self, row: Row | None, width: int, place: Place) -> Strip:
        kept = self._kept.get((id(row), place))
        if kept is not None and kept[0] is row:
            return kept[1]
        strip = self.content(row, width, place)
        background = self._view.background_colors[1]
        for line_filter in self._view.get_line_filters():
            strip = strip.apply_filter(line_filter, background)
        if self._frame is not None:
            left, right = self._frame[1].sides
            strip = Strip.join([left, strip, right])
        self._kept[id(row), place] = row, strip
        return strip

    def _tone(self, tone: Tone) -> Style:
        if tone not in self._tones:
            self._tones[tone] = self._style_of(tone)
        return self._tones[tone]

    def _style_of(self, tone: Tone) -> Style:
        if tone == "plain":
            return Style.null()
        name = f"tone--{tone}"
        partial = self._view.get_component_rich_style(name, partial=True)
        # The partial style says what the tone sets; only the whole one has translucent colours blended.
        whole = self._view.get_component_rich_style(name)
        return partial + Style(
            color=whole.color if partial.color else None, bgcolor=whole.bgcolor if partial.bgcolor else None
        )
