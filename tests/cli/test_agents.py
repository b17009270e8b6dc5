"""``serve-backend`` and ``--backend http://…`` from the outside."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import RunCli
from tests.stubs.launcher import Launcher, Run
from tests.stubs.openai_server import OpenAIServer, answer

_ADDRESS = re.compile(r"http://\S+/run_turn\b.*\n")


Serving = Callable[..., AbstractContextManager[tuple[Run, str]]]


@pytest.fixture
def serving(launcher: Launcher, tmp_path: Path) -> Serving:
    """A service in a process of its own, and the address that it says it has."""

    @contextmanager
    def serve(*arguments: str) -> Iterator[tuple[Run, str]]:
        run = launcher.start(tmp_path / "log", "serve-backend", *arguments, "--port", 0)
        run.wait_until(lambda: run.is_over or _ADDRESS.search(run.said))
        address = _ADDRESS.search(run.said)
        assert address is not None, run.said
        try:
            yield run, address[0].split()[0]
        finally:
            run.signal(signal.SIGKILL)
            run.wait()

    return serve


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_service_stops_on_a_signal(serving: Serving, how: signal.Signals) -> None:
    with serving("closed_book") as (run, _):
        said = run.said
        run.signal(how)
        assert run.wait() == 0
        assert run.said == said


def test_a_served_memory_is_replayed_as_an_agent(run_cli: RunCli, serving: Serving, tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    with serving("rag") as (_, address):
        ran = run_cli(
            "--batch", "--dataset", "identity-01", "--backend", address, "--backend", "rag",
            "--recording", tmp_path / "r.sqlite3", "--output", output,
        )  # fmt: skip
    assert ran.code == 0, ran.err
    results = json.loads(output.read_text())
    assert list(results["backends"]) == [address, "rag"]
    assert results["backends"][address]["retrieval"] is None
    assert results["backends"][address]["cost_usd"] is None
    replies = {
        name: [row["reply"] for row in results["questions"] if row["backend"] == name] for name in (address, "rag")
    }
    assert replies[address] == replies["rag"]
    rows = [row for row in results["questions"] if row["backend"] == address]
    assert {(row["model"], row["tokens"], row["earlier_questions"]) for row in rows} == {("agent", None, 0)}
    again = run_cli("report", tmp_path / "r.sqlite3", "--output", "-")
    assert again.out == output.read_text()


def test_an_agent_is_neither_asked_again_nor_bisected(run_cli: RunCli, serving: Serving, tmp_path: Path) -> None:
    recording = tmp_path / "r.sqlite3"
    with serving("closed_book") as (_, address):
        ran = run_cli("--batch", "--dataset", "identity-03", "--backend", address, "--recording", recording)
    assert ran.code == 0, ran.err
    refused = run_cli("why", recording)
    assert refused.code == 2 and f"--backend {address}" in refused.err
    why = run_cli("why", recording, "--backend", address)
    assert why.code == 0 and "of agents left out" in why.err
    life = run_cli("bisect", recording, "--question", "q3")
    assert life.code == 2 and "no memory to bisect" in life.err


def test_an_agent_is_asked_once_a_question_however_many_models_there_are(
    run_cli: RunCli, serving: Serving, tmp_path: Path
) -> None:
    output, recording = tmp_path / "results.json", tmp_path / "r.sqlite3"
    with serving("closed_book") as (_, address), OpenAIServer([answer("0")]) as server:
        models = ("--model", "memreplay/extractive", "--model", "openai/gpt-4o-mini", "--api-base", server.url)
        of_run = ("--batch", "--dataset", "identity-01", *models, "--backend", address, "--recording", recording)
        alone = run_cli(*of_run, "--output", output)
        assert (alone.code, len(server.requests)) == (0, 0), alone.err
        beside = run_cli(*of_run, "--backend", "full_context", "--output", output)
        asked = len(server.requests)
        estimate = run_cli(*of_run, "--backend", "full_context", "--estimate")
    assert beside.code == 0, beside.err
    results = json.loads(output.read_text())
    questions = {row["question_id"] for row in results["questions"]}
    assert asked == 2 * len(questions)
    assert list(results["backends"]) == [
        f"{address}@agent", "full_context@memreplay/extractive", "full_context@openai/gpt-4o-mini"
    ]  # fmt: skip
    rows = [row for row in results["questions"] if row["backend"] == address]
    assert sorted(row["question_id"] for row in rows) == sorted(questions)
    assert f"{address}@agent {len(questions)}/{len(questions)}" in beside.err
    [line] = [line.split() for line in estimate.out.splitlines() if address in line]
    assert line[1:4] == ["agent", str(len(questions)), str(len(questions))]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--batch", "--backend", "http://127.0.0.1:1/run_turn"), 4, "127.0.0.1:1 cannot be reached"),
        (("--batch", "--backend", "http://me:s3cret@127.0.0.1:1/run_turn"), 2, "MEMREPLAY_AGENT_TOKEN"),
        (("--batch", "--backend", "http://127.0.0.1:1"), 2, "expected http://host"),
        (("--batch", "--offline", "--backend", "http://127.0.0.1:1/run_turn"), 2, "--offline uses no network"),
        (("serve-backend", "rag", "--host", "0.0.0.0"), 2, "MEMREPLAY_SERVE_TOKEN"),
        (("serve-backend", "hybird"), 2, "hybird"),
        (("serve-backend", "http://127.0.0.1:1/run_turn"), 2, "is an HTTP agent already"),
        (("serve-backend", "rag", "--host", "192.0.2.1", "--token", "s3cret"), 2, "cannot listen on 192.0.2.1"),
        (("serve-backend", "rag", "--model", "openai/gpt-4o-mini"), 4, "OPENAI_API_KEY"),
    ],
)
def test_what_cannot_be_asked_or_served_is_one_sentence(
    run_cli: RunCli, tmp_path: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    batch = ("--dataset", "identity-01", "--recording", tmp_path / "r.sqlite3") if "--batch" in arguments else ()
    ran = run_cli(*arguments, *batch)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    assert "s3cret" not in ran.err and "Traceback" not in ran.err


def test_doctor_says_which_agent_is_missing(run_cli: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMREPLAY_BACKEND", "http://127.0.0.1:1/run_turn")
    ran = run_cli("doctor")
    assert ran.code == 4
    assert "the agent at 127.0.0.1:1 cannot be reached" in ran.out
