"""How long to search for faults: a little in ``make test``, long in ``make torture``."""

from __future__ import annotations

import os

TORTURE = int(os.environ.get("MEMREPLAY_TEST_TORTURE", "1"))
"""By how much more to try than ``make test`` does."""


def examples(few: int) -> int:
    """So many examples, or that many times more in ``make torture``."""
    return few * TORTURE
