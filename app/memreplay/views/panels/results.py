"""The results: a matrix of questions and systems, the scores above it, and the selected question in full below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, get_args

from memory_backends.controls import CONTROLS
from memreplay.conversations.models import InfoLocation, Question, Salience
from memreplay.numbers import number, whole_share
from memreplay.scoring import BREAKDOWNS, By, type_words, without
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.groups import UncertainGrades, uncertain_of
from memreplay.scoring.retrieval import only_distil
from memreplay.scoring.verdicts import LABELS, VERDICTS, Label
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.views.document import Selectable
from memreplay.views.panels.answers import (
    AnswersTable,
    Attributed,
    Labels,
    ListedQuestion,
    System,
    is_wrong,
    label_tone,
    place_of,
    stage_chip,
    stage_sign,
)
from memreplay.views.table import Cell, Column, Table, as_lines
from memreplay.views.text import Line, Row, Span, cells, clip, line, one_line, pad, visible

QuestionKey = tuple[str, str]
"""The ids of a conversation and of a question in it."""

ALL: Final = "all"
DISAGREEMENT: Final = "disagreement"
NOT_RIGHT: Final = "not right"
NUMBER: Final = "number"
MOST_WRONG: Final = "wrong answers"
QUESTION: Final = "question"


@dataclass
class ResultsChoice:
    """The user's filter, order and selection; it outlives the screen.

    ``filter`` is one of :meth:`Matrix.filters`, and ``words`` must all occur in a question; ``sort`` is one of
    :meth:`Matrix.sort_columns`. ``breakdown`` counts through the tables above the matrix. ``column`` is the chosen
    system; None follows the first wrong answer of each question.
    """

    filter: str = ALL
    words: str = ""
    sort: str = NUMBER
    descending: bool = False
    breakdown: int = 0
    question: QuestionKey | None = None
    column: int | None = None

    @property
    def narrows(self) -> bool:
        return self.filter != ALL or bool(self.words)

    @property
    def in_short(self) -> str:
        """Return the filter and the words, as in a title."""
        parts = [self.filter if self.filter != ALL else "", f"“{one_line(self.words)}”" if self.words else ""]
        return " · ".join(part for part in parts if part)


def labels_of(timeline: Timeline, table: AnswersTable) -> Labels:
    """Return the failure label of each answer. Slow: it reads every event."""
    attributor = Attributor(timeline)
    found = {place_of(answer): attributor.attribute(answer) for answer in table.all_answers()}
    return {
        key: Attributed(one.label, one.doubt is not None)
        for key, one in found.items()
        if one is not None and one.label is not None
    }


def key_of_question(listed: ListedQuestion) -> QuestionKey:
    return listed.conversation, listed.question.id


class Matrix:
    """The answers of a table with their failure labels, which may be partial while attribution is running."""

    def __init__(self, table: AnswersTable, labels: Labels | None = None) -> None:
        self.table = table
        self.labels = labels or {}
        self.numbers = {listed: number for number, listed in enumerate(table.questions, start=1)}
        self.conversations = tuple(dict.fromkeys(listed.conversation for listed in table.questions))
        self._texts: dict[ListedQuestion, str] = {}

    def label(self, answer: Answer | None) -> Label | None:
        known = None if answer is None else self.labels.get(place_of(answer))
        return None if known is None else known.label

    def doubt_sign(self, answer: Answer | None) -> str:
        """Return what follows the letter of an answer: ``~`` if its verdict is uncertain, else a blank."""
        known = None if answer is None else self.labels.get(place_of(answer))
        return "~" if known is not None and known.is_uncertain else " "

    @cached_property
    def memories(self) -> frozenset[int]:
        """Return the columns of memories; those of the controls if only they were asked."""
        systems = self.table.systems
        found = frozenset(at for at, system in enumerate(systems) if system.backend not in CONTROLS)
        return found or frozenset(range(len(systems)))

    # ---- filtering and sorting -----------------------------------------------------------------------------

    def filters(self) -> list[tuple[str, int]]:
        """Return all filters that let a question through, with how many: by outcome, then by failure label."""
        labels = Counter(
            label
            for listed in self.table.questions
            for label in {self.label(answer) for answer in self._of_memories(listed)}
        )
        by_outcome = (ALL, DISAGREEMENT, NOT_RIGHT)
        counts = [(name, sum(self._passes(listed, name) for listed in self.table.questions)) for name in by_outcome]
        return [*counts, *((label, labels[label]) for label in LABELS if labels[label])]

    def select(self, choice: ResultsChoice) -> tuple[ListedQuestion, ...]:
        """Return the questions that pass the filter, sorted."""
        words = choice.words.casefold().split()
        chosen = [
            listed
            for listed in self.table.questions
            if self._passes(listed, choice.filter) and all(word in self._text(listed) for word in words)
        ]
        return tuple(sorted(chosen, key=self._sort_key(choice.sort), reverse=choice.descending))

    def wanted(self, choice: ResultsChoice, listed: ListedQuestion, column: int) -> bool:
        """Return whether the filter asks for an answer: it has the label, or a memory got it wrong.

        Words such as ``rag:cut`` ask for answers of rag alone.
        """
        system = self.table.systems[column]
        answer = self.table.answer(listed, system)
        verdicts = [word for word in choice.words.casefold().split() if ":" in word]
        if verdicts and not any(word in self._verdict(system, answer) for word in verdicts):
            return False
        if choice.filter in LABELS:
            return self.label(answer) == choice.filter
        return column in self.memories and is_wrong(answer)

    def first_wanted(self, choice: ResultsChoice, listed: ListedQuestion) -> int:
        """Return the column of the first such answer; the first column if there is none."""
        columns = range(len(self.table.systems))
        return next((column for column in columns if self.wanted(choice, listed, column)), 0)

    def sort_columns(self) -> list[str]:
        """Return the names of the orders of the questions."""
        several = ["conversation"] if len(self.conversations) > 1 else []
        return [NUMBER, *several, *self.fields, MOST_WRONG, *self.systems_by_name, QUESTION]

    @cached_property
    def systems_by_name(self) -> dict[str, System]:
        return {self.table.name_of(system): system for system in self.table.systems}

    @cached_property
    def fields(self) -> list[By]:
        """Return the fields that any question has."""
        return [name for name in BREAKDOWNS if any(field_of(listed, name) for listed in self.table.questions)]

    def _sort_key(self, name: str) -> Callable[[ListedQuestion], Any]:
        """Return the key by which questions are sorted; questions with equal keys keep the order of the dataset."""
        if name in self.systems_by_name:
            system = self.systems_by_name[name]
            return lambda listed: self._severity(self.table.answer(listed, system))
        for field in BREAKDOWNS:
            if name == field:
                return lambda listed: rank_of_value(field_of(listed, field))
        match name:
            case "conversation":
                return lambda listed: listed.conversation
            case "question":
                return lambda listed: listed.question.text.casefold()
            case "wrong answers":
                return lambda listed: -sum(map(is_wrong, self._of_memories(listed)))
            case _:
                return self.numbers.__getitem__

    def _severity(self, answer: Answer | None) -> int:
        """Labels in their own order, the earliest stage first; right answers follow, and missing ones are last."""
        if answer is None or answer.scored is None:
            return 2 * len(LABELS)
        label = self.label(answer)
        if label is None:
            return len(LABELS) if not is_wrong(answer) else len(LABELS) - 1
        return LABELS.index(label)

    def _passes(self, listed: ListedQuestion, name: str) -> bool:
        answers = self._of_memories(listed)
        match name:
            case "all":
                return True
            case "disagreement":
                return len({is_wrong(answer) for answer in answers}) > 1
            case "not right":
                return any(map(is_wrong, answers))
            case _:
                return any(self.label(answer) == name for answer in answers)

    def _of_memories(self, listed: ListedQuestion) -> list[Answer]:
        """Return the scored answers of the memories."""
        answers = (self.table.answer(listed, self.table.systems[column]) for column in self.memories)
        return [answer for answer in answers if answer is not None and answer.scored is not None]

    def _verdict(self, system: System, answer: Answer | None) -> str:
        """``rag:cut``: the system with its label or outcome, folded."""
        if answer is None:
            return ""
        outcome = answer.scored.score.outcome if answer.scored is not None else "pending"
        return f"{self.table.name_of(system)}:{self.label(answer) or outcome}".casefold()

    def _text(self, listed: ListedQuestion) -> str:
        """Return the text that a filter's words are looked for in: ``rag:cut`` finds what rag cut."""
        if listed not in self._texts:
            question = listed.question
            verdicts = [self._verdict(system, self.table.answer(listed, system)) for system in self.table.systems]
            fields = [field_of(listed, name) for name in BREAKDOWNS]
            parts = [question.text, question.expected, question.id, listed.conversation, *fields, *verdicts]
            self._texts[listed] = "\n".join(parts).casefold()
        return self._texts[listed]


