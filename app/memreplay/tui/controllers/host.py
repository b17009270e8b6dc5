"""What the controllers of the replay screen may do to it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from textual.message import Message
from textual.notifications import SeverityLevel
from textual.screen import Screen, ScreenResultType
from textual.timer import Timer

from memreplay.errors import MemreplayError
from memreplay.tui.widgets.lines_view import LinesView


class ReplayHost(Protocol):
    """The replay screen as its controllers see it."""

    @property
    def cursor(self) -> int: ...

    @property
    def focused_view(self) -> LinesView | None: ...

    def move_to(self, position: int) -> None: ...

    def cursor_moved(self) -> None:
        """Show the new position."""

    def paint(self) -> None:
        """Show everything at the cursor."""

    def paint_header(self) -> None: ...

    def paint_progress(self) -> None:
        """Show what changes while a run is played, even if the cursor stays: header, strip and answers."""

    def announce(self, note: str) -> None:
        """Explain where the cursor is; the note stays until the cursor moves. An empty note removes it."""

    def show_problem(self, sentence: str) -> None:
        """Show why the run cannot continue; an empty sentence removes it."""

    def report(self, sentence: str, severity: SeverityLevel = "information") -> None:
        """Notify the user. The sentence is never read as markup."""

    def open_screen(
        self,
        screen: Screen[ScreenResultType],
        then: Callable[[ScreenResultType | None], None] | None = None,
    ) -> None:
        """Open a screen over the replay and pass on its result."""

    def minimize(self) -> None: ...

    def post_message(self, message: Message) -> bool: ...

    def set_timer(self, delay: float, callback: Callable[[], None]) -> Timer: ...

    def set_interval(self, interval: float, callback: Callable[[], None]) -> Timer: ...

    def run_worker(self, work: Coroutine[Any, Any, None], *, group: str, exclusive: bool) -> object: ...


def save(host: ReplayHost, change: Callable[[], None]) -> None:
    """Change annotations. Report why that failed."""
    try:
        change()
    except MemreplayError as error:
        host.report(str(error), "error")
