"""LoCoMo-MC10: multiple-choice questions about LoCoMo's conversations, one row per question.

Every row repeats its whole conversation. Rows are streamed and equal haystacks are stored once, so memory grows
with the number of conversations and not with the file.

The rows name no evidence. It is joined by ``question_id`` from a locomo10 file: the one the user names, else the
``locomo10*.json`` files in the same folder.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from memreplay.conversations.formats.locomo import (
    ADVERSARIAL,
    BY_MC10_NAME,
    EvidenceIndex,
    SampleEvidence,
    count_by_session,
    count_undated,
    evidence_beside,
)
from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import LeftOut
from memreplay.conversations.models import Conversation, Question, Role, Session, Turn, TurnText
from memreplay.conversations.validation_errors import (
    ErrorCollector,
    LoadCallbacks,
    Place,
    TextOrInteger,
    entries,
    shown,
    validated,
)
from memreplay.errors import DatasetError
from memreplay.text import normalised

NAME = "LoCoMo-MC10"
SIGNATURE = 'LoCoMo-MC10 rows (with "choices" and "correct_choice_index")'

_NUMBER_AT_END = re.compile(r"(\d+)$")
_SPEAKER_PREFIX = re.compile(r"\[(?P<name>[^\[\]\n]{1,60})\]: ?")


class PublishedMessage(BaseModel):
    """A message. The name of a named speaker precedes the text: ``[CAROLINE]: …``."""

    model_config = ConfigDict(strict=True)

    role: Role
    content: TurnText


class PublishedHaystack(BaseModel):
    """Parallel lists with an entry per session. Summaries and dates may be absent."""

    model_config = ConfigDict(strict=True)

    haystack_session_ids: list[str]
    haystack_session_summaries: list[str | None] | None = None
    haystack_session_datetimes: list[str | None] | None = None
    haystack_sessions: list[list[PublishedMessage]]


@dataclass(frozen=True)
class Haystack:
    """Sessions sorted by number, and their turns with 1-based numbers as ids."""

    sessions: tuple[Session, ...]
    turns: tuple[Turn, ...]

    @cached_property
    def turns_by_session(self) -> dict[int, int]:
        return count_by_session([turn.session for turn in self.turns])

    @cached_property
    def turns_named_as_in_locomo(self) -> tuple[Turn, ...]:
        """Return the turns with LoCoMo's ids: turn j of session i is ``Di:j``."""
        place_in_session: dict[int, int] = {}
        renamed = []
        for turn in self.turns:
            place_in_session[turn.session] = place_in_session.get(turn.session, 0) + 1
            turn_id = f"D{turn.session}:{place_in_session[turn.session]}"
            renamed.append(turn.model_copy(update={"id": turn_id}))
        return tuple(renamed)


def read_haystack(fields: Mapping[str, Any], place: Place) -> Haystack:
    """Validate the haystack: its lists have the same length, and session numbers are unique."""
    haystack = validated(PublishedHaystack, fields, place)
    _check_lengths(haystack, place)
    errors = ErrorCollector()
    order = _order_by_number(haystack.haystack_session_ids, place, errors)
    sessions: list[Session] = []
    for number, index in order:
        with errors.collecting():
            sessions.append(_session(haystack, number, index, place))
    said = [(number, message) for number, index in order for message in haystack.haystack_sessions[index]]
    if not any(haystack.haystack_sessions):
        errors.add(place.at("haystack_sessions").error("has no turns", "at least one session with a turn"))
    errors.raise_all()
    turns = tuple(_turn(count, number, message) for count, (number, message) in enumerate(said, start=1))
    return Haystack(sessions=tuple(sessions), turns=turns)


def _check_lengths(haystack: PublishedHaystack, place: Place) -> None:
    sessions = len(haystack.haystack_sessions)
    errors = ErrorCollector()
    for name in PublishedHaystack.model_fields:
        listed = getattr(haystack, name)
        if listed is not None and len(listed) != sessions:
            wanted = f"{sessions}, one for each of haystack_sessions"
            errors.add(place.at(name).error(f"has {entries(len(listed))}", wanted))
    errors.raise_all()


