"""Runs of tests through the command line: agents with each memory converse, and are scored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY
from tests.stubs.conversing import STUB, last_colour, without_times_and_ids
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer
from tests.stubs.tests_to_run import small_definitions

THREE = ("--backend", "hybrid", "--backend", "rag", "--backend", "full_context")


def test_the_embedded_reader_converses_with_every_memory(
    run_cli: RunCli, tmp_path: Path, definitions: Path
) -> None:
    output = tmp_path / "results.json"
    ran = run_cli(
        "--batch", "--dataset", definitions, *THREE, "--recording", tmp_path / "r.sqlite3", "--output", output
    )
    assert ran.code == 3, ran.err
    assert "The class of the dataset Unheard is not available: its tests are run but not graded" in ran.err
    assert "not a language model" in ran.out and "Colours" in ran.out
    results = json.loads(output.read_text())
    assert list(results["backends"]) == ["hybrid", "rag", "full_context"]
    assert len(results["questions"]) == 12
    for row in results["questions"]:
        assert row["kind"] == "test"
        assert (row["dataset"], row["conversation"]) == ("small", "small")
        if row["type"] == "Unheard":
            assert (row["outcome"], row["score"]) == ("error", None) and "Unheard is not available" in row["error"]
        else:
            assert row["outcome"] in ("correct", "wrong") and row["max_score"] == 1
            assert row["reasoning"] and row["distance_tokens"] > 100
    tests = results["backends"]["rag"]["tests"]
    assert (tests["total"], tests["graded"], tests["errors"]) == (4, 2, 2)
    assert tests["by_dataset"]["Unheard"]["graded"] == 0
    assert tests["max_score"] == 2
    assert results["backends"]["rag"]["cost_usd"] == 0


def test_a_model_behind_a_network_gets_memory_time_and_message_and_its_tokens_are_counted(
    run_cli: RunCli, tmp_path: Path
) -> None:
    folder, output = small_definitions(tmp_path / "small", ("Colours",)), tmp_path / "results.json"
    with OpenAIServer(last_colour) as server:
        ran = run_cli(
            "--batch", "--dataset", folder, "--backend", "full_context", "--backend", "closed_book", *STUB,
            "--api-base", server.url, "--recording", tmp_path / "r.sqlite3", "--output", output,
        )  # fmt: skip
    assert ran.code == 0, ran.err
    results = json.loads(output.read_text())
    memory, control = (results["backends"][name] for name in ("full_context", "closed_book"))
    assert memory["tests"]["score"] == 2 and memory["accuracy"] == 1
    assert control["tests"]["score"] == 0
    assert memory["tests"]["ltm_score"] > 100 and control["tests"]["ltm_score"] is None
    asked = [request for request in server.requests if request.body["messages"][1]["content"].startswith("What")]
    assert "It is now Monday, 1 January 2024" in asked[0].body["messages"][0]["content"]
    assert asked[0].body["temperature"] == 0
    assert memory["tokens"]["prompt"] == 100 * 6
    assert memory["cost_usd"] is None


def test_isolated_each_test_has_a_memory_of_its_own(run_cli: RunCli, tmp_path: Path) -> None:
    folder = small_definitions(tmp_path / "small", ("Colours",))
    recording, output = tmp_path / "r.sqlite3", tmp_path / "results.json"
    with OpenAIServer(last_colour) as server:
        ran = run_cli(
            "--batch", "--dataset", folder, "--isolated", "--backend", "full_context", *STUB,
            "--api-base", server.url, "--recording", recording, "--output", output,
        )  # fmt: skip
    assert ran.code == 0, ran.err
    rows = json.loads(output.read_text())["questions"]
    assert [row["conversation"] for row in rows] == ["small/Colours - 0", "small/Colours - 1"]
    assert [row["score"] for row in rows] == [1, 1]
    second = [request.prompt for request in server.requests if "Ivory" in request.prompt]
    assert second and not any("Teal" in prompt for prompt in second)
    shown = run_cli("recordings", "show", recording)
    assert "tests small/Colours - 1@full_context" in shown.out and "isolated: True" in shown.out


def test_equal_settings_give_equal_results(run_cli: RunCli, tmp_path: Path, definitions: Path) -> None:
    found = []
    for concurrency in (1, 3):
        output = tmp_path / f"{concurrency}.json"
        run_cli(
            "--batch", "--dataset", definitions, "--dataset", "colours", "--examples", 1, "--memory-span", 300,
            *THREE, "--no-cache", "--concurrency", concurrency,
            "--recording", tmp_path / f"{concurrency}.sqlite3", "--output", output,
        )  # fmt: skip
        results = without_times_and_ids(json.loads(output.read_text()))
        del results["run"]["settings"]["concurrency"]
        found.append(results)
    assert found[0] == found[1]
    assert {row["dataset"] for row in found[0]["questions"]} == {"small", "colours"}


def test_repeats_are_runs_of_their_own_with_replies_of_their_own(run_cli: RunCli, tmp_path: Path) -> None:
    folder, output = small_definitions(tmp_path / "small", ("Colours",)), tmp_path / "results.json"
    common = ("--batch", "--dataset", folder, "--backend", "full_context", *STUB, "--repeats", 2)
    with OpenAIServer(last_colour) as server:
        ran = run_cli(
            *common, "--api-base", server.url, "--recording", tmp_path / "r.sqlite3", "--output", output,
        )  # fmt: skip
        assert ran.code == 0, ran.err
        assert len(server.requests) == 2 * 6
        again = run_cli(*common, "--api-base", server.url, "--isolated", "--recording", tmp_path / "i.sqlite3")
        assert again.code == 0, again.err
    results = json.loads(output.read_text())
    assert [(row["question_id"], row["conversation"], row["repeat"]) for row in results["questions"]] == [
        ("Colours - 0", "small", 0),
        ("Colours - 1", "small", 0),
        ("Colours - 0", "small", 1),
        ("Colours - 1", "small", 1),
    ]
    assert results["backends"]["full_context"]["headline"]["repeats_agree"] == 1


def test_conversations_and_tests_can_share_a_run(run_cli: RunCli, tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    ran = run_cli(
        "--batch", "--dataset", "identity-01", "--dataset", "colours", "--examples", 1, "--memory-span", 200,
        "--backend", "rag", "--recording", tmp_path / "r.sqlite3", "--output", output,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    rows = json.loads(output.read_text())["questions"]
    assert [row["kind"] for row in rows] == ["recall"] * 5 + ["test"]


@pytest.mark.shared_data
@pytest.mark.usefixtures("embedded_by_words")
def test_the_published_definitions_run_to_their_end(run_cli: RunCli, shared_data: Path, tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    ran = run_cli(
        "--batch", "--dataset", shared_data / "goodai" / "benchmark3_1k_definitions", "--backend", "rag",
        "--isolated", "--recording", tmp_path / "r.sqlite3", "--output", output,
    )  # fmt: skip
    assert ran.code == 3, ran.err
    tests = json.loads(output.read_text())["backends"]["rag"]["tests"]
    ungraded = {name: group["errors"] for name, group in tests["by_dataset"].items() if group["errors"]}
    assert tests["total"] == 30
    # Whether a test of directions needs a judge depends on what the agent says.
    assert ungraded.pop("Locations Directions", 0) <= 3
    assert ungraded == {"Jokes": 3, "Restaurant": 3}
    assert tests["by_dataset"]["Colours"]["score"] == 3


def test_datasets_written_from_the_guide_alone_run_side_by_side(run_cli: RunCli, tmp_path: Path) -> None:
    path, output = REPOSITORY / "tests" / "stubs" / "from_the_guide.py", tmp_path / "results.json"
    datasets = [f"--dataset={path}:{name}" for name in ("Inventory", "Farewell", "Animals")]

    def talk(received: Received) -> Answer:
        asked = received.body["messages"][-1]["content"]
        if received.body["model"] == "gpt-4o-mini":
            return answer("Yes.")
        known = {"lamp": "attic", "piano": "hall", "ladder": "cellar", "nimal": "An otter."}
        told = next((said for word, said in known.items() if word in asked), "Very well.")
        return answer(f"{told} And goodbye.")

    with OpenAIServer(talk) as server:
        ran = run_cli(
            "--batch", *datasets, "--examples", 1, "--memory-span", 300, "--backend", "rag", *STUB,
            "--judge", "openai/gpt-4o-mini", "--api-base", server.url,
            "--recording", tmp_path / "r.sqlite3", "--output", output,
        )  # fmt: skip
    assert ran.code == 0, ran.err
    rows = {row["type"]: row for row in json.loads(output.read_text())["questions"]}
    assert {row["dataset"] for row in rows.values()} == {"from_the_guide"}
    assert {name: (row["score"], row["reasoning"]) for name, row in rows.items() if name != "Farewell"} == {
        "Inventory": (1, ["named", "named"]),
        "Animals": (1, ["It is an animal.", "It was the same."]),
    }
    assert rows["Farewell"]["score"] == 1 and "goodbye" in rows["Farewell"]["reasoning"][0]
    assert rows["Animals"]["benchmark_cost_usd"] > 0 and rows["Inventory"]["benchmark_cost_usd"] is None
