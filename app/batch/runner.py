"""The headless run: every conversation taken in once a backend, every question asked, nothing asked twice."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic

from app.assembly import Assembly
from app.batch.progress import BatchProgress
from app.conversations.exchanges import exchanges_of
from app.conversations.models import Conversation, Question
from app.recording.recorder import ASK_KINDS
from app.replay.events import ConversationClosed
from app.replay.session import Ask, ReplaySession, score_answer
from app.replay.timeline import Answer, Timeline
from app.scoring.outcomes import Outcome

CALLS_UNDER_WAY = 20
"""Model calls at once, where nothing else is asked for."""

_CONVERSATIONS_AT_ONCE = 2
"""One is being asked about while the next is taken in; more would only hold memory."""


def first_questions(conversations: Iterable[Conversation], limit: int | None) -> Iterator[Conversation]:
    """The conversations with only the first ``limit`` questions of all; those left without any are dropped."""
    left = limit
    for conversation in conversations:
        if left is None:
            yield conversation
            continue
        kept = conversation.questions[:left]
        left -= len(kept)
        if kept:
            yield conversation.model_copy(update={"questions": kept})


@dataclass(frozen=True)
class Remaining:
    """What is left to do of a conversation: backends to take it in (again), and questions to ask."""

    backends: tuple[str, ...]
    asks: tuple[Ask, ...]


class BatchRunner:
    """Runs conversations through an assembly whose run has begun.

    Without ``perceive`` the read path of ordinary turns is skipped, but for backends whose answers depend on it.
    """

    def __init__(self, assembly: Assembly, progress: BatchProgress, *, perceive: bool) -> None:
        assert assembly.recorder is not None
        self._assembly, self._progress, self._recorder = assembly, progress, assembly.recorder
        self._perceive = perceive
        self._slots = asyncio.Semaphore(assembly.settings.concurrency or CALLS_UNDER_WAY)
        self._ingesting = asyncio.Lock()
        self._conversations = asyncio.Semaphore(_CONVERSATIONS_AT_ONCE)

    async def run(self, conversations: Sequence[Conversation]) -> None:
        """Do all that is not done yet.

        Raises:
            RecordingError: the recording cannot be written any more.
        """
        async with asyncio.TaskGroup() as group:
            for conversation in conversations:
                group.create_task(self._run_one(conversation))

    async def _run_one(self, conversation: Conversation) -> None:
        async with self._conversations:
            self._recorder.add_conversation(conversation)
            remaining = self._remaining(conversation)
            if not remaining.backends:
                return
            session = self._assembly.start_session(
                conversation, backends=remaining.backends, perceive=self._perceive
            )
            async with self._ingesting:
                await self._ingest(conversation, session, len(remaining.backends))
            async with asyncio.TaskGroup() as group:
                for ask in remaining.asks:
                    group.create_task(self._ask(session, ask))
            await session.close("resolved")

    async def _ingest(self, conversation: Conversation, session: ReplaySession, backends: int) -> None:
        started = monotonic()
        await self._assembly.embed_ahead([exchange.text for exchange in exchanges_of(conversation)])
        await session.open()
        await session.play()
        self._progress.ingested(conversation.id, backends, monotonic() - started)

    async def _ask(self, session: ReplaySession, ask: Ask) -> None:
        async with self._slots:
            scored = await session.ask(ask.question, ask.backend, ask.model)
        self._progress.answered(ask.backend, scored.score.outcome)

    def _remaining(self, conversation: Conversation) -> Remaining:
        """What is left of a conversation; what an earlier attempt left half done is taken back first."""
        answers, closed = self._recorded(conversation)
        asks: dict[str, list[Ask]] = defaultdict(list)
        for question in conversation.questions:
            for backend in self._assembly.backend_names:
                for model in self._assembly.models_of(backend):
                    answer = answers.get((backend, model, question.id))
                    if answer is None or answer.received is None:
                        asks[backend].append(Ask(question, backend, model))
                    else:
                        self._progress.answered(backend, self._scored(question, answer))
                    if answer is not None and answer.received is None:
                        self._recorder.forget_ask(answer.asked)
        backends = tuple(name for name in self._assembly.backend_names if asks[name] or name not in closed)
        if backends:
            self._recorder.forget_ingestion(conversation.id, backends)
        return Remaining(backends, tuple(ask for name in backends for ask in asks[name]))

    def _scored(self, question: Question, answer: Answer) -> Outcome:
        """The outcome of a reply on record; scored now where the earlier attempt ended before it was."""
        if answer.scored is not None:
            return answer.scored.score.outcome
        assert answer.received is not None
        scored = score_answer(question, answer.asked, answer.received.reply)
        self._recorder.record(scored)
        return scored.score.outcome

    def _recorded(self, conversation: Conversation) -> tuple[dict[tuple[str, str, str], Answer], set[str]]:
        reader = self._recorder.reader()
        kinds = (*ASK_KINDS, "conversation_closed")
        events = list(reader.events(self._recorder.run_id, conversation.id, kinds))
        reader.close()
        closed = {event.backend for event in events if isinstance(event, ConversationClosed)}
        timeline = Timeline(conversation, events)
        return {
            (answer.asked.backend, answer.asked.model, answer.asked.question_id): answer
            for answer in timeline.answers()
        }, closed
