"""Around the results matrix: the scores above it, per system or group, and the selected question in full below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_backends.controls import CONTROLS
from memreplay.numbers import number, whole_share
from memreplay.scoring import BREAKDOWNS, By, without
from memreplay.scoring.groups import UncertainGrades, uncertain_of
from memreplay.scoring.verdicts import LABELS, VERDICTS, Label
from memreplay.timeline.timeline import Answer
from memreplay.views.panels.answers import (
    ListedQuestion,
    System,
    label_tone,
    stage_chip,
    stage_sign,
)
from memreplay.views.panels.results import Matrix, field_of, rank_of_value
from memreplay.views.table import Cell, Column, Table, as_lines
from memreplay.views.text import Line, Span, cells, clip, line, one_line, pad, visible

_ROOM_FOR_RECALL = 100
"""Cells of the width from which on recall at k and the tokens of memory in a prompt have a column."""
RIGHT_BY_CHOSEN = "right \\ chosen"


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
        """The stages of all answers that are not soundly right, the most frequent first."""
        return [(label, count) for label, count in self.stages.most_common() if VERDICTS[label].standing != "sound"]


def tally(matrix: Matrix, questions: Iterable[ListedQuestion], system: System) -> Tally:
    """The scored answers of a system to some questions, with all repeats, as in the results of the run."""
    answers = [answer for listed in questions for answer in matrix.table.repeats(listed, system)]
    scored = [answer for answer in answers if answer.scored is not None]
    outcomes = Counter(answer.scored.score.outcome for answer in scored if answer.scored is not None)
    labels = (matrix.label(answer) for answer in scored)
    # No prompt means that recall failed: that says nothing about what retrieval would have found.
    prompted = [answer for answer in answers if answer.asked.prompt]
    found = [answer.scored.retrieval for answer in prompted if answer.scored is not None]
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


Breakdown = By | System | None
"""Scores per system (None), by a field of the questions, or which options a system chose."""


def title_of(matrix: Matrix, by: Breakdown) -> str:
    """What a breakdown shows."""
    what = (
        f"options chosen by {matrix.table.name_of(by)}"
        if isinstance(by, System)
        else f"scores by {by or 'architecture'}"
    )
    return f"{what}, all repeats" if matrix.table.has_repeats else what


def breakdowns(matrix: Matrix) -> list[Breakdown]:
    """The tables to go through: per system, by each field with several values, then the options that each chose."""
    several = [
        name for name in matrix.fields if len({field_of(listed, name) for listed in matrix.table.questions}) > 1
    ]
    chosen = [system for system in matrix.table.systems if _choices(matrix, system)] if _has_options(matrix) else []
    return [None, *several, *chosen]


def scores_lines(matrix: Matrix, by: Breakdown, width: int) -> list[Line]:
    """The scores of each system or of each group of questions, or how often a system chose which option."""
    if isinstance(by, System):
        return _options_chosen(matrix, by)
    return _by_system(matrix, width) if by is None else _by_group(matrix, by, width)


def _has_options(matrix: Matrix) -> bool:
    return any(listed.question.choices for listed in matrix.table.questions)


def _choices(matrix: Matrix, system: System) -> Counter[tuple[int, int | None]]:
    """How often which option was chosen, by the right one; None for a reply without a readable choice."""
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
    """A row for each right option, a column for each chosen one, and one for replies without a readable choice."""
    counts = _choices(matrix, system)
    size = max(len(listed.question.choices) for listed in matrix.table.questions)
    rows = [
        [
            Span(str(right), "strong"),
            *(_count(counts[right, chosen], chosen == right) for chosen in (*range(size), None)),
        ]
        for right in range(size)
    ]
    return as_lines(Table.of("", (RIGHT_BY_CHOSEN, *map(str, range(size)), "none"), rows))


def _count(count: int, right: bool) -> Span:
    return Span(str(count or "·"), "dim" if not count else "good" if right else "bad")


def _by_system(matrix: Matrix, width: int) -> list[Line]:
    """One line per system: right answers, accuracy, evidence in the prompt, and what was lost at each stage."""
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
    columns += [Column("tokens"), Column(f"recall@{table.cutoff}")] if is_wide else []
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
    """One line per group: the accuracy of each system, and the stages at which it lost most."""
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
    """``30% R12 M4``, in exactly ``width`` cells; stages that do not fit are left out."""
    shown = f" {whole_share(each.accuracy):>5}"
    stages = ""
    for label, count in each.lost:
        more = f" {stage_chip(label)[0]}{count}"
        if cells(shown + stages + more) > width - 1:
            break
        stages += more
    return [Span(shown, "value"), Span(pad(stages, width - cells(shown)), "bad")]


def question_details(matrix: Matrix, listed: ListedQuestion, column: int, *, roomy: bool) -> list[Line]:
    """A whole question: its text, the expected answer, and each system's verdict and reply."""
    question = listed.question
    whose = f"{one_line(listed.conversation)} · " if len(matrix.conversations) > 1 else ""
    fields = [one_line(field_of(listed, name)) for name in BREAKDOWNS[1:] if field_of(listed, name)]
    kind = " · ".join([one_line(field_of(listed, "type")), *fields])
    lines = [
        line(
            Span(f"{matrix.numbers[listed]}. {whose}{kind}  ", "dim"),
            Span(one_line(question.text), "strong"),
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
    words = [Span(f" {VERDICTS[label].words}", label_tone(label))] if label is not None else []
    said = _said(answer)
    return line(
        Span("▸" if chosen else " ", "accent"),
        Span(f" {letter} ", "dim" if tone == "lost" and system.backend in CONTROLS else tone),
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
