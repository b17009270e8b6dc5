"""A memory that keeps its process busy with Python code for as long as a file exists."""

from __future__ import annotations

import os
from pathlib import Path

from memory_backends.base import Exchange
from memory_backends.examples.notebook import NotebookMemory

BUSY_WHILE = "BUSY_WHILE"
"""The environment variable with the file's path."""


def busy_marker(path: Path) -> Path:
    """A file that is written, with the process's id, once a memory is busy."""
    return path.with_suffix(".busy")


class Busy(NotebookMemory):
    name = "busy"

    async def observe(self, exchange: Exchange) -> None:
        path = Path(os.environ[BUSY_WHILE])
        if path.exists():
            busy_marker(path).write_text(str(os.getpid()))
        while path.exists():
            pass
        await super().observe(exchange)
