"""The results: scores above, a row per question, and the selected question in full below.

One screen lists a conversation or a whole run; what changed between two runs is the third of its tabs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from textual import events, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.content import Content

from memreplay.debugger.budget import BudgetCurves, budget_curves
from memreplay.debugger.recorded_sweep import sweeps_of_rankings
from memreplay.errors import MemreplayError
from memreplay.numbers import counted
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.requests import (
    AgainstWanted,
    Destination,
    Evidence,
    FromWhy,
    OtherAnswer,
    ResultsWanted,
    VisitWanted,
)
from memreplay.tui.screens import KeyBar, Listing, ListingScreen, Scores
from memreplay.tui.screens.budget import BudgetScreen
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen, opening
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.sources import ReplaySource, labels_in, recorded, recorded_run
from memreplay.tui.terminal import keys_of
from memreplay.tui.widgets.lines_view import Bar, Fixed, Legend
from memreplay.views.panels.answers import (
    AnswersTable,
    Labels,
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
from memreplay.views.text import Span, one_line, shown_key

T = TypeVar("T")

_ROOMY = 30
"""Rows of a screen from which on panels have borders and replies two rows."""

_MOST_OF_SCORES = 11
_NO_QUESTION = "This run asked no questions. To list the results of tests, open their conversation and press r."
_ANOTHER_RUN = "This file has a newer run now: reopen the list."


class Listed(Protocol):
    """The content of a list of results. What is not at hand is read in a thread.

    ``tab`` is the action that switches to it, ``name`` says whose results these are, ``source`` is the conversation
    if it is open: its answers are at hand.
    """

    @property
    def tab(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def picture_name(self) -> str: ...

    @property
    def path(self) -> Path | None: ...

    @property
    def source(self) -> ReplaySource | None: ...

    def read(self) -> tuple[AnswersTable, str]:
        """Return the answers, and how much there is of them in words."""

    def attributed(self) -> Iterator[tuple[str, Labels]]:
        """Yield what is known of where facts were lost, again and again, with how far this has got."""

    def of_timelines(self, make: Callable[[Iterable[Timeline], Mapping[str, Any]], T]) -> T:
        """Return what ``make`` makes of the timelines listed and the settings of their run."""

    def open(self, conversation: str) -> ReplaySource:
        """Return one of the conversations."""


class OfConversation:
    """The answers of an open conversation."""

    tab = "conversation"

    def __init__(self, source: ReplaySource) -> None:
        self.source, self.path = source, source.path
        self.name = source.timeline.conversation.id
        self.picture_name = f"{self.name}-results"
        self.table = AnswersTable.until(source.timeline, source.timeline.last_turn, source.settings.get("top_k"))

    def read(self) -> tuple[AnswersTable, str]:
        return self.table, asked_of_all(self.table)

    def attributed(self) -> Iterator[tuple[str, Labels]]:
        yield "", labels_of(self.source.timeline, self.table)

    def of_timelines(self, make: Callable[[Iterable[Timeline], Mapping[str, Any]], T]) -> T:
        return make([self.source.timeline], self.source.settings)

    def open(self, conversation: str) -> ReplaySource:
        return self.source


class OfRun:
    """The answers of a recording's newest run."""

    tab = "run"
    source = None

    def __init__(self, path: Path) -> None:
        self.path, self.name, self.picture_name = path, path.name, f"{path.stem}-run"

    def read(self) -> tuple[AnswersTable, str]:
        self._run = run = recorded_run(self.path)
        count = len(run.conversations)
        of = f"{count} conversations" if count > 1 else "one conversation"
        parts = [f"{counted(len(run.table.questions), 'question')} of {of}", asked_of_all(run.table)]
        state = "" if run.status == "finished" else run.status
        return run.table, " · ".join(part for part in (*parts, state) if part)

    def attributed(self) -> Iterator[tuple[str, Labels]]:
        """Yield the labels on record; if there are none, attribute one conversation after the other."""
        if self._run.labels is not None:
            yield "", self._run.labels
            return
        labels: Labels = {}
        for done, conversation in enumerate(self._run.conversations, start=1):
            labels = {**labels, **labels_in(self.path, self._run.id, conversation)}
            yield f"attributing failures: {done} of {counted(len(self._run.conversations), 'conversation')}", labels

    def of_timelines(self, make: Callable[[Iterable[Timeline], Mapping[str, Any]], T]) -> T:
        with closing(Recording.open(self.path)) as recording, reporting_damage(self.path):
            run = recording.run()
            timelines = (recording.timeline(run.id, id_) for id_ in recording.conversation_ids(run.id))
            return make(timelines, run.settings)

    def open(self, conversation: str) -> ReplaySource:
        return recorded(self.path, conversation)


