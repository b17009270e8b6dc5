"""Memories in other processes, or in Dask workers: rows, requests and exit codes are those of one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from signal import SIGINT, SIGKILL
from typing import Any

import pytest
from redis import Redis

import memreplay
from tests.cli.conftest import RunCli
from tests.cli.test_interruptions import reply_to, results
from tests.stubs import noting_memory
from tests.stubs.conversing import without_times_and_ids
from tests.stubs.launcher import TIMEOUT_S, Launcher
from tests.stubs.noting_memory import Noting, noted
from tests.stubs.openai_server import Answer, OpenAIServer, Received
from tests.stubs.valkey import started_valkey

QUESTIONS = 15
"""Five of each of three conversations, put to one memory and to closed book."""

ASKED_BEFORE_THE_LOSS = 4


@contextmanager
def dask(command: str, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """``dask scheduler`` or ``dask worker`` in a process of its own."""
    call = [sys.executable, "-m", f"distributed.cli.dask_{command}", "--no-dashboard", *map(str, arguments)]
    process = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(condition: Callable[[], object]) -> None:
    given_up = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < given_up
        time.sleep(0.05)


def options(server: OpenAIServer, folder: Path, *more: object) -> tuple[object, ...]:
    datasets = [word for name in ("identity-01", "technical-01", "multi-01") for word in ("--dataset", name)]
    asked = (*datasets, "--backend", "rag", "--model", "openai/stub", "--api-base", server.url)
    written = ("--recording", folder / "r.sqlite3", "--output", folder / "r.json")
    return ("--batch", *asked, *written, "--concurrency", 1, "--no-cache", *more)


@pytest.mark.skipif(find_spec("distributed") is None, reason="needs Dask")
def test_a_run_that_loses_a_worker_asks_nothing_twice_and_has_the_rows_of_one_machine(
    tmp_path: Path, run_cli: RunCli, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-this-test")
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    for folder in (alone, spread):
        folder.mkdir()
    with OpenAIServer(reply_to) as server:
        assert run_cli(*options(server, alone)).code == 0
        asked_alone = sorted(request.prompt for request in server.requests)

    with ExitStack() as stack:
        address = tmp_path / "scheduler.json"
        stack.enter_context(dask("scheduler", "--host", "127.0.0.1", "--port", 0, "--scheduler-file", address))
        wait_for(lambda: address.exists() and address.stat().st_size)
        first, _ = (
            stack.enter_context(
                dask("worker", "--scheduler-file", address, "--no-nanny", "--local-directory", tmp_path)
            )
            for _ in range(2)
        )
        log = tmp_path / "log"

        def losing_a_worker(received: Received) -> Answer:
            if len(server.requests) == ASKED_BEFORE_THE_LOSS:
                # Both workers hold a memory with open questions by then.
                wait_for(lambda: log.read_text().count(": ingested in ") >= 2)
                first.send_signal(SIGKILL)
                first.wait()
            return reply_to(received)

        server = stack.enter_context(OpenAIServer(losing_a_worker))
        scheduler = json.loads(address.read_text())["address"]
        code = launcher.run(log, *options(server, spread, "--cluster", scheduler))

    assert code == 0, log.read_text()
    assert first.returncode == -SIGKILL
    assert len(server.requests) == 2 * QUESTIONS
    assert sorted(request.prompt for request in server.requests) == asked_alone
    assert without_where(results(spread)) == without_where(results(alone))


NOTING = "tests.stubs.noting_memory:Noting"


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_killed_process_is_replaced_and_asks_nothing_twice(
    tmp_path: Path, run_cli: RunCli, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-this-test")
    notes, log = tmp_path / "notes", tmp_path / "log"
    monkeypatch.setenv(noting_memory.FILE, str(notes))
    killed: set[int] = set()

    def killing_all(received: Received) -> Answer:
        if len(server.requests) == ASKED_BEFORE_THE_LOSS:
            wait_for(lambda: log.read_text().count(": ingested in ") >= 2)
            killed.update(noted(notes)["observe"])
            for pid in killed:
                os.kill(pid, SIGKILL)
        return reply_to(received)

    (tmp_path / "alone").mkdir()
    with OpenAIServer(reply_to) as server:
        assert run_cli(*options(server, tmp_path / "alone", "--backend", NOTING)).code == 0
        asked_alone = sorted(request.prompt for request in server.requests)
    notes.unlink()
    with OpenAIServer(killing_all) as server:
        code = launcher.run(log, *options(server, tmp_path, "--backend", NOTING, "--workers", 2))
        assert code == 0, log.read_text()
        assert sorted(request.prompt for request in server.requests) == asked_alone
    processes = noted(notes)
    assert len(killed) == 2 and processes["observe"] and not processes["observe"] & killed
    assert without_where(results(tmp_path)) == without_where(results(tmp_path / "alone"))
    assert not any(map(is_alive, processes["observe"]))


def test_an_interrupted_run_with_workers_is_resumed_without_asking_twice(
    tmp_path: Path, run_cli: RunCli, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-this-test")
    (tmp_path / "alone").mkdir()
    with OpenAIServer(reply_to) as server:
        assert run_cli(*options(server, tmp_path / "alone")).code == 0
    with OpenAIServer(reply_to) as server:
        run = launcher.start(tmp_path / "log", *options(server, tmp_path, "--workers", 2))
        run.wait_until(lambda: len(server.requests) >= ASKED_BEFORE_THE_LOSS)
        run.signal(SIGINT)
        assert run.wait() == 130, run.said
        before = len(server.requests)
        assert before < 2 * QUESTIONS
        code = launcher.run(tmp_path / "log", *options(server, tmp_path, "--workers", 3, "--resume"))
        assert code == 0, run.said
        assert len(server.requests) == 2 * QUESTIONS
    assert without_where(results(tmp_path)) == without_where(results(tmp_path / "alone"))


def test_two_workers_keep_their_namespaces_apart_on_one_server(tmp_path: Path, run_cli: RunCli) -> None:
    rows, keys = [], []
    with started_valkey() as server:
        for number in (1, 2):
            folder = tmp_path / str(number)
            folder.mkdir()
            asked = ("--dataset", "identity-01", "--dataset", "technical-01", "--backend", "hybrid", "--fresh")
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


def without_where(data: dict[str, object]) -> dict[str, object]:
    """Results without the setting that says where memories were."""
    run = data["run"]
    assert isinstance(run, dict)
    for name in ("cluster", "api_base", "workers", "given"):
        del run["settings"][name]
    return data


def test_ones_own_memory_and_tests_are_held_in_workers_and_filled_memories_are_kept(
    run_cli: RunCli, tmp_path: Path, definitions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "notes"
    monkeypatch.setenv(noting_memory.FILE, str(notes))

    def rows(folder: str, *more: object) -> tuple[Any, dict[str, set[int]]]:
        (tmp_path / folder).mkdir()
        written = ("--recording", tmp_path / folder / "r.sqlite3", "--output", tmp_path / folder / "r.json")
        asked = ("--dataset", "identity-01", "--dataset", "technical-01")
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
    assert os.getpid() not in processes["observe"] | processes["recall"]
    assert len(processes["observe"]) == 2

    for folder, more in (("kept", ("--workers", 2)), ("kept alone", ())):
        reused, processes = rows(folder, *more)
        assert processes["load"] and "observe" not in processes
        assert reused["questions"] == [row for row in spread["questions"] if row["kind"] != "test"]


_WITHOUT_DASK = """
import sys
sys.modules["distributed"] = sys.modules["dask"] = None
from memreplay.__main__ import main
main()
"""


def test_processes_of_this_machine_need_no_dask(tmp_path: Path) -> None:
    datasets = ("--dataset", "identity-01", "--dataset", "technical-01")
    options = ("--batch", *datasets, "--backend", "rag", "--workers", "2", "--recording", tmp_path / "r.sqlite3")
    call = [sys.executable, "-c", _WITHOUT_DASK, *map(str, options)]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr


def test_a_memory_that_only_this_process_has_is_refused(tmp_path: Path) -> None:
    class Mine(Noting):
        pass

    with pytest.raises(memreplay.MemreplayError, match="exists only in this process; workers need a"):
        memreplay.run("identity-01", [Mine], recording=tmp_path / "r.sqlite3", workers=2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--cluster", "tcp://127.0.0.1:1", "--workers", "2"), "use one of them"),
        (("--cluster", "redis://host:1"), "expected tcp://host:8786, tls://host:8786 or local:N"),
        (
            ("--workers", "2", "--embedder", "litellm:openai/text-embedding-3-small"),
            "calls a provider",
        ),
        (("--cluster", "local:0"), "expected tcp://host:8786, tls://host:8786 or local:N"),
    ],
)
def test_workers_that_cannot_be_had_are_refused_before_anything_is_asked(
    run_cli: RunCli, tmp_path: Path, given: tuple[str, ...], said: str
) -> None:
    ran = run_cli("--batch", "--dataset", "identity-01", "--recording", tmp_path / "r.sqlite3", *given)
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "r.sqlite3").exists()
