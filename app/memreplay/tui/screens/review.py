"""Drafted questions: a human accepts, rejects or words anew what a model proposed, beside its evidence."""

from __future__ import annotations

from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.content import Content
from textual.widgets import Footer

from memreplay.conversations.drafts import Decision, DraftBook, DraftedQuestion
from memreplay.errors import MemreplayError
from memreplay.text import occurs_in
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.panels.drafts import DRAFTS_LEGEND, DraftsDocument, draft_lines
from memreplay.tui.screens.dialogs import Refusal, TypingScreen
from memreplay.tui.screens.listing import Listing, ListingScreen
from memreplay.tui.text import Span, one_line
from memreplay.tui.widgets.bars import Bar
from memreplay.tui.widgets.lines_view import LinesView


class DraftView(LinesView, can_focus=False):
    """The selected draft; the keys of the screen scroll it."""


class ReviewScreen(ListingScreen[None]):
    """Every decision is written to the book's file before the screen shows it."""

    PLACE: ClassVar[Place] = "review"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]

    document: DraftsDocument

    def __init__(self, book: DraftBook) -> None:
        super().__init__()
        self._book = book
        self.document = DraftsDocument(book)
        self.document.cursor = self.document.next_open(-1) or 0

    @property
    def picture_name(self) -> str:
        return f"{self._book.conversation.id}-drafts"

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        with Container(id="review"):
            yield Listing(id="questions", classes="panel")
            yield DraftView(id="draft", classes="panel")
        yield Bar(id="legend")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        listing = self.query_one(Listing)
        listing.border_title = Content(f"drafts · {len(self.document)}")
        listing.show(self.document, in_view=self.document.cursor)
        self.query_one("#draft").border_title = Content("the draft and its evidence")
        self.query_one("#legend", Bar).say(Span(f" {DRAFTS_LEGEND}", "dim"))
        self.moved()

    @property
    def _draft(self) -> DraftedQuestion:
        return self.document.drafts[self.document.cursor]

    def moved(self) -> None:
        """Show the selected draft, and how many are left."""
        decided = [draft.decision for draft in self.document.drafts]
        counts = f"{decided.count('accepted')} accepted, {decided.count('rejected')} rejected"
        left = f"{decided.count('open')} left"
        count = f"  count {self.count.shown}" if self.count.shown else ""
        self.query_one("#header", Bar).say(
            Span(" DRAFTS ", "recorded"),
            Span(f"  {one_line(self._book.conversation.id)}", "strong"),
            Span(f"  {counts} · {left}{count}", "dim"),
        )
        self.query_one(DraftView).show(draft_lines(self._book, self._draft))

    def action_accept(self) -> None:
        self._decide("accepted")

    def action_reject(self) -> None:
        self._decide("rejected")

    def action_reopen(self) -> None:
        if self._change(decision="open"):
            self.repaint_list()

    def action_next_open(self) -> None:
        place = self.document.next_open(self.document.cursor)
        if place is None:
            self.notify("Every draft is decided: q saves the questions and quits.", markup=False)
        else:
            self.point_at(place)

    def action_scroll_down(self) -> None:
        self.query_one(DraftView).scroll_down(animate=False)

    def action_scroll_up(self) -> None:
        self.query_one(DraftView).scroll_up(animate=False)

    def choose(self) -> None:
        self.action_answer()

    @work(group="typing", exclusive=True)
    async def action_answer(self) -> None:
        """Edit the expected answer."""
        draft = self._draft
        note = "Short, and word for word as in the evidence; esc leaves it as it is."
        typed = await self._type("expected answer", note, draft.answer, _refusal_of_answer(draft.question))
        if typed is not None and self._change(answer=typed):
            self.repaint_list()

    @work(group="typing", exclusive=True)
    async def action_question(self) -> None:
        """Edit the question."""
        draft = self._draft
        note = "It must not contain its answer; esc leaves it as it is."
        typed = await self._type("question", note, draft.question, _refusal_of_question(draft.answer))
        if typed is not None and self._change(question=typed):
            self.repaint_list()

    async def _type(self, title: str, note: str, value: str, refusal: Refusal) -> str | None:
        return await self.app.push_screen_wait(TypingScreen(title, note, value=value, refusal=refusal))

    def _decide(self, decision: Decision) -> None:
        if self._change(decision=decision):
            place = self.document.next_open(self.document.cursor)
            if place is None:
                self.repaint_list()
                self.action_next_open()
            else:
                self.point_at(place)

    def _change(
        self, *, decision: Decision | None = None, question: str | None = None, answer: str | None = None
    ) -> bool:
        """Change the selected draft; False if the file cannot be written, after a notification."""
        try:
            changed = self._book.change(self._draft.id, decision=decision, question=question, answer=answer)
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)
            return False
        self.document.replace(self.document.cursor, changed)
        return True


def _refusal_of_answer(question: str) -> Refusal:
    def refusal(text: str) -> str | None:
        if not text:
            return "An answer cannot be empty; n rejects the draft."
        return "The question contains this answer." if occurs_in(text, question) else None

    return refusal


def _refusal_of_question(answer: str) -> Refusal:
    def refusal(text: str) -> str | None:
        if not text:
            return "A question cannot be empty; n rejects the draft."
        return "This question contains its answer." if occurs_in(answer, text) else None

    return refusal
