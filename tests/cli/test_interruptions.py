"""However a run ends, nothing paid is lost, and resuming it yields what an undisturbed run yields."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from hashlib import sha256
from pathlib import Path
from random import Random
from signal import SIGINT, SIGKILL, SIGTERM
from typing import Any

import pytest

from memreplay.engine.events import QuestionAsked, ReplyReceived, StoreOperated
from memreplay.errors import RecordingError
from memreplay.recording.reader import Recording
from tests.cli.conftest import RunCli
from tests.stubs.launcher import TIMEOUT_S, Launcher
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, broken_body, failure, hang

ASKS = 10
"""Five questions to one memory, and to closed book along with it."""

AT_ONCE = 3

KILLS = 4


def reply_to(received: Received) -> Answer:
    """A reply that depends on the prompt alone, and takes a moment."""
    time.sleep(0.02)
    return answer("It was " + sha256(received.prompt.encode()).hexdigest()[:8])


def options(server: OpenAIServer, folder: Path, *more: object, backend: str = "full_context") -> tuple[object, ...]:
    asked = ("--dataset", "identity-01", "--backend", backend, "--model", "openai/stub", "--api-base", server.url)
    written = ("--recording", folder / "r.sqlite3", "--output", folder / "r.json")
    return ("--batch", *asked, *written, "--concurrency", AT_ONCE, *more)


def results(folder: Path) -> dict[str, Any]:
    """Without times, and without the id of the run wherever it stands."""
    text = (folder / "r.json").read_text()
    data = json.loads(text.replace(json.loads(text)["run"]["id"], "RUN"))
    for key in ("started_at", "finished_at"):
        del data["run"][key]
    for backend in data["backends"].values():
        del backend["latency_ms"]
        backend["writing"] = backend["writing"] and {**backend["writing"], "ms": 0}
    for row in data["questions"]:
        del row["ms"], row["recall_ms"]
        for hit in row["hits"]:
            del hit["id"]
    return {key: data[key] for key in ("run", "backends", "questions")}


def operations(folder: Path) -> Counter[tuple[str, str]]:
    """How often each store command was recorded in each phase."""
    reader = Recording.open(folder / "r.sqlite3")
    run = reader.run()
    events = (
        event
        for id_ in reader.conversation_ids(run.id)
        for event in reader.events(run.id, id_, ("store_operated",))
        if isinstance(event, StoreOperated)
    )
    return Counter((event.operation.phase, event.operation.command) for event in events)


def replied_prompts(recording: Path) -> set[str]:
    """The prompts whose reply is on disk."""
    if status(recording) is None:
        return set()
    reader = Recording.open(recording)
    run = reader.run()
    asked: dict[tuple[str, str], str] = {}
    replied: set[str] = set()
    for conversation in reader.conversation_ids(run.id):
        for event in reader.events(run.id, conversation, ("question_asked", "reply_received")):
            if isinstance(event, QuestionAsked):
                asked[event.backend, event.question_id] = event.prompt[0].content
            elif isinstance(event, ReplyReceived):
                replied.add(asked[event.backend, event.question_id])
    reader.close()
    return replied


def status(recording: Path) -> str | None:
    """That of its run; None where there is none yet."""
    try:
        return Recording.open(recording).run().status
    except RecordingError:
        return None


def undisturbed(
    run_cli: RunCli, server: OpenAIServer, folder: Path, backend: str = "full_context"
) -> dict[str, Any]:
    """The results of a run that nothing happens to, made before the one to compare with."""
    folder.mkdir()
    ran = run_cli(*options(server, folder, "--no-cache", backend=backend))
    assert ran.code == 0, ran.err
    assert len(server.requests) == ASKS
    server.requests.clear()
    return results(folder)


def test_killed_again_and_again_a_run_ends_as_if_nothing_had_happened(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path
) -> None:
    """With a memory that works on in the background, and replies cached; ``faults/test_crashes.py`` has neither."""
    random, recording = Random(KILLS), tmp_path / "r.sqlite3"
    with OpenAIServer(reply_to) as server:
        expected = undisturbed(run_cli, server, tmp_path / "undisturbed", "hybrid")
        safe: dict[str, int] = {}
        for kill in range(KILLS):
            resume = ("--resume",) if status(recording) else ()
            run = launcher.start(tmp_path / "log", *options(server, tmp_path, *resume, backend="hybrid"))
            wanted = len(server.requests) + kill % 3
            run.wait_until(
                lambda wanted=wanted, run=run: (
                    run.is_over or (recording.exists() and len(server.requests) >= wanted)
                )
            )
            time.sleep(random.uniform(0.0, 0.1))
            run.signal(SIGKILL)
            run.wait()
            asked = Counter(received.prompt for received in server.requests)
            assert all(asked[prompt] == times for prompt, times in safe.items()), "paid twice"
            safe |= {prompt: asked[prompt] for prompt in replied_prompts(recording)}
            if status(recording) == "finished":
                break
        else:
            ran = run_cli(*options(server, tmp_path, "--resume", backend="hybrid"))
            assert ran.code == 0, ran.err
        assert run_cli("report", recording, "--output", tmp_path / "r.json").code == 0
        asked = Counter(received.prompt for received in server.requests)
    expected["run"]["settings"]["cache"] = True
    assert results(tmp_path) == expected
    assert all(asked[prompt] == times for prompt, times in safe.items()), "paid twice"
    assert len(asked) == ASKS
    assert asked.total() <= ASKS + KILLS * AT_ONCE


def test_ctrl_c_once_finishes_what_is_under_way_and_keeps_it(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path
) -> None:
    gate = threading.Event()

    def held(received: Received) -> Answer:
        gate.wait(TIMEOUT_S)
        return reply_to(received)

    with OpenAIServer(reply_to) as server:
        expected = undisturbed(run_cli, server, tmp_path / "undisturbed")
        server.behaviour = held
        run = launcher.start(tmp_path / "log", *options(server, tmp_path, "--no-cache"))
        run.wait_until(lambda: len(server.requests) == AT_ONCE)
        run.signal(SIGINT)
        run.wait_until(lambda: "finishing the calls in progress" in run.said)
        gate.set()
        assert run.wait() == 130
        assert "--resume" in run.said and "Traceback" not in run.said
        assert len(server.requests) == AT_ONCE
        assert len(replied_prompts(tmp_path / "r.sqlite3")) == AT_ONCE
        ran = run_cli(*options(server, tmp_path, "--no-cache", "--resume"))
        assert (ran.code, len(server.requests)) == (0, ASKS), ran.err
        assert "asked again" not in ran.err, "no call was lost"
    expected["run"]["settings"]["cache"] = False
    assert results(tmp_path) == expected
    found = operations(tmp_path)
    assert found == operations(tmp_path / "undisturbed") and found.total() > 0


@pytest.mark.parametrize("signals", [(SIGINT, SIGINT), (SIGTERM,)])
def test_ctrl_c_twice_or_a_request_to_terminate_stops_now(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path, signals: tuple[Any, ...]
) -> None:
    with OpenAIServer([hang()]) as server:
        patient = options(server, tmp_path, "--no-cache", "--timeout", 3600)
        run = launcher.start(tmp_path / "log", *patient)
        run.wait_until(lambda: len(server.requests) == AT_ONCE)
        run.signal(signals[0])
        if len(signals) > 1:
            run.wait_until(lambda: "finishing the calls in progress" in run.said)
            run.signal(signals[1])
        # The calls under way would be waited for as long as the server hangs, which is for ever.
        assert run.wait() == 130
        assert "Traceback" not in run.said and "--resume" in run.said
        server.behaviour = reply_to
        assert run_cli(*patient, "--resume").code == 0
        assert len(server.requests) == ASKS + AT_ONCE


def test_a_second_process_on_a_recording_is_refused_and_a_killed_one_leaves_no_lock(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path
) -> None:
    with OpenAIServer([hang()]) as server:
        run = launcher.start(tmp_path / "log", *options(server, tmp_path))
        run.wait_until(lambda: server.requests)
        for resume in ((), ("--resume",)):
            second = run_cli(*options(server, tmp_path, *resume))
            assert (second.code, second.out) == (2, "")
            assert "another memreplay is writing" in second.err and "Traceback" not in second.err
        assert "\trunning\t" in run_cli("recordings", "show", tmp_path / "r.sqlite3").out
        assert "partial: the run is still running" in run_cli("report", tmp_path / "r.sqlite3").out
        run.signal(SIGKILL)
        run.wait()
        assert "\tinterrupted\t" in run_cli("recordings", "show", tmp_path / "r.sqlite3").out
        assert "partial: the run was interrupted" in run_cli("report", tmp_path / "r.sqlite3").out
        server.behaviour = reply_to
        assert run_cli(*options(server, tmp_path, "--resume")).code == 0


def test_a_full_disk_ends_the_run_in_one_sentence_and_space_lets_it_go_on(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path
) -> None:
    with OpenAIServer(reply_to) as server:
        expected = undisturbed(run_cli, server, tmp_path / "undisturbed")
        needed = (tmp_path / "undisturbed" / "r.sqlite3").stat().st_size
        for share in (0.6, 0.9, 1.2, 1.6, 2.0):
            resume = ("--resume",) if status(tmp_path / "r.sqlite3") else ()
            arguments = options(server, tmp_path, "--no-cache", *resume)
            code = launcher.run(tmp_path / "log", *arguments, largest_file=int(share * needed))
            # Below some size there is no room to begin, and nothing to resume.
            if code == 5 and "--resume" in (tmp_path / "log").read_text():
                break
        said = (tmp_path / "log").read_text()
        assert "--resume" in said and "cannot be written" in said and "Traceback" not in said, said
        assert status(tmp_path / "r.sqlite3") in ("running", "interrupted")
        ran = run_cli(*options(server, tmp_path, "--no-cache", "--resume"))
        assert ran.code == 0, ran.err
    expected["run"]["settings"]["cache"] = False
    assert results(tmp_path) == expected


def test_a_provider_that_does_everything_wrong_is_borne_with(run_cli: RunCli, tmp_path: Path) -> None:
    wrong = [failure(429, "slow down", retry_after="0"), failure(500), hang(), broken_body(), failure(503)]
    asked: Counter[str] = Counter()

    def moody(received: Received) -> Answer:
        asked[received.prompt] += 1
        place = int(sha256(received.prompt.encode()).hexdigest(), 16) % len(wrong)
        return wrong[place] if asked[received.prompt] == 1 else reply_to(received)

    with OpenAIServer(reply_to) as server:
        expected = undisturbed(run_cli, server, tmp_path / "undisturbed")
        server.behaviour = moody
        ran = run_cli(*options(server, tmp_path, "--no-cache", "--timeout", "1.5"))
        assert ran.code == 0, ran.err
        # On a slow machine a second try may be given up as well.
        assert len(asked) == ASKS and min(asked.values()) >= 2
    expected["run"]["settings"] |= {"cache": False, "timeout": 1.5}
    assert results(tmp_path) == expected


def test_a_lost_server_gives_errors_that_can_be_asked_again(run_cli: RunCli, tmp_path: Path) -> None:
    with OpenAIServer(reply_to) as server:
        expected = undisturbed(run_cli, server, tmp_path / "undisturbed")
        server.behaviour = lambda received: reply_to(received) if len(server.requests) <= 3 else failure(400)
        ran = run_cli(*options(server, tmp_path, "--no-cache", "--concurrency", 1))
        assert ran.code == 3 and "--retry-errors" in ran.err
        server.requests.clear()
        server.behaviour = reply_to
        assert run_cli(*options(server, tmp_path, "--no-cache", "--resume")).code == 2, "it is finished"
        ran = run_cli(*options(server, tmp_path, "--no-cache", "--resume", "--retry-errors"))
        assert (ran.code, len(server.requests)) == (0, ASKS - 3), ran.err
    expected["run"]["settings"] |= {"cache": False, "concurrency": 1}
    assert results(tmp_path) == expected
