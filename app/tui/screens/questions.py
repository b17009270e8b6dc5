"""A list of questions with every architecture's answer, which can be narrowed: of a conversation, or of a run."""

from __future__ import annotations

from abc import abstractmethod

from textual.content import Content
from textual.screen import ScreenResultType

from app.replay.asks import Answer
from app.tui.screens.listing import Listing, ScoredListingScreen, Scores
from app.tui.screens.pick import PickScreen
from app.tui.text import Span
from app.tui.views.answers import LEGEND, AnswersTable, Labels, reader_label, summary_lines
from app.tui.views.filters import QuestionFilter, filters_of
from app.tui.views.listed import ListedDocument
from app.tui.views.results import ResultsDocument
from app.tui.widgets.bars import Bar


class QuestionsScreen(ScoredListingScreen[ScreenResultType]):
    """Scores above, questions below: all of them, or those of one failure, or those that memories disagree on."""

    def __init__(self, table: AnswersTable) -> None:
        super().__init__()
        self._labels: Labels = {}
        self._take(table)

    def _take(self, table: AnswersTable) -> None:
        """List the questions of a table, from the first answer on that is not right."""
        self._table = table
        self._filter = QuestionFilter("all", table.questions)
        self._document = ResultsDocument(table, table.questions)
        self._document.point_at_first_wrong()

    @abstractmethod
    def explain(self, answer: Answer) -> None:
        """Open the page that says why an answer is what it is."""

    @property
    def listed(self) -> ListedDocument:
        """What is listed."""
        return self._document

    def on_mount(self) -> None:
        """Fill it."""
        self.query_one("#legend", Bar).say(Span(f" {LEGEND}", "dim"))
        self.show_table()

    def show_table(self) -> None:
        """Show the scores and the questions."""
        scores = self.query_one("#scores", Scores)
        scores.border_title = Content("scores")
        readers = ", ".join(reader_label(model) for model in self._table.models)
        scores.border_subtitle = Content(f"read by {readers}" if readers else "")
        lines = summary_lines(self._table)
        scores.styles.height = min(len(lines), 8) + 2
        scores.show(lines)
        self._show_questions()

    def take_labels(self, labels: Labels) -> None:
        """Where facts were lost has been worked out."""
        self._labels = labels
        # What a key has just scrolled to counts, and is scrolled to with the next frame.
        self.call_after_refresh(self._show_labels)

    def _show_labels(self) -> None:
        """Say where each fact was lost: questions take more rows for it, and nothing else is another."""
        if self.was_left:
            return
        self._make_document()
        self.query_one(Listing).renew(self._document)

    def _make_document(self) -> None:
        """Make the document anew, pointing where the former one does."""
        at, column = self._document.posed, self._document.column
        self._document = ResultsDocument(self._table, self._filter.questions, self._labels)
        self._document.point_at(at)
        if self._document.posed is at:
            self._document.column = column

    def _show_questions(self) -> None:
        """Show what the filter lets through, at the question that was pointed at."""
        self._make_document()
        questions = self.query_one(Listing)
        everything = self._filter.questions == self._table.questions
        of_all = f" of {len(self._table.questions)}"
        questions.border_title = Content(
            "questions" if everything else f"questions · {self._filter.in_short}{of_all}"
        )
        questions.show(self._document, in_view=self._document.cursor if len(self._document) else None)

    def action_next_answer(self) -> None:
        """The next architecture's answer."""
        self._point_at_answer(self._document.column + 1)

    def action_previous_answer(self) -> None:
        """The previous architecture's answer."""
        self._point_at_answer(self._document.column - 1)

    def action_why(self) -> None:
        """Why the answer that is pointed at is what it is."""
        answer = self._document.chosen()
        if answer is None:
            self.notify("This architecture was not asked this question.", markup=False)
        else:
            self.explain(answer)

    def action_filter(self) -> None:
        """Only questions of one failure, or those that memories disagree on."""
        filters = filters_of(self._table, self._labels)

        def chosen(index: int | None) -> None:
            if index is not None:
                self._filter = filters[index]
                self._show_questions()

        self.app.push_screen(PickScreen("questions to look at", [one.in_short for one in filters]), chosen)

    def point_at(self, index: int) -> None:
        """Point at a question, and there at the first answer that is not right."""
        self._document.cursor = max(0, min(index, len(self._document) - 1))
        self._document.point_at_first_wrong()
        super().point_at(index)

    def _point_at_answer(self, column: int) -> None:
        self._document.column = column
        self.query_one(Listing).repaint()
