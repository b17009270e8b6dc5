"""Definitions and configurations on disk."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from memreplay.errors import DatasetError, UsageError
from memreplay.goodai.dataset import RunConfig
from memreplay.goodai.interface import CallBackTestExample, WaitCreator
from memreplay.goodai.sources import (
    Benchmark,
    is_definition_folder,
    load_definitions,
    read_config,
    save_definitions,
)
from tests.unit.goodai.driving import Lines, run

CONFIG = """
config: {run_name: Small, debug: true, incompatibilities: [[colours, jokes]]}
datasets:
  args: {memory_span: 700, dataset_examples: 2}
  datasets:
  - {name: colours, args: {colour_changes: 5, volume: 11}}
  - {name: elsewhere}
"""
DEFINITION = {
    "script": ["My favourite colour is Red.", "Which is it?"],
    "is_question": [False, True],
    "waits": [{"percentage_finished": 90.0, "time": 90061}, {}],
    "expected_responses": ["Red"],
    "can_be_interleaved": True,
    "is_temporal": False,
    "uses_callback": False,
}


def folder_with(tmp_path, config=CONFIG, **definitions):
    (tmp_path / "config.yml").write_text(config)
    for name, definition in definitions.items():
        (tmp_path / name).mkdir()
        text = definition if isinstance(definition, str) else json.dumps(definition)
        (tmp_path / name / "4.def.json").write_text(text)
    return tmp_path


def test_a_folder_gives_tests_with_the_arguments_of_its_configuration(tmp_path):
    folder = folder_with(tmp_path, Colours=DEFINITION)

    benchmark = load_definitions(folder)

    (test,) = benchmark.tests
    dataset = test.dataset_generator
    assert (test.unique_id, dataset.memory_span, dataset.colour_changes) == ("Colours - 4", 700, 5)
    assert benchmark.config == RunConfig("Small", True, (frozenset({"colours", "jokes"}),))
    assert benchmark.notes == ("The dataset Colours has no argument volume: ignored",)
    assert test.waits[0]["time"] == timedelta(days=1, hours=1, minutes=1, seconds=1)


def test_a_dataset_without_a_class_is_run_and_not_graded(tmp_path):
    folder = folder_with(tmp_path, Elsewhere={**DEFINITION, "uses_callback": True})

    benchmark = load_definitions(folder)
    end = run(benchmark.tests).ended["Elsewhere - 4"]

    assert "not available" in benchmark.notes[0]
    assert (end.score, end.responses) == (None, ("Noted.",))
    assert "not available" in end.ungraded


def test_a_test_without_script_and_class_is_left_out_with_a_note(tmp_path):
    empty = {**DEFINITION, "script": [], "is_question": [], "waits": []}
    benchmark = load_definitions(folder_with(tmp_path, Elsewhere=empty, Colours=DEFINITION))

    assert [test.unique_id for test in benchmark.tests] == ["Colours - 4"]
    assert any("has no script" in note for note in benchmark.notes)


def test_a_definition_with_a_callback_becomes_a_test_with_a_callback(tmp_path):
    definition = {**DEFINITION, "uses_callback": True, "expected_responses": [["Saying", "Author", 3]]}
    benchmark = load_definitions(folder_with(tmp_path, **{"Prospective Memory": definition}))

    assert isinstance(benchmark.tests[0], CallBackTestExample)


def test_without_a_configuration_the_folders_name_is_the_runs(tmp_path):
    folder_with(tmp_path, Colours=DEFINITION)
    (tmp_path / "config.yml").unlink()

    assert load_definitions(tmp_path).config.run_name == tmp_path.name
    assert is_definition_folder(tmp_path)


@pytest.mark.parametrize(
    ("definition", "pointer", "said"),
    [
        ("{", "/", "not valid JSON"),
        ("[]", "/", "object"),
        ({**DEFINITION, "script": "x"}, "/script", "a list"),
        ({key: value for key, value in DEFINITION.items() if key != "is_question"}, "/is_question", "missing"),
        ({**DEFINITION, "is_question": [True]}, "/", "2 lines and 1 entries"),
        ({**DEFINITION, "waits": [{"tokens": -1}, {}]}, "/waits/0/tokens", "not negative"),
        ({**DEFINITION, "waits": [{"lines": 1}, {}]}, "/waits/0/lines", "not a field"),
    ],
)
def test_a_broken_definition_is_refused_with_its_place(tmp_path, definition, pointer, said):
    folder = folder_with(tmp_path, Colours=definition)

    with pytest.raises(DatasetError, match=said) as refused:
        load_definitions(folder)

    assert refused.value.path.endswith("4.def.json")
    assert (refused.value.pointer or "/") == pointer


@pytest.mark.parametrize(
    "config", ["a: [", "config: 3", "!!python/object/apply:os.getcwd []", "datasets: {datasets: [{}]}"]
)
def test_a_broken_configuration_is_refused(tmp_path, config):
    (tmp_path / "config.yml").write_text(config)

    with pytest.raises(DatasetError, match=r"config\.yml"):
        read_config(tmp_path / "config.yml")


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(DatasetError, match="no test definitions"):
        load_definitions(tmp_path)


def test_definitions_are_written_with_their_configuration(tmp_path):
    config = RunConfig("Mine", False, (frozenset({"b", "a"}),))
    lines = Lines(memory_span=321)
    save_definitions(tmp_path, Benchmark(config, tuple(lines.generate_examples(2))))

    assert sorted(path.name for path in (tmp_path / "Lines").iterdir()) == ["0.def.json", "1.def.json"]
    read, (settings,) = read_config(tmp_path / "config.yml")
    assert (read, settings.name, settings.args) == (config, "Lines", {"memory_span": 321})
    with pytest.raises(UsageError, match="already"):
        save_definitions(tmp_path, Benchmark(config, ()))


@pytest.mark.parametrize("name", ["../outside", "a/b"])
def test_a_datasets_name_is_never_a_path(tmp_path, name):
    with pytest.raises(UsageError):
        save_definitions(tmp_path / "here", Benchmark(RunConfig(), tuple(Lines(name=name).generate_examples(1))))
    assert not list(tmp_path.rglob("*.json"))


def test_a_wait_of_days_survives_being_written():
    wait = WaitCreator.create_wait(time=timedelta(days=2, seconds=1), percentage_finished=10.0)

    written = json.loads(json.dumps(WaitCreator.serialise(wait)))

    assert written == {"time": 172801, "percentage_finished": 10.0}
    assert WaitCreator.unserialise(written) == wait
