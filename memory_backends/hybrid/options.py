"""How the hybrid memory is varied: what is switched off, and how much of a recall each tier may take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from memory_backends.base import BackendError

MECHANISMS: Mapping[str, str] = {
    "promotion": "no candidate is promoted to long-term memory",
    "supersession": "a corrected value does not end the one it corrects",
    "verbatim": "exchanges are not stored word for word",
    "knowledge": "distilled facts are not recalled",
    "shared": "the workspace takes in no facts, and is not recalled",
    "personal": "the planner's own notes and standing instructions are not recalled",
    "dense": "turns are ranked without vectors",
    "keyword": "turns are ranked without their words",
    "speaker": "turns are ranked without who said them",
    "date": "turns are ranked without when they were said",
}
"""What can be switched off, and what then happens."""

TIER_SHARES: Mapping[str, float] = {"personal": 0.05, "shared": 0.1, "knowledge": 0.1}
"""The most that each tier may take of a recall's hits and of its tokens. What was said has all the rest."""


class HybridOptionError(BackendError):
    """An option of the hybrid memory that there is none of, or a share that is none."""


@dataclass(frozen=True)
class HybridOptions:
    """What is switched off (names of :data:`MECHANISMS`), and the share of each tier (0..1)."""

    ablated: frozenset[str] = frozenset()
    shares: Mapping[str, float] = field(default_factory=lambda: dict(TIER_SHARES))

    def keeps(self, mechanism: str) -> bool:
        """Whether a mechanism is on."""
        return mechanism not in self.ablated


DEFAULTS = HybridOptions()


def hybrid_options(ablated: Iterable[str], shares: Iterable[str]) -> HybridOptions:
    """Options from their names; each share is ``tier=number``.

    Raises:
        HybridOptionError: one of them cannot be; the sentence says which there are.
    """
    names = frozenset(ablated)
    for name in sorted(names - MECHANISMS.keys()):
        raise HybridOptionError(f"nothing named {name!r} can be switched off; there are {', '.join(MECHANISMS)}")
    given: dict[str, float] = {}
    for tier, share in map(_share, shares):
        if tier in given:
            raise HybridOptionError(f"the tier {tier} is given two shares: {given[tier]:g} and {share:g}")
        given[tier] = share
    chosen = {**TIER_SHARES, **given}
    if sum(chosen.values()) > 1:
        raise HybridOptionError(f"the shares of the tiers are more than the whole: {sum(chosen.values()):g}")
    return HybridOptions(names, chosen)


def _share(text: str) -> tuple[str, float]:
    tier, _, number = text.partition("=")
    try:
        share = float(number)
    except ValueError:
        share = -1.0
    if tier not in TIER_SHARES or not 0 <= share <= 1:
        raise HybridOptionError(
            f"{text!r} is no share of a tier; expected tier=number with a tier of {', '.join(TIER_SHARES)}"
            " and a number from 0 to 1"
        )
    return tier, share
