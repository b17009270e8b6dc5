"""The interface through which controllers act on the replay screen, and the counts that are typed before a
movement.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from time import monotonic
from typing import Any, Final, Protocol

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


COUNT_TIMEOUT_SECONDS: Final = 1.5
_MAX_DIGITS: Final = 6


class TypedCount:
    """The digits typed before a movement. They time out."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._digits = ""
        self._typed_at = 0.0

    @property
    def pending(self) -> bool:
        return bool(self._digits) and self._now() - self._typed_at <= COUNT_TIMEOUT_SECONDS

    @property
    def shown(self) -> str:
        """Return the digits typed so far; empty once they have timed out."""
        return self._digits if self.pending else ""

    def add(self, digit: int) -> bool:
        """Append a digit. True if it is the first one of a number."""
        is_first = not self.pending
        self._digits = (("" if is_first else self._digits) + str(digit))[-_MAX_DIGITS:]
        self._typed_at = self._now()
        return is_first

    def take(self) -> int | None:
        """Return the number and forget it; None if there is none, or if it is 0."""
        number = int(self._digits) if self.pending else 0
        self._digits = ""
        return number or None


_MOST_NAMED: Final = 6


def turns_in_short(turns: Sequence[int]) -> str:
    """``turns 8, 12, 40``, the first few."""
    named = ", ".join(map(str, turns[:_MOST_NAMED])) + (" …" if len(turns) > _MOST_NAMED else "")
    return f"turn{'' if len(turns) == 1 else 's'} {named}"
