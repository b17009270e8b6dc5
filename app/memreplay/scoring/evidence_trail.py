"""The way of one evidence turn from being said to standing in a prompt, and where it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from memory_backends.base import Hit
from memreplay.conversations.models import Turn
from memreplay.engine.events import QuestionAsked
from memreplay.scoring.kept import Provenance

LostAt = Literal["not_written", "not_retrieved", "cut"]

Loss = Literal["never_observed", "gated", "expired", "superseded", "distilled_away"]
"""How a turn came to be stored nowhere.

``never_observed``: memory was not told of it before it was asked. ``gated``: what was found in it was judged not
significant enough. ``expired``: it was stored and removed again. ``superseded``: only a value of it was stored, and
a later one took its place. ``distilled_away``: nothing of it was stored, or a distillate that did not carry it.
"""


@dataclass(frozen=True)
class Trail:
    """Where the way of a turn ended, in one sentence; ``lost_at`` is None where it reached the prompt.

    ``ranks`` are its 1-based ranks by retrieval channel, as far down as they are on record.
    """

    turn: str
    lost_at: LostAt | None
    sentence: str
    loss: Loss | None = None
    ranks: Mapping[str, int] = field(default_factory=dict)


def turns_in_prompt(asked: QuestionAsked) -> frozenset[str]:
    """Turns whose words stood in the prompt."""
    return frozenset(turn for hit in asked.hits if hit.in_prompt for turn in hit.turns)


def turns_distilled_in_prompt(asked: QuestionAsked) -> frozenset[str]:
    """Turns from which something in the prompt was distilled, or of which a part stood there."""
    return frozenset(turn for hit in asked.hits if hit.in_prompt for turn in hit.sources)


def turns_in_part_in_prompt(asked: QuestionAsked, provenance: Provenance) -> frozenset[str]:
    """Turns of which some words stood in the prompt: what it had of them came from where their words are stored."""
    return frozenset(
        turn
        for hit in asked.hits
        if hit.in_prompt
        for turn in hit.sources
        if provenance.has_words_in(hit.place, turn)
    )


def trail_of(turn: str, said: Turn | None, asked: QuestionAsked, provenance: Provenance) -> Trail:
    """How far a turn came. ``said`` is None where the conversation has no such turn."""
    if turn in turns_in_prompt(asked):
        return Trail(turn, None, f"Turn {turn} stood in the prompt.")
    kept = provenance.kept_of(turn)
    has_words = any(one.verbatim and one.holds for one in kept)
    was_distilled = turn in turns_distilled_in_prompt(asked)
    ranks = _ranks(turn, asked)
    also = ""
    if was_distilled:
        in_part = turn in turns_in_part_in_prompt(asked, provenance)
        also = f" {'A part of it' if in_part else 'A fact distilled from it'} stood in the prompt."
    if turn in _turns_cut(asked):
        sentence = f"Turn {turn} was retrieved, and the budget cut it{_placed(ranks)}.{also}"
        return Trail(turn, "cut", sentence, ranks=ranks)
    if was_distilled and not has_words and provenance.is_traced:
        sentence = f"Of turn {turn} only a distillate is stored; it stood in the prompt and did not help."
        return Trail(turn, "not_written", sentence, "distilled_away")
    is_on_record = has_words or any(one.holds for one in kept) or any(_names(hit, turn) for hit in asked.missed)
    if is_on_record:
        return Trail(turn, "not_retrieved", _not_retrieved(turn, asked, ranks) + also, ranks=ranks)
    if said is None or turn not in provenance.observed:
        return Trail(turn, "not_written", _never_observed(turn, said, asked), "never_observed")
    if not provenance.is_traced and (asked.hits or asked.missed):
        sentence = f"Turn {turn} was not retrieved; whether it was stored is not on record."
        return Trail(turn, "not_retrieved", sentence, ranks=ranks)
    return _not_written(turn, provenance)


def _not_written(turn: str, provenance: Provenance) -> Trail:
    kept = provenance.kept_of(turn)
    dropped = provenance.dropped_of(turn)
    if any(one.superseded for one in kept):
        sentence = f"What was stored of turn {turn} no longer holds: a later value took its place."
        return Trail(turn, "not_written", sentence, "superseded")
    if kept:
        return Trail(turn, "not_written", f"Turn {turn} was stored and removed again.", "expired")
    if dropped:
        best = max(dropped, key=lambda decision: decision.score)
        sentence = (
            f"What turn {turn} says was judged and dropped: significance {best.score:.2f}"
            f" is below {best.threshold:.2f}."
        )
        return Trail(turn, "not_written", sentence, "gated")
    return Trail(turn, "not_written", f"Memory was told of turn {turn} and stored nothing of it.", "distilled_away")


def _never_observed(turn: str, said: Turn | None, asked: QuestionAsked) -> str:
    if said is None:
        return f"The conversation has no turn {turn}."
    if said.number > asked.turn:
        return f"Turn {turn} had not been said when memory was asked."
    return f"Turn {turn} was said, but memory had not been told of its exchange."


def _not_retrieved(turn: str, asked: QuestionAsked, ranks: Mapping[str, int]) -> str:
    if ranks:
        return f"Turn {turn} was stored and not retrieved{_placed(ranks)}."
    depth = len(asked.hits) + len(asked.missed)
    return f"Turn {turn} was stored and is not among the {depth} best candidates on record."


def _placed(ranks: Mapping[str, int]) -> str:
    return f" (rank {', '.join(f'{rank} {channel}' for channel, rank in ranks.items())})" if ranks else ""


def _names(hit: Hit, turn: str) -> bool:
    return turn in hit.turns or turn in hit.sources


def _turns_cut(asked: QuestionAsked) -> frozenset[str]:
    """Turns that were retrieved and are not in the prompt, word for word or distilled."""
    cut = (turn for cut in asked.cut for turn in cut.turns)
    left_out = (turn for hit in asked.hits if not hit.in_prompt for turn in (*hit.turns, *hit.sources))
    return frozenset([*cut, *left_out])


def _ranks(turn: str, asked: QuestionAsked) -> dict[str, int]:
    """The best rank of a turn in each channel, and in all together (``fused``) where there are several channels."""
    best: dict[str, int] = {}
    for channel, rank in _placements(turn, (*asked.hits, *asked.missed)):
        best[channel] = min(rank, best.get(channel, rank))
    return best


def _placements(turn: str, candidates: Iterable[Hit]) -> Iterator[tuple[str, int]]:
    for hit in candidates:
        if _names(hit, turn):
            if len(hit.channels) > 1:
                yield "fused", hit.rank
            for channel, place in hit.channels.items():
                yield channel, place.rank
