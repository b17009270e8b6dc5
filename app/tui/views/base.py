"""What a position is compared with: what changed since when, or against whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.replay.annotations import Bookmark
from app.tui.text import one_line

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
