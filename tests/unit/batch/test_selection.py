"""A sample has its share of every type, and the same seed draws the same questions."""

from __future__ import annotations

from collections import Counter

from memreplay.conversations.models import Conversation, Question, Session, Turn
from memreplay.runtime.work import first_questions, sampled_questions

TYPES = {"single": 60, "multi": 30, "temporal": 10}


def conversations() -> list[Conversation]:
    """Four conversations that share the questions out."""
    questions = [
        Question(id=f"{name}-{number}", kind="recall", type=name, text="?", expected="x")
        for name, count in TYPES.items()
        for number in range(count)
    ]
    turn = Turn(id="1", number=1, session=1, role="user", speaker=None, text="hi")
    return [
        Conversation(
            id=f"c{number}", dataset="d", sessions=(Session(number=1, id="1"),), turns=(turn,),
            questions=tuple(questions[number::4]),
        )
        for number in range(4)
    ]  # fmt: skip


def ids(chosen: list[Conversation]) -> list[str]:
    return [question.id for conversation in chosen for question in conversation.questions]


def test_each_type_has_its_share() -> None:
    sample = ids(sampled_questions(conversations(), 20, seed=1))
    assert Counter(name.partition("-")[0] for name in sample) == {"single": 12, "multi": 6, "temporal": 2}


def test_remainders_go_where_they_are_largest() -> None:
    sample = ids(sampled_questions(conversations(), 7, seed=1))
    assert Counter(name.partition("-")[0] for name in sample) == {"single": 4, "multi": 2, "temporal": 1}


def test_a_seed_draws_the_same_and_another_one_others() -> None:
    first = ids(sampled_questions(conversations(), 20, seed=1))
    assert first == ids(sampled_questions(conversations(), 20, seed=1))
    assert first != ids(sampled_questions(conversations(), 20, seed=2))


def test_the_order_is_the_datasets_and_a_sample_of_more_is_everything() -> None:
    everything = ids(conversations())
    sample = ids(sampled_questions(conversations(), 20, seed=3))
    assert sample == [name for name in everything if name in sample]
    assert ids(sampled_questions(conversations(), 1000, seed=3)) == everything


def test_conversations_without_a_question_are_dropped() -> None:
    assert [conversation.id for conversation in sampled_questions(conversations(), 1, seed=0)] in (
        ["c0"],
        ["c1"],
        ["c2"],
        ["c3"],
    )
    assert [conversation.id for conversation in first_questions(conversations(), 30)] == ["c0", "c1"]
