"""The results matrix: scores above, a row per question, and the selected question in full below."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import ScreenResultType

from memreplay.debugger.budget import BudgetCurves, budget_curves
from memreplay.debugger.recorded_sweep import sweeps_of_rankings
from memreplay.errors import MemreplayError
from memreplay.recording.bodies import reporting_damage
from memreplay.recording.reader import Recording
from memreplay.timeline.annotations import Annotations
from memreplay.timeline.timeline import Answer, AskKey, Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.requests import Destination, Evidence, OtherAnswer, VisitWanted, WholeRun
from memreplay.tui.screens import KeyBar, Listing, ListingScreen, Scores
from memreplay.tui.screens.budget import BudgetScreen
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.sources import RecordedRun, ReplaySource, labels_in, recorded, recorded_run
from memreplay.tui.widgets.lines_view import Bar, LinesView
from memreplay.views.panels.answers import (
    AnswersTable,
    Labels,
    ListedQuestion,
    key_of,
    letters_legend,
    reader_label,
)
from memreplay.views.panels.results import (
    ALL,
    UNCERTAIN_LEGEND,
    Matrix,
    MatrixDocument,
    ResultsChoice,
    breakdowns,
    has_uncertain,
    key_of_question,
    labels_of,
    question_details,
    scores_lines,
    title_of,
)
from memreplay.views.text import Span, one_line

T = TypeVar("T")

_ROOMY = 30
"""Rows of a screen from which on panels have borders and replies two rows."""

_MOST_OF_SCORES = 11


class Details(LinesView, can_focus=False):
    """The selected question in full."""


class QuestionsScreen(ListingScreen[ScreenResultType]):
    """Walks through a matrix of questions. ``choice`` is what the user chose to see, kept for the next visit."""

    VERTICAL_BREAKPOINTS = [(0, "-short"), (_ROOMY, "-tall")]
    document: MatrixDocument

    def __init__(self, table: AnswersTable, choice: ResultsChoice) -> None:
        super().__init__()
        self._choice = choice
        self._matrix = Matrix(table)
        self.document = MatrixDocument(self._matrix, ())

    @property
    @abstractmethod
    def header(self) -> tuple[str, str, str]:
        """Return what the header says: the kind of results, whose they are, and how much there is of them."""

    @abstractmethod
    def explain(self, answer: Answer, *, to_write: bool = False) -> None:
        """Open the page that explains an answer."""

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        yield Scores(id="scores", classes="panel")
        yield Bar(id="columns")
        yield Listing(id="questions", classes="panel")
        yield Details(id="details", classes="panel")
        yield Bar(id="legend")
        yield KeyBar()

    # ---- showing -------------------------------------------------------------------------------------------

    def show_table(self, table: AnswersTable) -> None:
        """Replace the answers; verdicts are filled in asynchronously."""
        self._matrix = Matrix(table)
        self._choose_questions()

    def show_labels(self, labels: Labels) -> None:
        """Attribution has got further: add failure labels."""
        self._matrix = Matrix(self._matrix.table, labels)
        self._choose_questions()

    def _choose_questions(self) -> None:
        """Filter and sort again. The selected question stays selected if it passes."""
        chosen = self._matrix.select(self._choice)
        self.document = MatrixDocument(self._matrix, chosen)
        self.document.cursor = self.document.place_of(self._choice.question)
        self._point_at_column()
        self._size_details()
        self._show_scores()
        listing = self.query_one(Listing)
        total, shown = len(self._matrix.table.questions), len(chosen)
        narrowed = f"{self._choice.in_short} · {shown:,} of {total:,}" if self._choice.narrows else f"{total:,}"
        listing.border_title = Content(f"questions · {narrowed}")
        listing.show(self.document, in_view=self.document.cursor if chosen else None)
        kinds = "≡ by choice, else in words  " if self._matrix.has_both_kinds else ""
        bounds = f"  {UNCERTAIN_LEGEND}" if has_uncertain(self._matrix) else ""
        self.query_one("#legend", Bar).say(Span(f" {kinds}{letters_legend(self._matrix.labels)}{bounds}", "dim"))
        self._show_columns()
        self._show_selected()

    def _show_columns(self) -> None:
        width = self.query_one(Listing).layout_now.width
        self.query_one("#columns", Bar).show([self.document.heading(width, self._choice)])

    def _show_scores(self) -> None:
        scores = self.query_one("#scores", Scores)
        tables = breakdowns(self._matrix)
        by = tables[self._choice.breakdown % len(tables)]
        lines = scores_lines(self._matrix, by, scores.layout_now.width)
        rows = min(len(lines), _MOST_OF_SCORES, max(3, self.size.height // 3))
        scores.styles.height = rows + (1 if self._is_short else 2)
        readers = ", ".join(reader_label(model) for model in self._matrix.table.models)
        scores.border_title = Content(title_of(self._matrix, by))
        scores.border_subtitle = Content(f"read by {readers}" if readers else "")
        scores.show(lines)

    def _show_selected(self) -> None:
        """Show the selected question in full, and where it is in the list."""
        selected = self.document.selected_question
        details = self.query_one(Details)
        if selected is None:
            details.border_title = Content("")
            details.show([])
        else:
            details.border_title = Content(f"question {self._matrix.numbers[selected]}")
            self._choice.question = key_of_question(selected)
            details.show(question_details(self._matrix, selected, self.document.column, roomy=not self._is_short))
        self.say_header()

    def say_header(self) -> None:
        kind, whose, extent = self.header
        count = self.count.shown
        self.query_one("#header", Bar).say(
            Span(f" {kind} ", "recorded"),
            Span(f"  {one_line(whose)}", "strong"),
            Span(f"  {extent}" if extent else "", "dim"),
            Span(f"  {self.document.cursor + 1:,}/{len(self.document):,}" if len(self.document) else "", "title"),
            Span(f"  count {count}" if count else "", "warn"),
        )

    @property
    def _is_short(self) -> bool:
        return self.size.height < _ROOMY

    def _size_details(self) -> None:
        """Room for the question, the expected answer and each reply; fixed, so that moving lays out nothing."""
        systems = len(self._matrix.table.systems)
        wanted = 4 + systems if self._is_short else 6 + systems + (systems + 1) // 2
        self.query_one(Details).styles.height = min(wanted, self.size.height * 2 // 5)

    def on_resize(self, event: events.Resize) -> None:
        self._size_details()
        self._show_scores()
        self.call_after_refresh(self._show_columns)
        self._show_selected()

    # ---- moving --------------------------------------------------------------------------------------------

    def point_at(self, index: int) -> None:
        self.document.cursor = max(0, min(index, len(self.document) - 1))
        self._point_at_column()
        self.repaint_list()

    def moved(self) -> None:
        self._show_selected()

    def choose(self) -> None:
        self.action_why()

    def place_of_number(self, number: int) -> int | None:
        """Return questions keep the number that they have in the run."""
        numbers = [self._matrix.numbers[listed] for listed in self.document.questions]
        return numbers.index(number) if number in numbers else None

    def _point_at_column(self) -> None:
        """Point at the chosen column; until one is chosen, at the first answer that the filter asks for."""
        selected = self.document.selected_question
        column = self._choice.column
        if column is None:
            column = self._matrix.first_wanted(self._choice, selected) if selected is not None else 0
        self.document.column = max(0, min(column, len(self._matrix.table.systems) - 1))

    def action_next_answer(self) -> None:
        self._point_at_answer(self.document.column + 1)

    def action_previous_answer(self) -> None:
        self._point_at_answer(self.document.column - 1)

    def _point_at_answer(self, column: int) -> None:
        self._choice.column = max(0, min(column, len(self._matrix.table.systems) - 1))
        self._point_at_column()
        self.query_one(Listing).repaint()
        self._show_selected()

    def action_next_wrong(self) -> None:
        self.to_other_answer(1)

    def action_previous_wrong(self) -> None:
        self.to_other_answer(-1)

    def to_other_answer(self, step: int) -> Answer | None:
        """Select the next or previous answer that the filter asks for, and return it; None if there is none."""
        systems = range(len(self._matrix.table.systems))
        row, column = self.document.cursor, self.document.column
        columns = systems[column + 1 :] if step > 0 else systems[:column][::-1]
        while 0 <= row < len(self.document):
            listed = self.document.questions[row]
            found = next((place for place in columns if self._matrix.wanted(self._choice, listed, place)), None)
            if found is not None:
                self.document.cursor, self.document.column = row, found
                self._choice.column = None
                self.repaint_list()
                return self.document.selected_answer
            row, columns = row + step, systems[::step]
        self.notify(f"No {'further' if step > 0 else 'earlier'} wrong answer under this filter.", markup=False)
        return None

    # ---- choosing ------------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        filters = self._matrix.filters()

        def chosen(index: int | None) -> None:
            if index is not None:
                self._choice.filter = filters[index][0]
                if self._choice.filter == ALL:
                    self._choice.words = ""
                self._choice.column = None
                self._choose_questions()

        names = [f"{name} · {count:,}" for name, count in filters]
        self.app.push_screen(PickScreen("show questions", names), chosen)

    def action_words(self) -> None:
        def typed(words: str | None) -> None:
            if words is not None:
                self._choice.words = words
                self._choose_questions()

        hint = "words of a question, its answer, type or conversation; rag:cut finds what rag cut; empty shows all"
        self.app.push_screen(TypingScreen("show questions with", hint, value=self._choice.words), typed)

    def action_sort(self) -> None:
        columns = self._matrix.sort_columns()

        def chosen(index: int | None) -> None:
            if index is not None:
                again = columns[index] == self._choice.sort
                self._choice.descending = again and not self._choice.descending
                self._choice.sort = columns[index]
                self._choose_questions()

        self.app.push_screen(PickScreen("sort by", columns), chosen)

    def action_reverse(self) -> None:
        self._choice.descending = not self._choice.descending
        self._choose_questions()

    def action_breakdown(self) -> None:
        self._choice.breakdown = (self._choice.breakdown + 1) % len(breakdowns(self._matrix))
        self._show_scores()

    # ---- leaving -------------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, make: Callable[[Iterable[Timeline], Mapping[str, Any]], T]) -> T:
        """Return what ``make`` makes of the timelines listed and the settings of their run; in a thread."""

    def action_budget(self) -> None:
        """Show how much reaches the prompt at which budget."""

        def curves(top_k: int | None) -> BudgetCurves:
            return self.read(lambda timelines, settings: budget_curves(timelines, settings, top_k))

        if len(self._matrix.table):
            self.app.push_screen(BudgetScreen(self.header[1], curves, lambda: self.read(sweeps_of_rankings)))

    def action_why(self) -> None:
        answer = self.document.selected_answer
        if answer is None:
            self.notify("This architecture was not asked this question.", markup=False)
        else:
            self.explain(answer)

    def action_write(self) -> None:
        """Open the write directly; the why screen stays below it on the stack."""
        answer = self.document.selected_answer
        if answer is None:
            self.notify("This architecture was not asked this question.", markup=False)
        else:
            self.explain(answer, to_write=True)


class ResultsScreen(QuestionsScreen[Destination | None]):
    """Returns where the user wants to look in the replay, or None."""

    PLACE: ClassVar[Place] = "results"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(
        self,
        timeline: Timeline,
        table: AnswersTable,
        choice: ResultsChoice,
        load_annotations: Callable[[], Annotations],
        settings: Mapping[str, Any],
    ) -> None:
        super().__init__(table, choice)
        self._settings = settings
        self._load_annotations = load_annotations
        self._timeline = timeline
        self._conversation = timeline.conversation

    @property
    def picture_name(self) -> str:
        return f"{self._conversation.id}-results"

    @property
    def header(self) -> tuple[str, str, str]:
        return "RESULTS", self._conversation.id, asked_of_all(self._matrix.table)

    def on_mount(self) -> None:
        self._choose_questions()
        self._attribute()

    @work(group="attribution", exclusive=True)
    async def _attribute(self) -> None:
        self.show_labels(await self.in_thread(labels_of, self._timeline, self._matrix.table))

    def read(self, make: Callable[[Iterable[Timeline], Mapping[str, Any]], T]) -> T:
        return make([self._timeline], self._settings)

    def explain(self, answer: Answer, *, to_write: bool = False) -> None:
        why = WhyScreen(self._timeline, answer, self._load_annotations, self._settings, to_write=to_write)
        self.app.push_screen(why, self._left_why)

    def _left_why(self, destination: Destination | None) -> None:
        match destination:
            case None:
                pass
            case OtherAnswer(step):
                self.explain(self.to_other_answer(step) or destination.answer)
            case _:
                self.dismiss(destination)

    def action_jump(self) -> None:
        if self.document.selected_question is not None:
            self.dismiss(Evidence(self.document.selected_question.question))

    def action_run(self) -> None:
        self.dismiss(WholeRun())


def asked_of_all(table: AnswersTable) -> str:
    """Return how many questions were asked, where some were not: the run is not over, or was interrupted."""
    asked = sum(any(table.answer(listed, system) for system in table.systems) for listed in table.questions)
    return "" if asked == len(table.questions) else f"{asked:,} of {len(table.questions):,} questions were asked"


_NO_QUESTION = "This run asked no questions. To list the results of tests, open their conversation and press r."

_ANOTHER_RUN = "This file has a newer run now: reopen the list."


class RunScreen(QuestionsScreen[None]):
    """Reads the answers of a recording's newest run in the background, then attributes them."""

    PLACE: ClassVar[Place] = "run"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, path: Path, choice: ResultsChoice) -> None:
        super().__init__(AnswersTable((), (), ()), choice)
        self._path = path
        self._extent = ""

    @property
    def picture_name(self) -> str:
        return f"{self._path.stem}-run"

    @property
    def header(self) -> tuple[str, str, str]:
        return "RUN", self._path.name, self._extent

    def on_mount(self) -> None:
        self.say_header()
        self._say("reading the answers …")
        self._read()

    def _say(self, progress: str) -> None:
        self._progress = progress
        self.query_one(Listing).border_subtitle = Content(progress)

    @work(group="reading", exclusive=True)
    async def _read(self) -> None:
        try:
            run = await self.in_thread(recorded_run, self._path)
            if len(run.table):
                self._show_run(run)
                await self._attribute(run)
            else:
                self._say("")
                self.notify(_NO_QUESTION, markup=False)
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)
            self._say("")

    def _show_run(self, run: RecordedRun) -> None:
        count = len(run.conversations)
        of = f"{count} conversations" if count > 1 else "one conversation"
        parts = [f"{len(run.table.questions):,} questions of {of}", asked_of_all(run.table)]
        state = "" if run.status == "finished" else run.status
        self._extent = " · ".join(part for part in (*parts, state) if part)
        self.show_table(run.table)

    async def _attribute(self, run: RecordedRun) -> None:
        """Show the labels on record; if there are none, attribute one conversation after the other."""
        if run.labels is not None:
            self._say("")
            self.show_labels(run.labels)
            return
        labels: Labels = {}
        for done, conversation in enumerate(run.conversations):
            self._say(f"attributing failures: {done} of {len(run.conversations)} conversations")
            labels = {**labels, **await self.in_thread(labels_in, self._path, run.id, conversation)}
            self.show_labels(labels)
        self._say("")

    def read(self, make: Callable[[Iterable[Timeline], Mapping[str, Any]], T]) -> T:
        with closing(Recording.open(self._path)) as recording, reporting_damage(self._path):
            run = recording.run()
            timelines = (recording.timeline(run.id, id_) for id_ in recording.conversation_ids(run.id))
            return make(timelines, run.settings)

    # ---- into a conversation -------------------------------------------------------------------------------

    def explain(self, answer: Answer, *, to_write: bool = False) -> None:
        self._explain(answer.asked.conversation, key_of(answer), to_write)

    def action_jump(self) -> None:
        if self.document.selected_question is not None:
            self._jump(self.document.selected_question)

    @work(group="opening", exclusive=True)
    async def _explain(self, conversation: str, key: AskKey, to_write: bool) -> None:
        source = await self._opened(conversation)
        if source is None:
            return
        answer = next((one for one in source.timeline.answers() if key_of(one) == key), None)
        if answer is None:
            self.notify(_ANOTHER_RUN, markup=False)
            return
        why = WhyScreen(
            source.timeline, answer, source.load_annotations, source.settings, source, to_write=to_write
        )
        match await self.app.push_screen_wait(why):
            case None:
                pass
            case OtherAnswer(step):
                self.explain(self.to_other_answer(step) or answer)
            case destination:
                self.post_message(VisitWanted(source, destination))

    @work(group="opening", exclusive=True)
    async def _jump(self, listed: ListedQuestion) -> None:
        source = await self._opened(listed.conversation)
        if source is not None:
            self.post_message(VisitWanted(source, Evidence(listed.question)))

    async def _opened(self, conversation: str) -> ReplaySource | None:
        """Return a conversation of the run; None if it cannot be read, after a notification."""
        listing = self.query_one(Listing)
        listing.border_subtitle = Content(f"opening {one_line(conversation)} …")
        try:
            return await self.in_thread(recorded, self._path, conversation)
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)
            return None
        finally:
            listing.border_subtitle = Content(self._progress)
