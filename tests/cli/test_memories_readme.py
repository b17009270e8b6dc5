"""The memory that memory_backends/README.md shows works, as do its commands; its tables name all there is."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import get_args

import pytest

from memory_backends.base import MemoryBackend, PanelName
from memreplay.engine.remote.client import REPLY_FIELDS
from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY

README = (REPOSITORY / "memory_backends" / "README.md").read_text(encoding="utf-8")
MEMORY, DESCRIPTION = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^\$ memreplay (.*)$", README, re.MULTILINE)


@pytest.fixture
def written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of the README in the current folder, with what it says of itself."""
    described = (
        MEMORY + "\n\n" + re.sub(r"^description", "DiaryMemory.description", DESCRIPTION, flags=re.MULTILINE)
    )
    (tmp_path / "my_memory.py").write_text(described, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_memory", raising=False)
    monkeypatch.setattr("memreplay.paths.recordings_folder", lambda: tmp_path)


@pytest.mark.usefixtures("written_down")
def test_the_memory_that_is_shown_keeps_its_promises_and_runs(run_cli: RunCli) -> None:
    assert len(COMMANDS) == 2
    for command in COMMANDS:
        ran = run_cli(*shlex.split(command))
        assert ran.code == 0, f"{command}: {ran.out} {ran.err}"


def test_every_method_panel_and_reply_field_is_described() -> None:
    methods = {name for name in vars(MemoryBackend) if name[0] != "_" and callable(getattr(MemoryBackend, name))}
    assert "recall" in methods
    missing = [name for name in methods if not re.search(rf"^\| `{name}\(", README, re.MULTILINE)]
    missing += [name for name in (*get_args(PanelName), *REPLY_FIELDS) if f"`{name}`" not in README]
    assert missing == []