_FIELDS: Final[Mapping[By, Callable[[Question], str | None]]] = {
    "type": lambda question: type_words(question.type, question.other_type),
    "category": lambda question: question.category,
    "location": lambda question: question.info_location,
    "salience": lambda question: question.salience,
}
_ORDERED: Final = {name: place for place, name in enumerate((*get_args(InfoLocation), *get_args(Salience)))}


def field_of(listed: ListedQuestion, name: By) -> str:
    """Return a field of a question in words; empty if the dataset does not have it."""
    return _FIELDS[name](listed.question) or ""


def rank_of_value(value: str) -> tuple[int, str]:
    """Sort key of the values of a field: early, middle, recent; high, medium, low; all others by name."""
    return _ORDERED.get(value, len(_ORDERED)), value


# ---- the matrix as a document ------------------------------------------------------------------------------

_NARROW_CELL = 3
_WIDEST_CELL = 14
_MOST_OF_TEXT = 0.45
_ROOM_FOR_A_QUESTION = 64
"""Cells of a question that are worth more than the names of memories above their letters."""
"""The share of a row that is kept for the question itself."""


@dataclass(frozen=True)
class _Widths:
    """The widths of the columns in cells; 0 hides one."""

    number: int
    conversation: int
    type: int
    cell: int


class MatrixDocument(Selectable):
    """A row per question. ``column`` is the selected system in the selected row."""

    def __init__(self, matrix: Matrix, questions: Sequence[ListedQuestion]) -> None:
        super().__init__()
        self.matrix = matrix
        self.questions = tuple(questions)
        self.column = 0
        self._places = {listed: place for place, listed in enumerate(self.questions)}
        self._drawn = lru_cache(maxsize=512)(self._draw)
        self._widths_at = lru_cache(maxsize=8)(self._widths)

    def __len__(self) -> int:
        return len(self.questions)

    def rows(self, index: int, width: int) -> Sequence[Row]:
        return (self._drawn(index, width, self.column if index == self.cursor else None),)

    @property
    def selected_question(self) -> ListedQuestion | None:
        """Return the selected question; None if the filter lets none through."""
        return self.questions[self.cursor] if self.questions else None

    @property
    def selected_answer(self) -> Answer | None:
        listed, systems = self.selected_question, self.matrix.table.systems
        return self.matrix.table.answer(listed, systems[self.column]) if listed is not None and systems else None

    def place_of(self, key: QuestionKey | None) -> int:
        """Return the row of a question; the first row if it is not shown."""
        return next((place for listed, place in self._places.items() if key_of_question(listed) == key), 0)

    def heading(self, width: int, choice: ResultsChoice) -> Line:
        """Return the names of the columns, with an arrow at the one that they are sorted by."""
        widths = self._widths_at(width)
        arrow = "▼" if choice.descending else "▲"

        def name(text: str, sort: str, size: int) -> Span:
            sorted_by_it = sort == choice.sort
            shown = f"{arrow}{text}" if sorted_by_it else text
            return Span(pad(shown, size), "accent" if sorted_by_it else "dim")

        spans = [Span("  "), name("", NUMBER, widths.number), Span(" ")]
        if widths.conversation:
            short = "from" if widths.conversation < len("conversation") else "conversation"
            spans += [name(short, "conversation", widths.conversation), Span(" ")]
        if widths.type:
            spans += [name("type", "type", widths.type), Span(" ")]
        for place, system in enumerate(self.matrix.table.systems, start=1):
            full = self.matrix.table.name_of(system)
            short = str(place) if widths.cell == _NARROW_CELL else f"{place} {full}"
            shown = name(short.center(widths.cell) if widths.cell == _NARROW_CELL else short, full, widths.cell)
            spans += [shown, Span(" ")]
        hidden = choice.sort not in (NUMBER, "conversation", "type", QUESTION, *self.matrix.systems_by_name)
        spans.append(name("question", QUESTION, 10))
        spans.append(Span(f"{arrow} sorted by {choice.sort}" if hidden else "", "accent"))
        return Line(tuple(spans), most=1)

    def _widths(self, width: int) -> _Widths:
        table = self.matrix.table
        number = len(str(len(table.questions))) + 1
        left = width - number - 3 - int(width * _MOST_OF_TEXT)
        longest = max((cells(table.name_of(system)) for system in table.systems), default=0)
        count = max(len(table.systems), 1)
        several = len(self.matrix.conversations) > 1
        types = max((cells(one_line(listed.question.type)) for listed in table.questions), default=0)
        type_width = min(types, 18 if width >= 110 else 10)
        names = max(map(cells, self.matrix.conversations), default=0)
        conversation = min(names, 14 if width >= 110 else 8) if several else 0
        room = left - (type_width + 1) - (conversation + 1 if conversation else 0)
        # The scores above name the architectures by number: a number says more than the beginning of a name.
        cell = min(longest + 2, _WIDEST_CELL)
        longest_question = max((cells(one_line(one.question.text)) for one in table.questions), default=0)
        left_for_it = width - number - 3 - (type_width + 1) - (conversation + 1 if conversation else 0)
        if left_for_it - count * (cell + 1) < min(longest_question, _ROOM_FOR_A_QUESTION):
            cell = _NARROW_CELL
        if room < count * (cell + 1) and cell == _NARROW_CELL:
            conversation = 0 if width < 60 else conversation
            type_width = 0
        return _Widths(number, conversation, type_width, cell)

    def _draw(self, index: int, width: int, column: int | None) -> Row:
        listed, widths = self.questions[index], self._widths_at(width)
        here = column is not None
        spans = [
            Span("▶ " if here else "  ", "accent"),
            Span(f"{self.matrix.numbers[listed]:>{widths.number}} ", "dim"),
        ]
        if widths.conversation:
            spans.append(Span(pad(one_line(listed.conversation), widths.conversation) + " ", "dim"))
        if widths.type:
            spans.append(Span(pad(one_line(listed.question.type), widths.type) + " ", "title"))
        for place, system in enumerate(self.matrix.table.systems):
            spans += self._cell(listed, system, widths.cell, chosen=place == column)
        if self.matrix.table.by_choice:
            spans.append(Span("≡ " if listed.question.choices else "  ", "key"))
        room = width - sum(cells(span.text) for span in spans)
        spans.append(Span(clip(one_line(listed.question.text), room), "strong" if here else "plain"))
        return Row(tuple(spans), "current" if here else None)

    def _cell(self, listed: ListedQuestion, system: System, width: int, *, chosen: bool) -> list[Span]:
        """Return the letter of a cell in brackets if it is selected, so that the selection needs no colour."""
        answer = self.matrix.table.answer(listed, system)
        letter, tone = stage_sign(answer, self.matrix.label(answer))
        if tone == "lost" and system.backend in CONTROLS:
            tone = "dim"  # no memory lost anything
        doubt = self.matrix.doubt_sign(answer)
        left = (width - 3) // 2
        after = " " * (width - 3 - left)
        if chosen:
            return [Span(" " * left), Span(f"[{letter}]", tone), Span(f"{doubt}{after}")]
        return [Span(" " * left), Span(f" {letter}{doubt}", tone), Span(f"{after} ")]


