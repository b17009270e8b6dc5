"""Retrieval of the evidence of questions: at equally many hits, at equal tokens, in the prompt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from memory_backends.base import Hit
from memory_backends.controls import CONTROLS
from memreplay.conversations.models import Frozen
from memreplay.engine.answers import CUTOFFS
from memreplay.scoring.groups import Key, Rows, by_conversation, by_fact, facts_in_prompt, mean_of, share_of_facts
from memreplay.scoring.question_row import HitRow, Interval, QuestionRow, recall_field
from memreplay.scoring.statistics import clustered_interval, mean, wilson_interval


class RetrievedAt(Frozen):
    """Means over facts of :class:`~memreplay.scoring.equal_tokens.HeldAt`; ``estimated`` if any of them is."""

    recall: float | None
    evidence: float
    estimated: bool = False


class RetrievalResults(Frozen):
    """Means over the questions whose evidence supports the answer and whose memory could be read.

    The keys of ``recall_at`` are the numbers of hits that were really used: with ``--top-k 3`` they are 1 and 3.
    ``at_tokens`` has an entry per token budget, over facts. ``tokens_per_hit`` and ``turns_per_hit`` (verbatim
    turns) are means over all hits. All of these are null for memories that rank nothing. What counts turns word for
    word (``recall_at``, ``mrr``, ``evidence_in_prompt``, the ``recall`` at tokens) is null for memories that
    :func:`only_distil`.

    ``evidence_in_prompt`` and ``answer_in_prompt``, which also counts prompts that hold the answer in other words
    than the evidence turns', are shares of ``facts``, of which one that is asked twice counts once. Their intervals
    are Wilson's, and the wider one that allows for correlation within a conversation (``…_clustered``).
    """

    questions: int
    recall_at: dict[str, float] | None
    mrr: float | None
    facts: int
    evidence_in_prompt: float | None
    evidence_in_prompt_ci95: Interval | None
    evidence_in_prompt_ci95_clustered: Interval | None
    at_tokens: dict[str, RetrievedAt] | None
    tokens_per_hit: float | None
    turns_per_hit: float | None
    answer_in_prompt: float
    answer_in_prompt_ci95: Interval | None
    answer_in_prompt_ci95_clustered: Interval | None


class Fit(Frozen):
    """The number of questions with evidence, and of those whose answer was in every memory's prompt.

    A question that is asked in words and with options counts once.
    """

    questions: int
    in_every_prompt: int


def only_distil(hits: Iterable[Hit | HitRow]) -> bool:
    """Return whether a memory, by all that it returned in a run, holds no turn word for word.

    Then no count of such turns says anything about it. Nothing is known of a memory that returned nothing.
    """
    hit = None
    for hit in hits:
        if hit.turns:
            return False
    return hit is not None


def without_counts_of_turns(rows: Rows) -> list[QuestionRow]:
    """Return the rows of a run, those of memories that only distil without what counts turns word for word."""
    hits: dict[str, list[HitRow]] = defaultdict(list)
    for row in rows:
        hits[row.backend].extend(row.hits)
    distilling = {backend for backend, its_hits in hits.items() if only_distil(its_hits)}
    return [_without_counts(row) if row.backend in distilling else row for row in rows]


def _without_counts(row: QuestionRow) -> QuestionRow:
    counts: dict[str, Any] = {recall_field(k): None for k in CUTOFFS}
    if row.at_tokens is not None:
        counts["at_tokens"] = {k: held.model_copy(update={"recall": None}) for k, held in row.at_tokens.items()}
    if row.adjusted is not None:
        counts["adjusted"] = row.adjusted.model_copy(update={"evidence_in_prompt": None})
    return row.model_copy(update={**counts, "reciprocal_rank": None, "evidence_in_prompt": None})


def retrieval_of(rows: Rows, top_k: int | None = None) -> RetrievalResults | None:
    """Return how well the evidence was retrieved; None if no row has evidence that supports its answer.

    ``top_k`` is the run's limit of hits: recall at more than that is recall at ``top_k``, and named so.
    """
    evidence, answer = facts_in_prompt(rows, "evidence_in_prompt"), facts_in_prompt(rows, "answer_in_prompt")
    if not answer:
        return None
    ranked = [row for row in rows if row.at_tokens is not None]
    recall_at = {str(min(k, top_k or k)): mean_of(ranked, recall_field(k)) for k in CUTOFFS}
    hits = [hit for row in ranked for hit in row.hits]
    return RetrievalResults(
        questions=sum(row.answer_in_prompt is not None for row in rows),
        recall_at={k: share for k, share in recall_at.items() if share is not None} or None,
        mrr=mean_of(ranked, "reciprocal_rank"),
        facts=len(answer),
        evidence_in_prompt=share_of_facts(rows, "evidence_in_prompt"),
        evidence_in_prompt_ci95=_interval(evidence),
        evidence_in_prompt_ci95_clustered=_clustered(evidence),
        at_tokens=_at_tokens(ranked),
        tokens_per_hit=mean([float(hit.tokens) for hit in hits]),
        turns_per_hit=mean([float(len(hit.turns)) for hit in hits]),
        answer_in_prompt=share_of_facts(rows, "answer_in_prompt") or 0.0,
        answer_in_prompt_ci95=_interval(answer),
        answer_in_prompt_ci95_clustered=_clustered(answer),
    )


def _interval(facts: Mapping[Key, float]) -> Interval | None:
    return wilson_interval(sum(facts.values()), len(facts))


def _clustered(facts: Mapping[Key, float]) -> Interval | None:
    return clustered_interval(by_conversation(dict(facts), {}))


def _at_tokens(ranked: Rows) -> dict[str, RetrievedAt] | None:
    return {
        budget: RetrievedAt(
            recall=_mean_at(ranked, budget, "recall"),
            evidence=_mean_at(ranked, budget, "evidence") or 0.0,
            estimated=any(row.at_tokens[budget].estimated for row in ranked if row.at_tokens is not None),
        )
        for budget in (ranked[0].at_tokens if ranked else None) or ()
    } or None


def _mean_at(ranked: Rows, budget: str, field: Literal["recall", "evidence"]) -> float | None:
    found = by_fact(ranked, lambda row: getattr(row.at_tokens[budget], field) if row.at_tokens else None)
    return mean([*found.values()])


def fit_of(rows: Rows) -> Fit | None:
    """Return the number of questions whose answer was in every memory's prompt; None unless there are several
    memories.
    """
    remembered = [row for row in rows if row.backend not in CONTROLS and row.answer_in_prompt is not None]
    if len({row.backend for row in remembered}) < 2:
        return None
    held = facts_in_prompt(remembered, "answer_in_prompt")
    return Fit(questions=len(held), in_every_prompt=sum(share == 1 for share in held.values()))
