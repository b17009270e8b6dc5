"""LoCoMo-MC10: multiple-choice questions over LoCoMo's conversations, one row a question.

Every row repeats its whole conversation. Rows are read one at a time, and of equal haystacks one copy is kept, so
that memory grows with the conversations and not with the file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from memreplay.conversations.formats.locomo import ADVERSARIAL, BY_MC10_NAME, load_locomo
from memreplay.conversations.models import Conversation, Question, Role, Session, Turn
from memreplay.conversations.validation_errors import (
    Gathering,
    Listener,
    Place,
    TextOrInteger,
    entries,
    shown,
    validated,
)
from memreplay.errors import DatasetError
from memreplay.text import normalised


@dataclass(frozen=True)
class SampleEvidence:
    """The questions of one conversation by id, and how many turns each of its sessions has."""

    questions: dict[str, Question]
    turns_by_session: dict[int, int]

    def is_of(self, turns_by_session: dict[int, int]) -> bool:
        """Whether sessions of these lengths are this conversation: else its turn ids would name other turns."""
        return self.turns_by_session == turns_by_session


EvidenceIndex = dict[str, SampleEvidence]
"""By ``sample_id``."""


def evidence_index(paths: Iterable[Path], listener: Listener) -> EvidenceIndex:
    """The evidence in locomo10 files; of a conversation that several hold, the first file's."""
    index: EvidenceIndex = {}
    for path in paths:
        for conversation in load_locomo(path, path.stem, listener):
            index.setdefault(conversation.id, _sample_evidence(conversation))
    return index


def _sample_evidence(conversation: Conversation) -> SampleEvidence:
    return SampleEvidence(
        questions={question.id: question for question in conversation.questions},
        turns_by_session=count_by_session([turn.session for turn in conversation.turns]),
    )


def count_by_session(sessions_of_turns: Sequence[int]) -> dict[int, int]:
    """How many turns lie in each session, given the session number of every turn."""
    return {number: sessions_of_turns.count(number) for number in dict.fromkeys(sessions_of_turns)}


_NUMBER_AT_END = re.compile(r"(\d+)$")
_SPEAKER_PREFIX = re.compile(r"\[(?P<name>[^\[\]\n]{1,60})\]: ?")


class PublishedMessage(BaseModel):
    """A message. Where the speaker has a name, it stands before the text: ``[CAROLINE]: …``."""

    model_config = ConfigDict(strict=True)

    role: Role
    content: str


class PublishedHaystack(BaseModel):
    """Four lists, one entry a session in each."""

    model_config = ConfigDict(strict=True)

    haystack_session_ids: list[str]
    haystack_session_summaries: list[str | None]
    haystack_session_datetimes: list[str | None]
    haystack_sessions: list[list[PublishedMessage]]


@dataclass(frozen=True)
class Haystack:
    """Sessions in the order of their numbers, and their turns under 1-based numbers as ids."""

    sessions: tuple[Session, ...]
    turns: tuple[Turn, ...]

    def turns_by_session(self) -> dict[int, int]:
        """How many turns lie in each session that has any."""
        return count_by_session([turn.session for turn in self.turns])

    def turns_named_as_in_locomo(self) -> tuple[Turn, ...]:
        """The turns under LoCoMo's ids: the j-th of session i is ``Di:j``."""
        place_in_session: dict[int, int] = {}
        renamed = []
        for turn in self.turns:
            place_in_session[turn.session] = place_in_session.get(turn.session, 0) + 1
            turn_id = f"D{turn.session}:{place_in_session[turn.session]}"
            renamed.append(turn.model_copy(update={"id": turn_id}))
        return tuple(renamed)


def read_haystack(fields: Mapping[str, Any], place: Place) -> Haystack:
    """The haystack, checked: the four lists are of one length, and every session has a number of its own."""
    haystack = validated(PublishedHaystack, fields, place)
    _check_lengths(haystack, place)
    gathering = Gathering()
    order = _order_by_number(haystack.haystack_session_ids, place, gathering)
    sessions: list[Session] = []
    for number, index in order:
        with gathering.going_on():
            sessions.append(_session(haystack, number, index, place))
    said = [(number, message) for number, index in order for message in haystack.haystack_sessions[index]]
    if not any(haystack.haystack_sessions):
        gathering.add(place.at("haystack_sessions").error("has no turns", "at least one session with a turn"))
    gathering.refuse()
    turns = tuple(_turn(count, number, message) for count, (number, message) in enumerate(said, start=1))
    return Haystack(sessions=tuple(sessions), turns=turns)


def _check_lengths(haystack: PublishedHaystack, place: Place) -> None:
    sessions = len(haystack.haystack_sessions)
    gathering = Gathering()
    for name in PublishedHaystack.model_fields:
        length = len(getattr(haystack, name))
        if length != sessions:
            wanted = f"{sessions}, one for each of haystack_sessions"
            gathering.add(place.at(name).error(f"has {entries(length)}", wanted))
    gathering.refuse()


