"""LoCoMo (``locomo10.json``): long conversations of two named speakers in dated sessions, with recall questions.

Source of the format: Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents", ACL 2024.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from memreplay.conversations.json_files import read_array
from memreplay.conversations.models import NOT_ANSWERABLE, Conversation, EvidenceRole, Question, Role, Session, Turn
from memreplay.conversations.validation_errors import (
    SILENT,
    Gathering,
    Listener,
    Place,
    TextOrInteger,
    printable,
    shown,
    validated,
)
from memreplay.errors import DatasetError


@dataclass(frozen=True)
class Category:
    """A category: its number, LoCoMo's name of it and LoCoMo-MC10's."""

    number: int
    locomo: str
    mc10: str


CATEGORIES = (
    Category(1, "multi-hop", "single_hop"),
    Category(2, "temporal", "multi_hop"),
    Category(3, "open-domain", "temporal_reasoning"),
    Category(4, "single-hop", "open_domain"),
    Category(5, "adversarial", "adversarial"),
)
ADVERSARIAL = CATEGORIES[-1]

BY_NUMBER = {category.number: category for category in CATEGORIES}
BY_MC10_NAME = {category.mc10: category for category in CATEGORIES}


_SESSION_KEY = re.compile(r"session_(\d+)")
_DATE_FORM = "%I:%M %p on %d %B, %Y"
_ROLES: dict[str, Role] = {"speaker_b": "assistant", "speaker_a": "user"}
_TURN_REFERENCE = re.compile(r"D:?0*(\d+):0*(\d+)")


class _Published(BaseModel):
    """Fields that are not needed here (picture addresses, event summaries) are passed over."""

    model_config = ConfigDict(strict=True)


class PublishedTurn(_Published):
    """A message. Where a picture was shared its caption says what it shows."""

    speaker: str
    dia_id: Annotated[str, Field(min_length=1)]
    text: str
    blip_caption: str | None = None


class PublishedQuestion(_Published):
    """A question; nearly all adversarial ones have no answer."""

    question: Annotated[str, Field(min_length=1)]
    category: Literal[1, 2, 3, 4, 5]
    evidence: list[str]
    answer: TextOrInteger | None = None


class PublishedSample(_Published):
    """A conversation. Its sessions and their dates are numbered keys of ``conversation``."""

    sample_id: Annotated[str, Field(min_length=1)]
    conversation: dict[str, Any]
    qa: list[PublishedQuestion]
    session_summary: dict[str, str] = {}


def load_locomo(path: Path, dataset: str, listener: Listener) -> Iterator[Conversation]:
    """The conversations of a file, one at a time; a faulty one is told and passed over, if the listener lets it.

    The listener is warned of evidence that names no turn.
    """
    seen: set[str] = set()
    for place, entry in read_array(path, listener):
        try:
            sample = validated(PublishedSample, entry, place)
            if sample.sample_id in seen:
                raise place.at("sample_id").error(f"is {shown(sample.sample_id)} again", "an id of its own")
            seen.add(sample.sample_id)
            conversation = _conversation(sample, dataset, place, listener)
        except DatasetError as error:
            listener.error(error)
            continue
        yield conversation


def _conversation(sample: PublishedSample, dataset: str, place: Place, listener: Listener) -> Conversation:
    gathering = Gathering()
    sessions, turns = _sessions_and_turns(sample, place.at("conversation"), gathering)
    # Where turns could not be read, evidence that names them is not at fault.
    hears_of_evidence = SILENT if gathering.faults else listener
    questions: list[Question] = []
    for index in range(len(sample.qa)):
        with gathering.going_on():
            questions.append(_question(sample, index, turns, place.at("qa", index), hears_of_evidence))
    gathering.refuse()
    return Conversation(
        id=sample.sample_id,
        dataset=dataset,
        sessions=tuple(sessions),
        turns=tuple(turns.values()),
        questions=tuple(questions),
    )


def _sessions_and_turns(
    sample: PublishedSample, place: Place, gathering: Gathering
) -> tuple[list[Session], dict[str, Turn]]:
    """The sessions by number, and the turns by id in their order; without the speakers no turn can be read."""
    sessions: list[Session] = []
    turns: dict[str, Turn] = {}
    role_of: dict[str, Role] = {}
    for key, role in _ROLES.items():
        with gathering.going_on():
            role_of[_speaker(sample, key, place)] = role
    if gathering.faults:
        return sessions, turns
    for number in _session_numbers(sample):
        with gathering.going_on():
            sessions.append(_session(sample, number, place))
        with gathering.going_on():
            for turn_place, entry in _entries(sample, number, place):
                with gathering.going_on():
                    turn = _turn(
                        validated(PublishedTurn, entry, turn_place), len(turns) + 1, number, role_of, turn_place
                    )
                    if turn.id in turns:
                        raise turn_place.at("dia_id").error(f"is {shown(turn.id)} again", "an id of its own")
                    turns[turn.id] = turn
    if not turns and not gathering.faults:
        gathering.add(place.error("has no turns", "at least one session with a turn"))
    return sessions, turns


def _turn(published: PublishedTurn, count: int, session: int, role_of: Mapping[str, Role], place: Place) -> Turn:
    if published.speaker not in role_of:
        raise place.at("speaker").error(f"is {shown(published.speaker)}", " or ".join(map(printable, role_of)))
    return Turn(
        id=published.dia_id,
        number=count,
        session=session,
        role=role_of[published.speaker],
        speaker=published.speaker,
        text=_text(published),
    )


def _speaker(sample: PublishedSample, key: str, place: Place) -> str:
    name = sample.conversation.get(key)
    if not isinstance(name, str) or not name:
        raise place.at(key).error("is missing" if name is None else f"is {shown(name)}", "a name")
    return name


def _session_numbers(sample: PublishedSample) -> list[int]:
    """Numbers of the sessions, as numbers: sorted as text, session 10 would come before session 2.

    There are date keys without a session; they are none.
    """
    keys = (_SESSION_KEY.fullmatch(key) for key in sample.conversation)
    return sorted(int(key[1]) for key in keys if key)


def _session(sample: PublishedSample, number: int, place: Place) -> Session:
    key = f"session_{number}_date_time"
    written = sample.conversation.get(key)
    date = None
    if written is not None:
        try:
            date = datetime.strptime(" ".join(str(written).split()), _DATE_FORM)
        except ValueError:
            raise place.at(key).error(f"is {shown(written)}", 'a date such as "1:56 pm on 8 May, 2023"') from None
    summary = sample.session_summary.get(f"session_{number}_summary")
    return Session(number=number, id=f"session_{number}", date=date, summary=summary or None)


def _entries(sample: PublishedSample, number: int, place: Place) -> Iterator[tuple[Place, Any]]:
    key = f"session_{number}"
    entries = sample.conversation[key]
    if not isinstance(entries, list):
        raise place.at(key).error(f"is {shown(entries)}", "a list of turns")
    for index, entry in enumerate(entries):
        yield place.at(key, index), entry


def _text(turn: PublishedTurn) -> str:
    if not turn.blip_caption:
        return turn.text
    return f"{turn.text} [shares a photo: {turn.blip_caption}]".lstrip()


def _question(
    sample: PublishedSample, index: int, turns: Mapping[str, Turn], place: Place, listener: Listener
) -> Question:
    published = sample.qa[index]
    category = BY_NUMBER[published.category]
    evidence = _evidence(published, turns, place, listener)
    never_said = category is ADVERSARIAL and published.answer is None
    if published.answer is None and not never_said:
        raise place.at("answer").error("is missing", "text or an integer")
    role: EvidenceRole = "tempting" if category is ADVERSARIAL else "supports"
    return Question(
        id=f"{sample.sample_id}_q{index}",
        kind="recall",
        type=category.locomo,
        other_type=category.mc10,
        text=published.question,
        expected=NOT_ANSWERABLE if published.answer is None else published.answer,
        abstain=never_said,
        evidence=evidence,
        evidence_role=role if evidence else None,
    )


def _evidence(
    published: PublishedQuestion, turns: Mapping[str, Turn], place: Place, listener: Listener
) -> tuple[str, ...]:
    """Turn ids, each once. Ids with a stray colon, with leading zeros, or several in one text are put right."""
    found: dict[str, None] = {}
    for position, written in enumerate(published.evidence):
        if written in turns:
            found[written] = None
            continue
        named = [f"D{session}:{turn}" for session, turn in _TURN_REFERENCE.findall(written)]
        known = [turn for turn in named if turn in turns]
        found.update(dict.fromkeys(known))
        said = f"{place.path}: {place.at('evidence', position).pointer}: {shown(written)}"
        if known:
            listener.repaired(f"{said} is read as {', '.join(known)}")
        if not named or len(known) < len(named):
            listener.warn(f"{said} names no turn of the conversation: left out")
    return tuple(found)
