"""Writes conversations in other formats: chat logs without questions, and LoCoMo's ``locomo10.json``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memreplay.conversations.export import (
    AskedOnce,
    as_test_conversation_text,
    asked_once,
    ids_in_sessions,
    lost_in_export,
    speakers_of,
)
from memreplay.conversations.formats.locomo import ADVERSARIAL, CATEGORIES
from memreplay.conversations.models import Conversation, Question, Role, Turn
from memreplay.errors import UsageError

_NAMES: Mapping[Role, str] = {"user": "User", "assistant": "Assistant"}
_OTHER_NAMES = {"multi_session": 1, "multi-session": 1, "temporal-reasoning": 2}
"""Types of other datasets that LoCoMo has a category for, beside those of the same name."""
_SINGLE_HOP = 4
_BY_NAME = {category.locomo: category.number for category in CATEGORIES} | _OTHER_NAMES


def as_locomo_text(conversations: Sequence[Conversation]) -> str:
    """The text of the file."""
    return json.dumps([_sample(one) for one in conversations], ensure_ascii=False, indent=2) + "\n"


def lost_in_locomo(conversation: Conversation) -> tuple[str, ...]:
    """What the format cannot represent of this conversation, one phrase each."""
    return tuple(_lost_in_sample(conversation))


def _sample(conversation: Conversation) -> dict[str, Any]:
    names = _names(conversation)
    ids = ids_in_sessions(conversation)
    said: dict[str, Any] = {"speaker_a": names["user"], "speaker_b": names["assistant"]}
    summaries: dict[str, str] = {}
    number = 0
    for session in conversation.sessions:
        turns = [
            {"speaker": names[turn.role], "dia_id": ids[turn.id], "text": _text(turn, names)}
            for turn in conversation.turns
            if turn.session == session.number and turn.role != "other"
        ]
        if not turns:
            continue
        number += 1
        if session.date is not None:
            said[f"session_{number}_date_time"] = _date(session.date)
        said[f"session_{number}"] = turns
        if session.summary:
            summaries[f"session_{number}_summary"] = session.summary
    asked = [_question(each, ids) for each in asked_once(conversation)]
    sample = {"sample_id": conversation.id, "conversation": said, "qa": asked}
    return {**sample, "session_summary": summaries} if summaries else sample


def _names(conversation: Conversation) -> Mapping[Role, str]:
    """The names of both sides: LoCoMo tells them apart by their names."""
    named = speakers_of(conversation)
    return named if named is not None and len(set(named.values())) == len(named) else _NAMES


def _text(turn: Turn, names: Mapping[Role, str]) -> str:
    """The message, with the speaker's name where the side has another one."""
    return f"{turn.speaker}: {turn.text}" if turn.speaker not in (None, *names.values()) else turn.text


def _date(date: datetime) -> str:
    return f"{date:%I:%M} {'am' if date.hour < 12 else 'pm'} on {date.day} {date:%B, %Y}".removeprefix("0")


def _question(asked: AskedOnce, ids: Mapping[str, str]) -> dict[str, Any]:
    question = asked.question
    category = _category(question)
    answer = {} if question.abstain else {"answer": asked.answer}
    evidence = [ids[turn] for turn in question.evidence if turn in ids]
    return {"question": question.text or " ", **answer, "evidence": evidence, "category": category}


def _category(question: Question) -> int:
    if question.abstain:
        return ADVERSARIAL.number
    return _BY_NAME.get(question.type, _SINGLE_HOP)


def _lost_in_sample(conversation: Conversation) -> Iterator[str]:
    left_out = sum(turn.role == "other" for turn in conversation.turns)
    if left_out:
        yield f"{left_out} turns that nobody says, such as tool calls"
    asked = asked_once(conversation)
    foreign = sum(not each.question.abstain and each.question.type not in _BY_NAME for each in asked)
    if foreign:
        yield f"the types of {foreign} questions, which are written as single-hop"
    choices = sum(each.choice is not None for each in asked)
    if choices:
        yield f"the options of {choices} multiple-choice questions"
    if any(each.question.supersedes or each.question.expected_entities for each in asked):
        yield "entities and superseded values of questions"
    ids = ids_in_sessions(conversation)
    if any(before != after for before, after in ids.items()):
        yield "the ids of the turns"


_OPENAI = {"user": "user", "assistant": "assistant", "other": "system"}
_SHAREGPT = {"user": "human", "assistant": "gpt", "other": "system"}
_LABELS = {"user": "User", "assistant": "Assistant", "other": "System"}


@dataclass(frozen=True)
class LogFormat:
    """A format that can be written. ``write`` makes the file's text, ``lost`` says what it leaves out."""

    write: Callable[[Sequence[Conversation]], str]
    lost: Callable[[Conversation], Sequence[str]]
    holds_several: bool


def _as_openai(conversations: Sequence[Conversation]) -> str:
    return "".join(
        json.dumps(
            {"messages": [{"role": _OPENAI[turn.role], "content": _said(turn)} for turn in one.turns]},
            ensure_ascii=False,
        )
        + "\n"
        for one in conversations
    )


def _as_sharegpt(conversations: Sequence[Conversation]) -> str:
    written = [
        {
            "id": one.id,
            "conversations": [{"from": _SHAREGPT[turn.role], "value": _said(turn)} for turn in one.turns],
        }
        for one in conversations
    ]
    return json.dumps(written, ensure_ascii=False, indent=2) + "\n"


def _as_text(conversations: Sequence[Conversation]) -> str:
    return "".join(f"{_LABELS[turn.role]}: {_said(turn)}\n" for one in conversations for turn in one.turns)


def _as_test_conversation(conversations: Sequence[Conversation]) -> str:
    return "".join(map(as_test_conversation_text, conversations))


def _said(turn: Turn) -> str:
    """The text, with the speaker's name or the label that the format has no place for."""
    return f"{turn.speaker}: {turn.text}" if turn.speaker and turn.speaker != "System" else turn.text


def _lost_in_log(conversation: Conversation) -> list[str]:
    return list(_losses(conversation))


def _losses(conversation: Conversation) -> Iterator[str]:
    if conversation.questions:
        yield f"{len(conversation.questions)} questions"
    if len(conversation.sessions) > 1:
        yield f"the boundaries of {len(conversation.sessions)} sessions"
    if any(session.date for session in conversation.sessions):
        yield "the dates of the sessions"
    if any(turn.id != str(turn.number) for turn in conversation.turns):
        yield "the ids of the turns"


LOG_FORMATS: Mapping[str, LogFormat] = {
    "test-conversation": LogFormat(_as_test_conversation, lost_in_export, holds_several=False),
    "locomo": LogFormat(as_locomo_text, lost_in_locomo, holds_several=True),
    "openai": LogFormat(_as_openai, _lost_in_log, holds_several=True),
    "sharegpt": LogFormat(_as_sharegpt, _lost_in_log, holds_several=True),
    "text": LogFormat(_as_text, _lost_in_log, holds_several=False),
}
"""The formats of ``datasets convert``, by name."""


def log_format(name: str) -> LogFormat:
    """Raises UsageError for an unknown format."""
    if name not in LOG_FORMATS:
        raise UsageError(f"--to {name}: expected {', '.join(LOG_FORMATS)}")
    return LOG_FORMATS[name]
