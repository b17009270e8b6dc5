"""What is left to do of a run that was begun before: who must hear a conversation, and what to ask."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memreplay.conversations.models import Conversation, Question
from memreplay.engine.answers import score_answer
from memreplay.engine.events import ASK_KINDS, AnswerScored, ConversationClosed, ReplyReceived
from memreplay.engine.remote.client import is_agent, models_asked_of
from memreplay.engine.session import Ask
from memreplay.recording.writer import RunRecorder
from memreplay.timeline.timeline import Answer, Timeline


@dataclass(frozen=True)
class Asking:
    """What is asked of each question. ``along`` are backends that are asked without having been chosen."""

    backends: tuple[str, ...]
    along: tuple[str, ...]
    models: tuple[str, ...]
    repeats: int
    retry_errors: bool

    @property
    def answerers(self) -> tuple[str, ...]:
        """Who answers: models, and agents by their addresses."""
        return (*self.models, *filter(is_agent, self.backends))

    def asks_of(self, conversation: Conversation) -> list[Ask]:
        """Every ask, in the order of asking: what shares a context (full context, repeats) stands together."""
        return [
            Ask(question, backend, model, repeat)
            for backend in (*self.backends, *self.along)
            for question in conversation.questions
            for model in models_asked_of(backend, self.models)
            for repeat in range(self.repeats if backend in self.backends else 1)
        ]


@dataclass(frozen=True)
class Remaining:
    """``backends`` take the conversation in (again); ``asks`` are put; ``answered`` is done already."""

    backends: tuple[str, ...]
    asks: tuple[Ask, ...]
    answered: tuple[tuple[ReplyReceived, AnswerScored], ...]


def remaining_work(conversation: Conversation, recorder: RunRecorder, asking: Asking) -> Remaining:
    """What is left of a conversation. What an earlier attempt left half done is taken back from the recording."""
    answers, closed = _recorded(conversation, recorder)
    left: list[Ask] = []
    answered: list[tuple[ReplyReceived, AnswerScored]] = []
    unwanted: list[Answer] = []
    for ask in asking.asks_of(conversation):
        answer = answers.get((ask.backend, ask.model, ask.question.id, ask.repeat))
        if answer is not None and answer.received is not None and not _again(answer.received, asking):
            answered.append((answer.received, _scored(ask.question, answer, answer.received, recorder)))
            continue
        left.append(ask)
        if answer is not None:
            unwanted.append(answer)
    recorder.forget_asks(conversation.id, [answer.asked for answer in unwanted])
    asked_of = {ask.backend for ask in left}
    backends = tuple(name for name in asking.backends if name in asked_of or name not in closed)
    if backends:
        recorder.forget_ingestion(conversation.id, backends)
    return Remaining(backends, tuple(left), tuple(answered))


def _again(received: ReplyReceived, asking: Asking) -> bool:
    return asking.retry_errors and received.reply.error is not None


def _scored(question: Question, answer: Answer, received: ReplyReceived, recorder: RunRecorder) -> AnswerScored:
    """The score of a reply on record; scored now where the earlier attempt ended before it was."""
    if answer.scored is not None:
        return answer.scored
    scored = score_answer(question, answer.asked, received.reply)
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
