"""Questions asked by hand: played to memories of their own in a worker, and told of in messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from textual import work
from textual.message import Message
from textual.widget import Widget

from app.answering.gate import GivenUpError
from app.conversations.models import Conversation, Question
from app.errors import MemreplayError
from app.replay.events import ReplayEvent
from app.tui.launch import LiveAssembly
from app.tui.text import one_line

if TYPE_CHECKING:
    from app.replay.side_session import SideSession


class HandAsker(Widget):
    """Asks memories as they stood at a position. It takes up no room, and changes nothing that is on the screen."""

    DEFAULT_CSS = "HandAsker { display: none; }"

    class Happened(Message):
        """Something was asked or answered."""

        def __init__(self, event: ReplayEvent) -> None:
            super().__init__()
            self.event = event

    class Progressed(Message):
        """How far it is, in words; empty when it is done."""

        def __init__(self, words: str) -> None:
            super().__init__()
            self.words = words

    class Answered(Message):
        """Every memory has answered."""

        def __init__(self, position: int, question: Question) -> None:
            super().__init__()
            self.position = position
            self.question = question

    class Failed(Message):
        """It cannot be asked: why, in one sentence."""

        def __init__(self, sentence: str) -> None:
            super().__init__()
            self.sentence = sentence

    def __init__(
        self,
        conversation: Conversation,
        assemble: Callable[[], LiveAssembly],
        tell: Callable[[ReplayEvent], None] | None = None,
    ) -> None:
        """``tell`` passes events on where others emit too, so that all come in the order of their recording."""
        super().__init__()
        self._conversation = conversation
        self._assemble = assemble
        self._emit = tell or self._post
        self._asked: LiveAssembly | None = None
        self._side: SideSession | None = None

    @work(group="by-hand", exclusive=True)
    async def ask(self, position: int, question: Question, backends: Sequence[str]) -> None:
        """Ask all these memories at a position. Asking again lets go of what is still under way."""
        try:
            # What it stands on is slow to import, and the screen is to stay alive meanwhile.
            await asyncio.to_thread(import_module, "app.assembling.assembly")
            assembly = self._assemble()
            assembly.try_again()
            side = await self._side_of(assembly)
            await side.ask_at(position, question, backends, progress=self._progress)
        except (MemreplayError, GivenUpError) as error:
            self.post_message(self.Failed(str(error)))
        except Exception as error:
            # Whatever a store or a plugged-in memory raises: the screen stays.
            self.post_message(self.Failed(f"it cannot be asked: {type(error).__name__}: {error}"))
        else:
            self.post_message(self.Answered(position, question))
        finally:
            self.post_message(self.Progressed(""))

    def stop(self) -> None:
        """Let go of what is under way."""
        self.workers.cancel_group(self, "by-hand")

    async def _side_of(self, assembly: LiveAssembly) -> SideSession:
        """The memories to ask; others where what they are made of is another: a live run may have ended."""
        if self._side is None or self._asked is not assembly:
            await assembly.check()
            self._asked, self._side = assembly, assembly.side_session(self._conversation, self._emit)
        return self._side

    def _post(self, event: ReplayEvent) -> None:
        self.post_message(self.Happened(event))

    def _progress(self, backend: str, position: int, last: int) -> None:
        self.post_message(self.Progressed(f"by hand: {one_line(backend)} hears turn {position}/{last} · x stops"))
