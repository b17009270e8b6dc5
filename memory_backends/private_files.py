"""Files that only their owner may read, whatever the umask: recordings and caches hold what was said."""

from __future__ import annotations

import os
from pathlib import Path

OWNERS_FILE, OWNERS_FOLDER = 0o600, 0o700


def make_private_folder(path: Path) -> None:
    """Create a folder, and those above it that are missing, for their owner alone. What is there keeps its mode.

    Raises:
        OSError: it cannot be created, or is a file.
    """
    for folder in reversed((path, *path.parents)):
        if folder == path or not folder.exists():
            folder.mkdir(mode=OWNERS_FOLDER, exist_ok=True)


def create_private_file(path: Path) -> None:
    """Create an empty file for its owner alone, before anything is in it. One that is there keeps its mode.

    SQLite gives the mode of a file to the journals that it keeps beside it.

    Raises:
        OSError: it cannot be created.
    """
    if not path.exists():
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, OWNERS_FILE))


def take_from_others(folder: Path) -> None:
    """Leave a folder, and all in it that others wrote there, to its owner alone."""
    for each in (folder, *folder.rglob("*")):
        if not each.is_symlink():
            each.chmod(OWNERS_FOLDER if each.is_dir() else OWNERS_FILE)
