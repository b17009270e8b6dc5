"""A live run without a screen: playing turns, asking questions, and leaving."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from memreplay.engine.events import AnswerScored, ReplayEvent
from memreplay.engine.session import AskableSession
from memreplay.llm.rate_limiter import StoppedError
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.tui.launch import RunHandle

if TYPE_CHECKING:
    from memreplay.engine.session import Ask, PlayableSession

_CONCURRENT_ASKS = 4
_LONGEST_WAIT_TO_LEAVE = 1.0


class LiveRun:
    """Plays one conversation up to ``target``, a position that may be raised while playing.

    :meth:`stop` takes effect between two turns: half a turn would leave a memory that ingested only half of it.
    ``answered`` counts the scheduled ``asks`` (questions × architectures × models) that have a score.
    """

    def __init__(self, handle: RunHandle, timeline: Timeline, emit: Callable[[ReplayEvent], None]) -> None:
        self.handle = handle
        self.target = 0
        self.over = False
        self.asks = 0
        self.answered = 0
        self._conversation = timeline.conversation
        self._timeline = timeline
        self._emit = emit
        self._session: PlayableSession | None = None
        self._stopping = False
        self._asking: asyncio.Task[None] | None = None
        self._working = asyncio.Lock()

    @property
    def position(self) -> int:
        """Return turns played so far."""
        return self._session.position if self._session else 0

    @property
    def end(self) -> int:
        """Return the last turn; while tests converse it is unknown, and larger than any position."""
        end = self._conversation.end
        return sys.maxsize if end is None else end

    @property
    def where_saved(self) -> str | None:
        """Return where the run is found after an interruption, in a sentence."""
        path = self.handle.recording_path
        return None if path is None else f"The interrupted run is saved: {path}"

    @property
    def is_done(self) -> bool:
        """Return whether every turn was played, and there is nothing to ask."""
        session = self._session
        return session is not None and session.finished and not isinstance(session, AskableSession)

    async def play(self, played: Callable[[int], None]) -> None:
        """Play to the target, reporting each position.

        Raises:
            MemreplayError: a server, a key or the recording is not available.
            ModelUnavailableError: a model that replies, judges or extracts facts is not available.
        """
        async with self._working:
            session = await self._start()
            while not self._stopping and not session.finished and session.position < self.target:
                await session.step()
                played(session.position)
                # Embedded stores never yield to the event loop, which would freeze the screen.
                await asyncio.sleep(0)
            self.target = session.position
            if self.handle.recorder is not None and not self.over:
                # What a run at rest shows can be read from its file.
                self.handle.recorder.flush()

    async def ask(self) -> bool:
        """Ask every scheduled question that has no scored answer yet. False if :meth:`stop` interrupted it.

        Raises:
            MemreplayError: the recording cannot be written.
            ModelUnavailableError: a model is not available; its questions can be asked later.
        """
        async with self._working:
            session = await self._start()
            if not isinstance(session, AskableSession):
                return True
            asks = session.asks()
            missing = _without_score(asks, self._timeline)
            self.asks, self.answered = len(asks), len(asks) - len(missing)
            self._asking = asyncio.create_task(self._ask_all(session, missing))
            try:
                await self._asking
            except asyncio.CancelledError:
                if not self._stopping:
                    raise
                return False
            finally:
                self._asking = None
        return True

    async def _ask_all(self, session: AskableSession, asks: Sequence[Ask]) -> None:
        limit = asyncio.Semaphore(_CONCURRENT_ASKS)
        stopped: list[StoppedError] = []
        # The judge failed, or was stopped, after the reply: only it is asked again.
        ungraded = {
            place: answer
            for place, answer in _scheduled(self._timeline).items()
            if answer.received is not None and answer.scored is None
        }

        async def one(ask: Ask) -> None:
            async with limit:
                try:
                    answer = ungraded.get((ask.question.id, ask.backend, ask.model))
                    if answer is not None and answer.received is not None:
                        await session.grade(ask.question, answer.asked, answer.received.reply)
                    else:
                        await session.ask(ask.question, ask.backend, ask.model)
                except StoppedError as error:
                    stopped.append(error)

        async with asyncio.TaskGroup() as group:
            for ask in asks:
                group.create_task(one(ask))
        for error in stopped:
            raise error

    async def complete(self) -> None:
        """End the run: resolve the conversation in every memory and finish the recording."""
        async with self._working:
            self.over = True
            if self._session is not None:
                await self._session.close("resolved")
            await self.handle.finish("finished")

    def stop(self) -> None:
        """Play no further turn, and cancel the questions under way."""
        self._stopping = True
        if self._asking is not None:
            self._asking.cancel()

    async def abandon(self) -> None:
        """Leave: cancel the conversation in every memory and mark the recorded run as interrupted.

        This waits for the current turn, but not for long.
        """
        if self.over:
            return
        self.over = True
        self.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_WAIT_TO_LEAVE), self._working:
                if self._session is not None:
                    await self._session.close("cancelled")
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_WAIT_TO_LEAVE):
                await self.handle.finish("interrupted")

    async def _start(self) -> PlayableSession:
        """Get ready to play or ask; the first time, open the session."""
        self._stopping = False
        self.handle.try_again()
        if self._session is None:
            await self.handle.check()
            session = self.handle.session_for(self._conversation, self._observe)
            self._timeline.rest_in(self.handle.live_archive(self._conversation))
            for event in self.handle.kept_events(self._conversation.id):
                self._emit(event)
            await session.open()
            self._session = session
        return self._session

    def _observe(self, event: ReplayEvent) -> None:
        if isinstance(event, AnswerScored):
            self.answered += 1
        self._emit(event)


def _scheduled(timeline: Timeline) -> dict[tuple[str, str, str], Answer]:
    """Return the answers to scheduled questions, by question, memory and model."""
    return {
        (answer.asked.question_id, answer.asked.backend, answer.asked.model): answer
        for answer in timeline.answers()
        if not answer.asked.by_hand
    }


def _without_score(asks: Sequence[Ask], timeline: Timeline) -> list[Ask]:
    scored = {place for place, answer in _scheduled(timeline).items() if answer.scored is not None}
    return [ask for ask in asks if (ask.question.id, ask.backend, ask.model) not in scored]
