"""``memreplay bisect --versions``: the first version of a library under which a memory fails."""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from memreplay.errors import UsageError
from memreplay.runtime.versions import Versions
from tests.cli.conftest import RunCli

SOUND = (
    "from memory_backends.examples.notebook import NotebookMemory\n\n\nclass Memory(NotebookMemory):\n    pass\n"
)
BROKEN = SOUND.replace("    pass", "    async def observe(self, exchange):\n        pass")
BACKEND = ("--backend", "oblivious:Memory")


def wheel(folder: Path, version: str, source: str) -> None:
    """A library of one module."""
    info = f"oblivious-{version}.dist-info"
    with ZipFile(folder / f"oblivious-{version}-py3-none-any.whl", "w") as file:
        file.writestr("oblivious.py", source)
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: oblivious\nVersion: {version}\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    for version, source in {"1.9": SOUND, "1.10": SOUND, "2.0": BROKEN, "3.0": SOUND}.items():
        wheel(folder, version, source)
    return folder


def test_the_first_version_that_fails_is_named(
    run_cli: RunCli, tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "oblivious.py").write_text(BROKEN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    recording = tmp_path / "r.sqlite3"
    ran = run_cli("--batch", "--dataset", "identity-02", *BACKEND, "--recording", recording)
    assert ran.code == 0, ran.err
    ran = run_cli(
        *("bisect", recording, "--question", "identity-02-q1", *BACKEND),
        *("--versions", "oblivious==1.10..2.0", "--wheels", wheels),
    )
    sys.modules.pop("oblivious", None)
    assert ran.code == 0, ran.err
    assert "1.9" not in ran.out and "3.0" not in ran.out
    assert "  1.10  right" in ran.out and "  2.0  fails: not_written" in ran.out
    assert ran.out.endswith("first that fails: 2.0\n")


def test_versions_are_in_their_order(wheels: Path) -> None:
    assert Versions.read("oblivious==1.0..2.5", wheels).all() == ["1.9", "1.10", "2.0"]
    for text in ("oblivious", "oblivious==1", "oblivious>=1..2", "--evil==1..2"):
        with pytest.raises(UsageError, match="expected NAME==FIRST"):
            Versions.read(text, wheels)
    with pytest.raises(UsageError, match="0 releases"):
        Versions.read("oblivious==4..5", wheels).all()
