"""Dialogs over a screen: type a line, pick one of several, read a text, see a state before and after."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, ClassVar

from textual import events, on, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.suggester import Suggester
from textual.widgets import Input, OptionList

from memory_backends.text import folded
from memreplay.conversations.catalog import Catalog, ListedConversation
from memreplay.numbers import counted, whole_share
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.screens import Dialog
from memreplay.tui.terminal import TerminalApp
from memreplay.tui.widgets.lines_view import Bar, Fixed, LinesView
from memreplay.views.text import Line, Span, Tone, cells, clip, line, one_line, pad, words_in

Refusal = Callable[[str], str | None]
"""Returns one sentence on why a text is invalid, None if it is valid."""


class PickList(OptionList):
    """Textual's list, which raises KeyError for a page key while its options are not laid out."""

    def action_page_up(self) -> None:
        """Move up a page."""
        if self._index_to_line:
            super().action_page_up()  # type: ignore[no-untyped-call]

    def action_page_down(self) -> None:
        """Move down a page."""
        if self._index_to_line:
            super().action_page_down()  # type: ignore[no-untyped-call]


class _GrowingList(PickList):
    """A list whose last rows are added when they are asked for."""

    def __init__(self, add_rest: Callable[[], None], *, id: str) -> None:
        super().__init__(id=id, compact=True)
        self._add_rest = add_rest

    def action_last(self) -> None:
        """Select the last row of all."""
        self._add_rest()
        super().action_last()


class Hint(Fixed):
    """A sentence on what the dialog expects, or on what is wrong, in as many rows as it needs."""

    SHOWS_PLACE = False

    def say(self, sentence: str, tone: Tone) -> None:
        self.show([line(Span(one_line(sentence), tone))])


