"""What a user leaves in a replay or looks up in all of it: bookmarks with notes, biographies, and a search."""

from __future__ import annotations

import asyncio
from abc import abstractmethod

from textual import work

from memreplay.conversations.models import Question, Turn
from memreplay.debugger.search import Match, SearchIndex, SearchMatches
from memreplay.errors import MemreplayError
from memreplay.timeline.annotations import Bookmark
from memreplay.timeline.timeline import Timeline
from memreplay.tui.panels.panel import diff_bases
from memreplay.tui.screens.biography import BiographyScreen
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from memreplay.tui.screens.watching import WatchingScreen
from memreplay.tui.subjects import StoredSubject, TurnSubject
from memreplay.tui.text import one_line
from memreplay.tui.widgets.lines_view import LinesView


class MarkingScreen(WatchingScreen):
    """Bookmarks, biographies, search."""

    def __init__(self, timeline: Timeline, seconds_a_turn: float) -> None:
        super().__init__(timeline, seconds_a_turn)
        self._index: SearchIndex | None = None
        self._reading = asyncio.Lock()
        self._sought = ""

    @abstractmethod
    def marks_changed(self) -> None:
        """Bookmarks are others than they were: show them."""

    # ---- the biography of a fact ---------------------------------------------------------------------------

    def action_biography(self) -> None:
        """The whole way of the selected turn, or the cursor's, through each memory."""
        view = self.focused
        selected = view.selected if isinstance(view, LinesView) else None
        conversation = self.timeline.conversation
        turn_id = selected.turn_id if isinstance(selected, TurnSubject) else None
        if isinstance(selected, StoredSubject) and selected.turns:
            turn_id = selected.turns[0]
        if turn_id is None and conversation.turns:
            turn_id = conversation.turns[max(0, min(self.cursor, len(conversation.turns)) - 1)].id
        if turn_id is not None:
            self.tell_biography(conversation.turns_by_id[turn_id], self.architectures.focused_backend)

    def tell_biography(self, fact: Turn | Question, backend: str | None) -> None:
        """Open the biography of a turn, or of the evidence of a question."""
        self.app.push_screen(BiographyScreen(self.timeline, self.retrievals, fact, backend), self.go)

    # ---- bookmarks -----------------------------------------------------------------------------------------

    def action_bookmark(self) -> None:
        """Bookmark this turn, or change or remove its bookmark."""
        here = next((mark for mark in self.annotations.bookmarks() if mark.turn == self.cursor), None)
        value = "" if here is None else f"{here.mark} {here.note}".strip()
        note = "a name, then a note if you like; nothing removes the bookmark here"
        title = f"bookmark turn {self.cursor}"
        self.app.push_screen(TypingScreen(title, note, value=value or self._free_mark()), self._bookmarked)

    def _free_mark(self) -> str:
        taken = {bookmark.mark for bookmark in self.annotations.bookmarks()}
        letters = (chr(code) for code in range(ord("a"), ord("z") + 1))
        return next((letter for letter in letters if letter not in taken), f"turn-{self.cursor}")

    def _bookmarked(self, text: str | None) -> None:
        if text is None:
            return
        kept = self.annotations
        try:
            for bookmark in kept.bookmarks():
                if bookmark.turn == self.cursor:
                    kept.remove_bookmark(bookmark.mark)
            if text:
                mark, _, note = text.partition(" ")
                kept.set_bookmark(Bookmark(mark=mark, turn=self.cursor, note=note.strip()))
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)
        self.say_where_it_is_kept()
        self.marks_changed()

    def action_bookmarks(self) -> None:
        """Go to one of the bookmarks."""
        bookmarks = list(self.annotations.bookmarks())
        if not bookmarks:
            self.notify("No bookmark yet: m sets one.", markup=False)
            return
        names = [f"★ {one.mark}  turn {one.turn}  {one.note}" for one in bookmarks]

        def chosen(place: int | None) -> None:
            if place is not None:
                self.jump(bookmarks[place].turn, note=bookmarks[place].note)

        self.app.push_screen(PickScreen("bookmarks", names), chosen)

    def action_compare(self) -> None:
        """What changed: the next base to compare with."""
        self.compared(diff_bases(self.annotations.bookmarks(), [pane.backend for pane in self.architectures.panes]))

    # ---- search --------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Search the whole session. It is read while the user types."""
        self._read_ahead()
        note = "in messages, states, hits and prompts; n and N walk through"
        self.app.push_screen(TypingScreen("search", note, value=self._sought), self._searched)

    def _searched(self, text: str | None) -> None:
        if text:
            self._sought = text
            self._show_nearest()

    def action_next_match(self) -> None:
        """The next match after the cursor; from the beginning where there is none."""
        if self._sought:
            self._show_next()
        else:
            self.action_search()

    def action_previous_match(self) -> None:
        """The previous match; from the end where there is none."""
        if self._sought:
            self._show_previous()
        else:
            self.action_search()

    @work(group="search")
    async def _read_ahead(self) -> None:
        await self._found()

    @work(group="search")
    async def _show_nearest(self) -> None:
        found = await self._found()
        here = found.at(self.cursor)
        match = here[0] if here else found.next_match(self.cursor) or found.next_match(-1)
        self._show_match(match, len(found))

    @work(group="search")
    async def _show_next(self) -> None:
        found = await self._found()
        self._show_match(found.next_match(self.cursor) or found.next_match(-1), len(found))

    @work(group="search")
    async def _show_previous(self) -> None:
        found = await self._found()
        last = self.timeline.reached + 1
        self._show_match(found.previous_match(self.cursor) or found.previous_match(last), len(found))

    async def _found(self) -> SearchMatches:
        """All matches. What happened since the last search is read in a thread, so that no key waits for it."""
        async with self._reading:
            index = await asyncio.to_thread(self._caught_up)
            return index.find(self._sought)

    def _caught_up(self) -> SearchIndex:
        if self._index is None:
            self._index = SearchIndex(self.timeline)
        self._index.catch_up()
        return self._index

    def _show_match(self, match: Match | None, count: int) -> None:
        if match is None:
            self.notify(f"{one_line(self._sought)} stands nowhere in this session.", markup=False)
            return
        where = f"{match.where} {match.place}".strip()
        self.jump(match.turn, match.backend or None, f"“{self._sought}” in {where} · {count} matches · n N")