def _order_by_number(session_ids: Sequence[str], place: Place, gathering: Gathering) -> list[tuple[int, int]]:
    """Session numbers with their places in the lists, sorted as numbers."""
    index_of: dict[int, int] = {}
    for index, session_id in enumerate(session_ids):
        inside = place.at("haystack_session_ids", index)
        number = _NUMBER_AT_END.search(session_id)
        if number is None:
            gathering.add(
                inside.error(f"is {shown(session_id)}", 'an id that ends in a number, such as "session_3"')
            )
        elif int(number[1]) in index_of:
            gathering.add(inside.error(f"is {shown(session_id)} again", "a session number of its own"))
        else:
            index_of[int(number[1])] = index
    return sorted(index_of.items())


def _session(haystack: PublishedHaystack, number: int, index: int, place: Place) -> Session:
    written = haystack.haystack_session_datetimes[index]
    try:
        date = datetime.fromisoformat(written) if written else None
    except ValueError:
        raise place.at("haystack_session_datetimes", index).error(
            f"is {shown(written)}", 'a date such as "2023-05-08T13:56:00"'
        ) from None
    return Session(
        number=number,
        id=haystack.haystack_session_ids[index],
        date=date,
        summary=haystack.haystack_session_summaries[index] or None,
    )


def _turn(count: int, session: int, message: PublishedMessage) -> Turn:
    prefix = _SPEAKER_PREFIX.match(message.content)
    return Turn(
        id=str(count),
        number=count,
        session=session,
        role=message.role,
        speaker=_as_written(prefix["name"]) if prefix else None,
        text=message.content[prefix.end() :] if prefix else message.content,
    )


def _as_written(name: str) -> str:
    """The rows shout: CAROLINE is Caroline."""
    return name.title() if name.isupper() else name


DEFAULT_CHOICES = 10

_QUESTION_ID = re.compile(r"(?P<sample>.+)_q\d+")


class PublishedRow(BaseModel):
    """A row. Its haystack is checked once a conversation, not once a row."""

    model_config = ConfigDict(strict=True)

    question_id: Annotated[str, Field(min_length=1)]
    question: Annotated[str, Field(min_length=1)]
    question_type: str
    answer: TextOrInteger
    correct_choice_index: Annotated[int, Field(ge=0)]
    num_choices: int = DEFAULT_CHOICES
    choices: list[TextOrInteger]
    num_sessions: int
    haystack_session_ids: Any
    haystack_session_summaries: Any
    haystack_session_datetimes: Any
    haystack_sessions: Any

    def haystack(self) -> dict[str, Any]:
        """The fields of its haystack, unchecked."""
        return {name: getattr(self, name) for name in PublishedHaystack.model_fields}

    def haystack_digest(self, place: Place) -> bytes:
        """Equal for equal haystacks."""
        try:
            data = orjson.dumps(self.haystack())
        except orjson.JSONEncodeError:  # half a surrogate pair, a number beyond 64 bits, or nested too deeply
            data = _encoded_by_python(self.haystack(), place)
        return hashlib.blake2b(data, digest_size=16).digest()


def _encoded_by_python(haystack: dict[str, Any], place: Place) -> bytes:
    try:
        return json.dumps(haystack).encode()
    except RecursionError:
        raise place.at("haystack_sessions").error("is nested too deeply", "a list of sessions") from None


@dataclass
class _Growing:
    """A conversation whose questions are still being gathered. ``first`` is the place of its first row."""

    digest: bytes
    first: Place
    haystack: Haystack
    evidence: SampleEvidence | None
    questions: dict[str, Question] = field(default_factory=dict)


def load_locomo_mc10(
    rows: Iterable[tuple[Place, Any]], dataset: str, evidence: EvidenceIndex, listener: Listener
) -> Iterator[Conversation]:
    """The conversations of the rows, in the order in which they first appear; rows need not lie together.

    ``evidence`` is joined by ``question_id``; the listener is warned of what it does not cover, unless it is empty.
    A faulty row is told and passed over, if the listener lets it.
    """
    gatherer = _Gatherer(dataset, evidence, listener)
    for place, entry in rows:
        try:
            gatherer.take(validated(PublishedRow, entry, place), place)
        except DatasetError as error:
            listener.error(error)
    for key, conversation in gatherer.growing.items():
        haystack = conversation.haystack
        yield Conversation(
            id=key,
            dataset=dataset,
            sessions=haystack.sessions,
            turns=haystack.turns if conversation.evidence is None else haystack.turns_named_as_in_locomo(),
            questions=tuple(conversation.questions.values()),
        )


