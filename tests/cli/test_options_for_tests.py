"""Options that mean nothing where tests converse: said in a line, or refused."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import RunCli


def test_options_without_effect_are_told_in_one_line(run_cli: RunCli, tmp_path: Path) -> None:
    given = ("--shuffle-choices", "--perceive", "--answer-key", tmp_path / "missing.json")
    ran = run_cli("--batch", "--dataset", "colours", *given, "--recording", tmp_path / "r.sqlite3")
    first, second = ran.err.splitlines()
    assert first.startswith("warning: --shuffle-choices, --answer-key, --perceive: without effect on tests")
    assert ran.code == 2 and "missing.json" in second


def test_a_control_that_needs_evidence_is_refused(run_cli: RunCli, tmp_path: Path) -> None:
    ran = run_cli("--batch", "--dataset", "colours", "--backend", "oracle", "--recording", tmp_path / "r.sqlite3")
    assert ran.code == 2 and "evidence of questions" in ran.err
    assert not (tmp_path / "r.sqlite3").exists()
