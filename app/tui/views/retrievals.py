"""What memory gave for a user's message: ranked hits, where they came from, and what did not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.conversations.models import Conversation
from app.replay.events import Perceived
from app.replay.timeline import Timeline
from app.tui.text import Line, Span, line, one_line
from app.tui.views.view import View, lines_view, nothing
from memory_backends.base import Cut, Hit, WhyEmpty

_ROWS_OF_TEXT = 3

_NO_HIT: Mapping[WhyEmpty | None, str] = {
    None: "no hit: memory had nothing for this message",
    "nothing_stored": "no hit: nothing is stored yet",
    "below_threshold": "no hit: nothing that is stored is near enough to this message",
}


class RetrievalsPanel:
    """The latest read path: rank, score, source turns, the rank in each channel, text."""

    name = "retrievals"

    def __init__(self, timeline: Timeline, backend: str, weight: int = 4) -> None:
        self.weight = weight
        self._timeline = timeline
        self._backend = backend
        self._evidence = evidence_of(timeline.conversation)

    def at(self, cursor: int) -> View:
        """The hits of the latest user turn at or before the position."""
        perceived = self._timeline.perceived_at(self._backend, cursor)
        if perceived is None:
            return lines_view("retrievals", nothing("nothing was searched yet"))
        title = f"retrievals · for turn {perceived.turn}"
        if not perceived.hits:
            return lines_view(title, nothing(_NO_HIT[perceived.why_empty]))
        lines = list(hit_lines(perceived.hits, self._evidence)) + list(cut_lines(perceived.cut))
        return lines_view(title, lines, note=_note(perceived))


def _note(perceived: Perceived) -> str:
    hits = len(perceived.hits)
    return f"{hits} {'hit' if hits == 1 else 'hits'} · {perceived.tokens:,} tokens"


def hit_lines(hits: tuple[Hit, ...], evidence: frozenset[str]) -> Iterator[Line]:
    """Two lines a hit: where it stands and where it is from; then its text."""
    for hit in hits:
        score = "" if hit.score is None else f" {hit.score:.3f}"
        turns = hit.turns or hit.sources
        spans = [Span(f"{hit.rank:>2}", "strong"), Span(score, "value"), Span(f"  {_turns(hit)}", "accent")]
        if evidence.intersection(turns):
            spans.append(Span(" ◇", "warn"))
        if not hit.in_prompt:
            spans.append(Span(" × cut", "removed"))
        spans.append(Span(f"  {one_line(_channels(hit))}", "dim"))
        yield Line(tuple(spans), hang=3)
        yield line("   ", Span(one_line(hit.text), "plain" if hit.in_prompt else "dim"), hang=3, most=_ROWS_OF_TEXT)


def cut_lines(cut: tuple[Cut, ...]) -> Iterator[Line]:
    """A line for each place that something was cut from."""
    for part in cut:
        yield line(Span(f"× {part.tokens:,} tokens of {one_line(part.place)} did not fit", "removed"), hang=2)


def evidence_of(conversation: Conversation) -> frozenset[str]:
    """Ids of all turns that hold the answer to some question."""
    return frozenset(turn for question in conversation.questions for turn in question.evidence)


def _turns(hit: Hit) -> str:
    verbatim = f"turn {_few(hit.turns)}" if hit.turns else ""
    distilled = f"from turn {_few(hit.sources)}" if hit.sources and not hit.turns else ""
    return one_line(verbatim or distilled)


def _few(turns: tuple[str, ...]) -> str:
    if len(turns) > 3:
        return f"{turns[0]}…{turns[-1]} ({len(turns)})"
    return ", ".join(turns)


def _channels(hit: Hit) -> str:
    channels = " · ".join(f"{name} {score.rank}" for name, score in hit.channels.items())
    return f"{hit.place}  {channels}" if channels else hit.place
