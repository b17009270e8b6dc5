"""The base of every panel: draws a document, scrolls it, and lets its lines be selected and followed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
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

from memory_backends.text import folded
from memreplay.numbers import counted
from memreplay.tui.actions import bindings_of
from memreplay.views.document import Document, Layout, LinesDocument
from memreplay.views.text import Line, Row, Span, Tone, line, marked, one_line, visible, words_in

AROUND_A_TITLE = 4
"""Cells of a border that its title cannot use."""
_MOST_CACHED = 1024
_MOST_SEARCHED = 2000
_ROWS_ABOVE = 2

Place = bool | None
"""Whether the cell after a row belongs to the scroll thumb; None if rows have no such cell."""


@dataclass(frozen=True)
class Frame:
    """The borders: strips above and below the rows, and the cells left and right of every row."""

    above: tuple[Strip, ...]
    sides: tuple[Strip, Strip]
    below: tuple[Strip, ...]


class RowPainter:
    """Draws and caches the rows of one view. Call :meth:`forget` when theme, state or size change."""

    def __init__(self, view: Widget) -> None:
        self._view = view
        self._base: Style | None = None
        self._tones: dict[Tone, Style] = {}
        self._frame: tuple[object, Frame] | None = None
        # By identity: comparing the contents of rows takes as long as drawing them.
        self._cached: dict[tuple[int, Place], tuple[Row | None, Strip]] = {}

    def forget(self) -> None:
        self._base = None
        self._frame = None
        self._tones.clear()
        self._cached.clear()

    def content(self, row: Row | None, width: int, place: Place) -> Strip:
        """Return a row at a width in cells, followed by its thumb cell."""
        if self._base is None:
            self._base = self._view.rich_style
        whole = base = self._base
        over = Style.null()
        if row is not None and row.fill is not None:
            fill = self._tone(row.fill)
            base = base + fill
            # A fill with a colour of its own is one that most colours cannot be read on.
            over = Style(color=fill.color)
        spans = () if row is None else row.spans
        strip = Strip([Segment(span.text, self._on(base, whole, span.tone, over)) for span in spans])
        strip = strip.adjust_cell_length(width, base)
        if place is None:
            return strip
        return Strip([*strip, Segment(" ", whole + self._tone("thumb") if place else whole)], width + 1)

    def _on(self, base: Style, whole: Style, tone: Tone, over: Style) -> Style:
        """Return a tone on a row that may be filled; a reversed one keeps its own colours."""
        style = self._tone(tone)
        return whole + style if over.color and style.reverse else base + style + over

    def frame(self, titles: object, draw: Callable[[], Frame]) -> Frame:
        """Return the borders; drawn again if the titles in them changed."""
        if self._frame is None or self._frame[0] != titles:
            self._frame = titles, draw()
        return self._frame[1]

    def lines(self, rows: Sequence[tuple[Row | None, Place]], width: int) -> list[Strip]:
        """Rows with their borders, as they appear on the screen."""
        if len(self._cached) > _MOST_CACHED:
            self._cached.clear()
        return [self._line(row, width, place) for row, place in rows]

    def _line(self, row: Row | None, width: int, place: Place) -> Strip:
        kept = self._cached.get((id(row), place))
        if kept is not None and kept[0] is row:
            return kept[1]
        strip = self.content(row, width, place)
        background = self._view.background_colors[1]
        for line_filter in self._view.get_line_filters():
            strip = strip.apply_filter(line_filter, background)
        if self._frame is not None:
            left, right = self._frame[1].sides
            strip = Strip.join([left, strip, right])
        self._cached[id(row), place] = row, strip
        return strip

    def _tone(self, tone: Tone) -> Style:
        if tone not in self._tones:
            self._tones[tone] = self._style_of(tone)
        return self._tones[tone]

    def _style_of(self, tone: Tone) -> Style:
        if tone == "plain":
            return Style.null()
        styles = self._view.app.get_component_styles(f"tone--{tone}")
        # The partial style says what the tone sets; only the whole one blends translucent colours.
        partial, whole = styles.partial_rich_style, styles.rich_style
        return partial + Style(
            color=whole.color if partial.color else None, bgcolor=whole.bgcolor if partial.bgcolor else None
        )


@dataclass(frozen=True)
class _Window:
    """The visible rows, from the document's row ``top`` on, and those of them that show the scroll thumb."""

    width: int
    top: int
    rows: tuple[Row | None, ...]
    place: range | None

    def row(self, at: int) -> tuple[Row | None, Place]:
        return self.rows[at] if at < len(self.rows) else None, None if self.place is None else at in self.place


