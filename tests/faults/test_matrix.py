"""The table of faults in the guide is that of the tests."""

from __future__ import annotations

from tests.conftest import REPOSITORY
from tests.faults.matrix import GUIDE, MATRIX, in_guide, table


def test_the_guide_has_the_table_of_all_faults() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert table() in text and in_guide(text) == text, "run: python -m tests.faults.matrix"


def test_every_file_of_faults_is_in_the_table() -> None:
    files = {path.name for path in (REPOSITORY / "tests" / "faults").glob("test_*.py")}
    assert {row.file for row in MATRIX} == files - {"test_matrix.py"}
