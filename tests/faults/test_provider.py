"""Whatever a provider sends, it costs at most its own answer."""

from __future__ import annotations

import asyncio
import copy
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memreplay.llm.client import LiteLLMModel
from memreplay.llm.model import Reply
from memreplay.llm.prompts import build_request
from memreplay.llm.rate_limiter import ModelUnavailableError
from tests.cli.conftest import RunCli
from tests.faults.effort import examples
from tests.faults.mutation import NASTY, mutated
from tests.faults.provider import PROVIDER_FAULTS, WELL_FORMED, ProviderFault
from tests.stubs.openai_server import OpenAIServer, answer
from tests.unit.llm.test_client import QUESTION


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


@pytest.fixture(scope="module")
def served() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """One event loop for all asks: connections are kept in it."""
    with asyncio.Runner() as made:
        yield made


def _is_storable(value: Any) -> bool:
    """Whether SQLite and JSON can hold a value."""
    if isinstance(value, str):
        return not any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, dict):
        return all(_is_storable(each) for pair in value.items() for each in pair)
    if isinstance(value, list | tuple):
        return all(map(_is_storable, value))
    return not isinstance(value, int) or abs(value) < 2**63


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_mutated_reply_is_an_answer_or_an_error_with_its_reason(
    served: OpenAIServer, runner: asyncio.Runner, data: st.DataObject
) -> None:
    reply = mutated(data, copy.deepcopy(WELL_FORMED), NASTY)
    text = json.dumps(reply)
    end = data.draw(st.just(len(text)) | st.integers(0, len(text)), label="length")
    status = data.draw(st.sampled_from([200, 200, 200, 400, 418, 200]), label="status")
    served.behaviour = [{"status": status, "headers": {}, "body": text[:end]}]
    model = LiteLLMModel(timeout=5, attempts=1)
    try:
        given_: Reply = runner.run(model.answer(build_request(QUESTION, "", "openai/stub", served.url)))
    except ModelUnavailableError as error:
        assert str(error)
        return
    assert (given_.text is not None and given_.text.strip() != "") or given_.error or given_.refused, given_
    assert "Traceback" not in (given_.error or "")
    assert _is_storable(given_.model_dump()), given_
