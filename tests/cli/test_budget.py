"""``memreplay budget``: one table on the terminal, and the curves as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from memreplay.paths import demo_recordings
from tests.cli.conftest import RunCli

DEMO = demo_recordings()[0]


def test_the_command_prints_one_table_and_writes_the_curves(run_cli: RunCli, tmp_path: Path) -> None:
    output = tmp_path / "curve.json"
    ran = run_cli("budget", DEMO, "--output", output)
    assert ran.code == 0, ran.err
    assert "rag is ahead of full_context below 2,600 tokens" in ran.out
    written = json.loads(output.read_text())
    assert written["budgets"][:2] == [128, 256]
    assert set(written["memories"]["rag"]) >= {"answer_in_prompt", "n", "estimated", "interval", "accuracy"}
    assert written["crossings"][0]["words"].startswith("rag is ahead")
    assert json.loads(run_cli("budget", DEMO, "--output", "-").out) == written
    assert run_cli("budget", DEMO, "--output", tmp_path / "curve.txt").code == 2


def test_of_a_memory_without_a_recorded_ranking_nothing_is_claimed(run_cli: RunCli, tmp_path: Path) -> None:
    recording, output = tmp_path / "run.sqlite3", tmp_path / "curve.json"
    run_cli("--batch", "--dataset", "identity-01", "--backend", "oracle", "--limit", 1, "--recording", recording)
    ran = run_cli("budget", recording, "--output", output)
    assert ran.code == 0, ran.err
    assert json.loads(output.read_text())["memories"] == {}
