"""Runs of tests through the command line: from a folder of definitions or a Python file to scores."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, hang
from tests.stubs.tests_to_run import python_dataset, small_definitions

THREE = ("--backend", "hybrid", "--backend", "rag", "--backend", "full_context")
WRITTEN = """
from dataclasses import dataclass

from app.dataset_interfaces.gpt_generated import GPTGenerated


@dataclass
class Facts(GPTGenerated):
    name: str = "Facts"
    description: str = "Facts that a model wrote."
    generation_file: str = "facts.json"
"""
STUB = ("--model", "openai/stub")


@pytest.fixture
def definitions(tmp_path: Path) -> Path:
    return small_definitions(tmp_path / "small")


def without_times_and_ids(results: dict[str, Any]) -> dict[str, Any]:
    for key in ("id", "started_at", "finished_at"):
        del results["run"][key]
    for backend in results["backends"].values():
        del backend["latency_ms"]
    for row in results["questions"]:
        del row["ms"]
    return results


def last_colour(received: Received) -> Answer:
    """Says the last colour that stands before the user's message, as a model would that reads its memory."""
    remembered, asked = received.body["messages"]
    if not asked["content"].startswith("What"):
        return answer("Noted.", completion_tokens=2)
    said = [part.split(".")[0] for part in remembered["content"].split("favourite colour is ")[1:]]
    return answer(f"It is {said[-1]}." if said else "I do not know.", completion_tokens=4)


def test_the_embedded_reader_converses_with_every_memory(
    run_cli: RunCli, tmp_path: Path, definitions: Path
) -> None:
    output = tmp_path / "results.json"
    ran = run_cli(
        "--batch", "--dataset", definitions, *THREE, "--recording", tmp_path / "r.sqlite3", "--output", output
    )
    assert ran.code == 3, ran.err
    assert "no class here for the dataset Unheard: its tests are run and not graded" in ran.err
    assert "not a language model" in ran.out and "Colours" in ran.out
    results = json.loads(output.read_text())
    assert list(results["backends"]) == ["hybrid", "rag", "full_context"]
    assert len(results["questions"]) == 12
    for row in results["questions"]:
        assert row["kind"] == "test"
        assert (row["dataset"], row["conversation"]) == ("small", "small")
        if row["type"] == "Unheard":
            assert (row["outcome"], row["score"]) == ("error", None) and "no class here" in row["error"]
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
            "--batch", "--dataset", definitions, "--dataset", "colours", "--examples", 1, *THREE, "--no-cache",
            "--concurrency", concurrency, "--recording", tmp_path / f"{concurrency}.sqlite3", "--output", output,
        )  # fmt: skip
        results = without_times_and_ids(json.loads(output.read_text()))
        del results["run"]["settings"]["concurrency"]
        found.append(results)
    assert found[0] == found[1]
    assert {row["dataset"] for row in found[0]["questions"]} == {"small", "colours"}


def test_a_killed_run_is_gone_on_with_and_no_message_is_paid_for_twice(run_cli: RunCli, tmp_path: Path) -> None:
    folder = small_definitions(tmp_path / "small", ("Colours",))
    recording, output = tmp_path / "r.sqlite3", tmp_path / "resumed.json"
    reached, held = Event(), 5

    def behaviour(received: Received) -> Answer:
        if len(server.requests) == held and not reached.is_set():
            reached.set()
            return hang()
        return last_colour(received)

    with OpenAIServer(behaviour) as server:
        common = (
            "--batch", "--dataset", str(folder), "--backend", "rag", "--backend", "hybrid", *STUB, "--no-cache",
            "--concurrency", "1", "--api-base", server.url,
        )  # fmt: skip
        command = [sys.executable, "-m", "app", *common, "--recording", str(recording)]
        process = subprocess.Popen(command, cwd=REPOSITORY, env=os.environ | {"PYTHONPATH": str(REPOSITORY)})
        assert reached.wait(60)
        process.kill()
        process.wait()
        before = paid(recording)
        assert len(before) == held - 1
        ran = run_cli(*common, "--recording", recording, "--resume", "--output", output)
        assert ran.code == 0, ran.err
        after = paid(recording)
        assert after[: len(before)] == before
        assert len(server.requests) == len(after) + 1
        undisturbed = tmp_path / "undisturbed.json"
        run_cli(*common, "--recording", tmp_path / "u.sqlite3", "--output", undisturbed)
        again = run_cli(*common, "--recording", recording, "--resume")
    first, second = (without_times_and_ids(json.loads(path.read_text())) for path in (undisturbed, output))
    assert first == second
    assert (again.code, "no unfinished run" in again.err) == (2, True)


def paid(recording: Path) -> list[tuple[int, str]]:
    with sqlite3.connect(recording) as db:
        return db.execute("select key, body from events where kind = 'agent_replied' order by key").fetchall()


