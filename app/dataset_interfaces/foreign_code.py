"""Code of datasets that somebody else wrote: whatever it raises is told, and never ends the program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread

from app.answering.gate import HaltedError
from app.errors import MemreplayError, UsageError


@contextmanager
def told_as_usage(what_cannot_be: str) -> Iterator[None]:
    """Run such code.

    Raises:
        UsageError: it fails, or would end the program; the sentence begins with ``what_cannot_be``.
    """
    try:
        yield
    except (MemreplayError, HaltedError):
        raise
    except BaseException as error:
        if is_the_users(error):
            raise
        raise UsageError(f"{what_cannot_be} ({problem_of(error)})") from error


def is_the_users(error: BaseException) -> bool:
    """Whether it is a Ctrl-C, which only the main thread hears of."""
    return isinstance(error, KeyboardInterrupt) and current_thread() is main_thread()


def problem_of(error: BaseException) -> str:
    """What was raised, in words."""
    if isinstance(error, SystemExit):
        return f"it calls sys.exit({'' if error.code is None else error.code})"
    return f"{type(error).__name__}: {error}"
