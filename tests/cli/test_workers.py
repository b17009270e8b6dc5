"""Conversations that other processes play: rows, requests and exit codes are those of one process."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from signal import SIGINT
from typing import Any

import pytest
from redis import Redis

import memreplay
from memreplay.conversations.registry import load
from memreplay.errors import MissingServerOrKeyError, UsageError
from memreplay.runtime import elsewhere
from memreplay.runtime.elsewhere import Assignment, check_worker, play_elsewhere, settings_for_workers, versions
from memreplay.settings import Settings
from tests.cli.conftest import RunCli
from tests.cli.test_interruptions import reply_to, results
from tests.stubs import dying_memory, noting_memory
from tests.stubs.conversing import without_times_and_ids
from tests.stubs.launcher import TIMEOUT_S, Launcher
from tests.stubs.noting_memory import Noting, noted
from tests.stubs.openai_server import Answer, OpenAIServer, Received, failure
from tests.stubs.valkey import started_valkey

CONVERSATIONS = ("identity-06", "technical-09", "multi-05")
MEMORIES = ("hybrid", "rag", "full_context")
DYING = "tests.stubs.dying_memory:Dying"
QUESTIONS = 15
"""Five of each conversation, put to every memory and to closed book."""

needs_dask = pytest.mark.skipif(not find_spec("distributed"), reason="needs Dask")


def run_all(
    run_cli: RunCli,
    server: OpenAIServer,
    folder: Path,
    backends: Sequence[str],
    *more: object,
    code: int = 0,
    conversations: Sequence[str] = CONVERSATIONS,
) -> tuple[dict[str, Any], list[str]]:
    """The results, and the prompts that the server was sent."""
    folder.mkdir()
    before = len(server.requests)
    ran = run_cli(*options(server, folder, backends, *more, conversations=conversations))
    assert ran.code == code, ran.err
    return without_where(results(folder)), sorted(request.prompt for request in server.requests[before:])


def options(
    server: OpenAIServer,
    folder: Path,
    backends: Sequence[str],
    *more: object,
    conversations: Sequence[str] = CONVERSATIONS,
) -> tuple[object, ...]:
    datasets = [word for name in conversations for word in ("--dataset", name)]
    memories = [word for name in backends for word in ("--backend", name)]
    written = ("--recording", folder / "r.sqlite3", "--output", folder / "r.json")
    model = ("--model", "openai/stub", "--api-base", server.url)
    return ("--batch", *datasets, *memories, *model, *written, "--concurrency", 1, "--no-cache", *more)


@pytest.fixture(autouse=True)
def _a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-this-test")


@pytest.fixture
def deaths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that says how often a worker dies while it plays the second conversation."""
    monkeypatch.setenv(dying_memory.DEATHS, str(tmp_path / "deaths"))
    monkeypatch.setenv(dying_memory.DIES_IN, CONVERSATIONS[1])
    return tmp_path / "deaths"


def test_rows_and_requests_are_those_of_one_process_also_where_a_worker_is_lost(
    run_cli: RunCli, tmp_path: Path, deaths: Path
) -> None:
    kinds = [("--workers", 2)] + [("--cluster", "local:2")] * bool(find_spec("distributed"))
    with OpenAIServer(reply_to) as server:
        asked = (run_cli, server)
        here = run_all(*asked, tmp_path / "here", (*MEMORIES, DYING), "--fresh", "--perceive")
        for workers in kinds:
            deaths.write_text("once\n")
            folder = tmp_path / workers[0]
            there = run_all(*asked, folder, (*MEMORIES, DYING), "--fresh", "--perceive", *workers)
            assert not deaths.read_text() and there == here, workers


def test_what_memories_asked_a_model_is_not_asked_again_after_a_worker_is_lost(
    run_cli: RunCli, tmp_path: Path, deaths: Path
) -> None:
    """One conversation, so that of two workers the second takes over from the first."""
    memories, one = ("hybrid", DYING), CONVERSATIONS[1:2]
    with OpenAIServer(reply_to) as server:
        asked = (run_cli, server)
        here = run_all(*asked, tmp_path / "here", memories, "--extractor", "openai/reads", conversations=one)
        deaths.write_text("once\n")
        more = ("--extractor", "openai/reads", "--workers", 2)
        there = run_all(*asked, tmp_path / "there", memories, *more, conversations=one)
    assert not deaths.read_text() and there[1] == here[1]
    assert there[0]["questions"] == here[0]["questions"]


