"""LoCoMo (``locomo10.json``): long conversations of two named speakers in dated sessions, with recall questions.

Source of the format: Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents", ACL 2024.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from memreplay.conversations.json_files import DatasetFile, open_dataset_file
from memreplay.conversations.messages import LeftOut
from memreplay.conversations.models import (
    NOT_ANSWERABLE,
    UNTYPED,
    Conversation,
    EvidenceRole,
    Question,
    Role,
    Session,
    Turn,
    TurnText,
)
from memreplay.conversations.validation_errors import (
    SILENT,
    ErrorCollector,
    LoadCallbacks,
    Place,
    TextOrInteger,
    shown,
    validated,
)
from memreplay.errors import DatasetError, UsageError
from memreplay.printable import printable

NAME = "LoCoMo"
SIGNATURE = 'LoCoMo (with "conversation" and "qa")'

_EVIDENCE_FILES = "locomo10*.json"


@dataclass(frozen=True)
class Category:
    """A question category: its number, and its names in LoCoMo and in LoCoMo-MC10."""

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


_STRUCTURED = ("conversation", "qa", "session_summary")
_SESSION_KEY = re.compile(r"session_(\d+)")
_DATE_FORM = "%I:%M %p on %d %B, %Y"
_ROLES: dict[str, Role] = {"speaker_b": "assistant", "speaker_a": "user"}
_TURN_REFERENCE = re.compile(r"D:?0*(\d+):0*(\d+)")


class _Published(BaseModel):
    """Ignores the fields that are not needed here (image URLs, event summaries)."""

    model_config = ConfigDict(strict=True)


class PublishedTurn(_Published):
    """A message. ``blip_caption`` describes a shared picture."""

    speaker: str
    dia_id: Annotated[str, Field(min_length=1)]
    text: TurnText
    blip_caption: str | None = None


class PublishedQuestion(_Published):
    """A question. Nearly all adversarial ones have no answer, but a wrong one that they suggest; no others do."""

    question: Annotated[str, Field(min_length=1)]
    category: Literal[1, 2, 3, 4, 5] | None = None
    evidence: list[str] | None = None
    answer: TextOrInteger | None = None
    adversarial_answer: TextOrInteger | None = None


class PublishedSample(_Published):
    """A conversation. Its sessions and their dates are numbered keys of ``conversation``."""

    sample_id: Annotated[str, Field(min_length=1)] | None = None
    conversation: dict[str, Any]
    qa: list[PublishedQuestion]
    session_summary: dict[str, str | None] | None = None


def detect(file: DatasetFile) -> bool:
    return file.fields >= {"conversation", "qa"}


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield the conversations of the file. Warns about evidence that names no turn, and counts what is missing.

    Skips an invalid conversation unless ``callbacks.on_error`` raises.
    """
    seen: set[str] = set()
    missing = LeftOut()
    for number, (place, entry) in enumerate(file.values(callbacks, _STRUCTURED), start=1):
        try:
            sample = validated(PublishedSample, entry, place)
            name = sample.sample_id or f"{file.dataset}-{number}"
            if name in seen:
                raise place.at("sample_id").error(f"is {shown(name)} again", "a unique id")
            seen.add(name)
            conversation = _conversation(sample, name, file.dataset, place, callbacks)
        except DatasetError as error:
            callbacks.on_error(error)
            continue
        _count_missing(sample, conversation, place, missing)
        yield conversation
    missing.report(callbacks.on_warning)


def _count_missing(sample: PublishedSample, conversation: Conversation, place: Place, missing: LeftOut) -> None:
    if sample.sample_id is None:
        missing.add("conversation", "without a sample_id is named after the file", place)
    for index, (published, question) in enumerate(zip(sample.qa, conversation.questions, strict=True)):
        at = place.at("qa", index)
        if question.type == UNTYPED:
            missing.add("question", "has no category: no LoCoMo F1, and no results by category", at)
        if published.evidence is None:
            missing.add("question", "has no evidence: retrieval cannot be measured", at)
    count_undated(conversation.sessions, place.at("conversation"), missing)


def count_undated(sessions: Iterable[Session], place: Place, missing: LeftOut) -> None:
    """Count the sessions that have no date."""
    undated = sum(session.date is None for session in sessions)
    missing.add("session", "has no date: when things were said stays unknown", place, undated)


def _conversation(
    sample: PublishedSample, name: str, dataset: str, place: Place, callbacks: LoadCallbacks
) -> Conversation:
    errors = ErrorCollector()
    sessions, turns = _sessions_and_turns(sample, place.at("conversation"), errors)
    # When turns could not be read, evidence that names them is no further problem.
    evidence_callbacks = SILENT if errors else callbacks
    questions: list[Question] = []
    for index in range(len(sample.qa)):
        with errors.collecting():
            question_id = f"{name}_q{index}"
            questions.append(
                _question(question_id, sample.qa[index], turns, place.at("qa", index), evidence_callbacks)
            )
    errors.raise_all()
    return Conversation(
        id=name,
        dataset=dataset,
        sessions=tuple(sessions),
        turns=tuple(turns.values()),
        questions=tuple(questions),
    )


