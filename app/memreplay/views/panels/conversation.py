"""The conversation of a replay as a document, and the header line above it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from memreplay.conversations.models import Conversation, Question, Turn, TurnRole
from memreplay.engine.events import ConversationClosed
from memreplay.timeline.timeline import Timeline
from memreplay.views.subjects import TurnSubject
from memreplay.views.text import Line, Row, Span, Tone, estimated_rows, line, one_line, paragraphs, wrapped

_ROWS_OF_SUMMARY = 3

Significance = Literal["kept", "near", "dropped", "none"]
Mode = Literal["live", "following", "recorded"]

_SIGNIFICANCE: Final[Mapping[Significance, tuple[Span, Tone]]] = {
    "kept": (Span("┃ ", "good"), "good"),
    "near": (Span("╎ ", "warn"), "warn"),
    "dropped": (Span("┊ ", "removed"), "removed"),
    "none": (Span("  "), "dim"),
}
SIGNIFICANCE_LEGEND: Final = "by significance: ┃ kept in long-term memory  ╎ dropped near the threshold  ┊ dropped"


class Look(NamedTuple):
    """The state of a block that changes its look, but never its height."""

    current: bool = False
    to_come: bool = False
    chosen: bool = False
    significance: Significance | None = None
    closed: str | None = None


class ConversationDocument:
    """One block per turn, with session headings, and one for the end once the conversation is closed.

    ``cursor``, ``chosen`` and ``by_significance`` change how blocks look, but never their height.
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
        """Do nothing: a dataset's conversation is known in full before it is played."""

    def __len__(self) -> int:
        return len(self._conversation.turns) + (self.closed is not None)

    def height(self, index: int, width: int) -> int:
        return len(self._lay_out(index, width, Look(closed=self.closed)))

    def guess(self, index: int, width: int) -> int:
        turns = self._conversation.turns
        return 1 + estimated_rows(turns[index].text, width - 4) if index < len(turns) else 1

    def rows(self, index: int, width: int) -> Sequence[Row]:
        current = index == self.cursor - 1
        chosen = index < len(self._conversation.turns) and self._conversation.turns[index].id in self.chosen
        significance = self._significance(index) if self.by_significance else None
        look = Look(current, index >= self.cursor, chosen, significance, self.closed)
        return self._laid_out(index, width, look)

    def subject(self, index: int) -> TurnSubject | None:
        turns = self._conversation.turns
        return TurnSubject(turns[index].id) if index < len(turns) else None

    def _lay_out(self, index: int, width: int, look: Look) -> tuple[Row, ...]:
        current, to_come, chosen, significance, closed = look
        if index == len(self._conversation.turns):
            sign = "▶ " if current else "  "
            return (Row((Span(f"{sign}end · {closed}", "title"),), "current" if current else None),)
        turn = self._conversation.turns[index]
        fill: Tone | None = "current" if current else None
        tone: Tone = "dim" if to_come else "plain"
        head = line(
            Span("▶ " if current else "  ", "accent"),
            Span(f"{turn.number:>{self._digits}} ", "dim"),
            Span("" if turn.id == str(turn.number) else f"{one_line(turn.id)} ", "dim"),
            Span(one_line(self._conversation.label_of(turn)), "dim" if to_come else _ROLE_TONE[turn.role]),
            Span(self._mark(turn, chosen), "dim" if to_come and not chosen else "warn"),
            fill=fill,
        )
        bar, text_tone = _SIGNIFICANCE[significance] if significance is not None else (Span("  ", tone), tone)
        body = paragraphs(turn.text, text_tone, indent=2)
        lines = [head, *(Line((bar, *part.spans[1:]), part.hang, fill=fill) for part in body)]
        return tuple(wrapped([*self._heading(index, turn), *lines], width))

    def _significance(self, index: int) -> Significance | None:
        """Return the best decision on a turn in any memory so far: "none" if none judged it, None if not played
        yet.
        """
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
        """Return the separator before a session's first turn, if sessions are dated or there are several."""
        turns, session = self._conversation.turns, self._conversation.sessions_by_number.get(turn.session)
        if session is None or (index and turns[index - 1].session == turn.session):
            return []
        if session.date is None and len(self._conversation.sessions) == 1:
            return []
        date = f" · {session.date.day} {session.date:%b %Y %H:%M}" if session.date else ""
        heading = [line(Span(f"── session {session.number}{date}", "title"), hang=3, most=2)]
        if session.summary:
            heading.append(line(Span(f"  {one_line(session.summary)}", "dim"), hang=2, most=_ROWS_OF_SUMMARY))
        return heading


_ROLE_TONE: Final[dict[TurnRole, Tone]] = {"user": "key", "assistant": "value", "other": "dim"}


def turn_words(turn: Turn) -> str:
    """Return the number of a turn, and its id where the dataset has ids of its own: ``92 (D5:15)``."""
    return str(turn.number) if turn.id == str(turn.number) else f"{turn.number} ({one_line(turn.id)})"


def turns_words(conversation: Conversation, turn_ids: Sequence[str]) -> str:
    """Return turns by number and id; of many, the first and the last."""
    known = conversation.turns_by_id
    words = [turn_words(known[turn]) if turn in known else one_line(turn) for turn in turn_ids]
    return f"{words[0]}…{words[-1]} ({len(words)})" if len(words) > 3 else ", ".join(words)


def closing_of(timeline: Timeline) -> str | None:
    """Return how the memories closed the conversation, ``resolved`` or ``cancelled``; None if it is still open."""
    for backend in timeline.backends:
        for event in timeline.events_at(backend, timeline.last_turn + 1):
            if isinstance(event, ConversationClosed):
                return event.status
    return None


def _marks(questions: Sequence[Question]) -> dict[str, list[int]]:
    """Return, for each evidence turn, the 1-based numbers of the questions that it answers."""
    marks: dict[str, list[int]] = defaultdict(list)
    for number, question in enumerate(questions, start=1):
        for turn_id in question.evidence:
            marks[turn_id].append(number)
    return dict(marks)


def header_spans(timeline: Timeline, cursor: int, *, mode: Mode, progress: str, settings: str) -> list[Span]:
    """Mode, conversation, position, progress, settings: a narrow screen cuts them from the end."""
    last = timeline.last_turn
    return [
        Span(f" {mode.upper()} ", "recorded" if mode == "recorded" else "live"),
        Span(f"  {one_line(timeline.conversation.id)}", "strong"),
        Span(f"  turn {cursor}/{last}" if cursor <= last else "  closed", "title"),
        Span(f"  {progress}", "warn"),
        Span(f"  {one_line(settings)}", "dim"),
    ]
