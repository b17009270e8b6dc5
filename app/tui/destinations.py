"""Where a screen over the replay sends the user when it is left."""

from __future__ import annotations

from dataclasses import dataclass

from app.conversations.models import Question
from app.tui.subjects import DecisionSubject, WrittenSubject


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
