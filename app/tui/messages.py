"""What a screen asks of the app, where the app is not to import the screen before it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from app.tui.destinations import Destination
    from app.tui.replay_source import ReplaySource


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
