"""The results: the scores of each system, and every question of a conversation with every answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from textual import work
from textual.binding import BindingType
from textual.content import Content
from textual.screen import ScreenResultType

from memreplay.timeline.annotations import Annotations
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.background import in_thread
from memreplay.tui.panels.answers import ANSWER_LEGEND, AnswersTable, Labels, reader_label, summary_lines
from memreplay.tui.panels.results import QuestionFilter, ResultsDocument, filters_of, labels_of
from memreplay.tui.requests import Destination, Evidence, WholeRun
from memreplay.tui.screens.dialogs import PickScreen
from memreplay.tui.screens.listing import Listing, ListingScreen, Scores
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.text import Span, one_line
from memreplay.tui.widgets.bars import Bar


class QuestionsScreen(ListingScreen[ScreenResultType]):
    """Scores above, questions below; a filter selects those with one failure or those that memories disagree on."""

    document: ResultsDocument

    def __init__(self, table: AnswersTable) -> None:
        super().__init__()
        self._labels: Labels = {}
        self._load(table)

    def _load(self, table: AnswersTable) -> None:
        """List the questions of a table, and select the first answer that is not right."""
        self._table = table
        self._filter = QuestionFilter("all", table.questions)
        self.document = ResultsDocument(table, table.questions)
        self.document.point_at_first_wrong()

    @abstractmethod
    def explain(self, answer: Answer) -> None:
        """Open the page that explains an answer."""

    def on_mount(self) -> None:
        self.query_one("#legend", Bar).say(Span(f" {ANSWER_LEGEND}", "dim"))
        self.show_table()

    def show_table(self) -> None:
        scores = self.query_one("#scores", Scores)
        scores.border_title = Content("scores")
        readers = ", ".join(reader_label(model) for model in self._table.models)
        scores.border_subtitle = Content(f"read by {readers}" if readers else "")
        lines = summary_lines(self._table)
        scores.styles.height = min(len(lines), 8) + 2
        scores.show(lines)
        self._show_questions()

    def show_labels(self, labels: Labels) -> None:
        """Attribution is done: add the failure labels to the list."""
        self._labels = labels
        # A scroll that a key has just caused is applied with the next frame, and must not be lost.
        self.call_after_refresh(self._renew_list)

    def _renew_list(self) -> None:
        if self.was_left:
            return
        self._make_document()
        self.query_one(Listing).renew(self.document)

    def _make_document(self) -> None:
        """Make a new document with the same selection."""
        at, column = self.document.selected_question, self.document.column
        self.document = ResultsDocument(self._table, self._filter.questions, self._labels)
        self.document.point_at(at)
        if self.document.selected_question is at:
            self.document.column = column

    def _show_questions(self) -> None:
        self._make_document()
        questions = self.query_one(Listing)
        everything = self._filter.questions == self._table.questions
        of_all = f" of {len(self._table.questions)}"
        questions.border_title = Content(
            "questions" if everything else f"questions · {self._filter.in_short}{of_all}"
        )
        questions.show(self.document, in_view=self.document.cursor if len(self.document) else None)

    def action_next_answer(self) -> None:
        self._point_at_answer(self.document.column + 1)

    def action_previous_answer(self) -> None:
        self._point_at_answer(self.document.column - 1)

    def action_why(self) -> None:
        answer = self.document.selected_answer
        if answer is None:
            self.notify("This architecture was not asked this question.", markup=False)
        else:
            self.explain(answer)

    def action_filter(self) -> None:
        filters = filters_of(self._table, self._labels)

        def chosen(index: int | None) -> None:
            if index is not None:
                self._filter = filters[index]
                self._show_questions()

        self.app.push_screen(PickScreen("show questions", [one.in_short for one in filters]), chosen)

    def point_at(self, index: int) -> None:
        """Select a question, and its first answer that is not right."""
        self.document.cursor = max(0, min(index, len(self.document) - 1))
        self.document.point_at_first_wrong()
        super().point_at(index)

    def _point_at_answer(self, column: int) -> None:
        self.document.column = column
        self.query_one(Listing).repaint()


class ResultsScreen(QuestionsScreen[Destination | None]):
    """Returns where the user wants to look in the replay, or None."""

    PLACE: ClassVar[Place] = "results"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(
        self, timeline: Timeline, table: AnswersTable, load_annotations: Callable[[], Annotations]
    ) -> None:
        super().__init__(table)
        self._load_annotations = load_annotations
        self._timeline = timeline
        self._conversation = timeline.conversation

    @property
    def picture_name(self) -> str:
        return f"{self._conversation.id}-results"

    def on_mount(self) -> None:
        self.query_one("#header", Bar).say(
            Span(" RESULTS ", "recorded"),
            Span(f"  {one_line(self._conversation.id)}", "strong"),
        )
        self._attribute()

    @work(group="attribution", exclusive=True)
    async def _attribute(self) -> None:
        labels = await in_thread(self, labels_of, self._timeline, self._table)
        if not self.was_left:
            self.show_labels(labels)

    def explain(self, answer: Answer) -> None:
        self.app.push_screen(WhyScreen(self._timeline, answer, self._load_annotations), self._left_why)

    def _left_why(self, destination: Destination | None) -> None:
        if destination is not None:
            self.dismiss(destination)

    def action_jump(self) -> None:
        if self.document.selected_question is not None:
            self.dismiss(Evidence(self.document.selected_question.question))

    def action_run(self) -> None:
        self.dismiss(WholeRun())

    def action_leave(self) -> None:
        self.dismiss(None)