def _order_by_number(session_ids: Sequence[str], place: Place, errors: ErrorCollector) -> list[tuple[int, int]]:
    """Session numbers with their indexes in the lists, in numeric order."""
    index_of: dict[int, int] = {}
    for index, session_id in enumerate(session_ids):
        inside = place.at("haystack_session_ids", index)
        number = _NUMBER_AT_END.search(session_id)
        if number is None:
            errors.add(inside.error(f"is {shown(session_id)}", 'an id that ends in a number, such as "session_3"'))
        elif int(number[1]) in index_of:
            errors.add(inside.error(f"is {shown(session_id)} again", "a unique session number"))
        else:
            index_of[int(number[1])] = index
    return sorted(index_of.items())


def _session(haystack: PublishedHaystack, number: int, index: int, place: Place) -> Session:
    summaries, dates = haystack.haystack_session_summaries, haystack.haystack_session_datetimes
    written = dates[index] if dates else None
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
        summary=(summaries[index] or None) if summaries else None,
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
    """Undo the upper case of the rows: CAROLINE is Caroline."""
    return name.title() if name.isupper() else name


DEFAULT_CHOICES = 10

_STRUCTURED = (
    *("correct_choice_index", "num_choices", "choices", "num_sessions"),
    *PublishedHaystack.model_fields,
)

_QUESTION_ID = re.compile(r"(?P<sample>.+)_q\d+")


class PublishedRow(BaseModel):
    """A row. Its haystack is validated once per conversation, not once per row."""

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
    haystack_session_summaries: Any = None
    haystack_session_datetimes: Any = None
    haystack_sessions: Any

    def haystack(self) -> dict[str, Any]:
        """Return the fields of its haystack, not validated."""
        return {name: getattr(self, name) for name in PublishedHaystack.model_fields}

    def haystack_digest(self, place: Place) -> bytes:
        """Return a digest that is equal for equal haystacks."""
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
class _Group:
    """The rows of one conversation. ``first`` is the place of the first row.

    ``turns`` are those of the haystack, with LoCoMo's ids where evidence is joined.
    """

    digest: bytes
    first: Place
    haystack: Haystack
    turns: tuple[Turn, ...]
    evidence: SampleEvidence | None
    questions: dict[str, Question] = field(default_factory=dict)


def detect(file: DatasetFile) -> bool:
    row_fields = {"choices", "correct_choice_index", "num_choices"}
    return not file.fields.isdisjoint(row_fields) and file.fields.isdisjoint({"object", "model"})


def load(
    file: DatasetFile, callbacks: LoadCallbacks, evidence: EvidenceIndex | None = None
) -> Iterator[Conversation]:
    """Yield the conversations in the order of their first rows; rows of a conversation need not be adjacent.

    Warns about questions that non-empty evidence does not cover. Skips an invalid row unless ``callbacks.on_error``
    raises.
    """
    if evidence is None:
        evidence = evidence_beside(file.path, callbacks)
    grouping = _RowGrouping(file.dataset, evidence, callbacks)
    for place, entry in file.values(callbacks, _STRUCTURED):
        try:
            grouping.add(validated(PublishedRow, entry, place), place)
        except DatasetError as error:
            callbacks.on_error(error)
    grouping.undated.report(callbacks.on_warning)
    for key, group in grouping.groups.items():
        yield Conversation(
            id=key,
            dataset=file.dataset,
            sessions=group.haystack.sessions,
            turns=group.turns,
            questions=tuple(group.questions.values()),
        )


