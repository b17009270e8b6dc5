"""Two runs compared: what differs in their settings, the scores before and after, and every changed answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from memreplay.grading import Outcome
from memreplay.recording.branches import Branch
from memreplay.scoring.results import Comparison
from memreplay.scoring.run_comparison import Change, Kind, RunComparison
from memreplay.scoring.verdicts import VERDICTS
from memreplay.views.document import Selectable
from memreplay.views.panels.answers import SIGNS, percent, stage_chip
from memreplay.views.text import Line, Row, Span, Tone, cells, clip, line, one_line, pad

GROUPS: Final[Mapping[Kind, tuple[str, Tone]]] = {
    "gained": ("fixed", "good"),
    "lost": ("broken", "bad"),
    "other_failure": ("wrong for another reason", "warn"),
    "error": ("an error in one of the two", "warn"),
    "other_ground": ("right for another reason", "dim"),
    "other_answer": ("another answer, the same verdict", "dim"),
}
"""The groups of changes in the order of the screen, with their tones."""


class RegressionDocument(Selectable):
    """A row per changed answer, by group; the first of a group has the group's name above it."""

    def __init__(self, changes: Sequence[Change]) -> None:
        super().__init__()
        order = list(GROUPS)
        self.changes = sorted(changes, key=lambda change: order.index(change.kind))
        self._counts = Counter(change.kind for change in self.changes)
        self._names = min(max((cells(change.contestant) for change in self.changes), default=0), 24)
        self._drawn = lru_cache(maxsize=512)(self._draw)

    def __len__(self) -> int:
        return len(self.changes)

    def height(self, index: int, width: int) -> int:
        return 1 + (self._opens_group(index) and 1 + (index > 0))

    def rows(self, index: int, width: int) -> Sequence[Row]:
        return self._drawn(index, width, index == self.cursor)

    @property
    def selected(self) -> Change | None:
        return self.changes[self.cursor] if self.changes else None

    def _opens_group(self, index: int) -> bool:
        return index == 0 or self.changes[index].kind != self.changes[index - 1].kind

    def _draw(self, index: int, width: int, here: bool) -> tuple[Row, ...]:
        change = self.changes[index]
        rows: list[Row] = []
        if self._opens_group(index):
            name, tone = GROUPS[change.kind]
            rows += [Row()] if index else []
            rows.append(Row((Span(f"{name} · {self._counts[change.kind]}", tone if tone != "dim" else "title"),)))
        spans = [
            Span("▶ " if here else "  ", "accent"),
            _chip(change.failure_was, change.outcome_was),
            Span(" → ", "dim"),
            _chip(change.failure_now, change.outcome_now),
            Span(f"  {pad(one_line(change.contestant), self._names)}  ", "key"),
            Span(f"{clip(one_line(change.conversation), 14)} ", "dim"),
        ]
        room = width - sum(cells(span.text) for span in spans)
        spans.append(Span(clip(one_line(change.question), room), "strong" if here else "plain"))
        rows.append(Row(tuple(spans), "current" if here else None))
        return tuple(rows)


def _chip(failure: str | None, outcome: Outcome) -> Span:
    for label in VERDICTS:
        if label == failure:
            letter, tone = stage_chip(label)
            return Span(f" {letter} ", tone)
    sign, tone = SIGNS[outcome]
    return Span(f" {sign} ", tone)


def comparison_lines(compared: RunComparison, settings: Sequence[tuple[str, Any, Any]]) -> list[Line]:
    """What differs in the settings, then a line per pair: right answers before and after, and how sure that is."""
    differing = [
        part
        for name, was, now in settings
        for part in (Span(f"{name} ", "key"), Span(f"{_value(was)} → {_value(now)}   ", "value"))
    ]
    lines = [line(Span("settings  ", "dim"), *(differing or [Span("the same", "dim")]), hang=10, most=2)]
    counts: dict[str, Counter[Kind]] = {}
    for change in compared.changes:
        counts.setdefault(change.contestant, Counter())[change.kind] += 1
    rows = [_before_and_after(found, counts.get(_pair(found), Counter())) for found in compared.comparisons]
    adjusted = any(found.p_holm is not None for found in compared.comparisons)
    heads = ("", "right", "accuracy", "", "fixed", "broken", "otherwise", "p adjusted" if adjusted else "p")
    table = [[Span(head, "dim") for head in heads], *rows] if rows else []
    widths = [max(cells(row[column].text) for row in table) for column in range(len(heads))] if rows else []
    for row in table:
        padded = [Span(pad(cell.text, width) + "  ", cell.tone) for cell, width in zip(row, widths, strict=True)]
        lines.append(line(*padded[:-1], row[-1], most=1))
    lines += [line(Span(one_line(remark), "warn"), hang=2, most=2) for remark in compared.remarks]
    if compared.unpaired:
        lines.append(
            line(Span(f"not compared, only in one: {one_line(', '.join(compared.unpaired))}", "warn"), most=1)
        )
    return lines


