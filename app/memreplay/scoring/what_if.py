"""Computes what the re-asks of wrong answers show, from the rows of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from memory_backends.controls import CLOSED_BOOK, CONTROLS, ORACLE
from memreplay.conversations.models import Question
from memreplay.grading import Score
from memreplay.grading.judge import is_abstention
from memreplay.grading.match import contains
from memreplay.scoring.counterfactuals import (
    CURES,
    STEP_MEANINGS,
    Ceiling,
    Counterfactual,
    Cure,
    Repairs,
    Step,
    WaterfallStep,
    WhatIfResults,
    cure_of,
    least_repair,
)
from memreplay.scoring.doubt import doubted
from memreplay.scoring.groups import Key, key_of
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.statistics import paired_interval, wilson_interval
from memreplay.scoring.verdicts import INTERVENTIONS, LABELS, VERDICTS, Fault, Intervention
from memreplay.text import normalised

Rows = Sequence[QuestionRow]
_WRONG = ("wrong", "unparsed", "refused")
_SEVERAL = 2


RowKey = tuple[str, str, str, str, int]
"""Conversation, backend, model, question id and repeat."""


@dataclass(frozen=True)
class Given:
    """An answer that was given to a question of a run.

    ``said`` is its words in a form that can be compared, ``form`` what a reader that does not read repeats: these
    words, or the number of an option. ``turns`` are those that its prompt shows or was made from.
    """

    place: tuple[str, str]
    backend: str
    model: str
    said: str
    form: str
    turns: frozenset[str]
    is_choice: bool


class ShownHit(Protocol):
    """The fields of a hit that are read."""

    @property
    def turns(self) -> Sequence[str]: ...

    @property
    def sources(self) -> Sequence[str]: ...

    @property
    def in_prompt(self) -> bool: ...


def given_answer(
    conversation: str,
    question: Question | QuestionRow,
    answered_by: tuple[str, str],
    answered: Score | QuestionRow,
    hits: Iterable[ShownHit],
) -> Given:
    """Return an answer of a backend and a model, ``answered_by``, to a question."""
    said = _said(answered.predicted, question.abstain)
    index = answered.predicted_index
    return Given(
        (conversation, question.id if isinstance(question, Question) else question.question_id),
        *answered_by,
        said=said,
        form=said if index is None else f"option {index}",
        turns=frozenset(turn for hit in hits if hit.in_prompt for turn in (*hit.turns, *hit.sources)),
        is_choice=question.kind == "choice",
    )


def with_cures(rows: Rows, asked: Mapping[RowKey, Sequence[Counterfactual]]) -> list[QuestionRow]:
    """Return the rows with their re-asks, and what these say."""
    if not asked:
        return list(rows)
    answers = GivenAnswers(map(_given, rows))
    return [_with_cure(row, asked.get(_key(row), ()), answers) for row in rows]


def _key(row: QuestionRow) -> RowKey:
    return (row.conversation, row.backend, row.model, row.question_id, row.repeat)


def _given(row: QuestionRow) -> Given:
    return given_answer(row.conversation, row, (row.backend, row.model), row, row.hits)


def _with_cure(row: QuestionRow, asked: Sequence[Counterfactual], answers: GivenAnswers) -> QuestionRow:
    if not asked or row.outcome not in _WRONG:
        return row
    ordered = tuple(sorted(asked, key=lambda each: INTERVENTIONS.index(each.intervention)))
    others_agree = answers.others_agree(_given(row), ordered, abstain=row.abstain)
    shown = bool(row.answer_said) or shows_evidence(row.evidence, row.hits, row.evidence_in_prompt)
    cure = cure_of(
        row.failure,
        ordered,
        abstain=row.abstain,
        others_agree=others_agree,
        shows_evidence=shown,
        shows_all=row.evidence_in_prompt is not False,
    )
    found: dict[str, object] = {"counterfactuals": ordered, "cure": cure, "cured_by": least_repair(ordered)}
    if cure == "refuted":
        found |= {"failure_doubt": "refuted", "failure_detail": f"{row.failure_detail} {doubted('refuted')}"}
    return row.model_copy(update=found)


def shows_evidence(evidence: Iterable[str], hits: Iterable[ShownHit], has_all: bool | None) -> bool:
    """Return whether a prompt has the words of an evidence turn, or of all of them."""
    return bool(has_all) or not {turn for hit in hits if hit.in_prompt for turn in hit.turns}.isdisjoint(evidence)


def says_answer(question: Question, texts: Iterable[str]) -> bool:
    """Return whether a text in a prompt says the expected answer itself, so that memory did not lose it."""
    return any(contains(question.expected, text) for text in texts)


class GivenAnswers:
    """All answers of a run, to see who agrees with one of them independently of it, and how usual it is."""

    def __init__(self, answers: Iterable[Given]) -> None:
        self._by_place: dict[tuple[str, str], list[Given]] = defaultdict(list)
        self._by_form: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
        self._asked_of: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for given in answers:
            self._asked_of[given.model].add(given.place)
            if given.said:
                self._by_place[given.place].append(given)
                self._by_form[given.model, given.form].add(given.place)

    def others_agree(self, given: Given, asked: Iterable[Counterfactual], *, abstain: bool) -> bool:
        """Return whether independent others give the same answer, which is not one for everything.

        These are the same model without any memory; each other model, once; and the same model with another memory
        whose prompt shares no turn with this one: it would misread the same words in the same way. Two have to
        agree, since an option is also hit by chance; of free words, closed book alone is enough.
        """
        if not given.said or self._is_usual(given):
            return False
        alike = [each for each in self._by_place[given.place] if each.said == given.said]
        unaided = next((each.predicted for each in asked if each.intervention == CLOSED_BOOK), None)
        closed_book = _said(unaided, abstain) == given.said or any(
            each.backend == CLOSED_BOOK and each.model == given.model for each in alike
        )
        if closed_book and not given.is_choice:
            return True
        models = {each.model for each in alike if each.backend != ORACLE} - {given.model}
        return len(models) + closed_book + _of_other_words(given, alike) >= _SEVERAL

    def _is_usual(self, given: Given) -> bool:
        """Return whether the model gives the same answer to most other questions: it says nothing of this one
        then.
        """
        others = self._asked_of[given.model] - {given.place}
        same = self._by_form[given.model, given.form] - {given.place}
        return len(others) < _SEVERAL or len(same) * 2 > len(others)


def _of_other_words(given: Given, alike: Iterable[Given]) -> int:
    """Return how many prompts of the same model share no turn with that of an answer, nor with each other."""
    seen, found = set(given.turns), 0
    for each in alike:
        is_memory = each.model == given.model and each.backend not in CONTROLS and each.backend != given.backend
        if is_memory and seen and each.turns and seen.isdisjoint(each.turns):
            seen |= each.turns
            found += 1
    return found


def _said(predicted: str | None, abstain: bool) -> str:
    """Return an answer in a form that can be compared; empty for none, and for saying that it was never said."""
    said = predicted or ""
    return "" if is_abstention(said) and not abstain else normalised(said)


def what_if_of(rows: Rows) -> WhatIfResults | None:
    """Return the results of one backend; None if none of its answers was asked again."""
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
    """Return the repairs by change, in their order, without changes that were asked of no row."""
    found = [(key_of(row), _repaired(row)) for row in rows]
    return {name: _repairs_of(name, found) for name in INTERVENTIONS if any(name in one for _, one in found)}


def _repairs_of(name: Intervention, found: Iterable[tuple[Key, Mapping[Intervention, bool | None]]]) -> Repairs:
    """Return the repairs by one change; intervals are over questions, since repeats of one are alike."""
    keyed = [(key, row) for key, row in found if name in row]
    asked = [row for _, row in keyed]
    graded = [row for row in asked if row[name] is not None]
    questions = len({key for key, row in keyed if row[name] is not None})
    per_question = questions / len(graded) if graded else 1.0
    repaired = sum(bool(row[name]) for row in graded)
    both = [(bool(row[name]), bool(row["unchanged"])) for row in graded if row.get("unchanged") is not None]
    paired = bool(both) and name != "unchanged"
    only_this, only_control = both.count((True, False)), both.count((False, True))
    counts = only_this * per_question, only_control * per_question, len(both) * per_question
    return Repairs(
        graded=len(graded),
        repaired=repaired,
        errors=len(asked) - len(graded),
        share=repaired / len(graded) if graded else None,
        ci95=wilson_interval(repaired * per_question, questions),
        beyond_unchanged=(only_this - only_control) / len(both) if paired else None,
        beyond_ci95=paired_interval(*counts) if paired else None,
    )


def _counted_cures(rows: Rows) -> dict[Cure, int]:
    counts = Counter(row.cure for row in rows)
    return {cure: counts[cure] for cure in CURES if counts[cure]}


def _perfect_retrieval(graded: Rows) -> Ceiling | None:
    """Return the accuracy if everything that memory lost had been in the prompt; what was misread stays wrong."""
    lost = [
        row for row in graded if row.outcome in _WRONG and (_fault_of(row) == "memory" or row.cure == "refuted")
    ]
    added = [_repaired(row).get("evidence_added") for row in lost]
    return _ceiling(graded, added.count(True), added.count(None))


def _perfect_reader(graded: Rows) -> Ceiling | None:
    """Return the accuracy if every answer in the prompt had been read, and nothing else."""
    right = [row for row in graded if row.outcome in _WRONG and _was_readable(row)]
    return _ceiling(graded, len(right), 0)


def _was_readable(row: QuestionRow) -> bool:
    in_prompt = bool(row.answer_in_prompt) and row.failure_judge is None
    return row.cure != "refuted" and (in_prompt or _fault_of(row) == "reader")


def _fault_of(row: QuestionRow) -> Fault | None:
    return None if row.failure is None else VERDICTS[row.failure].fault


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
            return "memory" if _fault_of(row) == "memory" else "reading"
        case None:
            return "undetermined"
        case cure:
            return cure
