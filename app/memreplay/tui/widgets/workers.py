"""Questions asked by hand: played to memories of their own in a worker, and told of in messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
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
from memreplay.tui.text import one_line

if TYPE_CHECKING:
    from memreplay.engine.probes import Probe


class LivePlayer(Widget):
    """Plays and asks on command. It takes up no room."""

    DEFAULT_CSS = "LivePlayer { display: none; }"

    class Happened(Message):
        """The engine emitted an event. It is recorded already."""

        def __init__(self, event: ReplayEvent) -> None:
            super().__init__()
            self.event = event

    class Reached(Message):
        """A turn was played, to every memory."""

        def __init__(self, position: int) -> None:
            super().__init__()
            self.position = position

    class Rested(Message):
        """The engine has nothing more to do for now. ``completed``: every question was asked, the run is over."""

        def __init__(self, position: int, completed: bool) -> None:
            super().__init__()
            self.position = position
            self.completed = completed

    class Failed(Message):
        """The engine cannot go on: why, in one sentence."""

        def __init__(self, sentence: str) -> None:
            super().__init__()
            self.sentence = sentence

    def __init__(self, source: ReplaySource) -> None:
        super().__init__()
        assert source.assembly is not None
        self._timeline = source.timeline
        self.run = LiveRun(source.assembly, source.timeline, self._emit)
        self.busy = False
        self._ask_when_played = False
        self._asking: str | None = None

    @property
    def progress(self) -> str:
        """What is going on, or what the user can have go on next; nothing once the run is over."""
        if self.run.over:
            return ""
        turns, played = len(self._timeline.conversation.turns), self.run.position
        if self._timeline.conversation.conversing:
            return f"conversing, {played} turns so far · x stops" if self.run.target > played + 1 else ""
        if not self.busy:
            return "G asks the questions" if played == turns else ""
        if self._asking is not None:
            done = sum(answer.scored is not None for answer in self._timeline.answers())
            return f"asking {done}/{self.run.number_of_asks} · {one_line(self._asking)} · x stops"
        return f"playing {played}/{self.run.target} · x stops" if self.run.target > played + 1 else ""

    def on_mount(self) -> None:
        """Open the memories, and load what is slow to load, once the screen stands."""
        self.call_after_refresh(self.play_to, 0)
        self.call_after_refresh(self.warm_up)

    def play_to(self, position: int) -> None:
        """Play up to a turn."""
        self.run.target = max(self.run.target, position)
        self._start()

    def play_all(self) -> None:
        """Play all turns that are left, then ask every question."""
        self._ask_when_played = True
        self.play_to(self.run.end)

    def stop(self) -> None:
        """Let go of what is under way, at the next turn."""
        self._ask_when_played = False
        self.run.stop()

    def _start(self) -> None:
        if not self.busy and not self.run.over:
            self.busy = True
            self.drive()

    @work(group="engine")
    async def drive(self) -> None:
        """Play, then ask if that was wanted."""
        try:
            completed = await self._drive()
        except (MemreplayError, ModelUnavailableError) as error:
            self.busy = False
            self.post_message(self.Failed(str(error)))
        except Exception as error:
            # Whatever a store or a plugged-in memory raises: the screen stays, with what was recorded.
            self.busy = False
            self.post_message(self.Failed(f"the run cannot go on: {type(error).__name__}: {error}"))
        else:
            self.busy = False
            self.post_message(self.Rested(self.run.position, completed))

    async def _drive(self) -> bool:
        self._asking = None
        await self.run.play(self._reached)
        if not self._ask_when_played and not self.run.tests_are_over:
            return False
        if not await self.run.ask(self._timeline):
            return False
        await self.run.complete()
        return True

    @work(group="warm-up")
    async def warm_up(self) -> None:
        """Load models ahead of need. What fails here fails again, and is told, where it is needed."""
        try:
            await self.run.assembly.warm_up()
        except Exception as error:
            self.log.warning(f"warm-up: {error}")

    def _reached(self, position: int) -> None:
        self.post_message(self.Reached(position))

    def tell(self, event: ReplayEvent) -> None:
        """Pass on what others recorded in the same run."""
        self.post_message(self.Happened(event))

    def _emit(self, event: ReplayEvent) -> None:
        if isinstance(event, QuestionAsked | AnswerScored):
            self._asking = event.backend
        self.post_message(self.Happened(event))


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
        assemble: Callable[[], RunHandle],
        tell: Callable[[ReplayEvent], None] | None = None,
    ) -> None:
        """``tell`` passes events on where others emit too, so that all come in the order of their recording."""
        super().__init__()
        self._conversation = conversation
        self._assemble = assemble
        self._emit = tell or self._post
        self._asked: RunHandle | None = None
        self._side: Probe | None = None

    @work(group="by-hand", exclusive=True)
    async def ask(self, position: int, question: Question, backends: Sequence[str]) -> None:
        """Ask all these memories at a position. Asking again lets go of what is still under way."""
        try:
            # What it stands on is slow to import, and the screen is to stay alive meanwhile.
            await asyncio.to_thread(import_module, "memreplay.runtime.run")
            assembly = self._assemble()
            assembly.try_again()
            side = await self._side_of(assembly)
            await side.ask_at(position, question, backends, progress=self._progress)
        except (MemreplayError, ModelUnavailableError) as error:
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

    async def _side_of(self, assembly: RunHandle) -> Probe:
        """The memories to ask; others where what they are made of is another: a live run may have ended."""
        if self._side is None or self._asked is not assembly:
            await assembly.check()
            self._asked, self._side = assembly, assembly.side_session(self._conversation, self._emit)
        return self._side

    def _post(self, event: ReplayEvent) -> None:
        self.post_message(self.Happened(event))

    def _progress(self, backend: str, position: int, last: int) -> None:
        self.post_message(self.Progressed(f"by hand: {one_line(backend)} hears turn {position}/{last} · x stops"))