def test_a_conversation_that_ends_every_worker_is_an_error_of_its_own_rows(
    run_cli: RunCli, tmp_path: Path, deaths: Path
) -> None:
    deaths.write_text("again\n" * 100)
    with OpenAIServer(reply_to) as server:
        found, _ = run_all(run_cli, server, tmp_path / "there", [DYING], "--workers", "2", code=3)
    failed = {row["conversation"]: row["error"] for row in found["questions"] if row["outcome"] == "error"}
    assert list(failed) == ["technical-09"] and "workers were lost" in failed["technical-09"]


def test_an_interrupted_run_with_workers_is_resumed_without_asking_twice(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path
) -> None:
    with OpenAIServer(reply_to) as server:
        here, asked = run_all(run_cli, server, tmp_path / "here", ["full_context"])
    log, there = tmp_path / "log", tmp_path / "there"
    there.mkdir()
    with OpenAIServer(reply_to) as server:
        run = launcher.start(log, *options(server, there, ["full_context"], "--workers", 2))
        run.wait_until(lambda: len(server.requests) >= 4)
        run.signal(SIGINT)
        assert run.wait() == 130, run.said
        assert len(server.requests) < 2 * QUESTIONS
        assert launcher.run(log, *options(server, there, ["full_context"], "--workers", 3, "--resume")) == 0, (
            run.said
        )
        assert sorted(request.prompt for request in server.requests) == asked
    assert without_where(results(there)) == here


def test_a_worker_whose_extractor_is_refused_stops_the_run(run_cli: RunCli, tmp_path: Path) -> None:
    def refuses_the_extractor(received: Received) -> Answer:
        return failure(401, "no such key") if received.body["model"] == "reads" else reply_to(received)

    with OpenAIServer(refuses_the_extractor) as server:
        more = ("--extractor", "openai/reads", "--workers", 2)
        ran = run_cli(*options(server, tmp_path, ["hybrid"], *more, conversations=CONVERSATIONS[:1]))
    assert ran.code == 5 and "openai/reads" in ran.err and "Traceback" not in ran.err


def test_two_workers_keep_their_namespaces_apart_on_one_server(tmp_path: Path, run_cli: RunCli) -> None:
    rows, keys = [], []
    with started_valkey() as server:
        for number in (1, 2):
            folder = tmp_path / str(number)
            folder.mkdir()
            asked = ("--dataset", "identity-06", "--dataset", "technical-09", "--backend", "hybrid", "--fresh")
            written = ("--recording", folder / "r.sqlite3", "--output", folder / "r.json")
            ran = run_cli("--batch", *asked, *written, "--redis-url", server.connection_url, "--workers", number)
            assert ran.code == 0, ran.err
            run_id = json.loads((folder / "r.json").read_text())["run"]["id"]
            rows.append(without_where(results(folder)))
            with Redis.from_url(server.connection_url, decode_responses=True) as plain:
                keys.append({key: plain.strlen(key) for key in sorted(plain.keys(f"*{run_id}/*"))})
    assert rows[1] == rows[0]
    # Times of day that were written have one length.
    alone, spread = ([(key.rpartition("/")[0][-12:], size) for key, size in each.items()] for each in keys)
    assert len(alone) == 6 and spread == alone


def without_where(data: dict[str, Any]) -> dict[str, Any]:
    """Results without the settings that say where memories were."""
    for name in ("cluster", "api_base", "workers", "given"):
        del data["run"]["settings"][name]
    return data


