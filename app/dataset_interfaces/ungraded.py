"""A test that could not be judged: that is not a score of zero."""

from __future__ import annotations


class Ungraded(Exception):
    """Raised where a test cannot be graded; ``str(error)`` says why in one sentence.

    A dataset lets it pass, or raises it itself; the scheduler ends the test without a score.
    """
