"""The retrieval duel: one question and all memories in columns, with what each of them ranked."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content

from memory_backends.controls import CONTROLS
from memreplay.conversations.asked_by_hand import keep_question, with_answer
from memreplay.conversations.models import Question
from memreplay.engine.answers import score_answer
from memreplay.errors import UsageError
from memreplay.grading.failures import GradingError
from memreplay.llm.tokens import token_counter
from memreplay.numbers import counted
from memreplay.scoring.attribution import Attributor
from memreplay.scoring.recut import STEP, Limits, Ranking, Recut, way_in
from memreplay.scoring.verdicts import Label
from memreplay.settings import AS_GIVEN
from memreplay.text import occurs_in
from memreplay.timeline.timeline import Answer, AskKey, Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.screens import AnswerScreen, KeyBar
from memreplay.tui.screens.dialogs import PickScreen, TypingScreen
from memreplay.tui.widgets.lines_view import Bar, Head, Legend, LinesView
from memreplay.views.panels.answers import AnswersTable, System, head_lines, key_of, stage_sign
from memreplay.views.panels.duel import DUEL_LEGEND, CandidateSubject, Reached, duel_lines
from memreplay.views.panels.why import explain_answers
from memreplay.views.text import Span, line, one_line

_NARROWEST_COLUMN = 38
_SECONDS_OF_A_RESULT = 20.0


class DuelColumn(LinesView):
    """One memory."""

    def __init__(self, number: int) -> None:
        super().__init__(classes="panel duel")
        self.number = number
        self.opened: set[int] = set()


@dataclass(frozen=True)
class _Cut:
    """The ranking of one memory, cut at the limits on the screen, and how far the answer comes there."""

    recut: Recut | None
    reached: Reached


class DuelScreen(AnswerScreen[AskKey | None]):
    """Returns the answer to explain, or None. ``settings`` are those of the run."""

    PLACE: ClassVar[Place] = "duel"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(
        self,
        timeline: Timeline,
        question: Question,
        answers: Sequence[Answer],
        settings: Mapping[str, Any],
        focused: int = 0,
    ) -> None:
        super().__init__()
        self._timeline, self._settings = timeline, settings
        self._question = question
        self._answers = tuple(answers)
        self._focused_first = focused
        self._rankings = [
            Ranking(timeline.conversation, answer.asked, settings, token_counter(answer.asked.model))
            for answer in self._answers
        ]
        self._labels: list[Label | None] = [None for _ in self._answers]
        self._attributor = Attributor(timeline)
        self._cuts: list[_Cut | None] = [None for _ in self._answers]
        self._hits: int | None = None
        self._tokens: int | None = None
        names = AnswersTable(
            (), [answer for answer in self._answers if not answer.asked.by_hand], timeline.backends
        )
        self._names = [names.name_of(System(answer.asked.backend, answer.asked.model)) for answer in self._answers]

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        yield Head(id="asked")
        with Horizontal(id="duel"):
            for number in range(len(self._answers)):
                yield DuelColumn(number)
        yield Legend(id="legend")
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one("#legend", Bar).say(Span(f" {DUEL_LEGEND}", "dim"))
        self._columns[self._focused_first].focus(scroll_visible=False)
        self._paint()
        self._read()

    @work(group="attribution", exclusive=True)
    async def _read(self) -> None:
        """Attribute the answers and cut the rankings in the background, first at the limits of the run."""
        if not any(self._labels):
            explained = await self.in_thread(explain_answers, self._timeline, self._answers)
            self._labels = [each.attribution.label if each.attribution is not None else None for each in explained]
        for number, ranking in enumerate(self._rankings):
            self._cuts[number] = await self.in_thread(self._cut_again, ranking)
        self._paint()

    def _cut_again(self, ranking: Ranking) -> _Cut:
        limits = self._limits_of(ranking)
        recut = ranking.cut(limits)
        has_answer = bool(self._question.expected or self._question.evidence) and not self._question.abstain
        is_known = self._timeline.question(self._question.id) is not None
        if recut is None or not has_answer or not is_known:
            return _Cut(recut, Reached(is_known=False))
        try:
            lost_at = self._attributor.lost_at(recut.asked)
            return _Cut(recut, Reached(lost_at, way_in(ranking, limits, self._attributor.lost_at)))
        except GradingError:
            return _Cut(recut, Reached(is_known=False))

    def _limits_of(self, ranking: Ranking) -> Limits:
        """Return the limits on the screen; until the user moves one, that of the run."""
        hits = ranking.limits.hits if self._hits is None else self._hits
        return Limits(hits, ranking.limits.tokens if self._tokens is None else self._tokens)

    @property
    def _columns(self) -> list[DuelColumn]:
        return list(self.query(DuelColumn))

    @property
    def _here(self) -> int:
        return self.focused.number if isinstance(self.focused, DuelColumn) else 0

    # ---- painting ------------------------------------------------------------------------------------------

    def _paint(self) -> None:
        asked = self._answers[0].asked
        limits = self._limits_of(self._rankings[self._here])
        budget = "" if limits.has_no_budget else f" and {limits.tokens:,} tokens"
        is_changed = (self._hits, self._tokens) != (None, None)
        words = f"{counted(limits.hits, 'hit')}{budget}"
        self.query_one("#header", Bar).say(
            *self.tabs,
            Span(f"  at turn {asked.turn}", "title"),
            Span("  asked by hand" if asked.by_hand else "", "warn"),
            Span(f"  cut again: {words}; no model is asked", "changed")
            if is_changed
            else Span(f"  as recorded: {words} at most" if limits.hits else "", "dim"),
        )
        signs = [
            part
            for name, answer, label in zip(self._names, self._answers, self._labels, strict=True)
            for letter, tone in [stage_sign(answer, label)]
            for part in (Span(f" {letter} ", tone), Span(f" {name}   ", "key"))
        ]
        self.query_one("#asked", Head).show([*head_lines(self._question, None), line(*signs, most=1)])
        for column in self._columns:
            self._paint_column(column)

    def _paint_column(self, column: DuelColumn) -> None:
        number = column.number
        ranking, cut = self._rankings[number], self._cuts[number]
        column.border_title = Content(f"{number + 1} {self._names[number]}")
        if cut is None:
            column.show([line(Span("cutting …", "dim"))])
            return
        ranked = len(ranking.candidates)
        column.border_subtitle = Content(f"{ranked} candidates recorded" if ranked > 1 else "")
        lines = duel_lines(
            self._question,
            self._answers[number],
            self._labels[number],
            ranking,
            cut.recut,
            cut.reached,
            column.opened,
        )
        column.show(lines, in_view=0 if column.selected is None else column.block_about(column.selected))

    def on_resize(self, event: events.Resize) -> None:
        self._show_columns()

    def on_descendant_focus(self) -> None:
        self._show_columns()

    def _show_columns(self) -> None:
        """Show as many columns as have room, the focused one among them."""
        columns = self._columns
        room = max(1, self.size.width // _NARROWEST_COLUMN)
        first = max(0, min(self._here - room // 2, len(columns) - room))
        for column in columns:
            column.display = first <= column.number < first + room

    # ---- keys ----------------------------------------------------------------------------------------------

    def action_next_architecture(self) -> None:
        self._look_at(self._here + 1)

    def action_previous_architecture(self) -> None:
        self._look_at(self._here - 1)

    def _look_at(self, number: int) -> None:
        columns = self._columns
        column = columns[max(0, min(number, len(columns) - 1))]
        column.display = True
        column.focus(scroll_visible=False)

    def action_more_hits(self) -> None:
        self._cut(1, self._tokens)

    def action_fewer_hits(self) -> None:
        self._cut(-1, self._tokens)

    def action_more_tokens(self) -> None:
        self._cut(0, (self._budget // STEP + 1) * STEP)

    def action_fewer_tokens(self) -> None:
        """Lower the budget; from that of the run, to the next step that leaves something out."""
        start = self._budget
        if self._tokens is None:
            start = min(start, max(answer.asked.context_tokens for answer in self._answers))
        self._cut(0, max(STEP, (-(-start // STEP) - 1) * STEP))

    def action_as_recorded(self) -> None:
        self._hits = self._tokens = None
        self._read()

    @property
    def _budget(self) -> int:
        """Return the budget on the screen; of memories without one, that of a memory that has one."""
        if self._tokens is not None:
            return self._tokens
        budgets = [ranking.limits for ranking in self._rankings]
        limited = [limits.tokens for limits in budgets if not limits.has_no_budget]
        return min(limited, default=max(answer.asked.context_tokens for answer in self._answers))

    def _cut(self, more: int, tokens: int | None) -> None:
        """Cut at so many hits more, and at a budget; one key does nothing that another would not undo."""
        deepest = max((len(ranking.candidates) for ranking in self._rankings), default=0)
        if more:
            most = max((len(ranking.asked.hits) for ranking in self._rankings), default=0)
            start = (
                self._hits if self._hits is not None else min(self._rankings[self._here].limits.hits, max(most, 1))
            )
            hits = max(0, min(start + more, deepest))
            if hits == start:
                self.notify("Nothing more is recorded.", markup=False)
                return
            self._hits = hits
        self._tokens = tokens
        self._read()

    @on(LinesView.Followed)
    def _followed(self, message: LinesView.Followed) -> None:
        """Open or close a merged hit."""
        if isinstance(message.view, DuelColumn) and isinstance(message.subject, CandidateSubject):
            message.view.opened ^= {message.subject.rank}
            self._paint_column(message.view)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "keep":
            return self._answers[0].asked.typed is not None
        # The answers of other memories can be explained wherever this screen was opened.
        return True if action == "why" else super().check_action(action, parameters)

    def action_keep(self) -> None:
        """Ask for the right answer of a question that was typed in, and for the turn that says it."""

        def typed(expected: str | None) -> None:
            if expected:
                self._choose_evidence(expected)

        title = "what is the right answer?"
        note = "in a few words, as the conversation says it, such as: lead engineer"
        self.app.push_screen(TypingScreen(title, note, value=self._question.expected), typed)

    def _choose_evidence(self, expected: str) -> None:
        said = self._timeline.conversation.turns[: self._answers[0].asked.turn]
        found = [turn for turn in said if occurs_in(expected, turn.text)] or [*said]

        def chosen(place: int | None) -> None:
            if place is not None:
                self._keep(expected, [found[place].id] if place < len(found) else [])

        label = self._timeline.conversation.label_of
        names = [one_line(f"{turn.number} {label(turn)}: {turn.text}") for turn in found]
        self.app.push_screen(PickScreen("which turn says it?", [*names, "no single turn"]), chosen)

    def _keep(self, expected: str, evidence: Sequence[str]) -> None:
        """Grade the replies, and keep the question as a dataset and a test in the current folder."""
        timeline, asked = self._timeline, self._answers[0].asked
        question = with_answer(self._question, timeline.conversation, expected, evidence)
        memories = [answer.asked.backend for answer in self._answers if answer.asked.backend not in CONTROLS]
        given = {**self._settings, **self._settings.get(AS_GIVEN, {})}
        tested = dict.fromkeys(memories, given)
        try:
            path, test, count = keep_question(Path.cwd(), timeline.conversation, asked.turn, question, tested)
        except UsageError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        timeline.answered_by_hand[question.id] = question
        for answer in self._answers:
            if answer.received is not None:
                answer.scored = score_answer(question, answer.asked, answer.received.reply)
        self._question = question
        self._attributor = Attributor(timeline, by_hand=timeline.answered_by_hand)
        self._labels = [None for _ in self._answers]
        self._read()
        batch = f"memreplay --batch --dataset {shlex.quote(path.name)}"
        self.notify(
            f"{counted(count, 'question')} in {path.name}. {batch} asks every memory; pytest {test.name} checks"
            " what these recall.",
            timeout=_SECONDS_OF_A_RESULT,
            markup=False,
        )

    def action_why(self) -> None:
        self.dismiss(key_of(self._answers[self._here]))

    @property
    def picture_name(self) -> str:
        return f"{self._timeline.conversation.id}-duel-{self._question.id}"
