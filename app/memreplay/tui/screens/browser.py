"""The memory browser: everything that a memory holds at a position, to search, sort and compare."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.content import Content

from memreplay.debugger.contents import MemoryContents
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.timeline.annotations import Bookmark
from memreplay.timeline.timeline import Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.requests import Destination, Position
from memreplay.tui.screens import KeyBar, Listing, ListingScreen
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from memreplay.tui.terminal import WIDTHS
from memreplay.tui.widgets.lines_view import Bar, Legend, LinesView
from memreplay.views.panels import placeholder
from memreplay.views.panels.browser import (
    LEGEND,
    ORDERS,
    Against,
    BrowserDocument,
    Entry,
    ItemDetails,
    Order,
    Query,
    column_titles,
    position_words,
    written_subject,
)
from memreplay.views.subjects import (
    PieceSubject,
    PositionSubject,
    StoredSubject,
    TurnSubject,
    ValueSubject,
    WrittenSubject,
    origin_of,
    origin_words,
)
from memreplay.views.text import Span, one_line

_TYPE_A_TURN = "another turn …"
_NO_COMPARISON = "nothing"
_CATCH_UP = 500
"""Read paths that are indexed before the screen may paint again."""


class BrowserScreen(ListingScreen[Destination | None]):
    """Returns where the user wants to look in the replay, or None.

    Only the items on the screen are loaded, unless a search, an order or a comparison needs them all.
    """

    PLACE: ClassVar[Place] = "browser"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)
    HORIZONTAL_BREAKPOINTS = [*WIDTHS, (140, "-wide")]
    AUTO_FOCUS = ""

    def __init__(
        self,
        timeline: Timeline,
        retrievals: RetrievalIndex,
        backends: Sequence[str],
        backend: str | None,
        turn: int,
        last: int,
        bookmarks: Sequence[Bookmark],
    ) -> None:
        """``last`` is the last position that was played."""
        super().__init__()
        self._timeline = timeline
        self._retrievals = retrievals
        self._memories = [MemoryContents(timeline, name, retrievals) for name in backends]
        self._place = next((at for at, name in enumerate(backends) if name == backend), 0)
        self._opened_at = turn
        self._turn = turn
        self._last = last
        self._bookmarks = bookmarks
        self._against: Against | None = None
        self._order: Order = "newest"
        self._search = ""
        self._details = ItemDetails(timeline)
        self.document: BrowserDocument = BrowserDocument(timeline, (), turn, counted=False)

    def compose(self) -> ComposeResult:
        """List and details, side by side if there is room."""
        yield Bar(id="header")
        with Container(id="browser"):
            with Container(id="items"):
                yield Bar(id="columns")
                yield Listing(id="list")
            yield LinesView(id="details", classes="panel")
        yield Legend(id="legend")
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one("#legend", Bar).say(Span(f" {LEGEND}", "dim"))
        self._list()
        self._count_retrievals()

    def on_resize(self) -> None:
        self.call_after_refresh(self._paint_columns)

    @property
    def _is_open(self) -> bool:
        """Return whether there is still a list to fill: the user may have left, or quit."""
        return self in self.app.screen_stack and bool(self.query(Listing))

    @property
    def _contents(self) -> MemoryContents:
        return self._memories[self._place]

    # ---- the list ------------------------------------------------------------------------------------------

    def _list(self) -> None:
        """List what is held at the position; the selected item stays selected if it is still there."""
        query = Query(self._contents, self._turn, self._against, self._order, self._search)
        if query.reads_everything:
            self._say_header("reading …")
        self._answer(query)

    @work(group="list", exclusive=True)
    async def _answer(self, query: Query) -> None:
        entries = await asyncio.to_thread(query.entries, self._memories, self._retrievals)
        if self._is_open:
            self._show(entries)

    def _show(self, entries: Sequence[Entry]) -> None:
        before = self.document.selected
        document = BrowserDocument(self._timeline, entries, self._turn, counted=self._retrievals.behind == 0)
        if before is not None:
            keys = (place for place, entry in enumerate(entries) if entry.item.key == before.item.key)
            document.cursor = next(keys, min(self.document.cursor, max(0, len(entries) - 1)))
        self.document = document
        listed = self.query_one(Listing)
        if entries:
            listed.show(document, in_view=document.cursor)
        else:
            listed.show(placeholder(self._nothing()))
        self._say_header("")
        self._paint_columns()
        self._show_details()

    def _nothing(self) -> str:
        name = one_line(self._contents.backend)
        if self._search:
            return f"no item matches {one_line(self._search)} · / searches again, nothing typed shows all"
        if self._against is not None:
            return f"no difference {self._against.words.removeprefix('± ')} · d compares with something else"
        if self._turn == 0:
            return f"{name} holds nothing before the first turn · . goes one turn on"
        return f"{name} holds nothing at turn {self._turn}, or what it holds was not recorded"

    def _say_header(self, doing: str) -> None:
        names = [one_line(memory.backend) for memory in self._memories]
        tabs = [Span(f" {name} ", "cursor" if place == self._place else "dim") for place, name in enumerate(names)]
        parts = [
            position_words(self._timeline, self._turn),
            doing or f"{len(self.document):,} {'item' if len(self.document) == 1 else 'items'}",
            ORDERS[self._order],
            self._against.words if self._against else "",
            f"/ {one_line(self._search)}" if self._search else "",
        ]
        words = " · ".join(part for part in parts if part)
        self.query_one("#header", Bar).say(Span(" MEMORY ", "recorded"), " ", *tabs, Span(f" {words}", "title"))

    def _paint_columns(self) -> None:
        self.query_one("#columns", Bar).say(*column_titles(self.query_one(Listing).layout_now.width))

    @work(group="retrievals", exclusive=True)
    async def _count_retrievals(self) -> None:
        """Index what messages retrieved, some at a time: in a long conversation that takes seconds."""
        if self._retrievals.behind:
            while not await asyncio.to_thread(self._retrievals.catch_up, _CATCH_UP):
                pass
            if self._is_open:
                self._list()

    # ---- the selected item ---------------------------------------------------------------------------------

    def _show_details(self) -> None:
        details, entry = self.query_one("#details", LinesView), self.document.selected
        if entry is None:
            details.border_title = None
            details.show(())
            return
        details.border_title = Content(self._details.title(entry, self._turn))
        earlier = self._against.turn if self._against else None
        document = self._details.document(entry, self._turn, earlier)
        details.select(None)
        details.show(document, in_view=len(document) - 1 if entry.item.kind == "log" else None)

    def moved(self) -> None:
        self._show_details()

    @on(LinesView.Followed)
    def _followed(self, message: LinesView.Followed) -> None:
        self._follow(message.subject)

    def _follow(self, subject: Hashable) -> None:
        backend = self._contents.backend
        match subject:
            case TurnSubject(turn_id):
                self.dismiss(Position(self._timeline.conversation.turns_by_id[turn_id].number, backend))
            case PositionSubject(turn, name):
                self.dismiss(Position(turn, name))
            case ValueSubject() | StoredSubject() | PieceSubject():
                self._to_write(subject)
            case _:
                pass

    def _to_write(self, subject: WrittenSubject) -> None:
        origin = origin_of(self._timeline, subject, self._turn)
        if origin is None:
            self.notify("No write of this is recorded up to this position.", markup=False)
        else:
            self.dismiss(Position(origin.turn, origin.backend, origin_words(origin, self._timeline)))

    # ---- what the user does --------------------------------------------------------------------------------

    action_next_page = ListingScreen.action_page_down
    action_previous_page = ListingScreen.action_page_up

    def action_next_architecture(self) -> None:
        self._browse(self._place + 1)

    def action_previous_architecture(self) -> None:
        self._browse(self._place - 1)

    def _browse(self, place: int) -> None:
        self._place = place % len(self._memories)
        if self._against is not None and self._against.backend == self._contents.backend:
            self._against = None
        self._list()

    def action_step(self) -> None:
        self._move(self._turn + 1)

    def action_back(self) -> None:
        self._move(self._turn - 1)

    def _move(self, turn: int) -> None:
        self._turn = max(0, min(turn, self._last))
        self._list()

    def action_full_text(self) -> None:
        if self.document.selected is not None:
            self.set_class(True, "-full")
            self.query_one("#details", LinesView).focus()

    def action_write(self) -> None:
        """Go to the write of the selected line of the details, or of the item."""
        details, entry = self.query_one("#details", LinesView), self.document.selected
        selected = details.selected if details.has_focus else None
        if entry is None:
            return
        if isinstance(selected, WrittenSubject):
            self._to_write(selected)
        else:
            self._to_write(written_subject(self._timeline, entry, self._turn))

    def action_search(self) -> None:
        def typed(text: str | None) -> None:
            if text is not None:
                self._search = text
                self._list()

        note = "a text in what is held; enter with nothing typed shows everything"
        self.app.push_screen(TypingScreen("search this memory", note, value=self._search), typed)

    def action_sort(self) -> None:
        orders = list(ORDERS)
        self._order = orders[(orders.index(self._order) + 1) % len(orders)]
        self._list()

    def action_diff(self) -> None:
        """Choose what to compare with."""
        others = [memory.backend for memory in self._memories if memory is not self._contents]
        choices: list[tuple[str, Against | None]] = [
            (_NO_COMPARISON, None),
            (f"the previous turn, {max(0, self._turn - 1)}", Against(turn=max(0, self._turn - 1))),
            ("the start", Against(turn=0)),
            *((f"★ {one.mark} {one.note}, turn {one.turn}", Against(turn=one.turn)) for one in self._bookmarks),
            *(
                (f"{name}: from which turns does only one hold something?", Against(backend=name))
                for name in others
            ),
        ]

        def chosen(index: int | None) -> None:
            if index == len(choices):
                self._type_a_turn()
            elif index is not None:
                self._compare(choices[index][1])

        names = [*(name for name, _ in choices), _TYPE_A_TURN]
        self.app.push_screen(PickScreen("compare this memory with", names), chosen)

    def _type_a_turn(self) -> None:
        def refusal(text: str) -> str | None:
            is_turn = text.isdecimal() and int(text) <= self._last
            return None if is_turn else f"A number from 0 to {self._last}."

        def typed(text: str | None) -> None:
            if text is not None:
                self._compare(Against(turn=int(text)))

        self.app.push_screen(TypingScreen("compare with turn", f"0 to {self._last}", refusal=refusal), typed)

    def _compare(self, against: Against | None) -> None:
        self._against = against
        self._list()

    def action_leave(self) -> None:
        """Leave the full text for the list, or the list for the replay at the turn that it shows."""
        if self.has_class("-full"):
            self.set_class(False, "-full")
            self.set_focus(None)
        else:
            self.dismiss(None if self._turn == self._opened_at else Position(self._turn, self._contents.backend))

    @property
    def picture_name(self) -> str:
        return f"{self._timeline.conversation.id}-memory-{self._contents.backend}-turn-{self._turn}"
