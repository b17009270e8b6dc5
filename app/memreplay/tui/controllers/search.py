"""Finding places again: a search through the whole session, and bookmarks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import islice
from string import ascii_lowercase
from threading import Lock
from time import monotonic
from typing import Final, Literal

from memreplay.debugger.search import Match, SearchIndex, SearchMatches
from memreplay.timeline.annotations import FAILS, Bookmark
from memreplay.timeline.timeline import Timeline
from memreplay.tui.controllers import ReplayHost, save, turns_in_short
from memreplay.tui.controllers.navigation import Navigation
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from memreplay.tui.sources import ReplaySource
from memreplay.tui.widgets.architectures import Architectures
from memreplay.tui.widgets.lines_view import LinesView
from memreplay.tui.widgets.strip import TimelineStrip
from memreplay.views.panels import short_key
from memreplay.views.text import one_line

_Choice = Callable[[SearchMatches], int]
"""Chooses the number of the match to show; one beyond either end means the one at the other end."""

_STRIDE: Final = 250
"""Positions that are indexed between two looks for the text."""

_SECONDS_OF_A_PREVIEW: Final = 1.0
_MOST_PREVIEWED: Final = 200

_FAR: Final = 1000
"""After so many positions any match is shown: a nearer one may still be found where nothing was read yet."""


class Search:
    """Finds a text in messages, states, hits and prompts, and walks through its matches.

    The session is indexed from the cursor on. A match is shown as soon as none can come before it.
    """

    def __init__(
        self,
        timeline: Timeline,
        navigation: Navigation,
        conversation: LinesView,
        answers: LinesView,
        architectures: Architectures,
        host: ReplayHost,
    ) -> None:
        self._conversation = conversation
        self._answers = answers
        self._architectures = architectures
        self._shown: Match | None = None
        self._timeline = timeline
        self._navigation = navigation
        self._host = host
        self._index: SearchIndex | None = None
        self._reading = Lock()
        """A preview and a search read the session in threads of their own."""
        self._wanted: list[_Choice] = []
        self._is_reading = False
        self._text = ""
        self._found: SearchMatches | None = None
        self._told: Literal["", "some", "all"] = "all"
        self._events = 0

    def on_replay_event(self) -> None:
        """There is more to find."""
        self._events += 1
        self._found = None

    def open(self) -> None:
        """Ask for a text. The session is indexed while the user types."""
        self._start()
        note = "in messages, states, hits and prompts; n and N walk through"
        self._host.open_screen(TypingScreen("search", note, value=self._text, preview=self._preview), self._typed)

    def _preview(self, text: str) -> str:
        """Return where a text stands, as far as is read after a moment; in a thread."""
        given_up = monotonic() + _SECONDS_OF_A_PREVIEW
        while True:
            is_whole, found = self._find(text, self._navigation.cursor)
            if is_whole or monotonic() > given_up:
                break
        if not len(found):
            return "no match" if is_whole else "no match so far"
        turns = list(dict.fromkeys(match.turn for match in islice(found, _MOST_PREVIEWED)))
        count = f"{len(found):,} match{'' if len(found) == 1 else 'es'}"
        return f"{count}{'' if is_whole else ' so far'}: {turns_in_short(turns)}"

    def _typed(self, text: str | None) -> None:
        if text:
            self._text, self._found, self._shown = text, None, None
            self._wanted.clear()
            self._start(self._nearest)

    def clear(self) -> bool:
        """Forget the text and its marks. Returns whether there was one."""
        was_there, self._text, self._found, self._shown = bool(self._text), "", None, None
        self._wanted.clear()
        self._mark("")
        return was_there

    def next_match(self) -> None:
        """Jump to the next match, or to the first one if none follows."""
        self._walk(self._next)

    def previous_match(self) -> None:
        """Jump to the previous match, or to the last one if none precedes."""
        self._walk(self._previous)

    def _walk(self, choice: _Choice) -> None:
        if self._text:
            self._start(choice)
        else:
            self.open()

    def _start(self, *wanted: _Choice) -> None:
        """Jump to a match when it is known, and index all there is meanwhile."""
        self._wanted += wanted
        if not self._is_reading:
            self._is_reading = True
            self._host.run_worker(self._read_on(), group="search", exclusive=False)

    async def _read_on(self) -> None:
        # Indexing may take seconds, and finding grows with the session: no key waits for them.
        try:
            read = 0
            while True:
                text, events = self._text, self._events
                if self._found is not None:
                    is_whole, found = True, self._found
                else:
                    is_whole, found = await asyncio.to_thread(self._find, text, self._navigation.cursor)
                    read += _STRIDE
                    if text != self._text:
                        continue
                    self._found = found if is_whole and events == self._events else None
                while self._wanted and self._is_settled(found, is_whole or read >= _FAR, is_whole):
                    self._jump(self._wanted.pop(0)(found), found, is_whole)
                if is_whole and not self._wanted:
                    self._tell(found, is_whole)
                    return
        finally:
            self._is_reading = False

    def _find(self, text: str, near: int) -> tuple[bool, SearchMatches]:
        with self._reading:
            if self._index is None:
                self._index = SearchIndex(self._timeline)
            is_whole = self._index.catch_up(_STRIDE, near)
            return is_whole, self._index.find(text)

    def _is_settled(self, found: SearchMatches, is_any_good: bool, is_whole: bool) -> bool:
        """Return whether the match that is wanted first is known."""
        if is_whole or not len(found):
            return is_whole
        cursor, target = self._navigation.cursor, found[self._wanted[0](found) % len(found)].turn
        assert self._index is not None
        return is_any_good or self._index.has_read(min(cursor, target), max(cursor, target))

    def _nearest(self, found: SearchMatches) -> int:
        """Return the first match at the cursor or after it."""
        return found.first_from(self._navigation.cursor)

    def _next(self, found: SearchMatches) -> int:
        here = self._here(found)
        return found.first_from(self._navigation.cursor + 1) if here is None else here + 1

    def _previous(self, found: SearchMatches) -> int:
        here = self._here(found)
        return found.first_from(self._navigation.cursor) - 1 if here is None else here - 1

    def _here(self, found: SearchMatches) -> int | None:
        """Return the number of the match that is shown, while the cursor is still at it."""
        if self._shown is None or self._shown.turn != self._navigation.cursor:
            return None
        return found.number_of(self._shown)

    def _jump(self, place: int, found: SearchMatches, is_whole: bool) -> None:
        """Show a match by its number; after the last comes the first."""
        if not len(found):
            self._mark("")
            self._host.report(f"no match for {one_line(self._text)}")
            return
        self._shown = match = found[place % len(found)]
        self._navigation.jump(match.turn, match.backend or None, "")
        self._mark(self._text)
        self._point_at(match)
        self._told = ""
        self._tell(found, is_whole)

    def _tell(self, found: SearchMatches, is_whole: bool) -> None:
        """Say which match is shown, once, and again when all of them are counted."""
        here = self._here(found)
        if here is None or self._shown is None or not len(found) or self._told == "all":
            return
        self._told = "all" if is_whole else "some"
        match = self._shown
        number = f"{here + 1} of {len(found)} matches" if is_whole else "a match, counting the others,"
        self._host.announce(f"{number} of “{self._text}” · in {self._where(match)} · n N")

    def _where(self, match: Match) -> str:
        if self._is_of_a_question(match):
            what = "the prompt" if match.where == "prompt" else "a hit"
            return f"{what} for {one_line(match.place)} · {one_line(match.backend)} · enter shows it"
        place = short_key(match.place, self._timeline.conversation.id, match.backend)
        return " · ".join(part for part in (match.where, one_line(match.backend), place) if part)

    @staticmethod
    def _is_of_a_question(match: Match) -> bool:
        """Return whether the match was retrieved or sent for a question: the why screen shows it, and no panel."""
        return match.where in ("hit", "prompt") and bool(match.place)

    def _mark(self, text: str) -> None:
        """Highlight a text in the conversation and in all panels; an empty one ends it."""
        for view in self._views():
            view.highlight_text(text)

    def _views(self) -> list[LinesView]:
        panels = [panel for pane in self._architectures.panes for panel in pane.panels]
        return [self._conversation, *panels]

    def _point_at(self, match: Match) -> None:
        """Focus the view that shows the match, and select its line."""
        if self._is_of_a_question(match):
            question = self._timeline.question(match.place)
            line = self._answers.block_with_text(question.text) if question is not None else None
            if line is not None:
                self._answers.focus(scroll_visible=False)
                self._answers.select(line)
            return
        if not match.backend:
            place = self._conversation.block_with_text(self._text, near=match.turn - 1)
            if place is not None:
                self._conversation.focus(scroll_visible=False)
                self._conversation.select(place)
            return
        self._architectures.select_text(match.backend, self._text, in_hits=match.where == "hit")


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

    def open(self, turn: int) -> None:
        """Move to the turn where this conversation was left, or at first to the failure that it was shrunk to."""
        self._navigation.move_to(turn)
        fails = next((one for one in self._source.annotations.bookmarks() if one.mark == FAILS), None)
        if fails is not None and turn == 1:
            self._navigation.jump(fails.turn, note=fails.note)

    def edit(self) -> None:
        """Ask for the name and note of this turn's bookmark; an empty name removes it."""
        turn = self._navigation.cursor
        here = next((one for one in self._source.annotations.bookmarks() if one.turn == turn), None)
        value = self._free_name(turn) if here is None else f"{here.mark} {here.note}".strip()
        note = "a name, then a note if you like; nothing removes the bookmark here"

        def typed(text: str | None) -> None:
            if text is not None:
                save(self._host, lambda: self._set(turn, text))
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
