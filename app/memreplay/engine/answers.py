"""Grade a reply, and score its retrieval, from the recorded events of its question alone."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Protocol

from memory_backends.base import Hit
from memory_backends.controls import CONTROLS
from memreplay.conversations.models import Question
from memreplay.engine.events import AnswerJudged, AnswerScored, AskEvent, EventSink, QuestionAsked
from memreplay.grading import GradedByRules, RetrievalScore, Score
from memreplay.grading.failures import GradingError, grading_one_answer, is_grading_failure
from memreplay.grading.judge import is_quotation, may_be_a_quotation, score_quotation
from memreplay.llm import AGENT_MODEL
from memreplay.llm.judging import Judgement, read_again
from memreplay.llm.model import PromptMessage, Reply
from memreplay.llm.prompt_templates import without_letter
from memreplay.llm.prompts import KINDS


def choice_order(question: Question, seed: int | None) -> tuple[int, ...]:
    """Return the dataset's index of each option in the order to show; empty for the dataset's order.

    It depends on the seed and the question's id only, so it is the same for every backend, model, repeat and run.
    """
    if seed is None or question.kind != "choice":
        return ()
    order = list(range(len(question.choices)))
    Random(f"{seed}/{question.id}").shuffle(order)
    return tuple(order)


def with_order(question: Question, order: tuple[int, ...]) -> Question:
    """Return the question with its options, and the index of the right one, in this order."""
    if not order:
        return question
    correct = None if question.correct_index is None else order.index(question.correct_index)
    shown = tuple(question.choices[index] for index in order)
    return question.model_copy(update={"choices": shown, "correct_index": correct})


def score_reply(question: Question, reply: Reply) -> Score:
    """Return the score of a reply. An error is no wrong answer; a provider's refusal is one, counted separately.

    Where the rules fail on the reply, that is an error too, with its ``problem``; so is a reply that is expected to
    suit a description, since no rule can tell.
    """
    if reply.error is not None:
        return Score(outcome="error", score=None)
    if question.expects_a_rubric and not reply.refused:
        return Score(outcome="error", score=None, predicted=reply.text, problem=NEEDS_A_JUDGE)
    try:
        with grading_one_answer():
            if reply.refused:
                return KINDS[question.kind].score_refused(question, reply.text)
            return KINDS[question.kind].score(question, reply.text or "")
    except GradingError as error:
        return Score(outcome="error", score=None, problem=str(error))


NEEDS_A_JUDGE = (
    "not graded: what is expected is a description of a good reply, which --judge MODEL can grade in a new run, and"
    " memreplay rejudge in this one"
)

CUTOFFS = (1, 5, 10)
"""The values of k in recall@k."""

UNRANKED_BACKENDS = CONTROLS | {"full_context"}
"""Memories that rank no hits; recordings of November 2026 and before do not say so of a question."""


def score_retrieval(question: Question, hits: Sequence[Hit], has_retriever: bool) -> RetrievalScore:
    """Recall@k, reciprocal rank, and whether all evidence is in the prompt.

    All are None unless the evidence supports the answer. Only turns that a hit holds verbatim count. A hit that was
    cut for lack of room was retrieved, but is not in the prompt.
    """
    if question.evidence_role != "supports" or not question.evidence:
        return RetrievalScore()
    evidence = frozenset(question.evidence)
    in_prompt = frozenset(turn for hit in hits if hit.in_prompt for turn in hit.turns)
    if not has_retriever:
        return RetrievalScore(evidence_in_prompt=evidence <= in_prompt)
    ranked = sorted(hits, key=lambda hit: hit.rank)
    return RetrievalScore(
        recall_at={k: _found(evidence, ranked[:k]) / len(evidence) for k in CUTOFFS},
        reciprocal_rank=_reciprocal_rank(evidence, ranked),
        evidence_in_prompt=evidence <= in_prompt,
    )


def _found(evidence: frozenset[str], hits: Sequence[Hit]) -> int:
    return len(evidence.intersection(turn for hit in hits for turn in hit.turns))


def _reciprocal_rank(evidence: frozenset[str], ranked: Sequence[Hit]) -> float:
    for place, hit in enumerate(ranked, start=1):
        if not evidence.isdisjoint(hit.turns):
            return 1 / place
    return 0.0


class AnswerJudge(Protocol):
    """A port: a model that grades replies to recall questions."""

    async def judge(self, question: Question, text: str) -> Judgement: ...


def is_for_a_judge(question: Question, reply: Reply) -> bool:
    """Return whether a judge has anything to grade: a reply in words to a question whose right answer is known."""
    is_answered = reply.error is None and not reply.refused and bool((reply.text or "").strip())
    return question.kind == "recall" and bool(question.expected or question.abstain) and is_answered


async def judgement_of(
    question: Question, asked: QuestionAsked, reply: Reply, judge: AnswerJudge | None
) -> Judgement | None:
    """Return what the judge says of a reply; None if there is no judge, or nothing for one to grade.

    Raises:
        StoppedError: the judge cannot be called.
    """
    if judge is None or not is_for_a_judge(question, reply):
        return None
    return await judge.judge(question, _said(question, asked.prompt, reply).text or "")


async def grade(
    question: Question, asked: QuestionAsked, reply: Reply, judge: AnswerJudge | None, emit: EventSink
) -> AnswerScored:
    """Grade a reply by the rules and by the judge, if there is one, and emit what both said.

    Raises:
        StoppedError: the judge cannot be called; the reply can be graded later.
    """
    judgement = await judgement_of(question, asked, reply, judge)
    if judgement is not None:
        emit(AnswerJudged(**ask_fields(asked), judgement=judgement))
    scored = score_answer(question, asked, reply, judgement)
    emit(scored)
    return scored


def score_answer(
    question: Question, asked: QuestionAsked, reply: Reply, judgement: Judgement | None = None
) -> AnswerScored:
    """Return the scores of a reply and of the retrieval before it. Where a judge was asked, its verdict decides.

    Retrieval is not scored where it is unknown: an agent's, and one of which nothing was recorded. A judge's reply
    that we failed to read when it was received is read again.
    """
    if asked.model == AGENT_MODEL or asked.why_empty == "not_recorded":
        retrieval = RetrievalScore()
    else:
        is_ranked = asked.ranked and asked.backend not in UNRANKED_BACKENDS
        retrieval = score_retrieval(question, asked.hits, is_ranked)
    score = score_by_rules(question, asked.prompt, asked.choice_order, reply)
    if judgement is not None:
        score = _judged(score, read_again(judgement))
    return AnswerScored(**ask_fields(asked), score=score, retrieval=retrieval)


def score_by_rules(
    question: Question, prompt: Sequence[PromptMessage], order: tuple[int, ...], reply: Reply
) -> Score:
    """Return the score of a reply to a prompt, whose options stood in this order; an empty one is the dataset's."""
    reply = _said(question, prompt, reply)
    score = score_as_shown(question, order, reply)
    said = reply.text or ""
    if may_be_a_quotation(score) and prompt and is_quotation(said, prompt[0].content):
        return score_quotation(question, said, score)
    return score


