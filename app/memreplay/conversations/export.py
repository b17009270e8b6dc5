"""Convert a conversation to the TestConversation format, and generate the JSON Schema of that format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memreplay.conversations.formats.locomo import ADVERSARIAL as LOCOMO_ADVERSARIAL
from memreplay.conversations.formats.locomo import CATEGORIES
from memreplay.conversations.formats.plain_text import escaped, is_shown_label
from memreplay.conversations.formats.test_conversation import (
    BANDS,
    MULTIPLE_CHOICE_SUFFIX,
    bands_of,
    derived_evidence,
    location_in,
    turn_id_in,
)
from memreplay.conversations.formats.test_conversation_fields import ADVERSARIAL, QUESTION_TYPES, TestConversation
from memreplay.conversations.messages import SYSTEM, TOOL, TOOL_CALL, decoded, parsed_tool_call
from memreplay.conversations.models import (
    NOT_ANSWERABLE,
    UNTYPED,
    Conversation,
    InfoLocation,
    Question,
    Role,
    Salience,
    Turn,
)
from memreplay.errors import UsageError
from memreplay.numbers import counted
from memreplay.text import normalised

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def conversation_schema() -> dict[str, Any]:
    """Return the schema, with the field names of the JSON."""
    return {"$schema": _DIALECT, **TestConversation.model_json_schema(by_alias=True)}


def conversation_schema_text() -> str:
    """Return the text of ``conversation.schema.json``."""
    return json.dumps(conversation_schema(), indent=2, ensure_ascii=False) + "\n"


_ASSUMED_SALIENCE: Salience = "medium"

_ASSUMED_LOCATION: InfoLocation = "recent"

_BLANK = " "
"""Replaces empty text, which the format forbids."""


def as_test_conversation(conversation: Conversation) -> dict[str, Any]:
    """Return the conversation as a JSON object of the format, without unset fields: in sessions if all have a
    date.
    """
    return _Export.of(conversation).as_json()


def as_test_conversation_text(conversation: Conversation) -> str:
    """Return the text of a TestConversation file."""
    return json.dumps(as_test_conversation(conversation), ensure_ascii=False, indent=2) + "\n"


def lost_in_export(conversation: Conversation) -> tuple[str, ...]:
    """Return what the format cannot represent of this conversation, one phrase each."""
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
        """Return the options, if the format accepts them: all different, with the answer among them."""
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
        if not conversation.turns:
            raise UsageError(
                f"{conversation.id} has no message of a user or an assistant; the format has no other turns"
            )
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
            yield f"{counted(self.left_out, 'turn')} that nobody says, such as tool calls"
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
        """Return the evidence, where it would not be derived; a dated history names all that it has."""
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
    """Return the questions, each with its multiple-choice form if there are both."""
    twins = {question.id: question for question in conversation.questions if question.kind == "choice"}
    asked: list[AskedOnce] = []
    for question in conversation.questions:
        if question.kind == "recall":
            asked.append(AskedOnce(question, twins.pop(question.id + MULTIPLE_CHOICE_SUFFIX, None)))
        elif question.id in twins:
            asked.append(AskedOnce(None, twins.pop(question.id)))
    return tuple(asked)


def speakers_of(conversation: Conversation) -> dict[Role, str] | None:
    """Return the name of each side, if each has one and only one."""
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


_NAMES: Mapping[Role, str] = {"user": "User", "assistant": "Assistant"}

_OTHER_NAMES = {"multi_session": 1, "multi-session": 1, "temporal-reasoning": 2}
"""Types of other datasets that LoCoMo has a category for, beside those of the same name."""

_SINGLE_HOP = 4

_BY_NAME = {category.locomo: category.number for category in CATEGORIES} | _OTHER_NAMES


def as_locomo_text(conversations: Sequence[Conversation]) -> str:
    """Return the text of the file."""
    return json.dumps([_sample(one) for one in conversations], ensure_ascii=False, indent=2) + "\n"


def lost_in_locomo(conversation: Conversation) -> tuple[str, ...]:
    """Return what the format cannot represent of this conversation, one phrase each."""
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
    """Return the names of both sides: LoCoMo tells them apart by their names."""
    named = speakers_of(conversation)
    return named if named is not None and len(set(named.values())) == len(named) else _NAMES


def _text(turn: Turn, names: Mapping[Role, str]) -> str:
    """Return the message, with the speaker's name where the side has another one."""
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
        return LOCOMO_ADVERSARIAL.number
    return _BY_NAME.get(question.type, _SINGLE_HOP)


def _lost_in_sample(conversation: Conversation) -> Iterator[str]:
    left_out = sum(turn.role == "other" for turn in conversation.turns)
    if left_out:
        yield f"{counted(left_out, 'turn')} that nobody says, such as tool calls"
    asked = asked_once(conversation)
    foreign = sum(not each.question.abstain and each.question.type not in _BY_NAME for each in asked)
    if foreign:
        yield f"the types of {counted(foreign, 'question')}, which are written as single-hop"
    choices = sum(each.choice is not None for each in asked)
    if choices:
        yield f"the options of {choices} multiple-choice questions"
    if any(each.question.supersedes or each.question.expected_entities for each in asked):
        yield "entities and superseded values of questions"
    ids = ids_in_sessions(conversation)
    if any(before != after for before, after in ids.items()):
        yield "the ids of the turns"


_OPENAI = {"user": "user", "assistant": "assistant"}

_SHAREGPT = {"user": "human", "assistant": "gpt"}

_LABELS = {"user": "User", "assistant": "Assistant", "other": "System"}


