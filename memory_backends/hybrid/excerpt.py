"""A part of a turn that is too long for the room there is: its sentences that are nearest to the question."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memory_backends.base import Message
from memory_backends.sentences import sentences_of

LEFT_OUT = "…"


def excerpt_of(message: Message, likeness: Sequence[float], fits: Callable[[str], bool]) -> str | None:
    """A line of sentences as they were said, in order, with ``…`` where some were left out; None where none fits.

    ``likeness`` has a number for each sentence; of two equal ones the earlier is taken first.
    """
    sentences = sentences_of(message.text)
    chosen: set[int] = set()
    for place in sorted(range(len(sentences)), key=lambda place: -likeness[place]):
        if fits(_line(message, sentences, chosen | {place})):
            chosen.add(place)
    return _line(message, sentences, chosen) if chosen else None


def _line(message: Message, sentences: Sequence[str], chosen: set[int]) -> str:
    parts: list[str] = []
    for place, sentence in enumerate(sentences):
        if place in chosen:
            parts.append(sentence)
        elif not parts or parts[-1] != LEFT_OUT:
            parts.append(LEFT_OUT)
    return f"{message.label}: {' '.join(parts)}"
