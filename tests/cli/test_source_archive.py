"""The source archive is a whole project: what the README tells to run in a clone runs in the unpacked archive."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.conftest import REPOSITORY

pytest.importorskip("hatchling")

_LINK = re.compile(r"""\]\((?!\w+:)([^)\s#]+)|(?:src|href)="(?!\w+:)([^"#]+)""")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    build = "import sys; from hatchling.build import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, folder], cwd=REPOSITORY, check=True, capture_output=True)
    (built,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(built, folder / "unpacked")
    (root,) = (folder / "unpacked").iterdir()
    return root


@pytest.mark.parametrize("target", ["run", "test", "lint", "demo", "bench", "torture"])
@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_finds_all_that_a_target_needs(unpacked: Path, target: str) -> None:
    made = subprocess.run(["make", "-n", target], cwd=unpacked, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr


def test_every_file_that_a_page_links_to_is_there(unpacked: Path) -> None:
    missing = []
    pages = sorted(unpacked.rglob("*.md"))
    for page in pages:
        for match in _LINK.finditer(page.read_text(encoding="utf-8")):
            target = unquote(match[1] or match[2])
            if not (page.parent / target).exists():
                missing.append(f"{page.relative_to(unpacked)}: {target}")
    assert len(pages) >= 5 and missing == []


def test_it_holds_what_the_project_needs_and_nothing_that_was_made_from_it(unpacked: Path) -> None:
    names = {path.name for path in unpacked.iterdir()}
    assert {
        "app", "memory_backends", "datasets", "recordings", "tests", "pyproject.toml", "Makefile",
        "constraints.txt", "requirements.txt", "requirements-dev.txt", "README.md", "LICENSE", "SECURITY.md",
        "CHANGELOG.md", "CONTRIBUTING.md",
    } <= names  # fmt: skip
    assert not {".venv", ".git", "build", "dist", ".mypy_cache"} & names
    assert not list(unpacked.rglob("__pycache__"))