# ---- the scores above the matrix, and the selected question in full below it ------------------------------------


_ROOM_FOR_RECALL = 100
"""Cells of the width from which on recall at k and the tokens of memory in a prompt have a column."""


@dataclass(frozen=True)
class Tally:
    """Answers by outcome and by stage. An error is no answer: ``graded`` leaves it out.

    Shares and means are None if there was nothing to divide by. ``context_tokens`` is the mean number of tokens of
    memory in a prompt, ``recall`` the mean recall at ten hits.
    """

    total: int
    errors: int
    correct: int
    unparsed: int
    uncertain: UncertainGrades | None
    stages: Counter[Label]
    evidence_in_prompt: float | None
    recall: float | None
    context_tokens: float | None

    @property
    def graded(self) -> int:
        return self.total - self.errors

    @property
    def right(self) -> str:
        """``41/60 (9 uncertain: 36 to 45)``."""
        return self._right + (f" ({self.uncertain})" if self.uncertain else "")

    @property
    def right_in_short(self) -> str:
        """``41/60 (36–45)``."""
        return self._right + (f" ({self.uncertain.right[0]}–{self.uncertain.right[1]})" if self.uncertain else "")

    @property
    def _right(self) -> str:
        return f"{self.correct}/{self.graded}"

    @property
    def accuracy(self) -> float | None:
        return self.correct / self.graded if self.graded else None

    @property
    def lost(self) -> list[tuple[Label, int]]:
        """Return the stages of all answers that are not soundly right, the most frequent first."""
        return [(label, count) for label, count in self.stages.most_common() if VERDICTS[label].standing != "sound"]


