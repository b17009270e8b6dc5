"""Computes what the re-asks of wrong answers show, from the rows of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from memory_backends.controls import CLOSED_BOOK, CONTROLS
from memreplay.grading.recall import is_abstention
from memreplay.scoring.attribution import LABELS
from memreplay.scoring.counterfactuals import (
    CURES,
    INTERVENTIONS,
    LOST_BY_MEMORY,
    STEP_MEANINGS,
    Ceiling,
    Counterfactual,
    Cure,
    Intervention,
    Repairs,
    Step,
    WaterfallStep,
    WhatIfResults,
    cure_of,
    least_repair,
)
from memreplay.scoring.results import QuestionRow
from memreplay.scoring.statistics import paired_interval, wilson_interval
from memreplay.text import normalised

Rows = Sequence[QuestionRow]
_WRONG = ("wrong", "unparsed", "refused")
_SEVERAL = 2


RowKey = tuple[str, str, str, str, int]
"""Conversation, backend, model, question id and repeat."""


def with_cures(rows: Rows, asked: Mapping[RowKey, Sequence[Counterfactual]]) -> list[QuestionRow]:
    """The rows with their re-asks, and what these say."""
    if not asked:
        return list(rows)
    given = _Given(rows)
    return [_with_cure(row, asked.get(_key(row), ()), given) for row in rows]


def _key(row: QuestionRow) -> RowKey:
    return (row.conversation, row.backend, row.model, row.question_id, row.repeat)


def _with_cure(row: QuestionRow, asked: Sequence[Counterfactual], given: _Given) -> QuestionRow:
    if not asked or row.outcome not in _WRONG:
        return row
    ordered = tuple(sorted(asked, key=lambda each: INTERVENTIONS.index(each.intervention)))
    unaided = next((each.predicted for each in ordered if each.intervention == CLOSED_BOOK), None)
    cure = cure_of(row.failure, ordered, abstain=row.abstain, others_agree=given.others_agree(row, unaided))
    return row.model_copy(update={"counterfactuals": ordered, "cure": cure, "cured_by": least_repair(ordered)})


class _Given:
    """Which backends gave which answer to a question, and how usual an answer is for its model."""

    def __init__(self, rows: Rows) -> None:
        self._by_question: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._by_model: dict[str, dict[str, set[tuple[str, str]]]] = defaultdict(lambda: defaultdict(set))
        self._questions: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for row in rows:
            place = (row.conversation, row.question_id)
            self._questions[row.model].add(place)
            if said := _said(row.predicted, row):
                self._by_question[place][said].add(row.backend)
                self._by_model[row.model][_form(said, row)].add(place)

    def others_agree(self, row: QuestionRow, unaided: str | None) -> bool:
        """Whether closed book, or several other memories, give the same answer, which is not one for everything."""
        said, place = _said(row.predicted, row), (row.conversation, row.question_id)
        others = self._by_question[place].get(said, set()) - {row.backend}
        agree = CLOSED_BOOK in others or len(others - CONTROLS) >= _SEVERAL or _said(unaided, row) == said
        return bool(said) and agree and not self._is_usual(row, said)

    def _is_usual(self, row: QuestionRow, said: str) -> bool:
        """Whether the model gives the same answer to most other questions: it says nothing of this one then."""
        place = (row.conversation, row.question_id)
        others = self._questions[row.model] - {place}
        alike = self._by_model[row.model][_form(said, row)] - {place}
        return len(others) < _SEVERAL or len(alike) * 2 > len(others)


def _form(said: str, row: QuestionRow) -> str:
    """What a reader that does not read repeats: its words, or the number of an option."""
    return f"option {row.predicted_index}" if row.predicted_index is not None else said


def _said(predicted: str | None, row: QuestionRow) -> str:
    """An answer in a form that can be compared; empty for none, and for saying that it was never said."""
    said = predicted or ""
    return "" if is_abstention(said) and not row.abstain else normalised(said)


def what_if_of(rows: Rows) -> WhatIfResults | None:
    """The results of one backend; None if none of its answers was asked again."""
    graded = [row for row in rows if row.outcome != "error"]
    wrong = [row for row in graded if row.outcome in _WRONG]
    asked = [row for row in wrong if row.counterfactuals]
    if not asked:
        return None
    by_label = {label: [row for row in asked if row.failure == label] for label in LABELS}
    return WhatIfResults(
        wrong=len(wrong),
        asked=sum(_repaired(row).get("unchanged") is not None for row in asked),
        interventions=_repairs(asked),
        by_label={label: _repairs(its_rows) for label, its_rows in by_label.items() if its_rows},
        cures=_counted_cures(asked),
        perfect_retrieval=_perfect_retrieval(graded),
        perfect_reader=_perfect_reader(graded),
        waterfall=_waterfall(graded),
    )


def _repaired(row: QuestionRow) -> dict[Intervention, bool | None]:
    return {each.intervention: each.repaired for each in row.counterfactuals or ()}


def _repairs(rows: Rows) -> dict[Intervention, Repairs]:
    """By change, in their order; those that were asked of no row are left out."""
    found = [_repaired(row) for row in rows]
    return {name: _repairs_of(name, found) for name in INTERVENTIONS if any(name in one for one in found)}


def _repairs_of(name: Intervention, rows: Iterable[Mapping[Intervention, bool | None]]) -> Repairs:
    asked = [row for row in rows if name in row]
    graded = [row for row in asked if row[name] is not None]
    repaired = sum(bool(row[name]) for row in graded)
    both = [(bool(row[name]), bool(row["unchanged"])) for row in graded if row.get("unchanged") is not None]
    paired = bool(both) and name != "unchanged"
    only_this, only_control = both.count((True, False)), both.count((False, True))
    return Repairs(
        graded=len(graded),
        repaired=repaired,
        errors=len(asked) - len(graded),
        share=repaired / len(graded) if graded else None,
        ci95=wilson_interval(repaired, len(graded)),
        beyond_unchanged=(only_this - only_control) / len(both) if paired else None,
        beyond_ci95=paired_interval(only_this, only_control, len(both)) if paired else None,
    )


def _counted_cures(rows: Rows) -> dict[Cure, int]:
    counts = Counter(row.cure for row in rows)
    return {cure: counts[cure] for cure in CURES if counts[cure]}


def _perfect_retrieval(graded: Rows) -> Ceiling | None:
    """If everything that memory lost had been in the prompt. What was in the prompt and misread stays wrong."""
    lost = [row for row in graded if row.outcome in _WRONG and row.failure in LOST_BY_MEMORY]
    added = [_repaired(row).get("evidence_added") for row in lost]
    return _ceiling(graded, added.count(True), added.count(None))


def _perfect_reader(graded: Rows) -> Ceiling | None:
    """If every answer that the prompt held had been read, and nothing read that was not there."""
    right = [row for row in graded if row.outcome in _WRONG and (row.answer_in_prompt or _is_misled(row))]
    return _ceiling(graded, len(right), 0)


def _is_misled(row: QuestionRow) -> bool:
    return row.failure in ("misread", "abstained", "stale", "false_attribution")


def _ceiling(graded: Rows, repaired: int, undetermined: int) -> Ceiling | None:
    if not graded:
        return None
    low = sum(row.outcome == "correct" for row in graded) + repaired
    return Ceiling(low=low / len(graded), high=(low + undetermined) / len(graded), undetermined=undetermined)


def _waterfall(graded: Rows) -> tuple[WaterfallStep, ...]:
    counts = Counter(_step(row) for row in graded)
    steps = [step for step in STEP_MEANINGS if counts[step]]
    reached = accumulate(counts[step] for step in steps)
    return tuple(
        WaterfallStep(step=step, answers=counts[step], accuracy=total / len(graded))
        for step, total in zip(steps, reached, strict=True)
    )


def _step(row: QuestionRow) -> Step:
    match row.cure:
        case _ if row.outcome == "correct":
            return "right"
        case "confirmed":
            return "memory" if row.failure in LOST_BY_MEMORY else "reading"
        case None:
            return "undetermined"
        case cure:
            return cure
