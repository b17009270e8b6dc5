"""One run under several judges and rubrics: each answer is paid for once, and the table says who disagrees."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import RunCli
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, failure
from tests.stubs.published_results import amb, amb_row, locomo, said

STRICT, LENIENT = "openai/strict", "openai/lenient"


def material(received: Received) -> dict[str, Any]:
    found: dict[str, Any] = json.JSONDecoder().raw_decode(received.body["messages"][1]["content"])[0]
    return found


def judges(received: Received) -> Answer:
    """The lenient judge, and any judge by LoCoMo's rubric, accept everything; the strict one only "bowl"."""
    generous = received.body["model"] == "lenient" or "Be generous" in received.body["messages"][0]["content"]
    right = generous or "bowl" in material(received)["reply"]
    return answer("Yes." if right else "No.", prompt_tokens=50, completion_tokens=2)


@pytest.fixture
def recording(run_cli: RunCli, tmp_path: Path) -> Path:
    rows = (
        amb_row(0, "On 11 June.", said("D1:1"), False),
        amb_row(1, "A blue bowl.", said("D1:3"), True),
        amb_row(2, "Spain.", said("D2:1"), False),
    )
    (tmp_path / "shelf.json").write_text(json.dumps(amb(*rows)))
    path = tmp_path / "r.sqlite3"
    dataset = locomo(tmp_path / "locomo10.json")
    assert (
        run_cli("recordings", "import", tmp_path / "shelf.json", "--recording", path, "--evidence", dataset).code
        == 0
    )
    return path


def command(recording: Path, server: OpenAIServer, *more: object) -> tuple[object, ...]:
    both = ("--judge", STRICT, "--judge", LENIENT, "--rubric", "plain", "--rubric", "locomo")
    return ("rejudge", recording, *both, "--api-base", server.url, "--concurrency", 2, *more)


def test_every_judge_by_every_rubric_and_each_is_paid_once(
    run_cli: RunCli, tmp_path: Path, recording: Path
) -> None:
    with OpenAIServer(judges) as server:
        ran = run_cli(*command(recording, server, "--output", tmp_path / "j.json"))
        assert ran.code == 0, ran.err
        assert len(server.requests) == 3 * 4
        again = run_cli(*command(recording, server, "--no-cache"))
        assert again.code == 0 and len(server.requests) == 3 * 4, "nothing is paid for twice"
        assert "0 answers judged now, 12 judged before" in again.err
    found = json.loads((tmp_path / "j.json").read_text())
    shares = {each["judge"]: (each["right"], each["graded"]) for each in found["accuracy"]}
    assert shares == {
        f"{STRICT}@plain": (1, 3),
        f"{STRICT}@locomo": (3, 3),
        f"{LENIENT}@plain": (3, 3),
        f"{LENIENT}@locomo": (3, 3),
    }
    assert [each["question_id"] for each in found["splits"]] == ["conv-1_q0", "conv-1_q2"]
    assert "The judges split on 2 answers." in ran.out


def test_an_interrupted_rejudging_continues_without_paying_twice(run_cli: RunCli, recording: Path) -> None:
    calls: list[str] = []

    def breaks_off(received: Received) -> Answer:
        calls.append(received.body["model"])
        return judges(received) if len(calls) <= 5 else failure(401)

    with OpenAIServer(breaks_off) as server:
        first = run_cli(*command(recording, server, "--no-cache"))
        assert first.code == 5, first.err
        assert "run the same command again" in first.err
    with sqlite3.connect(recording) as db:
        (kept,) = db.execute('select count(*) from rejudgements where body like \'%"verdict":"%\'').fetchone()
    assert kept == 5
    with OpenAIServer(judges) as server:
        second = run_cli(*command(recording, server, "--no-cache"))
        assert second.code == 0, second.err
        assert len(server.requests) == 12 - 5


def test_reports_and_comparisons_by_another_judge(run_cli: RunCli, tmp_path: Path, recording: Path) -> None:
    with OpenAIServer(judges) as server:
        run_cli(*command(recording, server))
    assert "1/3" in run_cli("report", recording).out
    strict = run_cli("report", recording, "--judged-by", f"{STRICT}@plain", "--output", tmp_path / "s.json")
    lenient = run_cli("report", recording, "--judged-by", f"{LENIENT}@plain")
    assert "1/3" in strict.out and "3/3" in lenient.out, lenient.err
    rows = json.loads((tmp_path / "s.json").read_text())["questions"]
    assert {row["judge"]["model"] for row in rows} == {STRICT}
    compared = run_cli("compare", recording, recording, "--judged-by", f"{LENIENT}@locomo")
    assert compared.code == 0 and "equally many right" in compared.out
    several = run_cli("report", recording, "--judged-by", STRICT)
    assert several.code == 2 and "several fit" in several.err
    unknown = run_cli("report", recording, "--judged-by", "openai/nobody")
    assert unknown.code == 2 and "judged no answer of this run" in unknown.err
    assert "1/3" in run_cli("report", recording).out, "the run's own judgement stays"


def test_a_rubric_of_ones_own_is_sent_and_named(run_cli: RunCli, tmp_path: Path, recording: Path) -> None:
    rule = tmp_path / "mine.txt"
    rule.write_text("Be generous. Everything is right.")
    with OpenAIServer(judges) as server:
        ran = run_cli("rejudge", recording, "--judge", STRICT, "--rubric", rule, "--api-base", server.url)
        assert ran.code == 0, ran.err
        assert "Everything is right." in server.requests[0].body["messages"][0]["content"]
    assert f"{STRICT}@mine-" in ran.out and "3/3" in ran.out


def test_wrong_usage(run_cli: RunCli, tmp_path: Path, recording: Path) -> None:
    assert run_cli("rejudge", recording).code == 2
    assert run_cli("rejudge", recording, "--judge", "memreplay/extractive").code == 2
    assert run_cli("rejudge", recording, "--judge", STRICT, "--rubric", tmp_path / "none.txt").code == 2
    assert run_cli("rejudge", recording, "--rubric", "plain").code == 2
