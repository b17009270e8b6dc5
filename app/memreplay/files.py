"""Files that the user names: reads regular files only, and writes output atomically."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from memreplay.errors import UsageError

NOT_REGULAR = "is not a regular file"


def is_irregular(path: Path) -> bool:
    """Return whether the path exists and is no regular file: a device, a pipe, a socket, a folder."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def read_text(path: Path) -> str:
    """Return the text of a regular UTF-8 file.

    Raises:
        OSError: missing, unreadable, or not a regular file.
        UnicodeDecodeError: not UTF-8.
    """
    if is_irregular(path):
        raise OSError(f"it {NOT_REGULAR}")
    return path.read_text(encoding="utf-8")


def refuse_unusable_output(output: str, inputs: Iterable[Path] = ()) -> None:
    """Raise UsageError if the file cannot be written, or is one of ``inputs``; touches nothing."""
    try:
        path = _target(output)
        if not os.access(path.parent, os.W_OK):
            raise UsageError(f"{output}: its folder is not writable; choose another place")
        for known in inputs:
            if os.path.realpath(known) == str(path):
                raise UsageError(f"{output}: would overwrite the input {known}; choose another file")
    except OSError as error:
        raise _unwritable(output, error) from None


def write_whole(output: str, text: str | Iterable[str]) -> None:
    """Write a text, or its parts one by one, to a file, atomically.

    A symbolic link stays a link: its target is replaced.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        path = _target(output)
        unfinished = _unfinished(path)
        try:
            with unfinished.open("w", encoding="utf-8", newline="") as file:
                file.writelines((text,) if isinstance(text, str) else text)
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _unwritable(output, error) from error


def _target(output: str) -> Path:
    """Return the file that a path resolves to; it need not exist.

    Raises:
        UsageError: it is not a file, or its folder does not exist.
        OSError: its name is too long.
    """
    path = Path(os.path.realpath(output))
    # A link that remains after resolving is part of a cycle.
    is_free = not path.is_symlink() and not path.exists()
    if not path.parent.is_dir() or not (is_free or path.is_file()):
        raise UsageError(f"{output}: cannot be written: not a file in an existing folder")
    _unfinished(path).exists()
    return path


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.unfinished")


def _unwritable(output: str, error: OSError) -> UsageError:
    return UsageError(f"{output}: cannot be written: {error.strerror}")
