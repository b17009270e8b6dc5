"""``--backend mem0`` and others: the real libraries in a run, with a scripted model where they extract."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from memreplay.debugger.biography import biography
from memreplay.debugger.provenance import hit_written_by
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.recording.reader import Recording
from memreplay.timeline.timeline import Timeline
from tests.cli.conftest import RunCli
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, failure

pytestmark = pytest.mark.skipif(find_spec("mem0") is None, reason="mem0 is not installed")

NAMES = re.compile(r"\b[A-ZÀ-Ý][\w'-]+(?: [A-ZÀ-Ý][\w'-]+)+")


def writes_names_down(received: Received) -> Answer:
    """A model that extracts the proper names of what the user said, and nothing else."""
    said = received.body["messages"][-1]["content"].partition("## New Messages")[2].partition("\n## ")[0]
    users = " ".join(line for line in said.splitlines() if line.startswith("user:"))
    facts = [{"id": "0", "text": f"The user named {name}"} for name in NAMES.findall(users)]
    return answer(json.dumps({"memory": facts}), prompt_tokens=200, completion_tokens=10)


def run_mem0(run_cli: RunCli, folder: Path, *more: object, code: int = 0) -> dict[str, Any]:
    output = folder / "results.json"
    ran = run_cli(
        "--batch", "--dataset", "identity-01", "--backend", "mem0",
        "--recording", folder / "r.sqlite3", "--output", output, *more,
    )  # fmt: skip
    assert ran.code == code, ran.err
    results: dict[str, Any] = json.loads(output.read_text())
    return results | {"stderr": ran.err}


def test_what_mem0_spends_on_writing_is_counted_and_its_verdicts_name_the_stage(
    run_cli: RunCli, tmp_path: Path
) -> None:
    with OpenAIServer(writes_names_down) as server:
        results = run_mem0(run_cli, tmp_path, "--extractor", "openai/stub", "--api-base", server.url)
    writing = results["backends"]["mem0"]["writing"]
    exchanges = writing["exchanges"]
    assert len(server.requests) == writing["model_calls"] == exchanges
    assert writing["model_tokens"] == 210 * exchanges
    assert (writing["cost_usd"], writing["failed_calls"]) == (None, 0), "the price of the stub is unknown"
    hits = [hit for row in results["questions"] for hit in row["hits"]]
    assert hits and all(hit["sources"] and not hit["turns"] for hit in hits)
    lost = {row["question"]: row["failure"] for row in results["questions"] if row["outcome"] == "wrong"}
    assert set(lost.values()) <= {"not_written", "not_retrieved", "misread"} and "not_written" in lost.values()


def test_it_is_known_who_wrote_what_mem0_returns_and_what_became_of_a_turn(run_cli: RunCli, tmp_path: Path) -> None:
    with OpenAIServer(writes_names_down) as server:
        run_mem0(run_cli, tmp_path, "--extractor", "openai/stub", "--api-base", server.url)
    recording = Recording.open(tmp_path / "r.sqlite3")
    [run] = recording.runs()
    conversation = recording.conversation(run.id, "identity-01")
    timeline = Timeline(conversation, list(recording.events(run.id, "identity-01")))
    end = len(conversation.turns)
    hits = {hit.id: hit for each in timeline.answers() if each.asked.backend == "mem0" for hit in each.asked.hits}
    assert hits
    for hit in hits.values():
        [origin] = hit_written_by(timeline, "mem0", hit, end)
        assert origin.turns == hit.sources
        turn = conversation.turns_by_id[hit.sources[0]]
        told = biography(timeline, RetrievalIndex(timeline), "mem0", turn)
        assert hit.id in {item.item for item in told.stored}


def test_a_filled_memory_serves_other_settings_of_reading_and_says_so(run_cli: RunCli, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("first", "second", "fresh", "other")]
    for folder in folders:
        folder.mkdir()
    first, second, fresh, other = folders
    with OpenAIServer(writes_names_down) as server:
        model = ("--extractor", "openai/stub", "--api-base", server.url)
        filled = run_mem0(run_cli, first, *model)["backends"]["mem0"]["writing"]
        asked = len(server.requests)
        again = run_mem0(run_cli, second, *model, "--top-k", "2", "--context-tokens", "60")
        assert len(server.requests) == asked
        anew = run_mem0(run_cli, fresh, *model, "--fresh")["backends"]["mem0"]["writing"]
        without = run_mem0(run_cli, other)["backends"]["mem0"]["writing"]
    reused = again["backends"]["mem0"]["writing"]
    assert reused == filled | {"reused_exchanges": filled["exchanges"]}, "what it took stays known"
    assert (filled["reused_exchanges"], anew["reused_exchanges"], without["reused_exchanges"]) == (0, 0, 0)
    assert anew["reused_calls"] == anew["model_calls"], "--fresh writes anew; the replies are those of the cache"
    assert any(row["hits"] for row in again["questions"])
    assert all(len(row["hits"]) <= 2 for row in again["questions"])
    assert "mem0 filled by an earlier run" in again["stderr"] and "--fresh" in again["stderr"]
    writes = []
    for folder in (first, second):
        with closing(sqlite3.connect(folder / "r.sqlite3")) as recording:
            writes += recording.execute("select count(*) from memory_writes").fetchall()
    assert writes[0] == writes[1] != (0,), "the new recording can be stepped through as the first one"


def test_errors_are_retried_without_ingesting_again(run_cli: RunCli, tmp_path: Path) -> None:
    def fails_to_answer(received: Received) -> Answer:
        return writes_names_down(received) if "## New Messages" in received.prompt else failure(400, "no")

    with OpenAIServer(fails_to_answer) as server:
        model = ("--extractor", "openai/stub", "--model", "openai/stub", "--api-base", server.url)
        failed = run_mem0(run_cli, tmp_path, *model, code=3)
        server.behaviour = [answer("Arnau")]
        asked = len(server.requests)
        retried = run_mem0(run_cli, tmp_path, *model, "--resume", "--retry-errors")
        questions = len([row for row in failed["questions"] if row["outcome"] == "error"])
        assert len(server.requests) - asked <= 2 * questions, "of memory and the closed book"
    writing = retried["backends"]["mem0"]["writing"]
    assert writing["reused_exchanges"] == writing["exchanges"]


def test_without_a_model_mem0_stores_every_message_and_calls_none(run_cli: RunCli, tmp_path: Path) -> None:
    mem0 = run_mem0(run_cli, tmp_path)["backends"]["mem0"]
    assert mem0["writing"]["model_calls"] == mem0["writing"]["model_tokens"] == 0
    assert mem0["writing"]["cost_usd"] == 0
    assert mem0["retrieval"]["recall_at"]["10"] > 0.5, "hits that quote a turn name it"


def test_a_model_that_fails_is_an_error_and_no_wrong_answer(run_cli: RunCli, tmp_path: Path) -> None:
    with OpenAIServer([failure(400, "no such thing")]) as server:
        results = run_mem0(run_cli, tmp_path, "--extractor", "openai/stub", "--api-base", server.url, code=3)
    assert {row["outcome"] for row in results["questions"]} == {"error"}
    assert results["backends"]["mem0"]["accuracy"] is None


def test_a_library_that_is_missing_is_named_with_what_installs_it(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_backends.adapters.library.find_spec", lambda name: None)
    ran = run_cli("--batch", "--dataset", "identity-01", "--backend", "mem0", "--recording", tmp_path / "r.sqlite3")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "pip install 'memreplay[mem0]'" in ran.err


FACTS = answer('{"facts": []}')


@pytest.mark.skipif(find_spec("chromadb") is None, reason="chromadb is not installed")
def test_a_memory_whose_writer_always_failed_has_errors_and_no_wrong_answers(
    run_cli: RunCli, tmp_path: Path
) -> None:
    with OpenAIServer([failure(400, "no such thing")]) as server:
        run = (
            *("--batch", "--dataset", "identity-01", "--backend", "chroma", "--limit", 2),
            *("--extractor", "openai/stub", "--api-base", server.url, "--output", tmp_path / "out.json"),
        )
        failed = run_cli(*run, "--recording", tmp_path / "failed.sqlite3")
        calls = len(server.requests)
        rows = json.loads((tmp_path / "out.json").read_text())["questions"]
        server.behaviour = [FACTS]
        again = run_cli(*run, "--recording", tmp_path / "again.sqlite3")
        assert len(server.requests) == 2 * calls, "what failed is no filled memory that another run may use"
    assert (failed.code, again.code) == (3, 0), again.err
    assert {row["outcome"] for row in rows} == {"error"}
    assert f"its writer openai/stub failed in {calls} of {calls} calls" in rows[0]["error"]
    told, flat = (" ".join(ran.out.split()) for ran in (failed, again))
    assert f"writer: none of {calls} calls of chroma to write gave a usable reply (BadRequestError: no such" in told
    assert "gave a usable reply" not in flat and f"{calls} of {calls} replies to chroma named no fact" in flat


@pytest.mark.skipif(find_spec("chromadb") is None, reason="chromadb is not installed")
def test_a_sweep_of_a_memory_whose_writer_always_failed_has_no_figures(run_cli: RunCli) -> None:
    with OpenAIServer([failure(400, "no such thing")]) as server:
        swept = run_cli(
            "sweep", "--dataset", "identity-01", "--backend", "chroma", "--over", "top-k=2,4",
            "--extractor", "openai/stub", "--api-base", server.url,
        )  # fmt: skip
    assert swept.code == 2 and "nothing is stored: its writer openai/stub failed in 9 of 9 calls" in swept.err
    assert not swept.out


@pytest.mark.skipif(find_spec("chromadb") is None, reason="chromadb is not installed")
@pytest.mark.parametrize("said", ["I would rather talk.", '{"names": []}'])
def test_replies_that_are_not_what_a_memory_asked_for_could_not_be_read(
    run_cli: RunCli, tmp_path: Path, said: str
) -> None:
    with OpenAIServer([answer(said)]) as server:
        ran = run_cli(
            "--batch", "--dataset", "identity-01", "--backend", "chroma", "--limit", 2,
            "--extractor", "openai/stub", "--api-base", server.url,
            "--recording", tmp_path / "r.sqlite3", "--output", tmp_path / "out.json",
        )  # fmt: skip
    rows = json.loads((tmp_path / "out.json").read_text())["questions"]
    told = " ".join(ran.out.split())
    assert "calls of chroma to write gave a usable reply (the reply is not the JSON that was asked for)" in told
    assert "replies to chroma could not be read" in told and "named no fact" not in told
    assert {(row["failure"], row["failure_writer"]) for row in rows} == {("not_written", "unreadable")}
    assert ran.code == 0, ran.err
