"""``--backend package.module:Class`` and ``check-backend``."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memreplay.llm.litellm_setup import loaded_litellm
from tests.cli.conftest import RunCli
from tests.stubs.openai_server import OpenAIServer, answer

NOTEBOOK = "memory_backends.examples.notebook:NotebookMemory"
STUBS = "tests.stubs.plugins"


def test_the_example_is_short_and_keeps_every_promise(run_cli: RunCli) -> None:
    ran = run_cli("check-backend", NOTEBOOK)
    assert ran.code == 0, ran.out
    assert "18 of 18" in ran.out
    assert "BROKEN" not in ran.out and "note " not in ran.out


def test_the_example_is_compared_with_the_others(run_cli: RunCli, tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    ran = run_cli(
        "--batch", "--dataset", "identity-01", "--backend", NOTEBOOK, "--backend", "closed_book",
        "--recording", tmp_path / "r.sqlite3", "--output", output,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    backends = json.loads(output.read_text())["backends"]
    assert backends[NOTEBOOK]["accuracy"] > 0.5
    assert backends[NOTEBOOK]["retrieval"]["recall_at"]["10"] > 0.5


def test_of_a_memory_that_returns_all_it_has_no_ranking_is_scored(run_cli: RunCli, tmp_path: Path) -> None:
    output, recording = tmp_path / "results.json", tmp_path / "r.sqlite3"
    name = f"{STUBS}:Whole"
    ran = run_cli(
        "--batch", "--dataset", "identity-01", "--backend", name, "--recording", recording, "--output", output
    )
    assert ran.code == 0, ran.err
    assert run_cli("report", recording, "--output", tmp_path / "again.json").code == 0
    for path in (output, tmp_path / "again.json"):
        found = json.loads(path.read_text())
        rows = [row for row in found["questions"] if row["backend"] == name]
        assert {(row["recall_at_10"], row["reciprocal_rank"], row["at_tokens"]) for row in rows} == {(None,) * 3}
        assert all(row["evidence_in_prompt"] for row in rows)
        assert found["backends"][name]["retrieval"]["recall_at"] is None


def test_broken_promises_of_a_careless_memory_are_described(run_cli: RunCli) -> None:
    ran = run_cli("check-backend", f"{STUBS}:Careless")
    assert ran.code == 1
    for sentence in (
        "BROKEN  observing the same exchange twice changes nothing",
        "to fix it: skip what was seen: self.seen = SeenExchanges()",
        "BROKEN  a recall keeps to top_k and context_tokens",
        "asked for 1 hit and 0 tokens it returned 3 tokens",
        "BROKEN  conversations do not see each other",
        "one conversation recalled what was said in another",
        "note    hits name every turn that they quote",
    ):
        assert sentence in ran.out
    assert "before its results count" in ran.out.splitlines()[-1]


def test_the_fix_for_a_memory_that_doubles_works(run_cli: RunCli) -> None:
    ran = run_cli("check-backend", f"{STUBS}:Doubling")
    assert "BROKEN  observing the same exchange twice" in ran.out
    ran = run_cli("check-backend", f"{STUBS}:Mended")
    assert ran.code == 0 and "kept    observing the same exchange twice" in ran.out, ran.out


def test_a_memory_of_plain_functions_keeps_every_promise_and_names_its_turns(run_cli: RunCli) -> None:
    ran = run_cli("check-backend", f"{STUBS}:Synchronous")
    assert ran.code == 0, ran.out
    broken = [line for line in ran.out.splitlines() if line.startswith(("BROKEN", "note"))]
    assert broken == ["note    a turn perceives what was said before it"], ran.out


def test_only_what_must_be_kept_decides(run_cli: RunCli) -> None:
    ran = run_cli("check-backend", "closed_book")
    assert ran.code == 0
    assert "note    what was said can be found" in ran.out


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere:Memory", "no module 'nowhere'"),
        (f"{STUBS}:FailsToBeMade", "no licence"),
        (f"{STUBS}:NoMemory", "it has no open()"),
        ("hybird", "hybird"),
    ],
)
def test_an_unusable_memory_is_reported_in_one_sentence_with_exit_2(
    run_cli: RunCli, tmp_path: Path, name: str, says: str
) -> None:
    recording = tmp_path / "r.sqlite3"
    for arguments in (
        ("check-backend", name),
        ("--batch", "--dataset", "identity-01", "--backend", name, "--recording", recording),
    ):
        ran = run_cli(*arguments)
        assert (ran.code, ran.out) == (2, "")
        assert says in ran.err and "Traceback" not in ran.err
        assert len(ran.err.strip().splitlines()) == 1
    assert not recording.exists()


def test_what_a_memory_calls_through_litellm_by_itself_is_counted_once(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded_litellm()
    output, name = tmp_path / "results.json", f"{STUBS}:CallsItsOwnModel"
    with OpenAIServer([answer("noted", prompt_tokens=30, completion_tokens=2)]) as server:
        monkeypatch.setenv("OWN_MODEL_URL", server.url)
        ran = run_cli(
            "--batch", "--dataset", "identity-01", "--backend", name, "--backend", "hybrid",
            "--recording", tmp_path / "r.sqlite3", "--output", output,
        )  # fmt: skip
        called = len(server.requests)
    assert ran.code == 0, ran.err
    backends = json.loads(output.read_text())["backends"]
    writing = backends[name]["writing"]
    assert called == writing["model_calls"] == 2 * writing["exchanges"]
    assert (writing["model_tokens"], writing["cost_usd"]) == (32 * called, None)
    assert backends["hybrid"]["writing"]["model_calls"] == 0
    with closing(sqlite3.connect(tmp_path / "r.sqlite3")) as db:
        found = db.execute("select model, reply, finish_reason, prompt from model_calls").fetchall()
    assert len(found) == called and {row[:3] for row in found} == {("own", "noted", "stop")}
    assert all("User: " in row[3] for row in found), "what was asked is in the recording"