def tally(matrix: Matrix, questions: Iterable[ListedQuestion], system: System) -> Tally:
    """Return the scored answers of a system to some questions, with all repeats, as in the results of the run."""
    answers = [answer for listed in questions for answer in matrix.table.repeats(listed, system)]
    scored = [answer for answer in answers if answer.scored is not None]
    outcomes = Counter(answer.scored.score.outcome for answer in scored if answer.scored is not None)
    labels = (matrix.label(answer) for answer in scored)
    # No prompt means that recall failed: that says nothing about what retrieval would have found.
    prompted = [each for each in answers if each.asked.prompt and each.asked.why_empty != "not_recorded"]
    found = [answer.scored.retrieval for answer in prompted if answer.scored is not None]
    of_run = [one for listed in matrix.table.questions for one in matrix.table.repeats(listed, system)]
    if only_distil(hit for one in of_run for hit in one.asked.hits):
        found = []
    return Tally(
        total=len(scored),
        errors=outcomes["error"],
        correct=outcomes["correct"],
        unparsed=outcomes["unparsed"],
        uncertain=uncertain_of(
            (one.scored.score.outcome, one.scored.score.uncertain) for one in scored if one.scored is not None
        ),
        stages=Counter(label for label in labels if label is not None),
        evidence_in_prompt=_mean(one.evidence_in_prompt for one in found if one.evidence_in_prompt is not None),
        recall=_mean(one.recall_at[10] for one in found if one.recall_at),
        context_tokens=_mean(answer.asked.context_tokens for answer in prompted),
    )


