"""Faults that last: a provider that hangs, a server that refuses in mid-run, a process that is killed."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from signal import SIGKILL

import pytest
from redis import Redis

from memreplay.batch import progress
from memreplay.batch.progress import PlainProgress
from memreplay.conversations.registry import load
from memreplay.engine.probes import typed_question
from memreplay.errors import UsageError
from memreplay.llm.catalogue import ensure_reachable
from memreplay.llm.client import LiteLLMModel
from memreplay.llm.prompts import build_request
from memreplay.llm.rate_limiter import Clock, ModelUnavailableError, RateLimiters
from memreplay.runtime.run import Run
from memreplay.settings import read_settings
from memreplay.timeline.timeline import Timeline
from tests.cli.conftest import RunCli
from tests.faults.test_stores import Impostor, impostor
from tests.stubs.launcher import Launcher
from tests.stubs.openai_server import Answer, OpenAIServer, Received, answer, embeddings, failure, hang
from tests.stubs.valkey import started_valkey
from tests.unit.llm.test_client import QUESTION


class Hand(Clock):
    """A clock that is moved by hand; each sleep moves it too."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


async def test_a_model_that_answers_nothing_for_a_while_is_given_up() -> None:
    clock = Hand()
    limiters = RateLimiters(clock=clock)
    limiter = limiters.of("openai/stub")
    for wave in range(4):
        async with limiter.call(1):
            clock.time += 5.0
            limiter.stayed_silent(5.0)
        assert (limiter.unavailable is not None) == (wave == 3)
    assert "has not answered for 20 s" in str(limiter.unavailable) and "--timeout" in str(limiter.unavailable)
    with pytest.raises(ModelUnavailableError):
        async with limiter.call(1):
            pass
    limiters.mark_available()
    async with limiter.call(1):
        limiter.stayed_silent(5.0)
    assert limiter.unavailable is None, "after a fix it starts anew"


async def test_a_pause_of_this_process_is_no_silence_of_the_model() -> None:
    clock = Hand()
    limiter = RateLimiters(clock=clock).of("openai/stub")
    async with limiter.call(1):
        for _ in range(3):
            limiter.heard()
            clock.time += 600.0  # a closed lid: afterwards all calls under way have timed out at once
            for _ in range(20):
                limiter.stayed_silent(5.0)
    assert limiter.unavailable is None


async def test_one_reply_among_many_timeouts_keeps_the_model() -> None:
    clock = Hand()
    limiter = RateLimiters(clock=clock).of("openai/stub")
    for number in range(20):
        async with limiter.call(1):
            clock.time += 5.0
            limiter.stayed_silent(5.0)
            if number % 3 == 0:
                limiter.heard()
    assert limiter.unavailable is None


async def test_a_hanging_provider_is_given_up_after_three_timeouts() -> None:
    with OpenAIServer([hang()]) as server:
        model = LiteLLMModel(timeout=0.2, attempts=50)
        with pytest.raises(ModelUnavailableError, match="has not answered"):
            await model.answer(build_request(QUESTION, "", "openai/stub", server.url))
        assert len(server.requests) < 50


def test_progress_says_what_the_run_waits_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    shown = PlainProgress({("rag", "openai/stub"): 3}, sys.stderr)
    shown.waiting("waiting for openai/stub (3 calls, no reply for 6 s)")
    assert capsys.readouterr().err == "", "a line was just printed"
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    shown.waiting("")
    shown.waiting("waiting for openai/stub (3 calls, no reply for 16 s)")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("0/3 ") and line.endswith("waiting for openai/stub (3 calls, no reply for 16 s)")


async def test_the_silence_of_each_model_is_told() -> None:
    clock = Hand()
    limiters = RateLimiters(clock=clock)
    async with limiters.of("a").call(1), limiters.of("b").call(1):
        assert limiters.silence() == ""
        clock.time += 12.0
        limiters.of("b").heard()
        assert limiters.silence() == "a (1 call, no reply for 12 s)"
    assert limiters.silence() == ""


# ---- refused in the middle of a run ------------------------------------------------------------------------------


def _options(folder: Path, *more: object) -> tuple[object, ...]:
    written = ("--recording", folder / "r.sqlite3", "--output", folder / "r.json")
    return ("--batch", "--dataset", "identity-01", *written, "--no-cache", "--concurrency", 1, *more)


_CALLS_OF_THE_CHECK = 2
"""A word is embedded before the first question, and the dimension is asked for."""


def test_an_embedder_that_is_refused_stops_the_run(run_cli: RunCli, tmp_path: Path) -> None:
    calls = 0

    def refuses_later(received: Received) -> Answer:
        nonlocal calls
        calls += 1
        texts = received.body["input"]
        return failure(401, "expired") if calls > _CALLS_OF_THE_CHECK else embeddings([[1.0, 0.0]] * len(texts))

    with OpenAIServer(refuses_later) as server:
        here = _options(
            tmp_path, "--backend", "rag", "--embedder", "litellm:openai/vectors", "--api-base", server.url
        )
        ran = run_cli(*here)
        assert ran.code == 5, ran.err
        assert "--embedder" in ran.err and "the key is not accepted" in ran.err and "--resume" in ran.err
        assert calls <= _CALLS_OF_THE_CHECK + 2
        server.behaviour = lambda received: embeddings([[1.0, 0.0]] * len(received.body["input"]))
        assert run_cli(*here, "--resume").code == 0
    assert not any(row["error"] for row in json.loads((tmp_path / "r.json").read_text())["questions"])


