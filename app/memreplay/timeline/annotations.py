"""What a user writes down beside a conversation: bookmarks with notes, and watches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memreplay.conversations.models import Frozen


class Bookmark(Frozen):
    """A named position. ``mark`` is what it is called, one letter or more; ``note`` may be empty."""

    mark: str
    turn: int
    note: str = ""


class SavedBreakpoint(Frozen):
    """A watch as it was typed. ``backend`` is the architecture it looks at, None for all of them."""

    text: str
    backend: str | None = None
    enabled: bool = True


class Annotations(Protocol):
    """The bookmarks and watches of one conversation.

    ``kept_for_session_only`` says in one sentence why nothing is saved; None where it is.
    """

    kept_for_session_only: str | None

    def bookmarks(self) -> Sequence[Bookmark]:
        """All bookmarks, by position."""
        ...

    def set_bookmark(self, bookmark: Bookmark) -> None:
        """Keep a bookmark; another of the same mark gives way to it."""
        ...

    def remove_bookmark(self, mark: str) -> None:
        """Forget a bookmark. One that is not there is forgotten already."""
        ...

    def breakpoints(self) -> Sequence[SavedBreakpoint]:
        """All watches, in the order in which they were set."""
        ...

    def set_breakpoints(self, watches: Sequence[SavedBreakpoint]) -> None:
        """These and no others are the watches."""
        ...


class SessionAnnotations:
    """Annotations that last as long as the program: for what cannot be written to. ``why`` says what cannot."""

    def __init__(
        self, why: str | None, bookmarks: Sequence[Bookmark] = (), watches: Sequence[SavedBreakpoint] = ()
    ) -> None:
        self.kept_for_session_only = why
        self._bookmarks = {bookmark.mark: bookmark for bookmark in bookmarks}
        self._watches = tuple(watches)

    def bookmarks(self) -> Sequence[Bookmark]:
        """All bookmarks, by position."""
        return sorted(self._bookmarks.values(), key=lambda bookmark: (bookmark.turn, bookmark.mark))

    def set_bookmark(self, bookmark: Bookmark) -> None:
        """Keep a bookmark; another of the same mark gives way to it."""
        self._bookmarks[bookmark.mark] = bookmark

    def remove_bookmark(self, mark: str) -> None:
        """Forget a bookmark. One that is not there is forgotten already."""
        self._bookmarks.pop(mark, None)

    def breakpoints(self) -> Sequence[SavedBreakpoint]:
        """All watches, in the order in which they were set."""
        return self._watches

    def set_breakpoints(self, watches: Sequence[SavedBreakpoint]) -> None:
        """These and no others are the watches."""
        self._watches = tuple(watches)
