"""Compare settings of a memory: how often its prompts hold the answer, and at how many tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from memreplay.scoring.statistics import mcnemar_exact, mean, wilson_interval

SettingName = str
"""The settings of a memory in words, such as ``top-k=5 context-tokens=500``."""

DOUBT = 0.05
"""A difference with a larger p-value cannot be told from chance."""


@dataclass(frozen=True)
class Found:
    """The result of a question under one setting. ``is_right`` is None where no model was asked."""

    question: str
    holds: bool
    tokens: int
    cost_usd: float | None
    is_right: bool | None = None


@dataclass(frozen=True)
class Row:
    """One setting of a memory. Shares are of ``questions``; tokens and cost are means of a question.

    ``p_value`` is that of McNemar's exact test against the first setting, by answers in the prompt.
    """

    setting: SettingName
    questions: int
    held: int
    interval: tuple[float, float] | None
    accuracy: float | None
    tokens: float
    cost_usd: float | None
    on_front: bool
    p_value: float

    @property
    def share(self) -> float:
        return self.held / self.questions if self.questions else 0.0

    @property
    def is_told_from_chance(self) -> bool:
        """Return whether it differs from the first setting beyond chance."""
        return self.p_value < DOUBT


@dataclass(frozen=True)
class Swept:
    """The settings of one memory, and for each question that the first one fails the cheapest that mends it.

    With a split, ``chosen`` is the best setting on the one part of the questions, and ``rows`` are of the other.
    """

    backend: str
    rows: Sequence[Row]
    chosen: SettingName
    fixed_by: Mapping[str, SettingName | None]


def swept(backend: str, found: Mapping[SettingName, Sequence[Found]], *, split: bool = False) -> Swept:
    """Return what the settings of a memory give. All were tried on the same questions, in the same order."""
    choosing, reported = (
        {name: [each for each in rows if is_for_choosing(each.question) is part] for name, rows in found.items()}
        for part in (True, False)
    )
    if not split or not all(choosing.values()) or not all(reported.values()):
        choosing = reported = {name: list(rows) for name, rows in found.items()}
    chosen = min(choosing, key=lambda name: (-_held(choosing[name]), _tokens(choosing[name])))
    return Swept(backend, _rows(reported), chosen, _fixed(found))


def is_for_choosing(question: str) -> bool:
    """Return whether a question is in the half by which a setting is chosen, by its id alone."""
    return sha256(question.encode()).digest()[0] % 2 == 0


def _rows(found: Mapping[SettingName, Sequence[Found]]) -> list[Row]:
    first = next(iter(found.values()))
    places = {name: (_held(rows), _tokens(rows)) for name, rows in found.items()}
    rows: list[Row] = []
    for name, each in found.items():
        held, tokens = places[name]
        pairs = list(zip(first, each, strict=True))
        costs = [one.cost_usd for one in each]
        judged = [one.is_right for one in each if one.is_right is not None]
        rows.append(
            Row(
                setting=name,
                questions=len(each),
                held=held,
                interval=wilson_interval(held, len(each)),
                accuracy=mean([float(right) for right in judged]),
                tokens=tokens,
                cost_usd=None if None in costs else mean([cost or 0.0 for cost in costs]),
                on_front=not any(_is_better(other, places[name]) for other in places.values()),
                p_value=mcnemar_exact(
                    sum(before.holds and not after.holds for before, after in pairs),
                    sum(after.holds and not before.holds for before, after in pairs),
                ),
            )
        )
    return rows


def _is_better(one: tuple[int, float], other: tuple[int, float]) -> bool:
    """Return whether one holds no less at no more tokens, and one of them is better."""
    return one != other and one[0] >= other[0] and one[1] <= other[1]


def _fixed(found: Mapping[SettingName, Sequence[Found]]) -> dict[str, SettingName | None]:
    cheapest = sorted(found, key=lambda name: _tokens(found[name]))
    holding = {name: {each.question for each in found[name] if each.holds} for name in found}
    first = next(iter(found.values()))
    return {
        each.question: next((name for name in cheapest if each.question in holding[name]), None)
        for each in first
        if not each.holds
    }


def _held(rows: Sequence[Found]) -> int:
    return sum(each.holds for each in rows)


def _tokens(rows: Sequence[Found]) -> float:
    return mean([float(each.tokens) for each in rows]) or 0.0