def _said(question: Question, prompt: Sequence[PromptMessage], reply: Reply) -> Reply:
    """Return the reply with the answer in place of the letter, where the prompt offered two answers."""
    if reply.text is None or not prompt:
        return reply
    text = without_letter(question, prompt[-1].content, reply.text)
    return reply if text == reply.text else reply.model_copy(update={"text": text})


def graded_again(
    question: Question, asked: QuestionAsked, reply: Reply, scored: AnswerScored, judgement: Judgement | None
) -> AnswerScored:
    """Return the recorded scores of a reply; of one whose grading failed, those that the rules give now."""
    return scored if scored.score.problem is None else score_answer(question, asked, reply, judgement)


def _judged(score: Score, judgement: Judgement) -> Score:
    """Return the score by the judge's verdict. Without one the answer is not graded, which is an error and not
    wrong.

    The rules' own problem stays beside the verdict, so that they are applied again as well.
    """
    by_rules = GradedByRules(outcome=score.outcome, decided_by=score.decided_by)
    decided: dict[str, Any] = {"outcome": "error", "score": None, "decided_by": None, "uncertain": False}
    if is_grading_failure(judgement.problem):
        decided["problem"] = judgement.problem
    if judgement.verdict is not None:
        is_right = judgement.verdict == "right"
        decided |= {
            "outcome": "correct" if is_right else "wrong",
            "score": float(is_right),
            "decided_by": "judge",
        }
    return score.model_copy(update={**decided, "grader": by_rules})


def ask_fields(asked: QuestionAsked) -> dict[str, Any]:
    """Return the fields that all events of one ask have in common."""
    return asked.model_dump(include=set(AskEvent.model_fields))


def score_as_shown(question: Question, order: tuple[int, ...], reply: Reply) -> Score:
    """Return the score of a reply to shuffled options; its predicted index refers to the dataset's order."""
    score = score_reply(with_order(question, order), reply)
    if not order or score.predicted_index is None:
        return score
    return score.model_copy(update={"predicted_index": order[score.predicted_index]})
