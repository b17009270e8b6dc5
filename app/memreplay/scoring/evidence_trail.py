"""The trail of one evidence turn, from being said to being in a prompt, and the stage at which it was lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Literal, get_args

from memory_backends.base import Hit
from memreplay.conversations.models import Turn
from memreplay.engine.events import QuestionAsked
from memreplay.grading.times import times_in
from memreplay.llm import AGENT_MODEL
from memreplay.numbers import counted
from memreplay.scoring.holding import Answerable, Piece
from memreplay.scoring.stored import StoredMemory
from memreplay.scoring.writer import Finding, finding_of, update_in
from memreplay.text import normalised, shortened

LostAt = Literal["not_written", "not_visible", "not_retrieved", "cut"]
"""The stage that lost something. ``not_visible``: it was not retrieved, and what is stored cannot be seen."""

STAGES: tuple[LostAt | None, ...] = (*get_args(LostAt), None)
"""Stages, from the earliest to none at all."""

Loss = Literal["never_observed", "gated", "expired", "superseded", "distilled_away"]
"""Reasons why nothing that is stored holds the turn.

``never_observed``: memory had not heard it when it was asked. ``gated``: it was judged not significant enough.
``expired``: it was stored and removed. ``superseded``: a later value took its place. ``distilled_away``: nothing
was stored of it, or only something that leaves the answer out.
"""


@dataclass(frozen=True)
class Trail:
    """The loss of a turn, in one sentence. ``lost_at`` is None if what it says reached the prompt; ``form`` then
    says in which words, if not in its own.

    ``ranks`` are its 1-based ranks by retrieval channel, as far down as they were recorded. ``writer`` is what the
    model that writes made of it, where nothing stored holds it.
    """

    turn: str
    lost_at: LostAt | None
    sentence: str
    loss: Loss | None = None
    ranks: Mapping[str, int] = field(default_factory=dict)
    writer: Finding | None = None
    form: str = ""


def turns_in_prompt(asked: QuestionAsked) -> frozenset[str]:
    """Return turns whose words were in the prompt."""
    return frozenset(turn for hit in asked.hits if hit.in_prompt for turn in hit.turns)


def with_context(given: list[Piece], asked: QuestionAsked) -> list[Piece]:
    """Return the texts of the hits in a prompt; of a memory that names none, the context that it gave."""
    if asked.context_tokens and not any(piece.text for piece in given):
        # The last segment of a message is the question.
        given += [Piece("".join(message.segments[:-1])) for message in asked.prompt]
    return given


class Stages:
    """The prompt, the retrieved hits and the stored items when one question was asked of one memory."""

    def __init__(self, asked: QuestionAsked, memory: StoredMemory, turns: Mapping[str, Turn]) -> None:
        self.asked = asked
        self.memory = memory
        self._turns = turns
        self._pieces: dict[tuple[str, str, int], Piece] = {}

    def when_asked_as(self, asked: QuestionAsked) -> Stages:
        """Return the same memory for a question that is asked with other hits."""
        return Stages(asked, self.memory, self._turns)

    @cached_property
    def in_prompt(self) -> Sequence[Piece]:
        """Return what memory gave to the model: its hits, or a context for which it named none."""
        return with_context([self.piece_of(hit) for hit in self.asked.hits if hit.in_prompt], self.asked)

    @cached_property
    def retrieved(self) -> Sequence[Piece]:
        """Return the same with what the budget cut."""
        hits = [*self.in_prompt, *(self.piece_of(hit) for hit in self.asked.hits if not hit.in_prompt)]
        cut = dict.fromkeys(turn for part in self.asked.cut for turn in part.turns)
        said = [(turn, self._turns[turn].text) for turn in cut if turn in self._turns]
        is_dated = self.memory.dates()
        return hits + [Piece(text, frozenset([turn]), frozenset([turn]), is_dated) for turn, text in said]

    def piece_of(self, hit: Hit) -> Piece:
        """Return a hit as a text with the turns it comes from and the dates beside it; each is read once."""
        key = (hit.place, hit.id, hit.rank)
        if key not in self._pieces:
            self._pieces[key] = self._read(hit)
        return self._pieces[key]

    def _read(self, hit: Hit) -> Piece:
        named = frozenset((*hit.turns, *hit.sources))
        turns = named or self.memory.behind(hit.place, hit.id, hit.text)
        before, seen, behind = self.context.partition(hit.text) if hit.text else ("", "", "")
        if not seen:
            return Piece(hit.text, turns, frozenset(hit.turns), self.memory.dates(hit.place))
        # A date may stand before a text in its paragraph, or behind it in its line.
        beside = chain(times_in(before.rpartition("\n\n")[2]), times_in(behind.partition("\n")[0]))
        days = frozenset(time.first for time in beside if time.days == 1)
        return Piece(hit.text, turns, frozenset(hit.turns), days=days)

    @cached_property
    def context(self) -> str:
        """Return the prompt without the question."""
        return "\n\n".join("".join(message.segments[:-1]) for message in self.asked.prompt)

    @property
    def are_not_recorded(self) -> bool:
        """Return whether nothing of this memory was recorded: it is an agent, or its run was imported without a
        trace.
        """
        asked = self.asked
        seen = self.memory.is_recorded or asked.hits or asked.missed or asked.cut
        return asked.model == AGENT_MODEL or not seen

    @property
    def stores_out_of_sight(self) -> bool:
        """Return whether what memory stores cannot be seen: it was not listed, or no write was recorded, though it
        returned something.
        """
        returned = self.asked.hits or self.asked.missed or self.asked.context_tokens
        return not self.memory.is_known or (self.memory.is_empty and bool(returned))


def lost_as_a_whole(answerable: Answerable, stages: Stages) -> LostAt | None:
    """Return the stage that lost the answer, in whatever words it was stored; None where the prompt held it."""
    if answerable.held_by(stages.in_prompt):
        return None
    if answerable.held_by(stages.retrieved):
        return "cut"
    if stages.asked.why_empty == "not_recorded":
        return "not_visible"
    if answerable.held_by(stages.memory.stored):
        return "not_retrieved"
    return "not_written"


def trails_of(answerable: Answerable, turns: Iterable[str], stages: Stages) -> list[Trail]:
    """Return how far each turn came. None of them was lost before the answer was, which may stand in other
    words.
    """
    whole = lost_as_a_whole(answerable, stages)
    trails = [trail_of(turn, answerable, stages) for turn in turns]
    return [
        Trail(
            trail.turn, whole, _IN_OTHER_WORDS[whole].format(trail.turn), ranks=trail.ranks, form=", in other words"
        )
        if STAGES.index(trail.lost_at) < STAGES.index(whole)
        else trail
        for trail in trails
    ]


_IN_OTHER_WORDS: Mapping[LostAt | None, str] = {
    None: "Turn {} was not in the prompt; the answer was.",
    "not_visible": "What memory returned was not recorded; it may have returned what turn {} says.",
    "cut": "The answer was retrieved in other words than those of turn {}, and the budget cut it.",
    "not_retrieved": "The answer was stored in other words than those of turn {}, and not retrieved.",
}


def trail_of(turn: str, answerable: Answerable, stages: Stages) -> Trail:
    """Return how far a turn came: its words, or what it contributes to the answer."""
    ranks = ranks_of(turn, stages.asked)
    if answerable.part_held_by(turn, stages.in_prompt):
        what, form = _found(turn, answerable, stages.in_prompt)
        sentence = f"{what} was in the prompt{form}{_late(turn, stages)}."
        return Trail(turn, None, sentence, ranks=ranks, form=form)
    if answerable.part_held_by(turn, stages.retrieved):
        what, form = _found(turn, answerable, stages.retrieved)
        cut = f"and the budget cut it{_placed(ranks)}"
        sentence = f"{what} was retrieved{form}, {cut}{_late(turn, stages)}."
        return Trail(turn, "cut", sentence, ranks=ranks)
    if stages.asked.why_empty == "not_recorded" and turn in stages.memory.observed:
        return Trail(turn, "not_visible", _IN_OTHER_WORDS["not_visible"].format(turn), ranks=ranks)
    if answerable.part_held_by(turn, stages.memory.stored) or any(turn in hit.turns for hit in stages.asked.missed):
        sentence = _not_retrieved(turn, answerable, stages, ranks) + _out_of_search(turn, answerable, stages)
        return Trail(turn, "not_retrieved", sentence, ranks=ranks)
    if stages.stores_out_of_sight and (turn in stages.memory.observed or not stages.memory.is_recorded):
        unseen = "stores cannot be seen" if stages.memory.is_recorded else "heard and stored was not recorded"
        sentence = f"Turn {turn} was not retrieved; what this memory {unseen}."
        return Trail(turn, "not_visible", sentence, ranks=ranks)
    return _not_written(turn, answerable, stages)


def _found(turn: str, answerable: Answerable, pieces: Sequence[Piece]) -> tuple[str, str]:
    """Return what the texts that hold a turn's part have of it, and in which form: another turn may say the
    same.
    """
    if answerable.is_verbatim(turn, pieces):
        return f"Turn {turn}", ""
    named = [piece for piece in pieces if piece.names_sources]
    is_elsewhere = bool(named) and not any(turn in piece.turns for piece in named)
    return f"What turn {turn} says", ", in the words of another turn" if is_elsewhere else ", distilled"


def _not_written(turn: str, answerable: Answerable, stages: Stages) -> Trail:
    def lost(loss: Loss, sentence: str) -> Trail:
        writer = _writer_of(turn, loss, answerable, stages)
        said = sentence if writer is None else f"{sentence} {writer.sentence}"
        return Trail(turn, "not_written", said, loss, ranks_of(turn, stages.asked), writer)

    said = answerable.turns.get(turn)
    if said is None:
        return lost("never_observed", f"The conversation has no turn {turn}.")
    if said.number > stages.asked.turn:
        return lost("never_observed", f"Turn {turn} had not been said when memory was asked.")
    if turn not in stages.memory.observed:
        return lost("never_observed", f"Memory had not heard turn {turn} when it was asked.")
    if answerable.part_held_by(turn, stages.memory.superseded):
        return lost("superseded", f"What turn {turn} says was stored, and a later value replaced it.")
    if answerable.part_held_by(turn, stages.memory.removed):
        return lost("expired", f"What turn {turn} says was stored and removed again.")
    dropped = [
        decision
        for decision in stages.memory.dropped_from(turn)
        if _says_some(turn, answerable, Piece(decision.content, frozenset([turn])))
    ]
    if dropped:
        best = max(dropped, key=lambda decision: decision.score)
        return lost(
            "gated",
            f"What turn {turn} says was judged and dropped: significance {best.score:.2f} is below"
            f" {best.threshold:.2f}. It was never promoted; what a scratchpad notes does not count as stored.",
        )
    if stages.memory.is_pending(turn):
        return lost(
            "distilled_away", f"Memory writes late, and had not yet written turn {turn}, which it heard last."
        )
    if stages.memory.is_empty:
        return lost("distilled_away", f"Memory heard turn {turn}, and has stored nothing at all.")
    stored = [item.piece for item in stages.memory.items if turn in item.turns]
    if other := answerable.other_times(turn, stored):
        return lost("distilled_away", f"What was stored of turn {turn} says another date ({other[0].words}).")
    if answerable.is_denied_by(turn, stored):
        return lost("distilled_away", f"What was stored of turn {turn} says the opposite.")
    if stored:
        if answerable.says_some_time(turn, stored):
            sentence = f"What was stored of turn {turn} says another time, or says it less precisely."
            return lost("distilled_away", sentence)
        part = "a part of the answer" if answerable.part_begun_by(turn, stored) else "the answer"
        left_out = "when" if answerable.times else part
        return lost("distilled_away", f"What was stored of turn {turn} leaves {left_out} out.")
    return lost(
        "distilled_away", f"Memory heard turn {turn}; nothing stored names that turn or holds what it says of this."
    )


def _says_some(turn: str, answerable: Answerable, piece: Piece) -> bool:
    """Return whether a text made from a turn has some of what the turn contributes to the answer."""
    return answerable.part_begun_by(turn, [piece]) or answerable.part_held_by(turn, [piece])


def _writer_of(turn: str, loss: Loss, answerable: Answerable, stages: Stages) -> Finding | None:
    """Return what the model that writes did to lose a turn."""
    memory = stages.memory
    match loss:
        case "distilled_away":
            return finding_of(turn, answerable, memory.calls)
        case "expired" | "superseded":
            ended = [item for item in memory.items if not item.is_current and item.ended_at is not None]
            at = {item.ended_at for item in ended if answerable.part_held_by(turn, [item.piece])}
            return update_in([each for each in memory.calls if each.at in at])
        case _:
            return None


def _not_retrieved(turn: str, answerable: Answerable, stages: Stages, ranks: Mapping[str, int]) -> str:
    if any(turn in hit.sources for hit in stages.asked.hits):
        left_out = "a part of it" if answerable.part_begun_by(turn, stages.retrieved) else "it"
        return f"What turn {turn} says was stored; what was retrieved of that turn leaves {left_out} out."
    if ranks:
        return f"Turn {turn} was stored and not retrieved{_placed(ranks)}{_late(turn, stages)}.{_alike(stages)}"
    depth = len(stages.asked.hits) + len(stages.asked.missed)
    if not depth:
        is_searched = stages.asked.why_empty != "not_searched"
        return f"Turn {turn} was stored, and memory {'returned nothing' if is_searched else 'was not searched'}."
    late, alike = _late(turn, stages), _alike(stages)
    return f"Turn {turn} was stored{late} and is not among the {depth} best candidates recorded.{alike}"


def _out_of_search(turn: str, answerable: Answerable, stages: Stages) -> str:
    """Return where a turn is stored, if memory has several places and returned nothing of those."""
    held = [item for item in stages.memory.items if item.is_current and item.id]
    searched = {hit.place for hit in (*stages.asked.hits, *stages.asked.missed)}
    if len({item.place for item in held}) < 2:
        return ""
    held.sort(key=lambda item: item.place not in searched)
    holding: dict[str, str] = {}
    for item in held:
        if answerable.part_held_by(turn, [item.piece]):
            if item.place in searched:
                return ""
            holding[item.place] = item.text
    return "".join(
        f" It stands in {place}: “{shortened(text, _LONGEST_STORED)}”." for place, text in holding.items()
    )


_LONGEST_STORED = 120
_NEARLY_ALL_WORDS, _FEWEST_ALIKE = 0.8, 3


def _alike(stages: Stages) -> str:
    """Return how many hits say nearly the same, where these are most of them and so pushed others out."""
    said = [words for hit in stages.asked.hits if (words := frozenset(normalised(hit.text).split()))]
    most = max((sum(_is_alike(one, other) for other in said) for one in said), default=0)
    if most < _FEWEST_ALIKE or most * 2 <= len(said):
        return ""
    return f" {'All' if most == len(said) else f'{most} of the'} {len(said)} hits say nearly the same."


def _is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _NEARLY_ALL_WORDS * len(one | other)


def _late(turn: str, stages: Stages) -> str:
    """Return by how many exchanges a turn was written late."""
    late = stages.memory.exchanges_late(turn)
    return f", written {counted(late, 'exchange')} late" if late else ""


def _placed(ranks: Mapping[str, int]) -> str:
    return f" (rank {', '.join(f'{rank} {channel}' for channel, rank in ranks.items())})" if ranks else ""


def ranks_of(turn: str, asked: QuestionAsked) -> dict[str, int]:
    """Return the best rank of a turn in each channel, and overall (``fused``) where there are several channels."""
    best: dict[str, int] = {}
    for channel, rank in _placements(turn, (*asked.hits, *asked.missed)):
        best[channel] = min(rank, best.get(channel, rank))
    return best


def _placements(turn: str, candidates: Iterable[Hit]) -> Iterator[tuple[str, int]]:
    for hit in candidates:
        if turn in hit.turns or turn in hit.sources:
            if len(hit.channels) > 1:
                yield "fused", hit.rank
            for channel, place in hit.channels.items():
                yield channel, place.rank
