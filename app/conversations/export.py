"""Writing a conversation in the TestConversation format.

What that format holds is kept: a conversation that was read from it and is written again is the same. Of another
format's conversation the speakers' names go before what they say, the turns that hold evidence become key turns, and
an answer's location is that of its last evidence turn. What has no place in the format is named by
:func:`lost_in_export`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from app.conversations.evidence import BANDS
from app.conversations.models import Conversation, InfoLocation, KeyInfo, Question, Salience, Turn
from app.conversations.test_conversation import RecallQuestion, TestConversation, TurnMetadata, WrittenTurn

_ASSUMED_SALIENCE: Salience = "medium"
_ASSUMED_LOCATION: InfoLocation = "recent"
_MARK_OF_EVIDENCE = KeyInfo(contains_key_info=True, key_info_type="fact", salience=_ASSUMED_SALIENCE)


def as_test_conversation(conversation: Conversation) -> TestConversation:
    """The conversation as a file of that format holds it."""
    evidence = (
        set() if _is_marked(conversation) else {turn for asked in _kept(conversation) for turn in asked.evidence}
    )
    return TestConversation(
        id=conversation.id,
        language=conversation.language,
        tags=list(conversation.tags),
        turns=[_turn(turn, turn.id in evidence) for turn in conversation.turns],
        recall_questions=[_question(question, conversation) for question in _kept(conversation)],
    )


def as_json(written: TestConversation) -> str:
    """The text of the file; what is not set is left out."""
    data = written.model_dump(by_alias=True, exclude_none=True)
    if not written.tags:
        del data["tags"]
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def lost_in_export(conversation: Conversation) -> tuple[str, ...]:
    """What the conversation has and the format does not, one phrase each."""
    return tuple(_lost(conversation))


def _lost(conversation: Conversation) -> Iterator[str]:
    abstaining = len(conversation.questions) - len(_kept(conversation))
    if abstaining:
        yield f"{abstaining} questions whose right answer is that it was not said"
    choices = sum(question.kind == "choice" for question in _kept(conversation))
    if choices:
        yield f"the options of {choices} multiple-choice questions, which become recall questions"
    if len(conversation.sessions) > 1:
        yield f"the bounds of {len(conversation.sessions)} sessions"
    if any(session.date for session in conversation.sessions):
        yield "the dates of the sessions"
    if any(session.summary for session in conversation.sessions):
        yield "the summaries of the sessions"
    if any(question.info_location is None for question in _kept(conversation)):
        yield "the question types; salience is unknown and is written as medium"
    if any(question.info_location is None and not question.evidence for question in _kept(conversation)):
        yield f"where an answer without evidence was said, which is written as {_ASSUMED_LOCATION}"
    if any(turn.id != str(turn.number) for turn in conversation.turns):
        yield "the turns' own ids"


def _is_marked(conversation: Conversation) -> bool:
    return any(turn.key_info is not None for turn in conversation.turns)


def _kept(conversation: Conversation) -> tuple[Question, ...]:
    return tuple(question for question in conversation.questions if not question.abstain)


def _turn(turn: Turn, holds_evidence: bool) -> WrittenTurn:
    mark = _MARK_OF_EVIDENCE if holds_evidence else turn.key_info
    text = f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text
    return WrittenTurn(
        role=turn.role,
        content=text or " ",
        metadata=mark
        and TurnMetadata(
            contains_key_info=mark.contains_key_info,
            key_info_type=mark.key_info_type,
            salience_level=mark.salience,
        ),
    )


def _question(question: Question, conversation: Conversation) -> RecallQuestion:
    return RecallQuestion(
        question=question.text,
        expected_answer=question.expected or " ",
        expected_entities=list(question.expected_entities),
        info_location=question.info_location or _location(question, conversation),
        salience_level=question.salience or _ASSUMED_SALIENCE,
    )


def _location(question: Question, conversation: Conversation) -> InfoLocation:
    numbers = [conversation.turns_by_id[turn].number for turn in question.evidence]
    if not numbers:
        return _ASSUMED_LOCATION
    return next(location for location, band in BANDS.items() if max(numbers) in band)
