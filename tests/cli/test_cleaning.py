"""``memreplay doctor --clean`` on servers that others use too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from qdrant_client import models
from redis import Redis

from tests.cli.conftest import RunCli
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
            "hybrid_verbatim", vectors_config=models.VectorParams(size=384, distance=models.Distance.COSINE)
        )
        server.client.create_collection(
            "their_own", vectors_config=models.VectorParams(size=4, distance=models.Distance.COSINE)
        )
        theirs = [
            models.PointStruct(id=number, vector=[1.0] * 384, payload={} if tenant is None else {"tenant": tenant})
            for number, tenant in enumerate(THEIR_TENANTS, start=1)
        ]
        server.client.upsert("hybrid_verbatim", theirs)
        ours_by_name_only = {"tenant": "0123456789ab/talk/hybrid"}
        server.client.upsert("their_own", [models.PointStruct(id=1, vector=[1.0] * 4, payload=ours_by_name_only)])
        yield server


@pytest.fixture
def configured(redis_url: str, qdrant: QdrantServerStub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMREPLAY_REDIS_URL", redis_url)
    monkeypatch.setenv("MEMREPLAY_QDRANT_URL", qdrant.url)


@pytest.mark.usefixtures("configured")
def test_data_of_runs_is_listed_then_removed_and_nothing_else(
    run_cli: RunCli, plain: Redis, qdrant: QdrantServerStub, tmp_path
) -> None:
    for number in range(2):
        ran = run_cli(
            "--batch", "--dataset", "identity-01", "--backend", "hybrid", "--backend", "full_context",
            "--recording", tmp_path / f"{number}.sqlite3",
        )  # fmt: skip
        assert ran.code == 0, ran.err
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


def test_embedded_stores_leave_nothing(run_cli: RunCli) -> None:
    ran = run_cli("doctor", "--clean", "--yes")
    assert (ran.code, "no data of any run" in ran.out) == (0, True)


def test_a_server_that_is_not_there_cannot_be_cleaned(run_cli: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMREPLAY_REDIS_URL", "redis://127.0.0.1:1")
    ran = run_cli("doctor", "--clean", "--yes")
    assert (ran.code, ran.out) == (4, "")
    assert "127.0.0.1:1" in ran.err
    assert run_cli("doctor", "--yes").code == 2
