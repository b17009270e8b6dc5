"""Showing the options of a question in another order, so that where the right one stands tells nothing."""

from __future__ import annotations

from random import Random

from app.conversations.models import Question


def choice_order(question: Question, seed: int | None) -> tuple[int, ...]:
    """The dataset's index of each option, as they are to be shown; empty where they stay as they are.

    It is drawn from the seed and the question's id alone: the same for every backend, model and repeat of a run,
    and in every run with this seed.
    """
    if seed is None or question.kind != "choice":
        return ()
    order = list(range(len(question.choices)))
    Random(f"{seed}/{question.id}").shuffle(order)
    return tuple(order)


def with_order(question: Question, order: tuple[int, ...]) -> Question:
    """The question as it is shown: options, and the index of the right one, in this order."""
    if not order:
        return question
    correct = None if question.correct_index is None else order.index(question.correct_index)
    shown = tuple(question.choices[index] for index in order)
    return question.model_copy(update={"choices": shown, "correct_index": correct})