def _sessions_and_turns(
    sample: PublishedSample, place: Place, errors: ErrorCollector
) -> tuple[list[Session], dict[str, Turn]]:
    """Return the sessions in order, and the turns by id. Reads no turn if the speakers are invalid."""
    sessions: list[Session] = []
    turns: dict[str, Turn] = {}
    role_of: dict[str, Role] = {}
    for key, role in _ROLES.items():
        with errors.collecting():
            role_of[_speaker(sample, key, place)] = role
    if errors:
        return sessions, turns
    for number in _session_numbers(sample):
        with errors.collecting():
            sessions.append(_session(sample, number, place))
        with errors.collecting():
            for turn_place, entry in _entries(sample, number, place):
                with errors.collecting():
                    turn = _turn(
                        validated(PublishedTurn, entry, turn_place), len(turns) + 1, number, role_of, turn_place
                    )
                    if turn.id in turns:
                        raise turn_place.at("dia_id").error(f"is {shown(turn.id)} again", "a unique id")
                    turns[turn.id] = turn
    if not turns and not errors:
        errors.add(place.error("has no turns", "at least one session with a turn"))
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
    """Return the session numbers in numeric order. Some date keys have no session; they are ignored.

    Where all samples have the same keys, as in a table, a session that one does not have is null.
    """
    keys = (_SESSION_KEY.fullmatch(key) for key, value in sample.conversation.items() if value is not None)
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
    summary = (sample.session_summary or {}).get(f"session_{number}_summary")
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
    question_id: str,
    published: PublishedQuestion,
    turns: Mapping[str, Turn],
    place: Place,
    callbacks: LoadCallbacks,
) -> Question:
    category = BY_NUMBER[published.category] if published.category else None
    if category is None and published.adversarial_answer is not None:
        category = ADVERSARIAL
    evidence = _evidence(published, turns, place, callbacks)
    never_said = category is ADVERSARIAL and published.answer is None
    if published.answer is None and not never_said:
        raise place.at("answer").error("is missing", "text or an integer")
    role: EvidenceRole = "tempting" if category is ADVERSARIAL else "supports"
    return Question(
        id=question_id,
        kind="recall",
        type=category.locomo if category else UNTYPED,
        other_type=category.mc10 if category else None,
        text=published.question,
        expected=NOT_ANSWERABLE if published.answer is None else published.answer,
        abstain=never_said,
        suggested=published.adversarial_answer if category is ADVERSARIAL else None,
        evidence=evidence,
        evidence_role=role if evidence else None,
    )


def _evidence(
    published: PublishedQuestion, turns: Mapping[str, Turn], place: Place, callbacks: LoadCallbacks
) -> tuple[str, ...]:
    """Unique turn ids. Repairs ids with a stray colon or leading zeros, and strings that hold several ids."""
    found: dict[str, None] = {}
    for position, written in enumerate(published.evidence or ()):
        if written in turns:
            found[written] = None
            continue
        named = [f"D{session}:{turn}" for session, turn in _TURN_REFERENCE.findall(written)]
        known = [turn for turn in named if turn in turns]
        found.update(dict.fromkeys(known))
        said = f"{place.path}: {place.at('evidence', position).pointer}: {shown(written)}"
        if known:
            callbacks.on_repair(f"{said} is read as {', '.join(known)}")
        if not named or len(known) < len(named):
            callbacks.on_warning(f"{said} names no turn of the conversation: left out")
    return tuple(found)


@dataclass(frozen=True)
class SampleEvidence:
    """The questions of one conversation by id, and the number of turns in each session."""

    questions: dict[str, Question]
    turns_by_session: dict[int, int]


EvidenceIndex = dict[str, SampleEvidence]
"""Evidence, by ``sample_id``."""


def read_evidence(path: Path, callbacks: LoadCallbacks) -> EvidenceIndex:
    """Read the evidence file that the user names.

    Raises:
        MemreplayError: it does not exist, or is not a locomo10 file.
    """
    if not path.is_file():
        raise UsageError(f"There is no evidence file {path}.")
    file = open_dataset_file(path)
    if not detect(file):
        raise DatasetError(path, "", "is not a locomo10 file", "the evidence in LoCoMo's format")
    return _evidence_index([file], callbacks)


def evidence_beside(path: Path, callbacks: LoadCallbacks) -> EvidenceIndex:
    """Return the evidence in the locomo10 files of the same folder, if any.

    An error in them is not an error of the rows, so the first one is raised and not passed to ``on_error``.
    """
    others = (other for other in sorted(path.parent.glob(_EVIDENCE_FILES)) if other != path)
    files = (file for other in others if (file := _locomo_file(other)) is not None)
    return _evidence_index(files, LoadCallbacks(on_warning=callbacks.on_warning))


def _locomo_file(path: Path) -> DatasetFile | None:
    try:
        file = open_dataset_file(path)
    except DatasetError:
        return None
    return file if detect(file) else None


def _evidence_index(files: Iterable[DatasetFile], callbacks: LoadCallbacks) -> EvidenceIndex:
    """Return the evidence by conversation. If several files contain a conversation, the first one counts."""
    index: EvidenceIndex = {}
    for file in files:
        for conversation in load(file, callbacks):
            index.setdefault(conversation.id, _sample_evidence(conversation))
    return index


def _sample_evidence(conversation: Conversation) -> SampleEvidence:
    return SampleEvidence(
        questions={question.id: question for question in conversation.questions},
        turns_by_session=count_by_session([turn.session for turn in conversation.turns]),
    )


def count_by_session(sessions_of_turns: Sequence[int]) -> dict[int, int]:
    """Return the number of turns in each session, given the session number of every turn."""
    return {number: sessions_of_turns.count(number) for number in dict.fromkeys(sessions_of_turns)}
