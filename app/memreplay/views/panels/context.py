"""The reads of a memory for a message: hits, candidates, the assembled context, and the full-context log."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from memory_backends.base import Cut, Hit, WhyEmpty
from memreplay.conversations.models import Conversation, Turn
from memreplay.engine.events import Perceived
from memreplay.numbers import whole_share
from memreplay.timeline.timeline import Timeline
from memreplay.views.panels import DiffBase, View, lines_view, placeholder, short_key, waiting
from memreplay.views.panels.conversation import turns_words
from memreplay.views.subjects import PieceSubject, StoredSubject
from memreplay.views.text import Line, Row, Span, Tone, estimated_rows, line, one_line, visible, wrapped

_KEPT = "  "
_CUT = "× "


class LogDocument:
    """A log, one block per appended piece. It shows ``shown`` pieces and marks turns that were cut."""

    def __init__(self, conversation: Conversation, backend: str, key: str) -> None:
        self._conversation = conversation
        self._backend = backend
        self._key = key
        self._pieces: list[tuple[int, str]] = []
        self.shown = 0
        self.cut_to = 0
        self._laid_out = lru_cache(maxsize=512)(self._lay_out)

    def __len__(self) -> int:
        return self.shown

    def seek(self, pieces: Sequence[tuple[int, str]], cut_to: int) -> None:
        """Show exactly these pieces, cut up to a turn number. Pieces that are known already never change."""
        if len(pieces) > len(self._pieces):
            self._pieces += pieces[len(self._pieces) :]
        self.shown = len(pieces)
        self.cut_to = cut_to

    def height(self, index: int, width: int) -> int:
        return len(wrapped(self._lines(index, 0), width))

    def guess(self, index: int, width: int) -> int:
        return estimated_rows(self._pieces[index][1].rstrip("\n"), width - 4)

    def rows(self, index: int, width: int) -> Sequence[Row]:
        numbers = [turn.number for turn, _ in self._turns(index)]
        return self._laid_out(index, width, min(self.cut_to, max(numbers, default=0)))

    def subject(self, index: int) -> PieceSubject:
        return PieceSubject(self._backend, self._key, index)

    def _lay_out(self, index: int, width: int, cut_to: int) -> tuple[Row, ...]:
        return tuple(wrapped(self._lines(index, cut_to), width))

    def _lines(self, index: int, cut_to: int) -> list[Line]:
        text = self._pieces[index][1]
        turns = self._turns(index)
        lines: list[Line] = []
        turn = -1
        waiting = [f"{label}: " for _, label in turns]
        for part in text.removesuffix("\n").split("\n"):
            if turn + 1 < len(turns) and part.startswith(waiting[turn + 1]):
                turn += 1
            gone = turns[max(turn, 0)][0].number <= cut_to if turns else False
            label = waiting[turn] if turn >= 0 and part.startswith(waiting[turn]) else ""
            spans = (
                Span(_CUT if gone else _KEPT, "removed" if gone else "plain"),
                Span(visible(label), "dim" if gone else "key"),
                Span(visible(part.removeprefix(label)), "dim" if gone else "plain"),
            )
            lines.append(Line(spans, hang=2))
        return lines

    def _turns(self, index: int) -> list[tuple[Turn, str]]:
        """Return the turns that a piece holds, each with its label: those since the previous piece."""
        position = self._pieces[index][0]
        earlier = index
        while earlier and self._pieces[earlier - 1][0] == position:
            earlier -= 1
        first = self._pieces[earlier - 1][0] if earlier else 0
        turns = self._conversation.turns[first:position]
        return [(turn, self._conversation.label_of(turn)) for turn in turns]


class CutBoundary:
    """The point at which a log is cut. The oldest text goes first, and each read path records only what it newly
    cut.

    So the latest read path with a cut has the answer. Each read path is loaded at most once.
    """

    def __init__(self, timeline: Timeline, backend: str) -> None:
        self._timeline = timeline
        self._track = timeline.perceived_index(backend)
        self._known: dict[int, int] = {}

    def at(self, cursor: int) -> int:
        """Return the number of the last turn that is wholly or partly cut at a position; 0 if none is."""
        start = bisect_right(self._track.turns, cursor) - 1
        place = start
        while place >= 0 and place not in self._known:
            last = self._last_cut(self._track.refs[place])
            if last:
                self._known[place] = last
                break
            place -= 1
        boundary = self._known.get(place, 0)
        self._known.update(dict.fromkeys(range(place + 1, start + 1), boundary))
        return boundary

    def _last_cut(self, ref: int) -> int:
        known = self._timeline.conversation.turns_by_id
        cut = self._timeline.perceived(ref).cut
        return max((known[turn].number for part in cut for turn in part.turns if turn in known), default=0)


class ContextLog:
    """The full-context log of one architecture: its documents are laid out lazily and reused at every position."""

    def __init__(self, timeline: Timeline, backend: str) -> None:
        self._timeline = timeline
        self._backend = backend
        self._documents: dict[str, LogDocument] = {}
        self._boundary = CutBoundary(timeline, backend)

    def at(self, cursor: int) -> View:
        """Return the log at a position, its newest end in view, with its tokens in the prompt and how far it was
        cut.
        """
        key = next(iter(self._timeline.log_keys(self._backend)), None)
        pieces = self._timeline.log_at(self._backend, key, cursor) if key else ()
        if key is None or not pieces:
            return lines_view("context log", placeholder(waiting(cursor, "not written yet")))
        perceived = self._timeline.perceived_at(self._backend, cursor)
        boundary = self._boundary.at(cursor)
        document = self._document_of(key)
        document.seek(pieces, boundary)
        tokens = f"{perceived.tokens:,} tokens in the prompt" if perceived else ""
        cut = f"× cut up to turn {boundary:,}" if boundary else ""
        size = f"{self._timeline.log_size_at(self._backend, key, cursor):,} bytes"
        note = " · ".join(part for part in (cut, tokens, size) if part)
        return View(
            f"context log · {short_key(key, self._timeline.conversation.id, self._backend)}",
            document,
            note,
            in_view=len(pieces) - 1,
        )

    def _document_of(self, key: str) -> LogDocument:
        if key not in self._documents:
            self._documents[key] = LogDocument(self._timeline.conversation, self._backend, key)
        return self._documents[key]


_BAR = 20
_FULL: Final = "█"
_EMPTY: Final = "░"


def composition_view(timeline: Timeline, backend: str, cursor: int) -> View:
    """Return which places filled the context of the latest message, as bars of tokens."""
    perceived = timeline.perceived_at(backend, cursor)
    if perceived is None:
        return lines_view("context", placeholder(waiting(cursor, "no context has been assembled yet")))
    earlier, title = _earlier_words(timeline, perceived, cursor), f"context · for turn {perceived.turn}"
    if perceived.why_empty == "not_recorded":
        return lines_view(title, [*earlier, *placeholder(_NO_HITS["not_recorded"])])
    bars = _composition_lines(perceived.hits, perceived.cut, perceived.tokens)
    return lines_view(title, [*earlier, *bars], note=f"{perceived.tokens:,} tokens")


def _composition_lines(hits: Sequence[Hit], cut: Iterable[Cut], tokens: int) -> list[Line]:
    """Two bars per place, as shares of everything available: tokens in the context, and tokens cut."""
    taken = _tokens_by_place(hits, tokens)
    left_out: dict[str, int] = defaultdict(int)
    for part in cut:
        left_out[part.place] += part.tokens
    whole = max(1, sum(taken.values()) + sum(left_out.values()))
    lines = []
    for place in dict.fromkeys((*taken, *left_out)):
        if taken.get(place):
            lines += _bar("  ", place, taken[place], whole, "value")
        if left_out.get(place):
            lines += _bar("× ", place, left_out[place], whole, "removed")
    return lines or placeholder("the context is empty")


def _tokens_by_place(hits: Sequence[Hit], tokens: int) -> dict[str, int]:
    taken: dict[str, int] = defaultdict(int)
    for hit in hits:
        if hit.in_prompt:
            taken[hit.place] += hit.tokens
    between = tokens - sum(taken.values())
    if between > 0:
        taken["between hits" if taken else "context"] += between
    return taken


def _bar(sign: str, place: str, tokens: int, whole: int, tone: Tone) -> list[Line]:
    cells = max(1, round(_BAR * tokens / whole))
    left_out = " cut" if sign != "  " else ""
    return [
        line(Span(sign, tone), Span(one_line(place.split(":")[0]), "key"), Span(left_out, tone), most=1),
        line(
            Span("  "),
            Span(_FULL * cells, tone),
            Span(_EMPTY * (_BAR - cells), "dim"),
            Span(f" {tokens:,} · {whole_share(tokens / whole)}", "dim"),
            most=1,
        ),
    ]


_ROWS_OF_HIT = 3

_NO_HITS: Mapping[WhyEmpty | None, str] = {
    None: "no hits for this message",
    "nothing_stored": "no hits: nothing is stored yet",
    "not_searched": "memory was not searched",
    "not_recorded": "memory was searched; what it found was not recorded",
    "below_threshold": "no hits: no stored item is similar enough to this message",
}

ChannelWords = Callable[[Hit], str]
"""Formats a hit's rank in each channel."""


