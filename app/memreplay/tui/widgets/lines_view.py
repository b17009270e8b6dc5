"""The base of every panel, a document whose lines can be selected and followed; and single rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from memory_backends.text import folded
from memreplay.tui.actions import bindings_of
from memreplay.tui.widgets.document_view import DocumentView
from memreplay.views.document import Document, LinesDocument
from memreplay.views.text import Line, Span, Tone, line, one_line, visible

AROUND_A_TITLE = 4
"""Cells of a border that its title cannot use."""
_MOST_SEARCHED = 2000


class LinesView(DocumentView, can_focus=True):
    """Shows lines, or any document, and posts which ones the user follows or clicks."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of("panel")

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
        self._selected: int | None = None

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

    # ---- selecting -----------------------------------------------------------------------------------------

    @property
    def selected(self) -> Hashable | None:
        """The subject of the selected line."""
        if self._selected is None or self._selected >= len(self._document):
            return None
        return self._document.subject(self._selected)

    @property
    def highlighted(self) -> int | None:
        """The selected line, while the view has the focus."""
        return self._selected if self.has_focus else None

    @property
    def first_subject(self) -> Hashable | None:
        """The default where nothing is selected: the first subject from the line in view on."""
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
        """The selected line if it is about a subject; else the first one, which takes long in a long document."""
        return self._selected if self.selected == subject else self.block_about(subject)

    def block_about(self, subject: Hashable) -> int | None:
        """The first line about a subject."""
        blocks = range(len(self._document))
        return next((block for block in blocks if self._document.subject(block) == subject), None)

    def block_with_text(self, text: str, near: int | None = None) -> int | None:
        """The first line that holds a text, ignoring case and accents; with ``near``, whether that line does.

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


class Bar(LinesView, can_focus=False):
    """A single row."""

    SHOWS_PLACE = False

    def say(self, *parts: str | Span) -> None:
        """Show one line; what does not fit ends in an ellipsis."""
        self.show([line(*parts, most=1)])


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
