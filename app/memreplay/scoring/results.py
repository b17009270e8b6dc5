"""The schema of ``results.json``. Its keys are fixed, in this order; new keys may be added.

Shares are 0..1, times milliseconds, costs US dollars. A figure that was not measured is null, never 0.
:mod:`memreplay.scoring.aggregates` computes it. The models of a section that has a module of its own stand there.

A breakdown takes a name in :data:`memreplay.scoring.By`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import orjson

from memreplay.conversations.models import Frozen
from memreplay.conversations.option_style import OptionStyle
from memreplay.llm import AGENT_MODEL
from memreplay.scoring import By
from memreplay.scoring.agreement import Agreement, Disagreement, JudgeResults
from memreplay.scoring.counterfactuals import WhatIfResults
from memreplay.scoring.groups import Group, UncertainGrades, key_of
from memreplay.scoring.points import TestResults
from memreplay.scoring.published import LocomoF1, LongMemEvalResults
from memreplay.scoring.question_row import Interval, QuestionRow, Tokens
from memreplay.scoring.retrieval import Fit, RetrievalResults
from memreplay.scoring.writing import ExtractionResults, ReadingResults, WritingResults

_DECIMALS = 6


class MultipleChoiceResults(Frozen):
    """``confusion_matrix``: rows are correct indexes, columns predicted ones. Excludes unparsed replies."""

    total: int
    graded: int
    correct: int
    accuracy: float | None
    accuracy_without_adversarial: float | None
    ci95: Interval | None
    unparsed: int
    refused: int
    errors: int
    by_type: dict[str, Group]
    confusion_matrix: tuple[tuple[int, ...], ...]


class RecallResults(Frozen):
    """The :data:`ANSWER_METRICS` are means over the graded replies to which they apply.

    ``locomo_f1`` and ``longmemeval`` are null without questions of those benchmarks.
    """

    total: int
    graded: int
    correct: int
    accuracy: float | None
    unparsed: int
    refused: int
    errors: int
    exact_match: float | None
    entity_recall: float | None
    f1: float | None
    ci95: Interval | None
    by_type: dict[str, Group]
    by_location: dict[str, Group]
    by_salience: dict[str, Group]
    by_category: dict[str, Group]
    locomo_f1: LocomoF1 | None = None
    longmemeval: LongMemEvalResults | None = None


class AbstentionResults(Frozen):
    """Abstention over the ``graded`` answers: how well the model tells that something was never said.

    Positive are the replies that ``abstained``, true the questions that ``should`` be answered so; ``right`` are
    both. ``precision`` is right / abstained, ``recall`` right / should.
    """

    graded: int
    should: int
    abstained: int
    right: int
    precision: float | None
    recall: float | None


class AdjustedResults(Frozen):
    """The score by the corrected answer key.

    ``corrected`` rows have a correction, ``changed`` rows a different outcome than by the published key. Rows
    without any correct answer are ``left_out``.
    """

    corrected: int
    changed: int
    left_out: int
    graded: int
    correct: int
    accuracy: float | None
    ci95: Interval | None
    evidence_in_prompt: float | None


class Latency(Frozen):
    """Medians and 95th percentiles."""

    recall_p50: float | None
    recall_p95: float | None
    model_p50: float | None
    model_p95: float | None


class EvidenceByAnswer(Frozen):
    """Graded questions with evidence, by whether all of it was in the prompt and whether the answer was correct."""

    in_prompt_right: int
    in_prompt_wrong: int
    missing_right: int
    missing_wrong: int

    @property
    def total(self) -> int:
        return self.in_prompt_right + self.in_prompt_wrong + self.missing_right + self.missing_wrong


class Headline(Frozen):
    """The figures that are quoted.

    ``ci95`` assumes independent questions (Wilson); ``ci95_clustered`` allows for correlation within a
    conversation. ``closed_book_accuracy`` is that of the same model without memory on the same questions;
    ``blind_guesser_accuracy`` that of guessing from the options, where a question has any. ``normalised_gain`` is
    (accuracy - better) / (1 - better), where better is the higher of these two; ``…_without_adversarial`` leaves
    out the questions whose right answer is that it was never said. ``grounded_accuracy`` is the share of
    graded questions with evidence whose answers are ``grounded``: correct, with the evidence in the prompt,
    verbatim or distilled. ``repeats_agree`` is the share of pairs of repeats of a question with the same answer;
    null without repeats. ``uncertain`` is null where every grade is certain.
    """

    accuracy: float | None
    accuracy_without_adversarial: float | None
    ci95: Interval | None
    ci95_clustered: Interval | None
    conversations: int
    closed_book_accuracy: float | None
    normalised_gain: float | None
    blind_guesser_accuracy: float | None
    normalised_gain_without_adversarial: float | None
    prompt_tokens_per_question: float | None
    grounded_accuracy: float | None
    evidence_in_prompt: float | None
    evidence_by_answer: EvidenceByAnswer | None
    tokens_per_right: float | None
    cost_usd_per_right: float | None
    repeats_agree: float | None
    uncertain: UncertainGrades | None = None


Metric = Literal["accuracy", "answer_in_prompt", "evidence_in_prompt"]

PairedTest = Literal["mcnemar_exact", "sign_flip_facts", "sign_flip_exact"]
"""McNemar's; the sign-flip test over facts, where any is asked twice; that over conversations, if they are many."""


