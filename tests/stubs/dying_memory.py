"""A memory whose process dies, as often as a file says."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from memory_backends.base import Exchange, Namespace
from memory_backends.examples.notebook import NotebookMemory

DEATHS, DIES_IN = "DEATHS", "DIES_IN"
"""The environment variables with the path of a file, and with the id of the conversation that is deadly.

The file has one line for each death to come; without it nobody dies.
"""


class Dying(NotebookMemory):
    name = "dying"

    async def open(self, namespace: Namespace) -> None:
        self._is_deadly = namespace.conversation_id == os.environ[DIES_IN]
        await super().open(namespace)

    async def observe(self, exchange: Exchange) -> None:
        await super().observe(exchange)
        deaths = Path(os.environ[DEATHS])
        if self._is_deadly and deaths.exists() and (left := deaths.read_text().splitlines()):
            deaths.write_text("\n".join(left[1:]))
            os.kill(os.getpid(), signal.SIGKILL)
