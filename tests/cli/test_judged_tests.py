"""Runs of tests that a model judges: their scores, and what judging and writing them cost."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import RunCli
from tests.stubs.conversing import STUB, judging
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer
from tests.stubs.tests_to_run import python_dataset

WRITTEN = """
from dataclasses import dataclass

from memreplay.goodai.gpt_generated import GPTGenerated


@dataclass
class Facts(GPTGenerated):
    name: str = "Facts"
    description: str = "Facts that a model wrote."
    generation_file: str = "facts.json"
"""

FACTS = {"content": ["The key lies in a drawer."], "question": ["Where is it?"], "answer": ["a drawer"]}


def written_by_a_model(folder: Path) -> Path:
    """Write a dataset whose tests the judge writes, with its prompts."""
    path = folder / "facts.py"
    path.write_text(WRITTEN, encoding="utf-8")
    (folder / "data").mkdir()
    prompts = {part: f"Write the {part}." for part in FACTS}
    (folder / "data" / "facts.json").write_text(json.dumps(prompts), encoding="utf-8")
    return path


def test_a_judge_grades_what_cannot_be_compared_and_is_accounted_apart(run_cli: RunCli, tmp_path: Path) -> None:
    path, output = python_dataset(tmp_path), tmp_path / "results.json"
    recording = tmp_path / "r.sqlite3"
    with OpenAIServer(judging) as server:
        ran = run_cli(
            "--batch", "--dataset", f"{path}:Keys", "--examples", 2, "--memory-span", 200, "--backend", "rag",
            *STUB, "--judge", "openai/gpt-4o-mini", "--api-base", server.url,
            "--recording", recording, "--output", output,
        )  # fmt: skip
    assert ran.code == 0, ran.err
    results = json.loads(output.read_text())
    assert [row["score"] for row in results["questions"]] == [1, 1]
    judged = [request for request in server.requests if request.body["model"] == "gpt-4o-mini"]
    assert len(judged) == 2
    tests = results["backends"]["rag"]["tests"]
    assert tests["benchmark_cost_usd"] > 0
    assert results["backends"]["rag"]["cost_usd"] is None
    assert results["backends"]["rag"]["tokens"]["prompt"] == 100 * 4
    settings = results["run"]["settings"]
    assert (settings["judge"], settings["examples"], settings["memory_span"]) == ("openai/gpt-4o-mini", 2, 200)
    assert "cost of the benchmark" in ran.out


def test_markdown_has_the_points_and_separately_the_cost_of_writing_the_tests(
    run_cli: RunCli, tmp_path: Path
) -> None:
    path = written_by_a_model(tmp_path)

    def writing(received: Received) -> Answer:
        return answer(json.dumps(FACTS)) if "parts of a test" in received.prompt else judging(received)

    with OpenAIServer(writing) as server:
        ran = run_cli(
            "--batch", "--dataset", path, "--examples", 1, "--memory-span", 200, "--backend", "rag", "--backend",
            "full_context", *STUB, "--judge", "openai/gpt-4o-mini", "--api-base", server.url,
            "--recording", tmp_path / "r.sqlite3", "--output", tmp_path / "r.json", "--output", tmp_path / "r.md",
        )  # fmt: skip
    assert ran.code == 0, ran.err
    written = (tmp_path / "r.md").read_text()
    assert "## memreplay: 1 test of facts" in written
    assert "| Facts | 1/1 | 1/1 |" in written and "| **cost of the benchmark** | $0.0000" in written
    results = json.loads((tmp_path / "r.json").read_text())
    assert results["tests_written_usd"] > 0 and "writing the tests cost" in written
    costs = [backend["tests"]["benchmark_cost_usd"] for backend in results["backends"].values()]
    assert costs[0] == costs[1] > 0
    assert [backend["cost_usd"] for backend in results["backends"].values()] == [None, None]


def test_without_a_judge_such_a_test_is_not_graded(run_cli: RunCli, tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    ran = run_cli(
        "--batch", "--dataset", python_dataset(tmp_path), "--examples", 1, "--memory-span", 100,
        "--backend", "rag", "--recording", tmp_path / "r.sqlite3", "--output", output,
    )  # fmt: skip
    assert ran.code == 3
    (row,) = json.loads(output.read_text())["questions"]
    assert (row["outcome"], row["score"]) == ("error", None)
    assert "ungraded: 1" in ran.out


def test_what_could_not_be_used_to_write_tests_does_not_stand_in_the_way_of_asking_again(
    run_cli: RunCli, tmp_path: Path
) -> None:
    path = written_by_a_model(tmp_path)
    says = {"text": "Here are some facts for you."}

    def writing(received: Received) -> Answer:
        return answer(says["text"]) if "parts of a test" in received.prompt else judging(received)

    with OpenAIServer(writing) as server:
        command = (
            "--batch", "--dataset", path, "--examples", 1, "--memory-span", 200, "--backend", "rag", *STUB,
            "--judge", "openai/gpt-4o-mini", "--api-base", server.url, "--recording", tmp_path / "r.sqlite3",
        )  # fmt: skip
        ran = run_cli(*command)
        assert ran.code == 2 and "10 replies were not the JSON that was asked for" in ran.err
        assert len(server.requests) == 10
        says["text"] = json.dumps(FACTS)
        ran = run_cli(*command)
        assert ran.code == 0, ran.err
