"""What re-asks say of a diagnosis, and what they add up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from memreplay.scoring.counterfactuals import Counterfactual, Cure, cure_of, least_repair
from memreplay.scoring.question_row import HitRow, QuestionRow
from memreplay.scoring.verdicts import Intervention, Label
from memreplay.scoring.what_if import what_if_of, with_cures
from tests.tables import failing
from tests.unit.scoring.samples import MODEL

Outcomes = Mapping[Intervention, bool | None]


def asked(outcomes: Outcomes) -> tuple[Counterfactual, ...]:
    return tuple(
        Counterfactual(
            intervention=name,
            outcome="error" if right is None else "correct" if right else "wrong",
            reply=None if right is None else "a reply",
            repaired=right,
            error="gone" if right is None else None,
        )
        for name, right in outcomes.items()
    )


def test_the_verdict_follows_from_what_repairs() -> None:
    def check(label: Label, outcomes: Outcomes, cure: Cure | None) -> None:
        assert cure_of(label, asked(outcomes), abstain=False, others_agree=False) == cure

    assert (
        failing(
            [
                ("not_retrieved", {"unchanged": True, "evidence_added": True}, "noise"),
                ("not_retrieved", {"unchanged": False, "evidence_added": True}, "confirmed"),
                ("cut", {"unchanged": False, "double_budget": True, "evidence_added": False}, "confirmed"),
                ("not_retrieved", {"unchanged": False, "evidence_added": False, "evidence_last": True}, "compound"),
                ("not_written", {"unchanged": False, "evidence_added": False, "evidence_only": True}, "compound"),
                ("misread", {"unchanged": False, "evidence_first": False, "evidence_last": True}, "confirmed"),
                ("misread", {"unchanged": False, "evidence_last": False, "evidence_only": False}, "reader_limit"),
                ("misread", {"unchanged": False, "half_budget": True}, "compound"),
                ("cut", {"unchanged": False, "half_budget": True}, "compound"),
                ("misread", {"unchanged": False, "evidence_only": None}, None),
                ("misread", {"unchanged": None, "evidence_only": True}, None),
                ("misread", {"evidence_only": False}, None),
                ("misread", {"unchanged": False, "evidence_only": False, "closed_book": True}, "reader_limit"),
                ("stale", {"unchanged": False, "current_value_only": True}, "confirmed"),
                ("not_retrieved", {"unchanged": False, "evidence_added": True, "half_budget": True}, "compound"),
                ("not_retrieved", {"unchanged": False, "evidence_added": True, "double_top_k": True}, "confirmed"),
                ("not_written", {"unchanged": False, "evidence_added": True, "double_top_k": True}, "refuted"),
                ("not_written", {"unchanged": False, "evidence_added": True, "stored_only": True}, "refuted"),
                ("not_written", {"unchanged": False, "closed_book": True, "stored_only": True}, "compound"),
                ("not_written", {"unchanged": False, "evidence_added": True, "stored_only": None}, None),
                ("not_retrieved", {"unchanged": False, "evidence_added": True, "stored_only": None}, None),
                ("misread", {"unchanged": False, "evidence_last": True, "stored_only": None}, "confirmed"),
                ("not_written", {"unchanged": False, "evidence_added": True, "stored_only": False}, "confirmed"),
                ("not_retrieved", {"unchanged": False, "evidence_added": True, "stored_only": True}, "confirmed"),
                ("not_retrieved", {"unchanged": False, "evidence_added": True, "stored_only": False}, "compound"),
                ("cut", {"unchanged": False, "double_budget": True, "stored_only": False}, "confirmed"),
            ],
            check,
        )
        == []
    )


def test_where_nothing_repairs_and_others_agree_the_key_is_in_doubt() -> None:
    nothing = asked({"unchanged": False, "evidence_only": False})
    assert cure_of("misread", nothing, abstain=False, others_agree=True) == "key_in_doubt"


def test_of_what_was_never_said_the_model_alone_is_the_limit() -> None:
    bait = asked({"unchanged": False, "distractors_removed": True, "closed_book": True})
    assert cure_of("false_attribution", bait, abstain=True, others_agree=False) == "confirmed"
    alone = asked({"unchanged": False, "distractors_removed": False, "closed_book": False})
    assert cure_of("false_attribution", alone, abstain=True, others_agree=False) == "reader_limit"


def test_a_misreading_is_refuted_where_the_evidence_that_the_prompt_lacked_repairs_the_answer() -> None:
    again = asked({"unchanged": False, "evidence_added": True, "evidence_first": True, "evidence_only": True})

    def cure(shows_evidence: bool, reasked: Sequence[Counterfactual] = again) -> Cure | None:
        return cure_of("misread", reasked, abstain=False, others_agree=False, shows_evidence=shows_evidence)

    assert (cure(False), cure(True)) == ("refuted", "compound")
    assert (
        cure(False, asked({"unchanged": False, "distractors_removed": True, "evidence_added": True})) == "confirmed"
    )
    first = asked({"unchanged": False, "evidence_first": True})
    assert (cure(True, first), cure(False, first)) == ("confirmed", "compound")
    partly = {"abstain": False, "others_agree": False, "shows_all": False}
    assert cure_of("misread", asked({"unchanged": False, "evidence_only": True}), **partly) == "compound"
    stale = {"abstain": False, "others_agree": False, "shows_evidence": False}
    assert cure_of("stale", asked({"unchanged": False, "evidence_added": True}), **stale) == "refuted"
    written = asked({"unchanged": False, "evidence_added": True, "double_top_k": True})
    assert cure_of("stale", written, **stale) == "compound", "more of what is stored is enough, so it was written"


def test_that_memory_lost_a_fact_is_not_confirmed_where_a_part_of_the_prompt_is_enough() -> None:
    again = asked({"unchanged": False, "evidence_added": True, "distractors_removed": True})
    for label in ("not_written", "not_retrieved", "cut"):
        assert cure_of(label, again, abstain=False, others_agree=False) == "compound"


@pytest.mark.parametrize(("said", "cure", "doubt"), [(False, "refuted", "refuted"), (True, "compound", None)])
def test_a_verdict_is_refuted_and_uncertain_unless_the_prompt_said_the_answer(
    said: bool, cure: str, doubt: str | None
) -> None:
    distilled = HitRow("h", "s", 1, None, turns=(), sources=("t1",), in_prompt=True, tokens=3)
    wrong = row(1, "wrong", failure="misread", evidence=("t1",), hits=(distilled,), failure_detail="It was there.")
    wrong = wrong.model_copy(update={"answer_said": said})
    key = (wrong.conversation, wrong.backend, wrong.model, wrong.question_id, wrong.repeat)
    (found,) = with_cures([wrong], {key: asked({"unchanged": False, "evidence_added": True})})
    assert (found.cure, found.failure, found.failure_doubt) == (cure, "misread", doubt)
    assert found.failure_detail is not None and ("Uncertain: " in found.failure_detail) is (doubt is not None)


def test_the_least_change_is_named() -> None:
    assert (
        least_repair(asked({"unchanged": False, "evidence_only": True, "evidence_added": True})) == "evidence_added"
    )
    assert least_repair(asked({"unchanged": False, "evidence_only": None})) is None


def row(number: int, outcome: str, **changes: Any) -> QuestionRow:
    fields: dict[str, Any] = {
        "question_id": f"q{number}",
        "dataset": "d",
        "conversation": "c",
        "backend": "rag",
        "model": MODEL,
        "repeat": 0,
        "kind": "recall",
        "type": "t",
        "question": "Which fruit?",
        "expected": "quince",
        "predicted": "a pear",
        "score": None if outcome == "error" else float(outcome == "correct"),
        "max_score": 1.0,
        "outcome": outcome,
        "reply": "a pear",
        "error": None,
        "tokens": None,
        "cost_usd": None,
        "ms": None,
    }
    return QuestionRow.model_validate(fields | changes)


def test_shares_are_of_graded_replies_and_the_steps_lead_to_one() -> None:
    rows = [
        row(0, "correct"),
        row(1, "wrong", failure="not_retrieved"),
        row(2, "wrong", failure="not_retrieved"),
        row(3, "wrong", failure="misread", answer_in_prompt=True),
        row(4, "wrong", failure="cut"),
        row(5, "error", failure="error"),
    ]
    outcomes: dict[int, Outcomes] = {
        1: {"unchanged": False, "evidence_added": True, "evidence_only": True},
        2: {"unchanged": False, "evidence_added": None, "evidence_only": False},
        3: {"unchanged": False, "evidence_only": False},
    }
    key = {number: ("c", "rag", MODEL, f"q{number}", 0) for number in outcomes}
    found = what_if_of(with_cures(rows, {key[number]: asked(each) for number, each in outcomes.items()}))
    assert found is not None
    added = found.interventions["evidence_added"]
    assert (added.repaired, added.graded, added.errors, added.share) == (1, 1, 1, 1.0)
    assert found.interventions["evidence_only"].share == pytest.approx(1 / 3)
    assert found.by_label["misread"]["evidence_only"].repaired == 0
    assert (found.wrong, found.asked) == (4, 3)
    assert found.perfect_retrieval is not None and found.perfect_reader is not None
    ceiling = found.perfect_retrieval
    assert (ceiling.low, ceiling.high, ceiling.undetermined) == (2 / 5, 4 / 5, 2)
    assert found.perfect_reader.low == found.perfect_reader.high == 2 / 5
    assert [(step.step, step.answers) for step in found.waterfall] == [
        ("right", 1),
        ("memory", 1),
        ("reader_limit", 2),
        ("undetermined", 1),
    ]
    assert found.waterfall[-1].accuracy == 1.0


def shown(*turns: str) -> HitRow:
    return HitRow(id="1", store="qdrant", rank=1, score=1.0, turns=turns, sources=(), in_prompt=True, tokens=5)


def cure_beside(*others: QuestionRow, said: str = "a pear", elsewhere: str = "a plum", kind: str = "recall") -> Any:
    """What is said of an answer that nothing repairs, beside other answers to the same question."""
    first = row(1, "wrong", failure="misread", backend="a", predicted=said, hits=(shown("t1", "t2"),), kind=kind)
    rest = [row(number, "wrong", failure="misread", backend="a", predicted=elsewhere) for number in (2, 3, 4)]
    again = {("c", "a", MODEL, "q1", 0): asked({"unchanged": False, "evidence_only": False})}
    return with_cures([first, *others, *rest], again)[0].cure


def other(backend: str, *turns: str, model: str = MODEL, said: str = "a pear") -> QuestionRow:
    return row(1, "wrong", backend=backend, model=model, predicted=said, hits=(shown(*turns),))


def test_memories_that_showed_the_same_words_to_the_same_reader_do_not_put_the_key_in_doubt() -> None:
    assert cure_beside(other("b", "t1"), other("c", "t2", "t3"), other("d", "t1", "t2")) == "reader_limit"


def test_memories_that_showed_other_words_or_had_other_readers_do() -> None:
    assert cure_beside(other("b", "t3"), other("c", "t4")) == "key_in_doubt"
    assert cure_beside(other("b", "t3"), other("c", "t3")) == "reader_limit"
    assert cure_beside(other("a", "t1", model="m2"), other("a", "t1", model="m3")) == "key_in_doubt"
    assert cure_beside(other("a", "t1", model="m2"), other("b", "t1", model="m2")) == "reader_limit"
    assert cure_beside(other("a", "t1", model="m2"), other("b", "t3")) == "key_in_doubt"
    assert cure_beside(other("b"), other("c")) == "reader_limit"


def test_an_answer_to_everything_and_an_abstention_say_nothing_of_the_key() -> None:
    others = (other("b", "t3"), other("c", "t4"))
    assert cure_beside(*others, elsewhere="a pear") == "reader_limit"
    silent = [each.model_copy(update={"predicted": "The conversation does not say."}) for each in others]
    assert cure_beside(*silent, said="The conversation does not say.") == "reader_limit"


def test_closed_book_is_enough_for_free_words_and_not_for_an_option_that_is_also_hit_by_chance() -> None:
    assert cure_beside(other("closed_book")) == "key_in_doubt"
    assert cure_beside(other("closed_book", model="m2")) == "reader_limit"
    assert cure_beside(other("closed_book"), kind="choice") == "reader_limit"
    assert cure_beside(other("closed_book"), other("b", "t3"), kind="choice") == "key_in_doubt"
    assert cure_beside(other("closed_book", said="a plum"), other("oracle", "t3", model="m2")) == "reader_limit"
