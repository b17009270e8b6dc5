"""Writes conversations with their questions as LoCoMo's ``locomo10.json``, which many memory benchmarks read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from memreplay.conversations.export import AskedOnce, asked_once, ids_in_sessions, speakers_of
from memreplay.conversations.formats.locomo import ADVERSARIAL, CATEGORIES
from memreplay.conversations.models import Conversation, Question, Role, Turn

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
    return tuple(_losses(conversation))


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


def _losses(conversation: Conversation) -> Iterator[str]:
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
