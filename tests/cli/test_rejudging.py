"""One run under several judges and rubrics: each answer is paid for once, and the table says who disagrees."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from sqlite_utils import Database

from memreplay.recording.annotations import RecordedAnnotations
from memreplay.recording.reader import Recording
from memreplay.timeline.timeline import ask_key
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
        assert "0 judgements made now, 12 made before" in again.err
    found = json.loads((tmp_path / "j.json").read_text())
    shares = {each["judge"]: (each["right"], each["graded"]) for each in found["accuracy"]}
    assert shares == {
        "rules": (1, 3),
        f"{STRICT}@plain": (1, 3),
        f"{STRICT}@locomo": (3, 3),
        f"{LENIENT}@plain": (3, 3),
        f"{LENIENT}@locomo": (3, 3),
    }
    assert [each["question_id"] for each in found["splits"]] == ["conv-1_q0", "conv-1_q2"]
    assert "The judges split on 2 answers." in ran.out
    printed = [line.split() for line in ran.out.splitlines()]
    assert ["1/3", "33.3"] in [cells[2:4] for cells in printed if cells[:1] == ["rules"]]
    pairs = {(each["a"], each["b"]): (each["n"], each["share"]) for each in found["agreement"]}
    assert (pairs["rules", f"{STRICT}@plain"], len(pairs)) == ((3, 1.0), 10)


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


def test_an_estimate_counts_what_is_not_judged_yet_and_asks_nobody(run_cli: RunCli, recording: Path) -> None:
    with OpenAIServer(judges) as server:
        first = run_cli(*command(recording, server, "--estimate"))
        assert first.code == 0 and not server.requests, first.err
        rows = [line.split() for line in first.out.splitlines() if line.strip().startswith("judge by")]
        assert [(row[2], row[3], row[4], row[5]) for row in rows] == [
            ("plain", STRICT, "3", "3"),
            ("locomo", STRICT, "3", "3"),
            ("plain", LENIENT, "3", "3"),
            ("locomo", LENIENT, "3", "3"),
        ]
        run_cli("rejudge", recording, "--judge", STRICT, "--rubric", "plain", "--api-base", server.url)
        left = run_cli(*command(recording, server, "--estimate"))
        asked = {tuple(row[2:4]): row[4] for row in map(str.split, left.out.splitlines()) if row[:1] == ["judge"]}
        assert asked["plain", STRICT] == "–" and asked["locomo", STRICT] == "3"
        assert len(server.requests) == 3
    assert run_cli("rejudge", recording, "--estimate").code == 2


def test_the_page_has_the_tables_and_every_split(run_cli: RunCli, tmp_path: Path, recording: Path) -> None:
    page = tmp_path / "judges.html"
    with OpenAIServer(judges) as server:
        ran = run_cli(*command(recording, server, "--output", page))
    assert ran.code == 0, ran.err
    text = page.read_text()
    assert "Accuracy by judge and rubric" in text and "Agreement of the judges" in text
    assert "The judges split on 2 answers." in text and "conv-1_q2" in text
    assert "Every wrong answer" not in text and "memreplay rejudge r.sqlite3 --run" in text


def test_labels_by_hand_measure_the_judges_and_correct_the_accuracy(run_cli: RunCli, tmp_path: Path) -> None:
    """Of 40 answers the judge accepts 30: all 20 right ones and 10 of the 20 wrong ones."""
    rows = [
        amb_row(1, f"A {'bowl' if number < 30 else 'cup'} ({number}).", said("D1:3"), number < 20)
        for number in range(40)
    ]
    (tmp_path / "shelf.json").write_text(json.dumps(amb(*rows)))
    path = tmp_path / "r.sqlite3"
    dataset = locomo(tmp_path / "locomo10.json")
    run_cli("recordings", "import", tmp_path / "shelf.json", "--recording", path, "--evidence", dataset)
    with closing(Recording.open(path)) as opened:
        run = opened.run()
        asks = [answer.asked for answer in opened.asks(run.id, "conv-1")]
        conversation_key = opened.conversation_key(run.id, "conv-1")
    with closing(sqlite3.connect(path)) as db, db:
        labels = RecordedAnnotations(lambda: nullcontext(Database(db)), conversation_key, path, (), (), {})
        for asked in asks:
            labels.set_label(ask_key(asked), "right" if asked.repeat < 20 else "wrong")
    with OpenAIServer(judges) as server:
        ran = run_cli(
            "rejudge", path, "--judge", STRICT, "--rubric", "plain", "--api-base", server.url, "--output", "-"
        )
    by_rules, found = json.loads(ran.out)["calibration"]
    assert (by_rules["judge"], by_rules["labels"]) == ("rules", 40)
    assert (found["labels"], found["sensitivity"], found["specificity"]) == (40, 1.0, 0.5)
    assert (found["raw"], found["corrected"]) == (0.75, 0.5)
    assert found["corrected_ci95"][0] < 0.5 < found["corrected_ci95"][1]
