"""The scores above the results matrix: accuracy and stages per system, or per group of questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from memreplay.scoring import By
from memreplay.scoring.attribution import LABELS, Label
from memreplay.tui.panels.answers import LABEL_LETTERS, ListedQuestion, System, percent, stage_chip
from memreplay.tui.panels.results import Matrix, field_of, rank_of_value
from memreplay.tui.text import Line, Span, cells, line, one_line, pad

_ROOM_FOR_RECALL = 100
"""Cells of the width from which on recall at k has a column."""
RIGHT = frozenset(label for label in LABELS if LABEL_LETTERS[label] == "✓")


@dataclass(frozen=True)
class Tally:
    """Answers by outcome and by stage. An error is no answer: ``graded`` leaves it out."""

    total: int
    errors: int
    correct: int
    unparsed: int
    stages: Counter[Label]

    @property
    def graded(self) -> int:
        return self.total - self.errors

    @property
    def accuracy(self) -> float | None:
        return self.correct / self.graded if self.graded else None

    @property
    def lost(self) -> list[tuple[Label, int]]:
        """The stages of all answers that are not soundly right, the most frequent first."""
        return [(label, count) for label, count in self.stages.most_common() if label not in RIGHT]


def tally(matrix: Matrix, questions: Iterable[ListedQuestion], system: System) -> Tally:
    """The scored answers of a system to some questions."""
    answers = [matrix.table.answer(listed, system) for listed in questions]
    scored = [answer for answer in answers if answer is not None and answer.scored is not None]
    outcomes = Counter(answer.scored.score.outcome for answer in scored if answer.scored is not None)
    labels = (matrix.label(answer) for answer in scored)
    return Tally(
        total=len(scored),
        errors=outcomes["error"],
        correct=outcomes["correct"],
        unparsed=outcomes["unparsed"],
        stages=Counter(label for label in labels if label is not None),
    )


def breakdowns(matrix: Matrix) -> list[By | None]:
    """The tables to go through: per system (None), then by each field with several values."""
    several = [
        name for name in matrix.fields if len({field_of(listed, name) for listed in matrix.table.questions}) > 1
    ]
    return [None, *several]


def scores_lines(matrix: Matrix, by: By | None, width: int) -> list[Line]:
    """The scores of each system, or of each group of questions."""
    return _by_system(matrix, width) if by is None else _by_group(matrix, by, width)


def _by_system(matrix: Matrix, width: int) -> list[Line]:
    """One line per system: right answers, accuracy, evidence in the prompt, and what was lost at each stage."""
    table = matrix.table
    tallies = [(system, tally(matrix, table.questions, system)) for system in table.systems]
    used = [label for label in LABELS if label not in RIGHT and any(each.stages[label] for _, each in tallies)]
    names = max([len("architecture"), *(cells(table.name_of(system)) for system in table.systems)])
    names = min(names, max(12, width - 34 - 6 * len(used)))
    unscored = any(each.unparsed for _, each in tallies) and not used
    recall = f"  recall@{table.cutoff}" if width >= _ROOM_FOR_RECALL else ""
    head = f"   {pad('architecture', names)}   right       acc  evidence{recall}"
    lines = [
        line(
            Span(head, "dim"),
            Span("  errors" + ("  unparsed" if unscored else "") if not used else "", "dim"),
            *(part for label in used for part in (Span("  "), Span(f"{LABEL_LETTERS[label]:>4}", "strong"))),
            most=1,
        )
    ]
    for number, (system, each) in enumerate(tallies, start=1):
        summary = table.summary(system)
        stages = [
            Span(f"  {each.stages[label] or '·':>4}", "bad" if each.stages[label] else "dim") for label in used
        ]
        without = [
            Span(f"  {each.errors:>6}", "bad" if each.errors else "dim"),
            Span(f"  {each.unparsed:>8}" if unscored else "", "warn" if each.unparsed else "dim"),
        ]
        lines.append(
            line(
                Span(f"{number:>2} ", "dim"),
                Span(pad(table.name_of(system), names), "strong"),
                Span(f"  {f'{each.correct}/{each.graded}':>8}"),
                Span(f"  {percent(each.accuracy):>6}", "value"),
                Span(f"  {percent(summary.evidence_in_prompt):>8}"),
                Span(f"{percent(summary.recall_at_10):>{len(recall)}}" if recall else ""),
                *(stages if used else without),
                most=1,
            )
        )
    return lines


def _by_group(matrix: Matrix, by: By, width: int) -> list[Line]:
    """One line per group: the accuracy of each system, and the stages at which it lost most."""
    table = matrix.table
    groups: dict[str, list[ListedQuestion]] = {}
    for listed in table.questions:
        groups.setdefault(field_of(listed, by) or "–", []).append(listed)
    order = sorted(groups, key=rank_of_value)
    names = min(max(cells(one_line(name)) for name in (by, *order)), 20)
    column = max(8, (width - names - 8) // max(len(table.systems), 1))
    heads = [
        Span(f" {pad(f'{number} {table.name_of(system)}', column - 1)}", "strong")
        for number, system in enumerate(table.systems, start=1)
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
    shown = f" {percent(each.accuracy):>4}"
    stages = ""
    for label, count in each.lost:
        more = f" {stage_chip(label)[0]}{count}"
        if cells(shown + stages + more) > width - 1:
            break
        stages += more
    return [Span(shown, "value"), Span(pad(stages, width - cells(shown)), "bad")]
