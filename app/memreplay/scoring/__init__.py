"""Verdicts on answers, and their aggregates and comparisons.

Importing this package loads nothing: the command line needs the names of the breakdowns.
"""

from __future__ import annotations

from typing import Literal, get_args

By = Literal["type", "category", "location", "salience"]
"""A field of a question by which results are broken down."""

BREAKDOWNS: tuple[By, ...] = get_args(By)

Shown = By | Literal["options"]
"""A breakdown to print; ``options`` is which options were chosen instead of which."""

SHOWN: tuple[Shown, ...] = (*BREAKDOWNS, "options")


def without(by: By) -> str:
    """Return the name of the group of questions that do not have this field, where others do."""
    return f"(no {by})"


def type_words(name: str, other: str | None) -> str:
    """Return the type of a question for people: the dataset's own name, and in brackets a second one if there is
    one.

    LoCoMo and LoCoMo-MC10 name the same categories differently, and use some names for different ones.
    """
    return name if other in (None, name) else f"{name} ({other})"
