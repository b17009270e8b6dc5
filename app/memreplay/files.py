"""Files that the user names: reading what has an end, and writing output whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from memreplay.errors import UsageError

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


def refuse_unusable_output(output: str, inputs: Iterable[Path] = ()) -> None:
    """Make sure that a file can be written, and is none of those that are read.

    Raises:
        UsageError: it is not; nothing was touched.
    """
    try:
        path = _target(output)
        if not os.access(path.parent, os.W_OK):
            raise UsageError(f"--output {output}: its folder cannot be written to")
        for known in inputs:
            if os.path.realpath(known) == str(path):
                raise UsageError(f"--output {output}: would overwrite {known}, which is read; name another file")
    except OSError as error:
        raise _unwritable(output, error) from None


def write_whole(output: str, text: str) -> None:
    """Write a file; it is replaced whole or not at all. A link stays one: what it leads to is replaced.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        path = _target(output)
        unfinished = _unfinished(path)
        try:
            unfinished.write_text(text, encoding="utf-8", newline="")
            unfinished.replace(path)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _unwritable(output, error) from None


def _target(output: str) -> Path:
    """What a path leads to, which need not be there.

    Raises:
        UsageError: it is no file, or its folder is not there.
        OSError: its name is too long.
    """
    path = Path(os.path.realpath(output))
    # A link that is left leads round in a circle.
    is_free = not path.is_symlink() and not path.exists()
    if not path.parent.is_dir() or not (is_free or path.is_file()):
        raise UsageError(f"--output {output}: cannot be written: not a file in an existing folder")
    _unfinished(path).exists()
    return path


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.unfinished")


def _unwritable(output: str, error: OSError) -> UsageError:
    return UsageError(f"--output {output}: cannot be written: {error.strerror}")
