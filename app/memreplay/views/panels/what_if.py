"""The page about what would have repaired an answer: the changes, and what each brought."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memreplay.conversations.models import Question
from memreplay.numbers import dollars
from memreplay.recording.counterfactuals import Reask
from memreplay.runtime.changes import Change
from memreplay.runtime.reasking import Cost
from memreplay.scoring.counterfactuals import CURE_MEANINGS, MEANINGS, Counterfactual, cure_of, least_repair
from memreplay.scoring.verdicts import FROM_MEMORY, INTERVENTIONS, Intervention, Label
from memreplay.scoring.what_if import says_answer, shows_evidence
from memreplay.timeline.timeline import Answer
from memreplay.views.panels.answers import head_lines
from memreplay.views.text import Line, Span, line, one_line, paragraphs

State = Literal["open", "asking", "no effect"]

Agreement = Callable[[Sequence[Counterfactual]], bool]
"""Returns whether independent others gave the same answer, by the re-asks there are."""


@dataclass(frozen=True)
class Row:
    """One change: the call if it is known, its cost, what it brought, and where it stands otherwise."""

    intervention: Intervention
    change: Change | None = None
    cost: Cost | None = None
    reask: Reask | None = None
    state: State = "open"


def what_if_head(
    question: Question, answer: Answer, label: Label | None, rows: Sequence[Row], agreement: Agreement
) -> list[Line]:
    """Return what stays in sight: question, answers and verdict, and what the changes say so far."""
    return [*head_lines(question, answer, label), *_verdict_lines(question, answer, label, rows, agreement)]


def what_if_lines(rows: Sequence[Row], selected: int) -> list[Line]:
    """Return the changes; ``selected`` is the index of a row."""
    return [
        line(Span("changes", "title"), Span("  enter asks the selected one, A all that are open", "dim")),
        *(made for place, row in enumerate(rows) for made in _row_lines(row, place == selected)),
    ]


def _verdict_lines(
    question: Question, answer: Answer, label: Label | None, rows: Sequence[Row], agreement: Agreement
) -> Iterator[Line]:
    asked = [found for row in rows if row.reask is not None and (found := row.reask.counterfactual) is not None]
    retrieval = None if answer.scored is None else answer.scored.retrieval
    has_all = None if retrieval is None else retrieval.evidence_in_prompt
    cure = cure_of(
        label,
        asked,
        abstain=question.abstain,
        others_agree=agreement(asked),
        shows_evidence=says_answer(question, (hit.text for hit in answer.asked.hits if hit.in_prompt))
        or shows_evidence(question.evidence, answer.asked.hits, has_all),
        shows_all=has_all is not False,
    )
    if cure is None:
        yield line(
            Span("what if  ", "title"),
            Span("not decided yet: it takes the control (unchanged) and the evidence alone", "dim"),
            most=1,
        )
        return
    least = least_repair(asked)
    repaired = "" if least is None else f" · the least that repairs it: {_name(least)}"
    yield line(
        Span("what if  ", "title"),
        Span(cure.replace("_", " "), "strong"),
        Span(f": {CURE_MEANINGS[cure]}"),
        Span(repaired, "good"),
        hang=9,
        most=2,
    )


def _row_lines(row: Row, is_selected: bool) -> Iterator[Line]:
    yield line(
        Span("▶ " if is_selected else "  ", "accent"),
        _sign(row),
        Span(f" {_name(row.intervention):<20}", "key"),
        Span(_words(row), "dim"),
        hang=25,
    )
    reply = row.reask.reply if row.reask is not None else None
    error = row.reask.error if row.reask is not None else None
    if error is not None:
        yield line("      ", Span(f"! {one_line(error)}", "bad"), hang=8)
    elif reply is not None and is_selected:
        yield from paragraphs(reply.text or "", indent=6)
    elif reply is not None:
        yield line("      ", Span(f"“{one_line(reply.text or '')}”"), hang=8, most=2)


def _sign(row: Row) -> Span:
    if row.reask is not None and (found := row.reask.counterfactual) is not None:
        if found.repaired is None:
            return Span("!", "bad")
        return Span("✓", "good") if found.repaired else Span("✗", "bad")
    return Span({"open": "·", "asking": "…", "no effect": "–"}[row.state], "dim")


def _words(row: Row) -> str:
    if row.reask is not None and (found := row.reask.counterfactual) is not None:
        if found.repaired is None:
            return "an error, which says neither"
        return "repaired" if found.repaired else "still wrong"
    match row.state:
        case "asking":
            return "asking …"
        case "no effect":
            return "does not apply here"
        case "open" if row.cost is not None:
            return f"{MEANINGS[row.intervention]} · {row.cost.tokens:,} tokens, at most {dollars(row.cost.usd)}"
    return MEANINGS[row.intervention]


def _name(intervention: Intervention) -> str:
    return intervention.replace("_", " ")


def rows_of(changes: Mapping[Intervention, tuple[Change, Cost]], known: Mapping[Intervention, Reask]) -> list[Row]:
    """Return a row for every change, in their order, those of memory included before it is rebuilt."""
    rows = []
    for name in INTERVENTIONS:
        change, cost = changes.get(name, (None, None))
        state: State = "open" if change is not None or name in FROM_MEMORY or name in known else "no effect"
        rows.append(Row(name, change, cost, known.get(name), state))
    return rows
