"""One row of the results: a question, put to one backend through one model.

To add a metric of single answers: compute it in :class:`memreplay.grading.Score`; add the field here, also to
:class:`~memreplay.scoring.results.RecallResults`, and its name to :data:`ANSWER_METRICS`; add a column to the
tables. A new recall@k takes an entry in ``CUTOFFS``, a field of :class:`QuestionRow` and a column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from memreplay.conversations.models import EvidenceRole, Frozen, InfoLocation, QuestionKind, Salience
from memreplay.grading import DecidedBy, GradedByRules, Outcome
from memreplay.llm.judging import Verdict
from memreplay.scoring.answer_key import Adjusted
from memreplay.scoring.counterfactuals import Counterfactual, Cure
from memreplay.scoring.doubt import Doubt
from memreplay.scoring.equal_tokens import HeldAt
from memreplay.scoring.evidence_trail import Loss
from memreplay.scoring.verdicts import Intervention, Label
from memreplay.scoring.writer import WriterCause

RowKind = QuestionKind | Literal["test"]
Interval = tuple[float, float]


class Tokens(Frozen):
    """Tokens as counted by the provider; ``cached`` is included in ``prompt``."""

    prompt: int
    completion: int
    cached: int


@dataclass(frozen=True, slots=True)
class HitRow:
    """Something that the memory retrieved for the question.

    No model: answers have dozens of them, and a model takes 1.4 kB more.
    """

    id: str
    store: str
    rank: int
    score: float | None
    turns: tuple[str, ...]
    sources: tuple[str, ...]
    in_prompt: bool
    tokens: int


class JudgeRow(Frozen):
    """A judge's opinion of an answer. ``verdict`` is null if it gave none, and ``error`` says why.

    ``rubric`` names what it was told to accept. ``calls`` is how often it was asked, 0 for a published judgement;
    ``tokens``, ``cost_usd`` and ``ms`` are sums over these calls, and the price is null if any is unknown. The
    recording has the prompts.
    """

    model: str
    rubric: str
    verdict: Verdict | None
    reply: str | None
    error: str | None
    calls: int
    tokens: Tokens
    cost_usd: float | None
    ms: float


class QuestionRow(Frozen):
    """One question, put to one backend through one model.

    ``ms`` is the duration of the model call and ``recall_ms`` that of the memory's read path. ``ms``, ``tokens``
    and ``cost_usd`` are null if no model was called, or if the call failed without reporting them. The keys after
    ``ms`` are what the aggregates are computed from.

    ``failure`` is the label of ``scoring.attribution``, ``failure_doubt`` the reason for which it is uncertain;
    ``failure_loss`` details ``not_written``, ``failure_writer`` says what the model that writes did then,
    ``failure_detail`` is a description, and ``failure_ranks`` gives the rank of each missing evidence turn in each
    retrieval channel. ``failure_judge`` is the model that decided it with ``rejudge --rubric stages``, and
    ``failure_by_rules`` what the rules say then.
    ``closed_book_correct`` is whether the same model is correct without any memory.
    ``decided_by`` is the rule that decided the outcome, null where none did; ``uncertain`` is whether the rules
    are often wrong on such replies. ``adjusted`` is the score by the corrected answer key, null if that does not
    correct the question. If an agent could not be given a fresh session, its memory contained
    ``earlier_questions`` and ``earlier_conversations``.

    ``grader`` is what the rules say where a judge was asked, ``judge`` what that said, ``label`` what somebody said
    by hand on the why screen. A label changes no score.

    ``at_tokens`` is what the first hits hold, by token budget; null where recall@k is. ``answer_in_prompt`` is
    whether the prompt held the answer, word for word or by its content, ``answer_said`` whether a text in it says
    the expected answer itself. ``cut_tokens`` were retrieved and did not
    fit the prompt. ``blind_guess`` is the chance that a guesser is right who sees only the options. ``abstain`` is
    whether the right answer is that it was never said, ``abstained`` whether the reply says so (null for an error).

    ``counterfactuals`` are the re-asks of a wrong answer, null if there are none; ``cure`` is what they say of the
    diagnosis, and ``cured_by`` the least change that repaired the answer.

    In the row of a test, ``question`` and ``reply`` contain all questions and responses, one per line; ``tokens``
    and costs are sums over all messages, and ``ms`` is the mean of the calls. ``distance_tokens`` is the distance
    between the first message and the last question; ``benchmark_cost_usd`` is the cost of the models that the
    dataset called.
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
    predicted_index: int | None = None
    correct_index: int | None = None
    score: float | None
    max_score: float
    recorded_score: float | None = None
    outcome: Outcome
    reply: str | None
    error: str | None
    evidence: tuple[str, ...] = ()
    evidence_role: EvidenceRole | None = None
    hits: tuple[HitRow, ...] = ()
    recall_at_10: float | None = None
    evidence_in_prompt: bool | None = None
    failure: Label | None = None
    tokens: Tokens | None
    cost_usd: float | None
    ms: float | None
    counterfactuals: tuple[Counterfactual, ...] | None = None
    cure: Cure | None = None
    cured_by: Intervention | None = None
    recall_ms: float | None = None
    other_type: str | None = None
    location: InfoLocation | None = None
    salience: Salience | None = None
    category: str | None = None
    exact_match: bool | None = None
    entity_recall: float | None = None
    f1: float | None = None
    decided_by: DecidedBy | None = None
    uncertain: bool = False
    recall_at_1: float | None = None
    recall_at_5: float | None = None
    reciprocal_rank: float | None = None
    failure_doubt: Doubt | None = None
    failure_loss: Loss | None = None
    failure_detail: str | None = None
    failure_writer: WriterCause | None = None
    failure_ranks: Mapping[str, Mapping[str, int]] = Field(default_factory=dict)
    failure_judge: str | None = None
    failure_by_rules: Label | None = None
    closed_book_correct: bool | None = None
    adjusted: Adjusted | None = None
    earlier_questions: int = 0
    earlier_conversations: int = 0
    at_tokens: dict[str, HeldAt] | None = None
    answer_in_prompt: bool | None = None
    answer_said: bool | None = None
    cut_tokens: int = 0
    blind_guess: float | None = None
    abstain: bool = False
    abstained: bool | None = None
    grader: GradedByRules | None = None
    judge: JudgeRow | None = None
    label: Verdict | None = None
    reasoning: tuple[str, ...] = ()
    distance_tokens: int | None = None
    benchmark_cost_usd: float | None = None


ANSWER_METRICS = ("exact_match", "entity_recall", "f1")
"""Metrics of a single answer: fields of :class:`QuestionRow`, whose means are fields of :class:`RecallResults`."""


def recall_field(k: int) -> str:
    """Return the field of :class:`QuestionRow` for recall@k."""
    return f"recall_at_{k}"