class Comparison(Frozen):
    """Contestant ``a`` against ``b``. ``difference`` is a's accuracy minus b's; ``p_value`` is that of ``test``.

    With the metric ``answer_in_prompt`` or ``evidence_in_prompt`` right means that the prompt held it, and facts
    are counted.

    ``p_holm`` is adjusted for the ``family``, the pairs of the run without controls; ``ci95_adjusted`` is the
    interval at Bonferroni's level for the same family. Both hold for all pairs at once; Bonferroni's is the more
    conservative. They are null for a pair with a control. ``ci95`` and ``p_value`` are not adjusted.

    ``detectable`` is the smallest difference that ``test`` finds with a power of 80 %, at Bonferroni's level for
    the family; with conversations enough for a claim, over the effective number of questions. It is null if no
    difference could be found. ``smallest_p`` is what the sign-flip test could give at least, with so many
    conversations that differ, and adjusted as ``p_holm`` is; null where another test is used.

    ``decided_by_default_limit``: the loser's prompts were cut by a window that was only assumed, on at least as
    many of the winner's questions as its lead. ``significant`` is null then, and if there are too few conversations
    for a claim, or too few that differ. ``words`` summarises the comparison in a sentence.

    ``tokens_a`` and ``tokens_b`` are the mean tokens of a prompt; null if unknown, and for a pair with a control.
    """

    a: str
    b: str
    metric: Metric
    n: int
    both_right: int
    only_a: int
    only_b: int
    both_wrong: int
    difference: float | None
    ci95: Interval | None
    p_value: float | None
    test: PairedTest
    p_holm: float | None
    p_mcnemar: float | None
    p_sign_flip: float | None
    conversations: int
    significant: bool | None
    words: str
    family: int
    ci95_adjusted: Interval | None
    detectable: float | None
    decided_by_default_limit: bool
    conversations_differing: int
    smallest_p: float | None
    tokens_a: float | None = None
    tokens_b: float | None = None


class RunFacts(Frozen):
    """Identifies the run. ``settings`` contain no secrets; times are ISO 8601."""

    id: str
    started_at: str
    finished_at: str | None
    memreplay_version: str
    settings: dict[str, Any]
    datasets: tuple[str, ...]
    status: Literal["running", "finished", "interrupted"] = "finished"
    """Unless ``finished``, the rows are those that were finished so far."""


