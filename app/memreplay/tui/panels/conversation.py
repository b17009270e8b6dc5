"""The line above the replay: live or recorded, what, where, and what is going on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal

from memreplay.conversations.models import Question, Role, Turn
from memreplay.engine.events import ConversationClosed
from memreplay.timeline.timeline import Timeline
from memreplay.tui.subjects import TurnSubject
from memreplay.tui.text import Line, Row, Span, Tone, about_rows, line, one_line, paragraphs, wrapped

_ROWS_OF_SUMMARY = 3

Weight = Literal["kept", "near", "dropped", "none"]

_OF_WEIGHT: Final[dict[Weight, tuple[Span, Tone]]] = {
    "kept": (Span("┃ ", "good"), "good"),
    "near": (Span("╎ ", "warn"), "warn"),
    "dropped": (Span("┊ ", "removed"), "removed"),
    "none": (Span("  "), "dim"),
}
SIGNIFICANCE_LEGEND: Final = "by significance: ┃ kept in long-term memory  ╎ dropped, but near  ┊ dropped"


class ConversationDocument:
    """A block a turn, with its session's heading before it, and one for the end once it was reached.

    ``cursor``, ``chosen`` and ``by_significance`` change how blocks look, and never how high they are.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        conversation = self._conversation = timeline.conversation
        self._digits = len(str(len(conversation.turns)))
        self._marks = _marks(conversation.questions)
        self.cursor = 0
        self.closed: str | None = None
        self.chosen: frozenset[str] = frozenset()
        self.by_significance = False
        self._laid_out = lru_cache(maxsize=512)(self._lay_out)

    def grow_to(self, turns: int) -> None:
        """So many turns were played: nothing new, as all of them were known before."""

    def __len__(self) -> int:
        return len(self._conversation.turns) + (self.closed is not None)

    def height(self, index: int, width: int) -> int:
        """Rows that a turn takes."""
        return len(self._lay_out(index, width, False, False, False, None, self.closed))

    def guess(self, index: int, width: int) -> int:
        """About as many, from the length of what was said."""
        turns = self._conversation.turns
        return 1 + about_rows(turns[index].text, width - 4) if index < len(turns) else 1

    def rows(self, index: int, width: int) -> Sequence[Row]:
        """The rows of a turn."""
        current = index == self.cursor - 1
        chosen = index < len(self._conversation.turns) and self._conversation.turns[index].id in self.chosen
        weight = self._weight(index) if self.by_significance else None
        return self._laid_out(index, width, current, index >= self.cursor, chosen, weight, self.closed)

    def subject(self, index: int) -> TurnSubject | None:
        """The turn of a block."""
        turns = self._conversation.turns
        return TurnSubject(turns[index].id) if index < len(turns) else None

    def _lay_out(
        self,
        index: int,
        width: int,
        current: bool,
        to_come: bool,
        chosen: bool,
        weight: Weight | None,
        closed: str | None,
    ) -> tuple[Row, ...]:
        if index == len(self._conversation.turns):
            sign = "▶ " if current else "  "
            return (
                Row((Span(f"{sign}end of the conversation · {closed}", "title"),), "current" if current else None),
            )
        turn = self._conversation.turns[index]
        fill: Tone | None = "current" if current else None
        tone: Tone = "dim" if to_come else "plain"
        head = line(
            Span("▶ " if current else "  ", "accent"),
            Span(f"{turn.number:>{self._digits}} ", "dim"),
            Span(one_line(self._conversation.label_of(turn)), "dim" if to_come else _ROLE_TONE[turn.role]),
            Span(self._mark(turn, chosen), "dim" if to_come and not chosen else "warn"),
            fill=fill,
        )
        bar, weighed = _OF_WEIGHT[weight] if weight is not None else (Span("  ", tone), tone)
        body = paragraphs(turn.text, weighed, indent=2)
        lines = [head, *(Line((bar, *part.spans[1:]), part.hang, fill=fill) for part in body)]
        return tuple(wrapped([*self._heading(index, turn), *lines], width))

    def _weight(self, index: int) -> Weight | None:
        """What the memories made of a turn by now: kept, near, dropped; None where none judged it."""
        turns = self._conversation.turns
        if index >= min(len(turns), self.cursor):
            return None
        judged = [
            decision
            for backend in self._timeline.backends
            for turn, decision in self._timeline.ledger(backend).about_turn(turns[index].id)
            if turn <= self.cursor
        ]
        if not judged:
            return "none"
        if any(decision.decision in ("ADD", "UPDATE", "NO-OP") for decision in judged):
            return "kept"
        return "near" if any(2 * decision.score >= decision.threshold for decision in judged) else "dropped"

    def _mark(self, turn: Turn, chosen: bool) -> str:
        numbers = self._marks.get(turn.id)
        if not numbers:
            return ""
        text = ", ".join(map(str, numbers)) if len(numbers) <= 4 else f"{len(numbers)} questions"
        return f"  {'◆' if chosen else '◇'} {text}"

    def _heading(self, index: int, turn: Turn) -> list[Line]:
        """The session's separator, where a session starts and the conversation has dates or several of them."""
        turns, session = self._conversation.turns, self._conversation.sessions_by_number.get(turn.session)
        if session is None or (index and turns[index - 1].session == turn.session):
            return []
        if session.date is None and len(self._conversation.sessions) == 1:
            return []
        date = f"{session.date.day} {session.date:%b %Y %H:%M} · " if session.date else ""
        heading = [line(Span(f"── {date}session {session.number}", "title"), most=1)]
        if session.summary:
            heading.append(line(Span(f"  {one_line(session.summary)}", "dim"), hang=2, most=_ROWS_OF_SUMMARY))
        return heading


_ROLE_TONE: Final[dict[Role, Tone]] = {"user": "key", "assistant": "value"}


def closing_of(timeline: Timeline) -> str | None:
    """How the conversation ended in the memories, ``resolved`` or ``cancelled``; None where it has not."""
    for backend in timeline.backends:
        for event in timeline.events_at(backend, timeline.last_turn + 1):
            if isinstance(event, ConversationClosed):
                return event.status
    return None


def _marks(questions: Sequence[Question]) -> dict[str, list[int]]:
    """For each turn that holds an answer, the 1-based numbers of the questions it answers."""
    marks: dict[str, list[int]] = defaultdict(list)
    for number, question in enumerate(questions, start=1):
        for turn_id in question.evidence:
            marks[turn_id].append(number)
    return dict(marks)


def header_spans(timeline: Timeline, cursor: int, *, live: bool, progress: str, settings: str) -> list[Span]:
    """Mode, conversation, position, progress, settings; in the order in which a narrow screen may cut them."""
    last = timeline.last_turn
    return [
        Span(" LIVE ", "live") if live else Span(" RECORDED ", "recorded"),
        Span(f"  {one_line(timeline.conversation.id)}", "strong"),
        Span(f"  turn {cursor}/{last}" if cursor <= last else "  closed", "title"),
        Span(f"  {progress}", "warn"),
        Span(f"  {one_line(settings)}", "dim"),
    ]
