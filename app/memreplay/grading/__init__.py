"""Grades replies by their form, without a model: is a recall answer right, which option does a reply choose.

A recall reply is decided in this order, and the first that holds gives ``decided_by``:

1. *Read* (:mod:`.read`, :mod:`.vocabulary`): reasoning is cut off; words, numbers, amounts, dates and times become
   tokens of one spelling, in English and Spanish.
2. *Abstention* (:mod:`.judge`): the reply says that it was never said. Right only where that is the answer.
3. *Yes or no* (:mod:`.veto`), where the question asks that.
4. *Match* (:mod:`.match`): where the reply has the expected answer, or all expected entities, in any spelling.
   Nowhere is ``no_match``.
5. *Veto* (:mod:`.veto`), of every place that matches: it is ``denied`` or only considered, ``superseded``, of
   somebody or something else (``denied`` too), ``hedged``, or one of several ``candidates``. One place without a
   veto is enough, unless another is hedged.
6. *Overlap* (:mod:`.judge`), of a reply in words that no rule decides: it is right (``overlap``) if it asserts all
   figures, dates and names of the answer, and most of its other words or items.

What matches is ``exact`` (the expected words occur), ``equivalent`` or ``entities``, unless the reply also asserts
a value that the question calls superseded. :mod:`.doubt` says which grades are ``uncertain``: many of these are
wrong. :mod:`.choice` reads a label first, then the text of an option, then what a sentence asserts.

The rules are frozen: further ones gained next to nothing on replies that they were not fitted to, and a judge
(``--judge``) reads what form does not show. A change of a rule must decide at least two replies that somebody else
wrote before it, keep the agreement with each table of ``tests/unit/grading``, work in English and in Spanish, and
replace at least as many lines as it adds.
"""

from __future__ import annotations

from typing import Literal

from memreplay.conversations.models import Frozen

Outcome = Literal["correct", "wrong", "unparsed", "refused", "error"]

DecidedBy = Literal[
    "exact",
    "equivalent",
    "entities",
    "overlap",
    "abstention",
    "denied",
    "hedged",
    "superseded",
    "candidates",
    "no_match",
    "label",
    "text",
    "judge",
]
"""The rule that decided: how an answer was recognised, or why it was not accepted; or that a judge did."""


class GradedByRules(Frozen):
    """The rules' grade of an answer that a judge decided on."""

    outcome: Outcome
    decided_by: DecidedBy | None


class Score(Frozen):
    """The score of one answer. ``score`` is None for an error, which is not a wrong answer.

    ``predicted`` is the option's text, or the reply; ``predicted_index`` is only set for a parsed choice.
    ``exact_match``, ``entity_recall`` (0..1, None without expected entities) and ``f1`` are only set for recall.
    ``uncertain`` is set where the rules are often wrong: a person or a judge should look.
    ``grader`` is set if a judge was asked, or a mark says otherwise; a judge without a verdict is an error of
    grading. ``problem`` is set where a rule, or the reading of the judge's verdict, failed (:mod:`.failures`): it
    can be graded again.
    """

    outcome: Outcome
    score: float | None
    predicted: str | None = None
    predicted_index: int | None = None
    exact_match: bool | None = None
    entity_recall: float | None = None
    f1: float | None = None
    decided_by: DecidedBy | None = None
    uncertain: bool = False
    grader: GradedByRules | None = None
    problem: str | None = None

    @property
    def error(self) -> str | None:
        """Return why the answer could not be graded; None where it was, were it by the judge alone."""
        return self.problem if self.outcome == "error" else None


class RetrievalScore(Frozen):
    """Scores of retrieving the evidence. None where they do not apply.

    ``recall_at`` maps k (1, 5, 10) to |evidence ∩ turns of the first k hits| / |evidence|;
    ``reciprocal_rank`` is 1 / rank of the first hit with an evidence turn, 0 without one.
    """

    recall_at: dict[int, float] | None = None
    reciprocal_rank: float | None = None
    evidence_in_prompt: bool | None = None
