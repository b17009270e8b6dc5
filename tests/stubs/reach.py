"""Notes what the process reaches for: connections, look-ups of names, and processes that it starts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_EVENTS = (
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.sendto",
    "subprocess.Popen",
    "os.posix_spawn",
    "os.exec",
    "os.system",
)
_noting: list[list[str]] = []
_installed: list[bool] = []


@contextmanager
def reached() -> Iterator[list[str]]:
    """Yield a list that fills with what is reached for, as Python's own audit events say."""
    if not _installed:
        # An audit hook stays for the life of the process.
        sys.addaudithook(_hook)
        _installed.append(True)
    noted: list[str] = []
    _noting.append(noted)
    try:
        yield noted
    finally:
        _noting.remove(noted)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _noting and event in _EVENTS:
        for noted in _noting:
            noted.append(f"{event}{arguments[:2]}")