def retrievals_view(timeline: Timeline, backend: str, cursor: int, base: DiffBase) -> View:
    """Return the hits of the latest user turn at or before the position, diffed against those of the base."""
    perceived = timeline.perceived_at(backend, cursor)
    if perceived is None:
        return _nothing_searched("retrievals", cursor)
    lines = _hits_compared(timeline, perceived, base, _ranks)
    return _read_path_view(timeline, "retrievals", perceived, cursor, [*lines, *_cut_lines(perceived.cut)])


def candidates_view(timeline: Timeline, backend: str, cursor: int, base: DiffBase) -> View:
    """Return the latest read path in full: scores in each channel, and the candidates that ranked below the cut."""
    perceived = timeline.perceived_at(backend, cursor)
    if perceived is None:
        return _nothing_searched("candidates", cursor)
    compared = _hits_compared(timeline, perceived, base, _ranks_and_scores)
    missed = _missed_lines(perceived.missed, backend, _Known.of(timeline.conversation))
    return _read_path_view(
        timeline, "candidates", perceived, cursor, [*compared, *missed, *_cut_lines(perceived.cut)]
    )


def _nothing_searched(name: str, cursor: int) -> View:
    return lines_view(name, placeholder(waiting(cursor, "no search at an ordinary turn is recorded up to here")))