class _RowGrouping:
    """Groups rows by conversation."""

    def __init__(self, dataset: str, evidence: EvidenceIndex, callbacks: LoadCallbacks) -> None:
        self.groups: dict[str, _Group] = {}
        self.undated = LeftOut()
        self._id_of_haystack: dict[bytes, str] = {}
        self._haystacks: dict[bytes, Haystack] = {}
        self._invalid_haystacks: set[bytes] = set()
        self._dataset, self._evidence, self._callbacks = dataset, evidence, callbacks

    def add(self, row: PublishedRow, place: Place) -> None:
        """Add the row's question to its conversation. Errors of a haystack are reported once, not once per row."""
        digest = row.haystack_digest(place)
        key = self._key(row, digest)
        errors = ErrorCollector()
        if key not in self.groups and digest not in self._invalid_haystacks:
            with errors.collecting():
                self.groups[key] = self._new_group(key, row, digest, place)
            if errors:
                self._invalid_haystacks.add(digest)
        group = self.groups.get(key)
        if group is not None:
            _check_consistency(row, digest, group, place, errors)
        with errors.collecting():
            question = _question(row, group.evidence if group else None, place, self._callbacks)
        errors.raise_all()
        if group is not None:
            group.questions[row.question_id] = question

    def _key(self, row: PublishedRow, digest: bytes) -> str:
        """Return the conversation's id: what precedes ``_q…`` in the question id, else one per distinct
        haystack.
        """
        sample = _QUESTION_ID.fullmatch(row.question_id)
        if sample:
            return sample["sample"]
        return self._id_of_haystack.setdefault(digest, f"{self._dataset}-{len(self._id_of_haystack) + 1}")

    def _new_group(self, key: str, row: PublishedRow, digest: bytes, place: Place) -> _Group:
        # Conversations of other ids may have the same haystack: all of them share one.
        haystack = self._haystacks.get(digest) or read_haystack(row.haystack(), place)
        self._haystacks[digest] = haystack
        count_undated(haystack.sessions, place.at("haystack_session_datetimes"), self.undated)
        evidence = self._evidence.get(key)
        if self._evidence and evidence is None:
            self._callbacks.on_warning(
                f"{place.path}: {key} is not in the evidence file: its questions have no evidence"
            )
        if evidence is not None and evidence.turns_by_session != haystack.turns_by_session:
            # Its turn ids would name other turns.
            self._callbacks.on_warning(
                f"{place.path}: the sessions of {key} differ from the evidence file's: no evidence is joined"
            )
            evidence = None
        turns = haystack.turns if evidence is None else haystack.turns_named_as_in_locomo
        return _Group(digest=digest, first=place, haystack=haystack, turns=turns, evidence=evidence)


def _check_consistency(
    row: PublishedRow, digest: bytes, group: _Group, place: Place, errors: ErrorCollector
) -> None:
    """Check a row against the earlier rows of its conversation."""
    if group.digest != digest:
        errors.add(
            place.at("haystack_sessions").error(
                f"is not the haystack of {group.first.pointer}, which belongs to the same conversation",
                "one haystack for all questions of a conversation",
            )
        )
    elif row.num_sessions != len(group.haystack.sessions):
        errors.add(
            place.at("num_sessions").error(
                f"is {row.num_sessions}", f"{len(group.haystack.sessions)}, the number of haystack_sessions"
            )
        )
    if row.question_id in group.questions:
        errors.add(place.at("question_id").error(f"is {shown(row.question_id)} again", "a unique id"))


def _question(
    row: PublishedRow, published: SampleEvidence | None, place: Place, callbacks: LoadCallbacks
) -> Question:
    errors = ErrorCollector()
    _check_choices(row, place, errors)
    category = BY_MC10_NAME.get(row.question_type)
    if category is None:
        errors.add(place.at("question_type").error(f"is {shown(row.question_type)}", ", ".join(BY_MC10_NAME)))
    errors.raise_all()
    assert category is not None
    twin = published.questions.get(row.question_id) if published else None
    if published and (twin is None or normalised(twin.text) != normalised(row.question)):
        callbacks.on_warning(
            f"{place.path}: {place.pointer}: {row.question_id} is not in the evidence file, or differs there"
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


def _check_choices(row: PublishedRow, place: Place, errors: ErrorCollector) -> None:
    if len(row.choices) != row.num_choices:
        errors.add(place.at("choices").error(f"has {len(row.choices)} options", f"{row.num_choices} (num_choices)"))
    if row.correct_choice_index >= len(row.choices):
        one_of = f"0 to {len(row.choices) - 1}, one of the choices" if row.choices else "one of the choices"
        errors.add(place.at("correct_choice_index").error(f"is {row.correct_choice_index}", one_of))
    elif row.choices[row.correct_choice_index] != row.answer:
        errors.add(
            place.at("answer").error(
                f"is {shown(row.answer)}",
                f"{shown(row.choices[row.correct_choice_index])}, the choice at correct_choice_index",
            )
        )
