"""``memreplay bisect --git``: the first revision of a project at which its own memory fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import RunCli

SOUND = (
    "from memory_backends.examples.notebook import NotebookMemory\n\n\nclass Memory(NotebookMemory):\n    pass\n"
)
BROKEN = SOUND.replace("    pass", "    async def observe(self, exchange):\n        pass")
NO_PYTHON = "def ("
BACKEND = ("--backend", "forgetful:Memory")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose memory is sound, cannot be imported, is broken, and stays broken, in this order."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    git(folder, "init", "--quiet")
    for number, source in enumerate((SOUND, SOUND, SOUND, NO_PYTHON, BROKEN, BROKEN)):
        (folder / "forgetful.py").write_text(f"{source}\n# {number}\n", encoding="utf-8")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", f"change {number}")
    hook = folder / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path / 'hook-ran'}\n", encoding="utf-8")
    hook.chmod(0o755)
    monkeypatch.chdir(folder)
    yield folder
    sys.modules.pop("forgetful", None)


def git(folder: Path, *arguments: str) -> str:
    known = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    ran = subprocess.run(["git", *known, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return ran.stdout


def test_the_first_revision_that_fails_is_named_and_the_users_tree_stays(
    run_cli: RunCli, tmp_path: Path, project: Path
) -> None:
    recording = tmp_path / "r.sqlite3"
    ran = run_cli("--batch", "--dataset", "identity-02", *BACKEND, "--recording", recording)
    assert ran.code == 0, ran.err
    (project / "notes.txt").write_text("not committed", encoding="utf-8")
    before = git(project, "status", "--porcelain", "--branch"), git(project, "for-each-ref")
    asked = ("bisect", recording, "--question", "identity-02-q1", *BACKEND)
    ran = run_cli(*asked, "--git", "HEAD~5..HEAD")
    assert ran.code == 0, ran.err
    assert "change 2: does not fail so" in ran.out and "change 3: cannot be tested" in ran.out
    first = ran.out.partition("first that fails, one of:")[2]
    assert "change 4" in first and "change 3" in first and "change 5" not in first and "change 2" not in first
    assert (git(project, "status", "--porcelain", "--branch"), git(project, "for-each-ref")) == before
    assert git(project, "worktree", "list").count("\n") == 1 and not (tmp_path / "hook-ran").exists()
    for revisions, says in {
        "HEAD~1..HEAD": "change 4: fails too",
        "HEAD~5..HEAD~4": "change 1: does not fail so",
        "HEAD~2..HEAD": "change 3: cannot be tested",
        "HEAD..HEAD~5": "is no ancestor of",
        "--evil..HEAD": "has no revision --evil",
        "HEAD": "expected GOOD..BAD",
    }.items():
        ran = run_cli(*asked, "--git", revisions)
        assert ran.code == 2 and says in ran.err, ran