def test_an_agent_that_refuses_its_token_stops_the_run(run_cli: RunCli, tmp_path: Path) -> None:
    with impostor(Impostor("agent", b"no", status=401)) as url:
        ran = run_cli(*_options(tmp_path, "--backend", f"{url}/run_turn"))
        assert ran.code == 4, "it is refused before the first question"
    with impostor(Impostor("agent", b'{"reply": "yes"}')) as url:
        here = _options(tmp_path, "--backend", f"{url}/run_turn")
        assert run_cli(*here).code == 0


@pytest.mark.parametrize("protocol", ["", "openai:"])
def test_an_agent_that_refuses_its_token_in_mid_run_stops_the_run(
    run_cli: RunCli, tmp_path: Path, protocol: str
) -> None:
    turns, expired = 0, True

    def refuses_later(received: Received) -> Answer:
        nonlocal turns
        turns += bool(received.body)
        said = answer("Norway") if protocol else {"status": 200, "headers": {}, "body": '{"reply": "Norway"}'}
        return failure(401, "expired") if expired and turns > 3 else said

    with OpenAIServer(refuses_later) as server:
        address = f"openai:{server.url}" if protocol else f"{server.url}/chat/completions"
        here = _options(tmp_path, "--backend", address)
        ran = run_cli(*here)
        assert ran.code == 5, ran
        assert "MEMREPLAY_AGENT_TOKEN" in ran.err and "--resume" in ran.err and "Traceback" not in ran.err
        assert turns <= 5, "it is not asked on and on"
        expired = False
        assert run_cli(*here, "--resume").code == 0
    rows = json.loads((tmp_path / "r.json").read_text())["questions"]
    assert len(rows) == 5 and not any(row["error"] for row in rows)


@pytest.mark.parametrize("base", ["http://me:secret@127.0.0.1:1/v1", "https://me@example.org/v1"])
def test_an_api_base_with_a_password_is_refused_with_the_reason(base: str) -> None:
    with pytest.raises(UsageError, match="must not contain a user or password"):
        ensure_reachable("openai/stub", base)


# ---- killed ------------------------------------------------------------------------------------------------------


def test_what_was_under_way_when_the_process_was_killed_is_counted_on_resume(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path
) -> None:
    with OpenAIServer([hang()]) as server:
        here = (
            *("--batch", "--dataset", "identity-01", "--backend", "closed_book", "--model", "openai/stub"),
            *("--api-base", server.url, "--recording", tmp_path / "r.sqlite3", "--no-cache", "--concurrency", 3),
        )
        run = launcher.start(tmp_path / "log", *here, "--timeout", 3600)

        def asked_on_disk() -> int:
            if not (tmp_path / "r.sqlite3").exists():
                return 0
            with sqlite3.connect(tmp_path / "r.sqlite3") as db:
                try:
                    found = db.execute("select count(*) from events where kind = 'question_asked'").fetchone()
                except sqlite3.OperationalError:
                    return 0
            return int(found[0])

        run.wait_until(lambda: len(server.requests) == 3 and asked_on_disk() >= 3)
        run.signal(SIGKILL)
        run.wait()
        server.behaviour = [answer("Norway")]
        ran = run_cli(*here, "--resume")
        assert ran.code == 0, ran.err
    assert "questions had no reply on disk when the run was killed, and were asked again" in ran.err


# ---- several at once on one real server ----------------------------------------------------------------------


async def _lived_through(timeline: Timeline, redis_url: str, path: Path) -> None:
    """A conversation is played as on the screen."""
    run = Run(read_settings(backend=("hybrid", "full_context"), redis_url=redis_url), path)
    session = run.start_session(timeline.conversation, timeline.append)
    await session.open()
    while not session.finished:
        await session.step()
    await session.close("resolved")
    await run.finish("finished")


def _rows(path: Path) -> list[tuple[str, ...]]:
    rows = json.loads(path.read_text())["questions"]
    return [(row["question_id"], row["backend"], row["outcome"], row["predicted"]) for row in rows]


def test_a_screen_and_a_batch_on_one_real_server_do_not_disturb_each_other(
    run_cli: RunCli, launcher: Launcher, tmp_path: Path
) -> None:
    asked = ("--batch", "--dataset", "identity-01", "--backend", "hybrid", "--backend", "full_context", "--output")
    assert run_cli(*asked, tmp_path / "alone.json", "--recording", tmp_path / "alone.sqlite3").code == 0
    (conversation,) = load(["identity-01"])
    with started_valkey() as server:
        beside = (*asked, tmp_path / "beside.json", "--recording", tmp_path / "beside.sqlite3")
        batch = launcher.start(tmp_path / "log", *beside, "--redis-url", server.connection_url)
        timeline = Timeline(conversation)
        asyncio.run(_lived_through(timeline, server.connection_url, tmp_path / "screen.sqlite3"))
        assert batch.wait() == 0, batch.said
        with Redis.from_url(server.connection_url, decode_responses=True) as plain:
            keys = plain.keys("full_history:*")
            assert len(keys) == 2 and len({plain.get(key) for key in keys}) == 1, "each has the whole conversation"
    assert timeline.played == len(conversation.turns)
    assert _rows(tmp_path / "beside.json") == _rows(tmp_path / "alone.json")


# ---- asked by hand on real servers -------------------------------------------------------------------------------


async def test_a_question_asked_by_hand_leaves_nothing_on_a_real_server(tmp_path: Path) -> None:
    (conversation,) = load(["identity-01"])
    with started_valkey() as server:
        settings = read_settings(backend=("hybrid", "full_context"), redis_url=server.connection_url)
        run = Run(settings, tmp_path / "r.sqlite3")
        probe = run.side_session(conversation, lambda event: None)
        await probe.ask_at(4, typed_question("Who am I?"), ["hybrid", "full_context"])
        with Redis.from_url(server.connection_url, decode_responses=True) as plain:
            assert len(plain.keys("*")) == 4
            await probe.close()
            assert plain.keys("*") == []
        await run.finish("interrupted")
