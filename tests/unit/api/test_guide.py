"""app/README.md and its notebook run as they are written."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import memreplay
from memreplay.settings import read_settings
from tests.conftest import REPOSITORY

GUIDE = (REPOSITORY / "app" / "README.md").read_text(encoding="utf-8")
RUN, LOOK, RECORD, COROUTINES, TESTS = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
PROJECT, *_ = re.findall(r"^```toml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def test_the_code_of_the_guide_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(RUN + LOOK + RECORD + COROUTINES, names)
    names["run"].close()
    right = re.search(r"full_context ([1-5])/5", capsys.readouterr().out)
    assert right and asyncio.run(names["compare"]()) == int(right[1]) / 5
    with memreplay.open("agent.sqlite3") as recorded:
        assert len(recorded.conversation("ann").turns) == 6
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    assert (read_settings().top_k, read_settings().backend) == (5, ("hybrid", "rag"))


def test_the_test_of_the_guide_passes(tmp_path: Path) -> None:
    (tmp_path / "test_guide.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "memreplay", "-p", "no:cacheprovider"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=alone)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_kernel_executes_the_notebook(tmp_path: Path) -> None:
    """In a real kernel, with all that it brings: it is skipped where Jupyter's packages are not installed."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(REPOSITORY / "app" / "from_python.ipynb", as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    shown = [cell.outputs[-1].data for cell in notebook.cells if cell.cell_type == "code"]
    assert all(each["text/html"].startswith("<table>") for each in shown[:-1])
    assert "not_written" in shown[-1]["text/plain"]


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Jupyter runs it: cells in one namespace, inside a running loop, each ending in what it shows."""
    monkeypatch.chdir(tmp_path)
    cells = json.loads((REPOSITORY / "app" / "from_python.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}

    async def execute() -> list[Any]:
        shown = []
        for cell in cells:
            if cell["cell_type"] != "code":
                continue
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop()
            assert isinstance(last, ast.Expr)
            body = compile(tree, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            if inspect.iscoroutine(coroutine := eval(body, names)):
                await coroutine
            shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
        return shown

    summary, questions, mine, memory, why = asyncio.run(execute())
    assert all(each._repr_html_().startswith("<table>") for each in (summary, questions, mine, memory))
    assert why[0] == "not_written"
