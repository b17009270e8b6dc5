"""Work that the screen does not wait for: playing a live run, and asking questions by hand.

Both are invisible widgets, and do nothing but post messages about what happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from textual import work
from textual.message import Message
from textual.widget import Widget

from memreplay.conversations.models import Conversation, Question
from memreplay.engine.events import AnswerScored, QuestionAsked, ReplayEvent
from memreplay.errors import MemreplayError
from memreplay.llm.rate_limiter import ModelUnavailableError
from memreplay.tui.launch import RunHandle
from memreplay.tui.live import LiveRun
from memreplay.tui.sources import ReplaySource
from memreplay.views.text import one_line

if TYPE_CHECKING:
    from memreplay.engine.probes import Probe


@dataclass
class Happened(Message):
    """The engine recorded an event."""

    event: ReplayEvent


class LivePlayer(Widget):
    """Plays a live run and asks its questions."""

    DEFAULT_CSS = "LivePlayer { display: none; }"

    @dataclass
    class Reached(Message):
        """Every memory has ingested a turn."""

        position: int

    @dataclass
    class Rested(Message):
        """The engine is idle. ``completed``: every question was asked and the run is over."""

        position: int
        completed: bool

    @dataclass
    class Failed(Message):
        """The engine cannot continue; ``sentence`` says why."""

        sentence: str

    def __init__(self, source: ReplaySource, play_to: int = 0) -> None:
        super().__init__()
        assert source.handle is not None
        self._begin_at = play_to
        self._timeline = source.timeline
        self.run = LiveRun(source.handle, source.timeline, self._emit)
        self.busy = False
        self._ask_when_played = False
        self._asking: str | None = None

    @property
    def progress(self) -> str:
        """Return what is being played or asked, or what the user can do next; empty once the run is over."""
        if self.run.over:
            return ""
        turns, played = len(self._timeline.conversation.turns), self.run.position
        if self._timeline.conversation.end is None:
            return f"conversing, {played} turns so far · x stops" if self.run.target > played + 1 else ""
        if not self.busy:
            return "G asks the questions" if played == turns else ""
        if self._asking is not None:
            return f"asking {self.run.answered}/{self.run.asks} · {one_line(self._asking)} · x stops"
        return f"playing {played}/{self.run.target} · x stops" if self.run.target > played + 1 else ""

    def on_mount(self) -> None:
        """Open the memories and load models once the screen is painted."""
        self.call_after_refresh(self.play_to, self._begin_at)
        self.call_after_refresh(self.warm_up)

    def play_to(self, position: int) -> None:
        self.run.target = max(self.run.target, position)
        if not self.busy and not self.run.over:
            self.busy = True
            self.drive()

    def play_all(self) -> None:
        """Play the remaining turns, then ask every question."""
        self._ask_when_played = True
        self.play_to(self.run.end)

    def stop(self) -> None:
        """Stop playing after the current turn, and cancel the questions under way."""
        self._ask_when_played = False
        self.run.stop()

    @work(group="engine")
    async def drive(self) -> None:
        """Play up to the target, then ask the questions if they are wanted."""
        try:
            completed = await self._drive()
        except Exception as error:
            self.busy = False
            self.post_message(self.Failed(_sentence("the run cannot continue", error)))
        else:
            self.busy = False
            self.post_message(self.Rested(self.run.position, completed))

    async def _drive(self) -> bool:
        self._asking = None
        await self.run.play(self._reached)
        if not self._ask_when_played and not self.run.is_done:
            return False
        if not await self.run.ask():
            return False
        await self.run.complete()
        return True

    def _reached(self, position: int) -> None:
        self.post_message(self.Reached(position))

    @work(group="warm-up")
    async def warm_up(self) -> None:
        """Load models ahead of need. A failure recurs when they are needed, and is reported then."""
        try:
            await self.run.handle.warm_up()
        except Exception as error:
            self.log.warning(f"warm-up: {error}")

    def emit(self, event: ReplayEvent) -> None:
        """Post an event of the same run, in the order of its recording."""
        self.post_message(Happened(event))

    def _emit(self, event: ReplayEvent) -> None:
        if isinstance(event, QuestionAsked | AnswerScored):
            self._asking = event.backend
        self.emit(event)


class HandAsker(Widget):
    """Asks memories as they stood at a position, without changing those of the replay."""

    DEFAULT_CSS = "HandAsker { display: none; }"

    @dataclass
    class Progressed(Message):
        """A message about the work in progress; ``words`` are empty when it is finished."""

        words: str

    @dataclass
    class Answered(Message):
        """Every memory has answered."""

        position: int
        question: Question

    @dataclass
    class Failed(Message):
        """The question cannot be asked; ``sentence`` says why."""

        sentence: str

    def __init__(
        self,
        conversation: Conversation,
        assemble: Callable[[], Awaitable[RunHandle]],
        emit: Callable[[ReplayEvent], None] | None = None,
    ) -> None:
        """``emit`` receives the events instead, where those of a live run must stay in the same order."""
        super().__init__()
        self._conversation = conversation
        self._assemble = assemble
        self._emit = emit or self._post
        self._handle: RunHandle | None = None
        self._probe: Probe | None = None

    @work(group="by-hand", exclusive=True)
    async def ask(self, position: int, question: Question, backends: Sequence[str]) -> None:
        """Ask memories at a position. This cancels the previous question if it is still under way."""
        try:
            # This module is slow to import, and the screen must stay responsive.
            await asyncio.to_thread(import_module, "memreplay.runtime.run")
            handle = await self._assemble()
            handle.try_again()
            probe = await self._probe_of(handle)
            await probe.ask_at(position, question, backends, progress=self._progress)
        except Exception as error:
            self.post_message(self.Failed(_sentence("the question cannot be asked", error)))
        else:
            self.post_message(self.Answered(position, question))
        finally:
            self.post_message(self.Progressed(""))

    def stop(self) -> None:
        self.workers.cancel_group(self, "by-hand")

    async def _probe_of(self, handle: RunHandle) -> Probe:
        """Return the memories to ask. They are built again for another run: a live one may have ended meanwhile."""
        if self._probe is None or self._handle is not handle:
            await handle.check()
            self._handle, self._probe = handle, handle.side_session(self._conversation, self._emit)
        return self._probe

    def _post(self, event: ReplayEvent) -> None:
        self.post_message(Happened(event))

    def _progress(self, backend: str, position: int, last: int) -> None:
        self.post_message(self.Progressed(f"by hand: {one_line(backend)} ingests turn {position}/{last} · x stops"))


def _sentence(problem: str, error: Exception) -> str:
    """Return why something failed. A store or a plugged-in memory may raise anything, and must not close the
    screen.
    """
    if isinstance(error, MemreplayError | ModelUnavailableError):
        return str(error)
    return f"{problem}: {type(error).__name__}: {error}"
