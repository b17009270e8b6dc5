"""A finished run of GoodAI's benchmark becomes a recording, with their scores beside ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memreplay.batch.report import results_of_run
from memreplay.engine.events import ClockSet, ConversationClosed, MessageSaid, TestBegan, TestScored, TestWaited
from memreplay.errors import DatasetError, MemreplayError, UsageError
from memreplay.goodai.importing import import_goodai_run
from memreplay.recording.reader import Recording
from memreplay.scoring.results import Results
from memreplay.timeline.timeline import Timeline

MORNING = 1_716_376_551.0


def event(kind: int, test: str, seconds: float, **data: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": MORNING + seconds, "test_id": test, "data": data}


def exchange(test: str, seconds: float, message: str, reply: str, question: bool = False) -> list[dict[str, Any]]:
    return [
        event(0, test, seconds, message=message, is_question=question),
        event(4, test, seconds + 1, message=reply, is_question=question),
    ]


LOG = [
    event(7, "", 0),
    event(1, "Colours - 0", 0, tokens=0),
    *exchange("Colours - 0", 1, "My favourite colour is Teal.", "Noted."),
    event(6, "Colours - 0", 3, tokens=20, time=3600),
    event(3, "", 4, message="Some trivia [bold]\x1b[31m", is_question=False),
    event(5, "", 5, message='["Rome"]', is_question=False),
    *exchange("Colours - 0", 3700, "What is my favourite colour?", "It is Teal.", question=True),
    event(2, "Colours - 0", 3702),
    event(1, "ChapterBreak - 0", 3703, tokens=50),
    *exchange("ChapterBreak - 0", 3704, "Which chapter comes next?", "The second.", question=True),
    event(2, "ChapterBreak - 0", 3706),
]


def result(score: float, expected: list[str]) -> dict[str, Any]:
    told = {"reasoning": ["They said so."], "tokens": 40, "expected_responses": expected}
    return {"score": score, "max_score": 1, **told}


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A run of two tests, one of a dataset that is not here."""
    folder = tmp_path / "LTM Agent 1"
    folder.mkdir()
    (folder / "master_log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LOG))
    (folder / "runstats.json").write_text('{"agent_costs_usd": 4.5, "managing_costs_usd": 0.1, "rnd_state": [3]}')
    for dataset, written in (("Colours", result(1, ["Teal"])), ("ChapterBreak", result(0.5, ["2"]))):
        (folder / dataset).mkdir()
        (folder / dataset / "0_0.json").write_text(json.dumps(written))
    return folder


def imported(folder: Path, recording: Path) -> tuple[Timeline, Results]:
    import_goodai_run(folder, recording)
    reader = Recording.open(recording)
    run = reader.run()
    (name,) = reader.conversation_ids(run.id)
    timeline = Timeline(reader.conversation(run.id, name), reader.events(run.id, name))
    results = results_of_run(reader, run)
    reader.close()
    return timeline, results


def test_it_is_stepped_through_like_any_other(run_folder: Path, tmp_path: Path) -> None:
    timeline, _ = imported(run_folder, tmp_path / "r.sqlite3")
    said = timeline.conversation
    assert [turn.role for turn in said.turns] == ["user", "assistant"] * 4
    assert said.turns[2].text == "Some trivia [bold]\x1b[31m"
    assert [session.number for session in said.sessions] == [1, 2]
    events = [event for turn in range(10) for event in timeline.events_at("LTM Agent 1", turn)]
    parts = [event.part for event in events if isinstance(event, MessageSaid)]
    assert parts == ["script", "reply", "filler", "reply", "question", "reply", "question", "reply"]
    notes = {event.kind: event.turn for event in events if isinstance(event, TestWaited | ClockSet | TestScored)}
    assert notes == {"test_waited": 2, "clock_set": 4, "test_scored": 8}
    assert isinstance(events[-1], ConversationClosed) and timeline.reached == 9
    assert [event.turn for event in timeline.tests if isinstance(event, TestBegan)] == [0, 6]


def test_their_score_stands_beside_ours_and_alone_where_there_is_no_class(run_folder: Path, tmp_path: Path) -> None:
    _, results = imported(run_folder, tmp_path / "r.sqlite3")
    chapter, colours = results.questions
    assert (colours.score, colours.recorded_score, colours.outcome) == (1, 1, "correct")
    assert (chapter.score, chapter.recorded_score, chapter.outcome) == (None, 0.5, "wrong")
    assert chapter.error is not None and "no class here" in chapter.error
    tests = results.backends["LTM Agent 1"].tests
    assert tests is not None
    assert (tests.score, tests.recorded_score, tests.max_score) == (1.5, 1.5, 2)
    assert (tests.differing, tests.not_recomputed) == ((), ("ChapterBreak - 0",))
    assert tests.ltm_score == 40
    assert results.run.settings["agent_costs_usd"] == 4.5 and "rnd_state" not in results.run.settings


def test_a_run_without_a_log_is_read_from_its_results(run_folder: Path, tmp_path: Path) -> None:
    (run_folder / "master_log.jsonl").unlink()
    spoken = {
        "Colours": ["My favourite colour is Teal.", "Noted.", "What is my favourite colour?", "It is Teal."],
        "ChapterBreak": ["Which chapter comes next?\nSay one.", "The second."],
    }
    for number, (dataset, said) in enumerate(spoken.items()):
        path = run_folder / dataset / "0_0.json"
        lines = [
            f"{'Agent' if place % 2 else 'Test'} (2024-05-22 12:1{number}:0{place}.053): {text}"
            for place, text in enumerate(said)
        ]
        told = {"task_log": lines, "actual_responses": said[-1:]}
        path.write_text(json.dumps({**json.loads(path.read_text()), **told}))
    _, results = imported(run_folder, tmp_path / "r.sqlite3")
    reader = Recording.open(tmp_path / "r.sqlite3")
    told = [*reader.events(reader.run().id, "LTM Agent 1")]
    reader.close()
    parts = [event.part for event in told if isinstance(event, MessageSaid)]
    assert parts == ["script", "reply", "question", "reply", "question", "reply"]
    chapter, colours = results.questions
    assert (colours.score, colours.recorded_score, colours.error) == (1, 1, None)
    assert (chapter.score, chapter.recorded_score) == (None, 0.5)
    assert "waits, filler" in str(results.run.settings["imported_without"])


def test_a_score_that_we_do_not_come_to_is_marked(run_folder: Path, tmp_path: Path) -> None:
    (run_folder / "Colours" / "0_0.json").write_text(json.dumps(result(0, ["Teal"])))
    _, results = imported(run_folder, tmp_path / "r.sqlite3")
    tests = results.backends["LTM Agent 1"].tests
    assert tests is not None and tests.differing == ("Colours - 0",)
    assert (results.questions[-1].score, results.questions[-1].recorded_score) == (1, 0)


def without_log(folder: Path) -> None:
    (folder / "master_log.jsonl").unlink()


def empty_log(folder: Path) -> None:
    (folder / "master_log.jsonl").write_text("")


def broken_line(folder: Path) -> None:
    (folder / "master_log.jsonl").write_text('{"type": 99}\n{"type": 1}\n')


def without_result(folder: Path) -> None:
    (folder / "Colours" / "0_0.json").unlink()


def broken_result(folder: Path) -> None:
    (folder / "Colours" / "0_0.json").write_text('{"score": "high"}')


def a_test_outside(folder: Path) -> None:
    line = event(2, "../../etc - passwd", 5)
    (folder / "master_log.jsonl").write_text(json.dumps(line) + "\n")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (without_log, "the run has no master_log.jsonl"),
        (empty_log, "is empty"),
        (broken_line, "line 1: is invalid"),
        (without_result, "has no result of the test Colours - 0"),
        (broken_result, "/score"),
        (a_test_outside, "has no result of the test"),
    ],
)
def test_a_faulty_run_is_one_sentence_and_leaves_no_recording(
    run_folder: Path, tmp_path: Path, spoil: Callable[[Path], None], says: str
) -> None:
    spoil(run_folder)
    with pytest.raises(MemreplayError) as caught:
        import_goodai_run(run_folder, tmp_path / "r.sqlite3")
    assert isinstance(caught.value, DatasetError)
    assert says in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "r.sqlite3").exists()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder"):
        import_goodai_run(tmp_path / "nowhere", tmp_path / "r.sqlite3")


