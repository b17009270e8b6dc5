"""The biography of a fact: its path through one memory, from the turn that says it to the answers that need it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from memory_backends.base import ChannelScore, Hit
from memory_backends.stores.trace import AppendChange, MemoryOperation, PatchChange, PromotionDecision, UpsertChange
from memreplay.conversations.models import Frozen, Question, Turn
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.grading import Outcome
from memreplay.text import occurs_in
from memreplay.timeline.fold import parts_of, pointer_of, value_in
from memreplay.timeline.ledger import Ledger, LedgerEntry
from memreplay.timeline.timeline import Answer, Timeline


def decisive_judgement(ledger: Ledger, turn_id: str, question: Question, until: int) -> LedgerEntry | None:
    """The most relevant decision, up to a position, on candidates from a turn; None if there is none.

    Candidates that contain the expected answer come first, then dropped ones before kept ones, then the highest
    score.
    """
    wanted = (question.expected, *question.expected_entities)

    def weight(entry: LedgerEntry) -> tuple[bool, bool, float]:
        decision = entry[1]
        answers = any(occurs_in(phrase, decision.content) for phrase in wanted)
        return answers, decision.decision == "DROP", decision.score

    return max((entry for entry in ledger.about_turn(turn_id) if entry[0] <= until), key=weight, default=None)


Reach = Literal["in_prompt", "cut", "missed", "not_found"]
"""How far a turn got in one read path: into the prompt, retrieved but cut for lack of room, ranked below the cut,
or not among the recorded candidates."""

Form = Literal["verbatim", "distilled"]


class RetrievalOutcome(Frozen):
    """What one read path did with the turn.

    ``rank`` is the 1-based rank over all channels, None if it was not found; ``channels`` has its rank and score in
    each. ``form`` says whether its verbatim text or a distilled one was found.
    """

    turn: int
    reach: Reach
    rank: int | None = None
    score: float | None = None
    channels: Mapping[str, ChannelScore] = {}
    form: Form | None = None


def retrieval_outcome(
    position: int, turn_id: str, hits: Sequence[Hit], missed: Sequence[Hit], cut: Iterable[str]
) -> RetrievalOutcome:
    """What a read path did with a turn: the best result of its verbatim text, else of a text distilled from it."""
    ranked = [
        *(("in_prompt" if hit.in_prompt else "cut", hit) for hit in hits if _names(hit, turn_id)),
        *(("missed", hit) for hit in missed if _names(hit, turn_id)),
    ]
    order = {"in_prompt": 0, "cut": 1, "missed": 2}
    best = min(ranked, key=lambda one: (order[one[0]], turn_id not in one[1].turns, one[1].rank), default=None)
    was_cut = turn_id in set(cut)
    if best is None:
        return RetrievalOutcome(turn=position, reach="cut" if was_cut else "not_found")
    reach, hit = best
    return RetrievalOutcome(
        turn=position,
        reach="cut" if was_cut and reach == "missed" else reach,
        rank=hit.rank,
        score=hit.score,
        channels=hit.channels,
        form="verbatim" if turn_id in hit.turns else "distilled",
    )


def _names(hit: Hit, turn_id: str) -> bool:
    return turn_id in hit.turns or turn_id in hit.sources


class StoredItem(Frozen):
    """Something stored because of a turn. ``item`` is a point id, a Redis key, or a JSON pointer into a state.

    ``superseded_at`` is the position at which another took its place, and ``successor`` that other's id.
    """

    turn: int
    place: str
    item: str
    form: Form
    superseded_at: int | None = None
    successor: str | None = None


class JudgedCandidate(Frozen):
    """The decision on a candidate that was distilled from the turn."""

    turn: int
    decision: PromotionDecision


class StagedCandidate(Frozen):
    """A candidate for promotion, by its id in the state at ``key``."""

    turn: int
    key: str
    candidate_id: str


class AskedAbout(Frozen):
    """A question whose evidence includes the turn: what its recall did with the turn, and the answer."""

    question_id: str
    model: str
    by_hand: bool
    retrieval: RetrievalOutcome
    reply: str | None
    outcome: Outcome | None


class RetrievalHistory(Frozen):
    """The number of read paths of ordinary turns, and those that found the turn.

    ``ranks`` are (position, rank, whether below the cut), by position.
    """

    read_paths: int
    ranks: tuple[tuple[int, int, bool], ...]


class Biography(Frozen):
    """Everything that is recorded about one turn in one memory."""

    backend: str
    turn_id: str
    said_at: int
    observed_at: int
    staged: tuple[StagedCandidate, ...]
    judged: tuple[JudgedCandidate, ...]
    stored: tuple[StoredItem, ...]
    retrievals: RetrievalHistory
    asked: tuple[AskedAbout, ...]

    @property
    def written_at(self) -> int | None:
        """The first position at which it was stored verbatim, else in any form; None for never."""
        verbatim = [stored.turn for stored in self.stored if stored.form == "verbatim"]
        return min(verbatim or [stored.turn for stored in self.stored], default=None)


def biography(timeline: Timeline, retrievals: RetrievalIndex, backend: str, turn: Turn) -> Biography:
    """The biography of a turn in one memory, as far as the conversation was played."""
    observed = timeline.observed_at(turn.id) or turn.number
    written = timeline.archive.written_at(backend, observed)
    judged = tuple(
        JudgedCandidate(turn=at, decision=made) for at, made in timeline.ledger(backend).about_turn(turn.id)
    )
    found = retrievals.of(backend, turn.id)
    return Biography(
        backend=backend,
        turn_id=turn.id,
        said_at=turn.number,
        observed_at=observed,
        staged=tuple(_staged(written, observed, judged)),
        judged=judged,
        stored=(
            *_words(written, observed, turn),
            *_facts(timeline, backend, judged),
            *_slots(timeline, backend, written, observed, turn),
        ),
        retrievals=RetrievalHistory(
            read_paths=len(timeline.perceived_index(backend)),
            ranks=tuple((seen.turn, seen.rank, seen.missed) for seen in found),
        ),
        asked=tuple(_asked(timeline, backend, turn)),
    )


def biographies(
    timeline: Timeline, retrievals: RetrievalIndex, backend: str, question: Question
) -> tuple[Biography, ...]:
    """The biographies of all evidence turns of a question, in their order in the conversation."""
    known = timeline.conversation.turns_by_id
    turns = sorted((known[turn] for turn in set(question.evidence) if turn in known), key=lambda turn: turn.number)
    return tuple(biography(timeline, retrievals, backend, turn) for turn in turns)


def answerable_from(lives: Sequence[Biography]) -> int | None:
    """The first position at which all evidence of a question is stored; None for never, or without evidence.

    ``lives`` are the biographies of its evidence.
    """
    written = [life.written_at for life in lives]
    if not written or any(at is None for at in written):
        return None
    return max(at for at in written if at is not None)


def _staged(
    written: Iterable[MemoryOperation], at: int, judged: Sequence[JudgedCandidate]
) -> Iterable[StagedCandidate]:
    ids = {one.decision.candidate_id for one in judged}
    for operation in written:
        if isinstance(operation.change, PatchChange):
            for step in operation.change.steps:
                candidate = step.path.removeprefix("/promotion_candidates/")
                if step.op == "add" and candidate != step.path and candidate in ids:
                    yield StagedCandidate(turn=at, key=operation.key, candidate_id=candidate)


def _words(written: Iterable[MemoryOperation], at: int, turn: Turn) -> Iterable[StoredItem]:
    """Where the write path stored the turn verbatim."""
    for operation in written:
        if turn.id not in operation.turns:
            continue
        match operation.change:
            case AppendChange(text=text) if turn.text in text:
                yield StoredItem(turn=at, place=operation.key, item=operation.key, form="verbatim")
            case UpsertChange(points=points):
                for point in points:
                    content = point.payload.get("content")
                    if "sources" not in point.payload and isinstance(content, str) and turn.text in content:
                        yield StoredItem(turn=at, place=operation.key, item=point.id, form="verbatim")
            case _:
                pass


def _facts(timeline: Timeline, backend: str, judged: Sequence[JudgedCandidate]) -> Iterable[StoredItem]:
    """The facts distilled from the turn and kept, with what superseded them."""
    for one in judged:
        point_id = one.decision.knowledge_id
        if point_id is None:
            continue
        ended = next(
            (
                (at, later.knowledge_id)
                for at, later in timeline.ledger(backend).about_point(point_id)
                if later.superseded_id == point_id
            ),
            None,
        )
        places = (name for name in timeline.collections(backend) if _holds(timeline, backend, name, point_id))
        yield StoredItem(
            turn=one.turn,
            place=next(places, ""),
            item=point_id,
            form="distilled",
            superseded_at=ended[0] if ended else None,
            successor=ended[1] if ended else None,
        )


def _holds(timeline: Timeline, backend: str, name: str, point_id: str) -> bool:
    return bool(timeline.collection(backend, name).write_turns_of(point_id))


def _slots(
    timeline: Timeline, backend: str, written: Iterable[MemoryOperation], observed: int, turn: Turn
) -> Iterable[StoredItem]:
    """Slots of a state whose value names the turn as the one that said it."""
    memory = timeline.description(backend)
    touched = {
        (operation.key, path[:2]): None
        for operation in written
        if isinstance(operation.change, PatchChange)
        for path in (parts_of(step.path) for step in operation.change.steps)
        if len(path) > 1 and path[0] == memory.store_of(operation.key).slots
    }
    for key, path in touched:
        history = timeline.state(backend, key)
        turns = dict.fromkeys(history.turns[number] for number in history.writes_within(path))
        values = ((at, value_in(history.value_at(at), path)) for at in turns if at >= observed)
        if turn.id not in _turns_named(next(values, (0, None))[1]):
            continue
        gone = next((at for at, value in values if turn.id not in _turns_named(value)), None)
        yield StoredItem(turn=observed, place=key, item=pointer_of(path), form="distilled", superseded_at=gone)


def _turns_named(value: Any) -> set[str]:
    """The turns that a slot's value names as its source."""
    match value:
        case {"turn": str(turn)}:
            return {turn}
        case {"values": list(values)}:
            return {turn for one in values for turn in _turns_named(one)}
        case _:
            return set()


def _asked(timeline: Timeline, backend: str, turn: Turn) -> Iterable[AskedAbout]:
    for answer in timeline.answers():
        question = timeline.question(answer.asked.question_id)
        if answer.asked.backend == backend and question is not None and turn.id in question.evidence:
            yield _about(answer, turn.id)


def _about(answer: Answer, turn_id: str) -> AskedAbout:
    asked = answer.asked
    cut = (turn for part in asked.cut for turn in part.turns)
    return AskedAbout(
        question_id=asked.question_id,
        model=asked.model,
        by_hand=asked.by_hand,
        retrieval=retrieval_outcome(asked.turn, turn_id, asked.hits, asked.missed, cut),
        reply=answer.received.reply.text if answer.received else None,
        outcome=answer.scored.score.outcome if answer.scored else None,
    )
