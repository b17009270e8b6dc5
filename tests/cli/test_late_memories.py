"""A memory that writes late: what it writes is ascribed to what it heard, and the missing ``settle()`` is found."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.conftest import RunCli
from tests.stubs.openai_server import OpenAIServer, answer
from tests.stubs.planted_writer import FACTS, written_down

NAME = "tests.stubs.late_memory:LateMemory"


def test_items_belong_to_the_exchange_whose_words_they_have(run_cli: RunCli, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    with OpenAIServer([answer("The conversation does not say.")] * 20) as server:
        ran = run_cli(
            "--batch", "--dataset", written_down(tmp_path), "--backend", NAME, "--model", "openai/reader",
            "--api-base", server.url, "--recording", tmp_path / "r.sqlite3", "--output", output,
            "--top-k", 2,
        )  # fmt: skip
    assert ran.code == 0, ran.err
    rows = json.loads(output.read_text())["questions"]
    details = dict(zip(FACTS, (row["failure_detail"] for row in rows), strict=True))
    assert details["work"] == "Memory writes late, and had not yet written turn D1:9, which it heard last."
    assert "written 1 exchange late" in details["dish"] and "D1:7" in details["dish"]
    assert [row["failure"] for row in rows][2:] == ["not_retrieved", "not_retrieved", "not_written"]
    with closing(sqlite3.connect(tmp_path / "r.sqlite3")) as recording:
        written = recording.execute("select point, turns, turn from memory_writes order by event").fetchall()
    assert written[0] == ("m2", '["D1:1","D1:2"]', 4), "written at turn 4, on account of turn 1"


def test_check_backend_finds_that_settle_is_missing(run_cli: RunCli) -> None:
    ran = run_cli("check-backend", NAME)
    assert "appears in notes 1 exchange after that whose words it has" in ran.out
    assert "await what works in the background in settle()" in ran.out
