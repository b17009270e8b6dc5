"""What a screen asks of the app, where the app is not to import the screen before it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from app.tui.replay_source import ReplaySource


class OneOfTwoWanted(Message):
    """One of two recordings that are compared is to be looked at, at a position."""

    def __init__(self, source: ReplaySource, position: int) -> None:
        super().__init__()
        self.source = source
        self.position = position
