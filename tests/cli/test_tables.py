"""How much the terminal says: one table and its conclusions, and everything on demand."""

from __future__ import annotations

import pytest

from memreplay.paths import demo_recordings
from tests.cli.conftest import RunCli

DEMO = demo_recordings()[0]


@pytest.fixture(autouse=True)
def _as_a_user_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMREPLAY_TABLES")


def test_one_table_says_how_the_memories_did_and_the_rest_is_printed_on_demand(
    run_cli: RunCli, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    ran = run_cli("report", DEMO, "--output", f"{tmp_path}/r.json")
    assert ran.code == 0, ran.err
    assert "15 of 19" in ran.out and "answer in prompt" in ran.out
    assert "rag lost: 3 not retrieved, 2 abstained, 1 misread." in ran.out
    assert "hybrid is better than full_context here: 15 against 4 right of the same 19 questions" in ran.out
    assert "Holm" not in ran.out
    assert f"next: memreplay {DEMO} shows why" in ran.out
    whole = run_cli("report", DEMO, "--output", f"{tmp_path}/r.json", "--tables", "all").out
    assert "Where each fact was lost" in whole and "Holm" in whole
    monkeypatch.setenv("MEMREPLAY_TABLES", "all")
    assert run_cli("report", DEMO, "--output", f"{tmp_path}/r.json").out == whole


def test_another_number_of_tables_is_refused(run_cli: RunCli, tmp_path: object) -> None:
    ran = run_cli("report", DEMO, "--output", f"{tmp_path}/r.json", "--tables", "some")
    assert ran.code == 2 and "expected headline or all" in ran.err
