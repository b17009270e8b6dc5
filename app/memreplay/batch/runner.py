"""Runs conversations without a screen: ingest once per backend, ask every question, ask nothing twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from memreplay.batch.progress import BatchProgress
from memreplay.conversations.models import Conversation, Question
from memreplay.engine.answers import grade, graded_again, is_for_a_judge, score_answer
from memreplay.engine.events import (
    ASK_KINDS,
    AnswerScored,
    AskEvent,
    ConversationClosed,
    QuestionAsked,
    ReplyReceived,
)
from memreplay.engine.play import EmbeddingAhead, Played, play
from memreplay.engine.session import Ask, ReplaySession
from memreplay.grading.failures import is_grading_failure
from memreplay.llm import AGENT_MODEL
from memreplay.llm.judging import read_again
from memreplay.llm.rate_limiter import Gate, ModelUnavailableError, StoppedError
from memreplay.recording.writer import RunRecorder
from memreplay.runtime.elsewhere import Elsewhere
from memreplay.runtime.run import Run
from memreplay.runtime.work import AskPlan
from memreplay.timeline.timeline import Answer, Timeline


@dataclass(frozen=True)
class Ungraded:
    """A recorded reply that the judge has not graded."""

    question: Question
    asked: QuestionAsked
    received: ReplyReceived


@dataclass(frozen=True)
class RemainingWork:
    """``backends`` must ingest the conversation (again), ``asks`` are unanswered, ``answered`` is recorded.

    ``lost`` of the asks were recorded without a reply: they were under way, or waited to be sent, when the earlier
    attempt ended.
    ``ungraded`` replies are recorded and wait for the judge, which needs no memory.
    """

    backends: tuple[str, ...]
    asks: tuple[Ask, ...]
    answered: tuple[tuple[ReplyReceived, AnswerScored], ...]
    ungraded: tuple[Ungraded, ...] = ()
    lost: int = 0


def remaining_work(
    conversation: Conversation, recorder: RunRecorder, asking: AskPlan, *, has_judge: bool = False
) -> RemainingWork:
    """Return what is left of a conversation. Half-finished work of an earlier attempt is removed from the
    recording.
    """
    answers, closed = _recorded(conversation, recorder)
    left: list[Ask] = []
    answered: list[tuple[Question, Answer, ReplyReceived]] = []
    unwanted: list[Answer] = []
    ungraded: list[Ungraded] = []
    outdated: list[AskEvent] = []
    for ask in asking.asks_of(conversation):
        answer = answers.get((ask.backend, ask.model, ask.question.id, ask.repeat))
        if answer is not None and answer.received is not None and not _retry(answer.received, asking):
            if has_judge and _needs_judge(ask.question, answer, answer.received, asking):
                ungraded.append(Ungraded(ask.question, answer.asked, answer.received))
                outdated += [answer.scored] if answer.scored is not None else []
            else:
                answered.append((ask.question, answer, answer.received))
                if answer.scored is not None and answer.scored.score.problem is not None:
                    outdated.append(answer.scored)
            continue
        left.append(ask)
        if answer is not None:
            unwanted.append(answer)
    recorder.forget_asks(conversation.id, [answer.asked for answer in unwanted])
    recorder.forget_scores(conversation.id, outdated)
    asked_of = {ask.backend for ask in left}
    backends = tuple(name for name in asking.backends if name in asked_of or name not in closed)
    if backends:
        recorder.forget_ingestion(conversation.id, backends)
    lost = sum(answer.received is None for answer in unwanted)
    scored = tuple(
        (received, _scored(question, answer, received, recorder)) for question, answer, received in answered
    )
    return RemainingWork(backends, tuple(left), scored, tuple(ungraded), lost)


def _retry(received: ReplyReceived, asking: AskPlan) -> bool:
    return asking.retry_errors and (received.reply.error is not None or received.reply.refused)


def _needs_judge(question: Question, answer: Answer, received: ReplyReceived, asking: AskPlan) -> bool:
    """Return whether the judge was not asked yet, or is to be asked again because it gave no verdict.

    A reply of it that we failed to read is read again instead.
    """
    if not is_for_a_judge(question, received.reply):
        return False
    said = None if answer.judgement is None else read_again(answer.judgement)
    return said is None or (said.verdict is None and not is_grading_failure(said.problem) and asking.retry_errors)


def _scored(question: Question, answer: Answer, received: ReplyReceived, recorder: RunRecorder) -> AnswerScored:
    """Return the score of a recorded reply; scored now if the earlier attempt ended before that, or its grading
    failed.
    """
    if answer.scored is None:
        scored = score_answer(question, answer.asked, received.reply, answer.judgement)
    else:
        scored = graded_again(question, answer.asked, received.reply, answer.scored, answer.judgement)
    if scored is not answer.scored:
        recorder.record(scored)
    return scored


def _recorded(
    conversation: Conversation, recorder: RunRecorder
) -> tuple[dict[tuple[str, str, str, int], Answer], Collection[str]]:
    reader = recorder.reader()
    kinds: Sequence[str] = (*ASK_KINDS, "conversation_closed")
    events = list(reader.events(recorder.run_id, conversation.id, tuple(kinds)))
    reader.close()
    closed = {
        event.backend for event in events if isinstance(event, ConversationClosed) and event.status == "resolved"
    }
    answers = Timeline(conversation, events).answers()
    return {
        (answer.asked.backend, answer.asked.model, answer.asked.question_id, answer.asked.repeat): answer
        for answer in answers
        if not answer.asked.by_hand
    }, closed


_ASKS_PER_CALL = 2
"""Asks started per parallel call: while one waits for the model, memory is read for the next."""

_MOST_CONVERSATIONS = 32
"""Limit of conversations in memory; only many short ones reach it."""


class BatchRunner:
    """Plays the conversations of a run that has begun.

    They are ingested one by one, in order, and ahead of the asking, so that no model waits for an embedder; with
    workers ``elsewhere``, as many at a time as these have places. Without ``perceive`` the read path of ordinary
    turns is skipped, except for backends whose answers depend on it.
    """

    def __init__(
        self,
        run: Run,
        progress: BatchProgress,
        asking: AskPlan,
        *,
        perceive: bool,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        assert run.recorder is not None
        self._elsewhere = elsewhere
        self._run, self._progress, self._recorder = run, progress, run.recorder
        self._asking, self._perceive = asking, perceive
        self._lanes = {name: self._lane(name) for name in asking.answerers}
        self._judge = run.answer_judge
        self._judging = self._lane(self._judge.name) if self._judge is not None else None
        self._ahead: EmbeddingAhead | None = None
        self._work: dict[str, RemainingWork] = {}
        self._open = 0
        self._ingesting = 0
        self._unstarted: dict[str, Counter[str]] = {}
        self._progressed = asyncio.Event()
        self.stopping = False
        self.asked_again = 0
        """Questions whose replies may have been lost when an earlier attempt at this run was killed."""

    async def run(self) -> None:
        """Do all remaining work, or finish what was started before :meth:`stop`.

        Questions to a model that is given up stay unanswered; other models continue.

        Raises:
            RecordingError: the recording cannot be written.
        """
        # Workers embed what they ingest.
        conversations = self._run.work.conversations
        embedded = conversations if self._elsewhere is None else ()
        self._ahead = EmbeddingAhead(
            embedded, self._asking.backends, self._run.embed, self._will_be_ingested, self._filled_before
        )
        try:
            async with asyncio.TaskGroup() as group:
                for conversation in conversations:
                    await self._wait_until_short_of_asks()
                    if self.stopping or not self._usable_answerers():
                        return
                    await self._start(conversation, group)
                    await self._wait_until(lambda: self._ingesting < self._places)
        finally:
            await self._ahead.end()

    def stop(self) -> None:
        """Start nothing new; calls in progress are awaited, and their replies kept."""
        self.stopping = True
        self._run.rate_limiters.stop()
        for lane in (*self._lanes.values(), *([self._judging] if self._judging is not None else [])):
            lane.close()
        if self._ahead is not None:
            self._ahead.stop()
        if self._elsewhere is not None:
            self._elsewhere.stop()
        self._progressed.set()

    @property
    def _places(self) -> int:
        return 1 if self._elsewhere is None else self._elsewhere.places

    def _will_be_ingested(self, conversation: Conversation) -> bool:
        self._work[conversation.id] = self._remaining(conversation)
        return bool(self._work[conversation.id].backends)

    def _filled_before(self, conversation: Conversation) -> frozenset[str]:
        return frozenset() if self._perceive else self._run.filled_before(conversation)

    def _remaining(self, conversation: Conversation) -> RemainingWork:
        return remaining_work(conversation, self._recorder, self._asking, has_judge=self._judge is not None)

    async def _start(self, conversation: Conversation, group: asyncio.TaskGroup) -> None:
        self._recorder.add_conversation(conversation)
        work = self._work.pop(conversation.id, None) or self._remaining(conversation)
        # An attempt that was not killed awaited the replies of all calls, or said that it did not.
        self.asked_again += work.lost if self._recorder.was_killed else 0
        for received, scored in work.answered:
            self._progress.add_recorded(received, scored)
        for one in work.ungraded:
            group.create_task(self._grade(one))
        if not work.backends and not work.asks:
            return
        self._open += 1
        if work.asks:
            self._unstarted[conversation.id] = Counter(_answerer_of(ask) for ask in work.asks)
        self._ingesting += 1
        group.create_task(self._play(conversation, work))

    async def _play(self, conversation: Conversation, work: RemainingWork) -> None:
        """Play a conversation and ask about it; once more for the memories whose stores lost something."""
        lost = await self._play_once(conversation, work, is_last=False)
        if lost and not self.stopping:
            for sentence in dict.fromkeys(lost.values()):
                self._run.warn(f"{conversation.id}: {sentence}; it is filled again")
            backends = tuple(name for name in work.backends if name in lost)
            self._recorder.forget_ingestion(conversation.id, backends)
            asks = tuple(ask for ask in work.asks if ask.backend in lost)
            if asks:
                self._unstarted[conversation.id] = Counter(map(_answerer_of, asks))
            self._ingesting += 1
            again = RemainingWork(backends, asks, ())
            await self._play_once(conversation, again, is_last=True)
        self._unstarted.pop(conversation.id, None)
        self._open -= 1
        self._progressed.set()

    async def _play_once(self, conversation: Conversation, work: RemainingWork, *, is_last: bool) -> dict[str, str]:
        """Return the memories whose stores lost something, none of whose answers are left; if ``is_last``, they
        are errors.
        """
        session: ReplaySession | None = None
        started = monotonic()
        try:
            played = await self._played_elsewhere(conversation, work)
            session = self._run.start_session(
                conversation,
                self._progress.observe,
                backends=(*work.backends, *self._asking.baselines),
                perceive=self._perceive,
                played=played,
            )
            await self._ingest(conversation, session, played)
            if session.finished:
                self._progress.ingested(conversation.id, monotonic() - started, [*session.kept_until])
        except StoppedError as error:
            # The extractor, the embedder or an agent is given up: no conversation can be ingested without it.
            self._give_up(_INGESTION, error)
            self.stop()
        finally:
            self._ingesting -= 1
            self._progressed.set()
        return {} if session is None else await self._question(session, work.asks, is_last=is_last)

    async def _played_elsewhere(self, conversation: Conversation, work: RemainingWork) -> Played | None:
        """Return what workers did with a conversation, if there are any and they have memories to fill."""
        if self._elsewhere is None or not self._elsewhere.plays(work.backends):
            return None
        run = self._run
        played = await self._elsewhere.play(
            run.settings, run.run_id, conversation, work.backends, work.asks, perceive=self._perceive
        )
        for sentence in played.warnings:
            self._run.warn(sentence)
        return played

    async def _ingest(self, conversation: Conversation, session: ReplaySession, played: Played | None) -> None:
        """Raises StoppedError if a model that a memory needs is given up, here or elsewhere."""
        assert self._ahead is not None
        ahead = self._ahead

        def stopping() -> bool:
            if played is None:
                return self.stopping
            # What workers did is recorded, also of a run that stops.
            return session.position >= played.position and not session.finished

        await play(session, lambda number: ahead.of(conversation, number), stopping)
        await session.keep()
        if played is not None and played.stopped is not None:
            raise played.stopped

    async def _question(self, session: ReplaySession, asks: Sequence[Ask], *, is_last: bool) -> dict[str, str]:
        """Ask, between two checks of the stores. Answers from a store that lost something are taken back."""
        asked = 0
        lost: dict[str, str] = {}
        if session.finished:
            await self._check_stores(session)
            answers = await self._ask_all(session, asks)
            await self._check_stores(session)
            lost = session.lost
            answers = self._without(session, lost, answers)
            if lost and is_last and not self.stopping:
                answers += await self._ask_all(session, [ask for ask in asks if ask.backend in lost])
                lost = {}
            asked = len(answers)
            await session.abandon(lost)
        complete = session.finished and asked == sum(ask.backend not in lost for ask in asks)
        if complete or session.position:
            await session.close("resolved" if complete else "cancelled")
        return lost

    async def _check_stores(self, session: ReplaySession) -> None:
        try:
            await session.check_stores()
        except StoppedError as error:
            self._give_up(_INGESTION, error)
            self.stop()

    async def _ask_all(self, session: ReplaySession, asks: Sequence[Ask]) -> list[AnswerScored]:
        """Return the answers; there is none to what was cut off by the end of the run or of its model."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._ask(session, ask)) for ask in asks]
        return [answer for task in tasks if (answer := task.result()) is not None]

    def _without(
        self, session: ReplaySession, lost: Collection[str], answers: Sequence[AnswerScored]
    ) -> list[AnswerScored]:
        """Take the answers of some memories back."""
        unwanted = [answer for answer in answers if answer.backend in lost]
        for answer in unwanted:
            self._progress.take_back(answer)
        self._recorder.forget_asks(session.conversation.id, unwanted)
        return [answer for answer in answers if answer.backend not in lost]

    async def _grade(self, ungraded: Ungraded) -> None:
        """Let the judge grade a reply that is recorded already."""
        assert self._judging is not None
        emit = self._run.recorded(self._progress.observe_judging)
        received = ungraded.received
        with suppress(StoppedError):
            async with self._judging:
                scored = await grade(ungraded.question, ungraded.asked, received.reply, self._judge, emit)
                self._progress.add_recorded(received, scored)

    async def _ask(self, session: ReplaySession, ask: Ask) -> AnswerScored | None:
        """Return the answer; None if it was cut off by the end of the run or of its model."""
        answerer = _answerer_of(ask)
        try:
            async with self._lanes[answerer]:
                self._on_start(session.conversation.id, answerer)
                return await session.ask(ask.question, ask.backend, ask.model, repeat=ask.repeat)
        except StoppedError as error:
            self._give_up(answerer, error)
            if answerer not in self._usable_answerers():
                self._lanes[answerer].close()
                self._progressed.set()
            return None

    def _give_up(self, name: str, error: StoppedError) -> None:
        """Mark the answerer unavailable unless its rate limiter already did."""
        why = str(error)
        if isinstance(error, ModelUnavailableError) and why not in self._run.rate_limiters.unavailable.values():
            self._run.rate_limiters.of(name).mark_unavailable(why)

    def _usable_answerers(self) -> list[str]:
        """Return the answerers that are not given up."""
        given_up = self._run.rate_limiters.unavailable
        return [name for name in self._lanes if name not in given_up]

    def _on_start(self, conversation: str, answerer: str) -> None:
        left = self._unstarted.get(conversation, Counter())
        left[answerer] -= 1
        if left.total() <= 0:
            self._unstarted.pop(conversation, None)
        self._progressed.set()

    async def _wait_until_short_of_asks(self) -> None:
        await self._wait_until(self._short_of_asks)

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        while not self.stopping and not condition():
            self._progressed.clear()
            await self._progressed.wait()

    def _short_of_asks(self) -> bool:
        """Return whether too few conversations are waiting to keep the models busy while the next is ingested.

        One is asked about while as many are ingested as there are places; more only use memory, unless short.
        """
        if self._open >= _MOST_CONVERSATIONS:
            return False
        asked, waiting = self._usable_answerers(), sum(self._unstarted.values(), Counter[str]())
        whole = sum(any(left[name] for name in asked) for left in self._unstarted.values())
        return whole < self._places + 1 or any(
            waiting[name] < self._run.rate_limiters.of(name).concurrency for name in asked
        )

    def _lane(self, answerer: str) -> Gate:
        """Limits the asks of one model or agent, so that a slow one does not block the others."""
        pace = self._run.rate_limiters.of(answerer)
        return Gate(lambda: _ASKS_PER_CALL * pace.concurrency)


_INGESTION = "memory"
"""Pseudo-model name for calls made by memories."""


def _answerer_of(ask: Ask) -> str:
    return ask.backend if ask.model == AGENT_MODEL else ask.model
