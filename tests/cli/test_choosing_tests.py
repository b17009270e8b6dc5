"""Which tests are run: by number, by name, from a file; and what is refused before anything is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY
from tests.stubs.tests_to_run import python_dataset


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
        (
            ("--dataset", "colours", "--dataset", "identity-01", "--limit", "3"),
            "run conversations and tests separately",
        ),
        (("--dataset", "colours", "--sample", "3", "--limit", "3"), "use one of them"),
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


def test_a_broken_definition_is_reported_with_its_place(run_cli: RunCli, tmp_path: Path, definitions: Path) -> None:
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
    assert "the dataset Unheard is not available" in ran.err
