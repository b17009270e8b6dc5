"""Convert a conversation to the TestConversation format, and generate the JSON Schema of that format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from memreplay.conversations.formats.test_conversation import BANDS, TestConversation
from memreplay.conversations.models import Conversation, InfoLocation, KeyInfo, Question, Salience, Turn

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def conversation_schema() -> dict[str, Any]:
    """The schema, with the field names of the JSON."""
    return {"$schema": _DIALECT, **TestConversation.model_json_schema(by_alias=True)}


def conversation_schema_text() -> str:
    """The text of ``conversation.schema.json``."""
    return json.dumps(conversation_schema(), indent=2, ensure_ascii=False) + "\n"


_ASSUMED_SALIENCE: Salience = "medium"
_ASSUMED_LOCATION: InfoLocation = "recent"
_MARK_OF_EVIDENCE = KeyInfo(contains_key_info=True, key_info_type="fact", salience=_ASSUMED_SALIENCE)
_BLANK = " "
"""Replaces empty text, which the format forbids."""


def as_test_conversation(conversation: Conversation) -> dict[str, Any]:
    """The conversation as a JSON object of the format, without unset fields."""
    questions = _kept(conversation)
    marked = any(turn.key_info is not None for turn in conversation.turns)
    evidence = set() if marked else {turn for question in questions for turn in question.evidence}
    return {
        "id": conversation.id,
        **({"language": conversation.language} if conversation.language else {}),
        **({"tags": list(conversation.tags)} if conversation.tags else {}),
        "turns": [
            _turn(turn, _MARK_OF_EVIDENCE if turn.id in evidence else turn.key_info) for turn in conversation.turns
        ],
        "recallQuestions": [_question(question, conversation) for question in questions],
    }


def as_test_conversation_text(conversation: Conversation) -> str:
    """The text of a TestConversation file."""
    return json.dumps(as_test_conversation(conversation), ensure_ascii=False, indent=2) + "\n"


def lost_in_export(conversation: Conversation) -> tuple[str, ...]:
    """What the format cannot represent of this conversation, one phrase each."""
    return tuple(_lost(conversation))


def _lost(conversation: Conversation) -> Iterator[str]:
    questions, sessions = _kept(conversation), conversation.sessions
    abstaining = len(conversation.questions) - len(questions)
    if abstaining:
        yield f"{abstaining} questions whose correct answer is that it was never said"
    choices = sum(question.kind == "choice" for question in questions)
    if choices:
        yield f"the options of {choices} multiple-choice questions, which become recall questions"
    if len(sessions) > 1:
        yield f"the boundaries of {len(sessions)} sessions"
    if any(session.date for session in sessions):
        yield "the dates of the sessions"
    if any(session.summary for session in sessions):
        yield "the summaries of the sessions"
    if any(question.info_location is None for question in questions):
        yield f"the question types; their salience is unknown and written as {_ASSUMED_SALIENCE}"
    if any(question.info_location is None and not question.evidence for question in questions):
        yield f"the location of answers without evidence, which is written as {_ASSUMED_LOCATION}"
    if any(turn.id != str(turn.number) for turn in conversation.turns):
        yield "the ids of the turns"


def _kept(conversation: Conversation) -> tuple[Question, ...]:
    return tuple(question for question in conversation.questions if not question.abstain)


def _turn(turn: Turn, mark: KeyInfo | None) -> dict[str, Any]:
    text = f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text
    written: dict[str, Any] = {"role": turn.role, "content": text or _BLANK}
    if mark is not None:
        metadata = {
            "containsKeyInfo": mark.contains_key_info,
            "keyInfoType": mark.key_info_type,
            "salienceLevel": mark.salience,
        }
        written["metadata"] = {name: value for name, value in metadata.items() if value is not None}
    return written


def _question(question: Question, conversation: Conversation) -> dict[str, Any]:
    return {
        "question": question.text,
        "expectedAnswer": question.expected or _BLANK,
        "expectedEntities": list(question.expected_entities),
        "infoLocation": question.info_location or _location(question, conversation),
        "salienceLevel": question.salience or _ASSUMED_SALIENCE,
    }


def _location(question: Question, conversation: Conversation) -> InfoLocation:
    numbers = [conversation.turns_by_id[turn].number for turn in question.evidence]
    if not numbers:
        return _ASSUMED_LOCATION
    return next(location for location, band in BANDS.items() if max(numbers) in band)