class LastWordSuggester(Suggester):
    """Completes the last word of what is typed; right takes it over. ``words`` are found in a thread, once."""

    def __init__(self, words: Callable[[], Sequence[str]]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._find = words
        self._words: Sequence[str] | None = None

    async def get_suggestion(self, value: str) -> str | None:
        start = value.rpartition(" ")[2].lstrip("(")
        if not start:
            return None
        if self._words is None:
            self._words = await asyncio.to_thread(self._find)
        longer = (word for word in self._words if word.startswith(start) and word != start)
        return next((value + word[len(start) :] for word in longer), None)


class TypingScreen(Dialog[str | None]):
    """Returns the typed text, or None. ``value`` is the initial text, ``note`` says what is expected.

    ``preview`` says in a thread what would come of what is typed so far; nothing where it says nothing.
    ``completions`` are words that right completes.
    """

    PLACE: ClassVar[Place] = "prompt"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(
        self,
        title: str,
        note: str,
        *,
        value: str = "",
        refusal: Refusal = lambda text: None,
        preview: Callable[[str], str] | None = None,
        completions: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        super().__init__()
        self._title = title
        self._note = note
        self._value = value
        self._refusal = refusal
        self._preview = preview
        self._suggester = None if completions is None else LastWordSuggester(completions)

    def parts(self) -> ComposeResult:
        with Vertical(id="typing"):
            yield Input(self._value, id="typed", compact=True, suggester=self._suggester)
            yield Hint(id="fits")

    def on_mount(self) -> None:
        self.query_one("#typing").border_title = Content(one_line(self._title))
        self.query_one(Hint).say(self._note, "dim")

    @on(Input.Changed)
    def _typing(self, message: Input.Changed) -> None:
        if self._preview is not None:
            self._show_preview(self._preview, message.value.strip())

    @work(group="reading", exclusive=True)
    async def _show_preview(self, preview: Callable[[str], str], text: str) -> None:
        said = await asyncio.to_thread(preview, text) if text else ""
        if self.is_mounted:
            self.query_one(Hint).say(said or self._note, "value" if said else "dim")

    @on(Input.Submitted)
    def _typed(self, message: Input.Submitted) -> None:
        message.stop()
        problem = self._refusal(message.value.strip())
        if problem is None:
            self.dismiss(message.value.strip())
        else:
            self.query_one(Hint).say(problem, "bad")


class OpeningScreen(Screen[None]):
    """A screen shown while something opens; escape gives up."""

    def __init__(self, name: str, give_up: Callable[[], None], doing: str = "opening") -> None:
        super().__init__()
        self._words, self._give_up, self._doing = f"{name} …", give_up, doing

    def compose(self) -> ComposeResult:
        yield Bar(id="opening")

    def on_mount(self) -> None:
        self.say(self._words)

    def say(self, words: str) -> None:
        """Show how far it is."""
        self._words = words
        for bar in self.query("#opening").results(Bar):
            bar.say(
                Span(f" {self._doing} ", "recorded"),
                Span(f"  {one_line(words)}", "strong"),
                Span("  esc stops", "dim"),
            )

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        if event.key == "escape":
            self._give_up()


@contextmanager
def opening(opener: App[Any] | Screen[Any], name: str) -> Iterator[None]:
    """Show what is being opened. Keys typed meanwhile wait for the screen that opens right after this.

    Escape ends the opener's workers of the group ``opening``.
    """
    app = opener.app
    assert isinstance(app, TerminalApp)

    def give_up() -> None:
        app.workers.cancel_group(opener, "opening")

    screen = OpeningScreen(name, give_up)
    app.begin_opening()
    app.push_screen(screen)
    opened = False
    try:
        yield
        opened = True
    finally:
        if screen in app.screen_stack and app.screen is screen:
            app.pop_screen()
        app.end_opening(opened=opened)


class PickScreen(Dialog[int | None]):
    """Returns the 0-based index of the choice, or None."""

    PLACE: ClassVar[Place] = "pick"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, title: str, names: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._names = tuple(names)

    def parts(self) -> ComposeResult:
        options = PickList(*(Content(one_line(name)) for name in self._names), id="pick", compact=True)
        options.border_title = Content(self._title)
        yield options

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        self.dismiss(message.option_index)


_SHOWN_AT_ONCE = 200
"""Rows that are added to the list at once: laying out thousands takes longer than a key may."""
_ROWS_AHEAD = 50
_SECONDS_BETWEEN_LOOKS = 0.15
_WIDTHS_OF_TITLES = (24, 44)
"""Cells of a title, on a narrow and on a wide screen."""
_WIDE = 100


class ConversationScreen(Dialog[int | None]):
    """Returns the 0-based index of the chosen conversation, or None.

    With a ``catalog`` that another thread still fills, rows appear as they are found; the app calls
    :meth:`reading_ended`.
    """

    PLACE: ClassVar[Place] = "conversations"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, title: str, entries: Sequence[ListedConversation], catalog: Catalog | None = None) -> None:
        super().__init__()
        self._title = title
        self._entries = entries
        self._catalog = catalog
        self._seen = 0
        self._texts: list[str] = []
        """Folded texts of the entries that were seen, for the filter."""
        self._words: tuple[str, ...] = ()
        self._matching: list[int] = []
        self._columns = (0, 0)
        """Widths of dates and lengths."""

    def parts(self) -> ComposeResult:
        with Vertical(id="conversations"):
            yield Input(placeholder="/ to filter", id="words", compact=True)
            yield _GrowingList(lambda: self._add(self._list.option_count, len(self._matching)), id="pick")

    def on_mount(self) -> None:
        self._list.border_title = Content(one_line(self._title))
        self._list.focus()
        self.watch(self._list, "scroll_y", self._fill_ahead, init=False)
        self._look()  # rows get their width with the first layout
        if self._catalog is not None:
            self.set_interval(_SECONDS_BETWEEN_LOOKS, self._look)

    def reading_ended(self) -> None:
        """Show that all conversations are listed; if there is only one, choose it."""
        self._catalog = None
        if len(self._entries) == 1:
            self.dismiss(0)
        else:
            self._look()

    @property
    def _list(self) -> PickList:
        return self.query_one("#pick", PickList)

    def _look(self) -> None:
        """Take in what was found since the last look."""
        if not self.is_attached:
            return
        count, columns = len(self._entries), self._columns
        for index in range(self._seen, count):
            entry = self._entries[index]
            date = _date(entry.date)
            columns = (max(columns[0], len(date)), max(columns[1], cells(entry.length)))
            self._texts.append(folded(one_line(f"{entry.title or ''} {entry.id} {date} {entry.opening}")))
            if self._matches(index):
                self._matching.append(index)
        self._seen = count
        if columns != self._columns:
            self._columns = columns
            self._draw(self._list.highlighted or 0)
        self._fill_ahead()
        self._say()

    def _say(self) -> None:
        # A row without a length leads to the results, and is no conversation.
        results = int(self._seen > 0 and not self._entries[0].length)
        total, matching = self._seen - results, len(self._matching) - (results if 0 in self._matching[:1] else 0)
        parts = [f"{matching:,} of {total:,} conversations" if self._words else counted(total, "conversation")]
        if self._catalog is not None and self._catalog.path is not None:
            read, size = self._catalog.read, max(self._catalog.size, 1)
            parts.insert(0, f"reading {one_line(self._catalog.path.name)}: {whole_share(min(read / size, 1.0))} of")
            parts[0] += f" {size / 1e6:,.0f} MB"
        elif self._catalog is not None:
            parts.insert(0, "opening …")
        self._list.border_subtitle = Content(" · ".join(parts))

    def _matches(self, index: int) -> bool:
        return all(word in self._texts[index] for word in self._words)

    def _fill_ahead(self) -> None:
        """Add rows if the end of those in the list is near."""
        listed, count = self._list, self._list.option_count
        lowest = max(listed.highlighted or 0, int(listed.scroll_y) + listed.size.height)
        if count < len(self._matching) and lowest + _ROWS_AHEAD > count:
            self._add(count, max(count, lowest) + _SHOWN_AT_ONCE)

    def _add(self, start: int, end: int) -> None:
        listed = self._list
        width = max(0, listed.scrollable_content_region.width - 2)
        listed.add_options(self._row(index, width) for index in self._matching[start:end])
        if listed.highlighted is None and listed.option_count:
            listed.highlighted = 0

    def _draw(self, highlighted: int = 0) -> None:
        self._list.clear_options()
        self._add(0, highlighted + _SHOWN_AT_ONCE)
        if self._matching:
            self._list.highlighted = min(highlighted, len(self._matching) - 1)

    def _row(self, index: int, width: int) -> Content:
        """Return title, date, first words and length, cut to the width."""
        entry = self._entries[index]
        dates, lengths = self._columns
        name, opening = one_line(entry.title or entry.id), one_line(entry.opening)
        if not entry.opening:
            rest = f"  {entry.length}" if entry.length else ""
            return Content(f"{clip(name, width - cells(rest))}{rest}")
        most = _WIDTHS_OF_TITLES[width >= _WIDE]
        date = f"{pad(_date(entry.date), dates)}  " if dates else ""
        room = max(0, width - most - 2 - cells(date) - lengths - 2)
        length = " " * (lengths - cells(entry.length)) + entry.length
        return Content.assemble(f"{pad(name, most)}  {date}", (pad(opening, room), "dim"), f"  {length}")

    # ---- what the user does --------------------------------------------------------------------------------

    def on_resize(self) -> None:
        if self._seen:
            self.call_after_refresh(lambda: self._draw(self._list.highlighted or 0))

    @on(Input.Changed, "#words")
    def _filtered(self, message: Input.Changed) -> None:
        self._words = words_in(message.value)
        self._matching = [index for index in range(self._seen) if self._matches(index)]
        self._draw()
        self._say()

    @on(Input.Submitted, "#words")
    def _entered(self) -> None:
        self._list.focus()

    @on(OptionList.OptionHighlighted)
    def _moved(self) -> None:
        self._fill_ahead()

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        self.dismiss(self._matching[message.option_index])

    def action_filter(self) -> None:
        self.query_one("#words", Input).focus()

    def action_to_list(self) -> None:
        self._list.focus()

    def action_leave(self) -> None:
        typed = self.query_one("#words", Input)
        if typed.has_focus or typed.value:
            typed.value = ""
            self._list.focus()
        else:
            self.dismiss(None)


def _date(date: datetime | None) -> str:
    return "" if date is None else f"{date.day:2} {date:%b %Y}"


class TextScreen(Dialog[None]):
    """Shows lines in full; escape closes it."""

    PLACE: ClassVar[Place] = "pick"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, title: str, lines: Sequence[Line]) -> None:
        super().__init__()
        self._title = title
        self._lines = lines

    def parts(self) -> ComposeResult:
        view = LinesView(id="text", classes="panel")
        view.border_title = Content(one_line(self._title))
        yield view

    def on_mount(self) -> None:
        view = self.query_one("#text", LinesView)
        view.show(self._lines)
        view.focus()


class BesideScreen(Dialog[None]):
    """A state in two aligned ``columns``, before and after. ``titles`` name their positions."""

    PLACE: ClassVar[Place] = "beside"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, key: str, columns: tuple[Sequence[Line], Sequence[Line]], titles: tuple[str, str]) -> None:
        super().__init__()
        self._key = key
        self._columns = columns
        self._titles = titles

    def parts(self) -> ComposeResult:
        with Horizontal(id="beside"):
            yield LinesView(id="before", classes="panel")
            yield LinesView(id="after", classes="panel")

    def on_mount(self) -> None:
        for name, title, lines in zip(("before", "after"), self._titles, self._columns, strict=True):
            view = self.query_one(f"#{name}", LinesView)
            view.border_title = Content(f"{title} · {one_line(self._key)}")
            view.show(lines)
        self.query_one("#after", LinesView).focus(scroll_visible=False)
