"""``memreplay sweep``: settings of a memory against answers in the prompt."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memreplay.conversations.registry import load
from memreplay.debugger.recorded_sweep import sweeps_of_rankings
from memreplay.debugger.sweep import Found, is_for_choosing, swept
from memreplay.numbers import p_value
from memreplay.pages.sweep import sweep_page
from memreplay.recording.reader import Recording
from memreplay.runtime.sweeping import answerable_questions
from tests.cli.conftest import RunCli
from tests.stubs.in_process import made_in


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swept")
    asked = ("--dataset", "multi-05", "--backend", "rag", "--top-k", 3)
    made_in(folder, "--batch", *asked, "--recording", folder / "r.sqlite3")
    return folder / "r.sqlite3"


def rows_of(path: Path) -> dict[str, dict[str, Any]]:
    (only,) = json.loads(path.read_text(encoding="utf-8"))
    return {row["setting"]: row for row in only["rows"]}


def test_a_setting_of_the_run_gives_what_the_run_gave(run_cli: RunCli, recording: Path, tmp_path: Path) -> None:
    questions = json.loads(run_cli("report", recording, "--output", "-").out)["questions"]
    recorded = [row["answer_in_prompt"] for row in questions if row["backend"] == "rag"]
    ran = run_cli("sweep", recording, "--over", "top-k=1,3,10", "--output", tmp_path / "s.json")
    assert ran.code == 0, ran.err
    rows = rows_of(tmp_path / "s.json")
    assert list(rows) == ["top-k=1", "top-k=3", "top-k=10"]
    assert rows["top-k=3"]["held"] == sum(bool(held) for held in recorded)
    assert rows["top-k=1"]["tokens"] < rows["top-k=10"]["tokens"]
    assert "cannot be told from chance" in ran.out and "adjusted by Holm for 2 comparisons" in ran.out


def test_answers_are_graded_as_in_a_run(run_cli: RunCli, tmp_path: Path) -> None:
    asked = ("--dataset", "identity-01", "--backend", "hybrid")
    made_in(tmp_path, "--batch", *asked, "--output", tmp_path / "run.json")
    ran = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert run_cli("sweep", *asked, "--over", "top-k=10", "--ask", "--output", tmp_path / "s.json").code == 0
    assert rows_of(tmp_path / "s.json")["top-k=10"]["accuracy"] == ran["backends"]["hybrid"]["accuracy"]


def test_the_rankings_of_a_recording_give_what_a_filled_memory_gives(
    run_cli: RunCli, recording: Path, tmp_path: Path
) -> None:
    over = ("--over", "top-k=3,1,5", "--over", "context-tokens=256")
    assert run_cli("sweep", recording, *over, "--output", tmp_path / "s.json").code == 0
    filled = rows_of(tmp_path / "s.json")
    with closing(Recording.open(recording)) as opened:
        run = opened.run()
        timelines = [opened.timeline(run.id, id_) for id_ in opened.conversation_ids(run.id)]
        (result,) = sweeps_of_rankings(timelines, run.settings)
    cut = {row.setting: row for row in result.rows}
    assert result.rows[0].setting.startswith("top-k=3 ") and result.backend == "rag"
    for name, row in filled.items():
        same = cut.get(name)
        assert same is None or (same.held, same.tokens) == (row["held"], row["tokens"])
    assert filled.keys() & cut.keys()


def test_memory_is_filled_once_for_settings_of_reading(run_cli: RunCli) -> None:
    over = ("--over", "ablate=none,verbatim", "--over", "top-k=3,5", "--over", "context-tokens=200,400")
    memories = [word for name in ("hybrid", "rag", "full_context") for word in ("--backend", name)]
    ran = run_cli("sweep", "--dataset", "multi-05", *memories, *over, "--estimate")
    assert ran.code == 0, ran.err
    assert "hybrid: 8 settings, filled 2 times" in ran.out and "rag: 4 settings, filled 1 times" in ran.out
    assert "full_context: 2 settings, filled 1 times" in ran.out, "top-k changes nothing of it"


def test_questions_without_evidence_are_left_out_as_in_a_report() -> None:
    (conversation,) = load(["multi-05"])
    first, *others = conversation.questions
    unknown = first.model_copy(update={"evidence": ()})
    assert answerable_questions(conversation.model_copy(update={"questions": (unknown, *others)})) == others


def test_workers_give_the_same_bytes_and_a_setting_that_fails_costs_its_own_row(
    run_cli: RunCli, recording: Path, tmp_path: Path
) -> None:
    over = ("--over", "top-k=1,3", "--over", "embedder=minilm,fastembed:nobody/knows")
    files = [tmp_path / f"{workers}.json" for workers in (1, 2)]
    for workers, file in enumerate(files, start=1):
        ran = run_cli("sweep", recording, *over, "--workers", workers, "--output", file)
        assert ran.code == 3 and "embedder=fastembed:nobody/knows failed: multi-05: " in ran.out, ran
    assert files[0].read_bytes() == files[1].read_bytes()
    (only,) = json.loads(files[0].read_text(encoding="utf-8"))
    assert [row["setting"] for row in only["rows"]] == ["top-k=1 embedder=minilm", "top-k=3 embedder=minilm"]
    assert list(only["failed"]) == [f"top-k={k} embedder=fastembed:nobody/knows" for k in (1, 3)]


def test_what_cannot_be_swept_is_refused(run_cli: RunCli, recording: Path) -> None:
    for arguments, says in {
        ("--over", "colour=red"): "expected NAME=a,b,c",
        ("--over", "top-k="): "expected NAME=a,b,c",
        ("--over", "top-k=x"): "top_k",
        ("--over", "top-k=1", "--backend", "hybrid"): "is not in the run",
        ("--over", "top-k=1", "--ablate", "verbatim"): "the recording has its own",
    }.items():
        ran = run_cli("sweep", recording, *arguments)
        assert ran.code == 2 and says in ran.err, ran


def found(holds: list[bool], tokens: int) -> list[Found]:
    return [Found(f"q{number}", held, tokens, 0.0) for number, held in enumerate(holds)]


def test_the_front_and_the_cheapest_mending_setting() -> None:
    settings = {
        "few": found([True, False, False, False], 10),
        "dear": found([True, True, False, False], 90),
        "more": found([True, True, False, False], 30),
        "most": found([True, True, True, False], 80),
    }
    result = swept("rag", settings)
    assert [row.setting for row in result.rows if row.on_front] == ["few", "more", "most"]
    assert result.fixed_by == {"q1": "more", "q2": "most", "q3": None}
    assert result.chosen == "most" and not any(row.is_told_from_chance for row in result.rows)


def test_a_difference_among_many_settings_is_adjusted_for_their_number() -> None:
    better = found([True] * 7 + [False] * 13, 20)
    one = swept("rag", {"first": found([False] * 20, 10), "better": better})
    many = swept("rag", {"first": found([False] * 20, 10), "better": better} | {f"{n}": better for n in range(5)})
    assert one.rows[1].p_value == one.rows[1].p_adjusted == many.rows[1].p_value == 2 / 2**7
    assert one.rows[1].is_told_from_chance and not many.rows[1].is_told_from_chance
    assert p_value(0.0004) == "< 0.001" and p_value(one.rows[1].p_value) == "0.016"
    assert many.p_of_chosen == many.rows[1].p_adjusted == 6 * 2 / 2**7
    assert one.rows[1].difference is not None and one.rows[1].difference[0] > 0


def test_a_page_has_the_front_as_a_plot_and_the_setting_that_mends_each_question() -> None:
    pytest.importorskip("vl_convert")
    settings = {"few": found([True, False, False], 10), "<b>more": found([True, True, False], 30)}
    page = sweep_page([swept("rag", settings)], "memreplay sweep")
    assert page.count("<svg") == 1 and "<b>" not in page
    assert all(part in page for part in ("Pareto front", "q1", "&lt;b&gt;more", "cannot be told from chance"))


def test_a_split_chooses_by_one_half_and_reports_the_other() -> None:
    choosing = [is_for_choosing(f"q{number}") for number in range(60)]
    settings = {"a": found([not each for each in choosing], 10), "b": found(choosing, 10)}
    result = swept("rag", settings, split=True)
    assert result.chosen == "b"
    by_name = {row.setting: row for row in result.rows}
    assert by_name["b"].held == 0 and by_name["a"].held == by_name["a"].questions == choosing.count(False)
    assert by_name["b"].is_told_from_chance and result.is_split and result.p_of_chosen == by_name["b"].p_value
