"""Options in another order: drawn from seed and question, told in the recording, undone in the results."""

from __future__ import annotations

from memreplay.conversations.models import Question
from memreplay.engine.answers import choice_order, score_answer, with_order
from memreplay.engine.events import QuestionAsked
from memreplay.llm.model import Reply

CHOICES = tuple(f"option {letter}" for letter in "abcdefghij")


def question(number: int = 0) -> Question:
    return Question(
        id=f"q{number}",
        kind="choice",
        type="t",
        text="Which?",
        expected=CHOICES[3],
        choices=CHOICES,
        correct_index=3,
    )


def asked(order: tuple[int, ...]) -> QuestionAsked:
    return QuestionAsked(
        conversation="c", turn=1, backend="rag", model="m", question_id="q0",
        hits=(), cut=(), context_tokens=0, prompt=(), recall_ms=0.0, choice_order=order,
    )  # fmt: skip


def test_the_order_depends_on_seed_and_question_alone() -> None:
    assert choice_order(question(), 7) == choice_order(question(), 7)
    assert sorted(choice_order(question(), 7)) == list(range(10))
    assert len({choice_order(question(number), 7) for number in range(20)}) == 20
    assert choice_order(question(), 7) != choice_order(question(), 8)


def test_recall_questions_and_unshuffled_runs_stay_as_they_are() -> None:
    assert choice_order(question(), None) == ()
    recall = Question(id="q", kind="recall", type="t", text="What?", expected="x")
    assert choice_order(recall, 7) == ()


def test_the_right_option_is_right_wherever_it_stands_and_its_index_is_the_datasets() -> None:
    for seed in range(20):
        order = choice_order(question(), seed)
        shown = with_order(question(), order)
        assert shown.correct_index is not None and shown.choices[shown.correct_index] == CHOICES[3]
        right = score_answer(question(), asked(order), Reply(text=str(shown.correct_index))).score
        assert (right.outcome, right.predicted_index, right.predicted) == ("correct", 3, CHOICES[3])
        first = score_answer(question(), asked(order), Reply(text="0")).score
        assert (first.predicted_index, first.predicted) == (order[0], CHOICES[order[0]])
        by_text = score_answer(question(), asked(order), Reply(text=CHOICES[3])).score
        assert (by_text.outcome, by_text.predicted_index) == ("correct", 3)


def test_what_cannot_be_read_has_no_index() -> None:
    score = score_answer(question(), asked(choice_order(question(), 1)), Reply(text="11")).score
    assert (score.outcome, score.predicted_index) == ("unparsed", None)
