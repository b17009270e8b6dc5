"""The headless run: every conversation taken in once a backend, every question asked, nothing asked twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from time import monotonic

from memory_backends.registry import texts_to_embed
from memreplay.batch.progress import BatchProgress
from memreplay.batch.resume import Asking, remaining_work
from memreplay.conversations.exchanges import exchanges_of
from memreplay.conversations.models import Conversation
from memreplay.engine.session import Ask, ReplaySession
from memreplay.llm import AGENT_MODEL
from memreplay.llm.rate_limiter import Gate, StoppedError
from memreplay.runtime.run import Run

_ASKS_A_CALL = 2
"""Asks begun for each call that may be under way: while one waits for the model, memory is read for the next."""

_CONVERSATIONS_AHEAD = 2
"""One is being asked about while the next is taken in; more would only hold memory, unless they are short."""

_MOST_CONVERSATIONS = 32
"""Conversations in memory at once; only many short ones come near."""

_TEXTS_AT_ONCE = 64
"""Embedded before anybody else may have a say."""


class BatchRunner:
    """Runs conversations through an run whose run has begun.

    They are taken in one after the other, in their order, and ahead of the asking, so that no model waits for an
    embedder. Without ``perceive`` the read path of ordinary turns is skipped, but for backends whose answers depend
    on it.
    """

    def __init__(self, run: Run, progress: BatchProgress, asking: Asking, *, perceive: bool) -> None:
        assert run.recorder is not None
        self._run, self._progress, self._recorder = run, progress, run.recorder
        self._asking, self._perceive = asking, perceive
        self._lanes = {name: self._lane(name) for name in asking.answerers}
        self._open = 0
        self._not_begun: dict[str, Counter[str]] = {}
        self._progressed = asyncio.Event()
        self.stopping = False

    async def run(self, conversations: Sequence[Conversation]) -> None:
        """Do all that is not done yet, or as much of it as was begun when :meth:`stop` came.

        What a model that is given up is still to be asked stays unasked; the others go on.

        Raises:
            RecordingError: the recording cannot be written any more.
        """
        async with asyncio.TaskGroup() as group:
            for conversation in conversations:
                await self._until_asks_run_short()
                if self.stopping or not self._still_asked():
                    return
                await self._take_up(conversation, group)

    def stop(self) -> None:
        """Begin nothing any more; calls under way are waited for, and their replies kept."""
        self.stopping = True
        self._run.paces.halt()
        for lane in self._lanes.values():
            lane.halt()
        self._progressed.set()

    async def _take_up(self, conversation: Conversation, group: asyncio.TaskGroup) -> None:
        self._recorder.add_conversation(conversation)
        work = remaining_work(conversation, self._recorder, self._asking)
        for received, scored in work.answered:
            self._progress.carried_over(received, scored)
        if not work.backends and not work.asks:
            return
        session = self._run.start_session(
            conversation,
            self._progress.saw,
            backends=(*work.backends, *self._asking.along),
            perceive=self._perceive,
        )
        self._open += 1
        if work.asks:
            self._not_begun[conversation.id] = Counter(_answerer_of(ask) for ask in work.asks)
        try:
            await self._ingest(conversation, session, work.backends)
        except StoppedError:
            # The model that reads facts is asked no more: no conversation can be taken in without it.
            self.stop()
        group.create_task(self._question(session, work.asks))

    async def _ingest(self, conversation: Conversation, session: ReplaySession, backends: Sequence[str]) -> None:
        started = monotonic()
        texts = list(texts_to_embed(backends, exchanges_of(conversation)))
        texts += [question.text for question in conversation.questions] if texts else []
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            if self.stopping:
                return
            await self._run.embed_ahead(texts[first : first + _TEXTS_AT_ONCE])
        await session.open()
        while not self.stopping:
            if not await session.step():
                break
            # Embedded stores never wait for anything: without this no reply would be read meanwhile.
            await asyncio.sleep(0)
        if session.finished:
            self._progress.ingested(conversation.id, monotonic() - started)

    async def _question(self, session: ReplaySession, asks: Sequence[Ask]) -> None:
        asked = 0
        if session.finished:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._ask(session, ask)) for ask in asks]
            asked = sum(task.result() for task in tasks)
        complete = session.finished and asked == len(asks)
        if complete or session.position:
            await session.close("resolved" if complete else "cancelled")
        self._open -= 1
        self._progressed.set()

    async def _ask(self, session: ReplaySession, ask: Ask) -> bool:
        """Whether the question was answered: not where the run ends, or its model is given up, before that."""
        answerer = _answerer_of(ask)
        try:
            async with self._lanes[answerer]:
                self._begins(session.conversation.id, answerer)
                await session.ask(ask.question, ask.backend, ask.model, repeat=ask.repeat)
        except StoppedError:
            if answerer not in self._still_asked():
                self._lanes[answerer].halt()
                self._progressed.set()
            return False
        return True

    def _still_asked(self) -> list[str]:
        """The answerers that were not given up."""
        given_up = self._run.paces.given_up
        return [name for name in self._lanes if name not in given_up]

    def _begins(self, conversation: str, answerer: str) -> None:
        left = self._not_begun[conversation]
        left[answerer] -= 1
        if not left.total():
            del self._not_begun[conversation]
        self._progressed.set()

    async def _until_asks_run_short(self) -> None:
        while not self.stopping and not self._short_of_asks():
            self._progressed.clear()
            await self._progressed.wait()

    def _short_of_asks(self) -> bool:
        """Whether no whole conversation is waiting to be asked about, or one does not keep the models busy."""
        if self._open >= _MOST_CONVERSATIONS:
            return False
        asked, waiting = self._still_asked(), sum(self._not_begun.values(), Counter[str]())
        whole = sum(any(left[name] for name in asked) for left in self._not_begun.values())
        return whole < _CONVERSATIONS_AHEAD or any(
            waiting[name] < self._run.paces.of(name).calls_at_once for name in asked
        )

    def _lane(self, answerer: str) -> Gate:
        """The asks of one model or agent, so that a slow one holds back no other."""
        pace = self._run.paces.of(answerer)
        return Gate(lambda: _ASKS_A_CALL * pace.calls_at_once)


def _answerer_of(ask: Ask) -> str:
    return ask.backend if ask.model == AGENT_MODEL else ask.model
