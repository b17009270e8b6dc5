"""memory_backends/README.md shows a memory that works, and documents every method and reply field."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from memory_backends.base import MemoryBackend
from memreplay.engine.remote.client import REPLY_FIELDS
from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY

README = (REPOSITORY / "memory_backends" / "README.md").read_text(encoding="utf-8")
MEMORY, DESCRIPTION = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


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
def test_the_memory_in_the_readme_passes_the_contract_with_its_description(run_cli: RunCli) -> None:
    ran = run_cli("check-backend", "my_memory:DiaryMemory")
    assert ran.code == 0, f"{ran.out} {ran.err}"


def test_every_method_and_reply_field_is_described() -> None:
    methods = {name for name in vars(MemoryBackend) if name[0] != "_" and callable(getattr(MemoryBackend, name))}
    assert "recall" in methods
    missing = [name for name in methods if not re.search(rf"^\| `{name}\(", README, re.MULTILINE)]
    missing += [name for name in REPLY_FIELDS if f"`{name}`" not in README]
    assert missing == []
