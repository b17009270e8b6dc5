"""A Markdown report, rendered with HTML allowed, holds no markup of a recording's names."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from memreplay.paths import demo_recording
from tests.cli.conftest import RunCli
from tests.cli.conftest import run_cli as run_cli

HOSTILE = "rag<img src=x onerror=alert(1)>"


def test_a_memory_with_markup_in_its_name_puts_none_into_a_summary(run_cli: RunCli, tmp_path: Path) -> None:
    path, report = tmp_path / "r.sqlite3", tmp_path / "x.md"
    shutil.copy(demo_recording().parent / "demos" / "three-memories.sqlite3", path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("update events set backend = ? where backend = 'rag'", [HOSTILE])
        db.execute("update runs set settings = replace(settings, '\"rag\"', ?)", [json.dumps(HOSTILE)])
    ran = run_cli("report", path, "--output", report)
    assert ran.code == 0, ran.err
    text = report.read_text()
    summaries = re.findall(r"<summary>(.*?)</summary>", text)
    assert summaries and not any("<" in summary or "\\" in summary for summary in summaries)
    assert any("rag&lt;img" in summary for summary in summaries), summaries
    assert not re.search(r"(?<!\\)<img", text)
