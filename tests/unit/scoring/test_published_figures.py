"""The figures of LoCoMo and LongMemEval in the results, and the rule that decided, in rows."""

from __future__ import annotations

import pytest

from memreplay.scoring.aggregates import recall_of
from tests.unit.scoring.samples import choice, recall, reply, row


def test_locomos_f1_is_reported_by_category() -> None:
    hop = recall(id="a", type="multi-hop", other_type="single_hop", expected="tea, coffee", expected_entities=())
    single = recall(id="b", type="single-hop", other_type="open_domain", expected="red shoes", expected_entities=())
    trick = recall(id="c", type="adversarial", other_type="adversarial", expected="-", abstain=True)
    scored = recall_of(
        [
            row(hop, reply("coffee")),
            row(single, reply("red shoe")),
            row(single, reply(None, error="timeout")),
            row(trick, reply("Not mentioned in the conversation")),
        ]
    ).locomo_f1
    assert scored is not None
    assert {name: (each.category, each.questions, each.f1) for name, each in scored.by_category.items()} == {
        "multi-hop": (1, 1, 0.5),
        "single-hop": (4, 1, 1.0),
        "adversarial": (5, 1, 1.0),
    }
    assert (scored.questions, scored.f1) == (3, pytest.approx(2.5 / 3))


def test_longmemevals_accuracy_is_reported_by_its_question_types() -> None:
    user = recall(id="a", type="single-session-user", expected="tea", expected_entities=())
    update = recall(id="b", type="knowledge-update", expected="tea", expected_entities=())
    unsaid = recall(id="c_abs", type="knowledge-update", expected="-", abstain=True)
    scored = recall_of(
        [row(user, reply("Tea.")), row(update, reply("milk")), row(unsaid, reply("That was not mentioned."))]
    ).longmemeval
    assert scored is not None
    assert {name: (each.correct, each.graded) for name, each in scored.by_type.items()} == {
        "single-session-user": (1, 1),
        "knowledge-update": (1, 2),
    }
    assert scored.task_averaged_accuracy == 0.75
    assert scored.abstention is not None and scored.abstention.accuracy == 1.0


def test_other_datasets_have_neither() -> None:
    scored = recall_of([row(recall(), reply("Ida and Bo"))])
    assert (scored.locomo_f1, scored.longmemeval) == (None, None)


def test_a_row_says_which_rule_decided() -> None:
    assert row(choice(), reply("I'd pick 3")).decided_by == "label"
    assert row(choice(), reply("quince")).decided_by == "text"
    assert row(recall(), reply("Ida and Bo")).decided_by == "exact"
    assert row(recall(), reply("not Ida and Bo")).decided_by == "denied"
    assert row(recall(), reply(None, error="timeout")).decided_by is None
