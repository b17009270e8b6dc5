"""``memreplay why``: readers whose faults are known are found out by asking again."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from signal import SIGKILL
from typing import Any

from memreplay.conversations.registry import load
from memreplay.grading.match import contains
from memreplay.llm.prompts import HISTORY_HEADING
from memreplay.recording.reader import Recording
from tests.cli.conftest import RunCli
from tests.stubs.launcher import Launcher
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, failure

DATASETS = ("identity-02", "technical-01")
QUESTIONS = {
    question.text: question
    for spec in ("identity-01", *DATASETS)
    for each in load([spec])
    for question in each.questions
}
LOST = {"not_written", "not_retrieved", "cut"}
Reads = Callable[[str], str]


def reader(reads: Reads) -> Callable[[Received], Answer]:
    """A reader that is right exactly when the expected answer stands in the part of the context that it reads."""

    def reply(received: Received) -> Answer:
        context, _, asked = received.prompt.rpartition("\n\nQuestion: ")
        question = QUESTIONS[asked.partition("\n")[0]]
        seen = reads(context.removeprefix(HISTORY_HEADING))
        return answer(question.expected if contains(question.expected, seen) else "I cannot find it.")

    return reply


def everything(context: str) -> str:
    return context


def last_fifth(context: str) -> str:
    return context[-len(context) // 5 :]


def options(server: OpenAIServer, recording: Path, *more: object) -> tuple[object, ...]:
    """Three memories that lose facts in three ways: nothing written, too few hits, too little room."""
    limits = ("--top-k", 1, "--context-tokens", 120, "--ablate", "verbatim", "--no-cache")
    datasets = [part for name in DATASETS for part in ("--dataset", name)]
    asked = ("--model", "openai/stub", "--api-base", server.url)
    return ("--batch", *datasets, *limits, *asked, "--recording", recording, *more)


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(path.read_text())["questions"]
    return [row for row in rows if row["counterfactuals"]]


def repaired(row: dict[str, Any], change: str) -> bool | None:
    return next((each["repaired"] for each in row["counterfactuals"] if each["intervention"] == change), None)


def test_some_of_what_was_not_retrieved_is_among_twice_the_hits(run_cli: RunCli, tmp_path: Path) -> None:
    with OpenAIServer(reader(everything)) as server:
        room = ("--context-tokens", 1000, "--why")
        ran = run_cli(*options(server, tmp_path / "r.sqlite3", *room))
    assert ran.code == 0, ran.err
    rows = rows_of(tmp_path / "r.results.json")
    assert any(repaired(row, "double_top_k") for row in rows if row["failure"] == "not_retrieved")


def test_what_memory_lost_is_repaired_by_adding_it_and_not_by_asking_again(run_cli: RunCli, tmp_path: Path) -> None:
    with OpenAIServer(reader(everything)) as server:
        estimate = run_cli(*options(server, tmp_path / "none.sqlite3", "--why", "--estimate"))
        assert estimate.code == 0 and not server.requests
        ran = run_cli(*options(server, tmp_path / "r.sqlite3", "--why"))
        calls = len(server.requests)
    assert ran.code == 0, ran.err
    assert calls <= sum(int(line.split()[3]) for line in estimate.out.splitlines() if "openai/stub" in line)
    results = json.loads((tmp_path / "r.results.json").read_text())
    rows = rows_of(tmp_path / "r.results.json")
    assert {row["failure"] for row in rows} >= LOST
    for row in rows:
        if row["failure"] in LOST:
            assert repaired(row, "evidence_added") is True, row
            assert (row["cure"], repaired(row, "unchanged")) == ("confirmed", False)
    # Some of what was cut fits into twice the room.
    assert any(repaired(row, "double_budget") for row in rows if row["failure"] == "cut")
    assert any(repaired(row, "half_budget") is False for row in rows if row["failure"] == "cut")
    assert not any(repaired(row, "closed_book") for row in rows)
    assert all(row["counterfactuals"] for row in results["questions"] if row["outcome"] == "wrong")
    for backend in results["backends"].values():
        assert backend["what_if"]["waterfall"][-1]["accuracy"] == 1
        assert backend["what_if"]["interventions"]["unchanged"]["repaired"] == 0
    assert "What repairs the wrong answers of rag" in ran.out


def test_as_many_calls_of_the_embedded_reader_are_made_as_were_estimated(run_cli: RunCli, tmp_path: Path) -> None:
    recording = tmp_path / "r.sqlite3"
    run_cli("--batch", "--dataset", "identity-01", "--top-k", 3, "--recording", recording)
    estimate = run_cli("why", recording, "--estimate")
    lines = [line.split() for line in estimate.out.splitlines() if "memreplay/extractive" in line]
    counted = [line for line in lines if line[-1] == "exact"]
    ran = run_cli("why", recording)
    asked = re.search(r"(\d+) asked", ran.err)
    assert ran.code == 0 and asked is not None, ran.err
    assert counted and sum(int(line[3]) for line in counted) == int(asked[1]) > 0


def test_a_reader_of_the_end_alone_is_found_out_by_the_position_of_the_evidence(
    run_cli: RunCli, tmp_path: Path
) -> None:
    recording = tmp_path / "r.sqlite3"
    whole = ("--batch", "--dataset", "identity-01", "--dataset", "technical-01", "--backend", "full_context")
    with OpenAIServer(reader(last_fifth)) as server:
        asked = ("--model", "openai/stub", "--api-base", server.url, "--recording", recording)
        assert run_cli(*whole, *asked).code == 0
        ran = run_cli("why", recording, "--model", "openai/stub", "--api-base", server.url)
    assert ran.code == 0, ran.err
    rows = [row for row in rows_of(tmp_path / "r.results.json") if row["failure"] in ("misread", "abstained")]
    assert len(rows) >= 3
    for row in rows:
        found = (repaired(row, "evidence_last"), repaired(row, "evidence_first"), repaired(row, "unchanged"))
        assert found == (True, False, False)
        assert (row["cure"], row["cured_by"]) == ("confirmed", "evidence_last")


def test_a_limit_counts_the_answers_of_all_conversations_together(run_cli: RunCli, tmp_path: Path) -> None:
    recording, ran, results = (tmp_path / name for name in ("r.sqlite3", "ran.json", "results.json"))
    with OpenAIServer(lambda received: answer("I cannot find it.")) as server:
        named = ("--model", "openai/stub", "--api-base", server.url)
        assert run_cli(*options(server, recording, "--output", ran)).code == 0
        asked = json.loads(ran.read_text())["questions"]
        first, second = (
            sum(row["conversation"] == name and row["backend"] != "closed_book" for row in asked)
            for name in DATASETS
        )
        assert run_cli("why", recording, "--limit", first + 1, "--output", results, *named).code == 0
    assert len(rows_of(results)) == first + 1 < first + second


def test_a_reader_that_always_fails_is_its_own_limit_and_an_error_decides_nothing(
    run_cli: RunCli, tmp_path: Path
) -> None:
    recording, asked = tmp_path / "r.sqlite3", ("--dataset", "identity-01", "--backend", "rag", "--top-k", 1)
    with OpenAIServer(lambda received: answer("A walrus, perhaps.")) as server:
        model = ("--model", "openai/stub", "--api-base", server.url)
        assert run_cli("--batch", *asked, *model, "--recording", recording).code == 0
        server.behaviour = [failure(400, "too long")]
        broken = run_cli("why", recording, "--model", "openai/stub", "--api-base", server.url)
        assert broken.code == 3, broken.err
        rows = rows_of(tmp_path / "r.results.json")
        assert all(each["outcome"] == "error" for row in rows for each in row["counterfactuals"] if each["error"])
        assert {row["cure"] for row in rows} == {None}
        assert {repaired(row, "unchanged") for row in rows} == {None}
        server.behaviour = [answer("A walrus, perhaps.")]
        assert run_cli("why", recording, "--model", "openai/stub", "--api-base", server.url).code == 0
    rows = rows_of(tmp_path / "r.results.json")
    assert {row["cure"] for row in rows} == {"reader_limit"}


def test_killed_it_continues_with_the_same_command_and_asks_nothing_twice(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path
) -> None:
    recording = tmp_path / "r.sqlite3"
    with OpenAIServer(lambda received: answer("A walrus, perhaps.")) as server:
        asked = ("--model", "openai/stub", "--api-base", server.url, "--no-cache")
        one = ("--dataset", "identity-02", "--backend", "rag", "--top-k", 1)
        ran = run_cli("--batch", *one, *asked, "--recording", recording)
        assert ran.code == 0, ran.err
        why = ("why", recording, *asked, "--concurrency", 1)
        for killed_after in (1, 7):
            server.requests.clear()
            run = launcher.start(tmp_path / "log", *why)
            run.wait_until(lambda run=run, wanted=killed_after: run.is_over or len(server.requests) >= wanted)
            run.signal(SIGKILL)
            run.wait()
        before = recorded(recording)
        server.requests.clear()
        ran = run_cli(*why)
        assert ran.code == 0, ran.err
        after, calls = recorded(recording), len(server.requests)
        assert run_cli(*why).code == 0
        assert len(server.requests) == calls
    assert before <= after and max(after.values()) == 1
    assert calls <= after.total() - before.total()


def recorded(path: Path) -> Counter[tuple[Any, ...]]:
    """The re-asks on disk."""
    reader = Recording.open(path)
    run = reader.run()
    found = Counter(
        tuple(row[name] for name in ("conversation", "backend", "question_id", "intervention"))
        for conversation in reader.conversation_ids(run.id)
        for row in reader.counterfactual_rows(run.id, conversation)
    )
    reader.close()
    return found


def test_what_cannot_be_asked_again_is_refused_in_a_sentence(run_cli: RunCli, tmp_path: Path) -> None:
    missing = run_cli("why", tmp_path / "none.sqlite3")
    assert missing.code == 2 and "no such recording" in missing.err
    unknown = run_cli("why", tmp_path / "none.sqlite3", "--change", "wishes")
    assert unknown.code == 2 and "evidence_added" in unknown.err
