"""What hears of a dataset file while it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.errors import DatasetError

Warn = Callable[[str], None]
OnBytes = Callable[[int], None]
OnOpened = Callable[[Path], OnBytes]
"""Told of a file that is opened to be read to its end; what it returns is told of every stretch of bytes read."""


def _unheard(_: str | int) -> None:
    """Nobody listens."""


def _unwatched(_: Path) -> OnBytes:
    return _unheard


def refuse(fault: DatasetError) -> None:
    """A fault ends the reading."""
    raise fault


def pass_over(_: DatasetError) -> None:
    """A fault that was told before."""


@dataclass(frozen=True)
class Listener:
    """Warnings, repairs and faults of a file, and how far its reading has come.

    ``warn`` hears what a reader should know though the file loads, ``repaired`` of malformed evidence that was put
    right. ``fault`` either raises, or keeps the fault: then the reading goes on with the next part of the file.
    """

    warn: Warn = _unheard
    repaired: Warn = _unheard
    fault: Callable[[DatasetError], None] = refuse
    opened: OnOpened = _unwatched


SILENT = Listener()
