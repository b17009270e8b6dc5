"""A sweep as sentences and tables: for a terminal, and for a page."""

from __future__ import annotations

from collections.abc import Iterator

from memreplay.debugger.sweep import DOUBT, Row, Swept
from memreplay.numbers import counted, dollars, interval, p_value, share
from memreplay.views.table import Table
from memreplay.views.text import one_line

_POINTS = 100


def sweep_table(result: Swept) -> Table:
    """Return a row for each setting: what reaches the prompt, at what price, and what can be said of it."""
    return Table.of(
        "",
        ("setting", "answer in prompt", "95 %", "against the first", "p", "accuracy", "tokens", "cost", "note"),
        [
            (
                one_line(row.setting),
                share(row.share),
                interval(row.interval),
                "" if row is result.rows[0] else points(row.difference_adjusted),
                "" if row is result.rows[0] else p_value(row.p_adjusted),
                share(row.accuracy),
                f"{row.tokens:,.0f}",
                dollars(row.cost_usd),
                "; ".join(_notes(row, result)),
            )
            for row in result.rows
        ]
        + [(one_line(name), *[""] * 7, "failed") for name in result.failed],
    )


def points(bounds: tuple[float, float] | None) -> str:
    """Return the interval of a difference of shares in percentage points."""
    return "–" if bounds is None else f"{bounds[0] * _POINTS:+.0f} to {bounds[1] * _POINTS:+.0f}"


def _notes(row: Row, result: Swept) -> Iterator[str]:
    if row.setting == result.chosen:
        yield "chosen"
    if row.on_front:
        yield "Pareto front"
    if row is not result.rows[0] and not row.is_told_from_chance:
        yield "no clear difference"


def sweep_sentences(result: Swept) -> Iterator[str]:
    """Yield what can be said of the settings of a memory, and what cannot be told from chance."""
    first, best, others = result.rows[0], result.chosen_row, len(result.rows) - 1
    if others:
        yield (
            f"p: McNemar's exact test against {one_line(first.setting)}, on the same"
            f" {counted(first.questions, 'question')}, adjusted by Holm for {counted(others, 'comparison')}; the"
            " intervals of differences by Bonferroni. These are approximate: where one leaves out 0 beside a larger"
            " p, the test, which is exact, decides."
        )
    if best is first:
        yield f"No setting holds more than the first, {one_line(first.setting)}."
    else:
        told = "" if result.p_of_chosen < DOUBT else ": this difference cannot be told from chance"
        where = "the other half of the questions; on this half it" if result.is_split else "these questions; it"
        yield (
            f"{one_line(best.setting)} was chosen by {where} holds {share(best.share)} against {share(first.share)}"
            f" (difference {points(result.difference_of_chosen)} points, {_p(result.p_of_chosen)}){told}."
        )
    for name, why in result.failed.items():
        yield f"{one_line(name)} failed: {one_line(why)}"
    if not result.is_split and others:
        yield (
            "Chosen and reported on the same questions, the best setting looks better than it is;"
            " memreplay sweep --split reports it on others."
        )


def _p(value: float) -> str:
    words = p_value(value)
    return f"p {words}" if words.startswith("<") else f"p = {words}"


def fixes_in_words(result: Swept) -> Iterator[str]:
    """Yield how many of the questions that the first setting fails each cheapest setting mends."""
    fixed = [name for name in result.fixed_by.values() if name is not None]
    if not result.fixed_by or len(result.rows) == 1:
        return
    fails = counted(len(result.fixed_by), "question")
    yield f"Of {fails} that the first setting fails, another setting puts {len(fixed)} into the prompt."
    for row in result.rows:
        if row.setting in fixed:
            yield f"  {counted(fixed.count(row.setting), 'question')}: {one_line(row.setting)} is the cheapest"


def fixes_table(result: Swept) -> Table:
    """Return the cheapest setting that puts the answer into the prompt, by question that the first one fails."""
    return Table.of(
        "The cheapest setting that mends each question that the first one fails",
        ("question", "setting"),
        [(one_line(question), one_line(name) if name else "none") for question, name in result.fixed_by.items()],
        align="left",
    )