def test_workers_play_ones_own_memory_and_keep_filled_memories_and_tests_stay_here(
    run_cli: RunCli, tmp_path: Path, definitions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "notes"
    monkeypatch.setenv(noting_memory.FILE, str(notes))

    def rows(folder: str, *more: object) -> tuple[Any, dict[str, set[int]]]:
        (tmp_path / folder).mkdir()
        written = ("--recording", tmp_path / folder / "r.sqlite3", "--output", tmp_path / folder / "r.json")
        asked = ("--dataset", "identity-06", "--dataset", "technical-09")
        ran = run_cli("--batch", *asked, "--backend", "tests.stubs.noting_memory:Noting", *written, *more)
        assert ran.code in (0, 3), ran.err
        found = json.loads((tmp_path / folder / "r.json").read_text())
        for name in ("workers", "given", "fresh"):
            del found["run"]["settings"][name]
        for row in found["questions"]:
            del row["recall_ms"]
        return without_times_and_ids(found), noted(notes)

    alone, processes = rows("alone", "--fresh", "--dataset", definitions)
    assert processes["observe"] == processes["recall"] == {os.getpid()}
    spread, processes = rows("spread", "--workers", 2, "--dataset", definitions)
    assert spread == alone
    assert len(processes["observe"]) == 3 and os.getpid() in processes["observe"], "tests stay here"

    for folder, more in (("kept", ("--workers", 2)), ("kept alone", ())):
        reused, processes = rows(folder, *more)
        assert processes["load"] and "observe" not in processes
        assert reused["questions"] == [row for row in spread["questions"] if row["kind"] != "test"]


SECRET = "correct-horse-battery"


def test_no_key_and_no_password_travels_to_a_worker() -> None:
    settings = Settings(
        redis_url=f"redis://user:{SECRET}@127.0.0.1:6379/0",
        qdrant_api_key=SECRET,
        agent_token=SECRET,
        api_base=f"http://user:{SECRET}@127.0.0.1:8000/v1",
        keys={"replay.step": SECRET},
    )
    (conversation,) = load(["identity-06"])
    work = Assignment(conversation, (), (), settings_for_workers(settings), "run", False, versions())
    assert SECRET.encode() in pickle.dumps(settings) and SECRET.encode() not in pickle.dumps(work)


def test_workers_share_the_rate_limits_of_the_run() -> None:
    shared = settings_for_workers(Settings(rpm=100, tpm=1, concurrency=8), places=4)
    assert (shared.rpm, shared.tpm, shared.concurrency) == (25, 1, 2)


def test_a_worker_with_other_code_or_libraries_is_refused_by_name() -> None:
    (conversation,) = load(["identity-06"])
    settings = Settings(backend=("tests.stubs.noting_memory:Noting", "rag"))
    name, _ = settings.backend
    here = versions(settings.backend)
    assert here[name] != versions(["none.such:Memory"])["none.such:Memory"]
    expected = here | {"numpy": "1.0", name: "other"}
    work = Assignment(conversation, settings.backend, (), settings, "run", False, expected)
    with pytest.raises(UsageError, match=rf"other versions .*: numpy .*, not 1\.0; {name} .*, not other"):
        play_elsewhere(work)
    assert isinstance(check_worker(settings, work.versions), UsageError)


def test_a_worker_that_cannot_reach_the_stores_says_so() -> None:
    settings = replace(Settings(backend=("hybrid",)), redis_url="redis://127.0.0.1:1/0")
    problem = check_worker(settings, versions())
    assert isinstance(problem, MissingServerOrKeyError) and "127.0.0.1:1" in str(problem)


@needs_dask
def test_a_scheduler_that_does_not_answer_is_missing(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "SECONDS_TO_CONNECT", 1)
    here = ("--batch", "--dataset", "identity-06", "--recording", tmp_path / "r.sqlite3")
    ran = run_cli(*here, "--cluster", "tcp://127.0.0.1:1")
    assert ran.code == 4 and "no Dask scheduler answers at tcp://127.0.0.1:1" in ran.err


def test_processes_that_cannot_be_started_are_missing(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("multiprocessing.spawn._python_exe", os.fsencode(tmp_path / "no-python"))
    here = ("--batch", "--dataset", "identity-06", "--recording", tmp_path / "r.sqlite3")
    ran = run_cli(*here, "--workers", 2)
    assert ran.code == 4 and "no process can be started for --workers" in ran.err


_WITHOUT_DASK = """
import sys
sys.modules["distributed"] = sys.modules["dask"] = None
from memreplay.__main__ import main
main()
"""


def test_processes_of_this_machine_need_no_dask(tmp_path: Path) -> None:
    datasets = ("--dataset", "identity-06", "--dataset", "technical-09")
    options = (
        "--batch",
        *datasets,
        "--backend",
        "full_context",
        "--workers",
        "2",
        "--recording",
        tmp_path / "r.sqlite3",
    )
    call = [sys.executable, "-c", _WITHOUT_DASK, *map(str, options)]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr


def test_a_memory_that_only_this_process_has_is_refused(tmp_path: Path) -> None:
    class Mine(Noting):
        pass

    with pytest.raises(memreplay.MemreplayError, match="exists only in this process; workers need a"):
        memreplay.run("identity-06", [Mine], recording=tmp_path / "r.sqlite3", workers=2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--cluster", "tcp://127.0.0.1:1", "--workers", "2"), "use one of them"),
        (("--cluster", "redis://host:1"), "expected tcp://host:8786, tls://host:8786 or local:N"),
        (("--cluster", "local:0"), "expected tcp://host:8786, tls://host:8786 or local:N"),
    ],
)
def test_workers_that_cannot_be_had_are_refused_before_anything_is_asked(
    run_cli: RunCli, tmp_path: Path, given: tuple[str, ...], said: str
) -> None:
    ran = run_cli("--batch", "--dataset", "identity-06", "--recording", tmp_path / "r.sqlite3", *given)
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "r.sqlite3").exists()
