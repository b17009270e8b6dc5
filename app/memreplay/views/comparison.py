"""Two runs compared: what differs in their settings, the scores before and after, and every changed answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from itertools import groupby, takewhile
from typing import Any, Final, NamedTuple

from memreplay.debugger.alignment import Divergence
from memreplay.grading import Outcome
from memreplay.numbers import counted, whole_share
from memreplay.printable import printable
from memreplay.recording.branches import Branch
from memreplay.scoring.results import Comparison
from memreplay.scoring.run_comparison import KINDS, Change, Kind, RunComparison
from memreplay.scoring.verdicts import VERDICTS
from memreplay.settings import value_words
from memreplay.text import shortened
from memreplay.views.document import Selectable
from memreplay.views.panels.answers import SIGNS, stage_chip
from memreplay.views.table import Table, as_lines, as_markdown, plain
from memreplay.views.text import Line, Row, Span, Tone, cells, clip, line, one_line, pad


class Group(NamedTuple):
    """A group of changed answers: its name, the same in a sentence about A and B, and its tone."""

    name: str
    words: str
    tone: Tone


GROUPS: Final[Mapping[Kind, Group]] = {
    "gained": Group("fixed", "right in B, not in A", "good"),
    "lost": Group("broken", "right in A, not in B", "bad"),
    "other_failure": Group("wrong for another reason", "wrong in both, for another reason", "warn"),
    "error": Group("an error in one of the two", "an error in one of the two", "warn"),
    "other_ground": Group("right for another reason", "right in both, for another reason", "dim"),
    "other_answer": Group("another answer, the same verdict", "another answer", "dim"),
}
"""The groups of changes in the order of the screen."""

_LONGEST_TEXT = 72
_CONTEXT = 20
"""Characters that stand before the first difference of two long answers."""


class RegressionDocument(Selectable):
    """A row per changed answer, by group; the first of a group has the group's name above it.

    ``by_choice`` has the conversations and ids of the multiple-choice questions, if others were asked too: they are
    marked, since both kinds often have the same words.
    """

    def __init__(self, changes: Sequence[Change], by_choice: Set[tuple[str, str]] = frozenset()) -> None:
        super().__init__()
        self._by_choice = by_choice
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
            name, _, tone = GROUPS[change.kind]
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
        if self._by_choice:
            is_choice = (change.conversation, change.question_id) in self._by_choice
            spans.append(Span("≡ " if is_choice else "  ", "key"))
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
    """Return the settings that differ, and a row per pair: right answers before and after, and how sure that is."""
    differing = [
        part
        for name, was, now in settings
        for part in (
            Span(f"{name} ", "key"),
            Span(f"{one_line(value_words(was))} → {one_line(value_words(now))}   ", "value"),
        )
    ]
    lines = [line(Span("settings  ", "dim"), *(differing or [Span("the same", "dim")]), hang=10, most=2)]
    counts: dict[str, Counter[Kind]] = {}
    for change in compared.changes:
        counts.setdefault(change.contestant, Counter())[change.kind] += 1
    rows = [_before_and_after(found, counts.get(_pair(found), Counter())) for found in compared.comparisons]
    p = "p adjusted" if any(found.p_holm is not None for found in compared.comparisons) else "p"
    headings = ("", "right", "accuracy", "", "fixed", "broken", "otherwise", p)
    lines += as_lines(Table.of("", headings, rows, align="left")) if rows else []
    lines += [line(Span(one_line(remark), "warn"), hang=2, most=2) for remark in compared.remarks]
    if compared.unpaired:
        lines.append(
            line(Span(f"not compared, only in one: {one_line(', '.join(compared.unpaired))}", "warn"), most=1)
        )
    return lines


def divergence_words(found: Divergence, branch: Branch) -> str:
    """Return whether, and from which turn on, a memory holds something else than in the trunk of a branch."""
    if found.turn is not None:
        return f"differs from turn {found.turn} on"
    if found.played_to is None:
        return "is the same"
    if found.played_to <= branch.turn:
        return f"not compared: the run was played to turn {found.played_to}"
    return f"is the same up to turn {found.played_to}, to which the run was played"


def fork_lines(branch: Branch, differ: Mapping[str, Divergence] | None) -> list[Line]:
    """Return where a branch departs, and from which turn on each memory holds something else than in its trunk.

    ``differ`` is None while this is not known, and empty if it cannot be known.
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
    if not differ:
        return [departs, line(Span("memory  not compared", "warn"))]
    found: list[Span] = []
    by_words = groupby(differ, key=lambda backend: divergence_words(differ[backend], branch))
    for words, backends in by_words:
        found.append(Span(f"{one_line(', '.join(backends))} ", "strong"))
        found.append(Span(f"{words}   ", "dim" if words == "is the same" else "warn"))
    return [departs, line(Span("memory  ", "dim"), *found, hang=8, most=2)]


