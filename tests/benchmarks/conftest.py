"""What takes long to make is made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.recordings import made


@pytest.fixture(scope="session")
def twenty_thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a run of 20,000 turns by three memories."""
    return made(20_000, tmp_path_factory.mktemp("bench") / "long.sqlite3")
