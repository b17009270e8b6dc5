"""``memreplay doctor --clean`` on servers that others use too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import models
from redis import Redis

from memreplay.engine.session import ReplaySession
from tests.cli.conftest import RunCli
from tests.stubs.launcher import Launcher
from tests.stubs.qdrant_server import QdrantServerStub, qdrant_server
from tests.stubs.valkey import started_valkey

THEIRS = {
    "full_history:conversation-7": "User: hello\n",
    "full_history:not-a-run-id/talk/full_context": "x",
    "personal_state:planner_agent_001": "{}",
    "personal_state:0123456789ab/talk/hybrid": "{}",
    "shared_state:evt_a1b2c3d4e5": "{}",
    "shared_state:0123456789ab": "{}",
    "cache:full_history:0123456789ab/talk/rag": "x",
    "something else": "x",
}
THEIR_TENANTS = ("acme", "0123456789ab", "", None)


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with started_valkey() as server:
        yield server.connection_url


@pytest.fixture
def plain(redis_url: str) -> Iterator[Redis]:
    with Redis.from_url(redis_url, decode_responses=True) as client:
        client.flushall()
        client.mset(THEIRS)
        yield client


@pytest.fixture
def qdrant() -> Iterator[QdrantServerStub]:
    with qdrant_server() as server:
        server.client.create_collection(
            "their_own", vectors_config=models.VectorParams(size=4, distance=models.Distance.COSINE)
        )
        ours_by_name_only = {"tenant": "0123456789ab/talk/hybrid"}
        server.client.upsert("their_own", [models.PointStruct(id=1, vector=[1.0] * 4, payload=ours_by_name_only)])
        yield server


def _add_theirs(server: QdrantServerStub, tenants: Sequence[str | None] = THEIR_TENANTS) -> None:
    """Let another program write to a collection of ours, which it creates where it is missing."""
    if not server.client.collection_exists("hybrid_verbatim"):
        server.client.create_collection(
            "hybrid_verbatim", vectors_config=models.VectorParams(size=384, distance=models.Distance.COSINE)
        )
    theirs = [
        models.PointStruct(id=number, vector=[1.0] * 384, payload={} if tenant is None else {"tenant": tenant})
        for number, tenant in enumerate(tenants, start=1)
    ]
    server.client.upsert("hybrid_verbatim", theirs)


@pytest.fixture
def configured(redis_url: str, qdrant: QdrantServerStub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMREPLAY_REDIS_URL", redis_url)
    monkeypatch.setenv("MEMREPLAY_QDRANT_URL", qdrant.url)


@pytest.mark.usefixtures("configured")
def test_data_of_runs_is_listed_then_removed_and_nothing_else(
    run_cli: RunCli, plain: Redis, qdrant: QdrantServerStub, tmp_path: Path
) -> None:
    for number in range(2):
        ran = run_cli(
            "--batch", "--dataset", "identity-01", "--backend", "hybrid", "--backend", "full_context",
            "--recording", tmp_path / f"{number}.sqlite3",
        )  # fmt: skip
        assert ran.code == 0, ran.err
    _add_theirs(qdrant)
    left = set(plain.keys()) - set(THEIRS)
    assert {key.partition(":")[0] for key in left} == {"personal_state", "shared_state", "full_history"}
    stored = qdrant.client.count("hybrid_verbatim").count
    assert stored > len(THEIR_TENANTS)

    told = run_cli("doctor", "--clean")
    assert told.code == 0
    assert "data of 2 runs" in told.out and "--yes" in told.out
    assert f"{len(left) // 2} keys" in told.out
    assert set(plain.keys()) == left | set(THEIRS)

    cleaned = run_cli("doctor", "--clean", "--yes")
    assert cleaned.code == 0
    assert f"Removed {len(left)} keys" in cleaned.out
    assert {key: plain.get(key) for key in plain.scan_iter()} == THEIRS
    kept, _ = qdrant.client.scroll("hybrid_verbatim", with_payload=True)
    assert [(point.payload or {}).get("tenant") for point in kept] == list(THEIR_TENANTS)
    assert qdrant.client.count("hybrid_knowledge").count == 0
    assert qdrant.client.count("their_own").count == 1

    again = run_cli("doctor", "--clean", "--yes")
    assert (again.code, "no data of any run" in again.out) == (0, True)


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize("tenants", [[None], ["acme"]], ids=["no tenant", "another tenant"])
def test_a_collection_of_another_program_is_never_written_to(
    run_cli: RunCli, plain: Redis, qdrant: QdrantServerStub, tmp_path: Path, tenants: list[str | None]
) -> None:
    _add_theirs(qdrant, tenants)
    ran = run_cli(
        "--batch", "--dataset", "identity-01", "--backend", "hybrid", "--recording", tmp_path / "r.sqlite3"
    )
    assert ran.code == 4
    assert "hybrid_verbatim" in ran.err and "another program" in ran.err and "delete" not in ran.err
    assert qdrant.client.count("hybrid_verbatim").count == len(tenants)
    assert set(plain.keys()) == set(THEIRS)
    doctor = run_cli("doctor")
    assert (doctor.code, "another program" in doctor.out) == (4, True)


@pytest.mark.usefixtures("configured", "plain")
def test_a_key_that_may_not_write_is_refused_before_anything_is_asked(
    run_cli: RunCli, qdrant: QdrantServerStub, tmp_path: Path
) -> None:
    options = ("--batch", "--dataset", "identity-01", "--backend", "rag")
    qdrant.is_read_only = True
    fresh = run_cli(*options, "--recording", tmp_path / "fresh.sqlite3")
    assert fresh.code == 5 and "refuses the key" in fresh.err, "there is no collection to try it on"
    assert "0 asked" in fresh.err
    qdrant.is_read_only = False
    assert run_cli(*options, "--recording", tmp_path / "a.sqlite3").code == 0
    stored = qdrant.client.count("goodai_ltm_full_history").count
    qdrant.is_read_only = True
    ran = run_cli(*options, "--recording", tmp_path / "b.sqlite3")
    assert ran.code == 4 and "it may not do what a run needs" in ran.err
    assert qdrant.client.count("goodai_ltm_full_history").count == stored


@pytest.mark.usefixtures("configured")
def test_the_data_of_a_run_in_progress_is_left_unless_it_is_forced(
    run_cli: RunCli,
    launcher: Launcher,
    plain: Redis,
    qdrant: QdrantServerStub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask, cleaned = ReplaySession.ask, []

    async def asking(session: ReplaySession, *given: Any, **named: Any) -> Any:
        if not cleaned:
            cleaned.append("")
            await asyncio.to_thread(launcher.run, tmp_path / "log", "doctor", "--clean", "--yes")
            cleaned[0] = (tmp_path / "log").read_text()
        return await ask(session, *given, **named)

    monkeypatch.setattr(ReplaySession, "ask", asking)
    options = ("--batch", "--dataset", "identity-01", "--backend", "hybrid", "--backend", "full_context")
    ran = run_cli(*options, "--recording", tmp_path / "r.sqlite3")
    assert ran.code == 0, ran.err
    assert "in progress" in cleaned[0] and "Removed 0 keys and 0 points" in cleaned[0] and "--force" in cleaned[0]
    assert not plain.keys("memreplay:*") and not qdrant.client.collection_exists("memreplay_live")

    live = next(key for key in plain.keys("full_history:*") if key not in THEIRS).split(":")[1].split("/")[0]
    plain.set(f"memreplay:live:{live}", "1")
    assert "Removed 0 keys" in run_cli("doctor", "--clean", "--yes").out
    forced = run_cli("doctor", "--clean", "--force")
    assert live in forced.out and "breaks" in forced.out
    assert "Removed 0 keys" not in run_cli("doctor", "--clean", "--yes", "--force").out
    assert run_cli("doctor", "--force").code == 2


def test_embedded_stores_leave_nothing(run_cli: RunCli) -> None:
    ran = run_cli("doctor", "--clean", "--yes")
    assert (ran.code, "no data of any run" in ran.out) == (0, True)


def test_a_server_that_is_not_there_cannot_be_cleaned(run_cli: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMREPLAY_REDIS_URL", "redis://127.0.0.1:1")
    ran = run_cli("doctor", "--clean", "--yes")
    assert (ran.code, ran.out) == (4, "")
    assert "127.0.0.1:1" in ran.err
    assert run_cli("doctor", "--yes").code == 2
