"""What a spec names: conversations, a folder of definitions, or Python datasets."""

from __future__ import annotations

from pathlib import Path

import pytest

from memreplay.errors import UsageError
from memreplay.goodai.sources import DefinitionFolder, PythonDatasets, TestOptions, split_specs
from tests.stubs.tests_to_run import python_dataset, small_definitions


def test_specs_are_told_apart_by_what_they_name(tmp_path: Path) -> None:
    folder, other = small_definitions(tmp_path / "small"), tmp_path / "conversations"
    other.mkdir()
    named, sources = split_specs(["identity-01", str(other), "colours", str(folder), "mine.py:Mine", "colour*"])
    assert named == ("identity-01", str(other), "colour*")
    first, second = sources
    assert first == DefinitionFolder(folder) and first.name == "small"
    assert isinstance(second, PythonDatasets) and second.name == "colours+mine"


def test_nothing_is_executed_by_naming(tmp_path: Path) -> None:
    path = python_dataset(tmp_path)
    (source,) = split_specs([str(path)])[1]
    source.digest()
    assert not path.with_name("keys.py.executed").exists()
    source.benchmark(TestOptions(examples=1), None)
    assert path.with_name("keys.py.executed").exists()


def test_two_folders_of_one_name_are_refused(tmp_path: Path) -> None:
    folders = [small_definitions(tmp_path / parent / "small") for parent in ("a", "b")]
    with pytest.raises(UsageError, match="small, small"):
        split_specs(map(str, folders))


def test_a_source_makes_its_tests_again_and_again_the_same_and_fresh(tmp_path: Path) -> None:
    (source,) = split_specs(["colours"])[1]
    wishes = TestOptions(examples=2, memory_span=500, seed=4)
    first, second = source.benchmark(wishes, None), source.benchmark(wishes, None)
    assert [test.script for test in first.tests] == [test.script for test in second.tests]
    assert first.tests[0] is not second.tests[0]
    assert len(first.tests) == 2 and first.config.seed == 4
    assert first.tests[0].dataset_generator.memory_span == 500
    other = source.benchmark(TestOptions(examples=2, seed=5), None)
    assert [test.script for test in other.tests] != [test.script for test in first.tests]


def test_fewer_examples_and_another_span_of_definitions(tmp_path: Path) -> None:
    source = DefinitionFolder(small_definitions(tmp_path / "small"))
    made = source.benchmark(TestOptions(examples=1, memory_span=90), None)
    assert [test.unique_id for test in made.tests] == ["Colours - 0", "Unheard - 0"]
    assert {test.dataset_generator.memory_span for test in made.tests} == {90}


def test_the_digest_changes_with_the_files(tmp_path: Path) -> None:
    source = DefinitionFolder(small_definitions(tmp_path / "small"))
    before = source.digest()
    assert DefinitionFolder(source.folder).digest() == before
    path = source.folder / "Colours" / "0.def.json"
    path.write_text(path.read_text().replace("Teal", "Pink"))
    assert source.digest() != before
