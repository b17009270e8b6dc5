"""The biography of a fact: its path through one memory; keys switch to the next memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from memreplay.conversations.models import Question, Turn
from memreplay.debugger.biography import (
    answerable_from,
    biographies,
    biography,
    memory_at_last,
)
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.stored import StoredMemory
from memreplay.scoring.verdicts import Label
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.requests import Decision, Destination, Position
from memreplay.tui.screens import AnswerScreen, KeyBar
from memreplay.tui.widgets.lines_view import Bar, Head, LinesView
from memreplay.views.panels.answers import head_lines
from memreplay.views.panels.biography import biography_lines
from memreplay.views.subjects import DecisionSubject, PositionSubject, TurnSubject
from memreplay.views.text import Line, Span, line, one_line

_INDEXING = "indexing retrievals …"


class BiographyScreen(AnswerScreen[Destination | None]):
    """Returns where the user wants to look in the replay. ``fact`` is a turn, or a question with its evidence."""

    PLACE: ClassVar[Place] = "biography"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(
        self, timeline: Timeline, retrievals: RetrievalIndex, fact: Turn | Question, backend: str | None
    ) -> None:
        super().__init__()
        self._timeline = timeline
        self._retrievals = retrievals
        self._fact = fact
        self._backends = timeline.backends
        self._memories: dict[str, StoredMemory] = {}
        self._attributor = Attributor(timeline)
        self._place = self._backends.index(backend) if backend in self._backends else 0
        self._lines_for: Callable[[tuple[int, int]], list[Line]] = lambda room: [line(Span(_INDEXING, "dim"))]
        """Makes the lines for so many columns and rows."""

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        yield Head(id="head")
        yield LinesView(id="life", classes="panel")
        yield KeyBar()

    def on_mount(self) -> None:
        """Index the retrievals of this memory first; in a long conversation that takes a moment."""
        life = self.query_one("#life", LinesView)
        life.border_title = Content("fact biography")
        self._fill()
        life.focus(scroll_visible=False)
        self._paint_head(None)
        self._read()

    @work(group="biography", exclusive=True)
    async def _read(self) -> None:
        await self.in_thread(self._retrievals.catch_up, None, self._backends[self._place])
        await self._paint()

    @property
    def _answer(self) -> Answer | None:
        """Return what this memory answered to the question last; None where the fact is only a turn."""
        backend, found = self._backends[self._place], None
        for answer in self._timeline.answers() if isinstance(self._fact, Question) else ():
            asked = answer.asked
            if (asked.question_id, asked.backend, asked.by_hand) == (self._fact.id, backend, False):
                found = answer
        return found

    def _paint_head(self, label: Label | None) -> None:
        fact = self._fact
        if isinstance(fact, Question):
            self.query_one("#head", Head).show(head_lines(fact, self._answer, label))
            return
        who = one_line(self._timeline.conversation.label_of(fact))
        said = Span(f"{who}: {one_line(fact.text)}", "strong")
        self.query_one("#head", Head).show([line(Span(f"turn {fact.number}  ", "accent"), said, most=2)])

    async def _paint(self) -> None:
        backend = self._backends[self._place]
        if backend not in self._memories:
            self._memories[backend] = await self.in_thread(memory_at_last, self._timeline, backend)
        memory = self._memories[backend]
        others = [name for name in self._backends if name != backend]
        self.query_one("#header", Bar).say(
            *self.tabs,
            Span(f"  {one_line(backend)}", "strong"),
            Span(f"  ←→ {one_line(', '.join(others))}" if others else "", "dim"),
        )
        fact, conversation = self._fact, self._timeline.conversation
        attribution = None
        if (answer := self._answer) is not None:
            attribution = await self.in_thread(self._attributor.attribute, answer)
        self._paint_head(attribution.label if attribution is not None else None)
        if isinstance(fact, Question):
            lives = biographies(self._timeline, self._retrievals, backend, fact, memory)
            known_from = answerable_from(conversation, memory, fact)
            self._lines_for = partial(biography_lines, conversation, lives, fact, known_from)
        else:
            lives = (biography(self._timeline, self._retrievals, backend, fact, memory),)
            self._lines_for = partial(biography_lines, conversation, lives, None, None)
        self._fill()

    def _fill(self) -> None:
        life = self.query_one("#life", LinesView)
        life.show(self._lines_for((life.layout_now.width, life.scrollable_content_region.height)))

    def on_resize(self) -> None:
        self.call_after_refresh(self._fill)

    # ---- what the user does --------------------------------------------------------------------------------

    def action_next_architecture(self) -> None:
        self._look_at(self._place + 1)

    def action_previous_architecture(self) -> None:
        self._look_at(self._place - 1)

    def action_write(self) -> None:
        self.query_one("#life", LinesView).action_follow()

    @on(LinesView.Followed)
    def _followed(self, message: LinesView.Followed) -> None:
        backend = self._backends[self._place]
        match message.subject:
            case DecisionSubject() as subject:
                self.dismiss(Decision(subject))
            case PositionSubject(turn, _):
                self.dismiss(Position(turn, backend))
            case TurnSubject(turn_id):
                self.dismiss(Position(self._timeline.conversation.turns_by_id[turn_id].number, backend))
            case _:
                pass

    @property
    def picture_name(self) -> str:
        return f"{self._timeline.conversation.id}-biography-{self._fact.id}"

    def _look_at(self, place: int) -> None:
        self._place = max(0, min(place, len(self._backends) - 1))
        self._read()