def asked_of_all(table: AnswersTable) -> str:
    """Return how many questions were asked, where some were not: the run is not over, or was interrupted."""
    asked = sum(any(table.answer(listed, system) for system in table.systems) for listed in table.questions)
    return "" if asked == len(table.questions) else f"{asked:,} of {len(table.questions):,} questions were asked"


_TABS = {"conversation": "conversation", "run": "run", "against": "compared"}
"""The actions that switch to the tabs, and the names of these."""


class ResultsTab(ListingScreen[None]):
    """One of the tabs of the results: of a conversation, of its whole run, or compared with another run."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: dict[tuple[str, int], ReplaySource] = {}
        """The conversations that were opened; of a comparison on side 0 or 1."""

    @property
    @abstractmethod
    def tab(self) -> str:
        """Return the action that switches to this tab."""

    @property
    @abstractmethod
    def recording(self) -> Path | None:
        """Return the recording that the other tabs list; None of a live run."""

    @property
    @abstractmethod
    def conversation(self) -> str | None:
        """Return the conversation of what is selected."""

    @abstractmethod
    def open_source(self, conversation: str, side: int) -> ReplaySource:
        """Return one of the conversations; in a thread."""

    @property
    def tabs(self) -> list[Span]:
        """Return the names of the tabs, this one marked, the others with their keys."""
        keys = keys_of(self.PLACE, getattr(self.app, "rebound", {}))
        return [
            Span(f" {name.upper()} ", "recorded")
            if call == self.tab
            else Span(f" {' '.join([*map(shown_key, keys[f'{self.PLACE}.{call}'][:1]), name])} ", "dim")
            for call, name in _TABS.items()
        ]

    def action_conversation(self) -> None:
        if self.tab == "conversation":
            self.action_leave()
        elif self.conversation is not None:
            self._switch(self.conversation)

    def action_run(self) -> None:
        if self.tab == "run":
            self.action_leave()
        else:
            self._switch(None)

    def _switch(self, conversation: str | None) -> None:
        if self.recording is None:
            self.notify("A live run is one conversation: r lists all its questions.", markup=False)
        else:
            self.post_message(ResultsWanted(self.recording, conversation))

    def action_against(self) -> None:
        """Choose what to compare with: a branch, or another recording."""
        if self.tab == "against":
            self.action_leave()
        else:
            self.post_message(AgainstWanted(self.recording, next(iter(self.sources.values()), None)))

    async def source(self, conversation: str, side: int = 0) -> ReplaySource | None:
        """Return a conversation; None if it cannot be read, after a notification."""
        place = conversation, side
        if place not in self.sources:
            try:
                with opening(self, conversation):
                    self.sources[place] = await self.in_thread(self.open_source, conversation, side)
            except MemreplayError as error:
                self.notify(str(error), severity="error", markup=False)
                return None
        return self.sources[place]


class Details(Fixed):
    """The selected question in full."""


class ResultsScreen(ResultsTab):
    """Walks through a matrix of questions. ``choice`` is what the user chose to see, kept for the next visit."""

    PLACE: ClassVar[Place] = "results"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)
    VERTICAL_BREAKPOINTS = [(0, "-short"), (_ROOMY, "-tall")]
    document: MatrixDocument

    def __init__(self, listed: Listed, choice: ResultsChoice, explains: Answer | None = None) -> None:
        """``explains`` is an answer whose explanation is opened at once."""
        super().__init__()
        self.listed, self._choice, self._explains = listed, choice, explains
        if listed.source is not None:
            self.sources[listed.name, 0] = listed.source
        self._matrix = Matrix(AnswersTable((), (), ()))
        self.document = MatrixDocument(self._matrix, ())
        self._extent = self._progress = self._heading = ""

    @property
    def tab(self) -> str:
        return self.listed.tab

    @property
    def recording(self) -> Path | None:
        return self.listed.path

    @property
    def conversation(self) -> str | None:
        selected = self.document.selected_question
        return selected.conversation if selected is not None else None

    @property
    def picture_name(self) -> str:
        return self.listed.picture_name

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        yield Scores(id="scores", classes="panel")
        yield Bar(id="columns")
        yield Listing(id="questions", classes="panel")
        yield Details(id="details", classes="panel")
        yield Legend(id="legend")
        yield KeyBar()

    # ---- reading -------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        for screen in self.app.screen_stack:
            source = getattr(screen, "source", None)
            if isinstance(source, ReplaySource) and source.path is not None and source.path == self.recording:
                self.sources.setdefault((source.timeline.conversation.id, 0), source)
        self.say_header()
        if self.listed.source is not None:
            table, self._extent = self.listed.read()
            self.show_table(table)
            if self._explains is not None:
                self.explain(self._explains)
        self._read()

    def _say(self, progress: str) -> None:
        self._progress = progress
        listing = self.query_one(Listing)
        # A short screen has no lower borders.
        above = progress if self._is_short else ""
        listing.border_title = Content(" · ".join(filter(None, (self._heading, above))))
        listing.border_subtitle = Content(progress)

    @work(group="reading", exclusive=True)
    async def _read(self) -> None:
        """Read the answers unless they are at hand, then attribute what went wrong."""
        try:
            if self.listed.source is None:
                self._say("reading the answers …")
                table, self._extent = await self.in_thread(self.listed.read)
                if not len(table):
                    self.notify(_NO_QUESTION, markup=False)
                self.show_table(table)
                if self._explains is not None:
                    self.explain(self._explains)
            self._say("attributing failures …")
            found = self.listed.attributed()
            while (known := await self.in_thread(next, found, None)) is not None:
                self._say(known[0])
                self.show_labels(known[1])
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)
        self._say("")

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
        self._heading = f"questions · {narrowed}"
        self._say(self._progress)
        listing.show(self.document, in_view=self.document.cursor if chosen else None)
        kinds = "≡ by choice, else in words  " if self._matrix.table.by_choice else ""
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
        count = self.count.shown
        self.query_one("#header", Bar).say(
            *self.tabs,
            Span(f"  {one_line(self.listed.name)}", "strong"),
            Span(f"  {self._extent}" if self._extent else "", "dim"),
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
        """Return the row of a question by its number in the run; None if the filter hides it."""
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

    def action_breakdown(self) -> None:
        self._choice.breakdown = (self._choice.breakdown + 1) % len(breakdowns(self._matrix))
        self._show_scores()

    # ---- leaving -------------------------------------------------------------------------------------------

    def action_budget(self) -> None:
        """Show how much reaches the prompt at which budget."""

        def curves(top_k: int | None) -> BudgetCurves:
            return self.listed.of_timelines(lambda timelines, settings: budget_curves(timelines, settings, top_k))

        if len(self._matrix.table):
            tried = partial(self.listed.of_timelines, sweeps_of_rankings)
            self.app.push_screen(BudgetScreen(self.listed.name, curves, tried))

    def action_why(self) -> None:
        self._explain_selected(to_write=False)

    def action_write(self) -> None:
        """Open the write directly; the why screen stays below it on the stack."""
        self._explain_selected(to_write=True)

    def _explain_selected(self, *, to_write: bool) -> None:
        answer = self.document.selected_answer
        if answer is None:
            self.notify("This architecture was not asked this question.", markup=False)
        else:
            self.explain(answer, to_write=to_write)

    def action_jump(self) -> None:
        """Open the replay at the evidence of the selected question."""
        listed = self.document.selected_question
        if listed is not None:
            self._with_source(
                listed.conversation, lambda source: self._visit(source, Evidence(listed.question), None)
            )

    def explain(self, answer: Answer, *, to_write: bool = False) -> None:
        """Open the page that explains an answer."""
        self._with_source(answer.asked.conversation, lambda source: self._explain_in(source, answer, to_write))

    def _with_source(self, conversation: str, then: Callable[[ReplaySource], None]) -> None:
        """Do something with a conversation: at once if it is open, so that the next key acts on what it opens."""
        if (conversation, 0) in self.sources:
            then(self.sources[conversation, 0])
        else:
            self._open_and(conversation, then)

    @work(group="opening", exclusive=True)
    async def _open_and(self, conversation: str, then: Callable[[ReplaySource], None]) -> None:
        source = await self.source(conversation)
        if source is not None:
            then(source)

    def _explain_in(self, source: ReplaySource, answer: Answer, to_write: bool) -> None:
        key = key_of(answer)
        found = next((one for one in source.timeline.answers() if key_of(one) == key), None)
        if found is None:
            self.notify(_ANOTHER_RUN, markup=False)
            return
        why = WhyScreen(source.timeline, found, source.load_annotations, source.settings, source, to_write=to_write)
        self.app.push_screen(why, partial(self._left_why, source))

    def _left_why(self, source: ReplaySource, destination: Destination | None) -> None:
        match destination:
            case None:
                pass
            case OtherAnswer(step, answer):
                self.explain(self.to_other_answer(step) or answer)
            case FromWhy(further, answer):
                self._visit(source, further, answer)
            case _:
                self._visit(source, destination, None)

    def _visit(self, source: ReplaySource, destination: Destination, answer: Answer | None) -> None:
        """Send the user to the replay. Going back leads here again, and to the explanation of ``answer``."""
        self.post_message(VisitWanted(source, destination, partial(self._come_back, self.app, answer)))

    def _come_back(self, app: App[None], answer: Answer | None) -> None:
        if self not in app.screen_stack:
            app.push_screen(ResultsScreen(self.listed, self._choice, answer))
        elif answer is not None:
            self.explain(answer)

    def open_source(self, conversation: str, side: int) -> ReplaySource:
        return self.listed.open(conversation)
