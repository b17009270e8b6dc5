"""Files that the user names for reading: only what has an end, and needs nobody at its other end, is read."""

from __future__ import annotations

import stat
from pathlib import Path

NOT_REGULAR = "is not a regular file"


def is_irregular(path: Path) -> bool:
    """Whether something is there that is no file with an end: a device, a pipe, a socket, a folder."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def read_text(path: Path) -> str:
    """All of a file in UTF-8.

    Raises:
        OSError: it is not there, cannot be read, or is not a regular file.
        UnicodeDecodeError: it is not UTF-8.
    """
    if is_irregular(path):
        raise OSError(f"it {NOT_REGULAR}")
    return path.read_text(encoding="utf-8")
