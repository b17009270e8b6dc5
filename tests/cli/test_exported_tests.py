"""Tests written as definitions are the same tests again."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import RunCli
from tests.stubs.tests_to_run import python_dataset


def said_in(run_cli: RunCli, dataset: object, *more: object) -> str:
    """What a run of tests takes, as its estimate counts it: calls, and tokens of all that was said."""
    ran = run_cli("--batch", "--dataset", dataset, "--backend", "full_context", "--estimate", *more)
    assert ran.code == 0, ran.err
    return ran.out


def test_a_shipped_dataset_comes_back_with_its_memory_span(run_cli: RunCli, tmp_path: Path) -> None:
    wishes = ("--examples", 2, "--memory-span", 700, "--seed", 3)
    ran = run_cli("datasets", "export", "colours", "--output", tmp_path / "shared", *wishes)
    assert ran.code == 0 and "2 tests written" in ran.err and "ungraded" not in ran.err
    assert said_in(run_cli, tmp_path / "shared", "--seed", 3) == said_in(run_cli, "colours", *wishes)
    again = run_cli("datasets", "export", "colours", "--output", tmp_path / "shared")
    assert again.code == 2 and "already" in again.err


def test_exporting_a_dataset_of_your_own_reports_that_its_grading_is_lost(run_cli: RunCli, tmp_path: Path) -> None:
    dataset = f"{python_dataset(tmp_path)}:Keys"
    ran = run_cli("datasets", "export", dataset, "--output", tmp_path / "shared")
    assert ran.code == 0 and "Keys: its tests are graded by Python code" in ran.err
    assert len(list((tmp_path / "shared" / "Keys").glob("*.def.json"))) == 3


def test_options_for_the_other_kind_are_refused(run_cli: RunCli, tmp_path: Path) -> None:
    export = ("datasets", "export", "--output", tmp_path / "x")
    assert run_cli(*export, "identity-01", "--examples", 2).code == 2
    assert run_cli(*export, "colours", "--conversation", "c").code == 2
    assert not (tmp_path / "x").exists()
