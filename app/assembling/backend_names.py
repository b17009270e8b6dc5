"""Names of memories, as they were given. Light to import: they are looked at before anything else."""

from __future__ import annotations

from collections.abc import Sequence

from app.agents.address import AgentAddress, is_agent
from app.errors import UsageError
from memory_backends.errors import BackendError
from memory_backends.registry import check_backend_name


def refuse_unknown_backends(names: Sequence[str]) -> None:
    """Make sure that every name is a memory's, before anything is built; plugged-in ones are imported.

    Raises:
        UsageError: one is not, or cannot be plugged in.
    """
    try:
        for name in names:
            if is_agent(name):
                AgentAddress.read(name)
            else:
                check_backend_name(name)
    except BackendError as error:
        raise UsageError(str(error)) from None
