"""Compare settings of a memory: how often its prompts hold the answer, and at how many tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from memreplay.scoring.statistics import holm, mcnemar_exact, mean, paired_interval, wilson_interval

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

    ``difference`` is the 95 % interval of the share minus that of the first setting, and ``p_value`` that of
    McNemar's exact test against it, by answers in the prompt. ``difference_adjusted`` is at Bonferroni's level and
    ``p_adjusted`` by Holm, for all settings that are compared with it. For the first setting both p are 1.
    """

    setting: SettingName
    questions: int
    held: int
    interval: tuple[float, float] | None
    accuracy: float | None
    tokens: float
    cost_usd: float | None
    on_front: bool
    difference: tuple[float, float] | None
    difference_adjusted: tuple[float, float] | None
    p_value: float
    p_adjusted: float

    @property
    def share(self) -> float:
        return self.held / self.questions if self.questions else 0.0

    @property
    def is_told_from_chance(self) -> bool:
        """Return whether it differs from the first setting beyond chance, among all that are compared with it."""
        return self.p_adjusted < DOUBT


@dataclass(frozen=True)
class Swept:
    """The settings of one memory, and for each question that the first one fails the cheapest that mends it.

    ``chosen`` is the setting that holds most, at the fewest tokens. With ``is_split`` it is that on the one part of
    the questions, and ``rows`` are of the other, on which it is the only setting that is compared with the first.
    ``failed`` says of settings without a row why the memory could not be filled or read under them.
    """

    backend: str
    rows: Sequence[Row]
    chosen: SettingName
    is_split: bool
    fixed_by: Mapping[str, SettingName | None]
    failed: Mapping[SettingName, str] = field(default_factory=dict)

    @property
    def chosen_row(self) -> Row:
        return next(row for row in self.rows if row.setting == self.chosen)

    @property
    def p_of_chosen(self) -> float:
        """Return the p-value of the chosen setting against the first."""
        return self.chosen_row.p_value if self.is_split else self.chosen_row.p_adjusted

    @property
    def difference_of_chosen(self) -> tuple[float, float] | None:
        """Return the interval that goes with :attr:`p_of_chosen`."""
        return self.chosen_row.difference if self.is_split else self.chosen_row.difference_adjusted


def swept(
    backend: str,
    found: Mapping[SettingName, Sequence[Found]],
    *,
    split: bool = False,
    failed: Mapping[SettingName, str] | None = None,
) -> Swept:
    """Return what the settings of a memory give. All were tried on the same questions, in the same order."""
    choosing, reported = (
        {name: [each for each in rows if is_for_choosing(each.question) is part] for name, rows in found.items()}
        for part in (True, False)
    )
    is_split = split and all(choosing.values()) and all(reported.values())
    if not is_split:
        choosing = reported = {name: list(rows) for name, rows in found.items()}
    chosen = min(choosing, key=lambda name: (-_held(choosing[name]), _tokens(choosing[name])))
    return Swept(backend, _rows(reported), chosen, is_split, _fixed(found), failed or {})


def is_for_choosing(question: str) -> bool:
    """Return whether a question is in the half by which a setting is chosen, by its id alone."""
    return sha256(question.encode()).digest()[0] % 2 == 0


def _rows(found: Mapping[SettingName, Sequence[Found]]) -> list[Row]:
    first = next(iter(found.values()))
    places = {name: (_held(rows), _tokens(rows)) for name, rows in found.items()}
    changes = {name: (_only(each, first), _only(first, each)) for name, each in found.items()}
    p_values = {name: mcnemar_exact(*pair) for name, pair in changes.items()}
    others = [name for name in found if found[name] is not first]
    adjusted = dict(zip(others, holm([p_values[name] for name in others]), strict=True))
    rows: list[Row] = []
    for name, each in found.items():
        held, tokens = places[name]
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
                difference=paired_interval(*changes[name], len(each)),
                difference_adjusted=paired_interval(*changes[name], len(each), 1 - DOUBT / max(1, len(others))),
                p_value=p_values[name],
                p_adjusted=adjusted.get(name, 1.0),
            )
        )
    return rows


def _only(one: Sequence[Found], other: Sequence[Found]) -> int:
    """Return how many questions only the first of two settings holds the answer to."""
    return sum(a.holds and not b.holds for a, b in zip(one, other, strict=True))


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
