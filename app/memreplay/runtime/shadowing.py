"""A second memory in the place of a running agent's own: the recorded conversation goes through it again, and
it is read wherever the agent's own memory was.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace

from memory_backends.base import Hit, Recall
from memreplay.conversations.models import Question
from memreplay.debugger.lifetime import given_holds
from memreplay.engine.events import Perceived
from memreplay.llm.tokens import context_budget
from memreplay.runtime.reasking import Reasking
from memreplay.scoring.statistics import holm, mcnemar_exact, mean, paired_interval, wilson_interval
from memreplay.timeline.timeline import Timeline


@dataclass(frozen=True)
class Returned:
    """The ids of the turns, and the tokens, that a memory returned at a read.

    ``holds`` says whether it holds the marked answer; None where nothing was marked.
    """

    turns: tuple[str, ...]
    tokens: int
    holds: bool | None = None


@dataclass(frozen=True)
class Read:
    """A read of a running agent, and what another memory returns to the same words.

    ``own`` is None where it was not recorded what a read at a marked turn returned.
    """

    conversation: str
    turn: int
    query: str
    memory: str
    shadow: str
    own: Returned | None
    other: Returned


@dataclass(frozen=True)
class Outcome:
    """Reads of one memory against those of its shadow. Shares are of ``marks``, whose answer is known.

    ``difference`` is the shadow's share minus the memory's own, with its 95 % interval; ``p_value`` is that of
    McNemar's exact test, adjusted by Holm where several pairs are compared. ``returned_too`` is the mean share of
    the turns that the memory returned which its shadow returned as well, over the ``compared`` reads in which it
    returned any. Tokens are means over all ``reads``; ``unknown`` counts marks without a recorded read.
    """

    memory: str
    shadow: str
    reads: int
    unknown: int
    marks: int
    own_held: int
    other_held: int
    own_interval: tuple[float, float] | None
    other_interval: tuple[float, float] | None
    difference: float | None
    difference_interval: tuple[float, float] | None
    p_value: float | None
    own_tokens: float | None
    other_tokens: float | None
    compared: int
    returned_too: float | None


async def reads_of(timeline: Timeline, shadow: str, rebuilding: Reasking) -> AsyncIterator[Read | str]:
    """Yield the reads of a captured conversation beside those of another memory that is filled with it.

    Where a read fails, a sentence that says so takes its place. Reads nothing that comes after the turn of a read.
    """
    settings = rebuilding.settings
    model = settings.model[0]
    async with rebuilding.rebuilding(timeline.conversation) as memory_of:
        memory = memory_of(shadow)
        budget = context_budget(model, settings.context_tokens, memory.limited_by_top_k)
        for turn, query, question, own in sorted(_asked(timeline), key=lambda each: each[0]):
            recall = await memory.recall(query, settings.top_k, budget, model, turn)
            if isinstance(recall, str):
                yield f"{shadow} at turn {turn}: {recall}"
                continue
            other = _returned(timeline, question, recall.hits, recall.context)
            for name, hits in own:
                known = None if hits is None else _returned(timeline, question, hits, "")
                yield Read(timeline.conversation.id, turn, query, name, shadow, known, other)


_Own = Sequence[tuple[str, Sequence[Hit] | None]]


def _asked(timeline: Timeline) -> Iterator[tuple[int, str, Question | None, _Own]]:
    """Yield turn, query, marked question if any, and hits by memory, of each mark and of each read beside them."""
    questions = {question.id: question for question in timeline.conversation.questions}
    marked: dict[str, list[tuple[int, str, Sequence[Hit] | None]]] = {}
    for answer in timeline.answers():
        asked = answer.asked
        hits = None if _read_at(timeline, asked.backend, asked.turn) is None else asked.hits
        marked.setdefault(asked.question_id, []).append((asked.turn, asked.backend, hits))
    for id_, each in marked.items():
        yield each[0][0], questions[id_].text, questions[id_], [(name, hits) for _, name, hits in each]
    taken = {each[0][0] for each in marked.values()}
    for turn in timeline.conversation.turns:
        if turn.number in taken or not turn.text.strip():
            continue
        reads = [(name, _read_at(timeline, name, turn.number)) for name in timeline.backends]
        own = [(name, read.hits) for name, read in reads if read is not None]
        if own:
            yield turn.number, turn.text, None, own


def _read_at(timeline: Timeline, backend: str, turn: int) -> Perceived | None:
    """Return the read at a turn; None where there was none, or what it returned was not recorded."""
    read = timeline.perceived_at(backend, turn)
    return None if read is None or read.turn != turn or read.why_empty == "not_recorded" else read


def _returned(timeline: Timeline, question: Question | None, hits: Sequence[Hit], context: str) -> Returned:
    given = tuple(hit for hit in hits if hit.in_prompt)
    turns = tuple(dict.fromkeys(turn for hit in given for turn in (*hit.turns, *hit.sources)))
    holds = None if question is None else given_holds(timeline, question, Recall(hits=given, context=context))
    return Returned(turns, sum(hit.tokens for hit in given), holds)


def outcomes(reads: Sequence[Read]) -> list[Outcome]:
    """Return how each memory and each of its shadows fared."""
    pairs = dict.fromkeys((read.memory, read.shadow) for read in reads)
    found = [_outcome(*pair, [read for read in reads if (read.memory, read.shadow) == pair]) for pair in pairs]
    adjusted = iter(holm([one.p_value for one in found if one.p_value is not None]))
    return [one if one.p_value is None else replace(one, p_value=next(adjusted)) for one in found]


def _outcome(memory: str, shadow: str, reads: Sequence[Read]) -> Outcome:
    known = [(read.own, read.other) for read in reads if read.own is not None]
    marks = [(own.holds, other.holds) for own, other in known if own.holds is not None]
    count, lost = len(marks), sum(bool(own) and not other for own, other in marks)
    won = sum(bool(other) and not own for own, other in marks)
    own_held, other_held = (sum(bool(mark[side]) for mark in marks) for side in (0, 1))
    shared = [len(set(own.turns) & set(other.turns)) / len(set(own.turns)) for own, other in known if own.turns]
    return Outcome(
        memory=memory,
        shadow=shadow,
        reads=len(known),
        unknown=len(reads) - len(known),
        marks=count,
        own_held=own_held,
        other_held=other_held,
        own_interval=wilson_interval(own_held, count),
        other_interval=wilson_interval(other_held, count),
        difference=(won - lost) / count if count else None,
        difference_interval=paired_interval(won, lost, count),
        p_value=mcnemar_exact(won, lost) if count else None,
        own_tokens=mean([float(own.tokens) for own, _ in known]),
        other_tokens=mean([float(other.tokens) for _, other in known]),
        compared=len(shared),
        returned_too=mean(shared),
    )
