"""A wrong key, an unknown model, an empty account: the run stops soon, and resumes when it is fixed."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from threading import Lock

import pytest

from tests.cli.conftest import RunCli
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, failure
from tests.stubs.tests_to_run import python_dataset

AT_ONCE = 2
QUESTIONS = 5

FATAL = [
    pytest.param(failure(401, "Incorrect API key provided"), "set a valid one", id="a wrong key"),
    pytest.param(failure(404, "no such model"), "add it there, or start another run", id="an unknown model"),
    pytest.param(
        failure(429, "quota", code="insufficient_quota"), "top it up", id="no credit, said as a rate limit"
    ),
]


def options(
    server: OpenAIServer, folder: Path, *more: object, models: tuple[str, ...] = ("stub",)
) -> tuple[object, ...]:
    asked = [part for model in models for part in ("--model", f"openai/{model}")]
    return (
        *("--batch", "--dataset", "identity-01", "--backend", "closed_book", *asked, "--api-base", server.url),
        *("--recording", folder / "r.sqlite3", "--output", folder / "r.json", "--no-cache"),
        *("--concurrency", AT_ONCE, *more),
    )


def outcomes(folder: Path) -> Counter[str]:
    return Counter(row["outcome"] for row in json.loads((folder / "r.json").read_text())["questions"])


def run_status(folder: Path) -> str:
    with sqlite3.connect(folder / "r.sqlite3") as db:
        (status,) = db.execute("select status from runs").fetchone()
    return str(status)


@pytest.mark.parametrize(("wrong", "fix"), FATAL)
def test_it_is_reported_once_and_the_run_resumes_when_it_is_fixed(
    run_cli: RunCli, tmp_path: Path, wrong: Answer, fix: str
) -> None:
    with OpenAIServer([wrong]) as server:
        ran = run_cli(*options(server, tmp_path))
        assert ran.code == 5, ran.err
        assert len(server.requests) <= AT_ONCE
        assert ran.err.count("openai/stub is unavailable") == 1 and fix in ran.err
        assert f"{QUESTIONS} questions not answered" in ran.err and "--resume" in ran.err
        assert "Traceback" not in ran.err and not (tmp_path / "r.json").exists()
        assert run_status(tmp_path) == "interrupted"
        server.behaviour, server.requests = [answer("red")], []
        ran = run_cli(*options(server, tmp_path, "--resume"))
        assert ran.code == 0, ran.err
        assert len(server.requests) == QUESTIONS
    assert outcomes(tmp_path)["error"] == 0 and outcomes(tmp_path).total() == QUESTIONS


def test_a_server_that_is_not_there_is_missing_before_the_first_question(run_cli: RunCli, tmp_path: Path) -> None:
    with OpenAIServer([answer("red")]) as server:
        port = int(server.url.split(":")[2].split("/")[0])
    ran = run_cli(*options(server, tmp_path))
    assert ran.code == 4, ran.err
    assert ran.err.count("openai/stub is unavailable: no connection to its server") == 1
    assert f"{QUESTIONS} questions not answered" in ran.err and "Traceback" not in ran.err
    assert run_status(tmp_path) == "interrupted"
    with OpenAIServer([answer("red")], port=port) as server:
        ran = run_cli(*options(server, tmp_path, "--resume"))
    assert ran.code == 0 and len(server.requests) == QUESTIONS, ran.err


def test_what_was_answered_before_is_kept_and_other_models_go_on(run_cli: RunCli, tmp_path: Path) -> None:
    asked: Counter[str] = Counter()
    one_by_one = Lock()

    def one_runs_dry(received: Received) -> Answer:
        model = received.body["model"]
        with one_by_one:
            asked[model] += 1
            number = asked[model]
        return failure(402, "pay") if model == "poor" and number > 1 else answer("red")

    with OpenAIServer(one_runs_dry) as server:
        here = options(server, tmp_path, models=("poor", "rich"))
        ran = run_cli(*here)
        assert ran.code == 5 and "openai/poor is unavailable" in ran.err and "openai/rich is" not in ran.err
        assert asked["rich"] == QUESTIONS and 1 < asked["poor"] <= 1 + AT_ONCE
        asked.clear()
        server.behaviour = lambda received: (asked.update([received.body["model"]]), answer("red"))[1]
        assert run_cli(*here, "--resume").code == 0
    assert asked == {"poor": QUESTIONS - 1}


def test_a_gateway_that_forbids_one_prompt_forbids_no_other(run_cli: RunCli, tmp_path: Path) -> None:
    forbidden: list[str] = []

    def forbids_one(received: Received) -> Answer:
        if len(server.requests) == 2:
            forbidden.append(received.prompt)
        return failure(403, "request denied") if received.prompt in forbidden else answer("red")

    with OpenAIServer(forbids_one) as server:
        ran = run_cli(*options(server, tmp_path, "--concurrency", 1))
        assert ran.code == 3, ran.err
        assert len(server.requests) == QUESTIONS
    assert outcomes(tmp_path)["error"] == 1


def test_tests_wait_for_a_judge_if_there_is_none(run_cli: RunCli, tmp_path: Path) -> None:
    dataset = python_dataset(tmp_path)

    def refuses_the_judge(received: Received) -> Answer:
        return failure(401, "wrong key") if received.body["model"] == "judge" else answer("red")

    with OpenAIServer(refuses_the_judge) as server:
        here = (
            *("--batch", "--dataset", f"{dataset}:Keys", "--examples", 1, "--memory-span", 200, "--backend", "rag"),
            *("--model", "openai/stub", "--judge", "openai/judge", "--api-base", server.url, "--no-cache"),
            *("--recording", tmp_path / "r.sqlite3", "--output", tmp_path / "r.json"),
        )
        ran = run_cli(*here)
        assert ran.code == 5 and "openai/judge is unavailable" in ran.err, ran.err
        asked = Counter(received.body["model"] for received in server.requests)
        assert asked["judge"] == 1
        server.behaviour, server.requests = [answer('{"score": 1, "reason": "so"}')], []
        assert run_cli(*here, "--resume").code in (0, 3)
        again = Counter(received.body["model"] for received in server.requests)
    assert again["judge"] >= 1 and again["stub"] == 0, "replies of the agent were paid for"


def test_without_its_extractor_no_conversation_is_ingested(run_cli: RunCli, tmp_path: Path) -> None:
    def refuses_the_extractor(received: Received) -> Answer:
        return failure(401, "wrong key") if received.body["model"] == "reads" else answer("red")

    with OpenAIServer(refuses_the_extractor) as server:
        here = (*options(server, tmp_path), "--backend", "hybrid", "--extractor", "openai/reads")
        ran = run_cli(*here)
        assert ran.code == 5 and "openai/reads is unavailable" in ran.err, ran.err
        assert len(server.requests) == 1
        server.behaviour = lambda received: answer('{"facts": []}' if received.body["model"] == "reads" else "red")
        assert run_cli(*here, "--resume").code == 0
    assert outcomes(tmp_path)["error"] == 0
