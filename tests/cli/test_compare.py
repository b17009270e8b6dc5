"""``memreplay compare``, the answer-key overlay, and results in other forms, from the command line."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import RunCli
from tests.stubs.in_process import made_in

LITTLE = ("--dataset", "identity-01", "--backend", "rag", "--backend", "full_context")


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a run of a small budget and one of a large: a recording and results each."""
    folder = tmp_path_factory.mktemp("runs")
    for name, tokens in (("small", 40), ("large", 4000)):
        made_in(folder, "--batch", *LITTLE, "--context-tokens", tokens, "--recording", f"{name}.sqlite3")
    return folder


@pytest.fixture
def runs(two_runs: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The two recordings, with their results beside them, for one test alone."""
    for path in two_runs.glob("*.*"):
        shutil.copy(path, tmp_path)
    return tmp_path / "small.sqlite3", tmp_path / "large.sqlite3"


def test_two_runs_are_compared_in_words_and_question_by_question(run_cli: RunCli, runs: tuple[Path, Path]) -> None:
    small, large = runs
    ran = run_cli("compare", small, large)
    assert ran.code == 0, ran.err
    assert "B full_context is ahead of A full_context on these 5 questions by" in ran.out
    assert "which holds for this one conversation alone" in ran.out
    assert "right in B, not in A" in ran.out and "(cut)" in ran.out and "(grounded)" in ran.out
    assert "\x1b" not in ran.out


def test_results_files_recordings_and_runs_within_one_say_the_same(
    run_cli: RunCli, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    small, large = runs
    files = [path.with_suffix(".results.json") for path in runs]
    from_recordings = run_cli("compare", small, large)
    assert run_cli("compare", *files).out == from_recordings.out
    run_cli("--batch", *LITTLE, "--context-tokens", 40, "--recording", large)
    with sqlite3.connect(large) as db:
        first, second = (row[0] for row in db.execute("select id from runs order by rowid"))
    assert run_cli("compare", large, large, "--run-a", second, "--run-b", first).out == from_recordings.out


def test_of_long_answers_the_part_is_shown_in_which_they_differ(
    run_cli: RunCli, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    found = json.loads(runs[1].with_suffix(".results.json").read_text())
    for name, end in (("a", "in Ghent"), ("b", "in Bruges")):
        found["questions"][0] |= {"predicted": f"{'It is a long story that ends ' * 4}{end}"}
        (tmp_path / f"{name}.json").write_text(json.dumps(found))
    ran = run_cli("compare", tmp_path / "a.json", tmp_path / "b.json")
    assert ran.code == 0, ran.err
    assert "A …" in ran.out and "ends in Ghent" in ran.out and "ends in Bruges" in ran.out


def test_a_comparison_is_written_as_json_and_markdown(
    run_cli: RunCli, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    as_json, as_markdown = tmp_path / "c.json", tmp_path / "c.md"
    assert run_cli("compare", *runs, "--output", as_json, "--output", as_markdown).code == 0
    data = json.loads(as_json.read_text())
    keys = ("schema_version", "comparisons", "p_if_all_lost", "changes", "alike", "unpaired", "remarks")
    assert tuple(data) == keys
    assert {(one["a"], one["b"]) for one in data["comparisons"]} == {
        ("A rag", "B rag"),
        ("A full_context", "B full_context"),
    }
    assert as_markdown.read_text().startswith("## memreplay: two runs compared\n")
    ran = run_cli("compare", *runs, "--output", "-")
    assert json.loads(ran.out) == data


@pytest.mark.parametrize(
    ("name", "content", "more", "says"),
    [
        ("absent.json", None, (), "cannot be read"),
        ("text.json", "hello", (), "neither a results file nor a recording"),
        ("other.json", '{"a": 1}', (), "neither a results file nor a recording"),
        ("empty.json", '{"questions": []}', (), "nothing in common"),
        ("empty.json", '{"questions": []}', ("--run-b", "x"), "holds one run"),
        ("empty.json", '{"questions": []}', ("--output", "c.csv"), "expected .json, .md, .html, or -"),
        ("empty.json", '{"questions": []}', ("--alpha", "0.1"), "--alpha needs --fail-on-regression"),
        ("empty.json", '{"questions": []}', ("--fail-on-regression", "--alpha", "1"), "between 0 and 1"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence_and_exit_code_2(
    run_cli: RunCli, tmp_path: Path, name: str, content: str | None, more: tuple[str, ...], says: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    ran = run_cli("compare", path, path, *more)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err and "Traceback" not in ran.err


def test_an_unknown_run_is_refused(run_cli: RunCli, runs: tuple[Path, Path]) -> None:
    ran = run_cli("compare", *runs, "--run-a", "nonsense")
    assert ran.code == 2 and "nonsense" in ran.err


def scored(folder: Path, name: str, right: dict[str, int], *, of: int = 12, errors: int = 0) -> Path:
    """A results file in which each memory has its first ``right`` questions right, and its last ones failed."""
    rows = [
        {
            "question_id": f"q{n}",
            "dataset": "own",
            "conversation": "c",
            "backend": backend,
            "model": "m",
            "repeat": 0,
        }
        | {"question": "?", "expected": "x", "predicted": "x", "error": "down" if n >= of - errors else None}
        | {"outcome": "error" if n >= of - errors else "correct" if n < share else "wrong"}
        for backend, share in right.items()
        for n in range(of)
    ]
    path = folder / name
    path.write_text(json.dumps({"questions": rows}))
    return path


@pytest.mark.parametrize(
    ("before", "after", "errors", "more", "code", "says"),
    [
        ({"rag": 10}, {"rag": 2}, 0, (), 6, "Regression: B rag has 66.7 points less than A rag on 12 questions"),
        ({"rag": 10}, {"rag": 2}, 0, ("--alpha", "0.001"), 0, "No regression"),
        ({"rag": 2}, {"rag": 10}, 0, (), 0, "No regression"),
        ({"rag": 10, "hybrid": 10}, {"rag": 10, "hybrid": 4}, 0, (), 0, "No regression"),
        ({"rag": 10}, {"rag": 4}, 0, (), 6, "Regression: B rag"),
        ({"rag": 10, "oracle": 12}, {"rag": 10, "oracle": 0}, 0, (), 0, "No regression"),
        ({"rag": 10}, {"rag": 10}, 1, (), 3, "No regression"),
        ({"rag": 10}, {"rag": 2}, 1, (), 6, "Regression"),
    ],
    ids=["worse", "alpha", "better", "holm", "alone", "control", "errors", "worse and errors"],
)
def test_a_significant_loss_fails_the_comparison(
    run_cli: RunCli,
    tmp_path: Path,
    before: dict[str, int],
    after: dict[str, int],
    errors: int,
    more: tuple[str, ...],
    code: int,
    says: str,
) -> None:
    files = scored(tmp_path, "baseline.json", before), scored(tmp_path, "run.json", after, errors=errors)
    summary = tmp_path / "step_summary"
    ran = run_cli("compare", *files, "--fail-on-regression", *more, "--output", summary)
    assert ran.code == code, ran.err
    assert ran.out.startswith(says) and f"- **{says}" in summary.read_text()
    assert run_cli("compare", *files).code == 0


def test_a_check_that_cannot_fail_says_so(run_cli: RunCli, tmp_path: Path) -> None:
    files = scored(tmp_path, "baseline.json", {"rag": 5}), scored(tmp_path, "run.json", {"rag": 0})
    ran = run_cli("compare", *files, "--fail-on-regression")
    assert ran.code == 0 and "right on 5 questions" in ran.err and "this check cannot fail" in ran.err


def test_the_overlay_puts_adjusted_scores_beside_the_raw_ones(run_cli: RunCli, tmp_path: Path) -> None:
    key, recording = tmp_path / "errors.json", tmp_path / "r.sqlite3"
    key.write_text(
        json.dumps(
            {
                "identity-01-q1": {"answer": None, "reason": "Nothing in it can be right."},
                "identity-01-q2": {"evidence": ["1"], "reason": "Turn 1 says so too."},
                "elsewhere": {"answer": "x", "reason": "Of another dataset."},
            }
        )
    )
    outputs = tmp_path / "r.json", tmp_path / "r.md", tmp_path / "r.csv"
    wanted = [part for path in outputs for part in ("--output", path)]
    ran = run_cli("--batch", *LITTLE, "--recording", recording, "--answer-key", key, *wanted)
    assert ran.code == 0, ran.err
    assert (
        "adjusted" in ran.out and "errors.json, which corrects 2 of the questions asked (3 corrections" in ran.out
    )
    results = json.loads(outputs[0].read_text())
    assert results["answer_key"] == {"file": "errors.json", "corrections": 3, "questions": 2}
    rag = results["backends"]["rag"]
    assert rag["recall"]["graded"] == 5
    assert (rag["adjusted"]["graded"], rag["adjusted"]["left_out"]) == (4, 1)
    first = results["questions"][0]
    assert (first["adjusted"]["outcome"], first["adjusted"]["reason"]) == (None, "Nothing in it can be right.")
    assert "| adjusted |" in outputs[1].read_text()
    assert len(outputs[2].read_text().splitlines()) >= 11
    again = tmp_path / "again.json"
    assert run_cli("report", recording, "--answer-key", key, "--output", again).code == 0
    assert again.read_text() == outputs[0].read_text()


def test_a_faulty_overlay_is_refused_before_anything_is_asked(run_cli: RunCli, tmp_path: Path) -> None:
    key, recording = tmp_path / "errors.json", tmp_path / "r.sqlite3"
    key.write_text('{"identity-01-q1": {"evidence": ["99"], "reason": "r"}}')
    ran = run_cli("--batch", *LITTLE, "--recording", recording, "--answer-key", key)
    assert (ran.code, ran.out) == (2, "")
    assert f'{key}: /identity-01-q1/evidence/0: is "99"; expected a turn id' in ran.err
    assert not recording.exists()


def test_an_implicit_closed_book_is_read_but_not_listed_as_a_backend(run_cli: RunCli, tmp_path: Path) -> None:
    recording, output = tmp_path / "r.sqlite3", tmp_path / "results.json"
    run_cli("--batch", *LITTLE, "--backend", "closed_book", "--recording", recording)
    with sqlite3.connect(recording) as db:
        (text,) = db.execute("select settings from runs").fetchone()
        settings = json.loads(text) | {"backend": ["rag", "full_context"], "closed_book_asked_along": True}
        db.execute("update runs set settings = ?", [json.dumps(settings)])
    assert run_cli("report", recording, "--output", output).code == 0
    results = json.loads(output.read_text())
    assert list(results["backends"]) == ["rag", "full_context"]
    assert {row["backend"] for row in results["questions"]} == {"rag", "full_context"}
    assert {row["closed_book_correct"] for row in results["questions"]} == {False}
    assert results["backends"]["rag"]["headline"]["closed_book_accuracy"] == 0
    assert len(results["comparisons"]) == 1


def test_every_answer_says_why_it_was_wrong_or_what_it_rests_on(run_cli: RunCli, runs: tuple[Path, Path]) -> None:
    small, _ = runs
    results = json.loads(small.with_suffix(".results.json").read_text())
    assert all(row["failure"] and row["failure_detail"] for row in results["questions"])
    assert "cut" in results["backends"]["full_context"]["failures"]
    for backend in results["backends"].values():
        assert sum(backend["failures"].values()) == len(results["questions"]) / 2
    unknown = [row for row in results["questions"] if row["failure"] == "guessed"]
    assert all("guessed or lucky" in row["failure_detail"] for row in unknown)
