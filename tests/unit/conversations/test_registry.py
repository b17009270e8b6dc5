"""Finding what a user names: ids, globs, files and folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memreplay.conversations import registry
from memreplay.conversations.registry import load, shipped_datasets
from memreplay.errors import EXIT_USAGE, DatasetError, MemreplayError, UsageError
from memreplay.paths import datasets_folder
from tests.unit.conversations.samples import boat_conversation, locomo_sample, mc10_row, written, written_lines


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A datasets folder with two harbour conversations, a garden one, and a file that is broken."""
    folder = tmp_path / "shelf"
    for name in ("harbour-07", "harbour-08"):
        written(folder / "harbour" / f"{name}.json", boat_conversation() | {"id": name})
    written(folder / "published" / "gardens.json", [locomo_sample()])
    monkeypatch.setattr(registry, "datasets_folder", lambda: folder)
    return folder


def ids(*specs: str) -> list[str]:
    return [conversation.id for conversation in load(specs)]


def test_a_dataset_is_found_by_its_id_a_glob_and_its_path(shelf: Path) -> None:
    assert ids("harbour-07") == ["harbour-07"]
    assert ids("harbour-*") == ["harbour-07", "harbour-08"]
    assert ids(str(shelf / "harbour" / "harbour-08.json")) == ["harbour-08"]
    assert ids(str(shelf)) == ["harbour-07", "harbour-08", "garden-1"]


def test_conversations_come_in_the_order_of_the_specs_and_once(shelf: Path) -> None:
    assert ids("harbour-08", "harbour-*", "gardens") == ["harbour-08", "harbour-07", "garden-1"]


def test_without_a_spec_everything_shipped_but_long_histories_is_loaded(shelf: Path) -> None:
    written(shelf / "long" / "long-01.json", boat_conversation() | {"id": "long-01"})
    assert ids() == ["garden-1", "harbour-07", "harbour-08"]
    assert ids("long-*") == ["long-01"]
    assert ids("*") == ["garden-1", "harbour-07", "harbour-08", "long-01"]


def test_a_conversation_bears_the_id_of_its_dataset(shelf: Path) -> None:
    assert [conversation.dataset for conversation in load(["gardens"])] == ["gardens"]


def test_entries_say_what_a_dataset_is(shelf: Path) -> None:
    written(shelf / "empty.json", [])
    entries = {entry.id: entry for entry in shipped_datasets()}
    assert list(entries) == ["empty", "gardens", "harbour-07", "harbour-08"]
    assert entries["harbour-07"].format == "TestConversation"
    assert entries["harbour-07"].description == "10 turns · 3 questions · en"
    assert entries["gardens"].format == "LoCoMo"
    assert entries["gardens"].description.startswith("LoCoMo, ")
    assert (entries["empty"].format, entries["empty"].description) == (None, "cannot be read: is empty")


def test_a_folder_may_mix_formats_whatever_the_files_are_called(tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    written(folder / "a.jsonl", boat_conversation())
    written(folder / "b.json", [locomo_sample()])
    (folder / "README.md").write_text("not a dataset")
    written(folder / ".hidden" / "c.json", {"not": "a dataset"})
    row = mc10_row(question_id="orchard_q0")
    written_lines(folder / "c.json", [row])
    assert ids(str(folder)) == ["harbour-07", "garden-1", "orchard"]


def test_one_conversation_in_two_equal_files_is_loaded_once(tmp_path: Path) -> None:
    paths = [written(tmp_path / name, boat_conversation()) for name in ("a.json", "b.json")]
    assert ids(*map(str, paths)) == ["harbour-07"]


def test_one_id_for_two_different_conversations_is_refused(tmp_path: Path) -> None:
    first = written(tmp_path / "a.json", boat_conversation())
    second = written(tmp_path / "b.json", boat_conversation() | {"tags": []})
    with pytest.raises(DatasetError) as caught:
        ids(str(first), str(second))
    assert caught.value.path == str(second)
    assert str(first) in caught.value.problem and "harbour-07" in caught.value.problem


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("harbour-7", 'did you mean "harbour-07"?'),
        ("zzz", "gardens, harbour-07, harbour-08"),
        ("pier-*", 'no shipped dataset has an id that matches "pier-*"'),
        ("some/where.json", "no file or folder some/where.json"),
        ("where.jsonl", "no file or folder where.jsonl"),
        ("mine.py:Mine", "Python dataset"),
        ("", "is neither the id"),
        ("x" * 5000, "cannot be looked up"),
    ],
)
def test_a_spec_that_names_nothing_is_refused_before_anything_is_read(shelf: Path, spec: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        load([spec])
    assert said.lower() in str(caught.value).lower()
    assert caught.value.exit_code == EXIT_USAGE


def test_a_folder_without_datasets_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("nothing here")
    with pytest.raises(UsageError, match="holds no dataset file"):
        load([str(tmp_path)])


@pytest.mark.parametrize("content", [None, '{"turns": []}'])
def test_evidence_that_is_no_locomo10_file_is_refused(tmp_path: Path, content: str | None) -> None:
    gold = tmp_path / "gold.json"
    if content is not None:
        gold.write_text(content)
    rows = written_lines(tmp_path / "rows.jsonl", [mc10_row()])
    with pytest.raises(MemreplayError, match=r"gold\.json") as caught:
        load([str(rows)], gold)
    assert caught.value.exit_code == EXIT_USAGE


def test_the_shipped_conversations_load_without_a_warning_and_know_their_evidence() -> None:
    warnings: list[str] = []
    conversations = {conversation.id: conversation for conversation in load(["*"], on_warning=warnings.append)}
    assert warnings == []
    assert set(conversations) == {entry.id for entry in shipped_datasets()}
    assert {"identity-01", "multi-01", "technical-01"} <= set(conversations)
    assert all(question.evidence for c in conversations.values() for question in c.questions)
    assert all(entry.path.is_relative_to(datasets_folder()) for entry in shipped_datasets())


def test_published_files_over_the_same_conversations_are_told_apart_by_their_datasets(tmp_path: Path) -> None:
    written(tmp_path / "locomo10.json", [locomo_sample()])
    written_lines(tmp_path / "rows.jsonl", [mc10_row(0), mc10_row(1)])
    recall, choice = load([str(tmp_path)])
    assert (recall.id, recall.dataset) == ("garden-1", "locomo10")
    assert (choice.id, choice.dataset) == ("rows.garden-1", "rows")
    assert [question.kind for question in (*recall.questions, *choice.questions)] == ["recall"] * 5 + ["choice"] * 2
    assert choice.questions[0].evidence == recall.questions[0].evidence == ("D1:1",)


def test_reading_can_be_watched(tmp_path: Path) -> None:
    read: dict[str, int] = {}

    def opened(path: Path) -> Callable[[int], None]:
        def on_bytes(count: int) -> None:
            read[path.name] = read.get(path.name, 0) + count

        return on_bytes

    lines = written_lines(tmp_path / "a.jsonl", [mc10_row(0)])
    array = written(tmp_path / "b.json", [mc10_row(0, question_id="orchard_q0")])
    assert len(list(load([str(lines), str(array)], on_opened=opened))) == 2
    assert read == {"a.jsonl": lines.stat().st_size, "b.json": array.stat().st_size}


def test_what_python_datasets_read_is_no_conversation(shelf: Path) -> None:
    written(shelf / "data" / "menu.json", {"starters": []})
    assert ids() == ["garden-1", "harbour-07", "harbour-08"]
