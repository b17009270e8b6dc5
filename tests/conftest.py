"""What all tests share: nothing of the machine they run on may reach them."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.stubs.own_machine import set_up

# The same examples everywhere, and no clock: how fast a machine is decides no test.
# ``--hypothesis-profile=default`` looks for new examples, and for more.
settings.register_profile(
    "steady", max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"

IN_MEMORY = Path("/dev/shm")
ROOM_IN_MEMORY = 4 << 30
"""Bytes."""


# A shell ignores SIGINT and SIGQUIT in what it starts in the background, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    """Temporary folders in memory, where there is room: on a disk, tests wait most for recordings to be on it.

    Benchmarks measure what users have, which is a disk.
    """
    measured = any("benchmarks" in argument for argument in config.args)
    if not measured and IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > ROOM_IN_MEMORY:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was imported stays to the end: Python need not go through all of it again in search of garbage."""
    if any("benchmarks" in item.path.parts for item in session.items):
        return
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 10)


@pytest.fixture(autouse=True)
def _a_machine_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches, config and data in the test's own folder; no setting of the user's environment."""
    set_up(monkeypatch, tmp_path)


@pytest.fixture
def shared_data() -> Path:
    """The real inputs beside the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the real inputs are not beside the project")
    return SHARED_DATA
