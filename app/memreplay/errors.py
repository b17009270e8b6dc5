"""Errors that a user can fix. Each says what is wrong in one sentence and carries its exit code."""

from __future__ import annotations

import errno
from pathlib import Path

EXIT_DONE = 0
EXIT_BELOW_THRESHOLD = 1
EXIT_USAGE = 2
EXIT_QUESTION_ERRORS = 3
EXIT_MISSING_SERVER_OR_KEY = 4
EXIT_STOPPED = 5
EXIT_REGRESSION = 6
EXIT_INTERRUPTED = 130

_FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
_FIXABLE = _FULL_DISK | {errno.ENAMETOOLONG, errno.EROFS, errno.EMFILE, errno.EACCES}


class MemreplayError(Exception):
    """An error that a user can fix. ``str(error)`` is one sentence, ready to print."""

    exit_code = EXIT_USAGE


def exit_code_of(error: MemreplayError | OSError) -> int | None:
    """Return the exit code for an error that ends a command; None for an OSError that no user can fix.

    A full disk is neither wrong usage nor an interruption: its owner makes room and continues.
    """
    cause = error.__cause__ if isinstance(error, MemreplayError) else error
    if isinstance(cause, OSError) and cause.errno in _FULL_DISK:
        return EXIT_STOPPED
    if isinstance(error, MemreplayError):
        return error.exit_code
    return EXIT_USAGE if error.errno in _FIXABLE else None


class UsageError(MemreplayError):
    """Invalid options or configuration."""


class DatasetError(MemreplayError):
    """An invalid dataset file: where, what is wrong, what was expected.

    ``pointer`` is a JSON pointer (RFC 6901) into the file, or ``line N`` for text that is not JSON.
    """

    def __init__(self, path: Path | str, pointer: str, problem: str, expected: str) -> None:
        self.path, self.pointer, self.problem, self.expected = str(path), pointer, problem, expected
        super().__init__(f"{path}: {pointer or '/'}: {problem}; expected {expected}")


class RecordingError(MemreplayError):
    """A recording that cannot be opened or written: a newer version, another kind of file, in use, a full disk."""


class RecordingInUseError(RecordingError):
    """Another process records into the file."""


class DamagedEventError(RecordingError):
    """An event cannot be used. The message lacks the file's name, which the reader adds."""


class MissingServerOrKeyError(MemreplayError):
    """A required server does not answer, or a hosted model's key is missing."""

    exit_code = EXIT_MISSING_SERVER_OR_KEY
