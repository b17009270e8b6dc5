"""Runs tests without a screen: each memory and model goes through all of them, and each reply is paid for once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from memreplay.batch.progress import BatchProgress
from memreplay.engine.events import BenchmarkModelAsked, ConversationClosed, ReplayEvent
from memreplay.engine.known_replies import KnownReplies, failed_replies
from memreplay.llm.rate_limiter import StoppedError
from memreplay.recording.run_rows import PaidByTests
from memreplay.runtime.run_with_tests import RunWithTests, TestStream, streams_of
from memreplay.runtime.work import chosen_tests
from memreplay.scoring.rows import TEST_KINDS

STREAMS_AT_ONCE = 4
"""Parallel conversations by default; each waits for one reply at a time."""


class TestsRunner:
    """Plays the test streams of a run that has begun."""

    __test__ = False

    def __init__(self, run: RunWithTests, *, retry_errors: bool = False) -> None:
        self._run, self._retry_errors = run, retry_errors
        self.totals: Counter[tuple[str, str]] = Counter()
        """Number of tests by memory and model."""
        self._streams: list[TestStream] = []
        self._stopping = False
        self._slots = asyncio.Semaphore(run.settings.concurrency or STREAMS_AT_ONCE)

    async def prepare(self, report: Callable[[str], None]) -> None:
        """Create the tests; ``report`` receives the notes of their source.

        Raises:
            MemreplayError: they cannot be created.
        """
        made = [await self._run.made(source) for source in self._run.work.sources]
        for source, benchmark in zip(self._run.work.sources, chosen_tests(made, self._run.settings), strict=True):
            for note in benchmark.notes:
                report(note)
            streams = streams_of(source, benchmark, self._run.settings) if benchmark.tests else []
            for stream in streams:
                self.totals[stream.backend, stream.model] += len(stream.test_ids or ())
            self._streams += streams

    def stop(self) -> None:
        """Stop after the current messages; the run can be resumed."""
        self._stopping = True

    async def run(self, progress: BatchProgress) -> None:
        """Play all streams that are not recorded to their end."""
        recorder = self._run.recorder
        assert recorder is not None
        if not self._streams or self._stopping:
            return
        for stream in self._streams:
            # Add them all first: this fixes the order of rows, whichever finishes first.
            recorder.add_conversation(stream.conversation)
        self._record_writing()
        async with asyncio.TaskGroup() as group:
            for stream in self._streams:
                group.create_task(self._run_one(stream, progress))

    async def _run_one(self, stream: TestStream, progress: BatchProgress) -> None:
        async with self._slots:
            recorder = self._run.recorder
            assert recorder is not None
            known = self._recorded(stream)
            removed_failures = self._retry_errors and self._remove_failures(known)
            if removed_failures:
                known = self._recorded(stream)
            if not removed_failures and any(isinstance(event, ConversationClosed) for event in known):
                for event in known:
                    progress.observe_test(event, resumed=True)
                return
            if self._stopping:
                return
            recorder.forget_ingestion(stream.conversation.id, [stream.backend])
            for event in known:
                progress.add_recorded_reply(event)
            session = self._run.start_tests(
                stream,
                lambda event: progress.observe_test(event, resumed=False),
                KnownReplies(known, strict=not self._retry_errors, moved=self._move),
            )
            with suppress(StoppedError):
                await session.open()
                while not self._stopping and await session.step():
                    pass
            if session.finished:
                await session.close("resolved")

    def _remove_failures(self, known: Sequence[ReplayEvent]) -> bool:
        """Remove failed replies so that they are asked again; whether there were any. Their cost stays recorded."""
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

    def _record_writing(self) -> None:
        """Record the cost of writing the tests, in the first conversation of the run."""
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
