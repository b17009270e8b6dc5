"""The pytest plugin in a small project of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_TESTS = """
import asyncio
import pytest
import memreplay

@pytest.mark.memreplay(dataset="multi-01", backend="full_context")
class TestFullContext:
    def test_recalls_what_was_said(self, memory):
        assert memory.recalls("In or just outside of which walled town is the user going to spend the holiday?")
        assert memory.answers("Where is the holiday?", "Kotor")

    async def test_in_a_running_loop_and_before_it_was_said(self, memory):
        assert not memory.recalls("Where is the holiday?", "Kotor", turn=0)
        assert memory.recalls("Where is the holiday?", "Kotor", turn=14)

@pytest.mark.memreplay(dataset="multi-01", backend="full_context")
def test_too_early(memory):
    assert memory.recalls("Which pass?", "Krstac", turn=2)

@pytest.mark.memreplay(dataset="multi-01", backend="rag:keyword", top_k=1)
def test_not_retrieved(memory):
    assert memory.recalls("Please greet me", "Kingfisher")

@pytest.mark.memreplay(dataset="multi-01")
def test_unknown_question(memory):
    memory.recalls("no such question")

@pytest.mark.memreplay(dataset="multi-99")
def test_unknown_dataset(memory):
    pass

def test_unmarked(memory):
    pass
"""


def test_failures_name_the_stage_and_the_turn(tmp_path: Path) -> None:
    (tmp_path / "test_my_memory.py").write_text(_TESTS)
    (tmp_path / "memreplay.toml").write_text("context_tokens = 4000\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\naddopts = --strict-markers\n")
    named = [word for plugin in ("memreplay", "asyncio", "no:cacheprovider") for word in ("-p", plugin)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *named, "--color=no", "-rN"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    out = done.stdout
    assert "2 passed" in out and "3 failed" in out and "2 errors" in out, out + done.stderr
    assert "<full_context at turn 2: not_written. It is said in turn" in out
    assert "<rag:keyword at turn 14: not_retrieved." in out
    assert "expected: Kingfisher" in out and "hit 1:" in out
    assert "memreplay: multi-01 has no question “no such question”" in out
    assert 'memreplay: "multi-99" is neither the id of a shipped dataset' in out
    assert "registry.py" not in out and "replayed.py" not in out, "a sentence is no traceback"
    assert "the fixture `memory` needs @pytest.mark.memreplay(dataset" in out


def test_the_plugin_imports_nothing_of_memreplay(tmp_path: Path) -> None:
    code = (
        "import sys, memreplay.pytest_plugin\n"
        "assert [n for n in sys.modules if n.startswith('memreplay')] == ['memreplay', 'memreplay.pytest_plugin']\n"
        "assert 'pydantic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
