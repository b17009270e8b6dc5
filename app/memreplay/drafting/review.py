"""Drafted questions: a human accepts, rejects or words anew what a model proposed, beside its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.content import Content

from memreplay.conversations.models import Turn
from memreplay.drafting.drafts import Decision, DraftBook, DraftedQuestion
from memreplay.errors import MemreplayError
from memreplay.text import occurs_in
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.launch import ThemeChoice
from memreplay.tui.screens import KeyBar, Listing, ListingScreen
from memreplay.tui.screens.dialogs import Refusal, TypingScreen
from memreplay.tui.terminal import TerminalApp
from memreplay.tui.widgets.lines_view import Bar, LinesView
from memreplay.views.document import ListDocument
from memreplay.views.text import Line, Row, Span, Tone, line, marked, one_line, paragraphs, words_in, wrapped

SIGNS: Final[dict[Decision, tuple[str, Tone]]] = {
    "open": ("?", "dim"),
    "accepted": ("✓", "good"),
    "rejected": ("✗", "removed"),
}
DRAFTS_LEGEND: Final = "? open  ✓ accepted  ✗ rejected  ! look closer  ◇ evidence"
_TURNS_AROUND = 2
_MOST_CHARACTERS = 1500
"""Characters of a turn that are shown: those around the quote, or the beginning."""
_ROWS_OF_A_NEIGHBOUR = 3


class DraftsDocument(ListDocument):
    """The drafts of a book, in the order of the conversation."""

    def __init__(self, book: DraftBook) -> None:
        super().__init__()
        self._book = book
        self.drafts = book.drafts

    def __len__(self) -> int:
        return len(self.drafts)

    def lay_out(self, index: int, width: int, column: int | None) -> Sequence[Row]:
        draft = self.drafts[index]
        sign, tone = SIGNS[draft.decision]
        doubt = Span("!" if self._book.doubt(draft) else " ", "warn")
        shown = [
            line(Span(sign, tone), doubt, Span(f" {one_line(draft.question)}"), hang=3, most=1),
            line(Span(f"   {one_line(draft.answer)}", "dim"), hang=3, most=1),
        ]
        return wrapped(shown, width)

    def replace(self, index: int, draft: DraftedQuestion) -> None:
        """Show a changed draft. Its height stays: each draft has two rows."""
        self.drafts[index] = draft
        self._laid_out.cache_clear()

    def next_open(self, after: int) -> int | None:
        """Return the next draft without a decision, from the beginning again after the last; None if there is
        none.
        """
        places = (*range(after + 1, len(self)), *range(after + 1))
        return next((place for place in places if self.drafts[place].decision == "open"), None)


def draft_lines(book: DraftBook, draft: DraftedQuestion) -> list[Line]:
    """Return one draft in full, and the turns around each turn that it quotes."""
    return list(_lines(book, draft))


def _lines(book: DraftBook, draft: DraftedQuestion) -> Iterator[Line]:
    yield line(Span("question  ", "key"), one_line(draft.question), hang=10)
    yield line(Span("answer    ", "key"), Span(one_line(draft.answer), "value"), hang=10)
    yield line(Span("type      ", "key"), draft.type.replace("_", " "))
    if draft.outdated:
        yield line(Span("outdated  ", "key"), one_line("; ".join(draft.outdated)), hang=10)
    doubt = book.doubt(draft)
    if doubt is not None:
        yield line(Span(f"! {doubt}", "warn"), hang=2)
    yield line("")
    quotes: dict[str, list[str]] = {}
    for each in draft.evidence:
        quotes.setdefault(each.turn, []).append(each.quote)
    turns = book.conversation.turns
    shown = -1
    for place in sorted(book.conversation.turns_by_id[turn].number - 1 for turn in quotes):
        first = max(shown + 1, place - _TURNS_AROUND)
        if first > shown + 1:
            yield line(Span("  …", "dim"))
        for turn in turns[first : place + _TURNS_AROUND + 1]:
            yield from _turn(book, turn, quotes.get(turn.id, ()))
        shown = max(shown, min(place + _TURNS_AROUND, len(turns) - 1))
    if shown < len(turns) - 1:
        yield line(Span("  …", "dim"))


def _turn(book: DraftBook, turn: Turn, quotes: Sequence[str]) -> Iterator[Line]:
    sign = Span("◇ " if quotes else "  ", "evidence")
    label = f"[{one_line(turn.id)}] {one_line(book.conversation.label_of(turn))}"
    yield line(sign, Span(label, "strong" if quotes else "dim"))
    if not quotes:
        yield from paragraphs(turn.text[:_MOST_CHARACTERS], "dim", indent=4, most=_ROWS_OF_A_NEIGHBOUR)
        return
    words = tuple(dict.fromkeys(word for quote in quotes for word in words_in(quote)))
    for each in paragraphs(_excerpt(turn.text, quotes[0]), indent=4):
        row = marked(Row(each.spans), words)
        yield Line(row.spans, hang=each.hang)


def _excerpt(text: str, quote: str) -> str:
    """Return the text around a quote, if it is long."""
    if len(text) <= _MOST_CHARACTERS:
        return text
    at = max(text.casefold().find(quote.strip().casefold()), 0)
    start = max(0, at - _MOST_CHARACTERS // 2)
    end = start + _MOST_CHARACTERS
    return ("… " if start else "") + text[start:end] + (" …" if end < len(text) else "")


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
        yield KeyBar()

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


class ReviewApp(TerminalApp):
    """Leaving loses nothing: each decision is in the book's file when the next key is read."""

    def __init__(self, book: DraftBook, keys: Mapping[str, str], theme: ThemeChoice) -> None:
        super().__init__(keys, theme)
        self._book = book

    def on_mount(self) -> None:
        self.use_keys_and_theme()
        self.push_screen(ReviewScreen(self._book))
