"""Convert a conversation to the TestConversation format, and generate the JSON Schema of that format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memreplay.conversations.formats.test_conversation import (
    BANDS,
    MULTIPLE_CHOICE_SUFFIX,
    UNTYPED,
    bands_of,
    derived_evidence,
    location_in,
    turn_id_in,
)
from memreplay.conversations.formats.test_conversation_fields import ADVERSARIAL, QUESTION_TYPES, TestConversation
from memreplay.conversations.models import (
    NOT_ANSWERABLE,
    Conversation,
    InfoLocation,
    Question,
    Role,
    Salience,
    Turn,
)
from memreplay.text import normalised

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def conversation_schema() -> dict[str, Any]:
    """The schema, with the field names of the JSON."""
    return {"$schema": _DIALECT, **TestConversation.model_json_schema(by_alias=True)}


def conversation_schema_text() -> str:
    """The text of ``conversation.schema.json``."""
    return json.dumps(conversation_schema(), indent=2, ensure_ascii=False) + "\n"


_ASSUMED_SALIENCE: Salience = "medium"
_ASSUMED_LOCATION: InfoLocation = "recent"
_BLANK = " "
"""Replaces empty text, which the format forbids."""


def as_test_conversation(conversation: Conversation) -> dict[str, Any]:
    """The conversation as a JSON object of the format, without unset fields: in sessions if all have a date."""
    return _Export.of(conversation).as_json()


def as_test_conversation_text(conversation: Conversation) -> str:
    """The text of a TestConversation file."""
    return json.dumps(as_test_conversation(conversation), ensure_ascii=False, indent=2) + "\n"


def lost_in_export(conversation: Conversation) -> tuple[str, ...]:
    """What the format cannot represent of this conversation, one phrase each."""
    return tuple(_Export.of(conversation).lost())


@dataclass(frozen=True)
class AskedOnce:
    """A question of the file: how it is asked as recall, and as multiple choice. At least one is set."""

    recall: Question | None
    choice: Question | None

    @property
    def question(self) -> Question:
        found = self.recall or self.choice
        assert found is not None
        return found

    @property
    def answer(self) -> str:
        choice = self.choice
        if self.question.abstain:
            return NOT_ANSWERABLE
        if choice is not None and choice.correct_index is not None:
            return choice.choices[choice.correct_index]
        return self.question.expected or _BLANK

    @property
    def options(self) -> list[str] | None:
        """The options, if the format accepts them: all different, with the answer among them."""
        options = list(self.choice.choices) if self.choice else []
        different = len({normalised(option) or option for option in options}) == len(options) > 1
        return options if different and all(options) and self.answer in options else None


@dataclass(frozen=True)
class _Export:
    """A conversation on its way into the format. ``ids`` are the ids of its turns there, by their ids here."""

    conversation: Conversation
    asked: tuple[AskedOnce, ...]
    dated: bool
    speakers: Mapping[Role, str] | None
    ids: Mapping[str, str]
    left_out: int

    @classmethod
    def of(cls, written: Conversation) -> _Export:
        said = tuple(turn for turn in written.turns if turn.role != "other")
        conversation = written.model_copy(update={"turns": said})
        said_in = {turn.session for turn in conversation.turns}
        dated = all(session.date for session in conversation.sessions if session.number in said_in)
        left_out = len(written.turns) - len(said)
        pairs, speakers = asked_once(conversation), speakers_of(conversation)
        ids = ids_in_sessions(conversation) if dated else _numbers(conversation)
        return cls(conversation, pairs, dated, speakers, ids, left_out)

    def as_json(self) -> dict[str, Any]:
        conversation = self.conversation
        return {
            "id": conversation.id,
            **({"language": conversation.language} if conversation.language else {}),
            **({"tags": list(conversation.tags)} if conversation.tags else {}),
            **({"speakers": dict(self.speakers)} if self.speakers else {}),
            **({"sessions": list(self._sessions())} if self.dated else {"turns": self._turns(conversation.turns)}),
            "recallQuestions": [self._question(asked) for asked in self.asked],
        }

    def lost(self) -> Iterator[str]:
        sessions = self.conversation.sessions
        if self.left_out:
            yield f"{self.left_out} turns that nobody says, such as tool calls"
        if not self.dated:
            if len(sessions) > 1:
                yield f"the boundaries of {len(sessions)} sessions"
            if any(session.date for session in sessions):
                yield "the dates of the sessions"
            if any(session.summary for session in sessions):
                yield "the summaries of the sessions"
            if any(asked.question.salience is None for asked in self.asked):
                yield f"that the salience of questions is unknown, which is written as {_ASSUMED_SALIENCE}"
            if any(asked.question.info_location is None and not asked.question.evidence for asked in self.asked):
                yield f"the location of answers without evidence, which is written as {_ASSUMED_LOCATION}"
        if any(_foreign_type(asked.question) for asked in self.asked):
            yield "the question types"
        added = sum(asked.recall is None for asked in self.asked)
        if added:
            yield f"that {added} multiple-choice questions are not also asked without their options"
        unfit = sum(asked.choice is not None and asked.options is None for asked in self.asked)
        if unfit:
            yield f"the options of {unfit} multiple-choice questions, which repeat one or lack the answer"
        if any(before != after for before, after in self.ids.items()):
            yield "the ids of the turns"

    def _sessions(self) -> Iterator[dict[str, Any]]:
        for session in self.conversation.sessions:
            turns = [turn for turn in self.conversation.turns if turn.session == session.number]
            if turns and session.date is not None:
                yield {
                    "date": _written_date(session.date),
                    **({"summary": session.summary} if session.summary else {}),
                    "turns": self._turns(turns),
                }

    def _turns(self, turns: Sequence[Turn]) -> list[dict[str, Any]]:
        return [_turn(turn, with_speaker=self.speakers is None) for turn in turns]

    def _question(self, asked: AskedOnce) -> dict[str, Any]:
        question = asked.question
        derived = self._derived_location(question)
        salience: Salience | None = question.salience or (None if self.dated else _ASSUMED_SALIENCE)
        location = question.info_location or derived or _ASSUMED_LOCATION
        evidence = self._evidence(question, location)
        fields: dict[str, Any] = {
            "question": question.text or _BLANK,
            "expectedAnswer": asked.answer,
            "expectedEntities": list(question.expected_entities),
            "infoLocation": None if self.dated and location == (derived or location) else location,
            "salienceLevel": salience,
            "type": ADVERSARIAL if question.abstain else question.type if question.type in QUESTION_TYPES else None,
            "evidence": evidence or None,
            "options": asked.options,
            "supersedes": list(question.supersedes) or None,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def _evidence(self, question: Question, location: InfoLocation) -> list[str] | None:
        """The evidence, where it would not be derived; a dated history names all that it has."""
        entities = question.expected_entities or (question.expected,)
        bands = bands_of(self.conversation) if self.dated else BANDS
        where = None if self.dated and question.info_location is None else location
        is_derived = question.evidence == derived_evidence(self.conversation.turns, where, entities, bands)
        if is_derived and not (self.dated and question.evidence):
            return None
        return [self.ids[turn_id] for turn_id in question.evidence]

    def _derived_location(self, question: Question) -> InfoLocation | None:
        numbers = [self.conversation.turns_by_id[turn_id].number for turn_id in question.evidence]
        bands = bands_of(self.conversation) if self.dated else BANDS
        return location_in(bands, max(numbers)) if numbers else None


def asked_once(conversation: Conversation) -> tuple[AskedOnce, ...]:
    """The questions, each with its multiple-choice form if there are both."""
    twins = {question.id: question for question in conversation.questions if question.kind == "choice"}
    asked: list[AskedOnce] = []
    for question in conversation.questions:
        if question.kind == "recall":
            asked.append(AskedOnce(question, twins.pop(question.id + MULTIPLE_CHOICE_SUFFIX, None)))
        elif question.id in twins:
            asked.append(AskedOnce(None, twins.pop(question.id)))
    return tuple(asked)


def speakers_of(conversation: Conversation) -> dict[Role, str] | None:
    """The name of each side, if each has one and only one."""
    names: dict[Role, set[str | None]] = {"user": set(), "assistant": set()}
    for turn in conversation.turns:
        if turn.role != "other":
            names[turn.role].add(turn.speaker)
    only = {role: next(iter(found)) for role, found in names.items() if len(found) == 1}
    named = {role: name for role, name in only.items() if name}
    return named if len(named) == len(names) else None


def _numbers(conversation: Conversation) -> dict[str, str]:
    return {turn.id: str(number) for number, turn in enumerate(conversation.turns, start=1)}


def ids_in_sessions(conversation: Conversation) -> dict[str, str]:
    """``D2:7`` for turn 7 of session 2, by the ids of the turns. Only what somebody says is counted."""
    ids: dict[str, str] = {}
    numbers: dict[int, int] = {}
    places: Counter[int] = Counter()
    for turn in conversation.turns:
        if turn.role != "other":
            places[turn.session] += 1
            ids[turn.id] = turn_id_in(numbers.setdefault(turn.session, len(numbers) + 1), places[turn.session])
    return ids


def _foreign_type(question: Question) -> bool:
    own = {*QUESTION_TYPES, question.info_location, UNTYPED}
    return question.type not in own or question.other_type is not None


def _written_date(date: datetime) -> str:
    return date.isoformat(timespec="auto" if date.second or date.microsecond else "minutes")


def _turn(turn: Turn, with_speaker: bool) -> dict[str, Any]:
    text = f"{turn.speaker}: {turn.text}" if turn.speaker and with_speaker else turn.text
    written: dict[str, Any] = {"role": turn.role, "content": text or _BLANK}
    mark = turn.key_info
    if mark is not None:
        metadata = {
            "containsKeyInfo": mark.contains_key_info,
            "keyInfoType": mark.key_info_type,
            "salienceLevel": mark.salience,
        }
        written["metadata"] = {name: value for name, value in metadata.items() if value is not None}
    return written
