"""The base of all screens: their keys, help, export, work in threads, and lists to move through."""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Final, ParamSpec, TypeVar

from textual import on
from textual.app import ComposeResult, ScreenStackError
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.widgets import Footer, Static

from memreplay.tui.actions import Place
from memreplay.tui.controllers import TypedCount
from memreplay.tui.widgets.lines_view import Bar, Fixed, Legend, LinesView
from memreplay.views.document import Selectable
from memreplay.views.text import Span

P = ParamSpec("P")
T = TypeVar("T")


_LONGEST_NAME = 120
"""Characters of a picture's name; file systems allow 255 bytes."""


class KeyBar(Footer):
    """The keys of a screen. Moving the focus does not mount them again, since that changes none of them."""

    def __init__(self) -> None:
        super().__init__(show_command_palette=False, compact=True)
        self._shown: list[tuple[str, str, bool]] = []

    def compose(self) -> ComposeResult:
        """Compose the keys, and the sentence that stands alone where nothing else fits."""
        yield from super().compose()
        yield Static("memreplay needs 40 columns: widen the terminal, or press ctrl+q.", id="too-narrow")

    async def recompose(self) -> None:
        if not self.is_attached:
            return
        bindings = self.screen.active_bindings.values()
        shown = [(one.key, one.description, enabled) for _, one, enabled, _ in bindings if one.show]
        if shown != self._shown:
            self._shown = shown
            await super().recompose()


