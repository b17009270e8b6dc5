"""How long to search for faults: a little in ``make test``, long in ``make torture``."""

from __future__ import annotations

import os
from typing import Final

from hypothesis import Phase

TORTURE: Final = int(os.environ.get("MEMREPLAY_TEST_TORTURE", "1"))
"""By how much more to try than ``make test`` does."""

PHASES: Final = tuple(Phase) if TORTURE > 1 else (Phase.explicit, Phase.generate)
"""Of a search whose examples take a second or more each. Looking for the smallest one that fails takes up to five
minutes, which ``make torture`` has; ``make test`` prints the one that was drawn."""


def examples(few: int) -> int:
    """So many examples, or that many times more in ``make torture``."""
    return few * TORTURE
