"""What a set of conversations covers."""

from __future__ import annotations

from pathlib import Path

import pytest

from memreplay.conversations.registry import load
from memreplay.conversations.rules.coverage import Cell, Coverage, CoverageTable, coverage_of
from tests.unit.conversations.samples import boat_conversation, locomo_sample, written


@pytest.fixture
def coverage(tmp_path: Path) -> Coverage:
    written(tmp_path / "harbour-07.json", boat_conversation())
    written(tmp_path / "gardens.json", [locomo_sample()])
    return coverage_of(load([str(tmp_path)]))


def table(coverage: Coverage, rows: str, columns: str) -> CoverageTable:
    return next(table for table in coverage.tables if (table.rows, table.columns) == (rows, columns))


def test_questions_and_key_turns_are_counted_by_two_properties(coverage: Coverage) -> None:
    cells = table(coverage, "salience", "position").cells
    assert cells["high"]["early"] == Cell(questions=1, key_turns=1)
    assert cells["low"]["middle"] == Cell(questions=1, key_turns=2)
    assert cells["medium"]["recent"] == Cell(questions=1, key_turns=1)


def test_what_nobody_asks_is_visible(coverage: Coverage) -> None:
    by_type = table(coverage, "key info", "position")
    assert by_type.cells["instruction"]["early"] == Cell(0, 0)
    assert ("instruction", "early") in by_type.empty()
    assert ("fact", "early") not in by_type.empty()
    assert "technical" in table(coverage, "category", "position").cells


def test_a_question_is_of_the_type_of_its_evidence(coverage: Coverage) -> None:
    assert table(coverage, "key info", "position").cells["fact"]["recent"] == Cell(questions=1, key_turns=1)


def test_a_dataset_without_marks_is_counted_under_its_name_as_far_as_it_goes(coverage: Coverage) -> None:
    by_position = table(coverage, "category", "position").cells["gardens"]
    assert {column: cell.questions for column, cell in by_position.items()} == {
        "early": 1,
        "middle": 1,
        "recent": 2,
        "–": 1,
    }
    assert table(coverage, "category", "salience").cells["gardens"]["–"] == Cell(questions=5, key_turns=0)


def test_tags_are_counted_by_conversation(coverage: Coverage) -> None:
    assert coverage.tags == {"correction": 1}


def test_a_question_with_options_counts_once_under_its_type(tmp_path: Path) -> None:
    data = boat_conversation()
    data["recallQuestions"][0] |= {"options": ["Petrel", "Skua"], "type": "single_fact"}
    coverage = coverage_of(load([str(written(tmp_path / "harbour-07.json", data))]))
    assert table(coverage, "question type", "position").cells["single_fact"]["early"] == Cell(1, 0)
    assert table(coverage, "salience", "position").cells["high"]["early"] == Cell(questions=1, key_turns=1)
