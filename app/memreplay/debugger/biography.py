"""The biography of a fact: its path through one memory, from the turn that says it to the answers that need it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from memory_backends.base import ChannelScore, Hit
from memory_backends.stores.trace import MemoryOperation, PatchChange, PromotionDecision
from memreplay.conversations.models import Conversation, Frozen, Question, Turn
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.grading import Outcome
from memreplay.grading.match import contains
from memreplay.scoring.evidence_trail import Stages
from memreplay.scoring.holding import Answerable
from memreplay.scoring.stored import Item, StoredMemory
from memreplay.scoring.writer import reading_of
from memreplay.timeline.timeline import Answer, Ledger, LedgerEntry, Timeline


def decisive_judgement(ledger: Ledger, turn_id: str, question: Question, until: int) -> LedgerEntry | None:
    """Return the most relevant decision, up to a position, on candidates from a turn; None if there is none.

    Candidates that contain the expected answer come first, then dropped ones before kept ones, then the highest
    score.
    """
    wanted = (question.expected, *question.expected_entities)

    def weight(entry: LedgerEntry) -> tuple[bool, bool, float]:
        decision = entry[1]
        answers = any(contains(phrase, decision.content) for phrase in wanted)
        return answers, decision.decision == "DROP", decision.score

    return max((entry for entry in ledger.about_turn(turn_id) if entry[0] <= until), key=weight, default=None)


Reach = Literal["in_prompt", "cut", "missed", "not_found", "not_recorded"]
"""The stage that a turn reached in one read path: into the prompt, retrieved but cut for lack of room, ranked below
the cut, or not among the recorded candidates."""

Form = Literal["verbatim", "distilled"]


class RetrievalOutcome(Frozen):
    """The outcome of one read path for the turn.

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
    """Return what a read path did with a turn: the best result of its verbatim text, else of a text distilled from
    it.
    """
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

    ``superseded_at`` is the position at which another took its place, and ``successor`` that other's id;
    ``removed_at`` that at which it was removed.
    """

    turn: int
    place: str
    item: str
    form: Form
    superseded_at: int | None = None
    successor: str | None = None
    removed_at: int | None = None


class JudgedCandidate(Frozen):
    """The decision on a candidate that was distilled from the turn."""

    turn: int
    decision: PromotionDecision


class StagedCandidate(Frozen):
    """A candidate for promotion, by its id in the state at ``key``."""

    turn: int
    key: str
    candidate_id: str


class WriterAsked(Frozen):
    """A call of the model that writes, for the exchange of the turn: how its reply was read, and what it names."""

    turn: int
    model: str
    reading: str
    facts: tuple[str, ...]


class AskedAbout(Frozen):
    """A question whose evidence includes the turn: what its recall did with the turn, and the answer."""

    question_id: str
    model: str
    by_hand: bool
    retrieval: RetrievalOutcome
    reply: str | None
    outcome: Outcome | None


class RetrievalHistory(Frozen):
    """The number of read paths of ordinary turns, 0 if what they found was not recorded, and those that found the
    turn.

    ``ranks`` are (position, rank, whether below the cut), by position. A memory that reads a whole log ranks
    nothing: then ``in_prompt`` counts the read paths whose prompt had the turn, and is None otherwise.
    """

    read_paths: int
    ranks: tuple[tuple[int, int, bool], ...]
    in_prompt: int | None = None


class Biography(Frozen):
    """Everything that is recorded about one turn in one memory.

    ``is_recorded`` is False for a memory of which nothing was recorded but questions and answers, and
    ``is_known`` for one that does not show all that it stores.
    """

    backend: str
    turn_id: str
    is_recorded: bool
    is_known: bool
    said_at: int
    observed_at: int
    staged: tuple[StagedCandidate, ...]
    judged: tuple[JudgedCandidate, ...]
    writer: tuple[WriterAsked, ...]
    stored: tuple[StoredItem, ...]
    retrievals: RetrievalHistory
    asked: tuple[AskedAbout, ...]

    @property
    def written_at(self) -> int | None:
        """Return the first position at which it was stored verbatim, else in any form; None for never."""
        verbatim = [stored.turn for stored in self.stored if stored.form == "verbatim"]
        return min(verbatim or [stored.turn for stored in self.stored], default=None)


def memory_at_last(timeline: Timeline, backend: str) -> StoredMemory:
    """Return what a memory held after all that was played. Takes seconds in a long conversation."""
    memory = StoredMemory(timeline.kept_until(backend, timeline.reached))
    memory.name_sources(backend, timeline.answers())
    return memory


def biography(
    timeline: Timeline, retrievals: RetrievalIndex, backend: str, turn: Turn, memory: StoredMemory | None = None
) -> Biography:
    """Return the biography of a turn in one memory, as far as the conversation was played.

    ``memory`` is what :func:`memory_at_last` returns, for a caller that keeps it.
    """
    held = memory or memory_at_last(timeline, backend)
    observed = timeline.observed_at(turn.id) or turn.number
    written = timeline.archive.written_at(backend, observed)
    judged = tuple(
        JudgedCandidate(turn=at, decision=made) for at, made in timeline.ledger(backend).about_turn(turn.id)
    )
    found = retrievals.of(backend, turn.id)
    return Biography(
        backend=backend,
        turn_id=turn.id,
        is_recorded=held.is_recorded,
        is_known=held.is_known,
        said_at=turn.number,
        observed_at=observed,
        staged=tuple(_staged(written, observed, judged)),
        judged=judged,
        writer=tuple(
            WriterAsked(turn=made.at, model=made.call.model, reading=reading_of(made.call)[0], facts=made.facts)
            for made in held.calls
            if turn.id in made.turns
        ),
        stored=tuple(_stored(timeline.conversation, held, turn)),
        retrievals=RetrievalHistory(
            read_paths=len(timeline.perceived_index(backend)) if found or _is_seen(timeline, backend) else 0,
            ranks=tuple((seen.turn, seen.rank, seen.missed) for seen in found),
            in_prompt=None if found else _read_in_a_log(timeline, backend, turn, observed),
        ),
        asked=tuple(_asked(timeline, backend, turn, held)),
    )


def _read_in_a_log(timeline: Timeline, backend: str, turn: Turn, observed: int) -> int | None:
    """Return the number of read paths whose prompt had a turn, of a memory that reads a log; None of others.

    Its hit names no turns, since the log is in the trace, and its cut only what the read path before still had.
    """
    index, count = timeline.perceived_index(backend), 0
    for at, ref in zip(index.turns, index.refs, strict=True):
        seen = timeline.perceived(ref)
        if any(hit.turns or hit.sources or hit.score is not None for hit in seen.hits) or seen.missed:
            return None
        if at > observed and any(turn.id in cut.turns for cut in seen.cut):
            break
        count += at > observed and bool(seen.hits)
    return count if len(index) and timeline.log_keys(backend) else None


def biographies(
    timeline: Timeline,
    retrievals: RetrievalIndex,
    backend: str,
    question: Question,
    memory: StoredMemory | None = None,
) -> tuple[Biography, ...]:
    """Return the biographies of all evidence turns of a question, in their order in the conversation."""
    held = memory or memory_at_last(timeline, backend)
    known = timeline.conversation.turns_by_id
    turns = sorted((known[turn] for turn in set(question.evidence) if turn in known), key=lambda turn: turn.number)
    return tuple(biography(timeline, retrievals, backend, turn, held) for turn in turns)


def answerable_from(conversation: Conversation, memory: StoredMemory, question: Question) -> int | None:
    """Return the first position at which what is stored holds the answer of a question; None for never."""
    answerable = Answerable(question, conversation.turns_by_id, conversation.days_by_session)
    evidence = frozenset(question.evidence)
    parts = [
        item
        for item in memory.items
        if not evidence.isdisjoint(item.turns)
        or answerable.held_by([item.piece])
        or any(answerable.part_held_by(turn, [item.piece]) for turn in evidence)
    ]
    for position in sorted({item.written_at for item in parts}):
        held = [
            item.piece
            for item in parts
            if item.written_at <= position and (item.ended_at is None or item.ended_at > position)
        ]
        if answerable.held_by(held):
            return position
    return None


def _stored(conversation: Conversation, memory: StoredMemory, turn: Turn) -> list[StoredItem]:
    """Return what was stored of a turn: the items that come from it, and those that hold its part of an answer."""
    asked = [
        Answerable(question, conversation.turns_by_id, conversation.days_by_session)
        for question in conversation.questions
        if turn.id in question.evidence and question.evidence_role == "supports"
    ]
    found: dict[StoredItem, None] = {}
    for item in memory.items:
        if turn.id in item.since or any(one.part_held_by(turn.id, [item.piece]) for one in asked):
            found[_stored_item(item, turn)] = None
    return sorted(found, key=lambda stored: (stored.form != "verbatim", stored.turn))


def _stored_item(item: Item, turn: Turn) -> StoredItem:
    return StoredItem(
        turn=item.since.get(turn.id, item.written_at),
        place=item.place,
        item=item.id,
        form="verbatim" if turn.text in item.text else "distilled",
        superseded_at=item.ended_at if item.superseded else None,
        successor=item.successor,
        removed_at=item.ended_at if item.removed else None,
    )


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


def _is_seen(timeline: Timeline, backend: str) -> bool:
    """Return whether the latest search at an ordinary turn was recorded with what it found."""
    latest = timeline.perceived_at(backend, timeline.last_turn)
    return latest is not None and latest.why_empty != "not_recorded"


def _asked(timeline: Timeline, backend: str, turn: Turn, memory: StoredMemory) -> Iterable[AskedAbout]:
    questions = {question.id: question for question in timeline.conversation.questions}
    for answer in timeline.answers():
        question = questions.get(answer.asked.question_id)
        if answer.asked.backend == backend and question is not None and turn.id in question.evidence:
            turns = timeline.conversation.turns_by_id
            answerable = Answerable(question, turns, timeline.conversation.days_by_session)
            yield _about(answer, turn.id, answerable, Stages(answer.asked, memory, turns))


def _about(answer: Answer, turn_id: str, answerable: Answerable, stages: Stages) -> AskedAbout:
    """Return the texts made from the turn that say what the question needs of it."""
    asked = answer.asked
    hits = [
        hit
        for hit in asked.hits
        if turn_id in hit.turns or answerable.part_held_by(turn_id, [stages.piece_of(hit)])
    ]
    cut = (turn for part in asked.cut for turn in part.turns)
    return AskedAbout(
        question_id=asked.question_id,
        model=asked.model,
        by_hand=asked.by_hand,
        retrieval=RetrievalOutcome(turn=asked.turn, reach="not_recorded")
        if asked.why_empty == "not_recorded"
        else retrieval_outcome(asked.turn, turn_id, hits, asked.missed, cut),
        reply=answer.received.reply.text if answer.received else None,
        outcome=answer.scored.score.outcome if answer.scored else None,
    )
