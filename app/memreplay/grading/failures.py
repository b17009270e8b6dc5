"""Failures of grading rules: a rule that raises costs the answer that it graded, not the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from memreplay.errors import MemreplayError

_FAILED: Final = "grading failed: "
_LONGEST_REASON: Final = 200
"""Characters. The message of an exception may quote a whole reply."""


class GradingError(Exception):
    """A rule failed on one answer. ``str(error)`` is the reason that its row gets."""


@contextmanager
def grading_one_answer() -> Iterator[None]:
    """Report what goes wrong in this block as a failure to grade one answer.

    The block must call no model and wait for nothing: it applies rules to what is there. What is not about the
    answer passes: errors that a user can fix, and of files.

    Raises:
        GradingError: a rule failed.
    """
    try:
        yield
    except (GradingError, MemreplayError, OSError):
        raise
    except MemoryError:
        raise GradingError(_FAILED + "out of memory") from None
    except Exception as error:
        said = " ".join(str(error).split())
        reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
        raise GradingError(_FAILED + reason[:_LONGEST_REASON]) from error


def is_grading_failure(problem: str | None) -> bool:
    """Return whether a problem with an answer is that a rule failed: the answer can be graded again."""
    return problem is not None and problem.startswith(_FAILED)
