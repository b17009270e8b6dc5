"""What the signs and the names on the replay screen mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from memreplay.debugger.breakpoints import GRAMMAR_HELP
from memreplay.timeline.timeline import Timeline
from memreplay.tui.panels.answers import ANSWER_LEGEND, EVIDENCE_LEGEND
from memreplay.tui.panels.conversation import SIGNIFICANCE_LEGEND
from memreplay.tui.panels.strip import STRIP_LEGEND
from memreplay.tui.text import Line, Span, line, one_line, pad, paragraphs

_SIGNS: Final = (
    "+ added  − removed  ~ changed at this turn",
    "▶ the cursor  ◇ 2 evidence of question 2  ◆ evidence of the question you came from  × cut from the prompt",
    "92 (D5:15): the 92nd turn, which the dataset calls D5:15",
    STRIP_LEGEND,
    ANSWER_LEGEND,
    EVIDENCE_LEGEND,
    SIGNIFICANCE_LEGEND,
)


def legend_lines(timeline: Timeline) -> list[Line]:
    """The signs, the channels of each memory with their meaning, and the language of breakpoints."""
    return [
        line(Span("Signs", "title")),
        *(line("  ", signs, hang=2) for signs in _SIGNS),
        line(""),
        *_channel_lines(timeline),
        line(Span("Breakpoints (b)", "title")),
        *paragraphs(GRAMMAR_HELP.rstrip(), indent=2),
    ]


def _channel_lines(timeline: Timeline) -> Iterator[Line]:
    """A hit shows its rank in each channel that found it: ``dense 2 · keyword 6``."""
    for backend in timeline.backends:
        channels = timeline.description(backend).channels
        if not channels:
            continue
        yield line(
            Span(f"Retrieval channels of {one_line(backend)}", "title"),
            Span("  name and rank of a hit in it", "dim"),
        )
        width = max(len(one_line(name)) for name in channels)
        for name, words in channels.items():
            yield line(Span(f"  {pad(one_line(name), width)}  ", "key"), one_line(words), hang=width + 4)
        yield line("")
