"""Where a rule of grading fails on a reply, its row is an error with the reason, and can be graded again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memreplay.conversations.models import Question, QuestionKind
from memreplay.errors import UsageError
from memreplay.grading import Score
from memreplay.llm.prompts import KINDS
from tests.cli.conftest import RunCli
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer
from tests.unit.conversations.samples import locomo_sample

ODD = "A very odd reply."
TOPIC = "bike"
REASON = "grading failed: StopIteration"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """It replies oddly to what is asked about the bike, and knows nothing else."""

    def reply(received: Received) -> Answer:
        asked = received.prompt.rpartition("\n\nQuestion: ")[2].partition("\n")[0]
        return answer(ODD if TOPIC in asked.lower() else "I cannot say.")

    with OpenAIServer(reply) as made:
        yield made


@contextmanager
def failing(kind: QuestionKind = "recall") -> Iterator[None]:
    """The rules for a kind of question end an iteration where nobody expects that, as ``next`` does."""
    sound = KINDS[kind].score

    def score(question: Question, text: str) -> Score:
        if text == ODD:
            raise StopIteration
        return sound(question, text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, kind, replace(KINDS[kind], score=score))  # type: ignore[arg-type]
        yield


@contextmanager
def rule(name: str, fails: Callable[..., bool]) -> Iterator[None]:
    """A rule that fails on what ``fails`` says."""
    module, _, attribute = name.rpartition(".")
    sound = getattr(__import__(module, fromlist=[attribute]), attribute)

    def broken(*arguments: Any) -> Any:
        if fails(*arguments):
            raise ZeroDivisionError("of nothing\nby nothing")
        return sound(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(name, broken)
        yield


def models_of(server: OpenAIServer) -> tuple[str, ...]:
    return ("--model", "openai/stub", "--api-base", server.url)


def options(
    server: OpenAIServer, folder: Path, *more: object, dataset: object = "identity-01"
) -> tuple[object, ...]:
    asked = ("--dataset", dataset, "--backend", "full_context", "--model", "openai/stub", "--no-cache")
    files = ("--recording", folder / "r.sqlite3", "--output", folder / "r.json")
    return ("--batch", *asked, "--api-base", server.url, *files, *more)


def rows_in(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((folder / "r.json").read_text())["questions"]
    return rows


def the_odd_row(folder: Path) -> dict[str, Any]:
    (row,) = [row for row in rows_in(folder) if row["reply"] == ODD]
    return row


def test_a_rule_that_fails_costs_its_row_which_is_graded_again_and_never_asked_again(
    run_cli: RunCli, server: OpenAIServer, tmp_path: Path
) -> None:
    with failing():
        ran = run_cli(*options(server, tmp_path))
    assert ran.code == 3 and "Traceback" not in ran.err
    row = the_odd_row(tmp_path)
    assert (row["outcome"], row["score"], row["error"], row["failure"]) == ("error", None, REASON, "error")
    assert row["tokens"]["prompt"] == 100 and row["failure_detail"] == REASON
    backend = json.loads((tmp_path / "r.json").read_text())["backends"]["full_context"]
    recall = backend["recall"]
    assert recall["errors"] == 1 and recall["graded"] + recall["errors"] == recall["total"]
    assert REASON in ran.out
    asked = len(server.requests)

    # The same rules fail again, and the run ends as it did.
    with failing():
        assert run_cli(*options(server, tmp_path, "--resume", "--retry-errors")).code == 3
        assert the_odd_row(tmp_path)["error"] == REASON
    reported = run_cli("report", tmp_path / "r.sqlite3", "--output", tmp_path / "r.json")
    assert reported.code == 0 and the_odd_row(tmp_path)["outcome"] == "wrong"
    with sqlite3.connect(tmp_path / "r.sqlite3") as db:
        stored = "select count(*) from scores where outcome = 'error'"
        assert db.execute(stored).fetchone() == (0,)
    again = run_cli(*options(server, tmp_path, "--resume", "--retry-errors"))
    assert again.code == 0 and the_odd_row(tmp_path)["outcome"] == "wrong"
    assert len(server.requests) == asked
    with sqlite3.connect(tmp_path / "r.sqlite3") as db:
        (scores,) = db.execute("select count(*) from events where kind = 'answer_scored'").fetchone()
        (failed,) = db.execute("select count(*) from events where body like '%grading failed%'").fetchone()
    assert (scores, failed) == (asked, 0)


def test_what_is_not_about_one_answer_ends_the_run(
    run_cli: RunCli, server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(question: Question, text: str) -> Score:
        raise UsageError("the rules cannot be used here")

    monkeypatch.setitem(KINDS, "recall", replace(KINDS["recall"], score=refusing))  # type: ignore[arg-type]
    ran = run_cli(*options(server, tmp_path))
    assert ran.code == 2 and "the rules cannot be used here" in ran.err


def test_a_reply_of_the_judge_that_cannot_be_read_is_read_again(
    run_cli: RunCli, server: OpenAIServer, tmp_path: Path
) -> None:
    def judging(received: Received) -> Answer:
        return answer("Yes." if received.body["model"] == "judge" else "I cannot say.")

    server.behaviour = judging
    judged = ("--judge", "openai/judge")
    with rule("memreplay.llm.judging.without_reasoning", lambda text: text == "Yes."):
        ran = run_cli(*options(server, tmp_path, *judged))
    assert ran.code == 3, ran.err
    said = {(row["outcome"], row["error"], row["judge"]["reply"]) for row in rows_in(tmp_path)}
    assert said == {("error", "grading failed: ZeroDivisionError: of nothing by nothing", "Yes.")}
    asked = len(server.requests)
    assert run_cli("report", tmp_path / "r.sqlite3", "--output", tmp_path / "r.json").code == 0
    right = {(row["outcome"], row["error"], row["judge"]["verdict"]) for row in rows_in(tmp_path)}
    assert right == {("correct", None, "right")}
    again = run_cli(*options(server, tmp_path, *judged, "--resume", "--retry-errors"))
    assert again.code == 0 and {row["outcome"] for row in rows_in(tmp_path)} == {"correct"}
    assert len(server.requests) == asked


def test_where_a_judge_decides_the_rules_may_fail(run_cli: RunCli, server: OpenAIServer, tmp_path: Path) -> None:
    def judging(received: Received) -> Answer:
        return answer("Yes." if received.body["model"] == "judge" else ODD)

    server.behaviour = judging
    with failing():
        ran = run_cli(*options(server, tmp_path, "--judge", "openai/judge"))
    assert ran.code == 0, ran.err
    assert {(row["outcome"], row["error"], row["grader"]["outcome"]) for row in rows_in(tmp_path)} == {
        ("correct", None, "error")
    }


def test_a_verdict_that_fails_is_named_and_the_answer_keeps_its_score(
    run_cli: RunCli, server: OpenAIServer, tmp_path: Path
) -> None:
    with rule("memreplay.scoring.attribution.is_abstention", lambda text: text == ODD):
        ran = run_cli(*options(server, tmp_path))
    assert ran.code == 0, ran.err
    row = the_odd_row(tmp_path)
    assert (row["outcome"], row["error"], row["failure"]) == ("wrong", None, None)
    assert row["failure_detail"] == "No verdict: grading failed: ZeroDivisionError: of nothing by nothing"
    assert "verdicts: 1 answer got none" in " ".join(ran.out.split())
    assert {row["failure"] for row in rows_in(tmp_path) if row["reply"] != ODD} == {"abstained"}


def test_a_figure_of_a_row_that_fails_costs_that_row(run_cli: RunCli, server: OpenAIServer, tmp_path: Path) -> None:
    with rule("memreplay.scoring.rows.is_abstention", lambda text: text == ODD):
        ran = run_cli(*options(server, tmp_path))
    assert ran.code == 3, ran.err
    row = the_odd_row(tmp_path)
    assert (row["outcome"], row["failure"]) == ("error", "error") and row["error"].startswith("grading failed: ")
    assert run_cli("report", tmp_path / "r.sqlite3", "--output", tmp_path / "r.json").code == 0
    assert the_odd_row(tmp_path)["outcome"] == "wrong"


def test_a_published_metric_that_fails_costs_its_row(run_cli: RunCli, server: OpenAIServer, tmp_path: Path) -> None:
    garden = tmp_path / "garden.json"
    garden.write_text(json.dumps([locomo_sample()]))
    server.behaviour = [answer(ODD), answer("I cannot say."), answer("I cannot say."), answer("I cannot say.")] * 9
    with rule("memreplay.scoring.published.locomo_f1", lambda category, expected, reply: reply == ODD):
        ran = run_cli(*options(server, tmp_path, "--concurrency", 1, dataset=garden))
    assert ran.code == 3, ran.err
    rows = rows_in(tmp_path)
    odd = [row for row in rows if row["reply"] == ODD]
    assert 0 < len(odd) < len(rows) and {row["outcome"] for row in odd} == {"error"}
    assert "error" not in {row["outcome"] for row in rows if row["reply"] != ODD}


def test_an_answer_key_that_cannot_be_applied_costs_its_row(
    run_cli: RunCli, server: OpenAIServer, tmp_path: Path
) -> None:
    assert run_cli(*options(server, tmp_path)).code == 0
    key = tmp_path / "key.json"
    entries = {row["question_id"]: {"answer": "Rex", "reason": "Another name."} for row in rows_in(tmp_path)}
    key.write_text(json.dumps(entries))
    report = ("report", tmp_path / "r.sqlite3", "--output", tmp_path / "r.json", "--answer-key", key)
    with rule("memreplay.scoring.answer_key.score_recall", lambda question, text: text == ODD):
        assert run_cli(*report).code == 0
    row = the_odd_row(tmp_path)
    assert row["outcome"] == "error" and row["error"].startswith("grading failed: ") and row["adjusted"] is None
    assert run_cli(*report).code == 0 and the_odd_row(tmp_path)["adjusted"]["outcome"] == "wrong"


def test_a_reask_that_cannot_be_graded_is_an_error_and_graded_again(
    run_cli: RunCli, server: OpenAIServer, tmp_path: Path
) -> None:
    assert run_cli(*options(server, tmp_path)).code == 0
    why = ("why", tmp_path / "r.sqlite3", *models_of(server), "--no-cache", "--output", tmp_path / "r.json")
    with failing():
        ran = run_cli(*why)
    assert ran.code == 3 and "Traceback" not in ran.err
    asked = len(server.requests)

    def of_odd_row() -> set[tuple[str, str | None]]:
        return {(each["outcome"], each["error"]) for each in the_odd_row(tmp_path)["counterfactuals"]}

    assert of_odd_row() == {("error", REASON)}
    assert run_cli("report", tmp_path / "r.sqlite3", "--output", tmp_path / "r.json").code == 0
    assert of_odd_row() == {("wrong", None)}
    again = run_cli(*why)
    assert again.code == 0 and of_odd_row() == {("wrong", None)}
    assert len(server.requests) == asked


def test_a_changed_prompt_that_cannot_be_made_is_an_error(
    run_cli: RunCli, server: OpenAIServer, tmp_path: Path
) -> None:
    assert run_cli(*options(server, tmp_path)).code == 0
    why = ("why", tmp_path / "r.sqlite3", *models_of(server), "--no-cache", "--output", tmp_path / "r.json")
    with rule("memreplay.debugger.what_if.apart", lambda units: True):
        ran = run_cli(*why)
    assert ran.code == 3 and "Traceback" not in ran.err
    (found,) = {
        each["error"]
        for row in rows_in(tmp_path)
        for each in row["counterfactuals"] or ()
        if each["intervention"] == "evidence_only"
    }
    assert found.startswith("grading failed: ZeroDivisionError")


@pytest.mark.parametrize("by", ["answer", "prompt", "stored"])
def test_bisecting_says_that_the_rules_fail(run_cli: RunCli, server: OpenAIServer, tmp_path: Path, by: str) -> None:
    assert run_cli(*options(server, tmp_path)).code == 0
    (id_,) = [row["question_id"] for row in rows_in(tmp_path) if row["reply"] == ODD]
    found = "given_holds" if by == "prompt" else "stored_at"
    with failing(), rule(f"memreplay.runtime.bisecting.{found}", lambda *arguments: True):
        ran = run_cli("bisect", tmp_path / "r.sqlite3", "--question", id_, "--by", by, *models_of(server))
    assert ran.code == 3 and "grading failed: " in ran.out and "Traceback" not in ran.err


def test_an_interrupted_run_with_a_reply_that_cannot_be_graded_is_finished(
    run_cli: RunCli, server: OpenAIServer, tmp_path: Path
) -> None:
    assert run_cli(*options(server, tmp_path)).code == 0
    with sqlite3.connect(tmp_path / "r.sqlite3") as db:
        # As an error in the middle of the run left it: replies are on disk before they are graded.
        db.execute("delete from events where kind = 'answer_scored'")
        db.execute("update runs set status = 'interrupted', finished_at = null")
    asked = len(server.requests)
    with failing():
        ran = run_cli(*options(server, tmp_path, "--resume"))
    assert ran.code == 3 and the_odd_row(tmp_path)["error"] == REASON
    assert len(server.requests) == asked


def test_a_branch_whose_answer_cannot_be_graded_is_complete(
    run_cli: RunCli, server: OpenAIServer, tmp_path: Path
) -> None:
    assert run_cli(*options(server, tmp_path)).code == 0
    fork = ("fork", tmp_path / "r.sqlite3", "--at", 0, "--set", "top_k=3", *models_of(server), "--no-cache")
    with failing():
        ran = run_cli(*fork)
    assert ran.code == 3 and "Traceback" not in ran.err
    asked = len(server.requests)
    again = run_cli(*fork)
    assert again.code == 0 and len(server.requests) == asked
