"""``memreplay datasets``: the list, the coverage, and exports in our own format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memreplay.conversations import registry
from memreplay.conversations.export import conversation_schema
from tests.cli.conftest import RunCli
from tests.unit.conversations.samples import boat_conversation, locomo_sample, written


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A datasets folder with a conversation, a LoCoMo file, and a file that is broken."""
    folder = tmp_path / "shelf"
    written(folder / "harbour-07.json", boat_conversation())
    other = locomo_sample() | {"sample_id": "garden-2"}
    written(folder / "gardens.json", [locomo_sample(), other])
    written(folder / "pier-01.json", boat_conversation() | {"turns": []})
    monkeypatch.setattr(registry, "datasets_folder", lambda: folder)
    return folder


@pytest.mark.usefixtures("shelf")
def test_every_dataset_is_a_row_and_a_broken_one_says_so(run_cli: RunCli) -> None:
    ran = run_cli("datasets")
    assert ran.code == 0
    rows = [line.split() for line in ran.out.splitlines()]
    assert ["gardens", "LoCoMo", "2", "12", "10"] in rows
    assert ["harbour-07", "TestConversation", "1", "10", "3", "en", "correction"] in rows
    broken = next(line for line in ran.out.splitlines() if "pier-01" in line)
    assert "cannot be read: /turns: has 0 entries" in broken
    assert "\x1b" not in ran.out


def test_the_list_as_json(run_cli: RunCli, shelf: Path) -> None:
    listed = {dataset["id"]: dataset for dataset in json.loads(run_cli("datasets", "--json").out)}
    assert listed["harbour-07"] == {
        "id": "harbour-07",
        "path": str(shelf / "harbour-07.json"),
        "format": "TestConversation",
        "conversations": 1,
        "turns": 10,
        "questions": 3,
        "language": "en",
        "tags": ["correction"],
        "error": None,
    }
    assert listed["pier-01"]["error"].startswith("/turns: has 0 entries")


@pytest.mark.usefixtures("shelf")
def test_coverage_shows_counts_and_what_is_empty(run_cli: RunCli) -> None:
    ran = run_cli("datasets", "--coverage")
    assert ran.code == 0
    by_salience = ran.out.split("salience \\ position")[1].splitlines()
    low = next(line for line in by_salience if line.strip().startswith("low"))
    assert low.split("low")[1].replace(" ", "").startswith("·/·1/2·/·")
    assert "  key info instruction, position early" in ran.out.splitlines()


@pytest.mark.usefixtures("shelf")
def test_coverage_as_json(run_cli: RunCli) -> None:
    coverage = json.loads(run_cli("datasets", "--coverage", "--json").out)
    table = next(t for t in coverage["tables"] if (t["rows"], t["columns"]) == ("salience", "position"))
    assert table["cells"]["low"]["middle"] == {"questions": 1, "key_turns": 2}
    assert ["low", "early"] in table["empty"]
    assert coverage["tags"] == {"correction": 1}


@pytest.mark.usefixtures("shelf")
def test_an_exported_conversation_is_the_same_again(run_cli: RunCli, tmp_path: Path) -> None:
    output = tmp_path / "boat.json"
    ran = run_cli("datasets", "export", "harbour-07", "--output", output)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert json.loads(output.read_text(encoding="utf-8")) == boat_conversation()


@pytest.mark.usefixtures("shelf")
def test_one_of_several_conversations_is_chosen_by_its_id(run_cli: RunCli, tmp_path: Path) -> None:
    output = tmp_path / "garden.json"
    unclear = run_cli("datasets", "export", "gardens", "--output", output)
    assert unclear.code == 2 and "garden-1, garden-2" in unclear.err and not output.exists()
    ran = run_cli("datasets", "export", "gardens", "--conversation", "garden-2", "--output", output)
    assert ran.code == 0 and "left out: the question types" in ran.err
    assert json.loads(output.read_text(encoding="utf-8"))["id"] == "garden-2"


@pytest.mark.usefixtures("shelf")
def test_an_output_that_cannot_be_written_is_wrong_usage(run_cli: RunCli, tmp_path: Path) -> None:
    ran = run_cli("datasets", "export", "harbour-07", "--output", tmp_path / "absent" / "boat.json")
    assert ran.code == 2 and "cannot be written" in ran.err


def test_the_schema_is_printed(run_cli: RunCli) -> None:
    assert json.loads(run_cli("datasets", "schema").out) == conversation_schema()


def test_a_log_is_converted_and_what_it_loses_is_said(run_cli: RunCli, tmp_path: Path) -> None:
    log = tmp_path / "chat.txt"
    ran = run_cli("datasets", "convert", "long-01", "--to", "text", "--output", log)
    assert ran.code == 0 and "left out of long-01: the dates of the sessions" in ran.err
    assert log.read_text(encoding="utf-8").startswith("User: ")
    for arguments, says in (
        (
            ("long-01", "--to", "cuneiform", "--output", tmp_path / "x"),
            "expected test-conversation, locomo, openai",
        ),
        ((log, "--to", "openai", "--output", log), "chat.txt"),
        ((tmp_path / "none.txt", "--to", "openai", "--output", tmp_path / "x"), "none.txt"),
    ):
        refused = run_cli("datasets", "convert", *arguments)
        assert refused.code == 2 and says in refused.err and not (tmp_path / "x").exists()
    batch = run_cli("--batch", "--dataset", log, "--recording", tmp_path / "r.sqlite3")
    assert batch.code == 2 and "nothing to ask" in batch.err


def test_a_log_without_questions_is_refused_with_what_helps(run_cli: RunCli, tmp_path: Path) -> None:
    log = tmp_path / "chat.txt"
    log.write_text("User: My boat is the Petrel.\nAssistant: Noted.\n", encoding="utf-8")
    ran = run_cli("--batch", "--dataset", log, "--recording", tmp_path / "r.sqlite3")
    assert ran.code == 2
    assert "datasets draft" in ran.err and "screen" in ran.err


def test_a_transcript_with_names_is_converted_once_the_user_is_named(run_cli: RunCli, tmp_path: Path) -> None:
    log = tmp_path / "chat.txt"
    log.write_text("Ana: My boat is the Petrel.\nBen: Noted.\n", encoding="utf-8")
    ran = run_cli("datasets", "convert", log, "--to", "text", "--output", tmp_path / "a.txt")
    assert ran.code == 2 and "--user NAME" in ran.err
    converted = tmp_path / "b.txt"
    ran = run_cli("datasets", "convert", log, "--to", "text", "--output", converted, "--user", "Ana")
    assert ran.code == 0
    assert converted.read_text(encoding="utf-8") == "User: Ana: My boat is the Petrel.\nAssistant: Ben: Noted.\n"


def test_what_is_passed_over_and_left_out_is_said(run_cli: RunCli, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    part = {"type": "unheard_of"}
    messages = [{"role": "user", "content": [{"type": "text", "text": "Hi"}, part]}]
    (folder / "a.json").write_text(json.dumps({"messages": messages}), encoding="utf-8")
    (folder / "notes.pdf").write_text("x", encoding="utf-8")
    for ran in (
        run_cli("validate", folder),
        run_cli("datasets", "convert", folder, "--to", "openai", "--output", tmp_path / "a.jsonl"),
    ):
        assert "1 file passed over: notes.pdf" in ran.err
        assert "1 part of type unheard_of is not shown" in ran.err