def _before_and_after(found: Comparison, changed: Counter[Kind]) -> list[Span]:
    """Return the cells of a pair's row."""
    was, now = found.both_right + found.only_a, found.both_right + found.only_b
    tone: Tone = "good" if now > was else "bad" if now < was else "dim"
    p = found.p_value if found.p_holm is None else found.p_holm
    other = changed["other_failure"]
    return [
        Span(_pair(found), "strong"),
        Span(f"{was}/{found.n} → {now}/{found.n}", "value"),
        Span(f"{whole_share(was / found.n)} → {whole_share(now / found.n)}" if found.n else ""),
        Span(f"{now - was:+}", tone),
        Span(f"{found.only_b}", "good" if found.only_b else "dim"),
        Span(f"{found.only_a}", "bad" if found.only_a else "dim"),
        Span(f"{other}", "warn" if other else "dim"),
        Span("" if p is None else f"{p:.2g}", "dim"),
    ]


def _pair(found: Comparison) -> str:
    """Return the contestants of a comparison as :class:`Change` names them."""
    a, b = found.a.removeprefix("A "), found.b.removeprefix("B ")
    return one_line(a if a == b else f"{a} → {b}")


def change_details(change: Change, names: tuple[str, str]) -> list[Line]:
    """Return a changed answer in full: what was asked and expected, and both replies with the stage that lost
    the fact.
    """
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


# ---- as text and as Markdown ------------------------------------------------------------------------------------


def comparison_text(compared: RunComparison, verdict: Sequence[str] = ()) -> list[str]:
    """Return the lines that are printed: the comparison of each pair, and every answer that changed."""
    lines = [*verdict, *(f"{comparison.words}." for comparison in compared.comparisons)]
    lines += [f"{remark}." for remark in compared.remarks]
    lines.append(_summary(compared))
    for kind in KINDS:
        changes = [change for change in compared.changes if change.kind == kind]
        if changes:
            lines += ["", f"{GROUPS[kind].words} ({len(changes)})"]
            lines += [line for change in changes for line in _lines_of_change(change)]
    return lines


def _summary(compared: RunComparison) -> str:
    return f"{counted(len(compared.changes), 'answer')} changed, {compared.alike} did not."


def _lines_of_change(change: Change) -> list[str]:
    return [
        f"  {_short(change.question_id)} · {change.contestant} · {_short(change.question)}",
        f"    expected {_short(change.expected)}",
        f"    A {_answer(change.was, change.failure_was, beside=change.now)}",
        f"    B {_answer(change.now, change.failure_now, beside=change.was)}",
    ]


def _answer(text: str | None, failure: str | None, beside: str | None) -> str:
    """Return a short answer; of a long one, the part in which it differs from the one ``beside`` it."""
    answer = "nothing" if text is None else _short(_from_difference(" ".join(text.split()), beside or ""))
    return f"{answer} ({failure.replace('_', ' ')})" if failure else answer


def _from_difference(text: str, other: str) -> str:
    """Return a text without what two begin with, where that alone would fill the line."""
    pairs = zip(text, " ".join(other.split()), strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return text if common < _LONGEST_TEXT - _CONTEXT else f"…{text[common - _CONTEXT :]}"


def _short(text: str) -> str:
    return printable(shortened(text, _LONGEST_TEXT))


def comparison_markdown(compared: RunComparison, verdict: Sequence[str]) -> str:
    lines = ["## memreplay: two runs compared", ""]
    lines += [f"- **{plain(sentence)}**" for sentence in verdict]
    lines += [f"- {plain(comparison.words)}." for comparison in compared.comparisons]
    lines += [f"- {plain(remark)}." for remark in compared.remarks]
    lines += [f"- {_summary(compared)}", ""]
    if compared.changes:
        rows = [
            (
                GROUPS[change.kind].words,
                f"{_short(change.question_id)}: {_short(change.question)}",
                change.contestant,
                _short(change.expected),
                _answer(change.was, change.failure_was, beside=change.now),
                _answer(change.now, change.failure_now, beside=change.was),
            )
            for change in compared.changes
        ]
        headings = ("change", "question", "backend", "expected", "A", "B")
        lines += as_markdown(Table.of("Changes", headings, rows, align="left"))
    return "\n".join(lines) + "\n"
