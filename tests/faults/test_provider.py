"""Whatever a provider sends, it costs at most its own answer."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import RunCli
from tests.faults.provider import PROVIDER_FAULTS, ProviderFault
from tests.stubs.openai_server import OpenAIServer, answer


@pytest.mark.parametrize("fault", PROVIDER_FAULTS, ids=lambda fault: fault.name)
def test_a_fault_of_the_provider_costs_at_most_its_own_answer(
    run_cli: RunCli, tmp_path: Path, fault: ProviderFault
) -> None:
    recording, output = tmp_path / "r.sqlite3", tmp_path / "r.json"
    with OpenAIServer([fault.sent]) as server:
        here = (
            *("--batch", "--dataset", "identity-01", "--limit", 1, "--backend", "closed_book", "--no-cache"),
            *("--model", "openai/stub", "--api-base", server.url, "--recording", recording, "--output", output),
        )
        ran = run_cli(*here)
        assert ran.code == fault.code, ran.err
        assert "Traceback" not in ran.err and "\x1b" not in ran.err + ran.out
        assert 1 <= len(server.requests) <= fault.asks
        with sqlite3.connect(recording) as db:
            asked = "select count(*) from events where kind = 'reply_received'"
            assert db.execute(asked).fetchone() == (0 if fault.outcome is None else 1,)
        if fault.outcome is None:
            assert not output.exists() and "--resume" in ran.err
        else:
            (row,) = json.loads(output.read_text())["questions"]
            assert row["outcome"] == fault.outcome
            assert (fault.error or "") in (row["error"] or "") and "Traceback" not in (row["error"] or "")
        again = {3: ("--resume", "--retry-errors"), 5: ("--resume",)}.get(fault.code)
        if again:
            server.behaviour = [answer("Norway")]
            assert run_cli(*here, *again).code == 0
