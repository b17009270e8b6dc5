"""Counterfactual prompts of a wrong answer, one a change, from its recorded trace. Asks no model and no memory.

A recorded context is taken apart into units that can be moved, added and removed, and put together again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from memory_backends.base import Hit, Recall, TokenCounter
from memory_backends.retrieval.rendering import BETWEEN_HITS, under_date
from memreplay.conversations.models import Conversation, Question, message_of
from memreplay.engine.events import QuestionAsked
from memreplay.grading.match import contains
from memreplay.llm.model import PromptMessage
from memreplay.llm.prompts import context_of, with_context
from memreplay.scoring.holding import Answerable, Piece
from memreplay.scoring.stage_judge import stored_text
from memreplay.scoring.verdicts import FROM_MEMORY, Intervention


@dataclass(frozen=True)
class Unit:
    """A part of a context.

    ``turns`` stand in it word for word, ``sources`` are turns that it was made from. ``number`` is the 1-based
    number of its last turn, None if it has no place in the conversation. ``rank`` is 1-based; None for text that is
    no hit, such as a heading. ``date`` is the heading of a message in a log, which shows only above the first
    message of its session.
    """

    text: str
    turns: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    number: int | None = None
    rank: int | None = None
    session: int | None = None
    date: str = ""

    @property
    def is_line(self) -> bool:
        """Return whether it is a message of a log."""
        return self.session is not None


def units_of(context: str, hits: Sequence[Hit], conversation: Conversation) -> tuple[Unit, ...] | None:
    """Return the units of a context, in its order; None if the hits in the prompt do not tell how it was put
    together.
    """
    shown = [hit for hit in hits if hit.in_prompt and hit.text.strip()]
    places = _places(context, shown)
    if not shown or places is None:
        return None
    units: list[Unit] = []
    end = 0
    for start, hit in places:
        if between := context[end:start].strip("\n"):
            units.append(Unit(between))
        units.append(_unit(hit, conversation))
        end = start + len(hit.text)
    if rest := context[end:].strip("\n"):
        units.append(Unit(rest))
    if len(units) == 1 and len(shown[0].turns) > 1:
        return _messages(shown[0], conversation)
    return tuple(units)


def _places(context: str, hits: Sequence[Hit]) -> list[tuple[int, Hit]] | None:
    """Return where each hit stands; None if one is not found. The longest first: a short one may stand inside
    another.
    """
    taken: list[tuple[int, Hit]] = []
    for hit in sorted(hits, key=lambda hit: -len(hit.text)):
        start = context.find(hit.text)
        while any(start < at + len(other.text) and at < start + len(hit.text) for at, other in taken):
            start = context.find(hit.text, start + 1)
            if start < 0:
                break
        if start < 0:
            return None
        taken.append((start, hit))
    return sorted(taken, key=lambda place: place[0])


def _unit(hit: Hit, conversation: Conversation) -> Unit:
    known = [conversation.turns_by_id[turn].number for turn in hit.turns if turn in conversation.turns_by_id]
    return Unit(
        hit.text, frozenset(hit.turns), frozenset(hit.sources), max(known, default=None), rank=max(hit.rank, 1)
    )


def _messages(log: Hit, conversation: Conversation) -> tuple[Unit, ...] | None:
    """Return the messages of a log; None if it does not hold all of its turns as lines."""
    units = turns_as_units(log.turns, conversation)
    if len(units) != len(log.turns) or any(unit.text not in log.text for unit in units):
        return None
    # The end of a log is what a memory keeps, so its oldest message counts as its lowest-ranked.
    return tuple(replace(unit, rank=len(units) - place) for place, unit in enumerate(units))


def turns_as_units(turns: Iterable[str], conversation: Conversation) -> list[Unit]:
    """These turns as messages under their dates, in the order of the conversation; unknown ids are left out."""
    known = {turn: conversation.turns_by_id[turn] for turn in turns if turn in conversation.turns_by_id}
    units = []
    for turn in sorted(known.values(), key=lambda turn: turn.number):
        message = message_of(conversation, turn)
        dated = under_date(message.line, message.said_at)
        date = dated[: len(dated) - len(message.line)].strip("\n")
        units.append(Unit(message.line, frozenset([turn.id]), number=turn.number, session=turn.session, date=date))
    return units


def joined(units: Iterable[Unit]) -> str:
    """Return one context. Hits stand apart; messages of one session follow each other below one date."""
    text = ""
    before: Unit | None = None
    for unit in units:
        continues = unit.is_line and before is not None and before.session == unit.session
        if before is not None:
            text += "\n" if unit.is_line and before.is_line else BETWEEN_HITS
        text += unit.text if continues or not unit.date else f"{unit.date}\n{unit.text}"
        before = unit
    return text


def apart(units: Iterable[Unit]) -> list[Unit]:
    """Messages as hits of their own, each under its date."""
    return [
        Unit(f"{unit.date}\n{unit.text}" if unit.date else unit.text, unit.turns, unit.sources, unit.number)
        if unit.is_line
        else unit
        for unit in units
    ]


@dataclass(frozen=True)
class Case:
    """A wrong answer to be asked again: its question, what was recorded, the values known to be outdated, and what
    memory held of the evidence.
    """

    question: Question
    conversation: Conversation
    asked: QuestionAsked
    outdated: tuple[str, ...]
    stored: tuple[Piece, ...]
    count_tokens: TokenCounter

    @cached_property
    def context(self) -> str:
        """Return what memory gave to the model."""
        return context_of(self.asked.prompt)

    @cached_property
    def units(self) -> tuple[Unit, ...] | None:
        """Return the parts of the context; None if it cannot be taken apart."""
        return units_of(self.context, self.asked.hits, self.conversation)

    @cached_property
    def evidence(self) -> tuple[str, ...]:
        """Return the evidence turns that support the answer."""
        return tuple(turn for turn in self.answerable.evidence if turn in self.conversation.turns_by_id)

    @cached_property
    def missing(self) -> list[Unit]:
        """Return the evidence turns whose words, or the date that they count from, are not in the context."""
        verbatim = frozenset(turn for hit in self.asked.hits if hit.in_prompt for turn in hit.turns)
        given = [Piece(self.context, verbatim, verbatim)]
        lost = [turn for turn in self.evidence if not self.answerable.is_told(turn, given)]
        return turns_as_units(lost, self.conversation)

    @cached_property
    def answerable(self) -> Answerable:
        return Answerable(self.question, self.conversation.turns_by_id, self.conversation.days_by_session)

    def bears_evidence(self, unit: Unit) -> bool:
        """Return whether a unit comes from an evidence turn, or holds the answer in other words."""
        linked = unit.turns | unit.sources
        if not linked.isdisjoint(self.question.evidence):
            return True
        return bool(self.evidence) and self.answerable.held_by([Piece(unit.text, linked, unit.turns)])


def changed_prompt(intervention: Intervention, case: Case) -> tuple[PromptMessage, ...] | None:
    """Return the prompt under a change of the recorded context; None where the change does not apply."""
    if intervention == "unchanged":
        return case.asked.prompt
    context = _CHANGES[intervention](case)
    if context is None or context.strip() == case.context.strip():
        return None
    return with_context(case.asked.prompt, context)


def recalled_prompt(case: Case, recall: Recall) -> tuple[PromptMessage, ...] | None:
    """Return the prompt with what the rebuilt memory returns under other limits; None if that is the same."""
    if recall.context.strip() == case.context.strip():
        return None
    return with_context(case.asked.prompt, recall.context)


def _evidence_only(case: Case) -> str | None:
    return joined(apart(turns_as_units(case.evidence, case.conversation))) if case.evidence else None


def _stored_only(case: Case) -> str | None:
    """Return the stored texts; None where there are none, and where the prompt has the evidence itself."""
    if not case.missing:
        return None
    return stored_text(case.stored, case.conversation) or None


def _evidence_added(case: Case) -> str | None:
    if not case.missing:
        return None
    if case.units is None:
        return joined([Unit(case.context), *apart(case.missing)] if case.context.strip() else apart(case.missing))
    return joined(_inserted(case.units, case.missing))


def _evidence_replacing(case: Case) -> str | None:
    if not case.missing or not case.units:
        return None
    needed = case.count_tokens(joined(apart(case.missing)))
    removable = [unit for unit in case.units if unit.rank is not None and not case.bears_evidence(unit)]
    removed: list[Unit] = []
    for unit in sorted(removable, key=lambda unit: -(unit.rank or 0)):
        if needed <= 0:
            break
        needed -= case.count_tokens(unit.text)
        removed.append(unit)
    if not removed:
        return None
    return joined(_inserted([unit for unit in case.units if unit not in removed], case.missing))


def _evidence_first(case: Case) -> str | None:
    parts = _evidence_and_rest(case)
    return None if parts is None else joined([*parts[0], *parts[1]])


def _evidence_last(case: Case) -> str | None:
    parts = _evidence_and_rest(case)
    return None if parts is None else joined([*parts[1], *parts[0]])


def _evidence_and_rest(case: Case) -> tuple[list[Unit], list[Unit]] | None:
    """Return what bears evidence, with the evidence that was missing; and all other units."""
    if case.units is None or not case.evidence:
        return None
    bearing = [unit for unit in case.units if case.bears_evidence(unit)]
    rest = [unit for unit in case.units if unit not in bearing]
    evidence = _inserted(bearing, case.missing)
    return (apart(evidence), rest) if rest and evidence else None


def _current_value_only(case: Case) -> str | None:
    lines = case.context.split("\n")
    kept = [line for line in lines if not _is_outdated(line, case)]
    return None if len(kept) == len(lines) else "\n".join(kept)


def _is_outdated(line: str, case: Case) -> bool:
    """Return whether a line holds an outdated value and not the current one: a correction often names both."""
    old = any(contains(value, line) for value in case.outdated)
    return old and not contains(case.question.expected, line)


def _distractors_removed(case: Case) -> str | None:
    if case.units is None:
        return None
    if case.question.abstain:
        bait = frozenset(case.question.evidence)
        kept = [unit for unit in case.units if bait.isdisjoint(unit.turns | unit.sources)]
        return joined(kept) if len(kept) < len(case.units) else None
    kept = [unit for unit in case.units if case.bears_evidence(unit)]
    return joined(kept) if kept else None


def _closed_book(case: Case) -> str | None:
    return ""


_CHANGES: Mapping[Intervention, Callable[[Case], str | None]] = {
    "evidence_only": _evidence_only,
    "stored_only": _stored_only,
    "evidence_added": _evidence_added,
    "evidence_replacing": _evidence_replacing,
    "evidence_first": _evidence_first,
    "evidence_last": _evidence_last,
    "current_value_only": _current_value_only,
    "distractors_removed": _distractors_removed,
    "closed_book": _closed_book,
}


def _inserted(units: Sequence[Unit], added: Sequence[Unit]) -> list[Unit]:
    """Return the units with others added in the order of the conversation: a correction has to follow what it
    corrects.
    """
    placed = list(units)
    as_lines = bool(placed) and all(unit.is_line for unit in placed)
    for unit in added if as_lines or not placed else apart(added):
        number = unit.number or 0
        later = (at for at, other in enumerate(placed) if other.number is not None and other.number > number)
        placed.insert(next(later, len(placed)), unit)
    return placed


def wants_memory(interventions: Sequence[Intervention], case: Case, limited_by_top_k: bool) -> list[Intervention]:
    """Return those for which the memory has to be rebuilt: other limits could keep something out, or let it in."""
    was_cut = bool(case.asked.cut) or any(not hit.in_prompt for hit in case.asked.hits)
    applies = {
        "half_budget": case.asked.context_tokens > 0,
        "double_budget": was_cut or limited_by_top_k,
        "double_top_k": limited_by_top_k,
    }
    return [name for name in interventions if name in FROM_MEMORY and applies[name]]
