"""The page about a writer that is asked again: the changes, what each takes, and what it would have stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memreplay.llm.counting import Estimate
from memreplay.numbers import counted, dollars
from memreplay.runtime.rewriting import LostFact, Rewritten, WriterChange
from memreplay.views.text import Line, Span, line, one_line


@dataclass(frozen=True)
class WriterRow:
    """The writer asked again about a fact under one change: what it takes, or what it brought."""

    fact: LostFact
    change: WriterChange
    model: str
    estimate: Estimate
    made: Rewritten | None = None
    is_asking: bool = False


def asked_again_lines(rows: Sequence[WriterRow], selected: int) -> list[Line]:
    """Return the changes below the facts that they are about; ``selected`` is the index of a row."""
    lines = [line(Span("changes", "title"), Span("  enter asks the selected one, A all that are open", "dim"))]
    for place, row in enumerate(rows):
        if place == 0 or rows[place - 1].fact is not row.fact:
            lines.append(
                line(Span(f"turn {one_line(row.fact.turn)}  ", "accent"), one_line(row.fact.finding.sentence))
            )
        lines += _change_lines(row, place == selected)
    return lines


def _change_lines(row: WriterRow, is_selected: bool) -> Iterator[Line]:
    made = row.made
    sign = Span("…" if row.is_asking else "·", "dim")
    if made is not None:
        sign = Span("!", "bad") if made.failed else Span("✓", "good") if made.holds else Span("✗", "bad")
    yield line(
        Span("▶ " if is_selected else "  ", "accent"),
        sign,
        Span(f" {row.change.replace('_', ' '):<15}", "key"),
        Span(_result_words(row), "dim"),
        hang=20,
    )
    if made is not None:
        for fact in made.facts:
            yield line("      ", Span("▸ ", "added"), one_line(fact), hang=8)


def _result_words(row: WriterRow) -> str:
    if row.is_asking:
        return "asking …"
    if row.made is None:
        return f"{one_line(row.model)} · {effort_words([row])}"
    if row.made.failed:
        return f"no reply: {one_line(row.made.problem or row.made.reading)}"
    if not row.made.facts:
        return f"nothing would be stored: {one_line(row.made.reading)}"
    return f"would be stored, {'with' if row.made.holds else 'without'} the answer"


def effort_words(rows: Sequence[WriterRow]) -> str:
    """Return what calls take: ``2 calls, about 1,200 + 80 tokens, $0.001``."""
    prices = [row.estimate.price(row.model) for row in rows]
    known = [price for price in prices if price is not None]
    price = dollars(sum(known) if len(known) == len(prices) else None)
    prompt = sum(row.estimate.prompt_tokens for row in rows)
    reply = sum(row.estimate.reply_tokens for row in rows)
    return f"{counted(len(rows), 'call')}, about {prompt:,} + {reply:,} tokens, {price}"