def fork_lines(branch: Branch, differ: Mapping[str, int | None] | None) -> list[Line]:
    """Where a branch departs and how, and from which turn on each memory holds something else than in its trunk.

    ``differ`` maps a memory to that turn, None if it never does; it is None itself while this is not known.
    """
    departs = line(
        Span("fork  ", "dim"),
        Span(f"after turn {branch.turn}  ", "value"),
        Span(one_line(branch.edit), "strong"),
        hang=6,
        most=2,
    )
    if differ is None:
        return [departs, line(Span("memory  comparing what the memories hold …", "dim"))]
    found: list[Span] = []
    for backend, turn in differ.items():
        found.append(Span(f"{one_line(backend)} ", "strong"))
        found.append(
            Span("is the same   ", "dim") if turn is None else Span(f"differs from turn {turn} on   ", "warn")
        )
    return [departs, line(Span("memory  ", "dim"), *found, hang=8, most=2)]


def _before_and_after(found: Comparison, changed: Counter[Kind]) -> list[Span]:
    """The cells of a pair's row."""
    was, now = found.both_right + found.only_a, found.both_right + found.only_b
    tone: Tone = "good" if now > was else "bad" if now < was else "dim"
    p = found.p_value if found.p_holm is None else found.p_holm
    other = changed["other_failure"]
    return [
        Span(_pair(found), "strong"),
        Span(f"{was}/{found.n} → {now}/{found.n}", "value"),
        Span(f"{percent(was / found.n)} → {percent(now / found.n)}" if found.n else ""),
        Span(f"{now - was:+}", tone),
        Span(f"{found.only_b}", "good" if found.only_b else "dim"),
        Span(f"{found.only_a}", "bad" if found.only_a else "dim"),
        Span(f"{other}", "warn" if other else "dim"),
        Span("" if p is None else f"{p:.2g}", "dim"),
    ]


def _pair(found: Comparison) -> str:
    """The contestants of a comparison as :class:`Change` names them."""
    a, b = found.a.removeprefix("A "), found.b.removeprefix("B ")
    return one_line(a if a == b else f"{a} → {b}")


def _value(value: Any) -> str:
    if value is None:
        return "–"
    return one_line(", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))


def change_details(change: Change, names: tuple[str, str]) -> list[Line]:
    """A changed answer in full: what was asked and expected, and both replies with the stage that lost the fact."""
    sides = (
        (names[0], change.failure_was, change.outcome_was, change.was),
        (names[1], change.failure_now, change.outcome_now, change.now),
    )
    lines = [
        line(Span(f"{one_line(change.question_id)}  ", "dim"), Span(one_line(change.question), "strong"), most=2),
        line(Span("expected ", "dim"), Span(one_line(change.expected), "value"), hang=9, most=1),
    ]
    for name, failure, outcome, said in sides:
        words = next((verdict.words for label, verdict in VERDICTS.items() if label == failure), outcome)
        lines.append(
            line(
                _chip(failure, outcome),
                Span(f" {one_line(name)}  ", "key"),
                Span(words, _chip_tone(failure, outcome)),
                Span(f"  “{one_line(said)}”" if said else ""),
                hang=4,
                most=2,
            )
        )
    return lines


def _chip_tone(failure: str | None, outcome: Outcome) -> Tone:
    tone = _chip(failure, outcome).tone
    return {"lost": "bad", "doubt": "warn"}.get(tone, tone)  # type: ignore[return-value]
