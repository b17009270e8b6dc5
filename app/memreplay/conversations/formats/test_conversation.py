"""TestConversation files: a conversation with an assistant, and questions about it.

The turns of a short conversation stand in ``turns``, as specified; those of a long history in dated ``sessions``,
which is our extension, as are named evidence, options, question types and superseded values. Unknown fields are
rejected to catch misspellings.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from typing import Any, get_args

from memreplay.conversations.formats.test_conversation_fields import (
    ADVERSARIAL,
    RecallQuestion,
    Speakers,
    TestConversation,
    WrittenTurn,
)
from memreplay.conversations.json_files import DatasetFile, duplicate_keys, read_json, read_lines
from memreplay.conversations.models import (
    NOT_ANSWERABLE,
    UNTYPED,
    Conversation,
    InfoLocation,
    KeyInfo,
    Question,
    Session,
    Turn,
)
from memreplay.conversations.validation_errors import (
    ErrorCollector,
    LoadCallbacks,
    Place,
    entries,
    ignore_error,
    shown,
    validated,
)
from memreplay.errors import DatasetError
from memreplay.text import normalised, occurs_in

NAME = "TestConversation"
SIGNATURE = 'a TestConversation (an object with "turns" or "sessions", and "recallQuestions")'

MULTIPLE_CHOICE_SUFFIX = "-mc"
"""Follows the id of a recall question in that of its multiple-choice form."""

LOCATIONS: tuple[InfoLocation, ...] = get_args(InfoLocation)

BANDS: dict[InfoLocation, range] = {
    "early": range(1, 5),
    "middle": range(5, 9),
    "recent": range(9, 1_000_000_000),
}
"""The 1-based turn numbers of each location in a conversation without sessions."""


def thirds(turns: int) -> dict[InfoLocation, range]:
    """Return the 1-based turn numbers of each location in a history of so many turns: its thirds."""
    ends = [round(turns * part / len(LOCATIONS)) for part in range(len(LOCATIONS) + 1)]
    return {
        location: range(begin + 1, end + 1)
        for location, (begin, end) in zip(LOCATIONS, pairwise(ends), strict=True)
    }


def bands_of(conversation: Conversation) -> dict[InfoLocation, range]:
    """Return the turn numbers of each location: thirds where the turns stand in dated sessions."""
    return thirds(len(conversation.turns)) if conversation.sessions[0].date else BANDS


def location_in(bands: dict[InfoLocation, range], number: int) -> InfoLocation:
    """Return the location of a turn number."""
    return next(location for location, numbers in bands.items() if number in numbers)


def derived_evidence(
    turns: Sequence[Turn],
    location: InfoLocation | None,
    entities: Sequence[str],
    bands: dict[InfoLocation, range] = BANDS,
) -> tuple[str, ...]:
    """Return ids of the evidence turns, in order; empty if no key turn at the location contains any of the
    entities.

    Without a location, key turns anywhere are searched. In a conversation that marks none, every turn may be one.
    """
    marked = [turn for turn in turns if turn.key_info is not None and turn.key_info.contains_key_info]
    held_by_turn: list[tuple[Turn, frozenset[str]]] = []
    for turn in marked or turns:
        if location is None or turn.number in bands[location]:
            held = frozenset(entity for entity in entities if occurs_in(entity, turn.text))
            held_by_turn.append((turn, held))
    return tuple(turn.id for turn in _latest_minimal_cover(held_by_turn))


def _latest_minimal_cover(held_by_turn: Sequence[tuple[Turn, frozenset[str]]]) -> tuple[Turn, ...]:
    """Return the smallest set of turns that covers every entity found; among equally small sets, the latest.

    Dynamic programming over the sets of covered entities, from the last turn to the first: a cover found earlier
    has later turns, so only a strictly smaller one replaces it.
    """
    covers: dict[frozenset[str], tuple[Turn, ...]] = {frozenset(): ()}
    for turn, held in reversed(held_by_turn):
        for entities, cover in list(covers.items()):
            together = entities | held
            if together not in covers or len(cover) + 1 < len(covers[together]):
                covers[together] = (turn, *cover)
    return covers[max(covers, key=len)]


_NUMBERED_ID = re.compile(r"(?P<category>.+)-\d+")


def detect(file: DatasetFile) -> bool:
    """Return whether it is an object with turns, sessions or questions, or a list or lines of those with questions.

    An object that is written on one line looks like JSON Lines.
    """
    if file.container in ("array", "rows") or "batch_number" in file.fields:
        return "recallQuestions" in file.fields
    return not file.fields.isdisjoint({"turns", "sessions", "recallQuestions"})


def holds_one(file: DatasetFile) -> bool:
    """Return whether the file is one conversation, and not a list of them."""
    if file.container != "lines":
        return file.is_one_object
    with closing(read_lines(file.path, LoadCallbacks(on_error=ignore_error))) as values:
        return next(values, None) is not None and next(values, None) is None


def load(file: DatasetFile, callbacks: LoadCallbacks, _evidence: object = None) -> Iterator[Conversation]:
    """Yield the conversations of the file, usually one. Warns about questions that have no evidence."""
    if not holds_one(file):
        for place, value in file.values(callbacks):
            try:
                conversation = _conversation(value, file, place, callbacks)
            except DatasetError as invalid:
                callbacks.on_error(invalid)
                continue
            yield conversation
        return
    written = read_json(file.path)
    for error in duplicate_keys(file.path):
        callbacks.on_error(error)
    yield _conversation(written, file, Place(file.path), callbacks)


def _conversation(written: Any, file: DatasetFile, place: Place, callbacks: LoadCallbacks) -> Conversation:
    conversation = conversation_of(checked(written, place), file.dataset)
    for index, question in enumerate(q for q in conversation.questions if q.kind == "recall"):
        if not question.evidence:
            pointer = place.at("recallQuestions", index).pointer
            callbacks.on_warning(
                f"{file.path}: {pointer}: has no evidence: no key turn at its location contains an expected entity"
            )
    return conversation


def checked(data: Any, place: Place) -> TestConversation:
    """Return the content of a file, after checking every field and how the fields fit together.

    Raises:
        DatasetErrors: every error that was found.
    """
    errors = ErrorCollector()
    if isinstance(data, dict):
        errors.extend(_layout_errors(data, place))
    with errors.collecting():
        written = validated(TestConversation, data, place)
        errors.extend(_errors_between_fields(written, place))
    errors.raise_all()
    return written


def _layout_errors(data: dict[Any, Any], place: Place) -> Iterator[DatasetError]:
    """Errors in what a conversation needs with turns, or with sessions."""
    if "sessions" in data:
        if "turns" in data:
            yield place.at("turns").error("stands beside sessions", "either turns or sessions")
        return
    if "turns" not in data:
        yield place.at("turns").error("is missing", "this field, or sessions")
    questions = data.get("recallQuestions")
    for index, question in enumerate(questions if isinstance(questions, list) else []):
        for name in ("infoLocation", "salienceLevel"):
            if isinstance(question, dict) and question.get(name) is None:
                yield place.at("recallQuestions", index, name).error("is missing", "this field")


def _errors_between_fields(written: TestConversation, place: Place) -> Iterator[DatasetError]:
    for index, (before, session) in enumerate(pairwise(written.sessions or ()), start=1):
        if session.date < before.date:
            yield place.at("sessions", index, "date").error(
                f"is {shown(session.date.isoformat())}, before the session before",
                "sessions in the order of their dates",
            )
    ids = {turn.id for turn in numbered_turns(written)}
    for index, question in enumerate(written.recall_questions):
        yield from _question_errors(question, ids, place.at("recallQuestions", index))


def _question_errors(question: RecallQuestion, ids: set[str], place: Place) -> Iterator[DatasetError]:
    answer = question.expected_answer
    for index, turn_id in enumerate(question.evidence or ()):
        if turn_id not in ids:
            yield place.at("evidence", index).error(f"is {shown(turn_id)}, which is no turn", "the id of a turn")
    if question.type == ADVERSARIAL and answer != NOT_ANSWERABLE:
        yield place.at("expectedAnswer").error(
            f"is {shown(answer)}, but the question is adversarial", shown(NOT_ANSWERABLE)
        )
    if question.options is None:
        return
    seen: set[str] = set()
    for index, option in enumerate(question.options):
        folded = normalised(option) or option
        if folded in seen:
            yield place.at("options", index).error(f"is {shown(option)} again", "different options")
        seen.add(folded)
    if answer not in question.options:
        yield place.at("options").error(
            f"are {entries(len(question.options))} without {shown(answer)}", "the expectedAnswer among them"
        )


def conversation_of(written: TestConversation, dataset: str) -> Conversation:
    """Convert the file's content: number the turns, derive the evidence that is not named, order the options."""
    turns = numbered_turns(written)
    category = _NUMBERED_ID.fullmatch(written.id)
    sessions = tuple(
        Session(number=number, id=str(number), date=session.date, summary=session.summary)
        for number, session in enumerate(written.sessions or (), start=1)
    )
    bands = thirds(len(turns)) if sessions else BANDS
    recalled = [
        _question(f"{written.id}-q{number}", question, turns, bands, category["category"] if category else None)
        for number, question in enumerate(written.recall_questions, start=1)
    ]
    return Conversation(
        id=written.id,
        dataset=dataset,
        sessions=sessions or (Session(number=1, id="1"),),
        turns=turns,
        questions=tuple(
            asked
            for question, source in zip(recalled, written.recall_questions, strict=True)
            for asked in (question, *_as_choice(question, source.options))
        ),
        language=written.language,
        tags=tuple(written.tags),
    )


