"""A live run as the screens see it: what to play next, what to ask next, and how to leave. It knows no screen."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from memreplay.llm.rate_limiter import StoppedError
from memreplay.timeline.timeline import Timeline
from memreplay.tui.launch import RunHandle

if TYPE_CHECKING:
    from memreplay.engine.agent_session import AgentSession
    from memreplay.engine.events import ReplayEvent
    from memreplay.engine.session import Ask, ReplaySession

    Session = ReplaySession | AgentSession

_ASKS_AT_ONCE = 4
_LONGEST_WAIT_TO_LEAVE = 1.0


class LiveRun:
    """Plays one conversation through an assembly, as far as it is told to.

    ``target`` is the position to play to; it may be raised while playing. :meth:`stop` ends the work between two
    turns, since a turn that is half played would be a memory that half heard it.
    """

    def __init__(self, assembly: RunHandle, timeline: Timeline, emit: Callable[[ReplayEvent], None]) -> None:
        self.assembly = assembly
        self.conversation = timeline.conversation
        self._timeline = timeline
        self.target = 0
        self.over = False
        self._emit = emit
        self._session: Session | None = None
        self._stopping = False
        self._asking: asyncio.Task[None] | None = None
        self._at_work = asyncio.Lock()

    @property
    def position(self) -> int:
        """Turns played so far."""
        return self._session.position if self._session else 0

    @property
    def end(self) -> int:
        """The last turn that there will be; while tests converse nobody knows, and it is beyond all bounds."""
        return sys.maxsize if self.conversation.conversing else len(self.conversation.turns)

    @property
    def tests_are_over(self) -> bool:
        """Whether tests conversed and have nothing more to say."""
        return self.conversation.conversing and self._session is not None and self._session.finished

    @property
    def number_of_asks(self) -> int:
        """Questions, times architectures, times models."""
        return len(self._session.asks()) if self._session else 0

    async def play(self, played: Callable[[int], None]) -> None:
        """Play to the target, telling each position that was reached.

        Raises:
            MemreplayError: a server, a key or the recording is not to be had.
            ModelUnavailableError: a model that replies, judges or reads facts cannot be asked.
        """
        async with self._at_work:
            self._stopping = False
            self.assembly.try_again()
            session = await self._opened()
            while not self._stopping and not session.finished and session.position < self.target:
                await session.step()
                played(session.position)
                # Embedded stores never wait for anything: without this the screen would stand still.
                await asyncio.sleep(0)
            self.target = session.position

    async def ask(self, timeline: Timeline) -> bool:
        """Ask every scheduled question that has no scored answer yet. False where :meth:`stop` came first.

        Raises:
            MemreplayError: the recording cannot be written.
            ModelUnavailableError: a model cannot be asked; what it was to be asked can be asked later.
        """
        async with self._at_work:
            self._stopping = False
            self.assembly.try_again()
            session = await self._opened()
            self._asking = asyncio.create_task(self._ask_all(session, _missing(session, timeline)))
            try:
                await self._asking
            except asyncio.CancelledError:
                if not self._stopping:
                    raise
                return False
            finally:
                self._asking = None
        return True

    async def _ask_all(self, session: Session, asks: Sequence[Ask]) -> None:
        gate = asyncio.Semaphore(_ASKS_AT_ONCE)
        halted: list[StoppedError] = []

        async def one(ask: Ask) -> None:
            async with gate:
                try:
                    await session.ask(ask.question, ask.backend, ask.model)
                except StoppedError as error:
                    halted.append(error)

        async with asyncio.TaskGroup() as group:
            for ask in asks:
                group.create_task(one(ask))
        for error in halted:
            raise error

    async def complete(self) -> None:
        """End the run: the conversation is resolved in every memory, the recording finished."""
        async with self._at_work:
            self.over = True
            if self._session is not None:
                await self._session.close("resolved")
            await self.assembly.finish("finished")

    def stop(self) -> None:
        """Play no further turn, and let go of the calls under way."""
        self._stopping = True
        if self._asking is not None:
            self._asking.cancel()

    async def abandon(self) -> None:
        """Leave: the conversation is cancelled in every memory, and the run interrupted in its recording.

        It waits for the turn under way, but not for long.
        """
        if self.over:
            return
        self.over = True
        self.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_WAIT_TO_LEAVE), self._at_work:
                if self._session is not None:
                    await self._session.close("cancelled")
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_WAIT_TO_LEAVE):
                await self.assembly.finish("interrupted")

    async def _opened(self) -> Session:
        if self._session is None:
            await self.assembly.check()
            session = self.assembly.start_session(self.conversation, self._emit)
            self._timeline.rest_in(self.assembly.live_archive(self.conversation))
            await session.open()
            self._session = session
        return self._session


def _missing(session: Session, timeline: Timeline) -> list[Ask]:
    """The asks that have no scored answer yet."""
    scored = {
        (answer.asked.question_id, answer.asked.backend, answer.asked.model)
        for answer in timeline.answers()
        if answer.scored is not None and not answer.asked.by_hand
    }
    return [ask for ask in session.asks() if (ask.question.id, ask.backend, ask.model) not in scored]
