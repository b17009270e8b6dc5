"""The question categories of LoCoMo, which LoCoMo and LoCoMo-MC10 number alike and name differently."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Category:
    """A category: its number, LoCoMo's name of it and LoCoMo-MC10's."""

    number: int
    locomo: str
    mc10: str


CATEGORIES = (
    Category(1, "multi-hop", "single_hop"),
    Category(2, "temporal", "multi_hop"),
    Category(3, "open-domain", "temporal_reasoning"),
    Category(4, "single-hop", "open_domain"),
    Category(5, "adversarial", "adversarial"),
)
ADVERSARIAL = CATEGORIES[-1]

BY_NUMBER = {category.number: category for category in CATEGORIES}
BY_MC10_NAME = {category.mc10: category for category in CATEGORIES}