def judging(received: Received) -> Answer:
    """Finds every answer right; as the agent it says where the key lies."""
    if "checklist" in received.prompt:
        entries = json.loads(received.body["messages"][1]["content"])
        found = [{"question_nr": place, "checklist": ["yes", "no", "no"]} for place, _ in enumerate(entries, 1)]
        return answer(json.dumps(found))
    return answer("In a drawer.")


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


def test_the_points_stand_in_the_markdown_and_what_writing_the_tests_cost_stands_apart(
    run_cli: RunCli, tmp_path: Path
) -> None:
    path = tmp_path / "facts.py"
    path.write_text(WRITTEN, encoding="utf-8")
    (tmp_path / "data").mkdir()
    prompts = {part: f"Write the {part}." for part in ("content", "question", "answer")}
    (tmp_path / "data" / "facts.json").write_text(json.dumps(prompts), encoding="utf-8")
    facts = {"content": ["The key lies in a drawer."], "question": ["Where is it?"], "answer": ["a drawer"]}

    def writing(received: Received) -> Answer:
        return answer(json.dumps(facts)) if "parts of a test" in received.prompt else judging(received)

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


@pytest.mark.parametrize("choice", [("--limit", 3), ("--sample", 3)])
def test_a_number_of_tests_can_be_chosen_as_questions_can(
    run_cli: RunCli, tmp_path: Path, definitions: Path, choice: tuple[object, ...]
) -> None:
    output = tmp_path / "results.json"
    run_cli(
        "--batch", "--dataset", definitions, "--dataset", "colours", "--examples", 2, "--memory-span", 100, *choice,
        "--backend", "rag", "--recording", tmp_path / "r.sqlite3", "--output", output,
    )  # fmt: skip
    rows = json.loads(output.read_text())["questions"]
    assert len(rows) == 3
    if choice[0] == "--limit":
        assert [row["question_id"] for row in rows] == ["Colours - 0", "Colours - 1", "Unheard - 0"]
    else:
        assert sorted(row["type"] for row in rows) == ["Colours", "Colours", "Unheard"]


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


def test_a_python_file_is_executed_when_it_is_named_and_never_because_a_folder_was(
    run_cli: RunCli, tmp_path: Path
) -> None:
    path = python_dataset(tmp_path)
    executed = path.with_name("keys.py.executed")
    folder = run_cli("--batch", "--dataset", tmp_path, "--recording", tmp_path / "r.sqlite3")
    assert folder.code == 2 and "holds no dataset file" in folder.err
    run_cli("datasets")
    assert not executed.exists()
    run_cli("validate", path)
    assert executed.exists()


def test_shipped_datasets_are_listed_and_none_has_the_name_of_a_conversation(run_cli: RunCli) -> None:
    listed = json.loads(run_cli("datasets", "--json").out)
    python = [entry["id"] for entry in listed if entry["format"] == "Python"]
    others = {entry["id"] for entry in listed if entry["format"] != "Python"}
    assert {"colours", "jokes", "restaurant", "spy_meeting"} <= set(python)
    assert not others & set(python)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--dataset", "colours", "--dataset", "identity-01", "--limit", "3"), "run conversations and tests apart"),
        (("--dataset", "colours", "--sample", "3", "--limit", "3"), "give one of them"),
        (("--dataset", "identity-01", "--examples", "3"), "--examples is for datasets of tests"),
        (("--dataset", "identity-01", "--isolated"), "--isolated is for datasets of tests"),
        (("--dataset", "colours", "--judge", "memreplay/extractive"), "cannot judge"),
        (("--dataset", "colours", "--judge", "nobody/knows-it"), "unknown model"),
        (("--dataset", "colours", "--memory-span", "0"), "memory_span"),
        (("--dataset", "no/such.py:Mine"), "no such file"),
        (("--dataset", "datasets/colours.py:Mine"), "no dataset class Mine"),
    ],
)
def test_bad_input_is_one_clear_sentence(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(REPOSITORY)
    ran = run_cli("--batch", "--backend", "rag", *arguments, "--recording", tmp_path / "r.sqlite3")
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err and "Traceback" not in ran.err
    assert not (tmp_path / "r.sqlite3").exists()


def test_a_broken_definition_is_told_by_file_and_place(run_cli: RunCli, tmp_path: Path, definitions: Path) -> None:
    path = definitions / "Colours" / "1.def.json"
    path.write_text('{"script": ["One."], "is_question": [true, false], "expected_responses": []}')
    for command in (("--batch", "--recording", tmp_path / "r.sqlite3", "--dataset"), ("validate",)):
        ran = run_cli(*command, definitions)
        assert ran.code == 2
        said = ran.out + ran.err
        assert str(path) in said and "1 lines and 2 entries" in said


def test_validating_definitions_makes_the_tests(run_cli: RunCli, definitions: Path) -> None:
    ran = run_cli("validate", definitions)
    assert ran.code == 0
    assert "no class here for the dataset Unheard" in ran.err


@pytest.mark.shared_data
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
