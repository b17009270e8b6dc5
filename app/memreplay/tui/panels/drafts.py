"""Drafted questions: the list of them, and one with its evidence in the conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from memreplay.conversations.drafts import Decision, DraftBook, DraftedQuestion
from memreplay.conversations.models import Turn
from memreplay.tui.document import ListDocument
from memreplay.tui.text import Line, Row, Span, Tone, line, marked, one_line, paragraphs, words_in, wrapped

SIGNS: Final[dict[Decision, tuple[str, Tone]]] = {
    "open": ("?", "dim"),
    "accepted": ("✓", "good"),
    "rejected": ("✗", "removed"),
}
DRAFTS_LEGEND: Final = "? open  ✓ accepted  ✗ rejected  ! look closer  ◇ evidence"
_TURNS_AROUND = 2
_MOST_CHARACTERS = 1500
"""Of a turn that are shown: those around the quote, or the beginning."""
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
        """The next draft without a decision, from the beginning again after the last; None if there is none."""
        places = (*range(after + 1, len(self)), *range(after + 1))
        return next((place for place in places if self.drafts[place].decision == "open"), None)


def draft_lines(book: DraftBook, draft: DraftedQuestion) -> list[Line]:
    """One draft in full, and the turns around each turn that it quotes."""
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
    """The text around a quote, if it is long."""
    if len(text) <= _MOST_CHARACTERS:
        return text
    at = max(text.casefold().find(quote.strip().casefold()), 0)
    start = max(0, at - _MOST_CHARACTERS // 2)
    end = start + _MOST_CHARACTERS
    return ("… " if start else "") + text[start:end] + (" …" if end < len(text) else "")
