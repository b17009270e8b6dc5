"""LongMemEval (``_s``, ``_m`` and oracle): questions, each with its own history of dated sessions.

Source of the format: Wu et al., "LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory", ICLR
2025. The largest file has 2.7 GB, so entries are streamed, in two passes. The first pass collects the questions and
groups those that share a haystack; the second builds one conversation for each distinct haystack.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

from memreplay.conversations.formats.locomo import count_undated
from memreplay.conversations.json_files import DatasetFile
from memreplay.conversations.messages import LeftOut
from memreplay.conversations.models import Conversation, Question, Role, Session, Turn, TurnText
from memreplay.conversations.validation_errors import (
    SILENT,
    ErrorCollector,
    LoadCallbacks,
    Place,
    TextOrInteger,
    entries,
    ignore_error,
    shown,
    validated,
)
from memreplay.errors import DatasetError

NAME = "LongMemEval"
SIGNATURE = 'LongMemEval entries (with "haystack_sessions" and "answer_session_ids")'

QuestionType = Literal[
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "temporal-reasoning",
    "knowledge-update",
    "multi-session",
]

ABSTENTION_SUFFIX = "_abs"
_STRUCTURED = ("haystack_session_ids", "haystack_dates", "haystack_sessions", "answer_session_ids")
_DAY_OF_WEEK = re.compile(r"\s*\([^()]*\)\s*")
_DATE_FORMS = ("%Y/%m/%d %H:%M", "%Y/%m/%d")


class _Published(BaseModel):
    model_config = ConfigDict(strict=True)


class PublishedMessage(_Published):
    """A message. ``has_answer`` marks evidence."""

    role: Role
    content: TurnText
    has_answer: bool | None = None


class PublishedEntry(_Published):
    """A question and its haystack: three parallel lists with an entry per session."""

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
        """Return a digest that is equal for equal haystacks; it ignores ``has_answer`` of the question."""
        said = [[(message.role, message.content) for message in session] for session in self.haystack_sessions]
        together = orjson.dumps((self.haystack_session_ids, self.haystack_dates, said))
        return hashlib.blake2b(together, digest_size=16).digest()


def detect(file: DatasetFile) -> bool:
    return not file.fields.isdisjoint({"haystack_dates", "answer_session_ids"})


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield a conversation for each distinct haystack, named after its first question.

    Sessions are sorted by date; turn ids are 1-based numbers. Skips an invalid entry unless ``callbacks.on_error``
    raises.
    """
    questions: dict[bytes, dict[str, Question]] = {}
    haystack_at: dict[Place, bytes] = {}
    places: dict[str, Place] = {}
    for place, data in file.values(callbacks, _STRUCTURED):
        try:
            entry = validated(PublishedEntry, data, place)
            question = _question(entry, place, callbacks)
            if places.setdefault(question.id, place) != place:
                raise place.at("question_id").error(f"is {shown(question.id)} again", "a unique id")
        except DatasetError as error:
            callbacks.on_error(error)
            continue
        digest = entry.haystack_digest()
        haystack_at[place] = digest
        questions.setdefault(digest, {})[question.id] = question
    undated = LeftOut()
    again = replace(callbacks, on_error=ignore_error, on_warning=SILENT.on_warning)
    for place, data in file.values(again, _STRUCTURED):
        asked = questions.pop(haystack_at[place], None) if place in haystack_at else None
        if asked is None:
            continue
        sessions, turns = _haystack(validated(PublishedEntry, data, place), place)
        count_undated(sessions, place.at("haystack_dates"), undated)
        yield Conversation(
            id=next(iter(asked)),
            dataset=file.dataset,
            sessions=tuple(sessions),
            turns=tuple(turn for turn, _ in turns),
            questions=tuple(asked.values()),
        )
    undated.report(callbacks.on_warning)


_ASKED_ON = re.compile(r" \(asked on \d{4}-\d\d-\d\d \d\d:\d\d\)$")


def as_published(question: str) -> str:
    """Return the text of a question without the date that :func:`load` puts behind it."""
    return _ASKED_ON.sub("", question)


def _question(entry: PublishedEntry, place: Place, callbacks: LoadCallbacks) -> Question:
    """Return the question with its evidence. The date it is asked on becomes part of its text, as answers depend
    on it.
    """
    errors = ErrorCollector()
    text = entry.question
    with errors.collecting():
        if entry.question_date:
            asked_at = _date(entry.question_date, place.at("question_date"))
            text = f"{text} (asked on {asked_at:%Y-%m-%d %H:%M})"
    evidence: tuple[str, ...] = ()
    with errors.collecting():
        evidence = _evidence(entry, place, callbacks)
    errors.raise_all()
    abstain = entry.question_id.endswith(ABSTENTION_SUFFIX)
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


def _evidence(entry: PublishedEntry, place: Place, callbacks: LoadCallbacks) -> tuple[str, ...]:
    """Return the turns marked with ``has_answer``; without any, all turns of the answer sessions."""
    sessions, turns = _haystack(entry, place)
    ids = {session.id for session in sessions}
    for index, name in enumerate(entry.answer_session_ids):
        if name not in ids:
            pointer = place.at("answer_session_ids", index).pointer
            callbacks.on_warning(
                f"{place.path}: {pointer}: {shown(name)} names no session of the haystack: left out"
            )
    marked = tuple(turn.id for turn, has_answer in turns if has_answer)
    if marked:
        return marked
    answering = {session.number for session in sessions if session.id in entry.answer_session_ids}
    return tuple(turn.id for turn, _ in turns if turn.session in answering)


def _haystack(entry: PublishedEntry, place: Place) -> tuple[list[Session], list[tuple[Turn, bool]]]:
    """Return the sessions sorted by date, and their turns, each with its ``has_answer`` mark."""
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
    """Return the sessions' dates, after checking that the parallel lists have the same length."""
    errors = ErrorCollector()
    wanted = len(entry.haystack_sessions)
    for name in ("haystack_session_ids", "haystack_dates"):
        length = len(getattr(entry, name))
        if length != wanted:
            errors.add(
                place.at(name).error(f"has {entries(length)}", f"{wanted}, one for each of haystack_sessions")
            )
    if not any(entry.haystack_sessions):
        errors.add(place.at("haystack_sessions").error("has no turns", "at least one session with a turn"))
    dates: list[datetime | None] = []
    for index, written in enumerate(entry.haystack_dates):
        with errors.collecting():
            dates.append(_date(written, place.at("haystack_dates", index)) if written else None)
    errors.raise_all()
    return dates


def _date(written: str, place: Place) -> datetime:
    for form in _DATE_FORMS:
        try:
            return datetime.strptime(_DAY_OF_WEEK.sub(" ", written).strip(), form)
        except ValueError:
            continue
    raise place.error(f"is {shown(written)}", 'a date such as "2023/05/20 (Sat) 02:21"')
