"""Published results become an ordinary recording; what they do not say stays unknown."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from memreplay.batch.report import results_of_run
from memreplay.engine.events import QuestionAsked
from memreplay.errors import DatasetError
from memreplay.published.answers import PublishedRun
from memreplay.published.files import read_source
from memreplay.published.importing import Imported, import_published_run
from memreplay.recording.reader import Recording
from memreplay.scoring.question_row import QuestionRow
from memreplay.scoring.results import Results
from tests.stubs.published_results import amb, amb_row, said
from tests.unit.conversations.samples import longmemeval_entry


def written(path: Path, value: Any) -> Path:
    data = json.dumps(value).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def imported(source: Path, *evidence: Path) -> tuple[Imported, Results]:
    (run,) = read_source(source)
    recording = source.with_name("made.sqlite3")
    made = import_published_run(run, recording, evidence)
    opened = Recording.open(recording)
    return made, results_of_run(opened, opened.run(made.run_id))


def row_of(results: Results, number: int) -> QuestionRow:
    return next(row for row in results.questions if row.question_id.endswith(f"q{number}"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rows = (
        amb_row(
            0, "Ann went on 11 June 2023.", "## Memory 1\nSession of 4 May 2023. " + said("D1:1", "D1:2"), False
        ),
        amb_row(1, "A blue bowl.", "## Memory 1\n" + said("D1:3") + "\n\n## Memory 2\n" + said("D2:2"), True),
        amb_row(2, "The context does not say.", "## Memory 1\n" + said("D2:2"), True),
        amb_row(3, "Her brother.", "## Memory 1\n" + said("D1:3"), False),
    )
    return written(tmp_path / "shelf.json.gz", amb(*rows))


def test_answers_are_joined_and_the_published_judgement_decides(source: Path, dataset: Path) -> None:
    made, results = imported(source, dataset)
    assert made.joined.sentence == "4 of 4 questions joined with the dataset (4 by id, 0 by text)"
    assert [row.outcome for row in results.questions] == ["wrong", "correct", "correct", "wrong"]
    assert row_of(results, 0).evidence == ("D1:1",)
    assert row_of(results, 2).grader is not None and row_of(results, 2).grader.outcome == "wrong"
    assert results.run.settings["imported_from"] == "Agent Memory Benchmark"
    assert list(results.backends) == ["shelf"]


def test_the_verdict_follows_from_the_context_alone(source: Path, dataset: Path) -> None:
    _, results = imported(source, dataset)
    assert row_of(results, 0).failure == "misread" and row_of(results, 0).evidence_in_prompt is True
    assert row_of(results, 3).failure == "not_visible"
    assert "what this memory heard and stored was not recorded" in (row_of(results, 3).failure_detail or "")


def test_what_is_in_no_file_is_unknown_and_not_zero(source: Path, dataset: Path) -> None:
    _, results = imported(source, dataset)
    row = row_of(results, 0)
    assert (row.tokens, row.cost_usd, row.ms, row.recall_at_10, row.reciprocal_rank) == (None,) * 5
    assert row.recall_ms == 12.5
    assert row.judge is not None and row.judge.calls == 0


def test_without_a_dataset_nothing_is_said_of_the_evidence(source: Path) -> None:
    made, results = imported(source)
    assert "give the dataset with --evidence" in made.joined.sentence
    assert {row.evidence_in_prompt for row in results.questions} == {None}
    assert {row.failure for row in results.questions if row.outcome == "wrong"} == {"no_evidence"}
    assert [row.outcome for row in results.questions] == ["wrong", "correct", "correct", "wrong"]


def test_questions_are_joined_by_text_within_their_conversation_and_the_rest_is_counted(
    tmp_path: Path, dataset: Path
) -> None:
    by_text = amb_row(1, "A bowl.", said("D1:3"), True, query_id="other-7", query="what did ann make")
    unknown = amb_row(1, "Green.", "", False, query_id="x", query="Which colour does Ben like?")
    made, results = imported(written(tmp_path / "r.json", amb(by_text, unknown)), dataset)
    assert (
        "1 of 2 questions joined with the dataset (0 by id, 1 by text); 1 not found in it" in made.joined.sentence
    )
    assert len(results.questions) == 2, "nothing is lost"


def test_results_of_longmemeval_that_repeat_the_question_are_joined_by_its_id_or_its_text(tmp_path: Path) -> None:
    dataset = written(tmp_path / "l.json", [longmemeval_entry()])
    asked = {"question": "Where did I hang the hammock?", "hypothesis": "On the fire escape."}
    for id_, joined in (("7a_1", "1 by id, 0 by text"), ("another", "0 by id, 1 by text")):
        made, results = imported(written(tmp_path / f"{id_}.json", [asked | {"question_id": id_}]), dataset)
        assert made.joined.sentence == f"1 of 1 question joined with the dataset ({joined})"
        (row,) = results.questions
        assert (row.question_id, row.outcome, row.evidence) == ("7a_1", "correct", ("3",))


def test_an_id_that_names_another_question_is_not_trusted(tmp_path: Path, dataset: Path) -> None:
    shifted = amb_row(1, "A bowl.", said("D1:3"), True, query_id="conv-1_q0")
    _, results = imported(written(tmp_path / "r.json", amb(shifted)), dataset)
    assert [row.question_id for row in results.questions] == ["conv-1_q1"]


def test_a_question_that_is_answered_twice_keeps_both_answers(tmp_path: Path, dataset: Path) -> None:
    twice = [amb_row(1, answer, said("D1:3"), right) for answer, right in (("A bowl.", True), ("A cup.", False))]
    made, results = imported(written(tmp_path / "r.json", amb(*twice)), dataset)
    assert made.repeated == 1
    assert [(row.repeat, row.outcome) for row in results.questions] == [(0, "correct"), (1, "wrong")]


def test_a_turn_that_the_context_begins_and_does_not_end_was_cut(tmp_path: Path, dataset: Path) -> None:
    cut = amb_row(2, "Spain.", "I know this: My sister moved from Norway to Lisbon", False)
    cut["gold_answers"] = ["Norway"]
    half = cut | {"context": "Ann: My sister moved from her old home to", "query_id": "conv-1_q2"}
    _, results = imported(written(tmp_path / "r.json", amb(half)), dataset)
    assert row_of(results, 2).failure == "not_visible", "other words are not a beginning of the turn"
    _, results = imported(written(tmp_path / "c.json", amb(cut | {"gold_answers": ["Oslo"]})), dataset)
    assert row_of(results, 2).evidence_in_prompt is not True


def read_alone(path: Path) -> PublishedRun:
    (run,) = read_source(path)
    return run


def test_a_file_that_is_cut_off_keeps_its_whole_rows_and_says_so(source: Path, tmp_path: Path) -> None:
    whole = gzip.decompress(source.read_bytes())
    broken = tmp_path / "broken.json"
    broken.write_bytes(whole[: whole.rindex(b'"Her brother')])
    run = read_alone(broken)
    assert [answer.question_id for answer in run.answers][:3] == ["conv-1_q0", "conv-1_q1", "conv-1_q2"]
    assert "is cut off or damaged" in run.problems[0]


def test_rows_that_are_no_answers_are_named(tmp_path: Path) -> None:
    rows = [amb_row(0, "May.", "", True), 7, {"answer": "no question"}, None]
    run = read_alone(written(tmp_path / "r.json", amb(*rows)))
    assert len(run.answers) == 1
    assert [problem.split(": ")[1] for problem in run.problems] == ["/results/1", "/results/2", "/results/3"]


@pytest.mark.parametrize("content", [b"", b"   ", b"{}", b"[1, 2]", b"\x1f\x8bnot gzip", b"\xff\xfe{", b"[" * 5000])
def test_what_is_no_results_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(content)
    with pytest.raises(DatasetError):
        read_source(path)


def test_a_small_file_that_grows_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b"[" + b" " * (64 << 20) + b"]"))
    with pytest.raises(DatasetError, match="grows to more than"):
        read_source(path)


def test_texts_of_a_file_are_data(tmp_path: Path, dataset: Path) -> None:
    hostile = amb(amb_row(0, "\x1b[31m[bold]x[/bold] <script>alert(1)</script>", "../../etc/passwd \ud800", False))
    hostile |= {"run_name": "../../evil\x1b]0;x\x07", "answer_llm": "closed_book"}
    path = tmp_path / "r.json"
    path.write_text(json.dumps(hostile))
    _, results = imported(path, dataset)
    assert results.questions[0].outcome == "wrong"
    assert {each.name for each in tmp_path.iterdir()} == {"r.json", "made.sqlite3", "locomo10.json"}


def test_a_system_named_like_a_control_is_none(tmp_path: Path, dataset: Path) -> None:
    path = written(tmp_path / "r.json", amb(amb_row(0, "x", said("D1:1"), False)) | {"run_name": "oracle"})
    _, results = imported(path, dataset)
    assert list(results.backends) == ["oracle (published)"]


def test_a_context_that_the_file_names_by_turns_has_their_texts(tmp_path: Path, dataset: Path) -> None:
    rows = json.loads(dataset.read_text())
    rows[0]["qa"][1] |= {
        "gpt-4_dialog_top_5_prediction": "A cup.",
        "gpt-4_dialog_top_5_prediction_context": ["D1:3", "D2:1"],
    }
    rows[0]["qa"] = rows[0]["qa"][1:2]
    made, results = imported(written(tmp_path / "qa.json", rows), dataset)
    (row,) = results.questions
    assert made.joined.joined == 1
    assert row.evidence_in_prompt is True
    opened = Recording.open(tmp_path / "made.sqlite3")
    (asked,) = opened.events(made.run_id, "conv-1", ("question_asked",))
    assert isinstance(asked, QuestionAsked)
    assert asked.hits[0].text == "04 May 2023, 13:56: Ann: A small blue bowl for my kitchen table."
