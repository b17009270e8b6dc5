"""What a panel shows at a position: the meeting point of the views, which are pure, and the widgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.tui.document import Document, LinesDocument
from app.tui.text import Line, Span
from app.tui.views.base import MARKED, Base


@dataclass(frozen=True)
class View:
    """A panel at a position: its title, a note for its lower edge, its rows, and the block to bring into view."""

    title: str
    document: Document
    note: str = ""
    in_view: int | None = None


class Panel(Protocol):
    """A panel of one architecture. ``name`` tells it from its neighbours, ``weight`` is its share of the height."""

    name: str
    weight: int

    def at(self, cursor: int, base: Base = MARKED) -> View:
        """What it shows at a position, compared with a base: a function of timeline, position and base alone."""
        ...


def lines_view(title: str, lines: Sequence[Line], *, note: str = "", in_view: int | None = None) -> View:
    """A view of lines."""
    return View(title, LinesDocument(lines), note, in_view)


def nothing(sentence: str) -> list[Line]:
    """What stands in a panel that has nothing to show."""
    return [Line((Span(sentence, "dim"),))]