class PlaceScreen(Screen[ScreenResultType]):
    """A screen whose keys stand under its ``PLACE`` in the table of actions."""

    PLACE: ClassVar[Place]

    @property
    @abstractmethod
    def picture_name(self) -> str:
        """Return the file name of an exported picture."""

    async def in_thread(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of slow work. Cancels the caller if the screen was closed in the meantime.

        Textual cancels the workers of a screen that closes, but a thread that has just ended can resume its worker
        before the cancellation reaches it, when the screen's widgets are already gone.
        """
        result = await asyncio.to_thread(work, *args, **kwargs)
        if not self._is_open:
            raise asyncio.CancelledError
        return result

    @property
    def _is_open(self) -> bool:
        try:
            return self.is_running and self in self.app.screen_stack
        except ScreenStackError:
            return False

    @property
    def file_name(self) -> str:
        """Return the name of files about what is shown: each character outside ``[A-Za-z0-9_-]`` is a ``-``."""
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", self.picture_name).strip("-")
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}-{sha256(self.picture_name.encode()).hexdigest()[:8]}"
        return f"memreplay-{name}"

    def action_export(self) -> None:
        """Save the screen as SVG and report the path."""
        path = Path.cwd() / f"{self.file_name}.svg"
        try:
            path.write_text(self.app.export_screenshot(), encoding="utf-8")
        except OSError as error:
            self.notify(f"{path}: cannot be written: {error.strerror}.", severity="error", markup=False)
        else:
            self.notify(f"Saved as {path}", markup=False)

    def action_help(self) -> None:
        from memreplay.tui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen())

    def action_leave(self) -> None:
        self.dismiss(None)


_ABOUT_AN_ANSWER: Final[dict[Place, str]] = {
    "why": "why",
    "what_if": "what if",
    "biography": "biography",
    "duel": "duel",
}


class AnswerScreen(PlaceScreen[ScreenResultType]):
    """One of the screens about an answer. Over the explanation of one, each switches to the others."""

    @property
    def _explanation(self) -> Screen[object] | None:
        """Return the explanation that this screen was opened from, or is; None elsewhere."""
        stack = self.app.screen_stack
        place = stack.index(self) if self in stack else 0
        below = (self, *([stack[place - 1]] if place else []))
        return next((screen for screen in below if getattr(screen, "PLACE", None) == "why"), None)

    @property
    def tabs(self) -> list[Span]:
        """Return the names of these screens, this one marked; only its own where there are no others."""
        others = self._explanation is not None
        return [
            Span(f" {name.upper()} ", "recorded") if place == self.PLACE else Span(f" {name} ", "dim")
            for place, name in _ABOUT_AN_ANSWER.items()
            if others or place == self.PLACE
        ]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the keys that switch where there is nothing to switch to."""
        return self._explanation is not None if action in _ABOUT_AN_ANSWER else True

    def action_why(self) -> None:
        self.dismiss(None)

    def action_what_if(self) -> None:
        self._switch_to("what_if")

    def action_biography(self) -> None:
        self._switch_to("biography")

    def action_duel(self) -> None:
        self._switch_to("duel")

    def _switch_to(self, place: Place) -> None:
        """Close this screen, and have the explanation below it open another one."""
        explanation = self._explanation
        if explanation is None:
            return
        self.dismiss(None)
        explanation.call_after_refresh(explanation.run_action, f"screen.{place}")


class Dialog(ModalScreen[ScreenResultType]):
    """A screen over another one, which stays in sight except for its keys."""

    PLACE: ClassVar[Place]

    def compose(self) -> ComposeResult:
        yield from self.parts()
        yield KeyBar()

    @abstractmethod
    def parts(self) -> ComposeResult:
        """Yield what is shown above the keys."""

    def action_leave(self) -> None:
        self.dismiss(None)


class Listing(LinesView, can_focus=False):
    """The list; the keys of the screen move through it."""


class Scores(Fixed):
    """The scores above a list; the keys of the screen scroll them."""

    def scroll_pages(self, pages: int) -> None:
        """Scroll by pages, so that the row that says how many do not fit is read next."""
        self.scroll_relative(y=pages * max(self.scrollable_content_region.height - 1, 1), animate=False)


class ListingScreen(PlaceScreen[ScreenResultType]):
    """A list that the user moves through by keys, with counts, and by clicks."""

    document: Selectable

    def __init__(self) -> None:
        super().__init__()
        self.count = TypedCount()

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        yield Scores(id="scores")
        yield Listing(id="questions")
        yield Legend(id="legend")
        yield KeyBar()

    def moved(self) -> None:
        """Show what depends on the selected item, and on the count."""

    def point_at(self, index: int) -> None:
        """Select an item, or the nearest one, and scroll it into view."""
        self.document.cursor = max(0, min(index, len(self.document) - 1))
        self.repaint_list()

    def repaint_list(self) -> None:
        listing = self.query_one(Listing)
        listing.bring_into_view(self.document.cursor)
        listing.repaint()
        self.moved()

    def _by(self, items: int) -> None:
        """Move by items, as often as was typed."""
        self.point_at(self.document.cursor + items * (self.count.take() or 1))

    @property
    def _page(self) -> int:
        return max(1, self.query_one(Listing).scrollable_content_region.height - 1)

    def action_next(self) -> None:
        self._by(1)

    def action_previous(self) -> None:
        self._by(-1)

    def action_page_down(self) -> None:
        self._by(self._page)

    def action_page_up(self) -> None:
        self._by(-self._page)

    def action_first(self) -> None:
        self.count.take()
        self.point_at(0)

    def action_last(self) -> None:
        """Select the last item, or the one of the number that was typed."""
        number = self.count.take()
        place = len(self.document) - 1 if number is None else self.place_of_number(number)
        if place is None:
            self.notify(f"Number {number} is not in this list.", markup=False)
        else:
            self.point_at(place)

    def place_of_number(self, number: int) -> int | None:
        """Return the place of the item with a 1-based number; None if it is not listed."""
        return number - 1 if number <= len(self.document) else None

    def action_digit(self, digit: int) -> None:
        self.count.add(digit)
        self.moved()

    def action_scroll_down(self) -> None:
        self.query_one(Scores).scroll_pages(1)

    def action_scroll_up(self) -> None:
        self.query_one(Scores).scroll_pages(-1)

    def choose(self) -> None:
        """Do what enter does: a click on the selected item calls it."""

    @on(LinesView.BlockClicked)
    def _clicked(self, message: LinesView.BlockClicked) -> None:
        if not isinstance(message.view, Listing):
            return
        if message.block == self.document.cursor:
            self.choose()
        else:
            self.point_at(message.block)
