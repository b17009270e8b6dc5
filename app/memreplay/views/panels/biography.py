"""The biography of a fact: its path through one memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from itertools import groupby
from typing import Final

from memreplay.conversations.models import Conversation, Question
from memreplay.debugger.biography import (
    AskedAbout,
    Biography,
    JudgedCandidate,
    Reach,
    RetrievalHistory,
    RetrievalOutcome,
    StoredItem,
)
from memreplay.numbers import counted
from memreplay.views.panels import short_key
from memreplay.views.panels.answers import SIGNS
from memreplay.views.subjects import DecisionSubject, PositionSubject, TurnSubject
from memreplay.views.text import Line, Span, Tone, line, one_line, paragraphs, wrapped

_FEWEST_SIGHTINGS: Final = 8
"""Ranks of a turn that are listed even where there is no room for all steps of a biography."""
_INDENT = 6
_REACH: Final[dict[Reach, tuple[str, Tone]]] = {
    "in_prompt": ("✓ in the prompt", "good"),
    "cut": ("× retrieved, cut by the budget", "bad"),
    "missed": ("✗ below the cut", "bad"),
    "not_found": ("✗ not among the candidates", "bad"),
    "not_recorded": ("– what memory returned was not recorded", "dim"),
}


def biography_lines(
    conversation: Conversation,
    lives: Sequence[Biography],
    question: Question | None,
    answerable: int | None = None,
    room: tuple[int, int] = (0, 0),
) -> list[Line]:
    """Return the path of each evidence turn through one memory.

    ``answerable`` is the position from which what is stored holds the answer of the question; None for never.
    ``room`` are the columns and rows of the view: as many ranks of each turn are listed as fit, the latest ones.
    """

    def lines_with(most: int) -> list[Line]:
        lines = [] if question is None else list(_known_lines(lives, answerable))
        for life in lives:
            if lines:
                lines.append(line(""))
            lines += _life_lines(conversation, life, most)
        return lines

    width, height = room
    wanted = range(_FEWEST_SIGHTINGS + 1, max((len(life.retrievals.ranks) for life in lives), default=0) + 1)
    fitting = bisect_right(wanted, height, key=lambda most: len(wrapped(lines_with(most), max(width, 1))))
    return lines_with(_FEWEST_SIGHTINGS + fitting)


def _known_lines(lives: Sequence[Biography], start: int | None) -> Iterator[Line]:
    if not all(life.is_recorded for life in lives) or (start is None and not all(life.is_known for life in lives)):
        yield line(Span("– what this memory stored was not recorded", "dim"))
    elif start is None:
        yield line(Span("✗ what was stored never holds the answer", "bad"))
    else:
        about = PositionSubject(start, lives[0].backend) if lives else None
        yield line(Span(f"✓ what was stored holds the answer from turn {start}", "good"), about=about)


def _life_lines(conversation: Conversation, life: Biography, most: int) -> Iterator[Line]:
    turn = conversation.turns_by_id[life.turn_id]
    who = one_line(conversation.label_of(turn))
    yield _step(
        life.said_at, "said", Span(f"by {who}, turn {one_line(turn.id)}", "key"), about=TurnSubject(turn.id)
    )
    yield from paragraphs(turn.text, indent=_INDENT)
    if life.is_recorded:
        yield _step(life.observed_at, "observed", "memory receives its exchange", about=_at(life.observed_at, life))
    judged_ones = {judged.decision.candidate_id for judged in life.judged}
    for candidate in life.staged:
        if candidate.candidate_id not in judged_ones:
            name = f"{one_line(candidate.candidate_id)}, never judged"
            yield _step(candidate.turn, "candidate", name, about=_at(candidate.turn, life))
    for asked in life.writer:
        model, words = Span(f"{one_line(asked.model)}  ", "key"), Span(asked.reading, "dim")
        yield _step(asked.turn, "writer", model, words, about=_at(asked.turn, life))
        for fact in asked.facts:
            yield line(" " * _INDENT, Span("▸ ", "added"), one_line(fact), hang=_INDENT + 2)
    for judged in life.judged:
        yield from _judged_lines(judged, life)
    for (turn, form, place), items in groupby(life.stored, lambda item: (item.turn, item.form, item.place)):
        yield from _stored_lines(turn, form, short_key(place, conversation.id, life.backend), [*items], life)
    if not life.is_recorded or not (life.is_known or life.stored):
        yield line(Span(f"{'':>6}", "dim"), Span("– what was stored was not recorded", "dim"))
    elif not life.stored:
        yield line(Span(f"{'':>6}", "dim"), Span("✗ none of it was ever stored", "bad"))
    yield from _sighting_lines(life.retrievals, life, most)
    for question in life.asked:
        yield from _asked_lines(question, life)


def _judged_lines(judged: JudgedCandidate, life: Biography) -> Iterator[Line]:
    decision = judged.decision
    kept = decision.decision in ("ADD", "UPDATE")
    tone: Tone = "added" if kept else "removed" if decision.decision == "DROP" else "dim"
    verdict = Span(f"{decision.decision} {decision.score:.2f} of {decision.threshold:.2f}", tone)
    about = DecisionSubject.of(life.backend, judged.turn, decision)
    yield _step(
        judged.turn, "promoted" if kept else "judged", verdict, f"  {one_line(decision.content)}", about=about
    )
    yield line(" " * _INDENT, Span(one_line(decision.justification), "dim"), hang=_INDENT)


def _stored_lines(turn: int, form: str, place: str, items: Sequence[StoredItem], life: Biography) -> Iterator[Line]:
    """Yield what was stored at one turn in one place, then what became of each item."""
    paths = [item.item.strip("/") for item in items if item.item.startswith("/")]
    what = ", ".join(map(one_line, paths)) or (f"{len(items)} items" if len(items) > 1 else "")
    yield _step(turn, "stored", Span(form, "good"), Span(f"  {place}  {what}", "dim"), about=_at(turn, life))
    for stored in items:
        which = f"{one_line(stored.item)} " if len(items) > 1 else ""
        if stored.superseded_at is not None:
            by = f"{which}by {one_line(stored.successor)}" if stored.successor else f"{which}by a later value"
            about = _at(stored.superseded_at, life)
            yield _step(stored.superseded_at, "superseded", Span(by, "changed"), about=about)
        if stored.removed_at is not None:
            gone = Span(f"{which}no longer stored", "removed")
            yield _step(stored.removed_at, "removed", gone, about=_at(stored.removed_at, life))


def _sighting_lines(seen: RetrievalHistory, life: Biography, most: int) -> Iterator[Line]:
    found = sum(not below for _, _, below in seen.ranks) if seen.in_prompt is None else seen.in_prompt
    yield line(
        Span(f"{'':>6}", "dim"),
        Span("retrieved " if seen.in_prompt is None else "in the prompt ", "title"),
        Span(
            f"at {found} of {seen.read_paths} ordinary turns"
            if seen.read_paths
            else "unknown: no search at an ordinary turn is recorded",
            "plain" if found else "dim",
        ),
    )
    if (left_out := len(seen.ranks) - most) > 0:
        earlier = f"{counted(left_out, 'earlier rank')} not listed: the replay has them at each turn"
        yield line(" " * _INDENT, Span(earlier, "dim"), hang=_INDENT)
    for turn, rank, below in seen.ranks[-most:]:
        place = Span(f"rank {rank}{', below the cut' if below else ''}", "dim" if below else "plain")
        yield _step(turn, "", place, about=_at(turn, life))


def _asked_lines(asked: AskedAbout, life: Biography) -> Iterator[Line]:
    retrieval = asked.retrieval
    by_hand = Span("  by hand" if asked.by_hand else "", "warn")
    question = Span(f"{one_line(asked.question_id)}  ", "key")
    yield _step(retrieval.turn, "asked", question, *_placed(retrieval), by_hand, about=_at(retrieval.turn, life))
    sign, tone = SIGNS[asked.outcome] if asked.outcome is not None else ("…", "dim")
    yield line(" " * _INDENT, Span(f"{sign} ", tone), Span(one_line(asked.reply or ""), tone), hang=8)


def _placed(placing: RetrievalOutcome) -> list[Span]:
    """Return how far the turn got in a recall, with its rank and score in each channel."""
    words, tone = _REACH[placing.reach]
    rank = f" at rank {placing.rank}" if placing.rank is not None else ""
    form = ", distilled" if placing.form == "distilled" else ""
    channels = " · ".join(f"{name} {one.rank} ({one.score:.2f})" for name, one in placing.channels.items())
    return [Span(f"{words}{rank}{form}", tone), Span(f"  {one_line(channels)}" if channels else "", "dim")]


def _at(turn: int, life: Biography) -> PositionSubject:
    return PositionSubject(turn, life.backend)


def _step(turn: int, what: str, *parts: str | Span, about: Hashable | None = None) -> Line:
    """Return one event of a biography, with its position."""
    return line(Span(f"{turn:>5} ", "accent"), Span(f"{what:<10} ", "title"), *parts, hang=_INDENT, about=about)
