"""What memory retrieved for a user message: hits with their rank in each channel, and candidates below the cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from memory_backends.base import Cut, Hit, WhyEmpty
from memreplay.conversations.models import Conversation
from memreplay.engine.events import Perceived
from memreplay.timeline.timeline import Timeline
from memreplay.tui.panels.conversation import turns_words
from memreplay.tui.panels.panel import DiffBase, View, lines_view, placeholder, short_key, waiting
from memreplay.tui.subjects import StoredSubject
from memreplay.tui.text import Line, Span, line, one_line

_ROWS_OF_TEXT = 3

_NO_HITS: Mapping[WhyEmpty | None, str] = {
    None: "no hits for this message",
    "nothing_stored": "no hits: nothing is stored yet",
    "below_threshold": "no hits: no stored item is similar enough to this message",
}

ChannelWords = Callable[[Hit], str]
"""Formats a hit's rank in each channel."""


def retrievals_view(timeline: Timeline, backend: str, cursor: int, base: DiffBase) -> View:
    """The hits of the latest user turn at or before the position, diffed against those of the base."""
    perceived = timeline.perceived_at(backend, cursor)
    if perceived is None:
        return _nothing_searched("retrievals", cursor)
    lines = _hits_compared(timeline, perceived, base, _ranks)
    return _read_path_view("retrievals", perceived, [*lines, *_cut_lines(perceived.cut)])


def candidates_view(timeline: Timeline, backend: str, cursor: int, base: DiffBase) -> View:
    """The latest read path in full: scores in each channel, and the candidates that ranked below the cut."""
    perceived = timeline.perceived_at(backend, cursor)
    if perceived is None:
        return _nothing_searched("candidates", cursor)
    compared = _hits_compared(timeline, perceived, base, _ranks_and_scores)
    missed = _missed_lines(perceived.missed, backend, _Known.of(timeline.conversation))
    return _read_path_view("candidates", perceived, [*compared, *missed, *_cut_lines(perceived.cut)])


def _nothing_searched(name: str, cursor: int) -> View:
    return lines_view(name, placeholder(waiting(cursor, "nothing has been searched yet")))


def _read_path_view(name: str, perceived: Perceived, lines: Sequence[Line]) -> View:
    hits, missed = len(perceived.hits), len(perceived.missed)
    below = f" · {missed} more below the cut" if missed else ""
    note = f"{hits} {'hit' if hits == 1 else 'hits'}{below} · {perceived.tokens:,} tokens"
    shown = lines or placeholder(_NO_HITS[perceived.why_empty])
    return lines_view(f"{name} · for turn {perceived.turn}", shown, note=note)


def _hits_of_base(timeline: Timeline, perceived: Perceived, base: DiffBase) -> Sequence[Hit] | None:
    """The hits to compare with; None if the base compares nothing."""
    match base.kind:
        case "architecture" if base.backend != perceived.backend:
            other = timeline.perceived_at(base.backend, perceived.turn)
        case "previous":
            other = timeline.perceived_at(perceived.backend, perceived.turn - 1)
        case "bookmark":
            other = timeline.perceived_at(perceived.backend, base.turn)
        case _:
            return None
    return () if other is None else other.hits


def _hits_compared(
    timeline: Timeline, perceived: Perceived, base: DiffBase, channels: ChannelWords
) -> Iterator[Line]:
    """The hits. Compared with a base, ``+`` marks a hit that only this read path has, ``−`` one it lacks."""
    backend, known = perceived.backend, _Known.of(timeline.conversation)
    others = _hits_of_base(timeline, perceived, base)
    if others is None:
        for hit in perceived.hits:
            yield from _hit(hit, backend, known, Span(""), channels)
        return
    there = {turn for hit in others for turn in _of(hit)}
    here = {turn for hit in perceived.hits for turn in _of(hit)}
    for hit in perceived.hits:
        sign = Span("  ") if there.intersection(_of(hit)) else Span("+ ", "added")
        yield from _hit(hit, backend, known, sign, channels)
    for hit in others:
        if not here.intersection(_of(hit)):
            yield line(
                Span("− ", "removed"),
                Span(f"turn {turns_words(timeline.conversation, _of(hit))}  ", "accent"),
                Span(one_line(hit.text), "dim"),
                hang=2,
                most=1,
            )


def _hit(hit: Hit, backend: str, known: _Known, sign: Span, channels: ChannelWords) -> Iterator[Line]:
    about = StoredSubject.of_hit(backend, hit)
    spans = [sign, *_place(hit, known)]
    if not hit.in_prompt:
        spans.append(Span(" × cut", "removed"))
    place = short_key(hit.place, known.conversation.id, backend)
    spans.append(Span(f"  {place}  {one_line(channels(hit))}", "dim"))
    yield Line(tuple(spans), hang=3, about=about)
    yield line("   ", Span(one_line(hit.text), "plain" if hit.in_prompt else "dim"), hang=3, most=_ROWS_OF_TEXT)


def _missed_lines(missed: Sequence[Hit], backend: str, known: _Known) -> Iterator[Line]:
    """One line per candidate below the cut: its rank, and its rank and score in each channel."""
    if missed:
        yield line(Span(f"── {len(missed)} more below the cut", "title"))
    for hit in missed:
        channels = Span(f"  {one_line(_ranks_and_scores(hit))}", "dim")
        yield line(*_place(hit, known), channels, hang=3, about=StoredSubject.of_hit(backend, hit))


def _cut_lines(cut: tuple[Cut, ...]) -> Iterator[Line]:
    """One line per place that the token budget cut something from."""
    for part in cut:
        place = one_line(part.place.partition(":")[0])
        yield line(Span(f"× {part.tokens:,} tokens of {place} did not fit", "removed"), hang=2)


class _Known(NamedTuple):
    """The conversation, and the ids of all its turns that are evidence of some question."""

    conversation: Conversation
    evidence: frozenset[str]

    @classmethod
    def of(cls, conversation: Conversation) -> _Known:
        asked = (turn for question in conversation.questions for turn in question.evidence)
        return cls(conversation, frozenset(asked))


def _place(hit: Hit, known: _Known) -> list[Span]:
    score = "" if hit.score is None else f" {hit.score:.3f}"
    spans = [
        Span(f"{hit.rank:>2}", "strong"),
        Span(score, "value"),
        Span(f"  {_turns(hit, known.conversation)}", "accent"),
    ]
    return [*spans, Span(" ◇", "warn")] if known.evidence.intersection(_of(hit)) else spans


def _of(hit: Hit) -> tuple[str, ...]:
    return hit.turns or hit.sources


def _turns(hit: Hit, conversation: Conversation) -> str:
    verbatim = f"turn {turns_words(conversation, hit.turns)}" if hit.turns else ""
    distilled = f"from turn {turns_words(conversation, hit.sources)}" if hit.sources and not hit.turns else ""
    return verbatim or distilled


def _ranks(hit: Hit) -> str:
    return " · ".join(f"{name} {place.rank}" for name, place in hit.channels.items())


def _ranks_and_scores(hit: Hit) -> str:
    return " · ".join(f"{name} {place.rank} ({place.score:.2f})" for name, place in hit.channels.items())
