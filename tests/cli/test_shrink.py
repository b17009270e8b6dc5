"""``memreplay shrink``: a wrong answer becomes the smallest conversation that fails in the same way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import memreplay
from memreplay.conversations.models import Conversation, exchanges_of
from memreplay.conversations.registry import load
from memreplay.debugger.shrink import only_question, with_turns
from tests.cli.conftest import RunCli
from tests.stubs.in_process import made_in
from tests.stubs.noting_memory import FILE as NOTES
from tests.stubs.noting_memory import Noting
from tests.stubs.openai_server import OpenAIServer
from tests.stubs.planted_writer import behaves, written_down

LOSSY = ("--backend", "hybrid", "--ablate", "verbatim")
WORDS = f"{Noting.__module__}:{Noting.__name__}"
"""A memory that ranks by the words that a turn shares with the question, and embeds nothing."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wrong")
    asked = ("--dataset", "multi-05", "--backend", WORDS, "--top-k", 2)
    made_in(folder, "--batch", "--dataset", "identity-02", *LOSSY, "--recording", folder / "lossy.sqlite3")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(NOTES, str(folder / "notes"))
        made_in(folder, "--batch", *asked, "--recording", folder / "few.sqlite3")
    return folder


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NOTES, str(tmp_path / "notes"))


def failures(run_cli: RunCli, *arguments: object) -> dict[tuple[str, str], str]:
    ran = run_cli(*arguments, "--output", "-")
    assert ran.code == 0, ran.err
    rows: list[dict[str, Any]] = json.loads(ran.out)["questions"]
    return {(row["backend"], row["question_id"]): row["failure"] for row in rows}


def test_every_output_fails_at_the_same_stage(run_cli: RunCli, recording: Path, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("case.json", "case.md", "test_case.py", "case.sqlite3")]
    outputs = [word for path in paths for word in ("--output", path)]
    asked = ("--question", "multi-05-q1", "--backend", WORDS, "--same-hits")
    ran = run_cli("shrink", recording / "few.sqlite3", *asked, *outputs)
    assert ran.code == 0, ran.err
    assert "written but not retrieved" in ran.out and "no call" in ran.out
    assert "memory returned 2 items" in ran.err
    assert f"replay it with: memreplay --batch --dataset {paths[0]} --backend {WORDS} --top-k 2" in ran.err
    replayed = ("--dataset", paths[0], "--backend", WORDS, "--top-k", 2, "--recording", tmp_path / "again.sqlite3")
    assert failures(run_cli, "--batch", *replayed)[WORDS, "multi-05-q1"] == "not_retrieved"
    assert failures(run_cli, "report", paths[3])[WORDS, "multi-05-q1"] == "not_retrieved"
    text = paths[1].read_text(encoding="utf-8")
    for part in (": written but not retrieved", "- top-k: `2`", "## Stored", "## Retrieved", "← the answer"):
        assert part in text
    assert f"run `memreplay --batch --dataset case.json --backend {WORDS} --top-k 2`" in text
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "memreplay.pytest_plugin", paths[2]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        check=False,
    )
    assert tested.returncode == 1 and "not_retrieved" in tested.stdout, tested.stdout + tested.stderr


def removable(whole: Conversation, folder: Path, backend: str, failure: str, **settings: Any) -> Iterator[str]:
    """Yield the first turn of each exchange without evidence that the failure does not need."""
    evidence = set(whole.questions[0].evidence)
    for exchange in exchanges_of(whole):
        if evidence.isdisjoint(exchange.turn_ids):
            rest = {turn.id: turn.text for turn in whole.turns if turn.id not in exchange.turn_ids}
            path = folder / f"{exchange.turn_ids[0].replace(':', '-')}-{len(whole.turns)}.sqlite3"
            with memreplay.run(with_turns(whole, rest), backend, recording=path, **settings) as run:
                if {row.failure for row in run.questions if row.backend == backend} == {failure}:
                    yield exchange.turn_ids[0]


def test_no_exchange_of_a_result_can_be_removed(run_cli: RunCli, recording: Path, tmp_path: Path) -> None:
    cases: list[tuple[str, str, str, str, dict[str, Any]]] = [
        ("few.sqlite3", "multi-05-q1", WORDS, "not_retrieved", {"top_k": 1}),
        ("lossy.sqlite3", "identity-02-q1", "hybrid", "not_written", {"ablate": "verbatim"}),
    ]
    for name, question, backend, failure, settings in cases:
        case = tmp_path / f"{question}.json"
        ran = run_cli("shrink", recording / name, "--question", question, "--backend", backend, "--output", case)
        assert ran.code == 0, ran.err
        (smallest,), (whole,) = load([str(case)]), load([question.rpartition("-")[0]])
        asked = next(each for each in whole.questions if each.id == question)
        assert len(smallest.turns) <= len(whole.turns) / 2
        lowered = "top_k" in settings
        assert ("top-k was lowered from 2 to 1" in ran.err) == ("top-k=1" in smallest.tags) == lowered
        assert list(removable(smallest, tmp_path, backend, failure, **settings)) == []
        assert any(removable(only_question(whole, asked), tmp_path, backend, failure, **settings))


