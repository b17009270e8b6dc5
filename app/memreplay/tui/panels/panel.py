"""What a panel is given and what it shows: a pure function of the timeline and a position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, get_args

from memreplay.tui.document import Document, LinesDocument
from memreplay.tui.text import Line, Span, one_line

if TYPE_CHECKING:
    from memreplay.timeline.annotations import Bookmark

Kind = Literal["marked", "previous", "bookmark", "architecture", "off"]


@dataclass(frozen=True)
class Base:
    """What a panel compares with.

    ``marked``: the turn before, with everything shown and what changed marked; ``previous``: the turn before, with
    what did not change folded; ``bookmark``: the position ``turn``, folded; ``architecture``: the architecture
    ``backend`` at the same position; ``off``: nothing.
    """

    kind: Kind = "marked"
    turn: int = 0
    backend: str = ""
    mark: str = ""

    @property
    def folds(self) -> bool:
        """Whether what did not change is left out."""
        return self.kind in ("previous", "bookmark")

    def position_before(self, cursor: int) -> int:
        """The position whose values are the ones before."""
        return self.turn if self.kind == "bookmark" else cursor - 1

    @property
    def words(self) -> str:
        """What is said of it in the header; empty for what is usual."""
        match self.kind:
            case "marked":
                return ""
            case "previous":
                return "± since the turn before"
            case "bookmark":
                return f"± since ★ {one_line(self.mark)} (turn {self.turn})"
            case "architecture":
                return f"± against {one_line(self.backend)}"
            case "off":
                return "± off"


MARKED = Base()


def cycle_of(bookmarks: Sequence[Bookmark], backends: Sequence[str]) -> list[Base]:
    """All bases that there are to go through, in their order."""
    others = backends if len(backends) > 1 else ()
    return [
        MARKED,
        Base("previous"),
        *(Base("bookmark", turn=bookmark.turn, mark=bookmark.mark) for bookmark in bookmarks),
        *(Base("architecture", backend=backend) for backend in others),
        Base("off"),
    ]


Page = Literal["memory", "retrieval", "trace"]
PAGES: Final[tuple[Page, ...]] = get_args(Page)


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
