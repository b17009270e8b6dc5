"""What a resumed run still has to do: which backends must ingest a conversation, and which questions to ask."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memreplay.conversations.models import Conversation, Question
from memreplay.engine.answers import graded_again, is_for_a_judge, score_answer
from memreplay.engine.events import (
    ASK_KINDS,
    AnswerScored,
    AskEvent,
    ConversationClosed,
    QuestionAsked,
    ReplyReceived,
)
from memreplay.engine.session import Ask
from memreplay.grading.failures import is_grading_failure
from memreplay.llm.judging import read_again
from memreplay.recording.writer import RunRecorder
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

    ``lost`` of the asks had been sent when the earlier attempt ended, and their replies were never recorded.
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
    """What is left of a conversation. Half-finished work of an earlier attempt is removed from the recording."""
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
    return asking.retry_errors and received.reply.error is not None


def _needs_judge(question: Question, answer: Answer, received: ReplyReceived, asking: AskPlan) -> bool:
    """Whether the judge was not asked yet, or is to be asked again because it gave no verdict.

    A reply of it that we failed to read is read again instead.
    """
    if not is_for_a_judge(question, received.reply):
        return False
    said = None if answer.judgement is None else read_again(answer.judgement)
    return said is None or (said.verdict is None and not is_grading_failure(said.problem) and asking.retry_errors)


def _scored(question: Question, answer: Answer, received: ReplyReceived, recorder: RunRecorder) -> AnswerScored:
    """The score of a recorded reply; scored now if the earlier attempt ended before that, or its grading failed."""
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
