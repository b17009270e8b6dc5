"""``--backend mcp:URL``: streamable HTTP, against a server of the official package."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from memory_backends.base import BackendError
from memory_backends.contract.trial import TALK, play
from memory_backends.registry import check_backend_name
from tests.conftest import REPOSITORY
from tests.stubs.memory import namespace
from tests.unit.memory_backends.test_mcp_memory import created

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="mcp is not installed")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    port = _free_port()
    stub = REPOSITORY / "tests" / "stubs" / "mcp_server.py"
    command = [sys.executable, str(stub), str(tmp_path / "notes.json"), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        for _ in range(300):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.1):
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()


async def test_a_server_behind_a_url_is_used_and_one_that_holds_items_of_before_is_refused(url: str) -> None:
    memory = created(f"mcp:{url}")
    await memory.open(namespace("mcp"))
    try:
        await play(memory, TALK[:2])
        recall = await memory.recall("Where does Marta work?", 3, 400)
        assert "Nimbus Labs" in recall.context and "1" in recall.turns_in_context
        assert len((await memory.snapshot()).points["mcp"]["memories"]) == 2
    finally:
        await memory.close("resolved")
    second = created(f"mcp:{url}?user={{session}}")
    with pytest.raises(BackendError, match=r"starts with 2 items of before; put \{session\} into its address"):
        await second.open(namespace("mcp", "another"))
    await second.close("cancelled")


async def test_a_server_that_is_not_there_is_one_sentence_and_no_process(tmp_path: Path) -> None:
    memory = created("mcp:http://127.0.0.1:1/mcp")
    with pytest.raises(BackendError, match="the MCP server cannot be reached: ") as raised:
        await memory.open(namespace("mcp"))
    assert "\n" not in str(raised.value)
    await memory.close("cancelled")


@pytest.mark.parametrize(
    "name",
    [
        "mcp:http://host/mcp; touch started",
        "mcp: http://host/mcp",
        "mcp:HTTP:host",
        "mcp:https://me:pass@host/mcp",
        "mcp:http://host/mcp?key=s3cret",
        "mcp:http://host/mcp?user={session}&key=s3cret",
        "mcp:http://host/mcp#part",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_and_never_a_command(name: str) -> None:
    with pytest.raises(BackendError, match=r"the address of (the|an) MCP server") as refused:
        check_backend_name(name)
    assert "s3cret" not in str(refused.value) and "pass@" not in str(refused.value)
