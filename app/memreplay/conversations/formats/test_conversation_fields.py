"""The fields of a TestConversation file, camelCase in JSON and snake_case here.

The specification's fields are ``id``, ``turns`` and ``recallQuestions``; the others are ours, and optional.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from memreplay.conversations.models import LONGEST_TURN, InfoLocation, KeyInfoType, Role, Salience

QuestionType = Literal[
    "single_fact", "multi_session", "temporal", "update", "instruction", "assistant_said", "adversarial"
]
QUESTION_TYPES: tuple[str, ...] = get_args(QuestionType)
ADVERSARIAL: QuestionType = "adversarial"

Text = Annotated[str, Field(min_length=1)]


def _session_date(written: object) -> datetime:
    if isinstance(written, str):
        try:
            date = datetime.fromisoformat(written)
        except ValueError:
            pass
        else:
            if date.tzinfo is None:
                return date
    raise PydanticCustomError("session_date", 'a date such as "2025-01-14T19:05", without a time zone')


SessionDate = Annotated[
    datetime, BeforeValidator(_session_date), WithJsonSchema({"type": "string", "examples": ["2025-01-14T19:05"]})
]


class _Field(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel, use_attribute_docstrings=True)


class TurnMetadata(_Field):
    """Marks a turn with testable information. Other turns have no metadata."""

    contains_key_info: bool
    """Always true: omit the metadata on a turn without testable information."""
    key_info_type: KeyInfoType | None = None
    """The kind of information."""
    salience_level: Salience | None = None
    """Significance; low means mentioned in passing."""


class WrittenTurn(_Field):
    """A message."""

    role: Role
    """The user speaks first, then the roles alternate."""
    content: Annotated[Text, Field(max_length=LONGEST_TURN)]
    """The message as plain text."""
    metadata: TurnMetadata | None = None
    """Only on turns with testable information."""


class WrittenSession(_Field):
    """A session of a long history. The id of its turn j is "Di:j" in session i, both counted from 1."""

    date: SessionDate
    """Date and time, ISO 8601 without a time zone. Sessions stand in the order of their dates."""
    summary: Text | None = None
    """Shown to the user, and never given to a memory."""
    turns: Annotated[list[WrittenTurn], Field(min_length=1)]
    """Its messages."""


class Speakers(_Field):
    """The names under which both sides appear in a log, instead of "User" and "AI"."""

    user: Text
    """Name of the speaker of the user's turns."""
    assistant: Text
    """Name of the speaker of the assistant's turns."""


class RecallQuestion(_Field):
    """A question that is asked after the last turn."""

    question: Text
    """Must not give its answer away, nor be answerable by guessing."""
    expected_answer: Text
    """Short, and word for word as in the evidence turn. "Not answerable" in a question of type adversarial."""
    expected_entities: list[Text]
    """Strings that a correct answer must contain; each occurs in the evidence turns."""
    info_location: InfoLocation | None = None
    """Location of the answer (a corrected value: last said): turns 1-4, 5-8, or 9 and later. With sessions it
    is optional and derived: the third of the history with the last evidence turn."""
    salience_level: Salience | None = None
    """The salience of the evidence turn. Optional with sessions."""
    type: QuestionType | None = None
    """The ability that the question tests. The answer to an adversarial one was never said."""
    evidence: Annotated[list[Text], Field(min_length=1)] | None = None
    """Ids of the turns with the answer; of an adversarial question, the turns that suggest a wrong one."""
    options: Annotated[list[Text], Field(min_length=2)] | None = None
    """The question is asked a second time with these options, one of which is the expected answer."""
    supersedes: Annotated[list[Text], Field(min_length=1)] | None = None
    """Values that were right earlier in the conversation and no longer are."""


class TestConversation(_Field):
    """A conversation with an assistant, and recall questions about it. Has either turns or sessions."""

    __test__ = False  # pytest would take the name for a test class

    json_schema: Annotated[str | None, Field(alias="$schema", exclude=True)] = None
    """The path of the JSON Schema, for editors."""
    id: Text
    """category-NN, the file name without its extension."""
    language: Text | None = None
    """BCP 47 tag: en, es, …"""
    tags: list[Text] = []
    """The traps it contains."""
    speakers: Speakers | None = None
    """Names of the speakers."""
    turns: Annotated[list[WrittenTurn], Field(min_length=1)] | None = None
    """12 to 20 messages."""
    sessions: Annotated[list[WrittenSession], Field(min_length=1)] | None = None
    """The dated sessions of a long history."""
    recall_questions: list[RecallQuestion]
    """Without sessions five: two about early turns, two about middle ones, one about recent ones."""
