"""The results: the scores of each architecture, and every question of a conversation with every answer."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import ClassVar

from textual import work
from textual.binding import BindingType
from textual.content import Content
from textual.screen import ScreenResultType

from memreplay.timeline.timeline import Answer, Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.document import ListedDocument
from memreplay.tui.panels.answers import LEGEND, AnswersTable, Labels, reader_label, summary_lines
from memreplay.tui.panels.results import QuestionFilter, ResultsDocument, filters_of, labels_of
from memreplay.tui.requests import Destination, Evidence, WholeRun
from memreplay.tui.screens.dialogs import PickScreen
from memreplay.tui.screens.listing import Listing, ScoredListingScreen, Scores
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.text import Span, one_line
from memreplay.tui.widgets.bars import Bar


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


class ResultsScreen(QuestionsScreen[Destination | None]):
    """Ends with where the user wants to look, or with None."""

    PLACE: ClassVar[Place] = "results"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, timeline: Timeline, table: AnswersTable) -> None:
        super().__init__(table)
        self._timeline = timeline
        self._conversation = timeline.conversation

    @property
    def picture_name(self) -> str:
        """What an exported picture is called."""
        return f"{self._conversation.id}-results"

    def on_mount(self) -> None:
        """Name it; where each fact was lost is worked out meanwhile."""
        self.query_one("#header", Bar).say(
            Span(" RESULTS ", "recorded"),
            Span(f"  {one_line(self._conversation.id)}", "strong"),
        )
        self._attribute()

    @work(group="attribution", exclusive=True)
    async def _attribute(self) -> None:
        labels = await asyncio.to_thread(labels_of, self._timeline, self._table)
        if not self.was_left:
            self.take_labels(labels)

    def explain(self, answer: Answer) -> None:
        """Open the page that says why an answer is what it is."""
        self.app.push_screen(WhyScreen(self._timeline, answer), self._left_why)

    def _left_why(self, destination: Destination | None) -> None:
        if destination is not None:
            self.dismiss(destination)

    def action_jump(self) -> None:
        """Into the replay, at the evidence of this question."""
        if self._document.posed is not None:
            self.dismiss(Evidence(self._document.posed.question))

    def action_run(self) -> None:
        """Every question of the whole run."""
        self.dismiss(WholeRun())

    def action_leave(self) -> None:
        """Back to where the replay was."""
        self.dismiss(None)
