"""What a screen asks of the app, and where it sends the user when it closes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from memreplay.conversations.models import Question
    from memreplay.tui.sources import ReplaySource
    from memreplay.tui.subjects import DecisionSubject, WrittenSubject


@dataclass(frozen=True)
class Evidence:
    """The turn that holds the answer of a question."""

    question: Question


@dataclass(frozen=True)
class WriteOf:
    """The command that wrote something."""

    subject: WrittenSubject


@dataclass(frozen=True)
class Hearing:
    """Where one architecture was told of a turn: what it wrote then, or should have written. ``note`` says more."""

    backend: str
    turn_id: str
    note: str


@dataclass(frozen=True)
class Decision:
    """Where a promotion candidate was judged, and the line that tells of it. ``note`` says more."""

    subject: DecisionSubject
    note: str = ""


@dataclass(frozen=True)
class Position:
    """A position of the cursor; with an architecture, that one in focus."""

    turn: int
    backend: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Life:
    """The biography of a question's evidence in one architecture."""

    question: Question
    backend: str


@dataclass(frozen=True)
class WholeRun:
    """Every question of the run that a conversation was replayed in."""


Destination = WholeRun | Decision | Life | Evidence | WriteOf | Hearing | Position


class OneOfTwoWanted(Message):
    """One of two recordings that are compared is to be looked at, at a position."""

    def __init__(self, source: ReplaySource, position: int) -> None:
        super().__init__()
        self.source = source
        self.position = position


class RunWanted(Message):
    """Every question of a recording's newest run is to be listed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path


class VisitWanted(Message):
    """A place in a recorded conversation is to be looked at."""

    def __init__(self, source: ReplaySource, destination: Destination) -> None:
        super().__init__()
        self.source = source
        self.destination = destination