def numbered_turns(written: TestConversation) -> tuple[Turn, ...]:
    """Return all turns, numbered from 1. The id is the number, or with sessions "Di:j"."""
    if written.sessions is None:
        return turns_of(written.turns or (), written.speakers)
    turns: list[Turn] = []
    for number, session in enumerate(written.sessions, start=1):
        for place, turn in enumerate(session.turns, start=1):
            turns.append(_turn(turn_id_in(number, place), len(turns) + 1, number, turn, written.speakers))
    return tuple(turns)


def turn_id_in(session: int, place: int) -> str:
    """Return the id of a turn by the 1-based number of its session and its 1-based place there."""
    return f"D{session}:{place}"


def turns_of(written: Sequence[WrittenTurn], speakers: Speakers | None = None) -> tuple[Turn, ...]:
    """Return the turns of a conversation without sessions: their ids are their numbers."""
    return tuple(_turn(str(number), number, 1, turn, speakers) for number, turn in enumerate(written, start=1))


def _turn(turn_id: str, number: int, session: int, turn: WrittenTurn, speakers: Speakers | None) -> Turn:
    metadata = turn.metadata
    return Turn(
        id=turn_id,
        number=number,
        session=session,
        role=turn.role,
        speaker=speakers and (speakers.user if turn.role == "user" else speakers.assistant),
        text=turn.content,
        key_info=metadata
        and KeyInfo(
            contains_key_info=metadata.contains_key_info,
            key_info_type=metadata.key_info_type,
            salience=metadata.salience_level,
        ),
    )


