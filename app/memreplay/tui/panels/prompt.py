"""A prompt as it was sent, line by line, with the lines from memory marked and evidence highlighted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memreplay.conversations.models import Conversation
from memreplay.debugger.provenance import LineSource, PromptLine, prompt_lines
from memreplay.engine.events import QuestionAsked
from memreplay.tui.subjects import PromptSubject
from memreplay.tui.text import Line, Span, Tone, line, one_line, visible

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
    lines: list[Line] = []
    present: set[str] = set()
    first: int | None = None
    message = -1
    for part in prompt_lines(conversation, asked, evidence):
        if part.message != message:
            message = part.message
            lines.append(line(Span(f"── {one_line(asked.prompt[message].role)}", "title")))
        present.update(part.turns)
        if part.source == "evidence" and first is None:
            first = len(lines)
        lines.append(_prompt_line(part))
    return PromptView(tuple(lines), first, tuple(turn for turn in evidence if turn not in present))


def _prompt_line(part: PromptLine) -> Line:
    sign, sign_tone, tone = _SIGNS[part.source]
    whose = f"turn {', '.join(part.turns)}  " if part.turns else ""
    about = None if part.source == "frame" else PromptSubject(part.text)
    return line(
        Span(sign, sign_tone), Span(one_line(whose), "accent"), Span(visible(part.text), tone), hang=2, about=about
    )
