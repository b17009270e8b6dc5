"""Destinations after a screen closes, and requests to the app to open something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from memreplay.conversations.models import Question
    from memreplay.timeline.timeline import Answer, Timeline
    from memreplay.tui.sources import ReplaySource
    from memreplay.views.subjects import DecisionSubject


@dataclass(frozen=True)
class Evidence:
    """The first turn that holds the answer of a question."""

    question: Question


@dataclass(frozen=True)
class Hearing:
    """The position at which an architecture ingested a turn, and wrote it or failed to. ``note`` explains the
    jump.
    """

    backend: str
    turn_id: str
    note: str


@dataclass(frozen=True)
class Decision:
    """The position at which a promotion candidate was judged, and its line. ``note`` explains the jump."""

    subject: DecisionSubject
    note: str = ""


@dataclass(frozen=True)
class Position:
    """A position of the cursor, and the architecture to focus. ``note`` explains the jump."""

    turn: int
    backend: str | None = None
    note: str = ""


@dataclass(frozen=True)
class FromWhy:
    """A destination chosen in the explanation of an answer; going back leads to the explanation again."""

    further: Destination
    answer: Answer


@dataclass(frozen=True)
class OtherAnswer:
    """The next wrong answer of the same list (``step`` 1), or the previous one (-1). ``answer`` is where we are."""

    step: int
    answer: Answer


@dataclass(frozen=True)
class WriterCalled:
    """The calls that a memory made of its writer at a position."""

    backend: str
    turn: int
    note: str = ""


Destination = WriterCalled | OtherAnswer | Decision | Evidence | Hearing | Position | FromWhy


@dataclass
class ComparisonWanted(Message):
    """Compare the newest runs of two recordings."""

    left: Path
    right: Path


@dataclass
class ResultsWanted(Message):
    """Open the results of a recording's newest run, or of one of its conversations."""

    path: Path
    conversation: str | None = None


@dataclass
class AgainstWanted(Message):
    """Choose a branch or another recording to compare a run with. ``source`` is a conversation of the run."""

    path: Path | None
    source: ReplaySource | None


@dataclass
class WhatIfWanted(Message):
    """Ask an answer again under changes. ``source`` is where it was recorded, if that is not the open replay."""

    timeline: Timeline
    question: Question
    answer: Answer
    source: ReplaySource | None


@dataclass
class WriterWanted(Message):
    """Ask the writing model again about the facts of an answer. ``source`` is as in :class:`WhatIfWanted`."""

    timeline: Timeline
    question: Question
    answer: Answer
    source: ReplaySource | None


@dataclass
class ShrinkWanted(Message):
    """Find the smallest conversation on which the memory fails as in an answer, and save it under a name."""

    answer: Answer
    source: ReplaySource | None
    name: str


@dataclass
class ForkWanted(Message):
    """Play a branch of a recorded conversation with edits that :class:`memreplay.runtime.branching.Edits` reads."""

    source: ReplaySource
    turn: int
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    inserted: tuple[str, ...] = ()


@dataclass
class BranchWanted(Message):
    """Open a branch beside the run that it departs from."""

    source: ReplaySource
    run_id: str


@dataclass
class ContinueWanted(Message):
    """Continue an interrupted recording live."""

    source: ReplaySource


@dataclass
class MarkWanted(Message):
    """Note that a memory of a running agent should have returned something at a turn, and explain what lost it."""

    source: ReplaySource
    turn: int
    expected: str
    evidence: str


@dataclass
class VisitWanted(Message):
    """Open a recorded conversation at a place. Going back also calls ``reopen``: it opens again what led there."""

    source: ReplaySource
    destination: Destination
    reopen: Callable[[], None] | None = None
