"""The same run against real servers: a Redis-protocol one read by a plain client, and an OpenAI-compatible one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from memreplay.conversations.registry import load
from tests.cli.conftest import RunCli
from tests.stubs.openai_server import OpenAIServer, answer
from tests.stubs.valkey import started_valkey


@pytest.fixture
def redis_url() -> Iterator[str]:
    with started_valkey() as server:
        yield server.connection_url


def test_a_plain_client_finds_the_documented_objects_filled_with_what_was_said(
    run_cli: RunCli, redis_url: str, tmp_path: Path
) -> None:
    recording = tmp_path / "r.sqlite3"
    ran = run_cli("--batch", "--dataset", "identity-01", "--redis-url", redis_url, "--recording", recording)
    assert ran.code == 0, ran.err
    with sqlite3.connect(recording) as db:
        ((run,),) = db.execute("select id from runs").fetchall()
    with Redis.from_url(redis_url, decode_responses=True) as plain:
        keys = sorted(plain.keys("*"))
        assert keys == [
            f"full_history:{run}/identity-01/full_context",
            f"personal_state:consolidation_agent/{run}/identity-01/hybrid",
            f"personal_state:planner_agent/{run}/identity-01/hybrid",
            f"shared_state:{run}/identity-01/hybrid",
        ]
        log, _, personal, shared = (plain.get(key) for key in keys)
    conversation = next(iter(load(["identity-01"])))
    assert log == "".join(f"{conversation.label_of(turn)}: {turn.text}\n" for turn in conversation.turns)
    workspace = json.loads(shared)
    assert list(workspace) == [
        "event_id", "status", "shared_data", "participating_agents", "created_at", "last_updated",
    ]  # fmt: skip
    assert workspace["status"] == "resolved"
    assert workspace["shared_data"]["user.name"]["value"] == "Arnau Ferrusola"
    assert len(workspace["participating_agents"]) == 2
    state = json.loads(personal)
    assert list(state) == ["agent_id", "current_task_id", "scratchpad", "promotion_candidates", "last_updated"]
    assert state["current_task_id"] == "identity-01"
    assert state["scratchpad"]


def test_a_hosted_model_is_sent_the_prompt_and_its_reply_is_scored_and_accounted(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    recording, output = tmp_path / "r.sqlite3", tmp_path / "results.json"
    with OpenAIServer(lambda request: answer("Arnau Ferrusola", prompt_tokens=321, cached_tokens=64)) as server:
        ran = run_cli(
            "--batch", "--dataset", "identity-01", "--backend", "full_context", "--limit", 1,
            "--model", "openai/gpt-4o-mini", "--api-base", server.url,
            "--recording", recording, "--output", output,
        )  # fmt: skip
        with_memory, closed_book = sorted(server.requests, key=lambda request: len(request.prompt), reverse=True)
    assert ran.code == 0, ran.err
    assert with_memory.body["temperature"] == closed_book.body["temperature"] == 0
    assert "Arnau Ferrusola" in with_memory.prompt and "first and last name" in with_memory.prompt
    assert "Arnau Ferrusola" not in closed_book.prompt and "first and last name" in closed_book.prompt
    results = json.loads(output.read_text())
    (row,) = results["questions"]
    assert (row["outcome"], row["reply"]) == ("correct", "Arnau Ferrusola")
    assert row["tokens"] == {"prompt": 321, "completion": 1, "cached": 64}
    assert row["cost_usd"] > 0
    assert "sk-test" not in output.read_text() + ran.out + ran.err
    assert b"sk-test" not in recording.read_bytes()