def evidence_of(
    question: RecallQuestion, turns: Sequence[Turn], bands: dict[InfoLocation, range]
) -> tuple[str, ...]:
    """Return the evidence that the question names, else what can be derived."""
    if question.evidence is not None:
        return tuple(dict.fromkeys(question.evidence))
    entities = question.expected_entities or [question.expected_answer]
    return derived_evidence(turns, question.info_location, entities, bands)


def _question(
    question_id: str,
    question: RecallQuestion,
    turns: tuple[Turn, ...],
    bands: dict[InfoLocation, range],
    category: str | None,
) -> Question:
    evidence = evidence_of(question, turns, bands)
    numbers = [turn.number for turn in turns if turn.id in evidence]
    location = question.info_location or (location_in(bands, max(numbers)) if numbers else None)
    abstain = question.type == ADVERSARIAL
    return Question(
        id=question_id,
        kind="recall",
        type=question.type or location or UNTYPED,
        text=question.question,
        expected=question.expected_answer,
        expected_entities=tuple(question.expected_entities),
        info_location=location,
        salience=question.salience_level,
        category=category,
        abstain=abstain,
        evidence=evidence,
        evidence_role=("tempting" if abstain else "supports") if evidence else None,
        supersedes=tuple(question.supersedes or ()),
    )


def _as_choice(question: Question, options: Sequence[str] | None) -> Iterator[Question]:
    """Yield the multiple-choice form of a question with options."""
    if options is not None:
        question_id = question.id + MULTIPLE_CHOICE_SUFFIX
        choices = ordered_options(question_id, options)
        yield question.model_copy(
            update={
                "id": question_id,
                "kind": "choice",
                "choices": choices,
                "correct_index": choices.index(question.expected),
            }
        )


def ordered_options(question_id: str, options: Sequence[str]) -> tuple[str, ...]:
    """Return the options in an order derived from the question's id, so that the order in the file tells
    nothing.
    """

    def key(option: str) -> bytes:
        return hashlib.blake2b(f"{question_id}\0{option}".encode(), digest_size=16).digest()

    return tuple(sorted(options, key=key))
