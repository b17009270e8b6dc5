"""The calls that a memory made of the model that writes, at one position: what was asked, what came back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from memory_backends.stores.trace import Extraction, ModelCall
from memreplay.numbers import dollars
from memreplay.scoring.writer import facts_of, reading_of
from memreplay.timeline.timeline import Timeline
from memreplay.views.panels import View, lines_view, placeholder, waiting
from memreplay.views.subjects import CallSubject
from memreplay.views.text import Line, Span, Tone, line, one_line, paragraphs

_TONES: Final[Mapping[bool | None, Tone]] = {True: "good", False: "bad", None: "warn"}
_MOST_CALLS: Final = 40
_MOST_LINES: Final = 2_000
"""Lines of one prompt that are shown."""


def writer_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """Return every call at exactly this position, in order: how its reply was read, the reply, and the prompt."""
    calls = timeline.calls_at(backend, cursor)
    lines: list[Line] = []
    for number, call in enumerate(calls[:_MOST_CALLS], start=1):
        lines += _call_lines(call, number, len(calls), CallSubject(backend, cursor, number))
    if len(calls) > _MOST_CALLS:
        lines.append(line(Span(f"⋯ {len(calls) - _MOST_CALLS:,} more calls", "dim")))
    shown = lines or placeholder(waiting(cursor, "the writer was not called at this turn"))
    return lines_view("writer", shown, note=f"{len(calls):,}" if calls else "")


def no_writer_words(timeline: Timeline, backends: Sequence[str]) -> str:
    """Return in a sentence that none of these memories was seen to ask a model what to write; empty if one was."""
    if any(map(timeline.calls_a_model, backends)):
        return ""
    return f"There is no writer to ask again: no call of a writing model is recorded of {', '.join(backends)}."


def call_lines(call: ModelCall | Extraction) -> list[Line]:
    """Return one call in full."""
    return [*_call_lines(call, 1, 1, None)]


def _call_lines(call: ModelCall | Extraction, number: int, count: int, about: CallSubject | None) -> Iterator[Line]:
    words, is_read = reading_of(call)
    yield line(
        Span(f"call {number} of {count}  ", "title"),
        Span(words, _TONES[is_read]),
        Span(f"  {one_line(call.model)}", "key"),
        Span(f" · {_facts(call)}", "dim"),
        hang=2,
        about=about,
    )
    if call.error is not None:
        yield line(Span(f"! {one_line(call.error)}", "bad"), hang=2)
    if call.rejected is not None:
        yield line(Span(f"✗ {one_line(call.rejected)}", "bad"), hang=2)
    for fact in facts_of(call):
        yield line(Span("▸ ", "added"), one_line(fact), hang=2)
    if not call.messages:
        unknown = "asked" if call.reply or call.wanted else "asked and replied"
        yield line(Span(f"– what was {unknown} was not recorded", "dim"))
    for name, text in (("reply", call.reply), ("tools called", call.wanted)):
        if text is not None:
            yield line(Span(f"── {name}", "title"))
            yield from paragraphs(text, indent=2)
    for message in reversed(call.messages):
        yield line(Span(f"── asked: {one_line(message.role)}", "title"))
        yield from paragraphs(message.text, "dim", indent=2)[:_MOST_LINES]
        if message.more is not None:
            yield line("  ", Span(one_line(message.more), "dim"), hang=2)
    if call.parameters is not None:
        yield line(Span("── with  ", "title"), Span(one_line(call.parameters), "dim"), hang=2, most=4)


def _facts(call: ModelCall | Extraction) -> str:
    phase = call.phase if isinstance(call, ModelCall) else "extraction"
    turns = f" of turn {', '.join(call.turns)}" if call.turns else ""
    parts = [
        f"{phase}{turns}",
        f"ended: {call.finish_reason}" if call.finish_reason else "",
        f"{call.prompt_tokens:,} + {call.completion_tokens:,} tokens",
        dollars(call.cost_usd) if call.cost_usd is not None else "",
        f"{call.ms:,.0f} ms",
        f"asked again, time {call.repeat + 1}" if call.repeat else "",
        "reused from an earlier run" if call.reused else "",
    ]
    return one_line(" · ".join(part for part in parts if part))
