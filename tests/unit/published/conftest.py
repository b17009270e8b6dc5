"""A small dataset in LoCoMo's shape, which the published results are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stubs.published_results import locomo


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return locomo(tmp_path / "locomo10.json")
