"""Before anything is paid: may this user do on the Redis server all that a run does, and does it keep its data?"""

from __future__ import annotations

import asyncio

import pytest
from redis import Redis

from memory_backends.base import StoreUnavailableError
from memory_backends.stores.redis import RedisConnection
from tests.stubs.valkey import started_valkey

KEYS = ("~personal_state:*", "~shared_state:*", "~full_history:*")


async def checked(port: int, user: str = "runner:secret@") -> list[str]:
    connection = RedisConnection.to(f"redis://{user}127.0.0.1:{port}", patience=0.1)
    try:
        await connection.check()
        return await connection.warnings()
    finally:
        await connection.aclose()


@pytest.mark.parametrize(
    ("rules", "needed"),
    [
        ((*KEYS, "&*", "+@all", "-append"), r"its access list needs \+append$"),
        ((*KEYS, "&*", "+ping"), r"its access list needs \+set$"),
        (("~personal_state:*", "&*", "+@all"), r"its access list needs ~personal_state:\* ~shared_state:\* "),
        ((*KEYS, "resetchannels", "+@all"), r"its access list needs &channel:\*$"),
        ((*KEYS, "&*", "+@all", "-del"), r"its access list needs \+del$"),
        ((*KEYS, "&*", "+@all", "-strlen"), r"its access list needs \+strlen$"),
    ],
    ids=["append", "nothing", "other keys", "channels", "delete", "length"],
)
async def test_a_missing_permission_is_one_whole_sentence(rules: tuple[str, ...], needed: str):
    with started_valkey() as server:
        admin = Redis(port=server.port)
        admin.execute_command("ACL", "SETUSER", "runner", "on", ">secret", *rules)
        with pytest.raises(StoreUnavailableError, match=needed):
            await checked(server.port)
        assert all(0 < admin.ttl(key) <= 60 for key in admin.keys("*"))
        admin.close()


async def test_a_user_with_what_is_needed_passes_and_nothing_is_left():
    with started_valkey() as server:
        admin = Redis(port=server.port)
        commands = "ping get set append getrange expire watch multi exec publish del info strlen"
        allowed = [f"+{name}" for name in commands.split()]
        admin.execute_command("ACL", "SETUSER", "runner", "on", ">secret", *KEYS, "&channel:*", *allowed)
        assert await checked(server.port) == []
        assert admin.keys("*") == []
        admin.close()


async def test_a_policy_that_evicts_is_named():
    with started_valkey() as server:
        admin = Redis(port=server.port)
        admin.config_set("maxmemory", "100mb")
        admin.config_set("maxmemory-policy", "allkeys-lru")
        (sentence,) = await checked(server.port, "")
        assert "its maxmemory-policy is allkeys-lru" in sentence
        admin.config_set("maxmemory-policy", "noeviction")
        assert await checked(server.port, "") == []
        used = int(admin.info("memory")["used_memory"])
        admin.config_set("maxmemory", used + used // 50)
        (sentence,) = await checked(server.port, "")
        assert "(maxmemory)" in sentence
        admin.close()


@pytest.mark.parametrize(
    ("scheme", "answer", "said"),
    [
        ("redis", b"HTTP/1.1 400 Bad Request\r\n\r\n", "is a web server, and not Redis"),
        ("rediss", b"-ERR wrong number of arguments for 'get' command\r\n", "use redis:// in place of rediss://"),
        ("redis", b"\x15\x03\x01\x00\x02\x02\x46", "use rediss:// in place of redis://"),
    ],
)
async def test_what_answers_in_place_of_the_server_is_named(scheme: str, answer: bytes, said: str):
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received = await reader.read(16)
        if received.startswith((b"GET", b"*")):
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connection = RedisConnection.to(f"{scheme}://127.0.0.1:{port}", patience=0.1)
    try:
        with pytest.raises(StoreUnavailableError, match=said):
            await connection.check()
    finally:
        await connection.aclose()
        server.close()
