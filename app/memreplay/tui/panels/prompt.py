"""A prompt as it was sent, line by line, with the lines from memory marked and evidence highlighted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from memory_backends.base import Hit
from memreplay.conversations.models import Conversation
from memreplay.engine.events import QuestionAsked
from memreplay.tui.subjects import PromptSubject
from memreplay.tui.text import Line, Span, Tone, line, one_line, visible

LineSource = Literal["evidence", "distilled", "memory", "frame"]

_SIGNS: Final[Mapping[LineSource, tuple[str, Tone, Tone]]] = {
    "evidence": ("◆ ", "evidence", "evidence"),
    "distilled": ("◇ ", "accent", "accent"),
    "memory": ("│ ", "dim", "plain"),
    "frame": ("  ", "dim", "dim"),
}
PROMPT_LEGEND: Final = "◆ evidence, verbatim  ◇ distilled from evidence  │ from memory"


@dataclass(frozen=True)
class PromptView:
    """The lines of a prompt, the index of the first with evidence, and the evidence turns that it lacks."""

    lines: tuple[Line, ...]
    first_evidence: int | None
    absent: tuple[str, ...]


def prompt_view(conversation: Conversation, asked: QuestionAsked, evidence: Sequence[str]) -> PromptView:
    """The prompt of a question, with the evidence turns that it contains marked."""
    said = {turn: _lines_of(conversation, turn) for turn in evidence if turn in conversation.turns_by_id}
    hits = _hits_by_line(asked)
    lines: list[Line] = []
    present: set[str] = set()
    first: int | None = None
    for message in asked.prompt:
        lines.append(line(Span(f"── {one_line(message.role)}", "title")))
        for text in message.content.split("\n"):
            hit = hits.get(text.strip())
            turns = [turn for turn, words in said.items() if any(part in text for part in words)] if hit else []
            present.update(turns)
            source = _source(hit, turns, evidence)
            if source == "evidence" and first is None:
                first = len(lines)
            lines.append(_prompt_line(text, source, turns, hit))
    return PromptView(tuple(lines), first, tuple(turn for turn in evidence if turn not in present))


def _source(hit: Hit | None, turns: Sequence[str], evidence: Sequence[str]) -> LineSource:
    if turns:
        return "evidence"
    if hit is None:
        return "frame"
    return "distilled" if set(evidence).intersection(hit.sources) and not hit.turns else "memory"


def _prompt_line(text: str, source: LineSource, turns: Sequence[str], hit: Hit | None) -> Line:
    sign, sign_tone, tone = _SIGNS[source]
    whose = f"turn {', '.join(turns)}  " if turns else ""
    about = PromptSubject(text) if hit is not None else None
    return line(
        Span(sign, sign_tone), Span(one_line(whose), "accent"), Span(visible(text), tone), hang=2, about=about
    )


def _hits_by_line(asked: QuestionAsked) -> dict[str, Hit]:
    """The hit that each line of the context came from."""
    return {
        text.strip(): hit for hit in asked.hits if hit.in_prompt for text in hit.text.split("\n") if text.strip()
    }


def _lines_of(conversation: Conversation, turn_id: str) -> list[str]:
    """The non-empty lines of a turn, which identify it in a prompt."""
    text = conversation.turns_by_id[turn_id].text
    return [part.strip() for part in text.split("\n") if part.strip()]
