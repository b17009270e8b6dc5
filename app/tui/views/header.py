"""The line above the replay: live or recorded, what, where, and what is going on."""

from __future__ import annotations

from app.replay.timeline import Timeline
from app.tui.text import Span, one_line


def header_spans(timeline: Timeline, cursor: int, *, live: bool, progress: str, settings: str) -> list[Span]:
    """Mode, conversation, position, progress, settings; in the order in which a narrow screen may cut them."""
    last = timeline.last_turn
    return [
        Span(" LIVE ", "live") if live else Span(" RECORDED ", "recorded"),
        Span(f"  {one_line(timeline.conversation.id)}", "strong"),
        Span(f"  turn {cursor}/{last}" if cursor <= last else "  closed", "title"),
        Span(f"  {progress}", "warn"),
        Span(f"  {one_line(settings)}", "dim"),
    ]
