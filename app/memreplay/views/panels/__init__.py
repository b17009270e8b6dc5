"""A panel and its view: one architecture at a position, compared with a base."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, get_args

from memreplay.views.document import Document, LinesDocument
from memreplay.views.text import Line, Span, joined_within, one_line

if TYPE_CHECKING:
    from memreplay.timeline.annotations import Bookmark


@dataclass(frozen=True)
class DiffBase:
    """The base that a panel compares the current position with.

    ``marked``: the previous turn, showing everything and marking the changes; ``previous``: the previous turn,
    folding what did not change; ``bookmark``: position ``turn``, folded; ``architecture``: architecture ``backend``
    at the same position; ``off``: nothing.
    """

    kind: Literal["marked", "previous", "bookmark", "architecture", "off"] = "marked"
    turn: int = 0
    backend: str = ""
    mark: str = ""

    @property
    def folds(self) -> bool:
        """Return whether unchanged lines are hidden."""
        return self.kind in ("previous", "bookmark")

    def position_before(self, cursor: int) -> int:
        """Return the position that the values "before" are taken from."""
        return self.turn if self.kind == "bookmark" else cursor - 1

    @property
    def words(self) -> str:
        """Return the label in the header; empty for the default base."""
        match self.kind:
            case "marked":
                return ""
            case "previous":
                return "± since the previous turn"
            case "bookmark":
                return f"± since ★ {one_line(self.mark)} (turn {self.turn})"
            case "architecture":
                return f"± against {one_line(self.backend)}"
            case "off":
                return "± off"


MARKED = DiffBase()


def diff_bases(bookmarks: Sequence[Bookmark], backends: Sequence[str]) -> list[DiffBase]:
    """Return all bases that a user can cycle through, in order."""
    others = backends if len(backends) > 1 else ()
    return [
        MARKED,
        DiffBase("previous"),
        *(DiffBase("bookmark", turn=bookmark.turn, mark=bookmark.mark) for bookmark in bookmarks),
        *(DiffBase("architecture", backend=backend) for backend in others),
        DiffBase("off"),
    ]


Page = Literal["memory", "retrieval", "trace"]
PAGES: Final[tuple[Page, ...]] = get_args(Page)


@dataclass(frozen=True)
class View:
    """A panel at a position: title, document, a note for the lower border, and the block to scroll into view.

    Title and note are parts joined by dots, the most important first: what a border has no room for is left out.
    ``folds`` are the lines behind a line, by its subject.
    """

    title: str
    document: Document
    note: str = ""
    in_view: int | None = None
    folds: Mapping[Hashable, Sequence[Line]] = field(default_factory=dict)

    def unfolded(self, wanted: Container[Hashable]) -> View:
        """Return the view with the lines behind some lines, below them."""
        if not isinstance(self.document, LinesDocument) or not any(fold in wanted for fold in self.folds):
            return self
        lines: list[Line] = []
        in_view = self.in_view
        for place, each in enumerate(self.document.lines):
            if place == self.in_view:
                in_view = len(lines)
            if each.about in self.folds and each.about in wanted:
                opened = tuple(replace(span, text=span.text.replace("▸", "▾")) for span in each.spans)
                lines += [replace(each, spans=opened), *self.folds[each.about]]
            else:
                lines.append(each)
        return replace(self, document=LinesDocument(lines), in_view=in_view)

    def borders(self, width: int, *, lower: bool) -> tuple[str, str]:
        """Return the texts in the upper and the lower border, in at most ``width`` cells each.

        Without a ``lower`` one the note joins the title, and is more important than all but the title's beginning.
        """
        title, note = (text.split(" · ") if text else [] for text in (self.title, self.note))
        if lower:
            upper = joined_within(title, width, range(len(title)))
            return upper, joined_within(note, width, range(len(note)))
        parts = [*title, *note]
        return joined_within(parts, width, [0, *range(len(title), len(parts)), *range(1, len(title))]), ""


@dataclass(frozen=True)
class Panel:
    """A panel of one architecture. ``name`` is unique on its page, ``weight`` is its share of the height."""

    name: str
    weight: int
    show: Callable[[int, DiffBase], View]

    def at(self, cursor: int, base: DiffBase = MARKED) -> View:
        """Return the view of a position, compared with a base."""
        return self.show(cursor, base)


def lines_view(title: str, lines: Sequence[Line], *, note: str = "", in_view: int | None = None) -> View:
    """Return a view of lines that are all laid out at once."""
    return View(title, LinesDocument(lines), note, in_view)


def placeholder(sentence: str) -> list[Line]:
    """Return the text of a panel that has nothing to show."""
    return [Line((Span(sentence, "dim"),))]


def waiting(cursor: int, sentence: str) -> str:
    """Return why a panel is empty; before the first turn, what to press."""
    return sentence if cursor else f"{sentence} · space goes to the first turn"


def short_key(key: str, conversation_id: str, backend: str) -> str:
    """Return a key, or the name of an agent, without the ids of run, conversation and backend, which all of them
    share.
    """
    path = f"/{conversation_id}/{backend}"
    if not key.endswith(path):
        return one_line(key)
    named = key.removesuffix(path)
    run_starts = max(named.rfind("/"), named.rfind(":"))
    return one_line(named[:run_starts] if run_starts > 0 else named)
