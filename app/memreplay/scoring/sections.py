"""The parts of ``results.json``: a question's row, and what is said of many rows.

Shares are 0..1, times milliseconds, costs US dollars. A figure that nothing was measured for is null, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from memreplay.conversations.models import EvidenceRole, Frozen, InfoLocation, Salience
from memreplay.grading import Outcome
from memreplay.scoring.answer_key import Adjusted
from memreplay.scoring.attribution import Label
from memreplay.scoring.evidence_trail import Loss

RowKind = Literal["choice", "recall", "test"]
Interval = tuple[float, float]


class Tokens(Frozen):
    """Tokens as the provider counted them; ``cached`` is a part of ``prompt``."""

    prompt: int
    completion: int
    cached: int


class HitRow(Frozen):
    """Something that memory gave to the question."""

    id: str
    store: str
    rank: int
    score: float | None
    turns: tuple[str, ...]
    sources: tuple[str, ...]
    in_prompt: bool


class QuestionRow(Frozen):
    """One question, put to one backend through one model.

    ``ms`` is the time of the model's call and ``recall_ms`` that of memory's read path; ``ms``, ``tokens`` and
    ``cost_usd`` are null where no model was asked, and where a call ended in an error and nothing was told of them.
    The keys after ``ms`` are what the aggregates are made from.

    ``failure`` is the label of ``scoring.attribution``; ``failure_loss`` says of ``not_written`` how it was
    lost, ``failure_detail`` all of it in words, ``failure_ranks`` which rank each missing evidence turn had in each
    retrieval channel. ``closed_book_correct`` is whether the same model is right without any memory. ``adjusted``
    is the answer by the corrected key, null for a question that the overlay does not correct. An agent that could
    not be given a fresh session had ``earlier_questions`` and ``earlier_conversations`` in its memory.
    Of a test, ``reply`` and ``question`` hold all that it asked and was answered, a line each; ``tokens`` and costs
    are those of all its messages, ``ms`` is the mean of its calls. ``distance_tokens`` lie between its first
    message and its last question; ``benchmark_cost_usd`` is what the models cost that the dataset asked.
    """

    question_id: str
    dataset: str
    conversation: str
    backend: str
    model: str
    repeat: int
    kind: RowKind
    type: str
    question: str
    expected: str
    predicted: str | None
    predicted_index: int | None
    correct_index: int | None
    score: float | None
    max_score: float
    recorded_score: float | None
    outcome: Outcome
    reply: str | None
    error: str | None
    evidence: tuple[str, ...]
    evidence_role: EvidenceRole | None
    hits: tuple[HitRow, ...]
    recall_at_10: float | None
    evidence_in_prompt: bool | None
    failure: Label | None
    tokens: Tokens | None
    cost_usd: float | None
    ms: float | None
    recall_ms: float | None
    other_type: str | None
    location: InfoLocation | None
    salience: Salience | None
    category: str | None
    exact_match: bool | None
    entity_recall: float | None
    f1: float | None
    recall_at_1: float | None
    recall_at_5: float | None
    reciprocal_rank: float | None
    failure_loss: Loss | None
    failure_detail: str | None
    failure_ranks: Mapping[str, Mapping[str, int]]
    closed_book_correct: bool | None
    adjusted: Adjusted | None
    earlier_questions: int = 0
    earlier_conversations: int = 0
    reasoning: tuple[str, ...] = ()
    distance_tokens: int | None = None
    benchmark_cost_usd: float | None = None


class Group(Frozen):
    """Questions of one sort. ``accuracy`` is correct / graded, ``ci95`` its Wilson interval."""

    total: int
    graded: int
    correct: int
    accuracy: float | None
    ci95: Interval | None


class MultipleChoiceResults(Frozen):
    """Confusion matrix: rows are correct indexes, columns predicted ones; unparsed replies are not in it."""

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
    """``exact_match``, ``entity_recall`` and ``f1`` are means over the graded replies to which they apply."""

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


class RetrievalResults(Frozen):
    """Means over the questions whose evidence supports the answer and whose memory could be read."""

    questions: int
    recall_at: dict[str, float] | None
    mrr: float | None
    evidence_in_prompt: float


class TestGroup(Frozen):
    """Tests of one dataset, or all. ``score`` and ``max_score`` are sums over the graded ones.

    A score is what we made of a test; where that cannot be had the recorded one counts. ``correct`` have full
    marks, ``errors`` could not be graded. ``ltm_score`` is the mean of the tokens between information and question,
    over the tests with full marks.
    """

    __test__ = False

    total: int
    graded: int
    correct: int
    errors: int
    score: float
    max_score: float
    ltm_score: float | None


class TestResults(TestGroup):
    """All tests. ``recorded_score`` sums the scores that an imported run has itself.

    ``differing`` are the ids of those where we come to another score, ``not_recomputed`` of those where we come to
    none. ``benchmark_cost_usd`` is what judging and role play cost, apart from the agent's own ``cost_usd``.
    """

    by_dataset: dict[str, TestGroup]
    recorded_score: float | None
    differing: tuple[str, ...]
    not_recomputed: tuple[str, ...]
    benchmark_cost_usd: float | None


class AdjustedResults(Frozen):
    """The score by the corrected answer key.

    Rows whose question the overlay has are ``corrected``; those whose outcome is another than by the published key
    are ``changed``, and those to which there is no right answer are ``left_out``.
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


class ExtractionResults(Frozen):
    """What reading candidate facts with a model came to, apart from the answers.

    A reply that was on record counts with what it cost when it was paid, and among the ``reused``; ``cost_usd`` is
    null where a price is unknown. ``error`` is the commonest reason of those that failed.
    """

    model: str
    calls: int
    reused: int
    errors: int
    error: str | None
    facts: int
    tokens: Tokens
    cost_usd: float | None
