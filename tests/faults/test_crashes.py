"""Storage that fails at any write, and a process that is killed at any moment: nothing acknowledged is lost."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections import Counter
from pathlib import Path
from random import Random
from signal import SIGKILL
from typing import Any, ClassVar

import pytest

from memreplay.engine.events import ReplyReceived
from memreplay.recording import connection
from memreplay.recording.reader import Recording
from tests.cli.conftest import RunCli
from tests.cli.test_interruptions import (
    ASKS,
    AT_ONCE,
    options,
    replied_prompts,
    reply_to,
    results,
    status,
    undisturbed,
)
from tests.faults.effort import TORTURE
from tests.stubs.launcher import Launcher
from tests.stubs.openai_server import OpenAIServer

_WRITES = ("insert", "update", "delete", "create", "begin", "commit", "savepoint", "release")


class FailingConnection(sqlite3.Connection):
    """A connection on storage that is full from the ``left``-th write on; None: it never is."""

    left: int | None = None
    made: ClassVar[list[str]] = []

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        """Count the write, or fail."""
        if sql.lstrip().lower().startswith(_WRITES):
            FailingConnection.made.append(sql)
            if FailingConnection.left is not None and len(FailingConnection.made) > FailingConnection.left:
                raise sqlite3.OperationalError("database or disk is full")
        return super().execute(sql, *arguments)


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> type[FailingConnection]:
    """Recordings are opened on storage that can be told when to fail."""
    connect = sqlite3.connect

    def failing(*arguments: Any, **more: Any) -> sqlite3.Connection:
        return connect(*arguments, **more, factory=FailingConnection)

    monkeypatch.setattr(connection.sqlite3, "connect", failing)
    monkeypatch.setattr(FailingConnection, "left", None)
    monkeypatch.setattr(FailingConnection, "made", [])
    return FailingConnection


_SLICES = 10 if TORTURE > 1 else 1
"""A long test is split, so that its parts run side by side, or one after another on a machine with little time."""


@pytest.mark.parametrize("part", range(_SLICES))
def test_storage_that_fails_at_any_write_costs_at_most_what_was_under_way(
    run_cli: RunCli, tmp_path: Path, storage: type[FailingConnection], part: int
) -> None:
    with OpenAIServer(reply_to) as server:
        alone = ("--no-cache", "--concurrency", 1)
        storage.made.clear()
        expected = undisturbed(run_cli, server, tmp_path / "undisturbed")
        writes = len(storage.made)
        assert writes > 40
        # sqlite-utils writes a savepoint even to read; the first one is set after the run's row is on disk.
        a_read = next(number for number, sql in enumerate(storage.made) if "sqlite_utils_query" in sql)
        drawn = Random(7).sample(range(writes), 2)
        positions = range(part, writes, _SLICES) if TORTURE > 1 else sorted({a_read, *drawn})
        for position in positions:
            folder = tmp_path / "now"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            server.requests.clear()
            storage.made.clear()
            storage.left = position
            ran = run_cli(*options(server, folder, *alone))
            assert ran.code in (0, 2, 5) and "Traceback" not in ran.err, (position, ran)
            storage.left = None
            safe = replied_prompts(folder / "r.sqlite3")
            resume = ("--resume",) if status(folder / "r.sqlite3") in ("running", "interrupted") else ()
            if resume or status(folder / "r.sqlite3") is None:
                ran = run_cli(*options(server, folder, *alone, *resume))
                assert ran.code == 0, (position, ran)
            else:
                assert run_cli("report", folder / "r.sqlite3", "--output", folder / "r.json").code == 0
            asked = Counter(received.prompt for received in server.requests)
            assert all(asked[prompt] == 1 for prompt in safe), f"paid twice after write {position}"
            assert asked.total() <= ASKS + 1, position
            found = results(folder)
            expected["run"]["settings"] |= {"cache": False, "concurrency": 1}
            assert found == expected, position
    print(f"{len(positions)} of {writes} writes failed, 0 stored replies lost")


_KILLS = 20 if TORTURE > 1 else 3
"""In each part."""


@pytest.mark.parametrize("part", range(_SLICES))
def test_a_process_killed_at_any_moment_loses_no_stored_reply(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path, part: int
) -> None:
    """Run after run, each killed until it ends by itself; two hundred kills in ``make torture``."""
    random, kills, recording = Random(11 + part), 0, tmp_path / "now" / "r.sqlite3"
    safe: dict[str, int] = {}
    with OpenAIServer(reply_to) as server:
        expected = undisturbed(run_cli, server, tmp_path / "undisturbed")
        expected["run"]["settings"]["cache"] = False
        while kills < _KILLS or status(recording) != "finished":
            if status(recording) == "finished":
                shutil.rmtree(recording.parent)
                server.requests.clear()
                safe.clear()
            recording.parent.mkdir(exist_ok=True)
            resume = ("--resume",) if status(recording) else ()
            run = launcher.start(tmp_path / "log", *options(server, recording.parent, "--no-cache", *resume))
            if kills < _KILLS:
                wanted = len(server.requests) + random.randrange(1, AT_ONCE + 1)
                run.wait_until(lambda wanted=wanted, run=run: run.is_over or len(server.requests) >= wanted)
                time.sleep(random.uniform(0.0, 0.05))
                kills += 1
                run.signal(SIGKILL)
            run.wait()
            asked = Counter(received.prompt for received in server.requests)
            assert all(asked[prompt] == times for prompt, times in safe.items()), "paid twice"
            safe |= {prompt: asked[prompt] for prompt in replied_prompts(recording)}
            if status(recording) == "finished":
                output = recording.with_suffix(".json")
                assert run_cli("report", recording, "--output", output).code == 0
                assert results(recording.parent) == expected
    print(f"{kills} kills, 0 stored replies lost")


@pytest.mark.parametrize("largest", [8192, 65536])
def test_a_disk_that_is_full_from_the_start_stops_the_run_and_space_lets_it_begin(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path, largest: int
) -> None:
    batch = ("--batch", "--dataset", "identity-01", "--limit", 1, "--backend", "rag")
    here = (*batch, "--recording", tmp_path / "r.sqlite3", "--output", tmp_path / "r.json")
    assert launcher.run(tmp_path / "log", *here, largest_file=largest) == 5
    said = (tmp_path / "log").read_text()
    assert said.count("cannot be written") == 1 and "Traceback" not in said, said
    resume = ("--resume",) if status(tmp_path / "r.sqlite3") else ()
    assert run_cli(*here, *resume).code == 0


def test_a_reader_sees_whole_events_while_a_run_is_recorded(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path
) -> None:
    recording, seen = tmp_path / "r.sqlite3", [0]
    with OpenAIServer(reply_to) as server:
        run = launcher.start(tmp_path / "log", *options(server, tmp_path, "--no-cache"))
        while not run.is_over:
            if status(recording) is None:
                time.sleep(0.01)
                continue
            assert run_cli("recordings", "show", recording).code == 0
            assert run_cli("report", recording, "--output", tmp_path / "part.json").code == 0
            reader = Recording.open(recording)
            (id_,) = reader.conversation_ids(reader.run().id) or (None,)
            events = list(reader.events(reader.run().id, id_)) if id_ else []
            reader.close()
            seen.append(sum(isinstance(event, ReplyReceived) for event in events))
        assert run.wait() == 0
    assert seen == sorted(seen)


def test_a_memory_that_runs_out_of_memory_costs_its_own_rows(run_cli: RunCli, tmp_path: Path) -> None:
    starving = ("--backend", "tests.stubs.plugins:Starving", "--backend", "full_context")
    run = ("--batch", "--dataset", "identity-01", *starving, "--recording", tmp_path / "r.sqlite3")
    ran = run_cli(*run, "--output", tmp_path / "r.json")
    assert ran.code == 3 and "Traceback" not in ran.err, ran
    rows = json.loads((tmp_path / "r.json").read_text())["questions"]
    for row in rows:
        is_starving = row["backend"].endswith("Starving")
        assert (row["outcome"] == "error") == is_starving
        assert "out of memory in recall()" in row["error"] if is_starving else row["error"] is None
