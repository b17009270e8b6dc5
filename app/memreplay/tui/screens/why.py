"""Why an answer is what it is, beside the prompt as it was sent; and two explanations side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.containers import Container
from textual.content import Content

from memory_backends.registry import known_backends
from memreplay.capture.assembling import is_captured
from memreplay.conversations.asked_by_hand import keep_question
from memreplay.debugger.biography import decisive_judgement
from memreplay.debugger.provenance import line_written_by
from memreplay.debugger.retrievals import RetrievalIndex
from memreplay.engine.probes import typed_question
from memreplay.errors import MemreplayError
from memreplay.llm.judging import Verdict
from memreplay.llm.tokens import token_counter
from memreplay.scoring.evidence_trail import Trail
from memreplay.scoring.recut import Ranking
from memreplay.timeline.annotations import Annotations
from memreplay.timeline.timeline import Answer, AskKey, Timeline
from memreplay.tui.actions import Place, bindings_of
from memreplay.tui.requests import (
    Decision,
    Destination,
    FromWhy,
    Hearing,
    OtherAnswer,
    Position,
    ShrinkWanted,
    WhatIfWanted,
    WriterCalled,
    WriterWanted,
)
from memreplay.tui.screens import AnswerScreen, KeyBar, PlaceScreen
from memreplay.tui.screens.biography import BiographyScreen
from memreplay.tui.screens.duel import DuelScreen
from memreplay.tui.sources import ReplaySource
from memreplay.tui.terminal import WIDTHS
from memreplay.tui.widgets.lines_view import Bar, Head, Legend, LinesView
from memreplay.views.panels.answers import AnswersTable, head_lines, key_of
from memreplay.views.panels.duel import ladder_lines
from memreplay.views.panels.why import (
    PROMPT_LEGEND,
    Explanation,
    absent_lines,
    answers_beside,
    explain_answers,
    prompt_view,
    waiting_lines,
    why_lines,
)
from memreplay.views.subjects import AnswerSubject, DecisionSubject, PromptSubject, TurnSubject, origin_words
from memreplay.views.text import Line, Span, line, one_line

_RUNGS = 7
"""Candidates of a ranking that are shown."""


class WhyScreen(AnswerScreen[Destination | None]):
    """Returns where the user wants to look in the replay, or None."""

    PLACE: ClassVar[Place] = "why"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)
    HORIZONTAL_BREAKPOINTS = [*WIDTHS, (120, "-wide")]

    def __init__(
        self,
        timeline: Timeline,
        answer: Answer,
        load_annotations: Callable[[], Annotations],
        settings: Mapping[str, Any],
        source: ReplaySource | None = None,
        *,
        to_write: bool = False,
    ) -> None:
        """``settings`` are those of the run; ``source`` is where it was recorded, if no replay of it is open.

        ``to_write``: go on to where the evidence should have been written as soon as that is known.
        """
        super().__init__()
        self._goes_on = to_write
        self._settings = settings
        self._load_annotations, self._source = load_annotations, source
        asked = answer.asked
        question = timeline.question(asked.question_id) or typed_question(asked.typed or "")
        self._timeline = timeline
        self._question = question
        self._answers = answers_beside(timeline, key_of(answer))
        self._place = self._answers.index(answer)
        self._explanations: Sequence[Explanation] = ()
        self._ladders: Sequence[Sequence[Line]] = ()

    @property
    def answer(self) -> Answer:
        return self._answers[self._place]

    def compose(self) -> ComposeResult:
        """Explanation and prompt, side by side if there is room."""
        yield Bar(id="header")
        yield Head(id="head")
        with Container(id="why"):
            yield LinesView(id="verdict", classes="panel")
            yield LinesView(id="prompt", classes="panel")
        yield Legend(id="legend")
        yield KeyBar()

    def on_mount(self) -> None:
        """Show what is known at once; attribution runs in the background."""
        self.query_one("#legend", Bar).say(Span(f" {PROMPT_LEGEND}", "dim"))
        self.query_one("#verdict", LinesView).focus(scroll_visible=False)
        self._paint()
        self._read()

    @work(group="attribution", exclusive=True)
    async def _read(self) -> None:
        explained = await self.in_thread(explain_answers, self._timeline, self._answers)
        self._ladders = await self.in_thread(self._ranked)
        self._explanations = explained
        if self in self.app.screen_stack:  # else the user has left
            self._paint()
            if self._goes_on and self.app.screen is self:
                self._goes_on = False
                self.action_write()

    def _ranked(self) -> list[list[Line]]:
        """Return what each memory ranked: the evidence, what took its place, and the cut; in a thread."""
        ladders = []
        for answer in self._answers:
            count = token_counter(answer.asked.model)
            ranking = Ranking(self._timeline.conversation, answer.asked, self._settings, count)
            cut = ranking.cut(ranking.limits)
            shown = cut is not None and (ranking.candidates or cut.asked.cut)
            ladders.append([*ladder_lines(ranking, cut, self._question, most=_RUNGS)] if cut and shown else [])
        return ladders

    def _paint(self) -> None:
        answer, asked = self.answer, self.answer.asked
        attribution = self._explanations[self._place].attribution if self._explanations else None
        verdict_of = attribution.label if attribution is not None else None
        self.query_one("#head", Head).show(head_lines(self._question, answer, verdict_of))
        self.query_one("#header", Bar).say(
            *self.tabs,
            Span(f"  {one_line(asked.backend)}", "strong"),
            Span(f"  {one_line(asked.model)}", "dim"),
            Span("  asked by hand" if asked.by_hand else "", "warn"),
            Span(f"  at turn {asked.turn}", "title"),
        )
        verdict = self.query_one("#verdict", LinesView)
        verdict.border_title = Content("why this answer")
        label = self._load_annotations().labels().get(key_of(answer))
        if self._explanations:
            names = AnswersTable.until(self._timeline, asked.turn)
            lines = why_lines(
                self._question,
                self._explanations[self._place],
                self._explanations,
                {system: names.name_of(system) for system in names.systems},
                label,
                self._ladders[self._place],
            )
        else:
            lines = waiting_lines(self._question, answer, label)
        verdict.show(lines)
        if self._explanations and not isinstance(verdict.selected, TurnSubject):
            verdict.select(self._line_of_loss(lines))
        self._paint_prompt(answer)

    def _paint_prompt(self, answer: Answer) -> None:
        prompt = self.query_one("#prompt", LinesView)
        shown = prompt_view(self._timeline.conversation, answer.asked, self._question.evidence)
        what = "this prompt" if shown.is_recorded else "what memory returned"
        absent = absent_lines(self._timeline.conversation, shown.absent, what)
        recorded, returned = "the prompt as sent", "what memory returned (the prompt was not recorded)"
        prompt.border_title = Content(recorded if shown.is_recorded else returned)
        tokens = "unknown" if answer.asked.why_empty == "not_recorded" else f"{answer.asked.context_tokens:,}"
        prompt.border_subtitle = Content(f"{tokens} tokens of memory")
        lines = [*absent, *shown.lines]
        first = shown.first_evidence
        prompt.show(lines, in_view=len(absent) + first if first is not None else None)

    # ---- what the user does --------------------------------------------------------------------------------

    def action_next_architecture(self) -> None:
        self._look_at(self._place + 1)

    def action_previous_architecture(self) -> None:
        self._look_at(self._place - 1)

    def action_duel(self) -> None:
        def chosen(key: AskKey | None) -> None:
            if key is not None:
                self._look_at([key_of(answer) for answer in self._answers].index(key))

        self.app.push_screen(
            DuelScreen(self._timeline, self._question, self._answers, self._settings, self._place), chosen
        )

    def action_next_wrong(self) -> None:
        self.dismiss(OtherAnswer(1, self.answer))

    def action_previous_wrong(self) -> None:
        self.dismiss(OtherAnswer(-1, self.answer))

    def action_write(self) -> None:
        """Go to the write of the selected line, or to where the evidence should have been written."""
        view = self.focused
        subject = view.selected or view.first_subject if isinstance(view, LinesView) else None
        if isinstance(subject, TurnSubject):
            self.dismiss(self._to_the_write(subject.turn_id))
        elif isinstance(subject, PromptSubject):
            self._go_to_write(subject)
        elif self._question.evidence:
            if isinstance(subject, AnswerSubject):
                self._look_at([key_of(answer) for answer in self._answers].index(subject.key))
            self.dismiss(self._to_the_write(self._first_lost))
        else:
            self.notify("This question names no evidence.", markup=False)

    @property
    def _first_lost(self) -> str:
        """Return the first evidence turn that was lost; the first of all if none was."""
        lost = (trail.turn for trail in self._trails if trail.lost_at is not None)
        return next(lost, self._question.evidence[0])

    @on(LinesView.Followed)
    def _followed(self, message: LinesView.Followed) -> None:
        match message.subject:
            case TurnSubject(turn_id):
                turn = self._timeline.conversation.turns_by_id.get(turn_id)
                self.dismiss(Position(turn.number if turn else 0, self.answer.asked.backend))
            case PromptSubject() as subject:
                self._go_to_write(subject)
            case AnswerSubject(key):
                places = [key_of(answer) for answer in self._answers]
                self._look_at(places.index(key))
            case _:
                pass

    def action_biography(self) -> None:
        if self._question.evidence:
            biography = BiographyScreen(
                self._timeline, RetrievalIndex(self._timeline), self._question, self.answer.asked.backend
            )
            self.app.push_screen(biography, self._left_biography)
        else:
            self.notify("This question names no evidence.", markup=False)

    def _left_biography(self, destination: Destination | None) -> None:
        if destination is not None:
            self.dismiss(destination)

    def action_what_if(self) -> None:
        """Ask the answer again under one change at a time, if it is wrong."""
        from memreplay.runtime.reasking import can_be_asked_again

        if (why_not := can_be_asked_again(self.answer)) is not None:
            self.notify(why_not, markup=False)
        else:
            self.post_message(WhatIfWanted(self._timeline, self._question, self.answer, self._source))

    def action_writer(self) -> None:
        """Ask the model that writes again about facts that it never wrote."""
        self.post_message(WriterWanted(self._timeline, self._question, self.answer, self._source))

    def action_shrink(self) -> None:
        """Have the conversation of a wrong answer shrunk."""
        scored = self.answer.scored
        if scored is None or scored.score.outcome != "wrong":
            self.notify("Only a wrong answer can be shrunk.", markup=False)
        else:
            self.post_message(ShrinkWanted(self.answer, self._source, self.file_name))

    def action_keep(self) -> None:
        """Save a question that was marked in an agent's recording as a dataset and a test."""
        if not is_captured(self._settings):
            self.notify(
                "A question of a dataset is kept already; S saves a smaller conversation that fails.", markup=False
            )
            return
        asked, conversation = self.answer.asked, self._timeline.conversation
        # The message that was marked is left out: a memory that hears it could recall that.
        tested: dict[str, dict[str, Any]] = {asked.backend if asked.backend in known_backends() else "hybrid": {}}
        try:
            dataset, test, _ = keep_question(Path.cwd(), conversation, asked.turn - 1, self._question, tested)
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        redacted = "" if self._settings.get("redacted") else " Names and numbers are in it: memreplay redact."
        self.notify(f"Saved as {dataset.name} and {test.name}.{redacted}", markup=False)

    def action_label_right(self) -> None:
        self._label("right")

    def action_label_wrong(self) -> None:
        self._label("wrong")

    def _label(self, label: Verdict) -> None:
        """Label the answer by hand; the same label again removes it."""
        if self.answer.received is None or self.answer.received.reply.error is not None:
            self.notify("There is no reply to label.", markup=False)
            return
        key, annotations = key_of(self.answer), self._load_annotations()
        try:
            annotations.set_label(key, None if annotations.labels().get(key) == label else label)
        except MemreplayError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        self._paint()

    def dismiss(self, result: Destination | None = None) -> AwaitComplete:
        """Close. From where the user is sent, going back leads here again."""
        if result is None or isinstance(result, FromWhy | OtherAnswer):
            return super().dismiss(result)
        return super().dismiss(FromWhy(result, self.answer))

    @property
    def picture_name(self) -> str:
        asked = self.answer.asked
        return f"{self._timeline.conversation.id}-why-{asked.question_id}-{asked.backend}"

    def _go_to_write(self, subject: PromptSubject) -> None:
        asked = self.answer.asked
        found = line_written_by(self._timeline, asked.backend, asked.hits, subject.text, asked.turn)
        if found is None or found.written is None:
            self.notify("The recording does not say who wrote this.", markup=False)
        else:
            origin = found.written
            self.dismiss(Position(origin.turn, origin.backend, origin_words(origin, self._timeline)))

    def _look_at(self, place: int) -> None:
        self._place = max(0, min(place, len(self._answers) - 1))
        self._paint()

    @property
    def _trails(self) -> Sequence[Trail]:
        return self._explanations[self._place].trails if self._explanations else ()

    def _line_of_loss(self, lines: Sequence[Line]) -> int | None:
        """Return the line of the first evidence turn that was lost; of the first one if none was."""
        named = {
            one.about.turn_id: at for at, one in reversed([*enumerate(lines)]) if isinstance(one.about, TurnSubject)
        }
        lost = (named[trail.turn] for trail in self._trails if trail.lost_at is not None and trail.turn in named)
        return next(lost, min(named.values(), default=None))

    def _to_the_write(self, turn_id: str) -> Decision | Hearing | WriterCalled:
        """Return the call that should have written the turn, or where it was judged; else where memory received
        it.
        """
        asked = self.answer.asked
        trail = next((trail for trail in self._trails if trail.turn == turn_id), None)
        note = trail.sentence if trail is not None else ""
        if trail is not None and trail.writer is not None and trail.writer.at is not None:
            return WriterCalled(asked.backend, trail.writer.at, trail.writer.sentence)
        judged = decisive_judgement(self._timeline.ledger(asked.backend), turn_id, self._question, asked.turn)
        if judged is None:
            return Hearing(asked.backend, turn_id, note)
        return Decision(DecisionSubject.of(asked.backend, *judged), note)


