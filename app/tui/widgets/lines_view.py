"""The base of every panel: rows that are drawn only where they are looked at."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from app.tui.actions import bindings_of
from app.tui.document import Document, Layout, LinesDocument
from app.tui.text import TONES, Line, Row, Tone

_ROWS_ABOVE = 2


class LinesView(ScrollView, can_focus=True):
    """Shows a document. What it costs to draw does not depend on how long the document is."""

    ALLOW_SELECT = False
    SHOWS_PLACE: ClassVar[bool] = True
    """Whether the last cell of its rows shows which part of the document is in view."""
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"tone--{tone}" for tone in TONES}

    BINDINGS: ClassVar[list[BindingType]] = bindings_of("panel")

    class Followed(Message):
        """The user wants to go where a line leads: what the line is about."""

        def __init__(self, view: LinesView, subject: Hashable) -> None:
            super().__init__()
            self.view = view
            self.subject = subject

    class BlockClicked(Message):
        """A block was clicked."""

        def __init__(self, view: LinesView, block: int) -> None:
            super().__init__()
            self.view = view
            self.block = block

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._document: Document = LinesDocument(())
        self._layout_now = Layout(self._document, 0)
        self._in_view: int | None = None
        self._from_top = True
        self._selected: int | None = None
        self._rows_drawn: list[Row | None] = []
        self._place_drawn = -1, range(0)
        self._thumb_now = range(0)
        self._base: Style | None = None
        self._styles_of_tones: dict[Tone, Style] = {}

    @property
    def document(self) -> Document:
        """What is shown."""
        return self._document

    @property
    def text(self) -> str:
        """All rows as plain text, as they stand at the present width."""
        layout = self.layout_now
        rows = [row.text.rstrip() for block in range(len(self._document)) for row in self._rows(layout, block)]
        return "\n".join(rows)

    @property
    def layout_now(self) -> Layout:
        """Where the blocks stand at the present width."""
        width = max(self.scrollable_content_region.width - self.SHOWS_PLACE, 1)
        if self._layout_now.document is not self._document or self._layout_now.width != width:
            self._layout_now = Layout(self._document, width)
        return self._layout_now

    def show(self, document: Document | Sequence[Line], *, in_view: int | None = None) -> None:
        """Show a document, or lines, with one block in view; from the top where none is named.

        The same document scrolls as little as is needed. In another one the block stands near the top, wherever
        the view was before: what is shown depends on what is given, and not on the way to it.
        """
        given = LinesDocument(document) if isinstance(document, Sequence) else document
        if isinstance(given, LinesDocument) and given == self._document and in_view == self._in_view:
            return
        selected = self.selected
        self._from_top = given is not self._document
        self._document = given
        self._in_view = in_view
        if selected is not None:
            self._select_again(selected)
        self.relay()

    def relay(self) -> None:
        """Take up a changed number of blocks, or a changed width, and draw anew."""
        if not self.is_attached or not self.size.width:
            return
        size = Size(self.scrollable_content_region.width, self.layout_now.total)
        # Assigned, a virtual size lays the whole screen out anew; here nothing can move by it.
        self.set_reactive(Widget.virtual_size, size)
        self._scroll_update(size)
        if self._from_top:
            top = 0 if self._in_view is None else self.layout_now.start(self._in_view) - _ROWS_ABOVE
            self._scroll_to_row(top)
        elif self._in_view is not None:
            self.bring_into_view(self._in_view)
        self._repaint()

    def bring_into_view(self, block: int) -> None:
        """Scroll as little as is needed for a block to be seen whole, with a little of what surrounds it."""
        self._in_view = block
        self._from_top = False
        if not self.is_attached or not self.size.width or not 0 <= block < len(self._document):
            return
        layout = self.layout_now
        top, bottom = layout.start(block), layout.start(block + 1)
        height = self.scrollable_content_region.height
        margin = max(0, min(_ROWS_ABOVE, (height - (bottom - top)) // 2))
        first = self.scroll_offset.y
        if bottom + margin > first + height:
            first = bottom + margin - height
        if top - margin < first:
            first = top - margin
        self._scroll_to_row(first)

    # ---- selecting -----------------------------------------------------------------------------------------

    @property
    def selected(self) -> Hashable | None:
        """What the selected line is about; None where none is selected."""
        if self._selected is None or self._selected >= len(self._document):
            return None
        return self._document.subject(self._selected)

    @property
    def first_subject(self) -> Hashable | None:
        """What is meant where nothing is selected: the first subject from the line in view on."""
        start = self._in_view or 0
        blocks = (*range(start, len(self._document)), *range(min(start, len(self._document))))
        return next((subject for block in blocks if (subject := self._document.subject(block)) is not None), None)

    def action_select_next(self) -> None:
        """Select the next line that leads somewhere; where there is none, scroll."""
        top = self.layout_now.block_at(self.scroll_offset.y)
        start = self._selected + 1 if self._selected is not None else top or 0
        self._select_first_of(range(start, len(self._document)))

    def action_select_previous(self) -> None:
        """Select the previous such line."""
        start = self._selected if self._selected is not None else 0
        self._select_first_of(range(start - 1, -1, -1))

    def action_follow(self) -> None:
        """Go where the selected line leads."""
        subject = self.selected if self._selected is not None else self.first_subject
        if subject is not None:
            self.post_message(self.Followed(self, subject))

    def select(self, block: int | None) -> None:
        """Select a line, or none."""
        self._selected = block
        if block is not None:
            self.bring_into_view(block)
        self._repaint()

    def _select_first_of(self, blocks: Iterable[int]) -> None:
        found = next((block for block in blocks if self._document.subject(block) is not None), None)
        if found is not None:
            self.select(found)
        elif isinstance(blocks, range) and blocks.step < 0:
            self.scroll_up(animate=False)
        else:
            self.scroll_down(animate=False)

    def _select_again(self, subject: Hashable) -> None:
        """What was selected stays so in another document, if it is there."""
        same = (block for block in range(len(self._document)) if self._document.subject(block) == subject)
        self._selected = next(same, None)

    def on_focus(self) -> None:
        """The selection shows where the keys go."""
        self._repaint()

    def on_blur(self) -> None:
        """It does not show elsewhere."""
        self._repaint()

    def _row_at(self, number: int) -> Row | None:
        row = self.layout_now.row_at(number)
        if row is None or self._selected is None or not self.has_focus:
            return row
        return replace(row, fill="selected") if self.layout_now.block_at(number) == self._selected else row

    # ---- drawing -------------------------------------------------------------------------------------------

    def _repaint(self) -> None:
        """Have those rows drawn again that are not what they were."""
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        rows = [self._row_at(row) for row in range(top, top + height)]
        before, self._rows_drawn = self._rows_drawn, rows
        thumb = self._thumb
        if (top, thumb) != self._place_drawn or len(before) != height:
            self._place_drawn = top, thumb
            self.refresh()
            return
        changed = [row for row in range(height) if rows[row] != before[row]]
        if changed:
            self.refresh_lines(top + changed[0], changed[-1] - changed[0] + 1)

    def _scroll_to_row(self, row: int) -> None:
        furthest = self.layout_now.total - self.scrollable_content_region.height
        self.scroll_to(y=max(0, min(row, furthest)), animate=False)

    def on_resize(self, event: events.Resize) -> None:
        """Lay out anew: another width wraps otherwise."""
        self._rows_drawn = []
        self.relay()

    def on_click(self, event: events.Click) -> None:
        """Tell which block was clicked."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if self.SHOWS_PLACE and offset.x >= self.layout_now.width:
            self._scroll_to_row(offset.y * self.layout_now.total // max(1, self.scrollable_content_region.height))
            self._repaint()
            return
        block = self.layout_now.block_at(offset.y + self.scroll_offset.y)
        if block is None:
            return
        self.post_message(self.BlockClicked(self, block))
        if self.can_focus and self._document.subject(block) is not None:
            if block == self._selected:
                self.action_follow()
            else:
                self.select(block)

    def notify_style_update(self) -> None:
        """Another theme, or another state: what styles come to is worked out anew."""
        super().notify_style_update()
        self._base = None
        self._styles_of_tones.clear()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw rows of the viewport. What styles come to is worked out once, and not for every frame."""
        if self._base is None:
            self._base = self.rich_style
        self._thumb_now = self._thumb
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Draw one row of the viewport."""
        width = self.layout_now.width
        base = self._base or self.rich_style
        row = self._row_at(y + self.scroll_offset.y)
        place = (
            [Segment(" ", base + self._tone("thumb") if y in self._thumb_now else base)] if self.SHOWS_PLACE else []
        )
        if row is None:
            return Strip([Segment(" " * width, base), *place], width + len(place))
        if row.fill is not None:
            base = base + self._tone(row.fill)
        segments = [Segment(span.text, base + self._tone(span.tone)) for span in row.spans]
        strip = Strip(segments).adjust_cell_length(width, base)
        return Strip([*strip, *place], width + len(place))

    @property
    def _thumb(self) -> range:
        """The rows of the viewport that show its place in the document; none where all of it is in view."""
        height, total = self.scrollable_content_region.height, self.layout_now.total
        if not self.SHOWS_PLACE or total <= height or not height:
            return range(0)
        size = max(1, height * height // total)
        start = (height - size) * min(self.scroll_offset.y, total - height) // (total - height)
        return range(start, start + size)

    def _tone(self, tone: Tone) -> Style:
        if tone not in self._styles_of_tones:
            self._styles_of_tones[tone] = self._style_of(tone)
        return self._styles_of_tones[tone]

    def _style_of(self, tone: Tone) -> Style:
        if tone == "plain":
            return Style.null()
        name = f"tone--{tone}"
        partial = self.get_component_rich_style(name, partial=True)
        # The partial style says what the tone sets; only the whole one has translucent colours blended.
        whole = self.get_component_rich_style(name)
        return partial + Style(
            color=whole.color if partial.color else None, bgcolor=whole.bgcolor if partial.bgcolor else None
        )

    def _rows(self, layout: Layout, block: int) -> Sequence[Row]:
        return self._document.rows(block, layout.width)
