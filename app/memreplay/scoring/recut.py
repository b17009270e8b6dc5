"""Cut what a memory ranked for a question at other limits of hits and tokens. Asks no model and no memory.

A memory records the hits that it returned and the next candidates below them. Both limits hold together, and both
are those of the run until the user moves one. What comes out is the question as it would have been asked, so that
the verdicts' own predicate says which stage would lose the answer.

How a prompt is filled is read off the recording. Whole hits, best first, or the end of a log can be cut exactly:
this is done only where the same rules, at the limits of the run, give the prompt that was recorded. A memory that
composes its prompt anew for every budget can only be estimated.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from memory_backends.base import Cut, Excerpt, Hit, Message
from memory_backends.retrieval.rendering import BETWEEN_HITS, assemble, date_heading, under_date
from memreplay.conversations.models import Conversation, message_of
from memreplay.engine.events import QuestionAsked
from memreplay.llm import AGENT_MODEL, AS_RECORDED
from memreplay.llm.tokens import UNLIMITED, context_budget
from memreplay.scoring.evidence_trail import LostAt
from memreplay.scoring.holding import heading_of

TokenCounter = Callable[[str], int]

Filling = Literal["whole_hits", "end_of_log", "anew", "published", "unknown"]
"""How a memory fills a prompt. ``anew``: it composes its prompt for each budget, so that a recut is an estimate.
``published``: another harness wrote its context down, of which a recut takes the beginning, also an estimate.
``unknown``: nothing was recorded that could be cut."""

_TOP_K = 10


class Limits(NamedTuple):
    """The most hits, and the most tokens of memory in a prompt."""

    hits: int
    tokens: int

    @property
    def has_no_budget(self) -> bool:
        """Return whether nothing limits the tokens."""
        return self.tokens >= UNLIMITED


class Placement(NamedTuple):
    """The place of an evidence turn in a ranking. ``rank`` is that of the best candidate that holds it, None if no
    recorded one does.

    ``below`` is how many ranks it is below the last hit of the run, 0 for a hit; ``gap`` is its distance in score
    to that hit, None where there is none to compare with.
    """

    turn: str
    rank: int | None
    below: int = 0
    gap: float | None = None


@dataclass(frozen=True)
class Recut:
    """A question as it would have been asked at other limits. ``needed`` are the tokens of all its hits."""

    limits: Limits
    asked: QuestionAsked
    needed: int

    @property
    def inside(self) -> frozenset[str]:
        """Return ids of the hits in the prompt."""
        return frozenset(hit.id for hit in self.asked.hits if hit.in_prompt)


@dataclass(frozen=True)
class Ranking:
    """The ranking of one memory for a question: its hits, then the candidates below them, with their tokens."""

    conversation: Conversation
    asked: QuestionAsked
    settings: Mapping[str, Any]
    count: TokenCounter
    _log: _Log | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_log", _log_of(self.conversation, self.asked, self.count))

    @cached_property
    def filling(self) -> Filling:
        """Return how the prompt was filled, as far as the recording shows it."""
        asked = self.asked
        if self.is_published:
            return "published" if len(asked.hits) > 1 else "unknown"
        if self._log is not None:
            return "end_of_log" if self._is_what_was_recorded() else "anew"
        if not (asked.hits or asked.missed):
            returned = (
                asked.model == AGENT_MODEL
                or asked.context_tokens
                or asked.cut
                or asked.why_empty in (None, "not_recorded")
            )
            return "unknown" if returned else "whole_hits"
        if not all(hit.text for hit in asked.hits):
            return "unknown"
        ranked = all(hit.score is not None and not hit.excerpts for hit in asked.hits)
        one_place = len({hit.place for hit in self.candidates}) == 1
        is_full = len(asked.hits) == min(self.limits.hits, len(self.candidates))
        return "whole_hits" if ranked and one_place and is_full and self._is_what_was_recorded() else "anew"

    def _is_what_was_recorded(self) -> bool:
        """Return whether the rules of a recut give the recorded prompt at the limits of the run."""
        cut = self._end_of_log(self.limits) if self._log is not None else self._whole_hits(self.limits)
        recorded = {(hit.id, hit.in_prompt) for hit in self.asked.hits}
        turns = [hit.turns for hit in self.asked.hits]
        return (
            {(hit.id, hit.in_prompt) for hit in cut.asked.hits} == recorded
            and [hit.turns for hit in cut.asked.hits] == turns
            and cut.asked.context_tokens == self.asked.context_tokens
        )

    @property
    def is_estimated(self) -> bool:
        """Return whether a recut is an estimate of what the memory would do."""
        return self.filling in ("anew", "published")

    def reconciled(self, limits: Limits, found: float, recorded: float) -> float:
        """Return a figure of a prompt at other limits that does not contradict the ``recorded`` prompt.

        An estimate holds no more at less than the limits of the run, and no less at more.
        """
        run = self.limits
        if self.is_estimated and limits.hits <= run.hits and limits.tokens <= run.tokens:
            return min(found, recorded)
        if self.is_estimated and limits.hits >= run.hits and limits.tokens >= run.tokens:
            return max(found, recorded)
        return found

    @property
    def is_published(self) -> bool:
        """Return whether the context was imported, or is that of a recorded agent: its rank is its order, and its
        limits are not known.
        """
        return "imported_from" in self.settings or self.asked.model == AS_RECORDED

    @property
    def is_ranked(self) -> bool:
        """Return whether the number of hits limits it. A log has only one."""
        return self._log is None or self.is_published

    @cached_property
    def limits(self) -> Limits:
        """Return the limits of the run."""
        if self.is_published:
            return Limits(len(self.asked.hits), UNLIMITED)
        tokens = context_budget(self.asked.model, self.settings.get("context_tokens"), self.is_ranked)
        return Limits(self.settings.get("top_k") or _TOP_K, tokens)

    @cached_property
    def candidates(self) -> tuple[Hit, ...]:
        """Return the hits of the run by rank, then the candidates below them, with the words of their turns."""
        hits = sorted(self.asked.hits, key=lambda hit: hit.rank)
        missed = sorted(self.asked.missed, key=lambda hit: hit.rank)
        return (
            *(hit if hit.tokens else hit.model_copy(update={"tokens": self.count(hit.text)}) for hit in hits),
            *map(self._with_words, missed),
        )

    def _with_words(self, hit: Hit) -> Hit:
        """Return a candidate below the cut, of which only the turns are recorded, with their words."""
        known = self.conversation.turns_by_id
        said = [known[turn] for turn in hit.turns if turn in known and known[turn].role != "other"]
        messages = [message_of(self.conversation, turn) for turn in said]
        text = hit.text or under_date(_lines(messages), messages[-1].said_at if messages else None)
        return hit.model_copy(update={"text": text, "tokens": self.count(text)})

    def placed(self, turn: str) -> Placement:
        """Return the place of an evidence turn: verbatim before distilled."""
        holding = [
            (turn not in hit.turns, rank)
            for rank, hit in enumerate(self.candidates, start=1)
            if turn in hit.turns or turn in hit.sources
        ]
        if not holding:
            return Placement(turn, None)
        rank = min(holding)[1]
        return Placement(turn, rank, max(0, rank - len(self.asked.hits)), self._gap(rank))

    def _gap(self, rank: int) -> float | None:
        candidate = self.candidates[rank - 1]
        if rank <= len(self.asked.hits) or candidate.score is None:
            return None
        scores = [hit.score for hit in self.asked.hits if hit.place == candidate.place and hit.score is not None]
        return scores[-1] - candidate.score if scores else None

    # ---- cutting -------------------------------------------------------------------------------------------

    def cut(self, limits: Limits) -> Recut | None:
        """Return the question as it would have been asked; None where nothing can be cut again.

        At the limits of the run it is the question as it was asked.
        """
        if self.filling == "unknown":
            return None
        if limits == self.limits:
            hits = self.candidates[: len(self.asked.hits)]
            needed = self._log.total if self._log is not None else sum(hit.tokens for hit in hits)
            return Recut(limits, self.asked, max(needed, self.asked.context_tokens))
        match self.filling:
            case "end_of_log":
                return self._end_of_log(limits)
            case "whole_hits":
                return self._whole_hits(limits)
            case "published":
                return self._beginning(limits)
            case _:
                return self._estimate(limits)

    def _whole_hits(self, limits: Limits) -> Recut:
        """Take hits as a whole, best first; what does not fit is left out for smaller ones after it."""
        taken = self.candidates[: max(limits.hits, 0)]
        known = self.conversation.turns_by_id
        numbers = {
            hit.id: max((known[turn].number for turn in (hit.turns or hit.sources) if turn in known), default=0)
            for hit in taken
        }
        recalled = assemble(taken, numbers, limits.tokens, self.count)
        needed = self.count(BETWEEN_HITS.join(hit.text for hit in taken)) if taken else 0
        return self._recut(limits, recalled.hits, recalled.tokens, recalled.cut, max(needed, recalled.tokens))

    def _end_of_log(self, limits: Limits) -> Recut:
        """Take as many of the last turns as fit."""
        assert self._log is not None
        hits, tokens, cut = self._log.end(limits.tokens)
        return self._recut(limits, hits, tokens, cut, self._log.total)

    def _beginning(self, limits: Limits) -> Recut:
        """Take the first memories of a context, up to the one that does not fit."""
        taken = self.candidates[: max(limits.hits, 0)]
        sums = list(accumulate(hit.tokens for hit in taken))
        fit = bisect_right(sums, limits.tokens)
        shown = [hit.model_copy(update={"in_prompt": place < fit}) for place, hit in enumerate(taken)]
        return self._recut(limits, shown, sums[fit - 1] if fit else 0, self.asked.cut, sums[-1] if sums else 0)

    def _estimate(self, limits: Limits) -> Recut:
        """Take what has no excerpts first, then turn by turn what memory took first, then what it cut.

        Known things stand before passages in a prompt that is composed of both.
        """
        hits = self.candidates[: max(limits.hits, 0)]
        left, used = limits.tokens, 0
        kept: dict[str, list[Excerpt]] = {}
        whole: set[str] = set()
        for portion in sorted(_portions(hits), key=lambda each: each.order):
            tokens = self.count(portion.text + "\n") if portion.excerpt else portion.hit.tokens
            if tokens > left:
                continue
            left, used = left - tokens, used + tokens
            if portion.excerpt is None:
                whole.add(portion.hit.id)
            else:
                kept.setdefault(portion.hit.id, []).append(portion.excerpt)
        cut = [*self._cut_turns()] if limits.hits >= len(self.asked.hits) else []
        added: list[Hit] = []
        for number, hit in enumerate(cut):
            if hit.tokens <= left:
                left, used = left - hit.tokens, used + hit.tokens
                added.append(hit.model_copy(update={"rank": len(hits) + number + 1}))
        shown = [_shortened(hit, kept.get(hit.id, ()), is_whole=hit.id in whole) for hit in hits]
        needed = sum(hit.tokens for hit in (*hits, *cut))
        return self._recut(limits, [*shown, *added], used, self.asked.cut, max(needed, used))

    def _cut_turns(self) -> Iterator[Hit]:
        """Yield the turns that the budget of the run left out of its hits."""
        known = self.conversation.turns_by_id
        for cut in self.asked.cut:
            for turn in cut.turns:
                if turn in known and known[turn].role != "other":
                    text = message_of(self.conversation, known[turn]).line
                    yield Hit(
                        id=f"cut#{turn}",
                        store="",
                        place=cut.place,
                        rank=1,
                        score=None,
                        text=text,
                        turns=(turn,),
                        tokens=self.count(text + "\n"),
                    )

    def _recut(self, limits: Limits, hits: Sequence[Hit], tokens: int, cut: Sequence[Cut], needed: int) -> Recut:
        below = tuple(self.candidates[max(limits.hits, 0) :]) if self._log is None else ()
        missed = tuple(hit.model_copy(update={"text": "", "in_prompt": False}) for hit in below)
        changed = {"hits": tuple(hits), "missed": missed, "cut": tuple(cut), "context_tokens": tokens}
        return Recut(limits, self.asked.model_copy(update=changed), needed)


class _Portion(NamedTuple):
    """A part of a prompt that is taken or left out as a whole: a hit, or one turn of it."""

    hit: Hit
    excerpt: Excerpt | None

    @property
    def text(self) -> str:
        return self.hit.text if self.excerpt is None else self.hit.text[self.excerpt.start : self.excerpt.end]

    @property
    def order(self) -> tuple[bool, bool, int]:
        """Return the place in the order of taking: distilled things, turns, then other hits."""
        if self.excerpt is not None:
            return True, False, self.excerpt.rank
        return bool(self.hit.turns), True, self.hit.rank


def _portions(hits: Sequence[Hit]) -> Iterator[_Portion]:
    for hit in hits:
        yield from ((_Portion(hit, excerpt) for excerpt in hit.excerpts) if hit.excerpts else [_Portion(hit, None)])


def _shortened(hit: Hit, kept: Sequence[Excerpt], *, is_whole: bool) -> Hit:
    """Return a hit with the turns of it that fit, under its date. One that was cut as a whole is not in the
    prompt.
    """
    if is_whole or not kept:
        return hit.model_copy(update={"in_prompt": is_whole})
    turns = {excerpt.turn for excerpt in kept}
    said = (hit.text[each.start : each.end] for each in sorted(kept, key=lambda excerpt: excerpt.start))
    text = "\n".join(filter(None, (heading_of(hit.text), *said)))
    changed = {
        "text": text,
        "turns": tuple(turn for turn in hit.turns if turn in turns),
        "sources": tuple(turn for turn in hit.sources if turn in turns),
        "excerpts": (),
        "in_prompt": True,
    }
    return hit.model_copy(update=changed)


def _lines(messages: Sequence[Message]) -> str:
    return "\n".join(message.line for message in messages)


@dataclass(frozen=True)
class _Log:
    """A log of the whole conversation, of whose end a prompt has as many turns as fit.

    ``starts`` are the tokens of a prompt that begins at each turn, under the date of its session.
    """

    place: str
    store: str
    messages: Sequence[Message]
    starts: Sequence[int]
    total: int

    def end(self, tokens: int) -> tuple[tuple[Hit, ...], int, tuple[Cut, ...]]:
        """Return the end of the log as a hit, its tokens, and what was cut."""
        first = next((n for n, needed in enumerate(self.starts) if needed <= tokens), len(self.messages))
        turns = [message.turn_id for message in self.messages]
        used = self.starts[first] if first < len(turns) else 0
        cut = (Cut(place=self.place, turns=tuple(turns[:first]), tokens=self.total - used),) if first else ()
        if first == len(turns):
            return (), 0, cut
        hit = Hit(
            id=self.place,
            store=self.store,
            place=self.place,
            rank=1,
            score=None,
            text=self._text(first),
            turns=tuple(turns[first:]),
            tokens=used,
        )
        return (hit,), used, cut

    def _text(self, first: int) -> str:
        parts: list[str] = []
        session: int | None = None
        for message in self.messages[first:]:
            if message.said_at is not None and message.session != session:
                parts.append(f"{date_heading(message.said_at)}\n")
            session = message.session
            parts.append(f"{message.line}\n")
        return "".join(parts)


def _log_of(conversation: Conversation, asked: QuestionAsked, count: TokenCounter) -> _Log | None:
    """Return the log that a recall is the end of; None if it is something else."""
    if asked.missed or len(asked.hits) > 1 or any(hit.score is not None or hit.sources for hit in asked.hits):
        return None
    places = {(hit.place, hit.store) for hit in asked.hits} or {(cut.place, "") for cut in asked.cut}
    if len(places) != 1 or any(cut.place != place for cut in asked.cut for place, _ in places):
        return None
    known = conversation.turns_by_id
    named = [turn for cut in asked.cut for turn in cut.turns] + [turn for hit in asked.hits for turn in hit.turns]
    said = [turn.id for turn in conversation.turns if turn.role != "other"][: len(named)]
    if not named or named != said:
        return None
    messages = [message_of(conversation, known[turn]) for turn in named]
    headings = [f"{date_heading(each.said_at)}\n" if each.said_at is not None else "" for each in messages]
    opens = [n == 0 or messages[n - 1].session != each.session for n, each in enumerate(messages)]
    dates = [count(heading) if heading else 0 for heading in headings]
    lines = [count(f"{message.line}\n") for message in messages]
    costs = [line + (date if first else 0) for line, date, first in zip(lines, dates, opens, strict=True)]
    total = sum(costs)
    before = [0, *accumulate(costs)]
    starts = [total - before[n] + (0 if opens[n] else dates[n]) for n in range(len(messages))]
    ((place, store),) = places
    return _Log(place, store, messages, starts, total)


class Way(NamedTuple):
    """The nearest limits at which something more would happen to an answer: ``lost_at`` says how far it came.

    ``needed`` are the tokens of all hits there. ``enough`` is a budget at which the answer would be in the prompt
    with so many hits; None where none is.
    """

    limits: Limits
    lost_at: LostAt | None
    needed: int
    enough: int | None = None


STEP = 256
"""Tokens by which a budget is raised and lowered."""


def way_in(ranking: Ranking, limits: Limits, lost_at: Callable[[QuestionAsked], LostAt | None]) -> Way | None:
    """Return what more hits, then more tokens, would do for an answer that is lost at these limits.

    None where it is in the prompt, where nothing more was recorded, and where nothing would help.
    """
    now = ranking.cut(limits)
    if now is None or (lost := lost_at(now.asked)) is None:
        return None
    if lost == "cut":
        enough = _enough(ranking, limits.hits, limits.tokens, lost_at)
        return None if enough is None else Way(Limits(limits.hits, enough), None, now.needed, enough)
    cut: Recut | None = None
    for hits in range(limits.hits + 1, len(ranking.candidates) + 1) if ranking.is_ranked else ():
        more = ranking.cut(Limits(hits, limits.tokens))
        assert more is not None
        reached = lost_at(more.asked)
        if reached is None:
            return Way(more.limits, None, more.needed)
        if reached == "cut" and cut is None:
            cut = more
    if cut is None:
        return None
    return Way(cut.limits, "cut", cut.needed, _enough(ranking, cut.limits.hits, limits.tokens, lost_at))


def _enough(
    ranking: Ranking, hits: int, tokens: int, lost_at: Callable[[QuestionAsked], LostAt | None]
) -> int | None:
    """Return the least budget, in steps, at which the answer is in a prompt with so many hits."""
    widest = ranking.cut(Limits(hits, UNLIMITED - 1))
    assert widest is not None
    steps = range(tokens // STEP + 1, max(widest.needed, tokens) // STEP + 2)

    def holds(step: int) -> bool:
        cut = ranking.cut(Limits(hits, step * STEP))
        return cut is not None and lost_at(cut.asked) is None

    found = steps.start + bisect_left(steps, True, key=holds)
    return found * STEP if found in steps else None
