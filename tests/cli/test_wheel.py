"""The wheel works in any folder, even in one whose own packages have the names of the project's folders."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.conftest import REPOSITORY

pytest.importorskip("hatchling")

MEMORY = "from memory_backends.examples.notebook import NotebookMemory\n\nclass Mine(NotebookMemory):\n    pass\n"
DATASET = """
from memreplay.goodai.interface import DatasetInterface, TestExample


class Drawers(DatasetInterface):
    name = "Drawers"
    description = "Where the key lies."

    def generate_examples(self, num_examples):
        script = ["The key lies in drawer 7.", "Where is the key?"]
        return [
            TestExample(
                dataset_generator=self, script=script, is_question=[False, True], expected_responses=["drawer 7"]
            )
        ] * num_examples

    def evaluate_correct(self, questions, responses, expected_answers):
        return int("drawer 7" in responses[0]), 1, ["looked for the drawer"]
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, folder], cwd=REPOSITORY, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` of an environment with the wheel and, from the environment of the tests, its dependencies."""
    environment = tmp_path_factory.mktemp("environment")
    own_pip = find_spec("pip") is not None
    venv.create(environment, with_pip=not own_pip)
    paths = sysconfig.get_paths(vars={"base": str(environment), "platbase": str(environment)})
    python, site_packages = Path(paths["scripts"]) / "python", Path(paths["purelib"])
    pip = (sys.executable, "-m", "pip", "--python", python) if own_pip else (python, "-m", "pip")
    install = ("install", "--quiet", "--no-index", "--no-deps", wheel)
    subprocess.run([*pip, *install], check=True, capture_output=True, env=_clean_environment(environment))
    # Careless distributions install such a package; the project's own must win.
    (site_packages / "tests").mkdir()
    (site_packages / "tests" / "__init__.py").write_text("")
    # A folder named in a .pth file is searched last, and its own .pth files are ignored: no editable install.
    (site_packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return python.parent


@pytest.fixture
def run(scripts: Path, tmp_path: Path) -> Run:
    """Runs a command in a project with packages ``app``, ``datasets``, ``tests`` and ``recordings``."""
    project = tmp_path / "project"
    for name in ("app", "datasets", "tests", "recordings"):
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text("")
        (project / name / "memory.py").write_text(MEMORY)
    shutil.copy(REPOSITORY / "datasets" / "identity" / "identity-01.json", project / "app" / "my_dataset.json")
    (project / "app" / "tests_dataset.py").write_text(DATASET)

    def run_in_project(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [scripts / command, *arguments],
            cwd=project,
            env=_clean_environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )

    return run_in_project


def _clean_environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MEMREPLAY"))}
    return kept | {"HOME": str(home)}


def test_the_wheel_holds_two_packages_and_the_shipped_data(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"memreplay", "memory_backends"}
    assert "memreplay/_data/datasets/identity/identity-01.json" in names
    assert "memreplay/_data/recordings/demo.sqlite3" in names
    assert not [name for name in names if "__pycache__" in name or name.startswith("memreplay/tests/")]


def test_it_starts_as_a_module(run: Run) -> None:
    ran = run("python", "-m", "memreplay", "--version")
    assert (ran.returncode, ran.stderr) == (0, "") and ran.stdout.startswith("memreplay ")


def test_a_memory_and_datasets_of_the_project_are_found(run: Run) -> None:
    ran = run(
        *("memreplay", "--batch", "--backend", "app.memory:Mine", "--backend", "tests.memory:Mine"),
        *("--dataset", "app/my_dataset.json", "--dataset", "app/tests_dataset.py:Drawers", "--examples", "1"),
        *("--memory-span", "100", "--recording", "r.sqlite3", "--output", "-"),
    )
    assert ran.returncode == 0, ran.stderr
    results = json.loads(ran.stdout)
    assert set(results["backends"]) == {"app.memory:Mine", "tests.memory:Mine"}
    assert {row["kind"] for row in results["questions"]} == {"recall", "test"}


def test_the_shipped_conversations_are_listed(run: Run) -> None:
    ran = run("memreplay", "datasets")
    assert ran.returncode == 0 and "identity-01" in ran.stdout and "colours" in ran.stdout, ran.stderr
