"""Errors that a user can mend. Each says what is wrong in one sentence and carries its exit code."""

from __future__ import annotations

from pathlib import Path

EXIT_DONE = 0
EXIT_BELOW_THRESHOLD = 1
EXIT_USAGE = 2
EXIT_QUESTION_ERRORS = 3
EXIT_MISSING_SERVER_OR_KEY = 4
EXIT_INTERRUPTED = 130


class MemreplayError(Exception):
    """Something a user can mend. ``str(error)`` is one sentence, fit to be printed as it is."""

    exit_code = EXIT_USAGE


class UsageError(MemreplayError):
    """Wrong options, or a configuration that cannot work."""


class DatasetError(MemreplayError):
    """A dataset file that cannot be read: where, what is wrong, what was expected.

    ``pointer`` is a JSON pointer (RFC 6901) into the file, or ``line N`` for text that is not JSON.
    """

    def __init__(self, path: Path | str, pointer: str, problem: str, expected: str) -> None:
        self.path, self.pointer, self.problem, self.expected = str(path), pointer, problem, expected
        super().__init__(f"{path}: {pointer or '/'}: {problem}; expected {expected}")


class RecordingError(MemreplayError):
    """A recording that cannot be opened: of a newer version, of something else, or in use."""


class MissingServerOrKeyError(MemreplayError):
    """A needed server does not answer, or a hosted model's key is absent."""

    exit_code = EXIT_MISSING_SERVER_OR_KEY
