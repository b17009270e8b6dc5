"""Bisection: when an answer is learnt and forgotten."""

from __future__ import annotations

from math import log2

import pytest

from memory_backends.base import MemoryDescription
from memreplay.debugger.lifetime import Lifetime, lifetime
from memreplay.llm.model import Reply
from memreplay.runtime.bisecting import lifetimes
from tests.stubs.facts_memory import FactsMemory, Fate
from tests.unit.scoring.planted import played, question


@pytest.mark.parametrize("last", [1, 7, 600])
@pytest.mark.parametrize(
    ("learnt", "forgotten"), [(0, None), (0.4, None), (1, None), (0.4, 0.5), (0.1, 1), (0, 0.3)]
)
async def test_both_ends_are_found_with_few_probes(last: int, learnt: float, forgotten: float | None) -> None:
    first = round(learnt * last)
    end = None if forgotten is None else round(forgotten * last)
    if end is not None and end <= first:
        return
    probes: list[int] = []

    async def is_known(turn: int) -> bool:
        probes.append(turn)
        return first <= turn and (end is None or turn < end)

    found = await lifetime(is_known, first, last)
    assert (found.learnt, found.forgotten) == (first, end)
    assert len(probes) == len(set(probes)) <= 3 * (log2(last + 1) + 2)
    assert [found.knows(turn) for turn in range(last + 1)] == [
        first <= turn and (end is None or turn < end) for turn in range(last + 1)
    ]


async def test_what_is_never_known_has_no_lifetime() -> None:
    async def never(turn: int) -> bool:
        return False

    found = await lifetime(never, 3, 1000)
    assert (found.learnt, found.forgotten, found.knows(500)) == (None, None, False)
    assert len(found.probed) <= 15


@pytest.mark.parametrize(("value", "can_list", "learnt"), [("a colour", True, None), ("green", False, 6)])
async def test_what_a_memory_is_seen_to_store_has_a_lifetime(
    value: str, can_list: bool, learnt: int | None
) -> None:
    life = await stored_in(FactsMemory({"5": Fate(value)}, description=MemoryDescription(is_known=can_list)))
    assert isinstance(life, Lifetime) and life.learnt == learnt


async def test_of_a_memory_that_cannot_be_listed_it_is_not_said_that_it_never_knew() -> None:
    life = await stored_in(FactsMemory({"5": Fate("a colour")}, description=MemoryDescription(is_known=False)))
    assert isinstance(life, str) and "could be listed" in life


async def stored_in(memory: FactsMemory) -> Lifetime | str:
    timeline = await played(question(), {"facts": memory}, {"facts": Reply(text="purple")})
    return (await lifetimes(timeline, question(), ["facts"], "stored", None))["facts"]
