"""LongMemEval is graded by a model: without one a run says so, and grades no description by rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import RunCli
from tests.stubs.openai_server import OpenAIServer, answer

EXPLANATION = "You mentioned owning a cat, but no hamster."
QUESTIONS = (
    ("q1", "single-session-preference", "What could I cook tonight?", "The user would prefer quinoa."),
    ("q2_abs", "single-session-user", "How old is my hamster?", EXPLANATION),
    ("q3", "single-session-user", "What is my cat called?", "Milo"),
)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    said = [{"role": "user", "content": "My cat is called Milo and I love quinoa.", "has_answer": True}]
    rows = [
        {
            "question_id": id_,
            "question_type": kind,
            "question": question,
            "answer": expected,
            "question_date": "2023/05/30 (Tue) 10:00",
            "haystack_session_ids": ["s1"],
            "haystack_dates": ["2023/05/20 (Sat) 02:21"],
            "haystack_sessions": [[*said, {"role": "assistant", "content": "Nice."}]],
            "answer_session_ids": ["s1"],
        }
        for id_, kind, question, expected in QUESTIONS
    ]
    path = tmp_path / "longmemeval.json"
    path.write_text(json.dumps(rows))
    return path


def test_without_a_judge_a_run_says_so_and_grades_no_description(
    run_cli: RunCli, tmp_path: Path, dataset: Path
) -> None:
    ran = run_cli(
        "--batch", "--dataset", dataset, "--backend", "rag", "--recording", tmp_path / "r.sqlite3",
        "--output", tmp_path / "r.json",
    )  # fmt: skip
    assert ran.code == 3
    assert ran.err.index("--judge MODEL") < ran.err.index("asking 3 questions")
    rows = {row["question_id"]: row for row in json.loads((tmp_path / "r.json").read_text())["questions"]}
    assert rows["q1"]["outcome"] == "error" and "description of a good reply" in rows["q1"]["error"]
    assert rows["q3"]["outcome"] in ("correct", "wrong")


def test_its_judge_gets_the_explanation_of_the_dataset(run_cli: RunCli, tmp_path: Path, dataset: Path) -> None:
    with OpenAIServer([answer("yes")]) as server:
        ran = run_cli(
            "--batch", "--dataset", dataset, "--backend", "rag", "--model", "openai/reader",
            "--api-base", server.url, "--judge", "openai/judge",
            "--recording", tmp_path / "r.sqlite3", "--output", tmp_path / "r.json",
        )  # fmt: skip
        judged = [one.prompt for one in server.requests if one.body["model"] == "judge"]
    assert ran.code == 0 and "none is named" not in ran.err
    assert any(EXPLANATION in prompt for prompt in judged)
    rows = json.loads((tmp_path / "r.json").read_text())["questions"]
    assert {row["outcome"] for row in rows} == {"correct"}
