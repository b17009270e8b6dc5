"""Finding places again: a search through the whole session, and bookmarks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from string import ascii_lowercase

from memreplay.debugger.search import Match, SearchIndex, SearchMatches
from memreplay.timeline.annotations import Bookmark
from memreplay.timeline.timeline import Timeline
from memreplay.tui.controllers.host import ReplayHost, save
from memreplay.tui.controllers.navigation import Navigation
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from memreplay.tui.sources import ReplaySource
from memreplay.tui.text import one_line
from memreplay.tui.widgets.strip import TimelineStrip


class Search:
    """Finds a text in messages, states, hits and prompts, and walks through its matches."""

    def __init__(self, timeline: Timeline, navigation: Navigation, host: ReplayHost) -> None:
        self._timeline = timeline
        self._navigation = navigation
        self._host = host
        self._index: SearchIndex | None = None
        self._indexing = asyncio.Lock()
        self._text = ""
        self._found: SearchMatches | None = None
        self._events = 0

    def on_replay_event(self) -> None:
        """There is more to find."""
        self._events += 1
        self._found = None

    def open(self) -> None:
        """Ask for a text. The session is indexed while the user types."""
        self._start(lambda found: None)
        note = "in messages, states, hits and prompts; n and N walk through"
        self._host.open_screen(TypingScreen("search", note, value=self._text), self._typed)

    def _typed(self, text: str | None) -> None:
        if text:
            self._text, self._found = text, None
            self._start(self._to_nearest)

    def next_match(self) -> None:
        """Jump to the next match, or to the first one if none follows."""
        self._walk(self._to_next)

    def previous_match(self) -> None:
        """Jump to the previous match, or to the last one if none precedes."""
        self._walk(self._to_previous)

    def _walk(self, then: Callable[[SearchMatches], None]) -> None:
        if self._text:
            self._start(then)
        else:
            self.open()

    def _start(self, then: Callable[[SearchMatches], None]) -> None:
        async def find() -> None:
            # Indexing may take seconds, and finding grows with the session: no key waits for them.
            async with self._indexing:
                found, events = self._found, self._events
                if found is None:
                    found = await asyncio.to_thread(self._find, self._text)
                    self._found = found if events == self._events else None
            then(found)

        self._host.run_worker(find(), group="search", exclusive=False)

    def _find(self, text: str) -> SearchMatches:
        if self._index is None:
            self._index = SearchIndex(self._timeline)
        self._index.catch_up()
        return self._index.find(text)

    def _to_nearest(self, found: SearchMatches) -> None:
        here = found.at(self._navigation.cursor)
        self._jump(here[0] if here else self._after_cursor(found), found)

    def _to_next(self, found: SearchMatches) -> None:
        self._jump(self._after_cursor(found), found)

    def _to_previous(self, found: SearchMatches) -> None:
        end = self._timeline.reached + 1
        self._jump(found.previous_match(self._navigation.cursor) or found.previous_match(end), found)

    def _after_cursor(self, found: SearchMatches) -> Match | None:
        return found.next_match(self._navigation.cursor) or found.next_match(-1)

    def _jump(self, match: Match | None, found: SearchMatches) -> None:
        if match is None:
            self._host.report(f"{one_line(self._text)} does not occur in this session.")
            return
        where = f"{match.where} {match.place}".strip()
        note = f"“{self._text}” in {where} · {len(found)} matches · n N"
        self._navigation.jump(match.turn, match.backend or None, note)


class Bookmarks:
    """Named turns with notes. They are saved with the recording."""

    def __init__(
        self, source: ReplaySource, navigation: Navigation, strip: TimelineStrip, host: ReplayHost
    ) -> None:
        self._source = source
        self._strip = strip
        self._navigation = navigation
        self._host = host

    def show(self) -> None:
        """Show the bookmarks on the strip."""
        bookmarks = self._source.annotations.bookmarks()
        self._source.timeline.marks.set_bookmarks(bookmark.turn for bookmark in bookmarks)
        self._strip.refresh_marks()
        self._host.paint_progress()

    def edit(self) -> None:
        """Ask for the name and note of this turn's bookmark; an empty name removes it."""
        turn = self._navigation.cursor
        here = next((one for one in self._source.annotations.bookmarks() if one.turn == turn), None)
        value = self._free_name(turn) if here is None else f"{here.mark} {here.note}".strip()
        note = "a name, then a note if you like; nothing removes the bookmark here"

        def typed(text: str | None) -> None:
            if text is not None:
                annotations = self._source.annotations
                save(self._host, annotations, lambda: self._set(turn, text))
                self.show()

        self._host.open_screen(TypingScreen(f"bookmark turn {turn}", note, value=value), typed)

    def _free_name(self, turn: int) -> str:
        taken = {bookmark.mark for bookmark in self._source.annotations.bookmarks()}
        return next((letter for letter in ascii_lowercase if letter not in taken), f"turn-{turn}")

    def _set(self, turn: int, text: str) -> None:
        annotations = self._source.annotations
        for bookmark in annotations.bookmarks():
            if bookmark.turn == turn:
                annotations.remove_bookmark(bookmark.mark)
        if text:
            name, _, note = text.partition(" ")
            annotations.set_bookmark(Bookmark(mark=name, turn=turn, note=note.strip()))

    def open_list(self) -> None:
        """List the bookmarks and jump to the chosen one."""
        bookmarks = list(self._source.annotations.bookmarks())
        if not bookmarks:
            self._host.report("No bookmark yet: m sets one.")
            return
        names = [f"★ {one.mark}  turn {one.turn}  {one.note}" for one in bookmarks]

        def chosen(place: int | None) -> None:
            if place is not None:
                self._navigation.jump(bookmarks[place].turn, note=bookmarks[place].note)

        self._host.open_screen(PickScreen("bookmarks", names), chosen)
