"""``--reranker`` on the command line: recorded, paid once, and never in the way of the exit code."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memreplay.numbers import dollars
from memreplay.recording.reader import Recording
from memreplay.tui.sources import recorded
from tests.cli.conftest import RunCli
from tests.stubs.openai_server import Answer, OpenAIServer, Received, failure, rerankings

SPEC = "litellm:cohere/rerank-v3.5"
RUN = ("--batch", "--dataset", "identity-01", "--backend", "rag", "--backend", "hybrid", "--concurrency", 1)
CHECK = "ready"
"""The query that is scored before the first question."""


def scrambled(received: Received) -> Answer:
    """An order that has nothing to do with that of the search."""
    return rerankings([float(sum(text.encode()) % 97) for text in received.body["documents"]])


def queries(server: OpenAIServer) -> list[str]:
    return [received.body["query"] for received in server.requests if received.body["query"] != CHECK]


def rows_of(out: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(out)["questions"]
    return rows


def ranking(out: str) -> dict[tuple[str, str], list[tuple[float | None, list[str]]]]:
    """Scores and turns of the hits, by question and memory."""
    return {
        (row["question_id"], row["backend"]): [(hit["score"], hit["turns"]) for hit in row["hits"]]
        for row in rows_of(out)
    }


def test_hits_come_in_the_order_of_its_scores_and_the_run_names_it(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "co-test-0123456789abcdefghijklmnop"
    monkeypatch.setenv("COHERE_API_KEY", key)
    plain = run_cli(*RUN, "--recording", tmp_path / "plain.sqlite3", "--output", "-")
    with OpenAIServer(scrambled) as server:
        ran = run_cli(
            *RUN, "--reranker", SPEC, "--api-base", server.url,
            "--recording", tmp_path / "r.sqlite3", "--output", "-",
        )  # fmt: skip
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["run"]["settings"]["reranker"] == SPEC
    turns, before = (
        {place: [turns for _, turns in hits] for place, hits in ranking(out).items()}
        for out in (ran.out, plain.out)
    )
    assert turns.keys() == before.keys() and all(turns[place] != before[place] for place in turns)
    for row in rows_of(ran.out):
        scores = [hit["score"] for hit in row["hits"] if hit["turns"]]
        assert scores == sorted(scores, reverse=True)
    assert not any(key.encode() in file.read_bytes() for file in tmp_path.glob("r.sqlite3*"))


def test_each_question_is_paid_once_for_a_memory_and_never_again(run_cli: RunCli, tmp_path: Path) -> None:
    with OpenAIServer(scrambled) as server:
        here = (*RUN, "--reranker", SPEC, "--api-base", server.url)
        tables = tmp_path / "one.md"
        first = run_cli(*here, "--recording", tmp_path / "one.sqlite3", "--output", "-", "--output", tables)
        asked = queries(server)
        second = run_cli(*here, "--repeats", 2, "--recording", tmp_path / "two.sqlite3", "--output", "-")
    assert first.code == second.code == 0, first.err + second.err
    assert set(asked) == {row["question"] for row in rows_of(first.out)}
    for backend in json.loads(first.out)["backends"].values():
        assert backend["reading"]["model_calls"] == len(asked) / 2
        assert backend["reading"]["cost_usd"] == pytest.approx(0.002 * len(asked) / 2)
        assert not backend["cost_usd"], "the answers' own"
    assert "cost of reading" in tables.read_text("utf-8")
    assert all(backend["reading"] is None for backend in json.loads(second.out)["backends"].values())
    assert f"memories called models to read {len(asked)} times, paid {dollars(0.002 * len(asked))}" in first.err
    assert "to read" not in second.err
    # Two memories search for it, and give it texts of their own.
    assert all(asked.count(query) == 2 for query in asked)
    assert queries(server) == asked
    assert ranking(second.out) == ranking(first.out)


def test_a_run_that_it_stopped_is_resumed_with_the_same_one_and_asks_only_the_rest(
    run_cli: RunCli, tmp_path: Path
) -> None:
    def refuses_later(received: Received) -> Answer:
        return failure(401, "expired") if len(queries(server)) > 3 else scrambled(received)

    with OpenAIServer(refuses_later) as server:
        written = ("--api-base", server.url, "--recording", tmp_path / "r.sqlite3", "--output", tmp_path / "r.json")
        stopped = run_cli(*RUN, "--reranker", SPEC, *written)
        assert stopped.code == 5, stopped.err
        assert (
            "--reranker" in stopped.err and "the key is not accepted" in stopped.err and "--resume" in stopped.err
        )
        paid = queries(server)[:3]
        server.requests.clear()
        server.behaviour = scrambled
        other = run_cli(*RUN, "--reranker", "litellm:cohere/rerank-v4.0-fast", *written, "--resume")
        assert other.code == 2, "another reranker makes another run"
        server.requests.clear()
        assert run_cli(*RUN, "--reranker", SPEC, *written, "--resume").code == 0
        asked = queries(server)
    with closing(Recording.open(tmp_path / "r.sqlite3")) as reader:
        (run,) = reader.runs()
        calls = [event.call for event in reader.events(run.id, "identity-01", ("model_called",))]
    assert len(calls) == len(paid) + len(asked), "what was paid before is still on record"
    assert {call.cost_usd for call in calls} == {0.002}
    assert len(asked) == 2 * len({*asked, *paid}) - len(paid)
    assert not any(row["error"] for row in json.loads((tmp_path / "r.json").read_text())["questions"])


def test_a_question_that_it_cannot_score_is_an_error_and_not_a_wrong_answer(
    run_cli: RunCli, tmp_path: Path
) -> None:
    def fails_later(received: Received) -> Answer:
        return failure(400, "query too long") if queries(server) else scrambled(received)

    with OpenAIServer(fails_later) as server:
        ran = run_cli(
            *RUN, "--reranker", SPEC, "--api-base", server.url, "--limit", 2,
            "--recording", tmp_path / "r.sqlite3", "--output", "-",
        )  # fmt: skip
    assert ran.code == 3, ran.err
    for row in rows_of(ran.out):
        assert row["outcome"] == "error"
        assert f"{SPEC} returned no scores" in row["error"] and "query too long" in row["error"]


def test_offline_only_known_scores_are_used(run_cli: RunCli, tmp_path: Path) -> None:
    with OpenAIServer(scrambled) as server:
        here = (*RUN, "--reranker", SPEC, "--api-base", server.url, "--offline", "--limit", 1, "--output", "-")
        unknown = run_cli(*here, "--recording", tmp_path / "a.sqlite3")
        assert not server.requests
        assert run_cli(*here[:-5], "--recording", tmp_path / "b.sqlite3", "--output", "-").code == 0
        known = run_cli(*here, "--recording", tmp_path / "c.sqlite3")
    assert unknown.code == 3 and "offline" in rows_of(unknown.out)[0]["error"]
    assert known.code == 0, known.err


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--reranker", "bge"), 2, "unknown reranker 'bge'; expected one of fastembed:NAME, litellm:NAME"),
        (("--reranker", SPEC, "--backend", "full_context"), 2, "--reranker is an option of hybrid, rag"),
        (("--reranker", SPEC, "--backend", "rag"), 4, "COHERE_API_KEY"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_asked(
    run_cli: RunCli, tmp_path: Path, options: tuple[str, ...], code: int, says: str
) -> None:
    ran = run_cli("--batch", "--dataset", "identity-01", *options, "--recording", tmp_path / "r.sqlite3")
    assert ran.code == code
    assert says in ran.err and "Traceback" not in ran.err
    assert not (tmp_path / "r.sqlite3").exists()


def test_a_screen_names_it_and_a_branch_may_have_another(run_cli: RunCli, tmp_path: Path) -> None:
    recording, other = tmp_path / "r.sqlite3", "litellm:cohere/rerank-v4.0-fast"
    with OpenAIServer(scrambled) as server:
        run = (*RUN, "--reranker", SPEC, "--api-base", server.url, "--output", tmp_path / "r.json")
        assert run_cli(*run, "--recording", recording).code == 0
        server.requests.clear()
        given = ("--reranker", SPEC, "--api-base", server.url)
        forked = run_cli("fork", recording, "--at", 4, "--set", f"reranker={other}", *given)
        assert forked.code == 0, forked.err
        assert {received.body["model"] for received in server.requests} == {"rerank-v4.0-fast"}
    assert f"reranker {SPEC}" in recorded(recording, "identity-01").settings_in_short
    with closing(Recording.open(recording)) as reader:
        assert [run.settings["reranker"] for run in reader.runs()] == [SPEC, other]


def test_doctor_says_whether_it_answers(run_cli: RunCli) -> None:
    with OpenAIServer(scrambled) as server:
        well = run_cli("doctor", "--reranker", SPEC, "--api-base", server.url)
        server.behaviour = [failure(404)]
        lost = run_cli("doctor", "--reranker", SPEC, "--api-base", server.url)
    assert well.code == 0 and "ok       reranker" in well.out and SPEC in well.out
    assert (
        lost.code == 4 and "its server does not know it" in lost.out and f"leave out --reranker {SPEC}" in lost.out
    )
