"""``memreplay --batch`` from options to files."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import RunCli
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, failure

ALL = ("--backend", "hybrid", "--backend", "rag", "--backend", "full_context", "--backend", "closed_book")


def without_times_and_ids(results: dict[str, Any]) -> dict[str, Any]:
    for key in ("id", "started_at", "finished_at"):
        del results["run"][key]
    for backend in results["backends"].values():
        del backend["latency_ms"]
        backend["writing"] = backend["writing"] and {**backend["writing"], "ms": 0}
    for row in results["questions"]:
        for key in ("ms", "recall_ms"):
            del row[key]
        row["hits"] = [{key: value for key, value in hit.items() if key != "id"} for hit in row["hits"]]
    return results


def test_a_run_is_recorded_scored_and_written(run_cli: RunCli, tmp_path: Path) -> None:
    recording, output = tmp_path / "run.sqlite3", tmp_path / "results.json"
    ran = run_cli("--batch", "--dataset", "identity-01", *ALL, "--recording", recording, "--output", output)
    assert ran.code == 0, ran.err
    assert "hybrid" in ran.out and "not a language model" in ran.out
    assert "\x1b" not in ran.out + ran.err
    results = json.loads(output.read_text())
    assert list(results) == [
        "schema_version",
        "run",
        "backends",
        "comparisons",
        "prompt_comparisons",
        "option_style",
        "answer_key",
        "tests_written_usd",
        "fit",
        "agreement",
        "disagreements",
        "questions",
    ]
    assert list(results["backends"]) == ["hybrid", "rag", "full_context", "closed_book"]
    assert [row["backend"] for row in results["questions"][:4]] == ["hybrid", "rag", "full_context", "closed_book"]
    assert len(results["questions"]) == 20
    assert results["backends"]["closed_book"]["accuracy"] == 0
    assert results["backends"]["rag"]["accuracy"] > 0.5
    assert results["backends"]["full_context"]["retrieval"]["evidence_in_prompt"] == 1
    assert results["run"]["datasets"] == ["identity-01"]
    with sqlite3.connect(recording) as db:
        assert db.execute("select status from runs").fetchall() == [("finished",)]


def test_report_writes_the_same_results_again_from_the_file_alone(run_cli: RunCli, tmp_path: Path) -> None:
    recording, first = tmp_path / "run.sqlite3", tmp_path / "first.json"
    run_cli("--batch", "--dataset", "identity-01", "--backend", "rag", "--recording", recording, "--output", first)
    again = run_cli("report", recording, "--output", "-")
    assert again.code == 0
    assert again.out == first.read_text()


def test_equal_settings_give_equal_results_whatever_the_concurrency(run_cli: RunCli, tmp_path: Path) -> None:
    outputs = []
    for concurrency in (1, 8):
        output = tmp_path / f"{concurrency}.json"
        run_cli(
            "--batch", "--dataset", "identity-0[12]", *ALL, "--concurrency", concurrency, "--no-cache",
            "--recording", tmp_path / f"{concurrency}.sqlite3", "--output", output,
        )  # fmt: skip
        outputs.append(without_times_and_ids(json.loads(output.read_text())))
        outputs[-1]["run"]["settings"].pop("concurrency")
    assert outputs[0] == outputs[1]


def test_standard_output_carries_json_and_nothing_else(run_cli: RunCli, tmp_path: Path) -> None:
    ran = run_cli(
        "--batch", "--dataset", "identity-01", "--backend", "closed_book", "--limit", 2,
        "--recording", tmp_path / "r.sqlite3", "--output", "-", "--output", "-",
    )  # fmt: skip
    results = json.loads(ran.out)
    assert [row["question_id"] for row in results["questions"]] == ["identity-01-q1", "identity-01-q2"]


def test_the_first_run_of_all_makes_the_folder_of_recordings(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "home" / "recordings"
    monkeypatch.setattr("memreplay.paths.recordings_folder", lambda: folder)
    ran = run_cli("--batch", "--dataset", "identity-01", "--backend", "closed_book", "--limit", 1)
    assert ran.code == 0, ran.err
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".sqlite3"]


def test_a_recordings_folder_that_cannot_be_created_is_reported_with_a_way_out(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("memreplay.paths.recordings_folder", lambda: tmp_path / "file" / "recordings")
    ran = run_cli("--batch", "--dataset", "identity-01", "--backend", "closed_book", "--limit", 1)
    assert ran.code == 2 and "it has to be writable" in ran.err
    assert "Traceback" not in ran.err


def test_below_the_threshold_the_exit_code_is_1_and_an_error_wins_over_it(run_cli: RunCli, tmp_path: Path) -> None:
    common = ("--batch", "--dataset", "identity-01", "--fail-under", "0.9", "--recording")
    assert run_cli(*common, tmp_path / "a.sqlite3", "--backend", "oracle").code in (0, 1)
    assert run_cli(*common, tmp_path / "b.sqlite3", "--backend", "closed_book").code == 1


def test_errors_of_the_control_that_is_asked_along_are_errors_of_the_run(run_cli: RunCli, tmp_path: Path) -> None:
    def knows_nothing_by_itself(received: Received) -> Answer:
        return answer("Arnau") if "Arnau" in received.prompt else failure(400, "no context")

    run = (
        *("--batch", "--dataset", "identity-01", "--backend", "full_context", "--limit", 2),
        *("--model", "openai/stub", "--recording", tmp_path / "r.sqlite3", "--output", tmp_path / "out.json"),
    )
    with OpenAIServer(knows_nothing_by_itself) as server:
        failed = run_cli(*run, "--api-base", server.url)
        server.behaviour = [answer("Arnau")]
        retried = run_cli(*run, "--api-base", server.url, "--resume", "--retry-errors")
    assert "the control closed_book failed on 2 of 2 questions" in " ".join(failed.out.split())
    assert (failed.code, retried.code) == (3, 0), retried.err
    rows = json.loads((tmp_path / "out.json").read_text())["questions"]
    assert {row["backend"] for row in rows} == {"full_context"}, "the control has no rows"


def test_a_question_that_ends_in_an_error_is_no_wrong_answer(run_cli: RunCli, tmp_path: Path) -> None:
    rows = [
        {
            "sample_id": "conv-1",
            "conversation": {
                "speaker_a": "Ann",
                "speaker_b": "Bea",
                "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "My kayak is red."}],
                "session_1_date_time": "1:56 pm on 8 May, 2023",
            },
            "qa": [
                {"question": "What colour is the kayak?", "answer": "red", "evidence": ["D1:1"], "category": 4},
                {"question": "What does Ann think of it?", "answer": "nothing", "evidence": [], "category": 3},
                {"question": "What does Ann row?", "answer": "a canoe", "evidence": ["D1:1"], "category": 4},
            ],
        }
    ]
    dataset, output = tmp_path / "own.json", tmp_path / "results.json"
    dataset.write_text(json.dumps(rows))
    ran = run_cli(
        "--batch", "--dataset", dataset, "--backend", "oracle", "--fail-under", "0.9",
        "--recording", tmp_path / "r.sqlite3", "--output", output,
    )  # fmt: skip
    assert ran.code == 3, "an error weighs more than a low score"
    assert "1 answer ended in an error; no retry can mend that" in ran.err and "--retry-errors" not in ran.err
    oracle = json.loads(output.read_text())["backends"]["oracle"]["recall"]
    assert (oracle["total"], oracle["graded"], oracle["correct"], oracle["errors"]) == (3, 2, 1, 1)


def test_what_was_asked_is_not_asked_again_on_resume(run_cli: RunCli, tmp_path: Path) -> None:
    undisturbed, output = tmp_path / "undisturbed.json", tmp_path / "resumed.json"
    common = ("--batch", "--dataset", "identity-01", *ALL, "--no-cache")
    run_cli(*common, "--recording", tmp_path / "u.sqlite3", "--output", undisturbed)
    recording = tmp_path / "r.sqlite3"
    run_cli(*common, "--recording", recording, "--output", tmp_path / "x.json")
    kept = _make_it_look_killed(recording)
    ran = run_cli(*common, "--recording", recording, "--resume", "--output", output)
    assert ran.code == 0, ran.err
    with sqlite3.connect(recording) as db:
        replies = db.execute("select key, body from events where kind = 'reply_received' order by key").fetchall()
        assert replies[: len(kept)] == kept
        assert len(replies) == 20
        assert db.execute("select count(*) from events where kind = 'question_asked'").fetchone() == (20,)
    first, second = (without_times_and_ids(json.loads(path.read_text())) for path in (undisturbed, output))
    assert first == second
    assert run_cli(*common, "--recording", recording, "--resume").code == 2


def test_resuming_after_the_dataset_was_edited_says_that_it_changed(run_cli: RunCli, tmp_path: Path) -> None:
    dataset, recording = tmp_path / "own.json", tmp_path / "r.sqlite3"
    turns = [{"role": "user", "content": "I have a red canoe."}, {"role": "assistant", "content": "Nice."}]
    asked = [{"question": "What colour is the canoe?", "expectedAnswer": "red", "expectedEntities": ["red"]}]
    asked[0] |= {"infoLocation": "early", "salienceLevel": "high"}
    own = {"id": "own", "language": "en", "tags": [], "turns": turns, "recallQuestions": asked}
    dataset.write_text(json.dumps(own))
    common = ("--batch", "--dataset", dataset, "--backend", "full_context", "--recording", recording)
    assert run_cli(*common).code == 0
    with sqlite3.connect(recording) as db:
        db.execute("update runs set status = 'interrupted'")
    turns[1]["content"] = "Very nice."
    dataset.write_text(json.dumps(own))
    edited = run_cli(*common, "--resume")
    other = run_cli(*common, "--resume", "--top-k", 3)
    assert (edited.code, "the dataset" in edited.err) == (2, True), edited.err
    assert (other.code, "the dataset" in other.err) == (2, False), other.err


def _make_it_look_killed(recording: Path) -> list[tuple[int, str]]:
    """Take back what came after the eighth reply, and the score of the eighth."""
    with sqlite3.connect(recording) as db:
        (eighth,) = db.execute(
            "select key from events where kind = 'reply_received' order by key limit 1 offset 7"
        ).fetchone()
        db.execute("delete from events where key > ?", [eighth])
        db.execute("update runs set status = 'running', finished_at = null")
        return db.execute("select key, body from events where kind = 'reply_received' order by key").fetchall()


def test_replies_of_an_earlier_run_are_reused_unless_refused(run_cli: RunCli, tmp_path: Path) -> None:
    def reused(name: str, *more: str) -> set[bool]:
        path = tmp_path / f"{name}.sqlite3"
        asked = ("--batch", "--dataset", "identity-01", "--backend", "rag", "--recording", path)
        run_cli(*asked, "--model", "openai/stub", "--api-base", server.url, *more)
        with sqlite3.connect(path) as db:
            bodies = db.execute("select body from events where kind = 'reply_received'").fetchall()
        return {json.loads(body)["reply"].get("reused", False) for (body,) in bodies}

    with OpenAIServer(lambda received: answer("Gemma")) as server:
        assert reused("first") == {False}
        assert reused("second") == {True}
        assert reused("third", "--no-cache") == {False}


@pytest.mark.usefixtures("embedded_by_words")
def test_real_questions_over_long_conversations(run_cli: RunCli, shared_data: Path, tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    ran = run_cli(
        "--batch", "--dataset", shared_data / "locomo" / "mc10_dev.jsonl", "--limit", 12,
        "--backend", "hybrid", "--backend", "closed_book",
        "--recording", tmp_path / "r.sqlite3", "--output", output,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    backends = json.loads(output.read_text())["backends"]
    memory, control = (backends[name]["multiple_choice"] for name in ("hybrid", "closed_book"))
    assert memory["accuracy_without_adversarial"] > control["accuracy_without_adversarial"] + 0.2


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--backend", "hybird"), 2, "hybird"),
        (("--dataset", "identity-99"), 2, "identity-99"),
        (("--dataset", "no/such/file.json"), 2, "no/such/file.json"),
        (("--output", "results.xlsx"), 2, ".xlsx"),
        (("--output", "no/such/folder/results.json"), 2, "existing folder"),
        (("--top-k", "0"), 2, "top_k"),
        (("--resume",), 2, "--recording"),
        (("--sample", "5", "--limit", "5"), 2, "--sample"),
        (("--retry-errors",), 2, "--resume"),
        (("--offline", "--no-cache"), 2, "--no-cache"),
        (("--offline", "--redis-url", "redis://:secret@redis.example.com/0"), 2, "redis.example.com"),
        (("--repeats", "0"), 2, "repeats"),
        (("--model", "openai/gpt-4o-mini"), 4, "OPENAI_API_KEY"),
        (("--redis-url", "redis://:secret@127.0.0.1:1/0"), 4, "127.0.0.1:1"),
        (("--qdrant-url", "http://127.0.0.1:1"), 4, "127.0.0.1:1"),
    ],
)
def test_bad_input_is_one_clear_sentence_and_its_exit_code(
    run_cli: RunCli, tmp_path: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    chosen = () if "--dataset" in arguments else ("--dataset", "identity-01")
    recording = () if "--resume" in arguments else ("--recording", tmp_path / "r.sqlite3")
    ran = run_cli("--batch", *chosen, *recording, *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    assert "Traceback" not in ran.err and "secret" not in ran.err
    assert not (tmp_path / "r.sqlite3").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"id": "x", "turns": [', "line 1"),
        ('{"id": "x", "turns": [{"role": "user", "content": "hi"}]}', "recallQuestions"),
        ('{"question_id": "conv-1_q0", "choices": ["a"], "haystack_sessions": []}\n', "line 1/question"),
        ("[]", "expected"),
    ],
)
def test_a_broken_dataset_is_reported_by_file_and_place(
    run_cli: RunCli, tmp_path: Path, content: str, says: str
) -> None:
    path = tmp_path / "broken.json"
    path.write_text(content)
    ran = run_cli("--batch", "--dataset", path, "--recording", tmp_path / "r.sqlite3")
    assert (ran.code, ran.out) == (2, "")
    assert str(path) in ran.err and says in ran.err
    assert len(ran.err.strip().splitlines()) == 1