def _mean(values: Iterable[float]) -> float | None:
    known: Sequence[float] = list(values)
    return sum(known) / len(known) if known else None


UNCERTAIN_LEGEND: Final = "(1–9) right if none, or all, of the uncertain grades are right"


def has_uncertain(matrix: Matrix) -> bool:
    """Return whether the scores of a matrix have bounds, because some grades are uncertain."""
    answers = (
        answer
        for listed in matrix.table.questions
        for system in matrix.table.systems
        for answer in matrix.table.repeats(listed, system)
    )
    return any(answer.scored is not None and answer.scored.score.uncertain for answer in answers)


Breakdown = By | System | None
"""Scores per system (None), by a field of the questions, or which options a system chose."""


def title_of(matrix: Matrix, by: Breakdown) -> str:
    """Return the title of a breakdown."""
    what = (
        f"options chosen by {matrix.table.name_of(by)}"
        if isinstance(by, System)
        else f"scores by {by or 'architecture'}"
    )
    return f"{what}, all repeats" if matrix.table.has_repeats else what


def breakdowns(matrix: Matrix) -> list[Breakdown]:
    """Return the tables to go through: per system, by each field with several values, then the options that each
    chose.
    """
    several = [
        name for name in matrix.fields if len({field_of(listed, name) for listed in matrix.table.questions}) > 1
    ]
    chosen = [system for system in matrix.table.systems if _choices(matrix, system)] if _has_options(matrix) else []
    return [None, *several, *chosen]


