"""What all tests share: nothing of the machine they run on may reach them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from memory_backends.embedding import CachedEmbedder, MiniLMEmbedder

# The same examples everywhere, and no clock: how fast a machine is decides no test.
# ``--hypothesis-profile=default`` looks for new examples.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

_OF_THE_USER = (
    "NO_COLOR", "TEXTUAL_THEME", "FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES",
    "OPENAI_BASE_URL", "OPENAI_API_BASE",
)  # fmt: skip
"""Variables that change what is printed, or where a model is looked for."""

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"


@pytest.fixture(autouse=True)
def _a_machine_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches, config and data in the test's own folder; no setting of the user's environment."""
    for name in list(os.environ):
        begins, ends = name.startswith("MEMREPLAY_"), name.casefold().endswith(("_api_key", "_proxy"))
        if begins or ends or name in _OF_THE_USER:
            monkeypatch.delenv(name)
    monkeypatch.setattr("app.answering.secrets._given", set())
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


@cache
def _one_embedder() -> CachedEmbedder:
    return CachedEmbedder(MiniLMEmbedder())


@pytest.fixture(autouse=True)
def _one_model_that_embeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded once for all command lines of this process, and giving each text its vector once."""
    monkeypatch.setattr("app.assembling.embedders.MiniLMEmbedder", _one_embedder)


@pytest.fixture
def shared_data() -> Path:
    """The real inputs beside the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the real inputs are not beside the project")
    return SHARED_DATA
