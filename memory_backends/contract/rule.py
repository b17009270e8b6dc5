"""A rule of the contract, and what it is tried on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from memory_backends.base import Clock, MemoryBackend, Namespace
from memory_backends.contract.materials import TickingClock

Weight = Literal["must", "should"]


class BrokenRuleError(Exception):
    """A memory does not keep a rule: one sentence that says what was seen."""


@dataclass(frozen=True)
class Subject:
    """A memory under trial. ``make`` gives a new one each time; all of them share their stores."""

    name: str
    make: Callable[[Clock], MemoryBackend]

    async def opened(
        self, conversation: str = "talk", run: str = "run1", clock: Clock | None = None
    ) -> MemoryBackend:
        """A new one, open under this conversation and run."""
        memory = self.make(clock or TickingClock())
        await memory.open(Namespace(run_id=run, conversation_id=conversation, backend=self.name))
        return memory


@dataclass(frozen=True)
class Rule:
    """``promise`` is the rule in words; ``holds`` raises where it does not.

    What a memory ``must`` keep is needed for the results to mean anything. What it ``should`` keep is what panels
    and retrieval figures are made from: without it they stay empty.
    """

    name: str
    promise: str
    weight: Weight
    holds: Callable[[Subject], Awaitable[None]]


def expect(kept: bool, otherwise: str) -> None:
    """Raise :class:`BrokenRuleError` with the sentence, unless the rule was kept."""
    if not kept:
        raise BrokenRuleError(otherwise)
