"""Going after a fact: what changed, who wrote it, why an answer is what it is; and the way back from every jump."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass

from textual import on

from memreplay.conversations.exchanges import exchanges_of
from memreplay.conversations.models import Question, Turn
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.tui.panels.answers import AnswersTable, key_of
from memreplay.tui.panels.panel import MARKED, DiffBase
from memreplay.tui.requests import Decision, Destination, Evidence, Hearing, Life, Position, WholeRun, WriteOf
from memreplay.tui.screens.moving import MovingScreen
from memreplay.tui.screens.overlays import BesideScreen
from memreplay.tui.screens.results import ResultsScreen
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.subjects import (
    AnswerSubject,
    DecisionSubject,
    PieceSubject,
    PositionSubject,
    StoredSubject,
    TurnSubject,
    ValueSubject,
    WrittenSubject,
    origin_of,
    origin_words,
)
from memreplay.tui.text import Span, one_line
from memreplay.tui.widgets.architectures import Architectures
from memreplay.tui.widgets.bars import Bar
from memreplay.tui.widgets.lines_view import LinesView

_NOT_STORED = "judged at this turn, and nothing of it was stored · ⌫ returns"


@dataclass(frozen=True)
class _Place:
    """Where a jump started."""

    cursor: int
    focused: LinesView | None


class InspectingScreen(MovingScreen):
    """Follows what a line is about, and remembers where it came from."""

    architectures: Architectures

    def __init__(self, timeline: Timeline, seconds_a_turn: float) -> None:
        super().__init__(timeline, seconds_a_turn)
        self.base = MARKED
        self._jumps: list[_Place] = []

    @abstractmethod
    def paint(self) -> None:
        """Show everything at the cursor."""

    @abstractmethod
    def choose_turns(self, turn_ids: frozenset[str]) -> None:
        """Mark turns as those the user came for."""

    @abstractmethod
    def action_run(self) -> None:
        """List every question of the whole run."""

    @abstractmethod
    def tell_biography(self, fact: Turn | Question, backend: str | None) -> None:
        """Open the biography of a turn, or of the evidence of a question."""

    # ---- jumping -------------------------------------------------------------------------------------------

    def jump(self, position: int, backend: str | None = None, note: str = "") -> None:
        """Go to a position from which :meth:`action_return` leads back."""
        focused = self.focused if isinstance(self.focused, LinesView) else None
        self._jumps.append(_Place(self.cursor, focused))
        self.move_to(position)
        if backend is not None:
            self.minimize()
            self.architectures.show_backend(backend)
        self.say(note)

    def action_return(self) -> None:
        """Back to where the last jump started."""
        if not self._jumps:
            self.notify("You came here step by step: there is no jump to go back from.", markup=False)
            return
        place = self._jumps.pop()
        self.move_to(place.cursor)
        if place.focused is not None and place.focused.is_attached:
            place.focused.focus(scroll_visible=False)

    def say(self, note: str) -> None:
        """Tell what the cursor was brought to; it stands until the cursor moves on."""
        bar = self.query_one("#found", Bar)
        bar.display = bool(note)
        if note:
            bar.say(Span("↳ ", "accent"), Span(one_line(note)))

    def go(self, destination: Destination | None) -> None:
        """Go where another screen sends the user."""
        match destination:
            case None:
                pass
            case Evidence(question):
                self.look_at_evidence(question)
            case Life(question, backend):
                self.tell_biography(question, backend)
            case WriteOf(subject):
                self.follow_to_write(subject)
            case Hearing(backend, turn_id, note):
                self.jump(self._heard_at(turn_id), backend, note)
            case Position(turn, backend, note):
                self.jump(turn, backend, note)
            case Decision(subject, note):
                self.look_at_decision(subject, note)
            case WholeRun():
                self.action_run()

    def _heard_at(self, turn_id: str) -> int:
        """The position at which a memory is told of a turn: the last turn of its exchange."""
        exchanges = exchanges_of(self.timeline.conversation)
        return next((one.turn_number for one in exchanges if turn_id in one.turn_ids), self.cursor)

    # ---- following -----------------------------------------------------------------------------------------

    def action_write(self) -> None:
        """To the turn and the command that wrote what is selected."""
        view = self.focused
        subject = (view.selected or view.first_subject) if isinstance(view, LinesView) else None
        if subject is None:
            self.notify("Focus a panel (tab or 1 2 3) and select a line that something wrote.", markup=False)
        else:
            self.follow(subject)

    @on(LinesView.Followed)
    def _followed(self, message: LinesView.Followed) -> None:
        if message.view.id == "conversation" and isinstance(message.subject, TurnSubject):
            self.jump(self.timeline.conversation.turns_by_id[message.subject.turn_id].number)
        else:
            self.follow(message.subject)

    def follow(self, subject: Hashable) -> None:
        """Go where a line leads."""
        match subject:
            case AnswerSubject(key):
                answer = next((one for one in self.timeline.answers() if key_of(one) == key), None)
                if answer is not None:
                    self.explain(answer)
            case TurnSubject(turn_id):
                self.jump(self._heard_at(turn_id))
            case PositionSubject(turn, backend):
                self.jump(turn, backend)
            case DecisionSubject(backend, _, _, str(point)):
                self.follow_to_write(StoredSubject(backend, "", point, ()))
            case DecisionSubject():
                self.look_at_decision(subject, _NOT_STORED)
            case ValueSubject() | StoredSubject() | PieceSubject():
                self.follow_to_write(subject)
            case _:
                pass

    def look_at_decision(self, subject: DecisionSubject, note: str) -> None:
        """To where a promotion candidate was judged, and there to the line that tells of it."""
        self.jump(subject.turn, subject.backend, note)
        self.architectures.select(subject.backend, subject)

    def follow_to_write(self, subject: WrittenSubject) -> None:
        """To the turn and the command that wrote something."""
        origin = origin_of(self.timeline, subject, self.cursor)
        if origin is None:
            self.notify("Who wrote this is not on record at this position.", markup=False)
        else:
            self.jump(origin.turn, origin.backend, origin_words(origin))

    # ---- answers -------------------------------------------------------------------------------------------

    def explain(self, answer: Answer) -> None:
        """Open the page that says why an answer is what it is."""
        self.minimize()  # what is jumped to from there must have been laid out by then
        self.app.push_screen(WhyScreen(self.timeline, answer), self.go)

    def action_results(self) -> None:
        """Open the results, as far as there are any."""
        table = AnswersTable.until(self.timeline, self.timeline.last_turn)
        if not len(table):
            self.notify("No question was asked yet: G plays on to the questions.", markup=False)
            return
        self.minimize()
        self.app.push_screen(ResultsScreen(self.timeline, table), self.go)

    def look_at_evidence(self, question: Question) -> None:
        """Move to where the answer of a question was said."""
        known = self.timeline.conversation.turns_by_id
        turns = [known[turn] for turn in question.evidence if turn in known]
        self.choose_turns(frozenset(turn.id for turn in turns))
        if not turns:
            self.notify("No turn is named as the evidence of this question.", markup=False)
            return
        self.jump(turns[0].number)
        self.paint()

    # ---- what changed --------------------------------------------------------------------------------------

    def compared(self, bases: list[DiffBase]) -> None:
        """Compare with the base after the present one."""
        place = bases.index(self.base) if self.base in bases else 0
        self.base = bases[(place + 1) % len(bases)]
        self.paint()

    def action_beside(self) -> None:
        """Before and after of the focused state, side by side."""
        view = self.focused
        subject = (view.selected or view.first_subject) if isinstance(view, LinesView) else None
        if not isinstance(subject, ValueSubject):
            self.notify("Focus a panel that shows a state first.", markup=False)
            return
        before = self.timeline.state_at(subject.backend, subject.key, self.base.position_before(self.cursor))
        after = self.timeline.state_at(subject.backend, subject.key, self.cursor)
        titles = f"turn {self.base.position_before(self.cursor)}", f"turn {self.cursor}"
        self.app.push_screen(BesideScreen(subject.key, before, after, titles))

    def action_next_page(self) -> None:
        """The next page of panels."""
        self.architectures.next_page()
