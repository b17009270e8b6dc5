"""Running the contract over a memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from memory_backends.base import BackendError
from memory_backends.contract.promises import PROMISES
from memory_backends.contract.rule import BrokenRuleError, Rule, Subject

LONGEST_TRIAL = 60.0
"""Seconds that one rule may take."""


@dataclass(frozen=True)
class Finding:
    """A rule, and how it is broken; None where it is kept."""

    rule: Rule
    broken: str | None

    @property
    def fatal(self) -> bool:
        """Whether something is broken that a memory must keep."""
        return self.broken is not None and self.rule.weight == "must"


async def check_memory(subject: Subject, rules: Sequence[Rule] = PROMISES) -> AsyncIterator[Finding]:
    """Try one rule after the other. Whatever a memory raises breaks the rule it was tried on."""
    for rule in rules:
        yield Finding(rule, await _broken(rule, subject))


async def _broken(rule: Rule, subject: Subject) -> str | None:
    try:
        async with asyncio.timeout(LONGEST_TRIAL):
            await rule.holds(subject)
    except TimeoutError:
        return f"it took more than {LONGEST_TRIAL:g} s"
    except (BrokenRuleError, BackendError) as error:
        return str(error)
    except Exception as error:
        return f"it raised {type(error).__name__}: {error}"
    return None
