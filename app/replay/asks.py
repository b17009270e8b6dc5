"""What was asked of a memory, and how far each ask has come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.replay.events import AnswerScored, QuestionAsked, ReplyReceived


@dataclass(frozen=True)
class AskKey:
    """Which ask an event belongs to."""

    backend: str
    model: str
    question_id: str
    repeat: int
    turn: int
    by_hand: bool


@dataclass
class Answer:
    """One ask as far as it has come: asked, replied, scored."""

    asked: QuestionAsked
    received: ReplyReceived | None = None
    scored: AnswerScored | None = None


class Asks:
    """All asks of a conversation, in the order in which they were asked."""

    def __init__(self) -> None:
        self._answers: dict[AskKey, Answer] = {}

    def take_in(self, event: QuestionAsked | ReplyReceived | AnswerScored) -> None:
        """An ask that begins, or what came of one that has begun."""
        match event:
            case QuestionAsked():
                self._answers[ask_key(event)] = Answer(asked=event)
            case ReplyReceived():
                self._answers[ask_key(event)].received = event
            case AnswerScored():
                self._answers[ask_key(event)].scored = event

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers.values())


def ask_key(event: QuestionAsked | ReplyReceived | AnswerScored) -> AskKey:
    """The ask of an event."""
    return AskKey(event.backend, event.model, event.question_id, event.repeat, event.turn, event.by_hand)
