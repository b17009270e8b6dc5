"""TestConversation files: one short conversation with an assistant, and recall questions on it.

camelCase in JSON, snake_case here. Unknown fields are refused, so that a misspelt one is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from memreplay.conversations.json_files import read_json
from memreplay.conversations.models import (
    Conversation,
    InfoLocation,
    KeyInfo,
    KeyInfoType,
    Question,
    Role,
    Salience,
    Session,
    Turn,
)
from memreplay.conversations.validation_errors import Listener, Place, validated
from memreplay.text import occurs_in

BANDS: dict[InfoLocation, range] = {
    "early": range(1, 5),
    "middle": range(5, 9),
    "recent": range(9, 1_000_000_000),
}
"""Turn numbers, 1-based, of each location."""


def derived_evidence(turns: Sequence[Turn], location: InfoLocation, entities: Sequence[str]) -> tuple[str, ...]:
    """Ids of the evidence turns, in order; empty where no key turn of the band holds any entity."""
    held_by_turn: list[tuple[Turn, frozenset[str]]] = []
    for turn in turns:
        if turn.number in BANDS[location] and turn.key_info is not None and turn.key_info.contains_key_info:
            held = frozenset(entity for entity in entities if occurs_in(entity, turn.text))
            held_by_turn.append((turn, held))
    return tuple(turn.id for turn in _latest_minimal_cover(held_by_turn))


def _latest_minimal_cover(held_by_turn: Sequence[tuple[Turn, frozenset[str]]]) -> tuple[Turn, ...]:
    """The fewest turns that hold together all that any of them holds; of equally few, the latest.

    Dynamic programming over the sets of entities held so far, from the last turn to the first: a cover found
    earlier consists of later turns, and only a strictly smaller one replaces it.
    """
    covers: dict[frozenset[str], tuple[Turn, ...]] = {frozenset(): ()}
    for turn, held in reversed(held_by_turn):
        for entities, cover in list(covers.items()):
            together = entities | held
            if together not in covers or len(cover) + 1 < len(covers[together]):
                covers[together] = (turn, *cover)
    return covers[max(covers, key=len)]


Text = Annotated[str, Field(min_length=1)]

_NUMBERED_ID = re.compile(r"(?P<category>.+)-\d+")


class _Field(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel, use_attribute_docstrings=True)


class TurnMetadata(_Field):
    """What an author says of a turn that holds testable information. Other turns have no metadata."""

    contains_key_info: bool
    """Always true: on a turn without testable information the metadata is left out."""
    key_info_type: KeyInfoType | None = None
    """What kind of information it is."""
    salience_level: Salience | None = None
    """How memorable it is: low is what is only told in passing."""


class WrittenTurn(_Field):
    """A message."""

    role: Role
    """The user speaks first, then both in turn."""
    content: Text
    """What was said, as plain text."""
    metadata: TurnMetadata | None = None
    """Only on turns with testable information."""


class RecallQuestion(_Field):
    """A question to be asked after the last turn."""

    question: Text
    """Does not give its answer away, and cannot be answered by guessing."""
    expected_answer: Text
    """Short; stands word for word in the turn that holds it."""
    expected_entities: list[Text]
    """What a right answer must hold; each stands in the turns that hold the answer."""
    info_location: InfoLocation
    """Where the answer was said, of a corrected value last: turns 1-4, 5-8, or 9 and later."""
    salience_level: Salience
    """That of the turn that holds the answer."""


class TestConversation(_Field):
    """A conversation with an assistant, and recall questions on it."""

    __test__ = False  # pytest would take the name for a test class

    json_schema: Annotated[str | None, Field(alias="$schema", exclude=True)] = None
    """Where an editor finds the schema of this file."""
    id: Text
    """category-NN, the file's name without its ending."""
    language: Text | None = None
    """BCP 47 tag: en, es, …"""
    tags: list[Text] = []
    """The traps that it sets."""
    turns: Annotated[list[WrittenTurn], Field(min_length=1)]
    """12 to 20 messages."""
    recall_questions: list[RecallQuestion]
    """Five: two on early turns, two on middle ones, one on recent ones."""


def load_test_conversation(path: Path, dataset: str, listener: Listener) -> Conversation:
    """The conversation in a file. The listener is warned of expected entities that no key turn holds."""
    written = validated(TestConversation, read_json(path), Place(path))
    conversation = conversation_of(written, dataset)
    for index, question in enumerate(conversation.questions):
        if not question.evidence:
            pointer = Place(path).at("recallQuestions", index).pointer
            listener.warn(
                f"{path}: {pointer}: no key turn of its location holds an expected entity: it has no evidence"
            )
    return conversation


def conversation_of(written: TestConversation, dataset: str) -> Conversation:
    """What is written, as it is replayed: turns numbered, evidence derived."""
    turns = turns_of(written.turns)
    category = _NUMBERED_ID.fullmatch(written.id)
    return Conversation(
        id=written.id,
        dataset=dataset,
        sessions=(Session(number=1, id="1"),),
        turns=turns,
        questions=tuple(
            _question(f"{written.id}-q{number}", question, turns, category["category"] if category else None)
            for number, question in enumerate(written.recall_questions, start=1)
        ),
        language=written.language,
        tags=tuple(written.tags),
    )


def turns_of(written: Sequence[WrittenTurn]) -> tuple[Turn, ...]:
    """The turns under their 1-based numbers."""
    return tuple(_turn(number, turn) for number, turn in enumerate(written, start=1))


def _turn(number: int, turn: WrittenTurn) -> Turn:
    metadata = turn.metadata
    return Turn(
        id=str(number),
        number=number,
        session=1,
        role=turn.role,
        speaker=None,
        text=turn.content,
        key_info=metadata
        and KeyInfo(
            contains_key_info=metadata.contains_key_info,
            key_info_type=metadata.key_info_type,
            salience=metadata.salience_level,
        ),
    )


def _question(
    question_id: str, question: RecallQuestion, turns: tuple[Turn, ...], category: str | None
) -> Question:
    entities = question.expected_entities or [question.expected_answer]
    evidence = derived_evidence(turns, question.info_location, entities)
    return Question(
        id=question_id,
        kind="recall",
        type=question.info_location,
        text=question.question,
        expected=question.expected_answer,
        expected_entities=tuple(question.expected_entities),
        info_location=question.info_location,
        salience=question.salience_level,
        category=category,
        evidence=evidence,
        evidence_role="supports" if evidence else None,
    )
