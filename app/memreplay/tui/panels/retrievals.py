"""What memory gave for a user's message: ranked hits, their ranks in each channel, and what missed the cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from memory_backends.base import Cut, Hit, WhyEmpty
from memreplay.conversations.models import Conversation
from memreplay.engine.events import Perceived
from memreplay.timeline.timeline import Timeline
from memreplay.tui.panels.panel import MARKED, Base, View, lines_view, nothing
from memreplay.tui.subjects import StoredSubject
from memreplay.tui.text import Line, Span, line, one_line

_ROWS_OF_TEXT = 3

_NO_HIT: Mapping[WhyEmpty | None, str] = {
    None: "no hit: memory had nothing for this message",
    "nothing_stored": "no hit: nothing is stored yet",
    "below_threshold": "no hit: nothing that is stored is near enough to this message",
}

Channels = Callable[[Hit], str]
"""How a hit's places in the channels are told."""


class RetrievalsPanel:
    """The latest read path: rank and score, source turns, the rank in each channel, text."""

    name = "retrievals"

    def __init__(self, timeline: Timeline, backend: str, weight: int = 4) -> None:
        self.weight = weight
        self._timeline = timeline
        self._backend = backend
        self._evidence = evidence_of(timeline.conversation)

    def at(self, cursor: int, base: Base = MARKED) -> View:
        """The hits of the latest user turn at or before the position, marked by how they differ from the base's."""
        perceived = self._timeline.perceived_at(self._backend, cursor)
        if perceived is None:
            return lines_view("retrievals", nothing("nothing was searched yet"))
        title = f"{self.name} · for turn {perceived.turn}"
        lines = self._lines(perceived, self._compared_with(perceived, base))
        return lines_view(title, lines or nothing(_NO_HIT[perceived.why_empty]), note=_note(perceived))

    def _lines(self, perceived: Perceived, others: Sequence[Hit] | None) -> list[Line]:
        compared = _hits_compared(perceived, others, self._backend, self._evidence, _ranks)
        return [*compared, *cut_lines(perceived.cut)]

    def _compared_with(self, perceived: Perceived, base: Base) -> Sequence[Hit] | None:
        """The hits to compare with; None where nothing is compared."""
        match base.kind:
            case "architecture" if base.backend != self._backend:
                other = self._timeline.perceived_at(base.backend, perceived.turn)
            case "previous":
                other = self._timeline.perceived_at(self._backend, perceived.turn - 1)
            case "bookmark":
                other = self._timeline.perceived_at(self._backend, base.turn)
            case _:
                return None
        return () if other is None else other.hits


class CandidatesPanel(RetrievalsPanel):
    """The latest read path in full: with the score in each channel, and with what ranked below the cut."""

    name = "candidates"

    def _lines(self, perceived: Perceived, others: Sequence[Hit] | None) -> list[Line]:
        compared = _hits_compared(perceived, others, self._backend, self._evidence, _ranks_and_scores)
        missed = missed_lines(perceived.missed, self._backend, self._evidence)
        return [*compared, *missed, *cut_lines(perceived.cut)]


def _note(perceived: Perceived) -> str:
    hits, missed = len(perceived.hits), len(perceived.missed)
    below = f" · {missed} missed" if missed else ""
    return f"{hits} {'hit' if hits == 1 else 'hits'}{below} · {perceived.tokens:,} tokens"


def _hits_compared(
    perceived: Perceived,
    others: Sequence[Hit] | None,
    backend: str,
    evidence: frozenset[str],
    channels: Channels,
) -> Iterator[Line]:
    """The hits; with others to compare with, ``+`` before one that only this has, ``−`` one that only they have."""
    if others is None:
        for hit in perceived.hits:
            yield from _hit(hit, backend, evidence, Span(""), channels)
        return
    there = {turn for hit in others for turn in _of(hit)}
    here = {turn for hit in perceived.hits for turn in _of(hit)}
    for hit in perceived.hits:
        sign = Span("  ") if there.intersection(_of(hit)) else Span("+ ", "added")
        yield from _hit(hit, backend, evidence, sign, channels)
    for hit in others:
        if not here.intersection(_of(hit)):
            yield line(
                Span("− ", "removed"),
                Span(f"turn {_few(_of(hit))}  ", "accent"),
                Span(one_line(hit.text), "dim"),
                hang=2,
                most=1,
            )


def _hit(hit: Hit, backend: str, evidence: frozenset[str], sign: Span, channels: Channels) -> Iterator[Line]:
    about = StoredSubject.of_hit(backend, hit)
    spans = [sign, *_place(hit, evidence)]
    if not hit.in_prompt:
        spans.append(Span(" × cut", "removed"))
    spans.append(Span(f"  {one_line(hit.place)}  {one_line(channels(hit))}", "dim"))
    yield Line(tuple(spans), hang=3, about=about)
    yield line("   ", Span(one_line(hit.text), "plain" if hit.in_prompt else "dim"), hang=3, most=_ROWS_OF_TEXT)


def missed_lines(missed: Sequence[Hit], backend: str, evidence: frozenset[str]) -> Iterator[Line]:
    """A line for each candidate that ranked below the cut: its rank, and its rank and score in each channel."""
    if missed:
        yield line(Span(f"── {len(missed)} missed the cut", "title"))
    for hit in missed:
        channels = Span(f"  {one_line(_ranks_and_scores(hit))}", "dim")
        yield line(*_place(hit, evidence), channels, hang=3, about=StoredSubject.of_hit(backend, hit))


def cut_lines(cut: tuple[Cut, ...]) -> Iterator[Line]:
    """A line for each place that something was cut from."""
    for part in cut:
        yield line(Span(f"× {part.tokens:,} tokens of {one_line(part.place)} did not fit", "removed"), hang=2)


def evidence_of(conversation: Conversation) -> frozenset[str]:
    """Ids of all turns that hold the answer to some question."""
    return frozenset(turn for question in conversation.questions for turn in question.evidence)


def _place(hit: Hit, evidence: frozenset[str]) -> list[Span]:
    score = "" if hit.score is None else f" {hit.score:.3f}"
    spans = [Span(f"{hit.rank:>2}", "strong"), Span(score, "value"), Span(f"  {_turns(hit)}", "accent")]
    return [*spans, Span(" ◇", "warn")] if evidence.intersection(_of(hit)) else spans


def _of(hit: Hit) -> tuple[str, ...]:
    return hit.turns or hit.sources


def _turns(hit: Hit) -> str:
    verbatim = f"turn {_few(hit.turns)}" if hit.turns else ""
    distilled = f"from turn {_few(hit.sources)}" if hit.sources and not hit.turns else ""
    return one_line(verbatim or distilled)


def _few(turns: tuple[str, ...]) -> str:
    if len(turns) > 3:
        return f"{turns[0]}…{turns[-1]} ({len(turns)})"
    return ", ".join(turns)


def _ranks(hit: Hit) -> str:
    return " · ".join(f"{name} {place.rank}" for name, place in hit.channels.items())


def _ranks_and_scores(hit: Hit) -> str:
    return " · ".join(f"{name} {place.rank} ({place.score:.2f})" for name, place in hit.channels.items())
