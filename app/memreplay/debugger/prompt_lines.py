"""A prompt as it was sent, line by line: which lines memory gave, and which of them hold evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from memory_backends.base import Hit
from memreplay.conversations.models import Conversation
from memreplay.engine.events import QuestionAsked

LineSource = Literal["evidence", "distilled", "memory", "frame"]
"""``evidence``: from memory, with the words of an evidence turn. ``distilled``: from memory, made from an evidence
turn. ``memory``: anything else from memory. ``frame``: instructions, headings and the question."""


@dataclass(frozen=True)
class PromptLine:
    """A line of a message. ``turns`` are the evidence turns whose words it has; ``message`` counts from 0."""

    message: int
    text: str
    source: LineSource
    turns: tuple[str, ...]


def prompt_lines(conversation: Conversation, asked: QuestionAsked, evidence: Sequence[str]) -> Iterator[PromptLine]:
    """The lines of all messages in order."""
    said = {turn: _lines_of(conversation, turn) for turn in evidence if turn in conversation.turns_by_id}
    hits = _hits_by_line(asked)
    for number, message in enumerate(asked.prompt):
        for text in message.content.split("\n"):
            hit = hits.get(text.strip())
            turns = (
                tuple(turn for turn, words in said.items() if any(part in text for part in words)) if hit else ()
            )
            yield PromptLine(number, text, _source(hit, turns, evidence), turns)


def _source(hit: Hit | None, turns: Sequence[str], evidence: Sequence[str]) -> LineSource:
    if turns:
        return "evidence"
    if hit is None:
        return "frame"
    return "distilled" if set(evidence).intersection(hit.sources) and not hit.turns else "memory"


def _hits_by_line(asked: QuestionAsked) -> dict[str, Hit]:
    """The hit that each line of the context came from."""
    return {
        text.strip(): hit for hit in asked.hits if hit.in_prompt for text in hit.text.split("\n") if text.strip()
    }


def _lines_of(conversation: Conversation, turn_id: str) -> list[str]:
    """The non-empty lines of a turn, which identify it in a prompt."""
    text = conversation.turns_by_id[turn_id].text
    return [part.strip() for part in text.split("\n") if part.strip()]