@dataclass(frozen=True)
class LogFormat:
    """A format that can be written. ``write`` makes the file's text, ``lost`` says what it leaves out."""

    write: Callable[[Sequence[Conversation]], str]
    lost: Callable[[Conversation], Sequence[str]]
    holds_several: bool


def _as_openai(conversations: Sequence[Conversation]) -> str:
    return "".join(
        json.dumps({"messages": list(_openai_messages(one))}, ensure_ascii=False) + "\n" for one in conversations
    )


def _openai_messages(conversation: Conversation) -> Iterator[dict[str, Any]]:
    """Yield the messages, tool calls and results as such: a result belongs to the earliest call without one."""
    waiting: list[str] = []
    calls = 0
    for turn in conversation.turns:
        call = _call_of(turn)
        if call is not None:
            calls += 1
            waiting.append(f"call_{calls}")
            function = {"name": call[0], "arguments": call[1]}
            one = {"id": waiting[-1], "type": "function", "function": function}
            yield {"role": "assistant", "content": None, "tool_calls": [one]}
        elif _is_result(turn) and waiting:
            yield {"role": "tool", "tool_call_id": waiting.pop(0), "content": turn.text}
        elif turn.role in _OPENAI:
            yield {"role": _OPENAI[turn.role], "content": _said(turn)}
        elif turn.speaker == SYSTEM:
            yield {"role": "system", "content": turn.text}


def _as_sharegpt(conversations: Sequence[Conversation]) -> str:
    written = [{"id": one.id, "conversations": list(_sharegpt_messages(one))} for one in conversations]
    return json.dumps(written, ensure_ascii=False, indent=2) + "\n"


def _sharegpt_messages(conversation: Conversation) -> Iterator[dict[str, str]]:
    for turn in conversation.turns:
        call = _call_of(turn)
        if call is not None:
            written = json.dumps({"name": call[0], "arguments": decoded(call[1])}, ensure_ascii=False)
            yield {"from": "function_call", "value": written}
        elif _is_result(turn):
            yield {"from": "observation", "value": turn.text}
        elif turn.role in _SHAREGPT:
            yield {"from": _SHAREGPT[turn.role], "value": _said(turn)}
        elif turn.speaker == SYSTEM:
            yield {"from": "system", "value": turn.text}


def _call_of(turn: Turn) -> tuple[str, str] | None:
    return parsed_tool_call(turn.text) if turn.role == "other" and turn.speaker == TOOL_CALL else None


def _is_result(turn: Turn) -> bool:
    label = turn.speaker or ""
    return turn.role == "other" and label != TOOL_CALL and label.partition(" ")[0] == TOOL


def _as_text(conversations: Sequence[Conversation]) -> str:
    return "".join(_labelled(turn) for one in conversations for turn in one.turns)


def _labelled(turn: Turn) -> str:
    """Return the turn after its label, with a backslash before lines that would be read as another message."""
    if turn.role == "other" and is_shown_label(turn.speaker or ""):
        label, text = turn.speaker, turn.text
    else:
        label, text = _LABELS[turn.role], _said(turn)
    return f"{label}: {escaped(text)}\n"


def _as_test_conversation(conversations: Sequence[Conversation]) -> str:
    return "".join(map(as_test_conversation_text, conversations))


def _said(turn: Turn) -> str:
    """Return the text, with the speaker's name or the label that the format has no place for."""
    return f"{turn.speaker}: {turn.text}" if turn.speaker and turn.speaker != "System" else turn.text


def _lost_in_log(conversation: Conversation) -> list[str]:
    return list(_losses(conversation))


def _lost_in_messages(conversation: Conversation) -> list[str]:
    """Return the losses of formats that know a system prompt, tool calls and results, and nothing else beside."""
    others = [turn for turn in conversation.turns if turn.role == "other" and turn.speaker != SYSTEM]
    left_out = sum(_call_of(turn) is None and not _is_result(turn) for turn in others)
    return [
        *([f"{left_out} thoughts, pictures or other turns that nobody says"] if left_out else []),
        *_losses(conversation),
    ]


def _lost_in_openai(conversation: Conversation) -> list[str]:
    results = sum(map(_is_result, conversation.turns))
    written = sum(message["role"] == "tool" for message in _openai_messages(conversation))
    lost = [f"{counted(results - written, 'result')} without a call"] if results > written else []
    return [*lost, *_lost_in_messages(conversation)]


def _losses(conversation: Conversation) -> Iterator[str]:
    if conversation.questions:
        yield f"{counted(len(conversation.questions), 'question')}"
    if len(conversation.sessions) > 1:
        yield f"the boundaries of {len(conversation.sessions)} sessions"
    if any(session.date for session in conversation.sessions):
        yield "the dates of the sessions"
    if any(turn.id != str(turn.number) for turn in conversation.turns):
        yield "the ids of the turns"


LOG_FORMATS: Mapping[str, LogFormat] = {
    "test-conversation": LogFormat(_as_test_conversation, lost_in_export, holds_several=False),
    "locomo": LogFormat(as_locomo_text, lost_in_locomo, holds_several=True),
    "openai": LogFormat(_as_openai, _lost_in_openai, holds_several=True),
    "sharegpt": LogFormat(_as_sharegpt, _lost_in_messages, holds_several=True),
    "text": LogFormat(_as_text, _lost_in_log, holds_several=False),
}
"""The formats of ``datasets convert``, by name."""


def log_format(name: str) -> LogFormat:
    """Raises UsageError for an unknown format."""
    if name not in LOG_FORMATS:
        raise UsageError(f"--to {name}: expected {', '.join(LOG_FORMATS)}")
    return LOG_FORMATS[name]
