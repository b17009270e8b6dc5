"""What all tests share: nothing of the machine they run on may reach them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples everywhere, and no clock: how fast a machine is decides no test.
# ``--hypothesis-profile=default`` looks for new examples.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"


@pytest.fixture(autouse=True)
def _a_machine_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches, config and data in the test's own folder; no setting of the user's environment."""
    for name in list(os.environ):
        if name.startswith("MEMREPLAY_") or name.endswith("_API_KEY") or name in ("NO_COLOR", "TEXTUAL_THEME"):
            monkeypatch.delenv(name)
    monkeypatch.setattr("app.answering.secrets._given", set())
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


@pytest.fixture
def shared_data() -> Path:
    """The real inputs beside the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the real inputs are not beside the project")
    return SHARED_DATA