class LinesView(ScrollView, can_focus=True):
    """Shows lines, or any document, and posts which ones the user follows or clicks.

    The cost of drawing does not depend on the length of the document. The app has the tones as its component
    classes: were they the view's own, Textual would work all of them out again for every view whose focus changes.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings_of("panel")
    ALLOW_SELECT = False
    SHOWS_PLACE: ClassVar[bool] = True
    """True if the last cell of each row shows a scroll thumb."""
    TELLS_REST: ClassVar[bool] = False
    """True if the last row counts the rows below that do not fit."""

    @dataclass
    class Followed(Message):
        """The user follows a line to its subject."""

        view: LinesView
        subject: Hashable

    @dataclass
    class BlockClicked(Message):
        """The user clicked a block."""

        view: LinesView
        block: int

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._document: Document = LinesDocument(())
        self._layout_now = Layout(self._document, 0)
        self._in_view: int | None = None
        self._from_top = True
        self._selected: int | None = None
        self._window = _Window(0, -1, (), None)
        self._painter = RowPainter(self)
        self._found: tuple[str, ...] = ()

    def show(self, document: Document | Sequence[Line], *, in_view: int | None = None) -> None:
        """Show a document, or lines, with one block in view, or from the top if none is named.

        The same document scrolls as little as possible. In another document the block appears near the top
        wherever the view was before, so that what is shown depends on the arguments alone.
        """
        given = LinesDocument(document) if isinstance(document, Sequence) else document
        if isinstance(given, LinesDocument) and given == self._document and in_view == self._in_view:
            return
        selected = self.selected
        self._from_top = given is not self._document
        self._document = given
        self._in_view = in_view
        if selected is not None:
            self._selected = self._line_about(selected)
        self.relay()

    @property
    def allow_vertical_scroll(self) -> bool:
        """Always, though it has no scrollbar: Textual's is a separate widget, and repainted at every move."""
        return not self.disabled

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return Layout(self._document, max(width - self.SHOWS_PLACE, 1)).total

    @property
    def document(self) -> Document:
        return self._document

    @property
    def text(self) -> str:
        """Return all rows as plain text at the current width."""
        layout = self.layout_now
        layout.measure(0, before=0, after=sys.maxsize)
        return "\n".join(row.text.rstrip() for row in layout.rows_from(0, layout.total) if row is not None)

    @property
    def layout_now(self) -> Layout:
        """Return the layout of the document at the current width."""
        width = max(self.scrollable_content_region.width - self.SHOWS_PLACE, 1)
        if self._layout_now.document is not self._document or self._layout_now.width != width:
            self._layout_now = Layout(self._document, width)
        return self._layout_now

    # ---- scrolling -----------------------------------------------------------------------------------------

    def relay(self) -> None:
        """Adapt to a changed number of blocks or a changed width, and repaint."""
        if not self.is_attached or not self.size.width:
            return
        layout, height = self.layout_now, self.scrollable_content_region.height
        top = layout.block_at(self.scroll_offset.y)
        below = self.scroll_offset.y - layout.start(top or 0)
        if self._in_view is not None and self._in_view < len(self._document):
            layout.measure(self._in_view, before=2 * height, after=2 * height)
        self._extend_to(layout.total)
        # The heights of blocks above may have been estimates: keep the visible rows where they are.
        self.scroll_y = self.validate_scroll_y(layout.start(top) + below if top is not None else self.scroll_y)
        if self._from_top:
            self._scroll_to_row(0 if self._in_view is None else layout.start(self._in_view) - _ROWS_ABOVE)
        elif self._in_view is not None:
            self._scroll_to_block(self._in_view)
        self.repaint()

    def bring_into_view(self, block: int) -> None:
        """Scroll as little as possible to show a whole block with a little of its surroundings."""
        self._in_view = block
        self._from_top = False
        self.relay()

    def _extend_to(self, rows: int) -> None:
        if rows == self.virtual_size.height:
            return
        if self.styles.is_auto_height:
            self.refresh(layout=True)
        # Assigning virtual_size would lay out the whole screen again, which few views need.
        self.set_reactive(Widget.virtual_size, Size(self.scrollable_content_region.width, rows))

    def _scroll_to_block(self, block: int) -> None:
        if not 0 <= block < len(self._document):
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

    @property
    def found_words(self) -> tuple[str, ...]:
        """Return the words that are highlighted, folded."""
        return self._found

    def highlight_text(self, text: str) -> None:
        """Highlight the words of a text wherever they stand; an empty text ends it."""
        words = words_in(text)
        if words != self._found:
            self._found = words
            if self.is_attached and self.size.width:
                self.repaint()

    # ---- drawing -------------------------------------------------------------------------------------------

    def repaint(self) -> None:
        """Draw the rows again that changed, or all of them if the view scrolled."""
        before, self._window = self._window, self._visible()
        now = self._window
        if (now.top, now.place, len(now.rows)) != (before.top, before.place, len(before.rows)):
            self.refresh()
            return
        changed = [at for at, (row, was) in enumerate(zip(now.rows, before.rows, strict=True)) if row != was]
        if changed:
            self.refresh_lines(now.top + changed[0], changed[-1] - changed[0] + 1)

    def _visible(self) -> _Window:
        layout, top, height = self.layout_now, self.scroll_offset.y, self.scrollable_content_region.height
        rows = layout.rows_from(top, height)
        self._extend_to(layout.total)
        if self._found:
            rows = [row if row is None else marked(row, self._found) for row in rows]
        if self.TELLS_REST:
            layout.measure(0, before=0, after=sys.maxsize)
            rest = layout.total - top - height
            if rest > 0 and height > 1:
                rows[-1] = Row((Span(f"… {counted(rest + 1, 'more row')}", "warn"),))
        block = self.highlighted
        if block is not None and block < len(self._document):
            first, end = layout.start(block) - top, layout.start(block + 1) - top
            for at in range(max(first, 0), min(end, height)):
                row = rows[at]
                rows[at] = row if row is None else replace(row, fill="selected")
        return _Window(layout.width, top, tuple(rows), self._place(top, height) if self.SHOWS_PLACE else None)

    def _place(self, top: int, height: int) -> range:
        """Return the rows of the viewport that show the scroll thumb; none if the whole document fits."""
        total = self.layout_now.total
        if total <= height or not height:
            return range(0)
        size = max(1, height * height // total)
        start = (height - size) * min(top, total - height) // (total - height)
        return range(start, start + size)

    def _scroll_to_row(self, row: int) -> None:
        furthest = self.layout_now.total - self.scrollable_content_region.height
        wanted = max(0, min(row, furthest))
        if not self.scroll_y == self.scroll_target_y == wanted:
            self.scroll_to(y=wanted, animate=False)

    def on_resize(self, event: events.Resize) -> None:
        self._painter.forget()
        self.relay()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._painter.forget()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw the borders as Textual does, and the document between them."""
        if self._window.top != self.scroll_offset.y or self._window.width != self.layout_now.width:
            self._window = self._visible()
        frame = self._painter.frame((self._border_title, self._border_subtitle), self._framed)
        rows = [self._window.row(at) for at in range(self.outer_size.height - len(frame.above) - len(frame.below))]
        strips = [*frame.above, *self._painter.lines(rows, self._window.width), *frame.below]
        cut = [strip.crop(*crop.column_span) for strip in strips] if crop.width != self.outer_size.width else strips
        return cut[crop.y : crop.bottom]

    def _framed(self) -> Frame:
        """Draw the borders, and of the rows between them only the first, which shows the sides of all."""
        (width, height), edges = self.outer_size, self.gutter
        draw = super().render_lines
        end = max(edges.top, height - edges.bottom)
        # A call takes long, whatever it draws.
        *above, sample = draw(Region(0, 0, width, edges.top + 1))
        if edges.top >= end:
            sample = Strip.blank(width)
        sides = sample.crop(0, edges.left), sample.crop(width - edges.right, width)
        below = draw(Region(0, end, width, height - end)) if end < height else ()
        return Frame(tuple(above), sides, tuple(below))

    def render_line(self, y: int) -> Strip:
        row, place = self._window.row(y)
        return self._painter.content(row, self._window.width, place)

    # ---- selecting -----------------------------------------------------------------------------------------

    @property
    def selected(self) -> Hashable | None:
        """Return the subject of the selected line."""
        if self._selected is None or self._selected >= len(self._document):
            return None
        return self._document.subject(self._selected)

    @property
    def highlighted(self) -> int | None:
        """Return the selected line, while the view has the focus."""
        return self._selected if self.has_focus else None

    @property
    def first_subject(self) -> Hashable | None:
        """Return the default where nothing is selected: the first subject from the line in view on."""
        start, count = self._in_view or 0, len(self._document)
        blocks = chain(range(start, count), range(min(start, count)))
        return next((subject for block in blocks if (subject := self._document.subject(block)) is not None), None)

    def action_select_next(self) -> None:
        """Select the next line that has a subject; if there is none, scroll."""
        top = self.layout_now.block_at(self.scroll_offset.y)
        start = self._selected + 1 if self._selected is not None else top or 0
        self._select_first_of(range(start, len(self._document)))

    def action_select_previous(self) -> None:
        start = self._selected if self._selected is not None else 0
        self._select_first_of(range(start - 1, -1, -1))

    def action_follow(self) -> None:
        subject = self.selected if self._selected is not None else self.first_subject
        if subject is not None:
            self.post_message(self.Followed(self, subject))

    def select(self, block: int | None) -> None:
        self._selected = block
        if block is None:
            self.repaint()
        else:
            self.bring_into_view(block)

    def select_with_rest(self, block: int) -> None:
        """Select a line, and bring the lines below it that belong to it into view too."""
        rest = range(block + 1, len(self._document))
        end = next((below for below in rest if self._document.subject(below) is not None), len(self._document))
        self.bring_into_view(end - 1)
        self.select(block)

    def _select_first_of(self, blocks: Iterable[int]) -> None:
        found = next((block for block in blocks if self._document.subject(block) is not None), None)
        if found is not None:
            self.select(found)
        elif isinstance(blocks, range) and blocks.step < 0:
            self.scroll_up(animate=False)
        else:
            self.scroll_down(animate=False)

    def _line_about(self, subject: Hashable) -> int | None:
        """Return the selected line if it is about a subject; else the first one, which takes long in a long
        document.
        """
        return self._selected if self.selected == subject else self.block_about(subject)

    def block_about(self, subject: Hashable) -> int | None:
        """Return the first line about a subject."""
        blocks = range(len(self._document))
        return next((block for block in blocks if self._document.subject(block) == subject), None)

    def block_with_text(self, text: str, near: int | None = None) -> int | None:
        """Return the first line that holds a text, ignoring case and accents; with ``near``, whether that line
        does.

        It looks at the lines that are drawn, and in a long document at the first ones only.
        """
        wanted = " ".join(folded(visible(text)).split())
        count = len(self._document)
        blocks = range(min(count, _MOST_SEARCHED)) if near is None else range(count)[near : near + 1]
        return next((block for block in blocks if wanted in self._text_of(block)), None)

    def _text_of(self, block: int) -> str:
        if isinstance(self._document, LinesDocument):
            text = "".join(span.text for span in self._document.lines[block].spans)
        else:
            text = " ".join(row.text for row in self._document.rows(block, self.layout_now.width))
        return " ".join(folded(text).split())

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self.repaint()

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if self.SHOWS_PLACE and offset.x >= self.layout_now.width:
            self._scroll_to_row(offset.y * self.layout_now.total // max(1, self.scrollable_content_region.height))
            self.repaint()
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


class Fixed(LinesView, can_focus=False):
    """A view of few rows that no cursor moves through: the last row says how many do not fit."""

    TELLS_REST = True


class Bar(Fixed):
    """A single row."""

    SHOWS_PLACE = False

    def say(self, *parts: str | Span) -> None:
        """Show one line; what does not fit ends in an ellipsis."""
        self.show([line(*parts, most=1)])


class Legend(Bar):
    """Meanings of the signs of a screen, in as many rows as that takes."""

    def say(self, *parts: str | Span) -> None:
        """Show the meanings, which wrap where a row is full."""
        self.show([line(*parts, hang=1)])


class Head(Fixed):
    """The few lines that a page is about. They stay in sight wherever the page below is scrolled to."""

    SHOWS_PLACE = False


class NoteBar(Bar):
    """A sentence behind a sign; hidden while there is none."""

    def __init__(self, sign: str, sign_tone: Tone, tone: Tone, *, id: str) -> None:
        super().__init__(id=id)
        self._sign = Span(sign, sign_tone)
        self._tone = tone
        self.display = False

    def set(self, sentence: str) -> None:
        """Show a sentence, or hide the bar if it is empty."""
        self.display = bool(sentence)
        if sentence:
            self.say(self._sign, Span(one_line(sentence), self._tone))
