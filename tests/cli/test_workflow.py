"""The workflow of recordings/SHARING.md does what it says: its steps run, here without GitHub."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY

junitparser = pytest.importorskip("junitparser")


def test_the_steps_of_the_workflow_score_compare_and_summarise(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = (REPOSITORY / "recordings" / "SHARING.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```yaml\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (job,) = yaml.safe_load(text)["jobs"].values()
    commands = {step["name"]: step["run"] for step in job["steps"] if step.get("run", "").startswith("memreplay ")}
    monkeypatch.chdir(tmp_path)

    def ran(name: str) -> str:
        """Run a step; what it appended to the job's summary. Every step has a summary file of its own."""
        summary = tmp_path / f"step_summary_{len(name)}"
        words = shlex.split(commands[name].replace("$GITHUB_STEP_SUMMARY", str(summary)))
        result = run_cli(*words[1:])
        assert result.code == 0, result.err
        return summary.read_text(encoding="utf-8")

    assert ran("Score").startswith("## memreplay: ")
    assert {suite.name for suite in junitparser.JUnitXml.fromfile("junit.xml")} == {"hybrid", "rag"}
    shutil.copy("run.json", "baseline.json")
    assert "**No regression" in ran("Compare with the baseline")
