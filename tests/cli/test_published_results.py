"""Results of other harnesses from the command line: imported, reported, compared, explained, opened up."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memreplay.paths import demo_recording
from tests.cli.conftest import RunCli
from tests.stubs.published_results import amb, amb_row, locomo, said


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return locomo(tmp_path / "locomo10.json")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rows = (amb_row(0, "On 11 June.", said("D1:1"), False), amb_row(1, "A blue bowl.", said("D1:3"), True))
    return write(tmp_path / "shelf.json", amb(*rows))


def test_an_import_is_reported_compared_and_explained(
    run_cli: RunCli, tmp_path: Path, source: Path, dataset: Path
) -> None:
    recording = tmp_path / "r.sqlite3"
    ran = run_cli("recordings", "import", source, "--recording", recording, "--evidence", dataset)
    assert ran.code == 0, ran.err
    assert "2 answers of shelf imported; 2 of 2 questions joined with the dataset" in ran.err
    assert "1/2" in run_cli("report", recording).out
    assert "A shelf and B shelf have equally many right" in run_cli("compare", recording, recording).out
    why = run_cli("why", recording)
    assert why.code == 0, why.err
    assert "conv-1_q0 (shelf): what memory stored or gave was not recorded." in why.out


def test_the_report_of_an_import_says_how_to_import_it_again(
    run_cli: RunCli, tmp_path: Path, source: Path, dataset: Path
) -> None:
    recording, page = tmp_path / "r.sqlite3", tmp_path / "page.html"
    run_cli("recordings", "import", source, "--recording", recording, "--evidence", dataset)
    assert run_cli("report", recording, "--output", page).code == 0
    command = "memreplay recordings import shelf.json --recording run.sqlite3 --evidence locomo10.json"
    assert command in page.read_text() and "memreplay --batch" not in page.read_text()


def test_a_published_context_is_cut_at_other_budgets_from_its_beginning(
    run_cli: RunCli, tmp_path: Path, dataset: Path
) -> None:
    filler = "## Memory 1\n" + "Nothing of that. " * 60
    late = f"{filler}\n## Memory 2\n" + said("D1:3")
    early = "## Memory 1\n" + said("D2:1") + f"\n## Memory 2\n{filler}"
    whole = said("D1:1")
    rows = (amb_row(1, "A bowl.", late, True), amb_row(2, "Norway.", early, True), amb_row(0, "3 May", whole, True))
    recording = tmp_path / "r.sqlite3"
    source = write(tmp_path / "shelf.json", amb(*rows))
    run_cli("recordings", "import", source, "--recording", recording, "--evidence", dataset)
    ran = run_cli("budget", recording, "--output", "-")
    assert ran.code == 0, ran.err
    curves = json.loads(ran.out)
    (curve,) = curves["memories"].values()
    assert curves["published"] and curve["estimated"]
    assert curve["n"] == 2, "a context without separate memories cannot be cut"
    assert curve["answer_in_prompt"] == [0.5, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    said_of_it = run_cli("budget", recording).out
    assert "as published" in said_of_it and "first memories of each published context" in said_of_it
    assert "fork" not in said_of_it


def test_an_autopsy_prints_and_writes_a_page(run_cli: RunCli, tmp_path: Path, source: Path, dataset: Path) -> None:
    page = tmp_path / "report.html"
    ran = run_cli("autopsy", source, "--evidence", dataset, "--output", page)
    assert ran.code == 0, ran.err
    assert "1 wrong answer had the evidence but not the date of its session" in ran.out
    assert "memreplay autopsy shelf.json --evidence locomo10.json" in page.read_text()
    assert not list(tmp_path.glob("*.sqlite3")), "the runs are kept only on demand"


def test_memreplays_own_results_keep_their_outcomes(run_cli: RunCli, tmp_path: Path) -> None:
    recording = Path(shutil.copy(demo_recording(), tmp_path / "demo.sqlite3"))
    assert run_cli("report", recording).code == 0
    results = tmp_path / "demo.results.json"
    right = Counter(
        row["backend"] for row in json.loads(results.read_text())["questions"] if row["outcome"] == "correct"
    )
    ran = run_cli("autopsy", results)
    assert ran.code == 0, ran.err
    assert all(f" {backend} " in ran.out and f" {count}/19 " in ran.out for backend, count in right.items())
    assert "these are memreplay's own results, with the outcomes of the file" in ran.out
    assert "our rules decide" not in ran.out
    refused = run_cli("autopsy", recording)
    assert refused.code == 2 and f"is a recording; expected a results file; memreplay {recording}" in refused.err


def test_what_cannot_be_read_is_named_and_the_rest_is_done(
    run_cli: RunCli, tmp_path: Path, source: Path, dataset: Path
) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    alone = run_cli("autopsy", broken)
    assert alone.code == 2 and "broken.json" in alone.err
    both = run_cli("autopsy", broken, source, "--evidence", dataset)
    assert both.code == 3 and "not read:" in both.err and "shelf" in both.out
    odd = write(tmp_path / "odd.json", amb(amb_row(0, "x", "", True), 3))
    ran = run_cli("recordings", "import", odd, "--recording", tmp_path / "o.sqlite3")
    assert ran.code == 3 and "odd.json: /results/1: is 3" in ran.err


def test_a_folder_without_results_is_refused(run_cli: RunCli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert run_cli("autopsy", tmp_path / "empty").code == 2
    assert run_cli("autopsy", tmp_path / "nowhere").code == 2
