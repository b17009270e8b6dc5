"""How a set of tests is run together."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

_NOT_IN_A_KEY = re.compile(r"[\W_]+")

SIMULATED_START = datetime(2024, 1, 1, 9, 0)
"""When the simulated clock begins, unless a run says otherwise."""


@dataclass(frozen=True)
class RunConfig:
    """What ``config`` in a ``config.yml`` says, and how to run.

    ``incompatibilities`` are groups of datasets of which no two may overlap. ``isolated`` runs each test alone,
    with a fresh memory. ``seed`` decides the filler; ``start`` is the first moment of the simulated clock.
    """

    run_name: str = "memreplay"
    debug: bool = False
    incompatibilities: tuple[frozenset[str], ...] = field(default=())
    isolated: bool = False
    seed: int = 0
    start: datetime = SIMULATED_START


def dataset_key(name: str) -> str:
    """A dataset's name as it is compared: "Name List", "NameList" and "name_list" are one dataset."""
    return _NOT_IN_A_KEY.sub("", name).casefold()