class _Gatherer:
    """Puts rows to their conversations."""

    def __init__(self, dataset: str, evidence: EvidenceIndex, listener: Listener) -> None:
        self.growing: dict[str, _Growing] = {}
        self._id_of_haystack: dict[bytes, str] = {}
        self._refused_haystacks: set[bytes] = set()
        self._dataset, self._evidence, self._listener = dataset, evidence, listener

    def take(self, row: PublishedRow, place: Place) -> None:
        """Add the row's question to its conversation. A haystack's faults are told once, not once a row."""
        digest = row.haystack_digest(place)
        key = self._key(row, digest)
        gathering = Gathering()
        if key not in self.growing and digest not in self._refused_haystacks:
            with gathering.going_on():
                self.growing[key] = self._begin(key, row, digest, place)
            if gathering.faults:
                self._refused_haystacks.add(digest)
        conversation = self.growing.get(key)
        if conversation is not None:
            _check_place_among_rows(row, digest, conversation, place, gathering)
        with gathering.going_on():
            question = _question(row, conversation.evidence if conversation else None, place, self._listener)
        gathering.refuse()
        if conversation is not None:
            conversation.questions[row.question_id] = question

    def _key(self, row: PublishedRow, digest: bytes) -> str:
        """The conversation's id: what stands before ``_q…``, else one for each distinct haystack."""
        sample = _QUESTION_ID.fullmatch(row.question_id)
        if sample:
            return sample["sample"]
        return self._id_of_haystack.setdefault(digest, f"{self._dataset}-{len(self._id_of_haystack) + 1}")

    def _begin(self, key: str, row: PublishedRow, digest: bytes, place: Place) -> _Growing:
        haystack = read_haystack(row.haystack(), place)
        published = self._evidence.get(key)
        if self._evidence and published is None:
            self._listener.warn(f"{place.path}: {key} is not in the evidence file: its questions have no evidence")
        if published is not None and not published.is_of(haystack.turns_by_session()):
            self._listener.warn(
                f"{place.path}: the sessions of {key} differ from the evidence file's: no evidence is joined"
            )
            published = None
        return _Growing(digest=digest, first=place, haystack=haystack, evidence=published)


def _check_place_among_rows(
    row: PublishedRow, digest: bytes, conversation: _Growing, place: Place, gathering: Gathering
) -> None:
    if conversation.digest != digest:
        gathering.add(
            place.at("haystack_sessions").error(
                f"is not the haystack of {conversation.first.pointer}, which belongs to the same conversation",
                "one haystack for all questions of a conversation",
            )
        )
    elif row.num_sessions != len(conversation.haystack.sessions):
        gathering.add(
            place.at("num_sessions").error(
                f"is {row.num_sessions}", f"{len(conversation.haystack.sessions)}, the number of haystack_sessions"
            )
        )
    if row.question_id in conversation.questions:
        gathering.add(place.at("question_id").error(f"is {shown(row.question_id)} again", "an id of its own"))


def _question(row: PublishedRow, published: SampleEvidence | None, place: Place, listener: Listener) -> Question:
    gathering = Gathering()
    _check_choices(row, place, gathering)
    category = BY_MC10_NAME.get(row.question_type)
    if category is None:
        gathering.add(place.at("question_type").error(f"is {shown(row.question_type)}", ", ".join(BY_MC10_NAME)))
    gathering.refuse()
    assert category is not None
    twin = published.questions.get(row.question_id) if published else None
    if published and (twin is None or normalised(twin.text) != normalised(row.question)):
        listener.warn(
            f"{place.path}: {place.pointer}: {row.question_id} is another question in the evidence file, or none"
        )
        twin = None
    return Question(
        id=row.question_id,
        kind="choice",
        type=category.mc10,
        other_type=category.locomo,
        text=row.question,
        expected=row.answer,
        choices=tuple(row.choices),
        correct_index=row.correct_choice_index,
        abstain=category is ADVERSARIAL,
        evidence=twin.evidence if twin else (),
        evidence_role=twin.evidence_role if twin else None,
    )


def _check_choices(row: PublishedRow, place: Place, gathering: Gathering) -> None:
    if len(row.choices) != row.num_choices:
        gathering.add(
            place.at("choices").error(f"has {len(row.choices)} options", f"{row.num_choices} (num_choices)")
        )
    if row.correct_choice_index >= len(row.choices):
        one_of = f"0 to {len(row.choices) - 1}, one of the choices" if row.choices else "one of the choices"
        gathering.add(place.at("correct_choice_index").error(f"is {row.correct_choice_index}", one_of))
    elif row.choices[row.correct_choice_index] != row.answer:
        gathering.add(
            place.at("answer").error(
                f"is {shown(row.answer)}",
                f"{shown(row.choices[row.correct_choice_index])}, the choice at correct_choice_index",
            )
        )
