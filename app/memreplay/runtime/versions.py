"""A dataset replayed under other versions of a library, each in an environment of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from memreplay.errors import UsageError

_SPEC = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<first>\d[\w.]*)\.\.(?P<last>\d[\w.]*)")
_RELEASE = re.compile(r"\d+(?:\.\d+)*")
_MOST_VERSIONS = 40


@dataclass(frozen=True)
class Versions:
    """The versions of a library between two, with both; ``folder`` has its wheels, in place of the index."""

    name: str
    first: str
    last: str
    folder: Path | None = None

    @classmethod
    def read(cls, text: str, folder: Path | None) -> Versions:
        """Return what ``NAME==FIRST..LAST`` names.

        Raises:
            UsageError: it has another form.
        """
        found = _SPEC.fullmatch(text)
        if found is None:
            raise UsageError(f"--versions {text}: expected NAME==FIRST..LAST, such as mem0ai==2.0.0..2.2.1")
        return cls(found["name"], found["first"], found["last"], folder)

    def all(self) -> list[str]:
        """Return the releases between both, the oldest first; of pre-releases only what is named.

        Raises:
            UsageError: they cannot be listed, or there are none.
        """
        known = self._in_folder() if self.folder is not None else self._in_index()
        chosen = {each for each in known if _RELEASE.fullmatch(each)}
        between = sorted(
            (each for each in chosen if _place(self.first) <= _place(each) <= _place(self.last)), key=_place
        )
        if not between or len(between) > _MOST_VERSIONS:
            raise UsageError(f"--versions: {len(between)} releases of {self.name}; expected 1 to {_MOST_VERSIONS}")
        return between

    def _in_folder(self) -> list[str]:
        assert self.folder is not None
        wanted = re.sub(r"[-_.]+", "_", self.name).lower()
        parts = [path.name.split("-") for path in self.folder.glob("*.whl")]
        return [version for name, version, *_ in parts if re.sub(r"[-_.]+", "_", name).lower() == wanted]

    def _in_index(self) -> list[str]:
        ran = _pip("index", "versions", self.name)
        listed = re.search(r"^Available versions: (.*)$", ran.stdout, re.MULTILINE)
        if listed is None:
            raise UsageError(f"--versions: the releases of {self.name} cannot be listed: {_last_line(ran)}")
        return [each.strip() for each in listed[1].split(",")]


def failure_under(
    versions: Versions, version: str, question: str, backend: str, batch: Sequence[str]
) -> str | None:
    """Return the verdict on a memory's answer under one version of a library; None for a right answer.

    ``batch`` are the options of ``memreplay --batch``. All but the library comes from this environment.

    Raises:
        UsageError: the version cannot be installed, or the run fails.
    """
    with TemporaryDirectory(prefix="memreplay-version-") as folder:
        environment = Path(folder) / "env"
        python = _interpreter_of_new(environment)
        source = ["--no-index", "--find-links", str(versions.folder)] if versions.folder else []
        ran = _pip("--python", str(python), "install", "--quiet", *source, f"{versions.name}=={version}")
        if ran.returncode:
            raise UsageError(f"{versions.name} {version} cannot be installed: {_last_line(ran)}")
        _fall_back_on_own_packages(environment)
        try:
            return failure_of_new_process(str(python), question, backend, batch)
        except UsageError as error:
            raise UsageError(f"under {versions.name} {version} the run fails: {error}") from None


def failure_of_new_process(
    python: str, question: str, backend: str, batch: Sequence[str], folder: Path | None = None
) -> str | None:
    """Return the verdict on a memory's answer in a run by another interpreter, or in another folder; None for a
    right answer.

    Raises:
        UsageError: the run fails.
    """
    with TemporaryDirectory(prefix="memreplay-run-") as made:
        output = Path(made) / "results.json"
        places = ("--recording", str(Path(made) / "r.sqlite3"), "--output", str(output), "--fresh")
        command = [python, "-P", "-m", "memreplay", "--batch", *batch, "--backend", backend, *places]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        if not output.exists():
            raise UsageError(_last_line(ran))
        rows = json.loads(output.read_text(encoding="utf-8"))["questions"]
        row = next(row for row in rows if row["question_id"] == question and row["backend"] == backend)
        return None if row["outcome"] == "correct" else str(row["failure"] or row["outcome"])


def _interpreter_of_new(folder: Path) -> Path:
    """Return the interpreter of a new, empty environment."""
    venv.create(folder, symlinks=os.name != "nt")
    return _path_in(folder, "scripts") / ("python.exe" if os.name == "nt" else "python")


def _fall_back_on_own_packages(folder: Path) -> None:
    """Let an environment find what it lacks among the packages of this one.

    Only after its library is installed: pip must not take what is here for installed there.
    """
    own = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    lines = "".join(f"import site; site.addsitedir({path!r})\n" for path in own)
    (_path_in(folder, "purelib") / "zz_of_memreplay.pth").write_text(lines, encoding="utf-8")


def _path_in(folder: Path, kind: str) -> Path:
    return Path(sysconfig.get_path(kind, "venv", {"base": str(folder), "platbase": str(folder)}))


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _last_line(ran: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in ran.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {ran.returncode}"


def _place(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in version.split(".") if part.isdecimal()]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
