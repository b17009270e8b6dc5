"""A user's additions to a conversation: bookmarks with notes, breakpoints, and labels of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from memreplay.conversations.models import Frozen
from memreplay.llm.judging import Verdict
from memreplay.timeline.timeline import AskKey

FAILS = "fails"
"""The mark of the bookmark at which the recording of a shrunk case opens."""


class Bookmark(Frozen):
    """A named position. ``mark`` is its name, of one letter or more; ``note`` may be empty."""

    mark: str
    turn: int
    note: str = ""


class SavedBreakpoint(Frozen):
    """A breakpoint as it was typed. ``backend`` limits it to one architecture; None: all."""

    text: str
    backend: str | None = None
    enabled: bool = True


class Annotations(Protocol):
    """The bookmarks and breakpoints of one conversation, and the labels of its answers."""

    def bookmarks(self) -> Sequence[Bookmark]:
        """Return all bookmarks, by position."""
        ...

    def set_bookmark(self, bookmark: Bookmark) -> None:
        """Save a bookmark; it replaces one with the same mark."""
        ...

    def remove_bookmark(self, mark: str) -> None:
        """Remove a bookmark, if it exists."""
        ...

    def breakpoints(self) -> Sequence[SavedBreakpoint]:
        """Return all breakpoints, in the order in which they were set."""
        ...

    def set_breakpoints(self, breakpoints: Sequence[SavedBreakpoint]) -> None:
        """Replace all breakpoints."""
        ...

    def labels(self) -> Mapping[AskKey, Verdict]:
        """Return the answers that were labelled as right or wrong by hand."""
        ...

    def set_label(self, key: AskKey, label: Verdict | None) -> None:
        """Label an answer; None removes its label."""
        ...


class SessionAnnotations:
    """Annotations in memory: those made before a recording begins, and the base of those that are saved."""

    def __init__(
        self,
        bookmarks: Sequence[Bookmark] = (),
        breakpoints: Sequence[SavedBreakpoint] = (),
        labels: Mapping[AskKey, Verdict] | None = None,
    ) -> None:
        self._bookmarks = {bookmark.mark: bookmark for bookmark in bookmarks}
        self._breakpoints = tuple(breakpoints)
        self._labels = dict(labels or {})

    def bookmarks(self) -> Sequence[Bookmark]:
        return sorted(self._bookmarks.values(), key=lambda bookmark: (bookmark.turn, bookmark.mark))

    def set_bookmark(self, bookmark: Bookmark) -> None:
        self._bookmarks[bookmark.mark] = bookmark

    def remove_bookmark(self, mark: str) -> None:
        self._bookmarks.pop(mark, None)

    def breakpoints(self) -> Sequence[SavedBreakpoint]:
        return self._breakpoints

    def set_breakpoints(self, breakpoints: Sequence[SavedBreakpoint]) -> None:
        self._breakpoints = tuple(breakpoints)

    def labels(self) -> Mapping[AskKey, Verdict]:
        return self._labels

    def set_label(self, key: AskKey, label: Verdict | None) -> None:
        if label is None:
            self._labels.pop(key, None)
        else:
            self._labels[key] = label