class BackendResults(Frozen):
    """One backend through one model. ``cost_usd`` is null if the price of any reply is unknown.

    ``other_kinds`` has a section like ``recall`` for each kind of question that has none of its own. ``what_if`` is
    null unless wrong answers were asked again.
    """

    backend: str
    model: str
    accuracy: float | None
    multiple_choice: MultipleChoiceResults | None
    recall: RecallResults | None
    tests: TestResults | None
    retrieval: RetrievalResults | None
    failures: dict[str, int]
    tokens: Tokens
    cost_usd: float | None
    latency_ms: Latency
    headline: Headline
    adjusted: AdjustedResults | None
    extraction: ExtractionResults | None
    writing: WritingResults | None
    abstention: AbstentionResults | None
    breakdown: dict[By, dict[str, Group]]
    what_if: WhatIfResults | None = None
    judge: JudgeResults | None = None
    agreement: tuple[Agreement, ...] = ()
    reading: ReadingResults | None = None
    other_kinds: dict[str, RecallResults] = {}

    @property
    def sections(self) -> list[MultipleChoiceResults | RecallResults | TestResults]:
        """Return all sections that there are: each row is counted in one of them."""
        of_kinds = (self.multiple_choice, self.recall, self.tests, *self.other_kinds.values())
        return [section for section in of_kinds if section is not None]


class KeyFacts(Frozen):
    """The answer-key overlay: file name, number of corrections, number of questions of this run they apply to."""

    file: str
    corrections: int
    questions: int


class Results(Frozen):
    """The whole file. ``backends`` are named ``backend``, or ``backend@model`` if the run has several models.

    ``option_style`` reports per dataset how far the style of the options reveals the answers. ``tests_written_usd``
    is the cost of generating tests with a model; null if none were generated or no price is known. ``fit`` is null
    unless several memories were asked questions with evidence. ``agreement`` is that of raters over all answers.
    """

    schema_version: Literal[1]
    run: RunFacts
    backends: dict[str, BackendResults]
    comparisons: tuple[Comparison, ...]
    prompt_comparisons: tuple[Comparison, ...] = ()
    option_style: dict[str, OptionStyle]
    answer_key: KeyFacts | None
    tests_written_usd: float | None = None
    fit: Fit | None = None
    agreement: tuple[Agreement, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    questions: tuple[QuestionRow, ...]

    @property
    def errors_of_control(self) -> tuple[int, int]:
        """Return the number of questions on which the closed_book baseline ended in an error, and of those that it
        was asked; zeros where it has rows of its own, or was not asked.
        """
        if not self.run.settings.get("closed_book_asked_along") or self.run.status != "finished":
            return 0, 0
        answers = [row for row in self.questions if row.kind != "test" and row.model != AGENT_MODEL]
        asked = {(row.model, key_of(row)): row.closed_book_correct for row in answers}
        return sum(right is None for right in asked.values()), len(asked)

    def to_json(self) -> str:
        """Return the text of the file: keys in the order of the models, numbers rounded to six decimals.

        Below 1 it is six digits.
        """
        return "".join(self.json_parts())

    def json_parts(self) -> Iterator[str]:
        """Yield the same in parts, row by row: as plain data, all rows would take many times the memory of the
        text.
        """
        yield _indented(self.model_dump(mode="json", exclude={"questions"})).removesuffix("\n}")
        yield ',\n  "questions": ['
        for number, row in enumerate(self.questions):
            yield ",\n    " if number else "\n    "
            yield _indented(row.model_dump(mode="json")).replace("\n", "\n    ")
        yield "\n  ]\n}\n" if self.questions else "]\n}\n"


def _indented(data: dict[str, Any]) -> str:
    return orjson.dumps(_rounded(data), option=orjson.OPT_INDENT_2).decode()


def _rounded(value: Any) -> Any:
    match value:
        case float():
            # Significant digits where decimals would make 0 of a small p-value or price.
            return float(f"{value:.{_DECIMALS}g}") if abs(value) < 1 else round(value, _DECIMALS)
        case list():
            return [_rounded(entry) for entry in value]
        case dict():
            return {key: _rounded(entry) for key, entry in value.items()}
    return value
