"""A dataset replayed at other revisions of a project's own memory, through the protocol of ``git bisect run``.

The revisions are checked out in a worktree of their own, with its own state of the bisection: the user's tree, its
index and a bisection under way there stay as they are. Hooks of the repository do not run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from tempfile import TemporaryDirectory

from memreplay.errors import UsageError
from memreplay.runtime.versions import failure_of_new_process
from memreplay.terminal import say

GOOD, BAD, CANNOT_BE_TESTED = 0, 1, 125
"""Exit codes of a step, as ``git bisect run`` reads them."""

_HASH_SHOWN = 10
_STEP = re.compile(r"# (?P<said>good|bad|skip): \[(?P<hash>[0-9a-f]+)\] (?P<subject>.*)")


@dataclass(frozen=True)
class Revision:
    """A commit. ``said`` is good, bad or skip (it cannot be tested) where it was tried."""

    hash: str
    subject: str
    said: str = ""

    @property
    def words(self) -> str:
        return f"{self.hash[:_HASH_SHOWN]} {self.subject}"


@dataclass(frozen=True)
class Revisions:
    """Two revisions of a repository. ``folder`` is where the memory's module is, relative to the repository."""

    repository: Path
    folder: Path
    module: str
    good: str
    bad: str

    @classmethod
    def read(cls, text: str, backend: str) -> Revisions:
        """Return what ``GOOD..BAD`` names in the repository that has the module of a memory.

        Raises:
            UsageError: it has another form, or there are no such revisions.
        """
        good, dots, bad = text.partition("..")
        if not dots or not good or bad.startswith("."):
            raise UsageError(f"--git {text}: expected GOOD..BAD, such as v1.2..HEAD")
        module, colon, _ = backend.partition(":")
        top = module.partition(".")[0]
        found = PathFinder.find_spec(top, [str(Path.cwd()), *sys.path]) if colon else None
        if found is None or not (found.origin or found.submodule_search_locations):
            raise UsageError(f"--git: {backend} is no memory of a project's own, such as package.module:Class")
        place = Path(next(iter(found.submodule_search_locations or ()), found.origin or "")).resolve().parent
        shown = _git(place, "rev-parse", "--show-toplevel")
        if shown.returncode:
            raise UsageError(f"--git: {place}, where {top} is, is in no git repository")
        repository = Path(shown.stdout.rstrip("\n")).resolve()
        hashes = [_hash_of(repository, name) for name in (good, bad or "HEAD")]
        if _git(repository, "merge-base", "--is-ancestor", *hashes).returncode:
            raise UsageError(f"--git {text}: {good} is no ancestor of {bad or 'HEAD'}")
        return cls(repository, place.relative_to(repository), top, *hashes)

    def first_that_fails(
        self, question: str, backend: str, label: str, batch: Sequence[str]
    ) -> tuple[list[Revision], list[Revision]]:
        """Return the revisions that were tried, and the first that fails, or several that it may be where some of
        them cannot be tested.

        Raises:
            UsageError: the good one fails, the bad one does not, or one of them cannot be tested.
        """
        with TemporaryDirectory(prefix="memreplay-git-") as made, self._worktree(Path(made) / "tree") as tree:
            case = {"question": question, "backend": backend, "label": label, "batch": list(batch)}
            case |= {"folder": str(tree / self.folder), "module": self.module}
            file = Path(made) / "case.json"
            file.write_text(json.dumps(case), encoding="utf-8")
            step = (sys.executable, "-P", "-m", "memreplay.runtime.revisions", str(file))
            for revision, expected in ((self.bad, BAD), (self.good, GOOD)):
                _checked(_git(tree, "checkout", "--quiet", "--detach", revision))
                ran = subprocess.run(step, capture_output=True, text=True, check=False, cwd=tree, env=_ENVIRONMENT)
                if ran.returncode != expected:
                    what = {GOOD: "does not fail so", BAD: "fails too"}.get(ran.returncode, "cannot be tested")
                    why = f": {ran.stderr.strip()}" if what == "cannot be tested" else ""
                    raise UsageError(f"--git: {self._described(revision).words}: {what}{why}")
            _checked(_git(tree, "bisect", "start", self.bad, self.good))
            _git(tree, "bisect", "run", *step)
            log = _checked(_git(tree, "bisect", "log")).stdout
            tried = [Revision(found["hash"], found["subject"], found["said"]) for found in _STEP.finditer(log)]
            left = _checked(_git(tree, "rev-list", "refs/bisect/bad", "--not", *_known_good(tree))).stdout
            return tried, [self._described(each) for each in left.split()]

    def _described(self, revision: str) -> Revision:
        shown = _checked(_git(self.repository, "log", "-1", "--format=%s", revision))
        return Revision(revision, shown.stdout.strip())

    @contextmanager
    def _worktree(self, tree: Path) -> Iterator[Path]:
        _checked(_git(self.repository, "worktree", "add", "--quiet", "--detach", str(tree), self.bad))
        try:
            yield tree
        finally:
            _git(self.repository, "worktree", "remove", "--force", str(tree))


def _known_good(tree: Path) -> list[str]:
    return _checked(_git(tree, "for-each-ref", "--format=%(objectname)", "refs/bisect/good-*")).stdout.split()


def _hash_of(repository: Path, name: str) -> str:
    found = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if found.returncode:
        raise UsageError(f"--git: {repository} has no revision {name}")
    return found.stdout.strip()


_ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
    # Two revisions may have files of the same size and second, whose bytecode Python would take for the same.
    "PYTHONDONTWRITEBYTECODE": "1"
}


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", str(folder), "-c", f"core.hooksPath={os.devnull}", *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, env=_ENVIRONMENT)
    except FileNotFoundError:
        raise UsageError("--git: git is not installed") from None


def _checked(ran: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    if ran.returncode:
        raise UsageError(f"git: {(ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1]}")
    return ran


def step(file: Path) -> int:
    """Return the exit code for the revision that is checked out: whether its memory fails as the case does."""
    case = json.loads(file.read_text(encoding="utf-8"))
    if PathFinder.find_spec(case["module"], [case["folder"]]) is None:
        say(f"it has no {case['module']}")
        return CANNOT_BE_TESTED
    try:
        found = failure_of_new_process(
            sys.executable, case["question"], case["backend"], case["batch"], Path(case["folder"])
        )
    except UsageError as error:
        say(str(error))
        return CANNOT_BE_TESTED
    if found == "error":
        say("its memory, or a model, failed")
        return CANNOT_BE_TESTED
    return BAD if found == case["label"] else GOOD


if __name__ == "__main__":
    sys.exit(step(Path(sys.argv[1])))
