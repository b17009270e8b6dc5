"""The left column of the replay: the conversation, and the answers below it."""

from __future__ import annotations

from bisect import bisect_right

from textual import events
from textual.content import Content

from memreplay.engine.events import (
    AskEvent,
    ConversationClosed,
    ReplayEvent,
    TestBegan,
    TestScored,
)
from memreplay.timeline.timeline import Timeline
from memreplay.tui.widgets.lines_view import AROUND_A_TITLE, LinesView
from memreplay.views.panels.answers import answers_view
from memreplay.views.panels.conversation import closing_of
from memreplay.views.panels.tests import document_of, first_turn_of, scores_view, shows_tests
from memreplay.views.text import cells, shortened

_NOTHING_SAID = "step: a first message"


class ConversationView(LinesView):
    """All turns, with the one at the cursor in view."""

    def __init__(self, timeline: Timeline, *, live: bool, id: str) -> None:
        super().__init__(id=id)
        self._timeline = timeline
        self._turns = document_of(timeline)
        self._turns.closed = closing_of(timeline)
        self.border_title = Content("conversation")
        self.border_subtitle = Content(_NOTHING_SAID if timeline.conversation.end is None and live else "")

    def on_mount(self) -> None:
        self.show(self._turns)

    def move_to(self, cursor: int, frontier: int) -> None:
        self.grow_to(frontier)
        self._turns.cursor = cursor
        self.show(self._turns, in_view=max(0, cursor - 1))

    def grow_to(self, frontier: int) -> None:
        """Show the turns up to the frontier of a conversation that grows while it is played."""
        self._turns.grow_to(frontier)
        if frontier and self.border_subtitle:
            self.border_subtitle = Content("")

    def on_replay_event(self, event: ReplayEvent) -> None:
        """Show below the last turn how the conversation ended."""
        if isinstance(event, ConversationClosed):
            self._turns.closed = closing_of(self._timeline)

    def highlight(self, turn_ids: frozenset[str]) -> None:
        """Mark turns as those the user came for, from the next paint on."""
        self._turns.chosen = turn_ids

    @property
    def by_significance(self) -> bool:
        return self._turns.by_significance

    def toggle_significance(self) -> None:
        """Colour turns by significance or by role, from the next paint on."""
        self._turns.by_significance = not self._turns.by_significance


class AnswersView(LinesView):
    """The answers up to the cursor; in a run of tests, their scores."""

    def __init__(self, timeline: Timeline, *, id: str) -> None:
        super().__init__(id=id)
        self._timeline = timeline
        self._shows_tests = shows_tests(timeline)
        self._shown: int | None = None
        self._title, self._names = "answers", list[str]()
        self.display = False

    def on_replay_event(self, event: ReplayEvent) -> None:
        """Summarise the answers again at the next paint if they changed."""
        if isinstance(event, AskEvent | TestBegan | TestScored):
            self._shown = None

    def move_to(self, cursor: int) -> None:
        # Summarising takes as long as there are answers: only where a cursor passed one is it done again.
        if self._shows_tests:
            last = bisect_right(self._timeline.tests, cursor, key=lambda event: event.turn)
        else:
            last = self._timeline.marks.previous(cursor + 1, {"question"}) or 0
        first = self._timeline.marks.next(-1, {"question"})
        self.display = self._shows_tests or (first is not None and first <= cursor)
        if self.display and last != self._shown:
            view = (scores_view if self._shows_tests else answers_view)(self._timeline, cursor)
            self._names = view.note.split()
            self._title = view.title
            self._name_columns()
            self.show(view.document, in_view=view.in_view)
            self._shown = last

    def on_resize(self, event: events.Resize) -> None:
        self._name_columns()

    def _name_columns(self) -> None:
        """Name the memory of each column in the title; without room for all, say nothing else."""
        whole = " ".join(self._names)
        words = " · ".join(filter(None, (self._title, whole)))
        width = self.outer_size.width - AROUND_A_TITLE
        if self._names and 0 < width < cells(words):
            words = shortened(self._names, width)
        self.border_title = Content(words)

    def first_turn_of(self, line: int) -> int | None:
        """Return the first turn of the test in a line; None if the lines are questions."""
        return first_turn_of(self._timeline, line) if self._shows_tests else None
