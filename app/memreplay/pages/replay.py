"""A replay for a browser: the conversation and the panels of each memory, at every position.

The panels are those of the terminal, from the same functions of the events and the cursor. Not one view per
position is stored but what changes from one to the next: every text is stored once, and a step names the lines that
it takes out and puts in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memreplay.errors import UsageError
from memreplay.pages.document import SCRIPTS, STYLES, Data, page
from memreplay.pages.questions import Questions, Source
from memreplay.recording.annotations import annotations_of
from memreplay.recording.reader import Recording, RunInfo
from memreplay.scoring.results import Results
from memreplay.timeline.annotations import Bookmark
from memreplay.timeline.navigation import next_interesting, next_session
from memreplay.timeline.timeline import Timeline
from memreplay.views.document import LinesDocument
from memreplay.views.panels import MARKED, DiffBase, Page, Panel, View
from memreplay.views.panels.answers import AnswersTable
from memreplay.views.panels.architectures import panels_of
from memreplay.views.subjects import (
    DecisionSubject,
    PieceSubject,
    PositionSubject,
    StoredSubject,
    TurnSubject,
    ValueSubject,
    origin_of,
    origin_words,
)
from memreplay.views.text import TONES, Line, visible

MOST_TURNS = 1000
"""Turns in one page. Each adds to the file and to the time that it takes to open."""

PAGES: tuple[Page, ...] = ("memory", "retrieval")

_NO_WRAP = 1_000_000
_RETURN = " · ⌫ returns"


@dataclass(frozen=True)
class Stretch:
    """The positions that a page holds, from ``first`` to ``last``."""

    first: int
    last: int

    @classmethod
    def of(cls, timeline: Timeline, turns: tuple[int, int] | None) -> Stretch:
        """Return all positions of a conversation, or those of these turns.

        Raises:
            UsageError: the conversation has no such turns, or there are too many for a page.
        """
        end = timeline.reached
        first, last = (0, end) if turns is None else (turns[0] - 1, min(turns[1], end))
        if turns is not None and not 0 <= first < last:
            raise UsageError(f"--turns {turns[0]}-{turns[1]}: expected turns between 1 and {end}")
        if last - first > MOST_TURNS + 1:
            raise UsageError(
                f"{timeline.conversation.id} has {end:,} turns, and a page holds at most {MOST_TURNS:,}: it would"
                f" take long to open; choose a part, such as --turns 1-{MOST_TURNS}"
            )
        return cls(first, last)


def recorded_replay(
    recording: Recording, run: RunInfo, conversation_id: str, turns: tuple[int, int] | None = None
) -> dict[str, Any]:
    """Return the data for the script of the page, of all turns of a recorded conversation or of these.

    Raises:
        UsageError: there are no such turns, or too many for a page.
    """
    timeline = recording.timeline(run.id, conversation_id)
    stretch = Stretch.of(timeline, turns)
    bookmarks = annotations_of(recording.path, run.id, conversation_id).bookmarks()
    return replay_data(timeline, bookmarks, stretch, Source(recording, run).backends(timeline))


def replay_page(
    source: Source, results: Results, conversation_id: str, turns: tuple[int, int] | None = None
) -> str:
    """Return the page of one conversation. ``results`` are those of its questions."""
    questions = Questions(results)
    for conversation, asks in source.conversations([conversation_id]):
        questions.add(conversation, asks)
    replay = Data("replay-data", recorded_replay(source.recording, source.run, conversation_id, turns))
    return page(
        "replay.html",
        styles=("page.css", *STYLES),
        scripts=SCRIPTS,
        data=[replay, Data("questions-data", questions.as_data())],
        title=f"Replay of {conversation_id}",
        results=results,
        replays=[replay],
    )


def replay_data(
    timeline: Timeline, bookmarks: Sequence[Bookmark], stretch: Stretch, backends: Sequence[str]
) -> dict[str, Any]:
    """Return the data for the script of the page."""
    lines = _Lines(timeline)
    panels = [
        _panel_data(panel, timeline, backend, page, stretch, lines)
        for backend in backends
        for page in PAGES
        for panel in panels_of(timeline, backend, page)
    ]
    return {
        "conversation": timeline.conversation.id,
        "first": stretch.first,
        "last": stretch.last,
        "backends": backends,
        "pages": PAGES,
        "tones": TONES,
        "turns": list(_turns(timeline)),
        "eventful": list(_positions(lambda at: next_interesting(timeline, at), stretch)),
        "sessions": list(_positions(lambda at: next_session(timeline, at), stretch)),
        "bookmarks": [
            {"mark": each.mark, "turn": each.turn, "note": each.note}
            for each in bookmarks
            if stretch.first <= each.turn <= stretch.last
        ],
        "first_wrong": _first_wrong(timeline, stretch),
        "significance": _significance(timeline, backends),
        "texts": lines.texts,
        "lines": lines.lines,
        "origins": lines.origins,
        "panels": panels,
    }


def _first_wrong(timeline: Timeline, stretch: Stretch) -> int | None:
    """Return the position of the first wrong answer."""
    wrong = (
        answer.asked.turn
        for answer in AnswersTable.until(timeline, stretch.last).all_answers()
        if answer.scored is not None and answer.scored.score.outcome == "wrong"
    )
    return min((turn for turn in wrong if turn >= stretch.first), default=None)


def _turns(timeline: Timeline) -> Iterator[dict[str, Any]]:
    conversation = timeline.conversation
    session = None
    for turn in conversation.turns:
        known: dict[str, Any] = {
            "id": turn.id,
            "label": visible(conversation.label_of(turn)),
            "role": turn.role,
            "text": visible(turn.text),
        }
        if turn.session != session:
            session = turn.session
            found = conversation.sessions_by_number.get(session)
            if found is not None and (found.date is not None or len(conversation.sessions) > 1):
                date = f"{found.date:%Y-%m-%d %H:%M} · " if found.date else ""
                known["session"] = f"{date}session {found.number}"
        numbers = [number for number, each in enumerate(conversation.questions, 1) if turn.id in each.evidence]
        if numbers:
            known["questions"] = numbers
        yield known


def _positions(move: Callable[[int], int | None], stretch: Stretch) -> Iterator[int]:
    at = move(stretch.first)
    while at is not None and at <= stretch.last:
        yield at
        at = move(at)


def _significance(timeline: Timeline, backends: Sequence[str]) -> dict[str, list[list[Any]]]:
    """Return, for each turn that was judged, from which position on it counts as kept, near the threshold, or
    dropped.
    """
    found: dict[str, list[list[Any]]] = {}
    for turn in timeline.conversation.turns:
        judged = sorted(
            (at, "kept" if each.decision != "DROP" else "near" if 2 * each.score >= each.threshold else "dropped")
            for backend in backends
            for at, each in timeline.ledger(backend).about_turn(turn.id)
        )
        if judged:
            found[turn.id] = [list(each) for each in judged]
    return found


class _Lines:
    """The lines of all panels. A line is a text and what it is about; both are stored once."""

    def __init__(self, timeline: Timeline) -> None:
        self.texts: list[Any] = []
        """Each is a list of hang, most rows and fill, then the tone and text of each span."""
        self.lines: list[list[int]] = []
        """Pairs of the number of a text and the number of a subject, or -1."""
        self.origins: list[list[Any]] = []
        """One list a subject: its first position, the position it leads to, its backend, and a sentence."""
        self._timeline = timeline
        self._text_numbers: dict[Any, int] = {}
        self._line_numbers: dict[tuple[int, int], int] = {}
        self._subject_numbers: dict[Hashable, int] = {}

    def number(self, line: Line) -> int:
        """Return the number of a line."""
        key = (line.hang, line.most, line.fill, line.spans)
        text = self._text_numbers.setdefault(key, len(self.texts))
        if text == len(self.texts):
            spans = [part for span in line.spans if span.text for part in (TONES.index(span.tone), span.text)]
            fill = -1 if line.fill is None else TONES.index(line.fill)
            self.texts.append([line.hang, line.most or 0, fill, *spans])
        subject = -1
        if line.about is not None:
            subject = self._subject_numbers.setdefault(line.about, len(self.origins))
            if subject == len(self.origins):
                self.origins.append([])
        number = self._line_numbers.setdefault((text, subject), len(self.lines))
        if number == len(self.lines):
            self.lines.append([text, subject])
        return number

    def trace(self, line: Line, cursor: int) -> None:
        """Note where a line that appears at a position leads from there."""
        if line.about is None:
            return
        origin = self._origin(line.about, cursor)
        known = self.origins[self._subject_numbers[line.about]]
        if origin is not None and (not known or known[-1][1:] != origin):
            known.append([cursor, *origin])

    def _origin(self, subject: Hashable, cursor: int) -> list[Any] | None:
        match subject:
            case ValueSubject() | PieceSubject() | StoredSubject():
                return self._written(subject, cursor)
            case DecisionSubject(backend, turn, _, str(point)):
                return self._written(StoredSubject(backend, "", point, ()), max(turn, cursor))
            case DecisionSubject(backend, turn):
                return [
                    turn,
                    backend,
                    "judged at this turn, and not promoted; what a scratchpad notes does not count as stored"
                    + _RETURN,
                ]
            case PositionSubject(turn, backend):
                return [turn, backend, ""]
            case TurnSubject(turn_id):
                at = self._timeline.observed_at(turn_id)
                return None if at is None else [at, "", f"turn {turn_id} was observed here{_RETURN}"]
        return None

    def _written(self, subject: ValueSubject | PieceSubject | StoredSubject, cursor: int) -> list[Any] | None:
        origin = origin_of(self._timeline, subject, cursor)
        return None if origin is None else [origin.turn, origin.backend, origin_words(origin)]


def _panel_data(
    panel: Panel, timeline: Timeline, backend: str, page: Page, stretch: Stretch, lines: _Lines
) -> dict[str, Any]:
    """``marked`` are the steps of the panel with its changes marked, ``plain`` without, where that differs.

    Only panels of the first page show states, which are what is marked.
    """
    marked = _Steps(lines)
    plain = _Steps(lines)
    heads: list[list[Any]] = []
    for cursor in range(stretch.first, stretch.last + 1):
        view = panel.at(cursor, MARKED)
        shown, in_view = lines_of(view)
        for line in marked.add(shown):
            lines.trace(line, cursor)
        if page == "memory":
            plain.add(lines_of(panel.at(cursor, DiffBase("off")))[0])
        head = [view.title, view.note, in_view]
        if not heads or heads[-1][1:] != head:
            heads.append([cursor, *head])
    data = {"backend": backend, "page": page, "name": panel.name, "weight": panel.weight, "heads": heads}
    data["marked"] = marked.steps
    if page == "memory" and plain.steps != marked.steps:
        data["plain"] = plain.steps
    return data


def lines_of(view: View) -> tuple[list[Line], int]:
    """Return all lines of a view, unwrapped, and the index of the one to scroll to; -1 if there is none."""
    view = view.unfolded(view.folds)
    document, in_view = view.document, -1 if view.in_view is None else view.in_view
    if isinstance(document, LinesDocument):
        return list(document.lines), in_view
    lines: list[Line] = []
    start = -1
    for index in range(len(document)):
        if index == in_view:
            start = len(lines)
        about = document.subject(index)
        lines += [Line(row.spans, hang=2, fill=row.fill, about=about) for row in document.rows(index, _NO_WRAP)]
    return lines, start


class _Steps:
    """The changes from one position to the next: where, how many lines go, and the numbers of those that come."""

    def __init__(self, lines: _Lines) -> None:
        self.steps: list[list[int]] = []
        self._lines = lines
        self._before: list[int] = []

    def add(self, lines: Sequence[Line]) -> list[Line]:
        """Add the lines of the next position. Returns those that were nowhere in the panel before."""
        numbers = [self._lines.number(line) for line in lines]
        start, end = _common_ends(self._before, numbers)
        removed = len(self._before) - start - end
        added = numbers[start : len(numbers) - end]
        self.steps.append([start, removed, *added] if removed or added else [])
        known = set(self._before)
        self._before = numbers
        return [line for line, number in zip(lines, numbers, strict=True) if number not in known]


def _common_ends(before: Sequence[int], after: Sequence[int]) -> tuple[int, int]:
    """Return how many equal items there are at the start, and at the end of the rest."""
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and before[start] == after[start]:
        start += 1
    end = 0
    while end < shorter - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return start, end
