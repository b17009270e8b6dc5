"""However a run of tests ends, no model is paid twice, and resuming it yields what an undisturbed run yields."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from signal import SIGINT, SIGKILL
from typing import Any

import pytest

from tests.cli.conftest import RunCli
from tests.stubs.conversing import STUB, judging, last_colour, paid, without_times_and_ids
from tests.stubs.launcher import TIMEOUT_S, Launcher
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, failure, hang
from tests.stubs.tests_to_run import python_dataset, small_definitions

JUDGE = "openai/gpt-4o-mini"
MEMORY = "full_context"


def options(server: OpenAIServer, dataset: object, folder: Path, *more: object) -> tuple[object, ...]:
    asked = ("--dataset", dataset, "--backend", MEMORY, "--model", "openai/stub", "--api-base", server.url)
    written = ("--recording", folder / "r.sqlite3", "--output", folder / "r.json")
    return ("--batch", *asked, *written, "--concurrency", 1, *more)


def judged(server: OpenAIServer, dataset: Path, folder: Path, *more: object) -> tuple[object, ...]:
    return options(
        server, f"{dataset}:Keys", folder, "--examples", 2, "--memory-span", 200, "--judge", JUDGE, *more
    )


def undisturbed(run_cli: RunCli, server: OpenAIServer, folder: Path, arguments: Any) -> dict[str, Any]:
    """The results of a run that nothing happens to; the server counts from nothing again."""
    folder.mkdir()
    ran = run_cli(*arguments(folder))
    assert ran.code == 0, ran.err
    server.requests.clear()
    return results(folder)


def results(folder: Path) -> dict[str, Any]:
    text = (folder / "r.json").read_text()
    found = without_times_and_ids(json.loads(text.replace(json.loads(text)["run"]["id"], "RUN")))
    del found["run"]["settings"]["cache"]
    return found


def calls(server: OpenAIServer) -> Counter[str]:
    return Counter(json.dumps(request.body, sort_keys=True) for request in server.requests)


def hanging_from(server: OpenAIServer, number: int) -> Callable[[Received], Answer]:
    """A model that converses up to so many requests, and then lets everybody wait."""
    return lambda received: hang() if len(server.requests) >= number else last_colour(received)


@pytest.mark.parametrize("mode", [(), ("--isolated",)])
def test_killed_twice_a_run_of_tests_ends_as_if_nothing_had_happened(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path, mode: tuple[str, ...]
) -> None:
    dataset = small_definitions(tmp_path / "small", ("Colours",))
    with OpenAIServer(last_colour) as server:
        expected = undisturbed(
            run_cli,
            server,
            tmp_path / "u",
            lambda folder: options(server, dataset, folder, *mode, "--no-cache"),
        )
        here = options(server, dataset, tmp_path, *mode, "--no-cache")
        for wanted, resume in ((2, ()), (5, ("--resume",))):
            server.behaviour = hanging_from(server, wanted)
            run = launcher.start(tmp_path / "log", *here, *resume)
            run.wait_until(lambda wanted=wanted: len(server.requests) == wanted)
            run.signal(SIGKILL)
            run.wait()
        server.behaviour = last_colour
        assert run_cli(*here, "--resume").code == 0
        asked = calls(server)
    assert results(tmp_path) == expected
    # What was on its way when the run was killed is lost, one call each time, and nothing else.
    assert asked.total() == len(asked) + 2
    assert len(asked) == len(paid(tmp_path / "r.sqlite3")) == 6


def test_a_killed_run_is_gone_on_with_and_no_message_is_paid_for_twice(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path
) -> None:
    folder = small_definitions(tmp_path / "small", ("Colours",))
    recording, output = tmp_path / "r.sqlite3", tmp_path / "resumed.json"
    held = 5
    with OpenAIServer() as server:
        server.behaviour = hanging_from(server, held)
        common = (
            "--batch", "--dataset", str(folder), "--backend", "rag", "--backend", "hybrid", *STUB, "--no-cache",
            "--concurrency", "1", "--api-base", server.url,
        )  # fmt: skip
        run = launcher.start(tmp_path / "log", *common, "--recording", recording)
        run.wait_until(lambda: len(server.requests) == held)
        run.signal(SIGKILL)
        run.wait()
        server.behaviour = last_colour
        before = paid(recording)
        assert len(before) == held - 1
        ran = run_cli(*common, "--recording", recording, "--resume", "--output", output)
        assert ran.code == 0, ran.err
        after = paid(recording)
        assert after[: len(before)] == before
        assert len(server.requests) == len(after) + 1
        undisturbed = tmp_path / "undisturbed.json"
        run_cli(*common, "--recording", tmp_path / "u.sqlite3", "--output", undisturbed)
        again = run_cli(*common, "--recording", recording, "--resume")
    first, second = (without_times_and_ids(json.loads(path.read_text())) for path in (undisturbed, output))
    assert first == second
    assert (again.code, "no unfinished run" in again.err) == (2, True)


def test_ctrl_c_keeps_the_reply_under_way_and_leaves_the_judging_for_later(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path
) -> None:
    dataset, gate = python_dataset(tmp_path), threading.Event()

    def held_at_the_last_question(received: Received) -> Answer:
        if len(server.requests) >= 5:
            gate.wait(TIMEOUT_S)
        return judging(received)

    with OpenAIServer(judging) as server:
        expected = undisturbed(
            run_cli, server, tmp_path / "u", lambda folder: judged(server, dataset, folder, "--no-cache")
        )
        server.behaviour = held_at_the_last_question
        here = judged(server, dataset, tmp_path, "--no-cache")
        run = launcher.start(tmp_path / "log", *here)
        run.wait_until(lambda: len(server.requests) == 5)
        run.signal(SIGINT)
        run.wait_until(lambda: "finishing the calls in progress" in run.said)
        gate.set()
        assert run.wait() == 130
        assert "--resume" in run.said and "Traceback" not in run.said
        assert len(server.requests) == 5
        assert run_cli(*here, "--resume").code == 0
        assert set(calls(server).values()) == {1}
    assert results(tmp_path) == expected


def failing_once(*, at: int, with_what: Answer) -> Any:
    """A stub whose ``at``-th call goes wrong."""
    seen = 0

    def behaviour(received: Received) -> Answer:
        nonlocal seen
        seen += 1
        return with_what if seen == at else judging(received)

    return behaviour


@pytest.mark.parametrize(
    ("at", "with_what", "calls_again"),
    [
        pytest.param(2, failure(400), 2, id="a question without a reply, and then its judging"),
        pytest.param(3, failure(400), 1, id="a judge that failed"),
        pytest.param(3, answer("I would rather not."), 1, id="a judge that talked"),
    ],
)
@pytest.mark.parametrize("cache", [("--no-cache",), ()])
def test_a_test_that_was_not_graded_has_what_failed_asked_again_and_nothing_else(
    run_cli: RunCli, tmp_path: Path, at: int, with_what: Answer, calls_again: int, cache: tuple[str, ...]
) -> None:
    dataset = python_dataset(tmp_path)
    with OpenAIServer(judging) as server:
        expected = undisturbed(
            run_cli, server, tmp_path / "u", lambda folder: judged(server, dataset, folder, "--no-cache")
        )
        server.behaviour = failing_once(at=at, with_what=with_what)
        here = judged(server, dataset, tmp_path, *cache)
        ran = run_cli(*here)
        assert ran.code == 3 and "--retry-errors" in ran.err
        assert [row["outcome"] for row in results(tmp_path)["questions"]] == ["error", "correct"]
        server.requests.clear()
        ran = run_cli(*here, "--resume", "--retry-errors")
        assert (ran.code, len(server.requests)) == (0, calls_again), ran.err
        again = run_cli(*here, "--resume", "--retry-errors")
        assert (again.code, len(server.requests)) == (0, calls_again), again.err
    retried = results(tmp_path)
    paid_for_judging = retried["backends"][MEMORY]["tests"].pop("benchmark_cost_usd")
    due = expected["backends"][MEMORY]["tests"].pop("benchmark_cost_usd")
    for row in (*retried["questions"], *expected["questions"]):
        del row["benchmark_cost_usd"]
    assert retried == expected
    # What was said in vain was paid all the same.
    assert (paid_for_judging > due) == (with_what["status"] == 200)


def test_offline_the_judge_is_not_reached_either_and_what_was_paid_for_is_on_record(
    run_cli: RunCli, tmp_path: Path
) -> None:
    dataset = python_dataset(tmp_path)
    with OpenAIServer(judging) as server:
        nothing_known = run_cli(*judged(server, dataset, tmp_path, "--offline"))
        assert (nothing_known.code, server.requests) == (3, [])
        (tmp_path / "r.sqlite3").unlink()
        assert run_cli(*judged(server, dataset, tmp_path)).code == 0
        asked, online = len(server.requests), results(tmp_path)
        (tmp_path / "r.sqlite3").unlink()
        ran = run_cli(*judged(server, dataset, tmp_path, "--offline"))
        assert (ran.code, len(server.requests)) == (0, asked), ran.err
        offline = results(tmp_path)
        (tmp_path / "r.sqlite3").unlink()
        other_judge = run_cli(*judged(server, dataset, tmp_path, "--judge", "openai/gpt-4o", "--offline"))
        assert (other_judge.code, len(server.requests)) == (3, asked)
        rows = results(tmp_path)["questions"]
        assert all("offline" in row["error"] and row["reply"] for row in rows)
    assert [row["score"] for row in offline["questions"]] == [row["score"] for row in online["questions"]]
