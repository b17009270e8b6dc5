"""Facts that a writing model lost, each in another way: the verdict names the cause, and a run counts them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import RunCli
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer
from tests.stubs.planted_writer import FACTS, behaves, kept, written_down

pytestmark = pytest.mark.skipif(find_spec("mem0") is None, reason="mem0 is not installed")


def run(run_cli: RunCli, folder: Path, backend: str, behaviour: Any) -> tuple[dict[str, Any], str]:
    """Return the rows by the name of their fact, and what was printed."""
    output = folder / "out.json"
    with OpenAIServer(behaviour) as server:
        ran = run_cli(
            "--batch", "--dataset", written_down(folder), "--backend", backend, "--extractor", "openai/writer",
            "--model", "openai/reader", "--api-base", server.url, "--recording", folder / "r.sqlite3",
            "--output", output,
        )  # fmt: skip
    assert ran.code == 0, ran.err
    rows = {row["question"]: row for row in json.loads(output.read_text())["questions"]}
    return {name: rows[question] for name, (_, question, _) in FACTS.items()}, ran.out + ran.err


def test_what_the_writer_did_to_a_fact_is_said_and_counted(run_cli: RunCli, tmp_path: Path) -> None:
    rows, printed = run(run_cli, tmp_path, "mem0", behaves)
    assert {name: row["failure_writer"] for name, row in rows.items()} == {
        "key": "kept_nothing",
        "boat": "unreadable",
        "rent": "cut",
        "dish": "kept_other",
        "work": "not_stored",
    }
    assert {row["failure"] for row in rows.values()} == {"not_written"}
    assert "“User likes to eat on Saturdays; User is free then.”" in rows["dish"]["failure_detail"]
    assert "cut by its limit of 4,000 tokens" in rows["rent"]["failure_detail"]
    flat = " ".join(printed.split())
    assert "writer: 1 of 5 calls of mem0 to write were cut by the limit of 4,000 tokens." in flat
    assert "writer: 1 of 5 replies to mem0 could not be read." in flat
    assert "writer: 1 of 5 replies to mem0 named no fact." in flat
    assert "never written by mem0: 1: the writer kept nothing;" in flat


def test_an_update_step_that_deletes_is_told_from_an_extraction_that_names_nothing(
    run_cli: RunCli, tmp_path: Path
) -> None:
    fact = "Spare key is with Mrs Quillan"
    decided = {"memory": [{"event": "DELETE", "text": fact}], "delete": [fact]}

    def revises(received: Received) -> Answer:
        asked = received.body["messages"][-1]["content"]
        if asked.startswith("Revise: "):
            return answer(json.dumps(decided if "Quillan" in asked else {}))
        is_about_the_key = FACTS["key"][0] in asked.partition("## New Messages")[2]
        return kept(fact) if is_about_the_key else behaves(received)

    rows, _ = run(run_cli, tmp_path, "tests.stubs.revising_mem0:RevisingMem0", revises)
    assert rows["key"]["failure_writer"] == "removed_by_update"
    assert f"DELETE “{fact}”" in rows["key"]["failure_detail"]


def test_a_fact_without_a_value_costs_no_other_fact_of_the_reply(run_cli: RunCli, tmp_path: Path) -> None:
    said = {"turn": "D1:1", "certainty": 0.9, "impact": 0.9, "justification": "it is asked for"}
    key = said | {"text": "Mrs Quillan has the spare key.", "slot": "key.holder", "value": "Mrs Quillan"}

    def names_a_mood(received: Received) -> Answer:
        if "extract facts" not in received.prompt:
            return answer("The conversation does not say.")
        mood = said | {"text": "The user is well.", "slot": None, "value": None}
        return answer(json.dumps({"facts": [key, mood] if "[D1:1]" in received.prompt else []}))

    _, printed = run(run_cli, tmp_path, "hybrid", names_a_mood)
    assert "writer: 1 fact in replies to hybrid could not be read." in " ".join(printed.split())
    results = json.loads((tmp_path / "out.json").read_text())["backends"]["hybrid"]
    assert (results["extraction"]["facts"], results["extraction"]["errors"]) == (1, 0)
    assert results["writing"]["unread_facts"] == 1


def test_a_writer_that_was_not_called_is_named(run_cli: RunCli, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(FACTS, "dish", ("My favourite colour is teal.", "Which colour?", "teal"))
        rows, printed = run(run_cli, tmp_path, "tests.stubs.revising_mem0:SkippingMem0", behaves)
    assert rows["key"]["failure_writer"] == "not_called"
    assert "4: the writer was not called" in " ".join(printed.split())


def test_a_recorded_call_of_the_writer_names_no_address_and_no_other_model(run_cli: RunCli, tmp_path: Path) -> None:
    run(run_cli, tmp_path, "mem0", behaves)
    recording = tmp_path / "r.sqlite3"
    with OpenAIServer(behaves) as server, OpenAIServer(behaves) as theirs:
        picture = {"type": "image_url", "image_url": {"url": f"{theirs.url}/picture.png"}}
        with closing(sqlite3.connect(recording)) as db, db:
            for key, body in db.execute("select key, body from events where kind = 'model_called'").fetchall():
                call = json.loads(body)
                given = json.loads(call["call"]["parameters"])
                call["call"]["parameters"] = json.dumps(
                    {**given, "base_url": theirs.url, "fallbacks": ["openai/x"]}
                )
                call["call"]["messages"][0]["more"] = json.dumps({"content": [picture], "cache_control": {}})
                call["call"]["messages"][1]["more"] = "[1, "
                if "boat" in body:
                    call["call"]["model"] = "openai/theirs"
                db.execute("update events set body = ? where key = ?", [json.dumps(call), key])
        command = ("why", recording, "--writer", "--api-base", server.url, "--allow-from-recording")
        asked = run_cli(*command)
        assert not theirs.requests
    assert server.requests and {one.body["model"] for one in server.requests} == {"writer"}
    assert not any("picture.png" in json.dumps(one.body) or "base_url" in one.body for one in server.requests)
    assert "openai/theirs is not the writer of the run's settings, and is not asked" in asked.out
    assert asked.code == 3


def test_the_writer_is_asked_again_with_a_larger_limit_another_model_and_other_words(
    run_cli: RunCli, tmp_path: Path
) -> None:
    run(run_cli, tmp_path, "mem0", behaves)
    recording, words = tmp_path / "r.sqlite3", tmp_path / "words.txt"
    words.write_text("Keep every name.")
    before = recording.read_bytes()

    def better(received: Received) -> Answer:
        asked = received.body["messages"]
        if received.body["max_tokens"] == 9000 and "Mr Oduya" in asked[-1]["content"]:
            return kept("User pays the rent to Mr Oduya")
        if received.body["model"] == "better" and "khinkali" in asked[-1]["content"]:
            return kept("User wants khinkali on Saturday")
        if asked[0]["content"] == "Keep every name." and "Quillan" in asked[-1]["content"]:
            return kept("Mrs Quillan has the spare key")
        return behaves(received)

    with OpenAIServer(better) as server:
        command = (
            *("why", recording, "--writer", "--writer-limit", 9000, "--writer-model", "openai/better"),
            *("--writer-prompt", words, "--api-base", server.url, "--allow-from-recording"),
        )
        counted = run_cli(*command, "--estimate")
        assert counted.code == 0 and not server.requests
        asked = run_cli(*command)
    assert "asking openai/writer again about 4 facts: 12 calls" in counted.err
    assert "asking openai/better again about 4 facts: 4 calls" in counted.err
    assert asked.code == 0, asked.err
    told = asked.out.splitlines()
    assert len([line for line in told if line.startswith("talk-q")]) == 4
    assert [line.strip() for line in told if "with the answer" in line] == [
        "edited prompt: would store, with the answer: Mrs Quillan has the spare key",
        "larger limit: would store, with the answer: User pays the rent to Mr Oduya",
        "other model (openai/better): would store, with the answer: User wants khinkali on Saturday",
    ]
    assert "unchanged: nothing would be stored (could not be read)" in asked.out
    assert recording.read_bytes() == before
    refused = run_cli("why", recording, "--writer-limit", 9000)
    assert refused.code == 2 and "belong to --writer" in refused.err