def _read_path_view(
    timeline: Timeline, name: str, perceived: Perceived, cursor: int, lines: Sequence[Line]
) -> View:
    hits, missed = len(perceived.hits), len(perceived.missed)
    below = f" · {missed} more below the cut" if missed else ""
    is_known = perceived.why_empty != "not_recorded"
    note = f"{hits} {'hit' if hits == 1 else 'hits'}{below} · {perceived.tokens:,} tokens" if is_known else ""
    shown = lines or placeholder(_NO_HITS[perceived.why_empty])
    earlier = _earlier_words(timeline, perceived, cursor)
    return lines_view(f"{name} · for turn {perceived.turn}", [*earlier, *shown], note=note)


def _earlier_words(timeline: Timeline, perceived: Perceived, cursor: int) -> list[Line]:
    """Return the line that says why an earlier turn's read path is shown; none at that turn itself."""
    if perceived.turn >= cursor:
        return []
    return placeholder(f"turn {cursor} searches nothing" if cursor <= timeline.last_turn else "the last search")


def _hits_of_base(timeline: Timeline, perceived: Perceived, base: DiffBase) -> Sequence[Hit] | None:
    """Return the hits to compare with; None if the base compares nothing."""
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
    """Yield the hits. Compared with a base, ``+`` marks a hit that only this read path has, ``−`` one it lacks."""
    backend, known = perceived.backend, _Known.of(timeline.conversation)
    others = _hits_of_base(timeline, perceived, base)
    if others is None:
        for hit in perceived.hits:
            yield from _hit(hit, backend, known, Span(""), channels)
        return
    there = {turn for hit in others for turn in _ids_of(hit)}
    here = {turn for hit in perceived.hits for turn in _ids_of(hit)}
    for hit in perceived.hits:
        sign = Span("  ") if there.intersection(_ids_of(hit)) else Span("+ ", "added")
        yield from _hit(hit, backend, known, sign, channels)
    for hit in others:
        if not here.intersection(_ids_of(hit)):
            yield line(
                Span("− ", "removed"),
                Span(f"turn {turns_words(timeline.conversation, _ids_of(hit))}  ", "accent"),
                Span(one_line(hit.text), "dim"),
                hang=2,
                most=1,
            )


def _hit(hit: Hit, backend: str, known: _Known, sign: Span, channels: ChannelWords) -> Iterator[Line]:
    about = StoredSubject.of_hit(backend, hit)
    spans = [sign, *_place_of(hit, known)]
    if not hit.in_prompt:
        spans.append(Span(" × cut", "removed"))
    place = short_key(hit.place, known.conversation.id, backend)
    spans.append(Span(f"  {place}  {one_line(channels(hit))}", "dim"))
    yield Line(tuple(spans), hang=3, about=about)
    yield line("   ", Span(one_line(hit.text), "plain" if hit.in_prompt else "dim"), hang=3, most=_ROWS_OF_HIT)


def _missed_lines(missed: Sequence[Hit], backend: str, known: _Known) -> Iterator[Line]:
    """Yield one line per candidate below the cut: its rank, and its rank and score in each channel."""
    if missed:
        yield line(Span(f"── {len(missed)} more below the cut", "title"))
    for hit in missed:
        channels = Span(f"  {one_line(_ranks_and_scores(hit))}", "dim")
        yield line(*_place_of(hit, known), channels, hang=3, about=StoredSubject.of_hit(backend, hit))


def _cut_lines(cut: tuple[Cut, ...]) -> Iterator[Line]:
    """Yield one line per place that the token budget cut something from."""
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


def _place_of(hit: Hit, known: _Known) -> list[Span]:
    score = "" if hit.score is None else f" {hit.score:z.3f}"
    spans = [
        Span(f"{hit.rank:>2}", "strong"),
        Span(score, "value"),
        Span(f"  {_turns_of(hit, known.conversation)}", "accent"),
    ]
    return [*spans, Span(" ◇", "warn")] if known.evidence.intersection(_ids_of(hit)) else spans


def _ids_of(hit: Hit) -> tuple[str, ...]:
    return hit.turns or hit.sources


def _turns_of(hit: Hit, conversation: Conversation) -> str:
    verbatim = f"turn {turns_words(conversation, hit.turns)}" if hit.turns else ""
    distilled = f"from turn {turns_words(conversation, hit.sources)}" if hit.sources and not hit.turns else ""
    return verbatim or distilled


def _ranks(hit: Hit) -> str:
    return " · ".join(f"{name} {place.rank}" for name, place in hit.channels.items())


def _ranks_and_scores(hit: Hit) -> str:
    return " · ".join(f"{name} {place.rank} ({place.score:.2f})" for name, place in hit.channels.items())
