"""How the writing of options gives answers away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memreplay.conversations.option_style import blind_guess, odd_ones_out, option_style
from tests.unit.scoring.samples import choice, recall


@pytest.mark.parametrize(
    ("options", "odd"),
    [
        (("red", "Green", "Blue"), {"case": 0}),
        (("Red", "green", "blue"), {"case": 0}),
        (("Red.", "Green.", "Blue"), {"full_stop": 2}),
        (("Red", "Green.", "Blue"), {"full_stop": 1}),
        (("red", "Green.", "Blue."), {"case": 0, "full_stop": 0}),
        (("Red", "Green", "Blue"), {}),
        (("7 May 2023", "8 May 2023", "9 May 2023"), {}),
        (("red", "Green"), {}),
        (("red", "green", "Blue", "Grey"), {}),
    ],
)
def test_the_odd_one_out_alone_has_or_lacks_a_small_initial_or_a_full_stop(
    options: tuple[str, ...], odd: dict[str, int]
) -> None:
    assert odd_ones_out(options) == odd


@pytest.mark.parametrize(
    ("options", "guess"),
    [
        (("red", "Green.", "Blue."), {0}),
        (("7 May 2023", "8 May 2023", "7 June 2023"), {0}),
        (("red", "Green", "Blue."), {0, 1, 2}),
        (("Red", "Green", "Blue"), {0, 1, 2}),
    ],
)
def test_the_guesser_takes_the_odd_one_or_the_one_most_like_the_others(
    options: tuple[str, ...], guess: set[int]
) -> None:
    assert blind_guess(options) == guess


def test_leaks_are_counted_by_mark_and_the_guesser_scored_by_its_chances() -> None:
    style = option_style(
        [
            choice(choices=("red", "Green", "Blue"), correct_index=0),
            choice(choices=("red", "Green", "Blue"), correct_index=1),
            choice(choices=("Red.", "Green.", "Blue"), correct_index=2),
            choice(choices=("Red", "Green", "Blue", "Grey"), correct_index=2),
            recall(),
        ]
    )
    assert style is not None
    assert (style.questions, style.odd_one_out, style.leaks) == (4, 3, 2)
    assert style.leaks_by == {"case": 1, "full_stop": 1}
    assert style.blind_guesser == pytest.approx((1 + 0 + 1 + 0.25) / 4)
    assert style.chance == pytest.approx((3 * 1 / 3 + 1 / 4) / 4)


def test_a_dataset_without_options_has_no_style() -> None:
    assert option_style([recall()]) is None


def test_the_published_rows_leak_as_they_are_known_to(shared_data: Path) -> None:
    published = json.loads((shared_data / "locomo" / "mc10_conv26_real_first100.json").read_text())
    style = option_style(
        choice(id=row["question_id"], choices=tuple(row["choices"]), correct_index=row["correct_choice_index"])
        for row in published
    )
    assert style is not None
    assert (style.odd_one_out, style.leaks) == (32, 32)
    assert style.blind_guesser > 0.5 and style.chance == pytest.approx(0.1)
