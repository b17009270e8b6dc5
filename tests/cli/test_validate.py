"""``memreplay validate``: every error with its place, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from memreplay.conversations.registry import named_files
from memreplay.conversations.rules.design_rules import TAGS
from memreplay.paths import datasets_folder
from tests.cli.broken_files import BROKEN
from tests.cli.conftest import RunCli
from tests.conftest import REPOSITORY
from tests.unit.conversations.samples import locomo_sample, mc10_row, written, written_lines

CORPUS = REPOSITORY / "tests" / "broken"
SOUND = CORPUS / "_sound"


def test_the_shipped_datasets_have_no_error(run_cli: RunCli) -> None:
    ran = run_cli("validate")
    assert (ran.code, ran.err) == (0, ""), ran.out
    assert ran.out.startswith(f"{len(named_files(['*']))} files checked, ") and ran.out.endswith(": no errors\n")


def test_the_guide_names_every_tag_that_is_known() -> None:
    guide = (datasets_folder() / "README.md").read_text(encoding="utf-8")
    assert [tag for tag in TAGS if f"`{tag}`" not in guide] == []


def test_the_corpus_is_valid_except_for_its_planted_errors(run_cli: RunCli) -> None:
    ran = run_cli("validate", "--design", SOUND)
    assert (ran.code, ran.out) == (0, "1 file checked, 1 conversation, 5 questions: no errors\n")


def test_every_folder_of_the_corpus_is_accounted_for() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} - {SOUND.name} == set(BROKEN)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_reported_at_the_right_place_and_nowhere_else(name: str, run_cli: RunCli) -> None:
    folder = CORPUS / name
    ran = run_cli("validate", "--design", folder)
    assert ran.code == 2
    lines = ran.out.splitlines()
    assert len(lines) == len(BROKEN[name]), ran.out
    for line, (file, pointer, problem) in zip(lines, BROKEN[name], strict=True):
        shown = (folder / file).relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder / file
        assert line.startswith(f"{shown}: {pointer}: {problem}"), line
        assert "; expected " in line


def test_all_errors_of_a_file_are_reported_and_not_only_the_first(run_cli: RunCli, tmp_path: Path) -> None:
    conversation = {
        "id": "tide-02",
        "language": "xx",
        "title": "The tower",
        "turns": [
            {"role": "assistant", "content": "Good evening."},
            {"role": "user", "content": 7},
            {"role": "assistant", "content": "I am Ida.", "metadata": {"containsKeyInfo": True}},
        ],
        "recallQuestions": [],
    }
    ran = run_cli("validate", "--design", written(tmp_path / "tide-01.json", conversation))
    pointers = {line.split(": ")[1] for line in ran.out.splitlines()}
    assert pointers == {
        "/id",
        "/language",
        "/title",
        "/turns",
        "/turns/0/role",
        "/turns/1/content",
        "/turns/2/metadata/keyInfoType",
        "/turns/2/metadata/salienceLevel",
    }


def test_reading_continues_after_an_invalid_row_and_a_broken_line(run_cli: RunCli, tmp_path: Path) -> None:
    path = written_lines(tmp_path / "rows.jsonl", [mc10_row(0, choices=[]), mc10_row(1, question_type="cloze")])
    path.write_text(path.read_text(encoding="utf-8").replace("\n", "\n{broken\n", 1), encoding="utf-8")
    ran = run_cli("validate", path)
    places = [line.split(": ")[1] for line in ran.out.splitlines()]
    assert places == ["line 1/choices", "line 1/correct_choice_index", "line 2", "line 3/question_type"]
    assert ran.err == "4 errors in 1 file\n"


def test_errors_of_a_haystack_are_reported_once_and_not_with_every_row(run_cli: RunCli, tmp_path: Path) -> None:
    rows = [mc10_row(number, haystack_session_ids=["a", "b", "c"]) for number in range(3)]
    ran = run_cli("validate", written_lines(tmp_path / "rows.jsonl", rows))
    assert [line.split(": ")[1] for line in ran.out.splitlines()] == [
        f"line 1/haystack_session_ids/{index}" for index in range(3)
    ]


def test_all_errors_of_a_locomo_file_are_reported(run_cli: RunCli, tmp_path: Path) -> None:
    sample = locomo_sample()
    sample["conversation"]["session_1"][1]["speaker"] = "Ada"
    sample["conversation"]["session_10_date_time"] = "soon"
    del sample["qa"][0]["answer"]
    ran = run_cli("validate", written(tmp_path / "gardens.json", [sample, {"qa": []}]))
    assert [line.split(": ")[1] for line in ran.out.splitlines()] == [
        "/0/conversation/session_1/1/speaker",
        "/0/conversation/session_10_date_time",
        "/0/qa/0/answer",
        "/1/conversation",
    ]
    assert "warning" not in ran.err


def test_repaired_evidence_is_a_warning_and_no_error(run_cli: RunCli, tmp_path: Path) -> None:
    path = written(tmp_path / "locomo10.json", [locomo_sample()])
    written_lines(tmp_path / "rows.jsonl", [mc10_row(0)])
    ran = run_cli("validate", tmp_path)
    assert ran.code == 0
    assert ran.out == "2 files checked, 2 conversations, 6 questions: no errors\n"
    assert ran.err.splitlines() == [
        f'warning: {path}: /0/qa/2/evidence/0: "D1:2; D2:1" is read as D1:2, D2:1',
        f'warning: {path}: /0/qa/2/evidence/1: "D:10:01" is read as D10:1',
    ]


def test_what_a_file_holds_cannot_steer_the_terminal(run_cli: RunCli, tmp_path: Path) -> None:
    hostile = {"id": "\x1b[2Jgone\u202e", "turns": [], "\x1b]0;title\x07\n": 1, "recallQuestions": []}
    ran = run_cli("validate", "--design", written(tmp_path / "tide-01.json", hostile))
    assert ran.code == 2
    assert all(char.isprintable() or char == "\n" for char in ran.out + ran.err)
    assert "\\u001b[2Jgone" in ran.out


def test_a_shipped_id_and_a_glob_can_be_named(run_cli: RunCli) -> None:
    assert run_cli("validate", "identity-01").out.startswith("1 file checked")
    assert run_cli("validate", "identity-*").out.startswith("10 files checked")


def test_the_design_rules_apply_to_files_of_others_only_if_asked(run_cli: RunCli, tmp_path: Path) -> None:
    mine = {
        "id": "mine",
        "turns": [{"role": "assistant", "content": "Hello."}],
        "recallQuestions": [],
    }
    path = written(tmp_path / "other-name.json", mine)
    assert run_cli("validate", "--design", path).code == 2
    assert run_cli("validate", path).code == run_cli("validate", "--format-only", path).code == 0
    assert run_cli("validate", "--design", "--format-only", path).code == 2
    written(path, mine | {"title": "x"})
    ran = run_cli("validate", "--format-only", path)
    assert ran.code == 2 and ran.out.splitlines() == [
        f"{path}: /title: is not a field of this format; expected no unknown fields"
    ]


def test_tests_of_a_python_dataset_are_made_and_counted(run_cli: RunCli) -> None:
    python = REPOSITORY / "datasets" / "colours.py"
    assert run_cli("validate", python).out == "1 file checked, 3 tests: no errors\n"
    both = run_cli("validate", python, "identity-01").out
    assert both == "2 files checked, 1 conversation, 5 questions, 3 tests: no errors\n"


def test_what_is_not_there_is_wrong_usage(run_cli: RunCli, tmp_path: Path) -> None:
    ran = run_cli("validate", tmp_path / "absent.json")
    assert (ran.code, ran.out) == (2, "")
    assert "absent.json" in ran.err


@pytest.mark.shared_data
def test_the_published_development_files_are_sound(run_cli: RunCli, shared_data: Path) -> None:
    ran = run_cli(
        "validate", shared_data / "locomo" / "locomo10_dev.json", shared_data / "locomo" / "mc10_dev.jsonl"
    )
    assert ran.code == 0
    assert ran.out == "2 files checked, 10 conversations, 905 questions: no errors\n"
    assert len(ran.err.splitlines()) == 2 and "D8:6, D9:17" in ran.err and "D4:36" in ran.err
