"""Measures how far the style of multiple-choice options gives the answers away.

If only one option begins with (or without) a lower-case letter, or ends with (or without) a full stop, it is the
odd one out. If the odd one out tends to be correct, the dataset can be answered without its conversations. A blind
guesser measures this: it sees only the options, not even the question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from memreplay.conversations.models import Frozen, Question
from memreplay.text import normalised

Mark = Callable[[str], bool]

MARKS: dict[str, Mark] = {
    "case": lambda option: option.lstrip()[:1].islower(),
    "full_stop": lambda option: option.rstrip().endswith("."),
}
"""Properties of an option that are independent of its meaning."""


class OptionStyle(Frozen):
    """The share of a dataset's answers that the style of its options reveals.

    ``odd_one_out`` counts the questions with an odd one out, ``leaks`` those in which it is correct, and
    ``leaks_by`` these by mark. ``blind_guesser`` is the expected accuracy of choosing the odd one out, or else the
    option that shares most words with the others, as wrong options are often variations of the correct one.
    ``chance`` is the expected accuracy of a random choice.
    """

    questions: int
    odd_one_out: int
    leaks: int
    leaks_by: dict[str, int]
    blind_guesser: float
    chance: float


def option_style(questions: Iterable[Question]) -> OptionStyle | None:
    """Return the style of all multiple-choice questions; None if there are none."""
    several = (question for question in questions if len(question.choices) > 1)
    choices = [(q.choices, q.correct_index) for q in several if q.correct_index is not None]
    if not choices:
        return None
    odd = [(odd_ones_out(options), correct) for options, correct in choices]
    guesses = [(blind_guess(options), correct) for options, correct in choices]
    return OptionStyle(
        questions=len(choices),
        odd_one_out=sum(bool(found) for found, _ in odd),
        leaks=sum(correct in found.values() for found, correct in odd),
        leaks_by={mark: sum(found.get(mark) == correct for found, correct in odd) for mark in MARKS},
        blind_guesser=sum(correct in guess and 1 / len(guess) for guess, correct in guesses) / len(choices),
        chance=sum(1 / len(options) for options, _ in choices) / len(choices),
    )


def odd_ones_out(options: Sequence[str]) -> dict[str, int]:
    """Return, by mark, the only option that has it or lacks it. With two options there is no odd one out."""
    found: dict[str, int] = {}
    for name, mark in MARKS.items():
        marked = [mark(option) for option in options]
        for having in (True, False):
            if len(options) > 2 and marked.count(having) == 1:
                found[name] = marked.index(having)
    return found


def blind_guess(options: Sequence[str]) -> frozenset[int]:
    """Return the options among which the blind guesser chooses at random."""
    odd = frozenset(odd_ones_out(options).values())
    if len(odd) == 1:
        return odd
    words = [frozenset(normalised(option).split()) for option in options]
    likeness = [sum(_shared(mine, other) for other in words) for mine in words]
    return frozenset(index for index, value in enumerate(likeness) if value > max(likeness) - 1e-9)


def _shared(mine: frozenset[str], other: frozenset[str]) -> float:
    together = len(mine | other)
    return len(mine & other) / together if together else 0.0
