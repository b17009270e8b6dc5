"""Runs of tests without a screen: every memory and model converses with all of them, and is paid for once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from memreplay.batch.progress import BatchProgress
from memreplay.batch.selection import chosen_tests
from memreplay.dataset_interfaces.sources import TestSource
from memreplay.engine.events import BenchmarkModelAsked, ConversationClosed, ReplayEvent
from memreplay.engine.known_replies import KnownReplies, failed_replies
from memreplay.llm.rate_limiter import StoppedError
from memreplay.recording.run_tables import PaidByTests
from memreplay.runtime.streams import TestStream, streams_of
from memreplay.runtime.test_runs import RunWithTests
from memreplay.scoring.rows import TEST_KINDS

STREAMS_AT_ONCE = 4
"""Conversations under way at once, where nothing else is asked for: each waits for one reply at a time."""

Tell = Callable[[str], None]


class TestsRunner:
    """Plays the streams of sources of tests through an run whose run has begun."""

    __test__ = False

    def __init__(self, run: RunWithTests, sources: Sequence[TestSource], *, retry_errors: bool = False) -> None:
        self._run, self.sources, self._retry_errors = run, sources, retry_errors
        self.totals: Counter[tuple[str, str]] = Counter()
        """Tests to be scored, by memory and model."""
        self._streams: list[TestStream] = []
        self._stopping = False
        self._slots = asyncio.Semaphore(run.settings.concurrency or STREAMS_AT_ONCE)

    async def prepare(self, tell: Tell) -> None:
        """Make the tests once. ``tell`` is given a sentence for what is not as it seems.

        Raises:
            MemreplayError: they cannot be made.
        """
        made = [await self._run.made(source) for source in self.sources]
        for source, benchmark in zip(self.sources, chosen_tests(made, self._run.settings), strict=True):
            for note in benchmark.notes:
                tell(note)
            streams = streams_of(source, benchmark, self._run.settings) if benchmark.tests else []
            for stream in streams:
                self.totals[stream.backend, stream.model] += len(stream.test_ids or ())
            self._streams += streams

    def stop(self) -> None:
        """Let what is being said be the last; it can be gone on with."""
        self._stopping = True

    async def run(self, progress: BatchProgress) -> None:
        """Play all that was not played to its end yet."""
        recorder = self._run.recorder
        assert recorder is not None
        if not self._streams or self._stopping:
            return
        for stream in self._streams:
            # All of them first: rows stand in this order, whichever is over first.
            recorder.add_conversation(stream.conversation)
        self._account_for_writing()
        async with asyncio.TaskGroup() as group:
            for stream in self._streams:
                group.create_task(self._run_one(stream, progress))

    async def _run_one(self, stream: TestStream, progress: BatchProgress) -> None:
        async with self._slots:
            recorder = self._run.recorder
            assert recorder is not None
            known = self._recorded(stream)
            mended = self._retry_errors and self._without_failures(known)
            if mended:
                known = self._recorded(stream)
            if not mended and any(isinstance(event, ConversationClosed) for event in known):
                for event in known:
                    progress.tested(event, carried=True)
                return
            if self._stopping:
                return
            recorder.forget_ingestion(stream.conversation.id, [stream.backend])
            for event in known:
                progress.kept(event)
            session = self._run.start_tests(
                stream,
                lambda event: progress.tested(event, carried=False),
                KnownReplies(known, strict=not self._retry_errors, moved=self._move),
            )
            with suppress(StoppedError):
                await session.open()
                while not self._stopping and await session.step():
                    pass
            if session.finished:
                await session.close("resolved")

    def _without_failures(self, known: Sequence[ReplayEvent]) -> bool:
        """Take back what is to be asked again; whether there was anything. What was paid for it stays on record."""
        recorder = self._run.recorder
        assert recorder is not None
        replies, calls = failed_replies(known)
        for reply in replies:
            recorder.replace(reply, None)
        for call in calls:
            recorder.replace(call, call.model_copy(update={"used": False}))
        return bool(replies or calls)

    def _move(self, event: PaidByTests, turn: int) -> None:
        assert self._run.recorder is not None
        self._run.recorder.replace(event, event.model_copy(update={"turn": turn}))

    def _account_for_writing(self) -> None:
        """What the model cost that wrote the tests, in the first conversation of the run."""
        first, recorder, judge = self._streams[0], self._run.recorder, self._run.judge
        assert recorder is not None
        calls = [event for event in self._recorded(first) if isinstance(event, BenchmarkModelAsked)]
        if judge is None or any(not call.test_id for call in calls):
            return
        for reply in self._run.authored.values():
            call = BenchmarkModelAsked(
                conversation=first.conversation.id,
                turn=0,
                backend=first.backend,
                test_id="",
                model=judge.name,
                reply=reply.text,
                error=reply.error,
                cost_usd=reply.cost_usd,
            )
            recorder.record(call)

    def _recorded(self, stream: TestStream) -> list[ReplayEvent]:
        recorder = self._run.recorder
        assert recorder is not None
        reader = recorder.reader()
        try:
            kinds = (*TEST_KINDS, "conversation_closed")
            return list(reader.events(recorder.run_id, stream.conversation.id, kinds))
        finally:
            reader.close()
