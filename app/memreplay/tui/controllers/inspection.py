"""Inspecting: what wrote a line, why an answer is what it is, what changed, and the biography of a fact."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from memreplay.conversations.models import Question, Turn
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.engine.events import TestScored
from memreplay.timeline.timeline import Answer
from memreplay.tui.controllers import ReplayHost
from memreplay.tui.controllers.navigation import Navigation
from memreplay.tui.requests import (
    Decision,
    Destination,
    Evidence,
    FromWhy,
    Hearing,
    OtherAnswer,
    Position,
    ResultsWanted,
    WriterCalled,
)
from memreplay.tui.screens.biography import BiographyScreen
from memreplay.tui.screens.browser import BrowserScreen
from memreplay.tui.screens.dialogs import BesideScreen, PickScreen
from memreplay.tui.screens.results import OfConversation, ResultsScreen
from memreplay.tui.screens.tests import Opened, TestsScreen
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.sources import ReplaySource
from memreplay.tui.widgets.architectures import Architectures
from memreplay.tui.widgets.conversation import ConversationView
from memreplay.views.panels import MARKED, diff_bases, short_key
from memreplay.views.panels.answers import AnswersTable, key_of
from memreplay.views.panels.conversation import turn_words
from memreplay.views.panels.results import Matrix, ResultsChoice
from memreplay.views.panels.stores import sides
from memreplay.views.panels.tests import shows_tests
from memreplay.views.subjects import (
    AnswerSubject,
    CallSubject,
    DecisionSubject,
    PieceSubject,
    PositionSubject,
    StoredSubject,
    TurnSubject,
    ValueSubject,
    WholeStateSubject,
    WrittenSubject,
    origin_of,
    origin_words,
)
from memreplay.views.text import one_line

_NOT_RECORDED = "What these memories stored and retrieved was not recorded: this run was imported."
_MOST_TURNS_OF_ONE_WRITE = 2
_NOT_STORED = "judged at this turn, and not promoted; what a scratchpad notes does not count as stored · ⌫ returns"


class Inspection:
    """Follows a line to where it came from, and opens the screens that explain it."""

    def __init__(
        self,
        source: ReplaySource,
        retrievals: RetrievalIndex,
        navigation: Navigation,
        conversation: ConversationView,
        architectures: Architectures,
        host: ReplayHost,
    ) -> None:
        self.base = MARKED
        """The position with which the panels compare."""
        self._led_here: tuple[int, str] | None = None
        """The position of the last jump because of a turn, and that turn: the subject of ``f`` there."""
        self._source = source
        self._timeline = source.timeline
        self._retrievals = retrievals
        self._navigation = navigation
        self._conversation = conversation
        self._architectures = architectures
        self._host = host

    # ---- following a line ----------------------------------------------------------------------------------

    def follow_selected(self) -> None:
        """Jump to the write behind the selected line, or behind the first line that has one."""
        subject = self._subject_in_focus()
        if not self._source.shows_memory:
            self._host.report(_NOT_RECORDED)
        elif subject is None or isinstance(subject, WholeStateSubject):
            self._host.report("Focus a panel (tab or 1 2 3) and select a line that something wrote.")
        else:
            self.follow(subject)

    def _subject_in_focus(self) -> Hashable | None:
        view = self._host.focused_view
        return None if view is None else view.selected or view.first_subject

    def follow(self, subject: Hashable) -> None:
        """Follow the link of a line."""
        match subject:
            case AnswerSubject(key):
                answer = next((one for one in self._timeline.answers() if key_of(one) == key), None)
                if answer is not None:
                    self.explain(answer)
            case TurnSubject(turn_id):
                self._navigation.jump(self._observed_at(turn_id))
            case PositionSubject(turn, backend):
                self._navigation.jump(turn, backend)
            case DecisionSubject(backend, _, _, str(point)):
                self._to_write(StoredSubject(backend, "", point, ()))
            case DecisionSubject():
                self._to_decision(subject, _NOT_STORED)
            case StoredSubject(turns=turns) if len(turns) > _MOST_TURNS_OF_ONE_WRITE:
                self._choose_turn(subject)
            case ValueSubject() | StoredSubject() | PieceSubject():
                self._to_write(subject)
            case _:
                pass

    def _choose_turn(self, subject: StoredSubject) -> None:
        """Ask which turn to go to, if a passage of several exchanges was written at several turns."""
        known = self._timeline.conversation.turns_by_id
        turns = [known[turn] for turn in subject.turns if turn in known]
        names = [f"turn {turn_words(turn)}  {one_line(turn.text)}" for turn in turns]

        def chosen(place: int | None) -> None:
            if place is not None:
                self._navigation.jump(self._observed_at(turns[place].id), subject.backend)

        self._host.open_screen(PickScreen("go to where memory received", names), chosen)

    def go(self, destination: Destination | None, reopen: Callable[[], None] | None = None) -> None:
        """Go where another screen sends the user. Going back from there calls ``reopen``."""
        match destination:
            case None:
                pass
            case Evidence(question):
                self._to_evidence(question)
            case FromWhy(further, answer):
                self.go(further)
                self._navigation.on_return(lambda: self.explain(answer))
            case Hearing(backend, turn_id, note):
                self._navigation.jump(self._observed_at(turn_id), backend, note)
                self._led_here = self._navigation.cursor, turn_id
            case Position(turn, backend, note):
                self._navigation.jump(turn, backend, note)
            case WriterCalled(backend, turn, note):
                self._navigation.jump(turn, backend, note)
                self._architectures.select(backend, CallSubject(backend, turn, 1))
            case Decision(subject, note):
                self._to_decision(subject, note)
            case OtherAnswer(step, answer):
                self.explain(self._other_answer(answer, step))
        if reopen is not None:
            self._navigation.on_return(reopen)

    def _observed_at(self, turn_id: str) -> int:
        """Return the position at which memories ingest a turn: the end of its exchange."""
        return self._timeline.observed_at(turn_id) or self._navigation.cursor

    def _to_write(self, subject: WrittenSubject) -> None:
        origin = origin_of(self._timeline, subject, self._navigation.cursor)
        if origin is None:
            self._host.report("No write of this is recorded up to this position.")
        else:
            self._navigation.jump(origin.turn, origin.backend, origin_words(origin, self._timeline))

    def _to_decision(self, subject: DecisionSubject, note: str) -> None:
        """Go to the turn that judged a promotion candidate, and to its line in the panel."""
        self._navigation.jump(subject.turn, subject.backend, note)
        self._architectures.select(subject.backend, subject)
        judged = self._timeline.ledger(subject.backend).at(self._navigation.cursor)
        sources = [one.sources[0] for one in judged if one.candidate_id == subject.candidate_id and one.sources]
        if sources:
            self._led_here = self._navigation.cursor, sources[0]

    def _to_evidence(self, question: Question) -> None:
        """Go to the first turn that holds the answer of a question."""
        known = self._timeline.conversation.turns_by_id
        turns = [known[turn] for turn in question.evidence if turn in known]
        self._conversation.highlight(frozenset(turn.id for turn in turns))
        if turns:
            self._navigation.jump(turns[0].number)
            self._host.paint()
        else:
            self._host.report("This question names no turn as its evidence.")

    # ---- results -------------------------------------------------------------------------------------------

    def explain(self, answer: Answer) -> None:
        """Open the screen that explains an answer."""
        self._host.minimize()  # so that panels are laid out when that screen jumps back into them
        source = self._source
        self._host.open_screen(WhyScreen(self._timeline, answer, source.load_annotations, source.settings), self.go)

    def _other_answer(self, answer: Answer, step: int) -> Answer:
        """Return the next or previous wrong answer in the order of the results; the same one if there is none."""
        table = AnswersTable.until(self._timeline, self._timeline.last_turn)
        matrix, choice = Matrix(table), ResultsChoice()
        cells = [
            (found, matrix.wanted(choice, listed, column))
            for listed in table.questions
            for column, system in enumerate(table.systems)
            if (found := table.answer(listed, system)) is not None
        ]
        here = next((place for place, (found, _) in enumerate(cells) if found is answer), -1)
        onwards = cells[here + 1 :] if step > 0 else cells[: max(here, 0)][::-1]
        other = next((found for found, wanted in onwards if wanted), None)
        if other is None:
            self._host.report(f"No {'further' if step > 0 else 'earlier'} wrong answer.")
        return other or answer

    def show_results(self) -> None:
        """Open the results so far: of the questions, or of the tests."""
        if shows_tests(self._timeline):
            if any(isinstance(event, TestScored) for event in self._timeline.tests):
                self._host.open_screen(TestsScreen(Opened(self._timeline.conversation.id, self._source)))
            else:
                live = self._source.handle is not None
                self._host.report("No test is over yet: G plays all of them." if live else "No test was scored.")
            return
        answers = OfConversation(self._source)
        if not len(answers.table):
            self._host.report(self._no_answers)
            return
        self._host.minimize()
        self._host.open_screen(ResultsScreen(answers, self._source.results))

    @property
    def _no_answers(self) -> str:
        if not self._timeline.conversation.questions:
            return "This conversation has no questions: a asks one by hand; memreplay datasets draft drafts some."
        if self._source.handle is not None:
            return "No question was asked yet: G plays the remaining turns and asks them."
        if self._source.is_unfinished:
            return f"This run was interrupted before its questions: {self._source.how_it_continues}."
        return "No question was asked in this recording: a asks one by hand."

    def show_run(self) -> None:
        """Open the results of all conversations of the recorded run."""
        if not self._source.shows_memory:
            self.show_results()  # an imported run is one conversation
        elif self._source.path is None:
            self._host.report("A live run is one conversation: r lists all its questions.")
        else:
            self._host.minimize()
            self._host.post_message(ResultsWanted(self._source.path))

    def next_page(self) -> None:
        """Show the next page of panels."""
        if self._source.shows_memory:
            self._architectures.next_page()
        else:
            self._host.report(_NOT_RECORDED)

    def browse(self) -> None:
        """Open the browser of what the focused memory holds."""
        if not self._source.shows_memory:
            self._host.report(_NOT_RECORDED)
            return
        self._host.minimize()
        browser = BrowserScreen(
            self._timeline,
            self._retrievals,
            self._source.backends,
            self._architectures.focused_backend,
            self._navigation.cursor,
            self._navigation.frontier,
            self._source.annotations.bookmarks(),
        )
        self._host.open_screen(browser, self.go)

    # ---- biographies ---------------------------------------------------------------------------------------

    def show_biography(self) -> None:
        """Open the biography of the selected turn, of the turn that led here, or of the turn at the cursor."""
        if not self._source.shows_memory:
            self._host.report(_NOT_RECORDED)
            return
        view, turns = self._host.focused_view, self._timeline.conversation.turns
        match view.selected if view is not None else None:
            case TurnSubject(turn_id) | StoredSubject(turns=(turn_id, *_)):
                turn = self._timeline.conversation.turns_by_id[turn_id]
            case _ if self._led_here is not None and self._led_here[0] == self._navigation.cursor:
                turn = self._timeline.conversation.turns_by_id[self._led_here[1]]
            case _ if turns:
                turn = turns[max(0, min(self._navigation.cursor, len(turns)) - 1)]
            case _:
                return
        self._open_biography(turn, self._architectures.focused_backend)

    def _open_biography(self, fact: Turn | Question, backend: str | None) -> None:
        self._host.open_screen(BiographyScreen(self._timeline, self._retrievals, fact, backend), self.go)

    # ---- what changed --------------------------------------------------------------------------------------

    def compare(self) -> None:
        """Compare with the next base."""
        if not self._source.shows_memory:
            self._host.report(_NOT_RECORDED)
            return
        bases = diff_bases(self._source.annotations.bookmarks(), self._source.backends)
        place = bases.index(self.base) if self.base in bases else 0
        self.base = bases[(place + 1) % len(bases)]
        self._host.paint()

    def show_side_by_side(self) -> None:
        """Open the focused state as it was before and after."""
        subject = self._subject_in_focus()
        if not isinstance(subject, ValueSubject | WholeStateSubject):
            focus = "Focus a panel that shows a state first."
            self._host.report(focus if self._source.shows_memory else _NOT_RECORDED)
            return
        cursor = self._navigation.cursor
        earlier = self.base.position_before(cursor)
        before, after = (
            self._timeline.state_at(subject.backend, subject.key, position) for position in (earlier, cursor)
        )
        key = short_key(subject.key, self._timeline.conversation.id, subject.backend)
        self._host.open_screen(BesideScreen(key, sides(before, after), (f"turn {earlier}", f"turn {cursor}")))