@dataclass(frozen=True)
class Side:
    """An answer, with the timeline and the name of its recording."""

    name: str
    timeline: Timeline
    answer: Answer


class TwoWhysScreen(PlaceScreen[int | None]):
    """Returns 1 for the next change, -1 for the previous one, None to go back."""

    PLACE: ClassVar[Place] = "two_whys"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)
    HORIZONTAL_BREAKPOINTS = [*WIDTHS, (120, "-wide")]

    def __init__(self, left: Side, right: Side) -> None:
        super().__init__()
        self._sides = left, right

    def compose(self) -> ComposeResult:
        yield Bar(id="header")
        with Container(id="why"):
            yield LinesView(id="before", classes="panel")
            yield LinesView(id="after", classes="panel")
        yield KeyBar()

    def on_mount(self) -> None:
        question = self._sides[0].answer.asked.question_id
        self.query_one("#header", Bar).say(Span(" WHY ", "recorded"), Span(f"  {one_line(question)}", "strong"))
        for number, (side, view) in enumerate(zip(self._sides, self._views, strict=True), start=1):
            view.border_title = Content(f"{number} {one_line(side.name)} · {one_line(side.answer.asked.backend)}")
            asked = side.answer.asked
            known = side.timeline.question(asked.question_id) or typed_question(asked.typed or "")
            view.show([*head_lines(known, side.answer), line(""), *waiting_lines(known, side.answer)])
        self._views[0].focus(scroll_visible=False)
        self._read()

    @property
    def _views(self) -> tuple[LinesView, LinesView]:
        return self.query_one("#before", LinesView), self.query_one("#after", LinesView)

    @work(group="attribution", exclusive=True)
    async def _read(self) -> None:
        for side, view in zip(self._sides, self._views, strict=True):
            asked = side.answer.asked
            answers = answers_beside(side.timeline, key_of(side.answer))
            explained = await self.in_thread(explain_answers, side.timeline, answers)
            names = AnswersTable.until(side.timeline, asked.turn)
            question = side.timeline.question(asked.question_id) or typed_question(asked.typed or "")
            own = explained[answers.index(side.answer)]
            label = own.attribution.label if own.attribution is not None else None
            page = why_lines(question, own, explained, {one: names.name_of(one) for one in names.systems})
            view.show([*head_lines(question, side.answer, label), line(""), *page])

    def action_next_change(self) -> None:
        self.dismiss(1)

    def action_previous_change(self) -> None:
        self.dismiss(-1)

    @property
    def picture_name(self) -> str:
        asked = self._sides[0].answer.asked
        return f"why-{asked.question_id}-{self._sides[0].name}-against-{self._sides[1].name}"
