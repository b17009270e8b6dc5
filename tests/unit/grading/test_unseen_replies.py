"""The grader agrees with a careful human on replies that it was not written on.

The held-out tables were written after the last correction of the grader, and nothing was corrected for them: a rise
of their agreement by a rule for one of their sentences would make the figure worthless.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from memreplay.grading.choice import parse_choice
from memreplay.grading.judge import score_recall
from tests.unit.grading.adversarial_replies import CHOICES, IN_CONTEXT, OF_ALL_KINDS, OPTIONS, WEAK_KINDS
from tests.unit.grading.fresh_replies import EVERY_CLASS, OF_OTHERS
from tests.unit.grading.fresh_replies import Recall as Fresh
from tests.unit.grading.unseen_replies import (
    HELD_OUT,
    HELD_OUT_CHOICES,
    HELD_OUT_CHOICES_OPTIONS,
    SEEN,
    SEEN_CHOICES,
    SEEN_CHOICES_OPTIONS,
    Choice,
    Recall,
)
from tests.unit.scoring.samples import recall


@pytest.mark.parametrize(("cases", "least"), [(SEEN, 0.93), (HELD_OUT, 0.86)], ids=["seen", "held out"])
def test_the_grader_agrees_with_a_careful_human_on_replies_as_models_word_them(
    cases: Sequence[Recall], least: float
) -> None:
    differing = []
    for kind, text, expected, entities, reply, is_right in cases:
        asked = recall(
            text=text,
            expected=expected or "Not mentioned",
            expected_entities=entities,
            abstain=expected is None,
        )
        score = score_recall(asked, reply)
        if (score.outcome == "correct") != is_right:
            differing.append(f"{kind}: {text} | {expected} | {reply}: {score.outcome} by {score.decided_by}")
    assert 1 - len(differing) / len(cases) >= least, "\n".join(differing)


@pytest.mark.parametrize(
    ("options", "cases"),
    [(SEEN_CHOICES_OPTIONS, SEEN_CHOICES), (HELD_OUT_CHOICES_OPTIONS, HELD_OUT_CHOICES), (OPTIONS, CHOICES)],
    ids=["seen", "held out", "numbered from 0"],
)
def test_no_choice_is_read_that_the_reply_does_not_make(options: Sequence[str], cases: Sequence[Choice]) -> None:
    differing = []
    for reply, index in cases:
        found = parse_choice(reply, options)
        # A choice that is not understood is counted apart; one that was not made would be graded.
        assert found.index in (index, None), f"{reply}: {found}"
        if found.index != index:
            differing.append(f"{reply}: {found.reason}")
    assert len(differing) <= 0.13 * len(cases), "\n".join(differing)


@pytest.mark.parametrize(
    ("cases", "count", "least"),
    [
        (EVERY_CLASS, 205, 202),
        (OF_OTHERS, 32, 30),
        (WEAK_KINDS, 175, 164),
        (IN_CONTEXT, 80, 75),
        (OF_ALL_KINDS, 65, 63),
    ],
    ids=["every class", "of others", "weak kinds", "in context", "of all kinds"],
)
def test_the_grader_agrees_with_a_careful_human_as_often_as_measured(
    cases: Sequence[Fresh], count: int, least: int
) -> None:
    differing = []
    for kind, text, expected, reply, is_right in cases:
        asked = recall(
            text=text, expected=expected or "Not mentioned", expected_entities=(), abstain=expected is None
        )
        score = score_recall(asked, reply)
        if (score.outcome == "correct") != is_right:
            differing.append(f"{kind}: {text} | {expected} | {reply}: {score.outcome} by {score.decided_by}")
    assert len(cases) == count and count - len(differing) >= least, "\n".join(differing)
