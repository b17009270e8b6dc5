"""Facts that a model read, as candidates like those of the rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memory_backends.base import Exchange
from memory_backends.extraction import ExtractedFact
from memory_backends.hybrid.candidates import LONGEST_CONTENT, MOST_A_MESSAGE, Candidate
from memory_backends.hybrid.facts import clean_value, slot_part
from memory_backends.hybrid.rules.corrections import is_correction, value_taken_back


def candidates_from(exchange: Exchange, facts: Sequence[ExtractedFact], model: str) -> tuple[Candidate, ...]:
    """The candidates, at most ``MOST_A_MESSAGE`` a message, in the order of the messages.

    A fact of a turn that is not in the exchange, or without a value, is none.
    """
    return tuple(_candidates(exchange, facts, model))


def _candidates(exchange: Exchange, facts: Sequence[ExtractedFact], model: str) -> Iterator[Candidate]:
    for message in exchange.messages:
        own = [fact for fact in facts if fact.turn_id == message.turn_id and clean_value(fact.value)]
        for number, fact in enumerate(own[:MOST_A_MESSAGE], start=1):
            yield Candidate(
                id=f"{message.turn_number}.{number}",
                content=f"{message.label}: {' '.join(fact.text.split())[:LONGEST_CONTENT]}",
                said_by=message.label,
                slot=_slot(fact.slot),
                value=clean_value(fact.value),
                several=False,
                certainty=min(max(fact.certainty, 0.0), 1.0),
                impact=min(max(fact.impact, 0.0), 1.0),
                is_correction=is_correction(message.text),
                taken_back=value_taken_back(message.text),
                sources=(message.turn_id,),
                turn_number=message.turn_number,
                said_at=message.said_at,
                rule=model,
                justification=" ".join(fact.justification.split())[:LONGEST_CONTENT] or None,
            )


def _slot(name: str | None) -> str | None:
    parts = [slot_part(part) for part in (name or "").split(".")]
    return ".".join(part for part in parts if part) or None
