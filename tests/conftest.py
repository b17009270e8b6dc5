"""What all tests share: nothing of the machine they run on may reach them."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from memreplay.paths import demo_recordings
from tests.stubs.launcher import Launcher
from tests.stubs.own_machine import set_up, share_vectors

# The same examples everywhere, and no clock: how fast a machine is decides no test.
# ``--hypothesis-profile=default`` looks for new examples, and for more.
settings.register_profile(
    "steady", max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"

SMALL_DEMO = min(demo_recordings(), key=lambda path: path.stat().st_size)
"""For tests that need some recording of a real run: what is read of the large one takes a second."""

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
    if _measures(config):
        return
    # A container may ask for no bytecode: each of the processes that tests start would compile everything anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > ROOM_IN_MEMORY:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


def _measures(config: pytest.Config) -> bool:
    """Whether benchmarks are run."""
    return any("benchmarks" in argument for argument in config.args)


@pytest.fixture(scope="session", autouse=True)
def _vectors_of_all_tests(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests in other processes of this session find them too, and so do the processes that tests start."""
    own = tmp_path_factory.getbasetemp()
    if not _measures(pytestconfig):
        share_vectors((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "vectors.sqlite3")


_number = count()


@pytest.fixture(autouse=True)
def _a_machine_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches, config and data of the test's own; no setting of the user's environment.

    Not in ``tmp_path``: most tests need none, and to make one takes a millisecond where there are thousands.
    """
    set_up(monkeypatch, tmp_path_factory.getbasetemp() / "machines" / str(next(_number)))


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    """What is slow to import is imported once for all tests."""
    with Launcher() as started:
        yield started


@pytest.fixture
def shared_data() -> Path:
    """The real inputs beside the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the real inputs are not beside the project")
    return SHARED_DATA
