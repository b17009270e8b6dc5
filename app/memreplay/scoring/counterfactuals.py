"""Re-asks of a wrong answer: which changes repaired it, and what that says of the diagnosis.

A wrong answer is asked again under one change at a time, an Intervention. ``unchanged`` is the control: if
the same prompt gets a right answer the second time, no change can be credited with it. The verdict, a :data:`Cure`,
follows from the failure label and from which changes repaired the answer; no model is asked for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, get_args

from memreplay.conversations.models import Frozen
from memreplay.grading import Outcome
from memreplay.scoring.verdicts import VERDICTS, Intervention, Label

MEANINGS: Final[Mapping[Intervention, str]] = {
    "unchanged": "the same prompt again: the control against which the others are read",
    "evidence_only": "the evidence turns alone, as the oracle gives them",
    "stored_only": "all that memory stored of the evidence turns, alone",
    "evidence_added": "the missing evidence turns added, in the order of the conversation",
    "evidence_replacing": "the same, in place of as many tokens of the lowest-ranked other text",
    "evidence_first": "the evidence at the beginning of the context, added where it was missing",
    "evidence_last": "the evidence at the end of the context, added where it was missing",
    "half_budget": "half the tokens of context, at the same number of hits, from the rebuilt memory",
    "double_budget": "twice the tokens of context, from the rebuilt memory",
    "double_top_k": "twice the hits, from the rebuilt memory",
    "current_value_only": "without the lines that hold an outdated value",
    "distractors_removed": "without the hits that hold no evidence (for what was never said: without the bait)",
    "closed_book": "without any memory",
}

Cure = Literal["confirmed", "refuted", "compound", "reader_limit", "noise", "key_in_doubt"]
CURES: Final[tuple[Cure, ...]] = get_args(Cure)

CURE_MEANINGS: Final[Mapping[Cure, str]] = {
    "confirmed": "a change that mends only the blamed stage repairs the answer",
    "refuted": "the change that should have repaired the answer does not, or one that should not have does",
    "compound": "only a change that mends another stage, or more than the blamed one, repairs the answer",
    "reader_limit": "not even the evidence alone gets a right answer from this model",
    "noise": "the same prompt, asked again, gets a right answer",
    "key_in_doubt": "nothing repairs it, and others who did not read the same words agree on another answer",
}

_WITH_EVIDENCE: Final[frozenset[Intervention]] = frozenset({"evidence_first", "evidence_last", "evidence_only"})
"""Changes to the reading that also add the evidence that was missing: they repair what memory lost, too."""
_ADDING: Final[frozenset[Intervention]] = frozenset({"evidence_added", "evidence_replacing"})
"""Changes that are only asked where words of the evidence were missing."""
_REMOVING: Final[frozenset[Intervention]] = frozenset({"distractors_removed", "half_budget", "current_value_only"})
"""Changes that bring nothing into the prompt: where one repairs the answer, the prompt had what it takes."""
_RETURNING: Final[frozenset[Intervention]] = frozenset({"double_budget", "double_top_k", "stored_only"})
"""Changes that bring only what memory stores: where one repairs the answer, it was written."""

_LEAST_FIRST: Final[tuple[Intervention, ...]] = (
    "unchanged",
    "current_value_only",
    "half_budget",
    "double_budget",
    "double_top_k",
    "stored_only",
    "evidence_added",
    "evidence_first",
    "evidence_last",
    "distractors_removed",
    "evidence_replacing",
    "evidence_only",
    "closed_book",
)


class Counterfactual(Frozen):
    """The answer under one change. ``repaired`` is whether it is right; null for an error, which says neither.

    ``reply`` is null only for an error. ``predicted`` is the answer that was read from the reply.
    """

    intervention: Intervention
    outcome: Outcome
    reply: str | None
    repaired: bool | None
    predicted: str | None = None
    error: str | None = None


def cure_of(
    label: Label | None,
    asked: Sequence[Counterfactual],
    *,
    abstain: bool,
    others_agree: bool,
    shows_evidence: bool = True,
    shows_all: bool = True,
) -> Cure | None:
    """Return what the re-asks of one wrong answer say of its diagnosis; None where they do not decide it.

    Nothing is decided without the control. ``abstain``: the right answer is that it was never said, so that the
    model without any memory takes the place of the evidence alone. ``others_agree``: closed book or several others
    gave the same answer, independently of this one. ``shows_evidence``: the prompt had words of the evidence, or
    said the answer itself; ``shows_all``: it had all of these words.

    A reader who misread, or did not see, what the prompt held is not confirmed by a change that also brings words
    which the prompt lacked. Such a verdict, or that an outdated value was preferred, is refuted where the prompt
    had none of these words, and they alone repair the answer, not less of the prompt, nor more of what is stored.
    That memory lost the fact is not confirmed where a part of the prompt is enough. That it was never written is
    refuted where what is stored is enough, and the model does not know it without any memory. That it was written
    and lost is not confirmed by adding the evidence where all that is stored of it is not enough. Where that change
    ended in an error, neither is decided.
    """
    repaired = {each.intervention: each.repaired for each in asked}
    if repaired.get("unchanged") is None:
        return None
    if repaired["unchanged"]:
        return "noise"
    alone: Intervention = "closed_book" if abstain else "evidence_only"
    repairs = {name for name, right in repaired.items() if right and (abstain or name != "closed_book")}
    predicted = VERDICTS[label].repaired_by if label is not None else frozenset()
    if label in ("misread", "abstained") and not (shows_evidence and shows_all and _ADDING.isdisjoint(repaired)):
        predicted -= _WITH_EVIDENCE
    if label is not None and VERDICTS[label].fault == "memory" and repairs & _REMOVING:
        predicted = frozenset()
    if label in ("not_retrieved", "cut") and repaired.get("stored_only") is False:
        predicted -= _ADDING
    if label == "not_written" and repairs & _RETURNING:
        return "compound" if repaired.get("closed_book") else "refuted"
    is_open = label in ("not_written", "not_retrieved", "cut") and repaired.get("stored_only", False) is None
    if repairs & predicted:
        return None if is_open and not repairs & _RETURNING else "confirmed"
    is_of_reading = label in ("misread", "abstained", "stale")
    if is_of_reading and not shows_evidence and repairs & _ADDING and not repairs & (_REMOVING | _RETURNING):
        return "refuted"
    if repairs:
        return "compound"
    if repaired.get(alone) is None:
        return None
    return "key_in_doubt" if others_agree else "reader_limit"


def least_repair(asked: Iterable[Counterfactual]) -> Intervention | None:
    """Return the least change that repairs the answer; None where none does."""
    repairs = {each.intervention for each in asked if each.repaired}
    return next((name for name in _LEAST_FIRST if name in repairs), None)


# ---- results of a backend --------------------------------------------------------------------------------------


class Repairs(Frozen):
    """Counts of how often one change repaired a wrong answer. ``share`` is repaired / graded; ``errors`` are in
    neither.

    ``ci95`` is Wilson's interval over questions. ``beyond_unchanged`` is the share minus that of the control on the
    same answers, with its paired interval; null without the control.
    """

    graded: int
    repaired: int
    errors: int
    share: float | None
    ci95: tuple[float, float] | None
    beyond_unchanged: float | None = None
    beyond_ci95: tuple[float, float] | None = None


class Ceiling(Frozen):
    """The accuracy if one stage were perfect: between ``low`` and ``high``, where re-asks ended in an error or are
    missing (``undetermined``). Answers that are right today are assumed to stay right.
    """

    low: float
    high: float
    undetermined: int


Step = Literal[
    "right", "noise", "memory", "reading", "refuted", "compound", "reader_limit", "key_in_doubt", "undetermined"
]

STEP_MEANINGS: Final[Mapping[Step, str]] = {
    "right": "right today",
    "noise": "right when asked again",
    "memory": "lost by memory; repaired by bringing it into the prompt",
    "reading": "in the prompt; repaired by presenting it otherwise",
    "refuted": "the repairs speak against the stage that is blamed",
    "compound": "repaired only by mending another stage, or more than one",
    "reader_limit": "beyond this model, even from the evidence alone",
    "key_in_doubt": "the published answer is in doubt",
    "undetermined": "not asked again, or not decided",
}


class WaterfallStep(Frozen):
    """A step from today's accuracy to 1: the ``answers`` that it adds, and the accuracy it reaches."""

    step: Step
    answers: int
    accuracy: float


class WhatIfResults(Frozen):
    """The re-asks of one backend. ``asked`` of the ``wrong`` answers have a graded control.

    ``by_label`` has the same per failure label. ``waterfall`` begins with the right answers and ends at 1.
    """

    wrong: int
    asked: int
    interventions: dict[Intervention, Repairs]
    by_label: dict[str, dict[Intervention, Repairs]]
    cures: dict[Cure, int]
    perfect_retrieval: Ceiling | None
    perfect_reader: Ceiling | None
    waterfall: tuple[WaterfallStep, ...]
