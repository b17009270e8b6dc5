"""LoCoMo's own metric. The expected figures follow from the published evaluation by hand."""

from __future__ import annotations

import pytest

from memreplay.scoring.locomo_metric import locomo_f1, stem
from tests.tables import failing


def test_locomos_f1_follows_its_rules_by_category() -> None:
    def check(category: int, expected: str, reply: str, score: float) -> None:
        assert locomo_f1(category, expected, reply) == pytest.approx(score)

    assert (
        failing(
            [
                (4, "running shoes", "The running shoe.", 1.0),
                (4, "running shoes", "She bought red running shoes", 2 * 2 / (2 + 5)),
                (4, "the cat and a dog", "cat dog", 1.0),
                (4, "Sweden", "Norway", 0.0),
                (4, "Sweden", "", 0.0),
                (4, "1,200", "1200", 1.0),
                (2, "7 May 2023", "May 2023", 2 * 2 / 5),
                (2, "tea, coffee", "coffee", 2 * 1 / 3),
                (1, "tea, coffee", "coffee", 0.5),
                (1, "tea, coffee", "coffee, tea", 1.0),
                (1, "tea, coffee", "hot coffee, milk", (2 / 3) / 2),
                (3, "Yes; since she likes cats", "Yes", 1.0),
                (4, "Yes; since she likes cats", "Yes", 2 * 1 / 6),
                (5, "Not answerable", "No information available", 1.0),
                (5, "Not answerable", "It is NOT MENTIONED in the conversation.", 1.0),
                (5, "Not answerable", "I don't know.", 0.0),
                (5, "Not answerable", "<think>not mentioned?</think>Sweden", 0.0),
            ],
            check,
        )
        == []
    )


def test_a_word_has_the_stem_that_the_published_code_gives_it() -> None:
    def check(word: str, expected: str) -> None:
        assert stem(word) == expected

    assert (
        failing(
            [
                ("played", "play"),
                ("beautifully", "beauti"),
                ("psychology", "psycholog"),
                ("lying", "lie"),
                ("outings", "outing"),
                ("as", "as"),
                ("dies", "die"),
                ("hopping", "hop"),
                ("hoped", "hope"),
                ("relational", "relat"),
                ("controlled", "control"),
            ],
            check,
        )
        == []
    )
