"""Recall questions graded by a model: its verdict decides, it is accounted apart, and it is asked once."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from tests.cli.conftest import RunCli
from tests.stubs.launcher import Launcher
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, failure

JUDGE = "openai/gpt-4o-mini"
QUESTIONS = 5
"""Of identity-01; each is asked of one memory, and of closed book along with it."""


def is_judging(received: Received) -> bool:
    return received.body["model"] == "gpt-4o-mini"


def material(received: Received) -> dict[str, Any]:
    found: dict[str, Any] = json.JSONDecoder().raw_decode(received.body["messages"][1]["content"])[0]
    return found


def lenient(received: Received) -> Answer:
    """Every reply is the same; the judge finds those of one question wrong, and all others right."""
    if not is_judging(received):
        return answer("Well, about that.")
    wrong = "dog" in material(received)["question"].lower()
    return answer("No." if wrong else "Yes.", prompt_tokens=50, completion_tokens=2)


def models_of(server: OpenAIServer) -> tuple[str, ...]:
    return ("--model", "openai/stub", "--judge", JUDGE, "--api-base", server.url)


def options(server: OpenAIServer, folder: Path, *more: object) -> tuple[object, ...]:
    asked = ("--dataset", "identity-01", "--backend", "full_context", *models_of(server), "--concurrency", 2)
    return ("--batch", *asked, "--recording", folder / "r.sqlite3", "--output", folder / "r.json", *more)


def test_the_judge_decides_and_the_figure_of_the_rules_stands_beside(run_cli: RunCli, tmp_path: Path) -> None:
    with OpenAIServer(lenient) as server:
        ran = run_cli(*options(server, tmp_path, "--output", tmp_path / "r.md", "--output", tmp_path / "r.csv"))
    assert ran.code == 0, ran.err
    asked = [received for received in server.requests if is_judging(received)]
    # Equal replies of memory and closed book to the same question are judged once.
    assert len(asked) == QUESTIONS and len(server.requests) == QUESTIONS * 3
    results = json.loads((tmp_path / "r.json").read_text())
    backend = results["backends"]["full_context"]
    right = sum(material(received)["question"].lower().count("dog") == 0 for received in asked)
    assert backend["accuracy"] == pytest.approx(right / QUESTIONS, abs=1e-6)
    assert {row["decided_by"] for row in results["questions"]} == {"judge"}
    assert {row["grader"]["outcome"] for row in results["questions"]} == {"wrong"}
    assert backend["judge"]["right_by_grader"] == 0 and backend["judge"]["rubrics"] == {"plain": QUESTIONS}
    assert backend["judge"]["tokens"] == {"prompt": 50 * QUESTIONS, "completion": 2 * QUESTIONS, "cached": 0}
    assert backend["judge"]["cost_usd"] > 0 and backend["cost_usd"] is None
    assert backend["tokens"]["prompt"] == 100 * QUESTIONS
    (agreement,) = backend["agreement"]
    assert (agreement["a"], agreement["b"], agreement["n"]) == ("grader", "judge", QUESTIONS)
    assert agreement["only_b"] == right == len(results["disagreements"]) and agreement["kappa"] == 0.0
    assert "the judge agree on" in ran.out and "Cohen's kappa 0.00" in ran.out
    written = (tmp_path / "r.md").read_text()
    assert "### Judge and grader" in written and written.count("\n- disagreement: ") >= right
    assert "judge_verdict" in (tmp_path / "r.csv").read_text().splitlines()[0]
    with sqlite3.connect(tmp_path / "r.sqlite3") as db:
        rows = db.execute("select judge, rubric, verdict, material, instructions from judgements").fetchall()
    assert len(rows) == QUESTIONS * 2
    assert all(row[:2] == (JUDGE, "plain") and "Well, about that." in row[3] and "grade" in row[4] for row in rows)


def test_a_broken_verdict_is_an_error_that_is_retried_without_asking_the_question_again(
    run_cli: RunCli, tmp_path: Path
) -> None:
    def unsure(received: Received) -> Answer:
        return answer("It depends.") if is_judging(received) else answer("Well, about that.")

    with OpenAIServer(unsure) as server:
        ran = run_cli(*options(server, tmp_path, "--no-cache"))
        assert ran.code == 3
        results = json.loads((tmp_path / "r.json").read_text())
        assert results["backends"]["full_context"]["accuracy"] is None
        assert {row["error"] for row in results["questions"]} == {"the judge's reply holds no verdict"}
        assert {row["outcome"] for row in results["questions"]} == {"error"}
        assert results["backends"]["full_context"]["tokens"]["prompt"] == 100 * QUESTIONS
        asked = [received.prompt for received in server.requests if not is_judging(received)]
        server.behaviour = lenient
        again = run_cli(*options(server, tmp_path, "--no-cache", "--resume", "--retry-errors"))
    assert again.code == 0, again.err
    assert [received.prompt for received in server.requests if not is_judging(received)] == asked
    judge = json.loads((tmp_path / "r.json").read_text())["backends"]["full_context"]["judge"]
    assert (judge["answers"], judge["graded"], judge["calls"]) == (QUESTIONS, QUESTIONS, 2 * QUESTIONS)
    assert judge["tokens"]["prompt"] == (50 + 100) * QUESTIONS, "what was paid for stays counted"


def test_a_refused_key_of_the_judge_loses_no_reply_and_resuming_asks_only_the_judge(
    run_cli: RunCli, tmp_path: Path
) -> None:
    def refusing(received: Received) -> Answer:
        return failure(401, "bad key") if is_judging(received) else answer("Well, about that.")

    with OpenAIServer(refusing) as server:
        ran = run_cli(*options(server, tmp_path, "--no-cache"))
        assert ran.code == 5 and "gpt-4o-mini is unavailable" in ran.err
        asked = Counter(received.prompt for received in server.requests if not is_judging(received))
        server.behaviour = lenient
        again = run_cli(*options(server, tmp_path, "--no-cache", "--resume"))
    assert again.code == 0, again.err
    assert Counter(received.prompt for received in server.requests if not is_judging(received)) == asked
    assert sum(asked.values()) == QUESTIONS * 2


def test_a_killed_run_resumes_and_judges_nothing_twice(run_cli: RunCli, launcher: Launcher, tmp_path: Path) -> None:
    with OpenAIServer(lenient) as server:
        run = launcher.start(tmp_path / "log", *options(server, tmp_path))
        run.wait_until(lambda: run.is_over or sum(map(is_judging, server.requests)) >= 2)
        run.signal(SIGKILL)
        run.wait()
        ran = run_cli(*options(server, tmp_path, "--resume"))
    assert ran.code == 0 or "no unfinished run" in ran.err, ran.err
    counted = Counter(received.prompt for received in server.requests)
    # What was under way when the process was killed may be asked once more: two calls at once.
    assert sum(times - 1 for times in counted.values()) <= 2


def test_an_estimate_counts_the_calls_of_the_judge_and_makes_none(run_cli: RunCli, tmp_path: Path) -> None:
    with OpenAIServer(lenient) as server:
        ran = run_cli(*options(server, tmp_path, "--estimate"))
        assert ran.code == 0 and not server.requests
        line = next(line for line in ran.out.splitlines() if "(judge)" in line)
        assert line.split()[2:4] == [str(2 * QUESTIONS), str(2 * QUESTIONS)]
        run_cli(*options(server, tmp_path))
        after = run_cli(*options(server, tmp_path, "--estimate"))
    line = next(line for line in after.out.splitlines() if "(judge)" in line)
    assert line.split()[2:4] == [str(2 * QUESTIONS), "0"], "replies that are paid for are not asked for again"


def judge_calls(text: str) -> int:
    return int(next(line for line in text.splitlines() if "(judge)" in line).split()[3])


def test_an_estimate_counts_the_judging_of_what_is_asked_again(run_cli: RunCli, tmp_path: Path) -> None:
    def reply(received: Received) -> Answer:
        return answer("No.") if is_judging(received) else answer(f"Reply {hash(received.prompt)}.")

    recording = tmp_path / "r.sqlite3"
    with OpenAIServer(reply) as server:
        asked = options(server, tmp_path, "--no-cache", "--limit", 2)
        plain = judge_calls(run_cli(*asked, "--estimate").out)
        both = judge_calls(run_cli(*asked, "--estimate", "--why").out)
        assert run_cli(*asked).code == 0
        why = ("why", recording, *models_of(server), "--no-cache")
        expected = judge_calls(run_cli(*why, "--estimate").out)
        server.requests.clear()
        ran = run_cli(*why)
        made = sum(map(is_judging, server.requests))
    assert ran.code == 0, ran.err
    assert 0 < made <= expected == both - plain
    assert f" {made} judged" in ran.err


def test_bisecting_by_answer_takes_the_word_of_the_judge(run_cli: RunCli, tmp_path: Path) -> None:
    with OpenAIServer(lenient) as server:
        assert run_cli(*options(server, tmp_path)).code == 0
        bisect = ("bisect", tmp_path / "r.sqlite3", "--by", "answer", *models_of(server), "--question")
        found = run_cli(*bisect, "q1")
    assert found.code == 0, found.err
    # By the rules, no reply of this reader is right; the judge accepts them from the first turn on.
    assert "known from the start, known to the end" in found.out
    assert JUDGE in found.out


@pytest.mark.parametrize(
    ("rubric", "code", "said"),
    [("longmemeval", 0, "longmemeval"), ("strict", 2, "rubric strict: expected"), (None, 0, "plain")],
)
def test_the_rubric_is_chosen_by_name(
    run_cli: RunCli, tmp_path: Path, rubric: str | None, code: int, said: str
) -> None:
    given = ("--judge-rubric", rubric) if rubric else ()
    with OpenAIServer(lenient) as server:
        ran = run_cli(*options(server, tmp_path, "--limit", 1, *given))
    assert ran.code == code and said in (ran.out if code == 0 else ran.err)


def test_a_rubric_of_ones_own_is_sent_named_and_part_of_what_a_run_is(run_cli: RunCli, tmp_path: Path) -> None:
    rule = tmp_path / "strict.txt"
    rule.write_text("Only the very words of the expected answer are right.")
    with OpenAIServer(lenient) as server:
        given = (*options(server, tmp_path, "--limit", 1), "--judge-rubric", rule)
        ran = run_cli(*given, "--output", tmp_path / "own.json")
        asked = [one.prompt for one in server.requests if "You grade one reply" in one.prompt]
        rule.write_text("Anything is right.")
        again = run_cli(*given, "--resume")
    assert ran.code == 0 and asked and all("Only the very words" in one for one in asked)
    [rubric] = json.loads((tmp_path / "own.json").read_text())["backends"]["full_context"]["judge"]["rubrics"]
    assert rubric.startswith("strict-")
    assert again.code == 2, "another rule makes another run"