def scores_lines(matrix: Matrix, by: Breakdown, width: int) -> list[Line]:
    """Return the scores of each system or of each group of questions, or how often a system chose which option."""
    if isinstance(by, System):
        return _options_chosen(matrix, by)
    return _by_system(matrix, width) if by is None else _by_group(matrix, by, width)


def _has_options(matrix: Matrix) -> bool:
    return any(listed.question.choices for listed in matrix.table.questions)


def _choices(matrix: Matrix, system: System) -> Counter[tuple[int, int | None]]:
    """Return how often which option was chosen, by the right one; None for a reply without a readable choice."""
    given = (
        (listed.question.correct_index, answer)
        for listed in matrix.table.questions
        if listed.question.choices
        for answer in matrix.table.repeats(listed, system)
    )
    return Counter(
        (right, answer.scored.score.predicted_index)
        for right, answer in given
        if right is not None and answer.scored and answer.scored.score.outcome != "error"
    )


def _options_chosen(matrix: Matrix, system: System) -> list[Line]:
    """Return a row for each right option, a column for each chosen one, and one for replies without a readable
    choice.
    """
    counts = _choices(matrix, system)
    size = max(len(listed.question.choices) for listed in matrix.table.questions)
    rows = [
        [
            Span(str(right), "strong"),
            *(_count(counts[right, chosen], chosen == right) for chosen in (*range(size), None)),
        ]
        for right in range(size)
    ]
    return as_lines(Table.of("", ("right \\ chosen", *map(str, range(size)), "none"), rows))


def _count(count: int, right: bool) -> Span:
    return Span(str(count or "·"), "dim" if not count else "good" if right else "bad")


def _by_system(matrix: Matrix, width: int) -> list[Line]:
    """Return one line per system: right answers, accuracy, evidence in the prompt, and what was lost at each
    stage.
    """
    table = matrix.table
    tallies = [(system, tally(matrix, table.questions, system)) for system in table.systems]
    used = [
        label
        for label in LABELS
        if VERDICTS[label].standing != "sound" and any(each.stages[label] for _, each in tallies)
    ]
    is_wide = width >= _ROOM_FOR_RECALL
    right = [each.right if is_wide else each.right_in_short for _, each in tallies]
    most = max(12, width - 26 - max(map(len, right), default=0) - 6 * len(used))
    unscored = any(each.unparsed for _, each in tallies) and not used
    columns = [Column(""), Column("architecture", align="left"), Column("right"), Column("acc"), Column("evidence")]
    # Hits differ in size: what a prompt holds and recall at k are read beside the tokens that they took.
    columns += [Column("context"), Column(f"recall@{table.cutoff}")] if is_wide else []
    columns += [Column(VERDICTS[label].letter, tone="strong") for label in used]
    columns += [Column("errors")] if not used else []
    columns += [Column("unparsed")] if unscored else []
    rows = []
    for place, ((system, each), in_words) in enumerate(zip(tallies, right, strict=True), start=1):
        row: list[Cell] = [Span(str(place), "dim"), Span(clip(table.name_of(system), most), "strong"), in_words]
        row += [Span(whole_share(each.accuracy), "value"), whole_share(each.evidence_in_prompt)]
        row += [number(each.context_tokens), whole_share(each.recall)] if is_wide else []
        row += [Span(str(each.stages[label] or "·"), "bad" if each.stages[label] else "dim") for label in used]
        row += [Span(str(each.errors), "bad" if each.errors else "dim")] if not used else []
        row += [Span(str(each.unparsed), "warn" if each.unparsed else "dim")] if unscored else []
        rows.append(row)
    return as_lines(Table("", columns, rows))


_WIDEST_GROUP = 34
"""Cells for the name of a group: room for both names of every LoCoMo category."""


