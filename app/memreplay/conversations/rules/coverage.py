"""Coverage of a set of conversations: questions and key turns, counted by pairs of properties.

An empty cell is a combination that no question tests yet, so it suggests what to write next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import get_args

from memreplay.conversations.formats.test_conversation import MULTIPLE_CHOICE_SUFFIX, bands_of, location_in
from memreplay.conversations.formats.test_conversation_fields import QUESTION_TYPES
from memreplay.conversations.models import Conversation, InfoLocation, KeyInfoType, Question, Salience, Turn

UNKNOWN = "–"
"""The value if the dataset does not name one."""


@dataclass(frozen=True)
class Covered:
    """The properties of a question or key turn."""

    category: str
    key_info: str
    position: str
    salience: str
    language: str
    asks: str = UNKNOWN


@dataclass(frozen=True)
class Cell:
    """Counts of one cell of a table."""

    questions: int
    key_turns: int


@dataclass(frozen=True)
class CoverageTable:
    """Counts by two properties: ``cells[row][column]``, including empty cells."""

    rows: str
    columns: str
    cells: dict[str, dict[str, Cell]]

    def empty(self) -> list[tuple[str, str]]:
        """Return the rows and columns of the cells without a question."""
        return [
            (row, column)
            for row, cells in self.cells.items()
            for column, cell in cells.items()
            if not cell.questions
        ]


_Property = Callable[[Covered], str]

_PROPERTIES: dict[str, tuple[_Property, tuple[str, ...]]] = {
    "category": (lambda covered: covered.category, ("identity", "technical", "multi")),
    "key info": (lambda covered: covered.key_info, get_args(KeyInfoType)),
    "position": (lambda covered: covered.position, get_args(InfoLocation)),
    "salience": (lambda covered: covered.salience, get_args(Salience)),
    "language": (lambda covered: covered.language, ()),
    "question type": (lambda covered: covered.asks, QUESTION_TYPES),
}
"""Each property with its reader, and the values that are listed even if nothing has them."""

_PAIRS = (
    ("category", "key info"),
    ("category", "position"),
    ("category", "salience"),
    ("category", "language"),
    ("key info", "position"),
    ("key info", "salience"),
    ("salience", "position"),
    ("language", "key info"),
    ("question type", "position"),
    ("question type", "salience"),
)


@dataclass(frozen=True)
class Coverage:
    """The tables, and the number of conversations with each tag."""

    tables: tuple[CoverageTable, ...]
    tags: dict[str, int]


def coverage_of(conversations: Iterable[Conversation]) -> Coverage:
    """Count the questions, key turns and tags of the conversations.

    A question that is asked as recall and as multiple choice counts once.
    """
    questions: list[Covered] = []
    key_turns: list[Covered] = []
    tags: Counter[str] = Counter()
    for conversation in conversations:
        tags.update(set(conversation.tags))
        ids = {question.id for question in conversation.questions}
        questions.extend(
            _of_question(question, conversation)
            for question in conversation.questions
            if question.id.removesuffix(MULTIPLE_CHOICE_SUFFIX) == question.id
            or question.id.removesuffix(MULTIPLE_CHOICE_SUFFIX) not in ids
        )
        key_turns.extend(_of_key_turns(conversation))
    tables = tuple(_table(rows, columns, questions, key_turns) for rows, columns in _PAIRS)
    return Coverage(tables, dict(sorted(tags.items())))


def _table(rows: str, columns: str, questions: list[Covered], key_turns: list[Covered]) -> CoverageTable:
    def key(covered: Covered) -> tuple[str, str]:
        return _PROPERTIES[rows][0](covered), _PROPERTIES[columns][0](covered)

    asked, marked = Counter(map(key, questions)), Counter(map(key, key_turns))
    found = asked.keys() | marked.keys()
    row_values = _values(rows, {row for row, _ in found})
    column_values = _values(columns, {column for _, column in found})
    return CoverageTable(
        rows,
        columns,
        {
            row: {column: Cell(asked[row, column], marked[row, column]) for column in column_values}
            for row in row_values
        },
    )


def _values(name: str, found: set[str]) -> list[str]:
    """Return the known values first, then the others that were found, then unknown."""
    known = _PROPERTIES[name][1]
    others = sorted(found - set(known) - {UNKNOWN})
    return [*known, *others, *([UNKNOWN] if UNKNOWN in found else [])]


def _category(conversation: Conversation) -> str:
    """Return the prefix of the id of a conversation with its own file; else the dataset."""
    in_its_own_file = conversation.id == conversation.dataset
    return conversation.id.partition("-")[0] if in_its_own_file else conversation.dataset


def _of_question(question: Question, conversation: Conversation) -> Covered:
    """Return a question tests what its last evidence turn contains."""
    evidence = sorted((conversation.turns_by_id[turn] for turn in question.evidence), key=lambda turn: turn.number)
    marks = [turn.key_info for turn in evidence if turn.key_info is not None]
    return Covered(
        category=_category(conversation),
        key_info=(marks[-1].key_info_type if marks else None) or UNKNOWN,
        position=question.info_location or (_position(evidence[-1], conversation) if evidence else UNKNOWN),
        salience=question.salience or UNKNOWN,
        language=conversation.language or UNKNOWN,
        asks=question.type if question.type in QUESTION_TYPES else UNKNOWN,
    )


def _of_key_turns(conversation: Conversation) -> Iterator[Covered]:
    for turn in conversation.turns:
        if turn.key_info is not None and turn.key_info.contains_key_info:
            yield Covered(
                category=_category(conversation),
                key_info=turn.key_info.key_info_type or UNKNOWN,
                position=_position(turn, conversation),
                salience=turn.key_info.salience or UNKNOWN,
                language=conversation.language or UNKNOWN,
            )


def _position(turn: Turn, conversation: Conversation) -> str:
    return location_in(bands_of(conversation), turn.number)
