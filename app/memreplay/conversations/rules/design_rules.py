"""Design rules of a TestConversation: its shape, metadata and name, and how its questions relate to its turns.

The rules on shape and evidence are those of short conversations. A long history, a file with dated sessions, has
rules of its own, ``history_…``. They need the whole content: they check no file with errors in its format."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from memreplay.conversations.formats.test_conversation import BANDS, checked, conversation_of, evidence_of, turns_of
from memreplay.conversations.formats.test_conversation_fields import (
    ADVERSARIAL,
    QUESTION_TYPES,
    RecallQuestion,
    TestConversation,
    WrittenTurn,
)
from memreplay.conversations.json_files import duplicate_keys, read_json
from memreplay.conversations.models import NOT_ANSWERABLE, InfoLocation, KeyInfoType, Salience, Turn
from memreplay.conversations.option_style import option_style
from memreplay.conversations.validation_errors import Place, entries, individual_errors, shown
from memreplay.errors import DatasetError
from memreplay.numbers import whole_share
from memreplay.text import normalised, occurs_in

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Draft:
    """The parts of a file. Missing and invalid parts are None or left out.

    ``turns`` are all turns in order, whether they stand in sessions or not, and ``turn_places`` their places.
    ``written`` is the whole content, or None if the file has any error.
    """

    place: Place
    id: str | None
    language: str | None
    tags: tuple[str, ...]
    turns: tuple[WrittenTurn | None, ...]
    turn_places: tuple[Place, ...]
    questions: tuple[RecallQuestion | None, ...]
    written: TestConversation | None
    in_sessions: bool

    @property
    def path(self) -> Path:
        return self.place.path

    def turn_place(self, index: int) -> Place:
        return self.turn_places[index]

    def question_place(self, index: int) -> Place:
        return self.place.at("recallQuestions", index)

    def all_turns(self) -> tuple[WrittenTurn, ...] | None:
        """Return the turns, or None if any of them is invalid."""
        turns = tuple(turn for turn in self.turns if turn is not None)
        return turns if len(turns) == len(self.turns) else None

    def valid_turns(self) -> Iterator[tuple[int, WrittenTurn]]:
        """Return the valid turns with their indexes."""
        return ((index, turn) for index, turn in enumerate(self.turns) if turn is not None)

    def valid_questions(self) -> Iterator[tuple[int, RecallQuestion]]:
        """Return the valid questions with their indexes."""
        return ((index, question) for index, question in enumerate(self.questions) if question is not None)


def read_draft(path: Path) -> tuple[Draft, tuple[DatasetError, ...]]:
    """Read the valid parts of a file, and collect the errors of the rest.

    Raises:
        DatasetError: the file is not JSON.
    """
    place = Place(path)
    data = read_json(path)
    errors: tuple[DatasetError, ...] = tuple(duplicate_keys(path))
    written: TestConversation | None = None
    try:
        written = checked(data, place)
    except DatasetError as error:
        errors += individual_errors(error)
    fields: dict[str, Any] = data if isinstance(data, dict) else {}
    turns = list(_turns_with_places(fields, place))
    draft = Draft(
        place=place,
        id=_text(fields.get("id")),
        language=_text(fields.get("language")),
        tags=tuple(tag for tag in _entries(fields.get("tags")) if isinstance(tag, str)),
        turns=tuple(_part(WrittenTurn, entry) for entry, _ in turns),
        turn_places=tuple(where for _, where in turns),
        questions=tuple(_part(RecallQuestion, entry) for entry in _entries(fields.get("recallQuestions"))),
        written=written,
        in_sessions="sessions" in fields,
    )
    return draft, errors


def _turns_with_places(fields: dict[str, Any], place: Place) -> Iterator[tuple[Any, Place]]:
    if "sessions" not in fields:
        yield from ((turn, place.at("turns", index)) for index, turn in enumerate(_entries(fields.get("turns"))))
        return
    for number, session in enumerate(_entries(fields["sessions"])):
        turns = _entries(session.get("turns")) if isinstance(session, dict) else []
        inside = place.at("sessions", number, "turns")
        yield from ((turn, inside.at(index)) for index, turn in enumerate(turns))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _entries(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _part(model: type[M], data: object) -> M | None:
    try:
        return model.model_validate(data)
    except ValidationError:
        return None


Errors = Iterator[DatasetError]

Rule = Callable[[Draft], Errors]

TURNS = range(12, 21)

QUESTIONS_BY_LOCATION: dict[InfoLocation, int] = {"early": 2, "middle": 2, "recent": 1}

LEAST_WORDS = 400

TAGS = {
    "correction": "a value is corrected later",
    "same_first_name": "two people with the same first name",
    "near_number": "a number that resembles another",
    "in_passing": "a tested fact that is only mentioned in passing",
    "instruction": "a standing instruction",
    "assistant_error": "the assistant was wrong and is corrected",
    "edge": "an edge case: any length and number of questions",
}
"""The known tags and what each of them marks."""

_EDGE = "edge"

_ID = re.compile(r"[a-z]+(_[a-z]+)*-\d{2,}")

_EDGE_ID = re.compile(r"[a-z0-9_]+(-[a-z0-9_]+)+")


def is_known_language(tag: str) -> bool:
    """Return whether this is a well-formed BCP 47 tag of registered subtags."""
    from langcodes import tag_is_valid  # loaded only by commands that validate

    return tag_is_valid(tag)


def is_edge_case(draft: Draft) -> bool:
    """Return whether the conversation is exempt from the rules on length and number of questions."""
    return draft.path.parent.name == _EDGE or _EDGE in draft.tags


def shape_errors(draft: Draft) -> Errors:
    """Errors in the number and order of turns and questions."""
    rules: tuple[Rule, ...] = (_roles, _mixed_saliences)
    if not is_edge_case(draft):
        rules = (_number_of_turns, _number_of_words, _number_of_questions, *rules)
    for rule in rules:
        yield from rule(draft)


def _number_of_turns(draft: Draft) -> Errors:
    if draft.turns and len(draft.turns) not in TURNS:
        expected = f"{TURNS.start} to {TURNS.stop - 1} turns"
        yield draft.place.at("turns").error(f"has {entries(len(draft.turns))}", expected)


def _number_of_words(draft: Draft) -> Errors:
    turns = draft.all_turns()
    if turns:
        words = sum(len(turn.content.split()) for turn in turns)
        if words < LEAST_WORDS:
            yield draft.place.at("turns").error(f"holds {words} words", f"at least {LEAST_WORDS}")


def _number_of_questions(draft: Draft) -> Errors:
    place = draft.place.at("recallQuestions")
    wanted = sum(QUESTIONS_BY_LOCATION.values())
    if draft.questions and len(draft.questions) != wanted:
        yield place.error(f"has {entries(len(draft.questions))}", f"{wanted} questions")
        return
    asked = Counter(
        question.info_location for _, question in draft.valid_questions() if question.info_location is not None
    )
    if asked.total() == wanted and asked != QUESTIONS_BY_LOCATION:
        yield place.error(f"asks of {_by_location(asked)}", _by_location(QUESTIONS_BY_LOCATION))


def _by_location(counts: dict[InfoLocation, int]) -> str:
    return ", ".join(f"{counts.get(location, 0)} {location}" for location in QUESTIONS_BY_LOCATION)


def _roles(draft: Draft) -> Errors:
    previous = "assistant"
    for index, turn in enumerate(draft.turns):
        if turn is None:
            previous = "user" if previous == "assistant" else "assistant"
            continue
        if turn.role == previous:
            first = index == 0
            problem = f"is {shown(turn.role)}" + ("" if first else ", like the turn before")
            expected = '"user": the user speaks first' if first else "the roles to alternate"
            yield draft.turn_place(index).at("role").error(problem, expected)
        previous = turn.role


def _mixed_saliences(draft: Draft) -> Errors:
    """Does not apply to a conversation with a single key turn."""
    saliences = [question.salience_level for _, question in draft.valid_questions()]
    key_turns = sum(turn.metadata is not None for _, turn in draft.valid_turns())
    if key_turns > 1 and len(saliences) > 1 and len(saliences) == len(draft.questions) and len(set(saliences)) == 1:
        yield draft.place.at("recallQuestions").error(
            f"all have salienceLevel {shown(saliences[0])}", "a mix of at least two levels"
        )


def metadata_errors(draft: Draft) -> Errors:
    """Errors in the metadata of key turns, and blank turns."""
    for index, turn in draft.valid_turns():
        place = draft.turn_place(index)
        if not turn.content.strip():
            yield place.at("content").error("is blank", "a message")
        if turn.metadata is None:
            continue
        inside = place.at("metadata")
        if not turn.metadata.contains_key_info:
            yield inside.at("containsKeyInfo").error(
                "is false", "no metadata on a turn without testable information"
            )
            continue
        if turn.metadata.key_info_type is None:
            yield inside.at("keyInfoType").error("is missing", _one_of(get_args(KeyInfoType)))
        if turn.metadata.salience_level is None:
            yield inside.at("salienceLevel").error("is missing", _one_of(get_args(Salience)))


def _one_of(values: tuple[str, ...]) -> str:
    return ", ".join(values[:-1]) + f" or {values[-1]}"


def name_errors(draft: Draft) -> Errors:
    """Errors in id, language and tags."""
    if draft.id is not None:
        place = draft.place.at("id")
        pattern, example = (_EDGE_ID, "edge-name") if is_edge_case(draft) else (_ID, "category-NN")
        if draft.id != draft.path.stem:
            yield place.error(
                f"is {shown(draft.id)}", f"{shown(draft.path.stem)}, the file name without its extension"
            )
        elif not pattern.fullmatch(draft.id):
            yield place.error(f"is {shown(draft.id)}", f"an id of the form {example}")
    if draft.language is not None and not is_known_language(draft.language):
        yield draft.place.at("language").error(f"is {shown(draft.language)}", 'a known language tag such as "en"')
    for index, tag in enumerate(draft.tags):
        place = draft.place.at("tags", index)
        if tag not in TAGS:
            yield place.error(f"is {shown(tag)}", ", ".join(TAGS))
        elif tag in draft.tags[:index]:
            yield place.error(f"is {shown(tag)} again", "every tag only once")


def question_errors(draft: Draft) -> Errors:
    """Duplicate and blank questions."""
    asked: dict[str, int] = {}
    for index, question in draft.valid_questions():
        place = draft.question_place(index).at("question")
        words = normalised(question.question)
        if not words:
            yield place.error("is blank", "a question")
        elif asked.setdefault(words, index) != index:
            yield place.error(
                f"repeats the question of /recallQuestions/{asked[words]}", "every question only once"
            )


MOST_ANSWER_WORDS = 8

MOST_ANSWER_WORDS_IN_SESSIONS = 12
"""Limit for the questions of a long history, some of which ask for a title or a sentence."""


def answer_errors(draft: Draft) -> Errors:
    """Expected answers and entities that are too long, contradict each other, or that the question gives away."""
    most_words = MOST_ANSWER_WORDS_IN_SESSIONS if draft.in_sessions else MOST_ANSWER_WORDS
    for index, question in draft.valid_questions():
        yield from _wording(question, draft.question_place(index), most_words)


def evidence_errors(draft: Draft) -> Errors:
    """Expected answers and entities that do not occur in the evidence."""
    turns = draft.all_turns()
    for index, question in draft.valid_questions():
        if turns and question.info_location and question.type != ADVERSARIAL:
            place = draft.question_place(index)
            yield from _evidence(question, question.info_location, turns_of(turns), draft, place)


def _wording(question: RecallQuestion, place: Place, most_words: int) -> Errors:
    answer = question.expected_answer
    words = len(normalised(answer).split())
    if not answer.strip():
        yield place.at("expectedAnswer").error("is blank", "the answer")
    elif words > most_words:
        yield place.at("expectedAnswer").error(
            f"is {words} words long", f"at most {most_words}, so that it can be matched literally"
        )
    if occurs_in(answer, question.question):
        yield place.at("question").error(
            f"contains its answer {shown(answer)}", "a question that does not give the answer away"
        )
    for index, entity in enumerate(question.expected_entities):
        inside = place.at("expectedEntities", index)
        if not entity.strip():
            yield inside.error("is blank", "a string that a correct answer must contain")
        elif entity in question.expected_entities[:index]:
            yield inside.error(f"is {shown(entity)} again", "every entity only once")
        elif occurs_in(entity, question.question) and not occurs_in(answer, question.question):
            yield inside.error(
                f"is {shown(entity)}, which occurs in the question", "a string that the question does not contain"
            )
        elif question.type != ADVERSARIAL and not occurs_in(entity, answer):
            yield place.at("expectedAnswer").error(
                f"is {shown(answer)}, which lacks the expected entity {shown(entity)}", "an answer with all of them"
            )


def _evidence(
    question: RecallQuestion, location: InfoLocation, turns: Sequence[Turn], draft: Draft, place: Place
) -> Errors:
    entities = question.expected_entities
    ids = evidence_of(question, turns, BANDS)
    evidence = [turn for turn in turns if turn.id in ids]
    wanted = [(place.at("expectedAnswer"), question.expected_answer)]
    wanted += [(place.at("expectedEntities", index), entity) for index, entity in enumerate(entities)]
    missing = [(at, text) for at, text in wanted if text.strip() and not _occurs_in_any(text, evidence)]
    if missing:
        yield from _why_missing(missing, location, turns, evidence, draft, place)
        return
    saliences = {turn.key_info.salience for turn in evidence if turn.key_info and turn.key_info.salience}
    if saliences and question.salience_level is not None and question.salience_level not in saliences:
        levels = " or ".join(shown(level) for level in sorted(saliences))
        yield place.at("salienceLevel").error(
            f"is {shown(question.salience_level)}", f"{levels}, the level of its evidence in {_turns(evidence)}"
        )


def _why_missing(
    missing: Sequence[tuple[Place, str]],
    location: InfoLocation,
    turns: Sequence[Turn],
    evidence: Sequence[Turn],
    draft: Draft,
    place: Place,
) -> Errors:
    """Return one error if missing metadata or a wrong location explains everything, else one error per text."""
    texts = [text for _, text in missing]
    holding = [turn for turn in turns if all(occurs_in(text, turn.text) for text in texts)]
    here = [turn for turn in holding if turn.number in BANDS[location]]
    elsewhere = [turn for turn in holding if turn.number not in BANDS[location] and _is_key(turn)]
    if here and not any(_is_key(turn) for turn in here):
        yield (
            draft.turn_place(here[-1].number - 1)
            .at("metadata")
            .error(
                f"is missing, though the turn contains {shown(texts[0])}, which {place.pointer} asks for",
                "containsKeyInfo, keyInfoType and salienceLevel",
            )
        )
    elif elsewhere and not here:
        said = elsewhere[-1]
        right = next(band for band, numbers in BANDS.items() if said.number in numbers)
        yield place.at("infoLocation").error(
            f"is {shown(location)}", f"{shown(right)}: {shown(texts[0])} occurs in turn {said.number}"
        )
    else:
        where = (
            f"{_turns(evidence)}, where its entities occur" if evidence else f"a key turn among {_band(location)}"
        )
        for at, text in missing:
            yield at.error(f"is {shown(text)}, which does not occur in the evidence", f"words of {where}")


def _turns(turns: Sequence[Turn]) -> str:
    return "turn " + " and ".join(turn.id for turn in turns)


def _band(location: InfoLocation) -> str:
    band = BANDS[location]
    return f"turns {band.start} to {band.stop - 1}" if location != "recent" else f"turns {band.start} and later"


def _occurs_in_any(text: str, turns: Sequence[Turn]) -> bool:
    return any(occurs_in(text, turn.text) for turn in turns)


def _is_key(turn: Turn) -> bool:
    return turn.key_info is not None and turn.key_info.contains_key_info


LEAST_SESSIONS = 12

LEAST_TURNS = 250

LEAST_QUESTIONS = 40

OPTIONS = 10

MOST_GUESSED = 0.15
"""The highest accuracy of a blind guesser, which sees only the options."""

_SAID_LITERALLY = frozenset({"single_fact", "update", "assistant_said"})
"""Question types whose entities occur in the evidence; the answers of others may be computed."""


def history_shape_errors(draft: Draft) -> Errors:
    """Errors in the number of sessions, turns and questions, and in the order of the roles."""
    if draft.written is None:
        return
    sessions = draft.written.sessions or []
    if not is_edge_case(draft):
        for name, least, number in (
            ("sessions", LEAST_SESSIONS, len(sessions)),
            ("recallQuestions", LEAST_QUESTIONS, len(draft.questions)),
        ):
            if number < least:
                yield draft.place.at(name).error(f"has {entries(number)}", f"at least {least}")
        if len(draft.turns) < LEAST_TURNS:
            yield draft.place.at("sessions").error(f"hold {len(draft.turns)} turns", f"at least {LEAST_TURNS}")
    for number, session in enumerate(sessions):
        for index, turn in enumerate(session.turns):
            expected = "assistant" if index % 2 else "user"
            if turn.role != expected:
                yield draft.place.at("sessions", number, "turns", index, "role").error(
                    f"is {shown(turn.role)}", f"{shown(expected)}: the user speaks first, then the roles alternate"
                )
                break


def history_question_errors(draft: Draft) -> Errors:
    """Errors in type, options and evidence, and options that give the answers away."""
    if draft.written is None:
        return
    conversation = conversation_of(draft.written, draft.path.stem)
    for index, question in draft.valid_questions():
        place = draft.question_place(index)
        yield from _missing_fields(question, place)
        evidence = [conversation.turns_by_id[turn_id] for turn_id in question.evidence or ()]
        yield from _evidence_errors(question, evidence, place)
    style = option_style(conversation.questions)
    if style is not None and style.blind_guesser > MOST_GUESSED:
        yield draft.place.at("recallQuestions").error(
            f"have options of which a guesser that sees nothing else picks {whole_share(style.blind_guesser)}"
            " correctly",
            f"at most {whole_share(MOST_GUESSED)}",
        )


def _missing_fields(question: RecallQuestion, place: Place) -> Errors:
    if question.type is None:
        yield place.at("type").error("is missing", ", ".join(QUESTION_TYPES))
    if question.evidence is None:
        yield place.at("evidence").error("is missing", "the ids of the evidence turns")
    if question.salience_level is None:
        yield place.at("salienceLevel").error("is missing", "high, medium or low")
    options = question.options or []
    if len(options) != OPTIONS:
        yield place.at("options").error(f"has {entries(len(options))}", f"{OPTIONS} options")
    elif NOT_ANSWERABLE not in options:
        yield place.at("options").error(f"lacks {shown(NOT_ANSWERABLE)}", "this option in every question")


def _evidence_errors(question: RecallQuestion, evidence: Sequence[Turn], place: Place) -> Errors:
    if question.type == ADVERSARIAL or not evidence:
        return
    if not question.expected_entities:
        yield place.at("expectedEntities").error("is empty", "strings that a correct answer must contain")
    if question.type in _SAID_LITERALLY:
        for index, entity in enumerate(question.expected_entities):
            if not any(occurs_in(entity, turn.text) for turn in evidence):
                yield place.at("expectedEntities", index).error(
                    f"is {shown(entity)}, which does not occur in the evidence",
                    f"words of turn {' or '.join(turn.id for turn in evidence)}",
                )
    if question.type == "update" and not question.supersedes:
        yield place.at("supersedes").error("is missing", "the values that were right before")
    if question.type == "multi_session" and len({turn.session for turn in evidence}) < 2:
        yield place.at("evidence").error("lies in one session", "turns of at least two sessions")
    if question.type == "assistant_said" and all(turn.role == "user" for turn in evidence):
        yield place.at("evidence").error("names only turns of the user", "a turn of the assistant")