def _by_group(matrix: Matrix, by: By, width: int) -> list[Line]:
    """Return one line per group: the accuracy of each system, and the stages at which it lost most."""
    table = matrix.table
    groups: dict[str, list[ListedQuestion]] = {}
    for listed in table.questions:
        groups.setdefault(field_of(listed, by) or without(by), []).append(listed)
    order = sorted(groups, key=lambda name: (name == without(by), rank_of_value(name)))
    names = min(max(cells(one_line(name)) for name in (by, *order)), _WIDEST_GROUP)
    column = max(8, (width - names - 8) // max(len(table.systems), 1))
    heads = [
        Span(f" {pad(f'{place} {table.name_of(system)}', column - 1)}", "strong")
        for place, system in enumerate(table.systems, start=1)
    ]
    lines = [line(Span(f"{pad(by, names)}      n ", "dim"), *heads, most=1)]
    for name in order:
        parts = [Span(pad(one_line(name), names), "title"), Span(f" {len(groups[name]):>6} ", "dim")]
        for system in table.systems:
            parts += _compact(tally(matrix, groups[name], system), column)
        lines.append(line(*parts, most=1))
    return lines


def _compact(each: Tally, width: int) -> list[Span]:
    """Return ``30% R12 M4`` in exactly ``width`` cells; an ellipsis stands for stages that do not fit."""
    shown = f" {whole_share(each.accuracy):>5}"
    chips = [f" {stage_chip(label)[0]}{count}" for label, count in each.lost]
    cuts = ("".join(chips[:most]) + " …" * (most < len(chips)) for most in range(len(chips), -1, -1))
    stages = next((text for text in cuts if cells(shown + text) <= width), "")
    return [Span(shown, "value"), Span(pad(stages, width - cells(shown)), "bad")]


def question_details(matrix: Matrix, listed: ListedQuestion, column: int, *, roomy: bool) -> list[Line]:
    """Return a whole question: its text, the expected answer, and each system's verdict and reply."""
    question = listed.question
    whose = f"{one_line(listed.conversation)} · " if len(matrix.conversations) > 1 else ""
    fields = " · ".join(
        f"{name} {one_line(field_of(listed, name))}" for name in BREAKDOWNS if field_of(listed, name)
    )
    lines = [
        line(
            Span(f"{matrix.numbers[listed]}. {whose}", "dim"),
            Span(one_line(question.text), "strong"),
            Span(f"  {fields}", "dim"),
            most=3 if roomy else 2,
        ),
        line(Span("expected ", "dim"), Span(one_line(question.expected), "value"), hang=9, most=2 if roomy else 1),
    ]
    names = max((cells(matrix.table.name_of(system)) for system in matrix.table.systems), default=0)
    for place, system in enumerate(matrix.table.systems):
        lines.append(_answer_line(matrix, listed, system, names, chosen=place == column, most=2 if roomy else 1))
    return lines


def _answer_line(
    matrix: Matrix, listed: ListedQuestion, system: System, width: int, *, chosen: bool, most: int
) -> Line:
    answer = matrix.table.answer(listed, system)
    label = matrix.label(answer)
    letter, tone = stage_sign(answer, label)
    sign = f" {letter}{matrix.doubt_sign(answer)}"
    words = [Span(f" {VERDICTS[label].words}", label_tone(label))] if label is not None else []
    said = _said(answer)
    return line(
        Span("▸" if chosen else " ", "accent"),
        Span(sign, "dim" if tone == "lost" and system.backend in CONTROLS else tone),
        Span(f" {pad(matrix.table.name_of(system), width)}", "accent" if chosen else "key"),
        *words,
        Span("" if label is not None else _evidence(answer), "dim"),
        Span("  " if said.text else ""),
        said,
        hang=6,
        most=most,
    )


def _evidence(answer: Answer | None) -> str:
    if answer is None:
        return " not asked"
    if answer.scored is None:
        return " not answered yet" if answer.received is None else " not scored yet"
    complete = answer.scored.retrieval.evidence_in_prompt
    if complete is None or answer.asked.backend in CONTROLS:
        return ""
    return " evidence in the prompt" if complete else " evidence missing from the prompt"


def _said(answer: Answer | None) -> Span:
    if answer is None or answer.received is None:
        return Span("")
    reply = answer.received.reply
    if answer.error is not None:
        return Span(one_line(answer.error), "bad")
    predicted = answer.scored.score.predicted if answer.scored else None
    said = visible(predicted or reply.text or "").replace("\n", " ⏎ ")
    return Span(f"“{said}”" if said else "no words")
