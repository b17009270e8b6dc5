"""LoCoMo-MC10: multiple-choice questions over LoCoMo's conversations, one row a question.

Every row repeats its whole conversation. Rows are read one at a time, and of equal haystacks one copy is kept, so
that memory grows with the conversations and not with the file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from app.conversations.faults import Gathering, Place, TextOrInteger, shown, validated
from app.conversations.haystack import Haystack, PublishedHaystack, read_haystack
from app.conversations.listener import Listener
from app.conversations.locomo_categories import ADVERSARIAL, BY_MC10_NAME
from app.conversations.locomo_evidence import EvidenceIndex, SampleEvidence
from app.conversations.models import Conversation, Question
from app.conversations.normalise import normalised
from app.errors import DatasetError

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
        raise place.at("haystack_sessions").fault("is nested too deeply", "a list of sessions") from None


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
            listener.fault(error)
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
            place.at("haystack_sessions").fault(
                f"is not the haystack of {conversation.first.pointer}, which belongs to the same conversation",
                "one haystack for all questions of a conversation",
            )
        )
    elif row.num_sessions != len(conversation.haystack.sessions):
        gathering.add(
            place.at("num_sessions").fault(
                f"is {row.num_sessions}", f"{len(conversation.haystack.sessions)}, the number of haystack_sessions"
            )
        )
    if row.question_id in conversation.questions:
        gathering.add(place.at("question_id").fault(f"is {shown(row.question_id)} again", "an id of its own"))


def _question(row: PublishedRow, published: SampleEvidence | None, place: Place, listener: Listener) -> Question:
    gathering = Gathering()
    _check_choices(row, place, gathering)
    category = BY_MC10_NAME.get(row.question_type)
    if category is None:
        gathering.add(place.at("question_type").fault(f"is {shown(row.question_type)}", ", ".join(BY_MC10_NAME)))
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
            place.at("choices").fault(f"has {len(row.choices)} options", f"{row.num_choices} (num_choices)")
        )
    if row.correct_choice_index >= len(row.choices):
        one_of = f"0 to {len(row.choices) - 1}, one of the choices" if row.choices else "one of the choices"
        gathering.add(place.at("correct_choice_index").fault(f"is {row.correct_choice_index}", one_of))
    elif row.choices[row.correct_choice_index] != row.answer:
        gathering.add(
            place.at("answer").fault(
                f"is {shown(row.answer)}",
                f"{shown(row.choices[row.correct_choice_index])}, the choice at correct_choice_index",
            )
        )
