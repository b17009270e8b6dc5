"""The rules of design of one TestConversation: its shape, its marks, its name.

Edge cases (in a folder ``edge``, or with that tag) are free in length and in the number of their questions. A rule
that rests on a part which cannot be read waits until that part is mended.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import get_args

from app.conversations.draft import Draft
from app.conversations.faults import entries, shown
from app.conversations.languages import is_known_language
from app.conversations.models import InfoLocation, KeyInfoType, Salience
from app.conversations.normalise import normalised
from app.errors import DatasetError

Faults = Iterator[DatasetError]
Rule = Callable[[Draft], Faults]

TURNS = range(12, 21)
QUESTIONS_BY_LOCATION: dict[InfoLocation, int] = {"early": 2, "middle": 2, "recent": 1}
LEAST_WORDS = 400
TAGS = {
    "correction": "a value is put right later",
    "same_first_name": "two people with the same first name",
    "near_number": "a number that resembles another",
    "in_passing": "a tested fact that is only touched on",
    "instruction": "a standing instruction",
    "assistant_error": "the assistant was wrong and is put right",
    "edge": "an edge case, free in length and number of questions",
}
"""The tags in use, and what each marks."""

_EDGE = "edge"
_ID = re.compile(r"[a-z]+(_[a-z]+)*-\d{2,}")
_EDGE_ID = re.compile(r"[a-z0-9_]+(-[a-z0-9_]+)+")


def is_edge_case(draft: Draft) -> bool:
    """Whether the rules on length and on the number of questions do not bind it."""
    return draft.path.parent.name == _EDGE or _EDGE in draft.tags


def shape_faults(draft: Draft) -> Faults:
    """Faults of the number and the order of turns and questions."""
    rules: tuple[Rule, ...] = (_roles, _mixed_saliences)
    if not is_edge_case(draft):
        rules = (_number_of_turns, _number_of_words, _number_of_questions, *rules)
    for rule in rules:
        yield from rule(draft)


def _number_of_turns(draft: Draft) -> Faults:
    if draft.turns and len(draft.turns) not in TURNS:
        expected = f"{TURNS.start} to {TURNS.stop - 1} turns"
        yield draft.place.at("turns").fault(f"has {entries(len(draft.turns))}", expected)


def _number_of_words(draft: Draft) -> Faults:
    turns = draft.all_turns()
    if turns:
        words = sum(len(turn.content.split()) for turn in turns)
        if words < LEAST_WORDS:
            yield draft.place.at("turns").fault(f"holds {words} words", f"at least {LEAST_WORDS}")


def _number_of_questions(draft: Draft) -> Faults:
    place = draft.place.at("recallQuestions")
    wanted = sum(QUESTIONS_BY_LOCATION.values())
    if draft.questions and len(draft.questions) != wanted:
        yield place.fault(f"has {entries(len(draft.questions))}", f"{wanted} questions")
        return
    asked = Counter(question.info_location for _, question in draft.sound_questions())
    if asked.total() == wanted and asked != QUESTIONS_BY_LOCATION:
        yield place.fault(f"asks of {_by_location(asked)}", _by_location(QUESTIONS_BY_LOCATION))


def _by_location(counts: dict[InfoLocation, int]) -> str:
    return ", ".join(f"{counts.get(location, 0)} {location}" for location in QUESTIONS_BY_LOCATION)


def _roles(draft: Draft) -> Faults:
    previous = "assistant"
    for index, turn in enumerate(draft.turns):
        if turn is None:
            previous = "user" if previous == "assistant" else "assistant"
            continue
        if turn.role == previous:
            first = index == 0
            problem = f"is {shown(turn.role)}" + ("" if first else ", as before it")
            expected = '"user": the user speaks first' if first else "the roles to alternate"
            yield draft.turn_place(index).at("role").fault(problem, expected)
        previous = turn.role


def _mixed_saliences(draft: Draft) -> Faults:
    """A conversation with a single key turn has nothing to mix."""
    saliences = [question.salience_level for _, question in draft.sound_questions()]
    key_turns = sum(turn.metadata is not None for _, turn in draft.sound_turns())
    if key_turns > 1 and len(saliences) > 1 and len(saliences) == len(draft.questions) and len(set(saliences)) == 1:
        yield draft.place.at("recallQuestions").fault(
            f"are all of salienceLevel {shown(saliences[0])}", "a mix of at least two levels"
        )


def metadata_faults(draft: Draft) -> Faults:
    """Faults of the marks on key turns, and turns that are blank."""
    for index, turn in draft.sound_turns():
        place = draft.turn_place(index)
        if not turn.content.strip():
            yield place.at("content").fault("is blank", "what was said")
        if turn.metadata is None:
            continue
        inside = place.at("metadata")
        if not turn.metadata.contains_key_info:
            yield inside.at("containsKeyInfo").fault(
                "is false", "no metadata on a turn without testable information"
            )
            continue
        if turn.metadata.key_info_type is None:
            yield inside.at("keyInfoType").fault("is missing", _one_of(get_args(KeyInfoType)))
        if turn.metadata.salience_level is None:
            yield inside.at("salienceLevel").fault("is missing", _one_of(get_args(Salience)))


def _one_of(values: tuple[str, ...]) -> str:
    return ", ".join(values[:-1]) + f" or {values[-1]}"


def name_faults(draft: Draft) -> Faults:
    """Faults of id, language and tags."""
    if draft.id is not None:
        place = draft.place.at("id")
        pattern, example = (_EDGE_ID, "edge-name") if is_edge_case(draft) else (_ID, "category-NN")
        if draft.id != draft.path.stem:
            yield place.fault(
                f"is {shown(draft.id)}", f"{shown(draft.path.stem)}, the file's name without its ending"
            )
        elif not pattern.fullmatch(draft.id):
            yield place.fault(f"is {shown(draft.id)}", f"an id of the form {example}")
    if draft.language is not None and not is_known_language(draft.language):
        yield draft.place.at("language").fault(f"is {shown(draft.language)}", 'a known language tag such as "en"')
    for index, tag in enumerate(draft.tags):
        place = draft.place.at("tags", index)
        if tag not in TAGS:
            yield place.fault(f"is {shown(tag)}", ", ".join(TAGS))
        elif tag in draft.tags[:index]:
            yield place.fault(f"is {shown(tag)} again", "every tag once")


def question_faults(draft: Draft) -> Faults:
    """Questions that are asked twice or are blank."""
    asked: dict[str, int] = {}
    for index, question in draft.sound_questions():
        place = draft.question_place(index).at("question")
        words = normalised(question.question)
        if not words:
            yield place.fault("is blank", "a question")
        elif asked.setdefault(words, index) != index:
            yield place.fault(f"is the question of /recallQuestions/{asked[words]} again", "every question once")