def test_the_result_does_not_depend_on_the_number_of_workers(
    run_cli: RunCli, recording: Path, tmp_path: Path
) -> None:
    found = []
    for workers in (1, 2):
        case = tmp_path / f"{workers}.json"
        asked = ("--question", "multi-05-q1", "--backend", WORDS, "--output", case)
        shrink = ("shrink", recording / "few.sqlite3", *asked)
        ran = run_cli(*shrink, "--workers", workers, "--tries", 15, "--no-cache")
        assert ran.code == 0 and "15 conversations were tried" in ran.err, ran
        found.append(case.read_bytes())
    assert found[0] == found[1]


def test_what_was_tried_is_not_tried_again(run_cli: RunCli, recording: Path, tmp_path: Path) -> None:
    shrink = ("shrink", recording / "few.sqlite3", "--question", "multi-05-q1", "--backend", WORDS)
    some = run_cli(*shrink, "--output", tmp_path / "a.json", "--tries", 3)
    assert some.code == 0 and "may not be minimal" in some.err and "not retrieved" in some.out
    ran = run_cli(*shrink, "--output", tmp_path / "b.json")
    again = run_cli(*shrink, "--output", tmp_path / "c.json")
    assert ", 2 tries" not in ran.out and "; 2 tries, " in again.out and "known from before" in again.out
    assert (tmp_path / "b.json").read_bytes() == (tmp_path / "c.json").read_bytes()


def test_what_cannot_be_shrunk_is_refused(run_cli: RunCli, recording: Path, tmp_path: Path) -> None:
    few, case = recording / "few.sqlite3", tmp_path / "case.json"
    for arguments, says in {
        ("--question", "multi-05-q3", "--backend", WORDS, "--output", case): "no memory of this run answers",
        ("--question", "nothing", "--backend", WORDS, "--output", case): "no question has this id",
        ("--question", "multi-05-q1", "--output", tmp_path / "case.txt"): "expected a name that ends in",
        ("--question", "multi-05-q1", "--output", few): "is the recording itself",
        ("--question", "multi-05-q1", "--backend", "hybrid", "--output", case): "runs its code",
    }.items():
        ran = run_cli("shrink", few, *arguments)
        assert ran.code == 2 and says in ran.err, ran
    assert not case.exists()


def test_names_and_numbers_are_replaced_where_it_still_fails(
    run_cli: RunCli, recording: Path, tmp_path: Path
) -> None:
    case = tmp_path / "case.json"
    ran = run_cli(
        *("shrink", recording / "lossy.sqlite3", "--question", "identity-02-q1", "--output", case, "--anonymise")
    )
    assert ran.code == 0 and "does not fail so" not in ran.err, ran.err
    replayed = ("--dataset", case, *LOSSY, "--recording", tmp_path / "again.sqlite3")
    assert failures(run_cli, "--batch", *replayed)["hybrid", "case-q1"] == "not_written"
    (whole,), (smallest,) = load(["identity-02"]), load([str(case)])
    (asked,), (before, *_) = smallest.questions, whole.questions
    said = f"{smallest.turns[0].text} {asked.expected}"
    assert smallest.id == "case" and asked.expected != before.expected and asked.expected in said
    assert not any(word in said for word in before.expected.split())


@pytest.mark.skipif(find_spec("mem0") is None, reason="mem0 is not installed")
def test_the_text_has_the_reply_that_a_library_could_not_read(run_cli: RunCli, tmp_path: Path) -> None:
    case, text, recording = tmp_path / "case.json", tmp_path / "case.md", tmp_path / "r.sqlite3"
    written_down(tmp_path)
    with OpenAIServer(behaves) as server:
        models = ("--extractor", "openai/writer", "--model", "openai/reader", "--api-base", server.url)
        memory = ("--backend", "mem0", *models)
        ran = run_cli("--batch", "--dataset", tmp_path / "talk.json", *memory, "--recording", recording)
        assert ran.code == 0, ran.err
        shrink = ("shrink", recording, "--question", "talk-q2", *memory, "--output", case)
        says = run_cli(*shrink[:-2], "--estimate").out
        assert "10 turns in 5 exchanges" in says and "openai/writer: about a call an exchange" in says
        refused = run_cli(*shrink)
        assert refused.code == 2 and "--calls N" in refused.err
        few = run_cli(*shrink, "--calls", 1, "--no-cache")
        assert few.code == 2 and "the whole conversation is not played yet" in few.err
        ran = run_cli(*shrink, "--output", text, "--calls", 100)
        assert ran.code == 0, ran.err
        replayed = ("--batch", "--dataset", case, *memory, "--recording", tmp_path / "again.sqlite3")
        assert failures(run_cli, *replayed)["mem0", "talk-q1"] == "not_written"
    assert "10 turns → 1 " in ran.out
    said = text.read_text(encoding="utf-8").partition("## What the writer replied")[2]
    assert "`openai/writer` to `D1:1`: Sure! Here is what I noticed: the boat. (the reply is not JSON)" in said