SAYING = "The slow gardener also eats in autumn."


def test_the_callback_counts_from_the_question_and_not_from_a_reset_message(tmp_path: Path) -> None:
    """GoodAI sends the reset message as the last line of the script: here while the callback still waits."""
    test, folder = "Prospective Memory - 0", tmp_path / "run"
    log = [
        event(1, test, 0, tokens=0),
        *exchange(test, 1, f"'{SAYING}' - Mirela Okoye", "A fine saying."),
        *exchange(test, 3, "Add the saying to your 3rd reply.", "I will.", question=True),
        event(9, test, 5),
        event(3, "", 6, message="Where does the Tagus end?", is_question=False),
        event(5, "", 7, message="In Lisbon.", is_question=False),
        *exchange(test, 8, "Forget the saying.", f"Gladly. {SAYING}"),
        event(10, test, 10),
        event(2, test, 11),
    ]
    (folder / "Prospective Memory").mkdir(parents=True)
    (folder / "master_log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    outcome = result(1, []) | {"expected_responses": [[SAYING, "Mirela Okoye", 3]]}
    (folder / "Prospective Memory" / "0_0.json").write_text(json.dumps(outcome))
    _, results = imported(folder, tmp_path / "r.sqlite3")
    (row,) = results.questions
    assert (row.score, row.recorded_score) == (1, 1), row.error


@pytest.mark.shared_data
def test_every_published_score_that_needs_no_judge_is_ours_too(shared_data: Path, tmp_path: Path) -> None:
    timeline, results = imported(shared_data / "goodai" / "benchmark3_1k_gpt4o", tmp_path / "r.sqlite3")
    tests = results.backends["benchmark3_1k_gpt4o"].tests
    assert tests is not None
    assert (tests.total, tests.differing) == (30, ())
    assert tests.not_recomputed == ("Jokes - 0", "Jokes - 1", "Jokes - 2")
    assert tests.recorded_score == pytest.approx(17.5556, abs=1e-3)
    assert timeline.last_turn == 400
