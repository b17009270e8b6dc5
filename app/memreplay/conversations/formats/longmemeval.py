"""LongMemEval (``_s``, ``_m`` and oracle): questions, each over a history of dated sessions of its own.

Source of the format: Wu et al., "LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory",
ICLR 2025. The longest of the files is 2.7 GB: entries are read one at a time, twice. The first reading gathers the
questions, and learns which of them share a haystack; the second makes one conversation of each distinct haystack.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

from memreplay.conversations.json_files import Entries
from memreplay.conversations.models import Conversation, Question, Role, Session, Turn
from memreplay.conversations.validation_errors import (
    Gathering,
    Listener,
    Place,
    TextOrInteger,
    entries,
    pass_over,
    shown,
    validated,
)
from memreplay.errors import DatasetError

QuestionType = Literal[
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "temporal-reasoning",
    "knowledge-update",
    "multi-session",
]

_ABSTENTION_SUFFIX = "_abs"
_DAY_OF_WEEK = re.compile(r"\s*\([^()]*\)\s*")
_DATE_FORMS = ("%Y/%m/%d %H:%M", "%Y/%m/%d")


class _Published(BaseModel):
    model_config = ConfigDict(strict=True)


class PublishedMessage(_Published):
    """A message; ``has_answer`` marks evidence."""

    role: Role
    content: str
    has_answer: bool | None = None


class PublishedEntry(_Published):
    """A question and its haystack: three lists with one entry a session in each."""

    question_id: Annotated[str, Field(min_length=1)]
    question_type: QuestionType
    question: Annotated[str, Field(min_length=1)]
    answer: TextOrInteger
    question_date: str | None = None
    haystack_session_ids: list[str]
    haystack_dates: list[str | None]
    haystack_sessions: list[list[PublishedMessage]]
    answer_session_ids: list[str] = []

    def haystack_digest(self) -> bytes:
        """Equal for equal haystacks; which turns hold the answer belongs to the question."""
        said = [[(message.role, message.content) for message in session] for session in self.haystack_sessions]
        together = orjson.dumps((self.haystack_session_ids, self.haystack_dates, said))
        return hashlib.blake2b(together, digest_size=16).digest()


def load_longmemeval(
    read: Callable[[Listener], Entries], dataset: str, listener: Listener
) -> Iterator[Conversation]:
    """The conversations, one for each distinct haystack, named by the id of its first question.

    ``read`` begins to read the file anew. Sessions come in the order of their dates. Turn ids are 1-based numbers.
    A faulty entry is told and passed over, if the listener lets it.
    """
    questions: dict[bytes, dict[str, Question]] = {}
    haystack_at: dict[Place, bytes] = {}
    places: dict[str, Place] = {}
    for place, data in read(listener):
        try:
            entry = validated(PublishedEntry, data, place)
            question = _question(entry, place, listener)
            if places.setdefault(question.id, place) != place:
                raise place.at("question_id").error(f"is {shown(question.id)} again", "an id of its own")
        except DatasetError as error:
            listener.error(error)
            continue
        digest = entry.haystack_digest()
        haystack_at[place] = digest
        questions.setdefault(digest, {})[question.id] = question
    for place, data in read(replace(listener, error=pass_over)):
        asked = questions.pop(haystack_at[place], None) if place in haystack_at else None
        if asked is None:
            continue
        sessions, turns = _haystack(validated(PublishedEntry, data, place), place)
        yield Conversation(
            id=next(iter(asked)),
            dataset=dataset,
            sessions=tuple(sessions),
            turns=tuple(turn for turn, _ in turns),
            questions=tuple(asked.values()),
        )


def _question(entry: PublishedEntry, place: Place, listener: Listener) -> Question:
    """The question with its evidence. When it is asked is part of its text, since answers depend on it."""
    gathering = Gathering()
    text = entry.question
    with gathering.going_on():
        if entry.question_date:
            asked_at = _date(entry.question_date, place.at("question_date"))
            text = f"{text} (asked on {asked_at:%Y-%m-%d %H:%M})"
    evidence: tuple[str, ...] = ()
    with gathering.going_on():
        evidence = _evidence(entry, place, listener)
    gathering.refuse()
    abstain = entry.question_id.endswith(_ABSTENTION_SUFFIX)
    return Question(
        id=entry.question_id,
        kind="recall",
        type=entry.question_type,
        text=text,
        expected=entry.answer,
        abstain=abstain,
        evidence=evidence,
        evidence_role=("tempting" if abstain else "supports") if evidence else None,
    )


def _evidence(entry: PublishedEntry, place: Place, listener: Listener) -> tuple[str, ...]:
    """The turns marked as holding the answer; where none is, all turns of the sessions that hold it."""
    sessions, turns = _haystack(entry, place)
    ids = {session.id for session in sessions}
    for index, name in enumerate(entry.answer_session_ids):
        if name not in ids:
            pointer = place.at("answer_session_ids", index).pointer
            listener.warn(f"{place.path}: {pointer}: {shown(name)} names no session of the haystack: left out")
    marked = tuple(turn.id for turn, has_answer in turns if has_answer)
    if marked:
        return marked
    answering = {session.number for session in sessions if session.id in entry.answer_session_ids}
    return tuple(turn.id for turn, _ in turns if turn.session in answering)


def _haystack(entry: PublishedEntry, place: Place) -> tuple[list[Session], list[tuple[Turn, bool]]]:
    """Sessions in the order of their dates, and their turns, each with whether it is marked as evidence."""
    dates = _dates(entry, place)
    dated = [(date, index) for index, date in enumerate(dates) if date is not None]
    order: Sequence[int] = [index for _, index in sorted(dated)] if len(dated) == len(dates) else range(len(dates))
    sessions: list[Session] = []
    turns: list[tuple[Turn, bool]] = []
    for number, index in enumerate(order, start=1):
        sessions.append(Session(number=number, id=entry.haystack_session_ids[index], date=dates[index]))
        for message in entry.haystack_sessions[index]:
            count = len(turns) + 1
            turn = Turn(
                id=str(count), number=count, session=number, role=message.role, speaker=None, text=message.content
            )
            turns.append((turn, bool(message.has_answer)))
    return sessions, turns


def _dates(entry: PublishedEntry, place: Place) -> list[datetime | None]:
    """The sessions' dates, once it is sure that the lists of the haystack fit together."""
    gathering = Gathering()
    wanted = len(entry.haystack_sessions)
    for name in ("haystack_session_ids", "haystack_dates"):
        length = len(getattr(entry, name))
        if length != wanted:
            gathering.add(
                place.at(name).error(f"has {entries(length)}", f"{wanted}, one for each of haystack_sessions")
            )
    if not any(entry.haystack_sessions):
        gathering.add(place.at("haystack_sessions").error("has no turns", "at least one session with a turn"))
    dates: list[datetime | None] = []
    for index, written in enumerate(entry.haystack_dates):
        with gathering.going_on():
            dates.append(_date(written, place.at("haystack_dates", index)) if written else None)
    gathering.refuse()
    return dates


def _date(written: str, place: Place) -> datetime:
    for form in _DATE_FORMS:
        try:
            return datetime.strptime(_DAY_OF_WEEK.sub(" ", written).strip(), form)
        except ValueError:
            continue
    raise place.error(f"is {shown(written)}", 'a date such as "2023/05/20 (Sat) 02:21"')
