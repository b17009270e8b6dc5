"""The help, made from the table of actions, and the legend of the replay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from memreplay.debugger.breakpoints import GRAMMAR_HELP
from memreplay.scoring.verdicts import VERDICTS
from memreplay.timeline.timeline import Timeline
from memreplay.tui.actions import LETTERS, OTHER_MEANINGS, PLACES, Place, actions_of, bindings_of
from memreplay.tui.screens import Dialog
from memreplay.tui.terminal import Rebound, keys_of
from memreplay.tui.widgets.lines_view import LinesView
from memreplay.tui.widgets.strip import STRIP_LEGEND
from memreplay.views.panels.answers import ANSWER_LEGEND, EVIDENCE_LEGEND, label_tone, stage_chip
from memreplay.views.panels.conversation import SIGNIFICANCE_LEGEND
from memreplay.views.panels.why import PROMPT_LEGEND
from memreplay.views.text import Line, Span, cells, line, one_line, pad, paragraphs, shown_key

_CHANGES: Final = (
    "+ added  − removed  ~ changed at this turn",
    "≡ a question by choice, where others are asked in words",
    "▶ the cursor  ◇ 2 evidence of question 2  ◆ evidence of the question you came from  × cut from the prompt",
)
_IN_HELP: Final = (
    *_CHANGES,
    ANSWER_LEGEND,
    EVIDENCE_LEGEND,
    STRIP_LEGEND,
    SIGNIFICANCE_LEGEND,
    PROMPT_LEGEND,
)
_IN_LEGEND: Final = (
    *_CHANGES,
    "92 (D5:15): the 92nd turn, which the dataset calls D5:15",
    STRIP_LEGEND,
    ANSWER_LEGEND,
    EVIDENCE_LEGEND,
    SIGNIFICANCE_LEGEND,
)
_ABOUT_ANSWERS: frozenset[Place] = frozenset(["results", "why", "duel", "regression", "two_whys"])
_WITH_PANELS: frozenset[Place] = frozenset(["replay", "why", "duel", "two_whys"])


class HelpScreen(Dialog[None]):
    """Keys and signs, the keys of the screen below first. Typing after / keeps only the lines with these words."""

    PLACE: ClassVar[Place] = "help"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def parts(self) -> ComposeResult:
        with Vertical(id="helping"):
            yield Input(placeholder="/ to search the help", id="wanted", compact=True)
            yield LinesView(id="help")

    def on_mount(self) -> None:
        below = self.app.screen_stack[-2] if len(self.app.screen_stack) > 1 else None
        place: Place | None = getattr(below, "PLACE", None)
        self._lines = list(help_lines(place, getattr(self.app, "rebound", {})))
        here = f" · {PLACES[place].lower()}" if place in PLACES else ""
        self.query_one("#help", LinesView).border_title = Content(f"keys and signs{here}")
        self._show("")
        self.query_one("#help", LinesView).focus()

    def _show(self, wanted: str) -> None:
        words = wanted.casefold().split()
        matching = list(_holding(self._lines, words)) if words else self._lines
        self.query_one("#help", LinesView).show(matching or [line(Span(f"no match for {wanted}", "warn"))])

    @on(Input.Changed)
    def _typing(self, message: Input.Changed) -> None:
        self._show(message.value)

    @on(Input.Submitted)
    def _typed(self) -> None:
        self.query_one("#help", LinesView).focus()

    def action_search(self) -> None:
        self.query_one("#wanted", Input).focus()

    def action_leave(self) -> None:
        wanted = self.focused
        if isinstance(wanted, Input):
            wanted.value = ""
            self.query_one("#help", LinesView).focus()
        else:
            self.dismiss()


def _holding(lines: Sequence[Line], words: Sequence[str]) -> Iterator[Line]:
    """Yield the lines with all words, each below its heading: the same key does something else on another
    screen.
    """
    heading = shown = None
    for each in lines:
        if each.spans and each.spans[0].tone == "title":
            heading = each
        elif _text(each):
            of_heading = "" if heading is None else _text(heading)
            if all(word in _text(each) or word in of_heading for word in words):
                if heading is not None and heading is not shown:
                    yield heading
                shown = heading
                yield each


def _text(each: Line) -> str:
    return "".join(span.text for span in each.spans).casefold()


def help_lines(place: Place | None, rebound: Rebound) -> Iterator[Line]:
    """Yield the keys of one screen first, then the legend, then the keys of all others."""
    here = [place] if place in PLACES else []
    panels: list[Place] = ["panel"] if place in _WITH_PANELS else []
    first = [*here, *panels]
    for each in first:
        yield from _keys(each, rebound)
    yield line(Span("Everywhere", "title"))
    yield line(Span(f"  {pad('ctrl+p', 9)} ", "key"), "The command palette: every action by name, and the themes.")
    yield line("")
    legend = [_failure_labels(), _signs(_IN_HELP)]
    for part in legend if place in _ABOUT_ANSWERS else reversed(legend):
        yield from part
    for other in PLACES:
        if other not in first:
            yield from _keys(other, rebound)
    yield from _letters()


def _letters() -> Iterator[Line]:
    """Yield what each letter means, on all screens."""
    yield line(Span("Every letter, on all screens", "title"))
    for letter, (meaning, _) in LETTERS.items():
        others = [(PLACES[at], words) for (key, at), words in OTHER_MEANINGS.items() if key == letter]
        spans = [part for at, words in others for part in (" · ", Span(f"{at}: ", "dim"), words)]
        yield line(Span(f"  {pad(shown_key(letter), 9)} ", "key"), meaning, *spans, hang=12)
    yield line("")


def _signs(listed: Sequence[str]) -> Iterator[Line]:
    yield line(Span("Signs", "title"))
    for signs in listed:
        yield line("  ", signs, hang=2)
    yield line("")


def _failure_labels() -> Iterator[Line]:
    yield line(Span("Which stage lost the fact", "title"))
    for label, verdict in VERDICTS.items():
        letter, tone = stage_chip(label)
        name = Span(f" {pad(label.replace('_', ' '), 20)}", label_tone(label))
        yield line("  ", Span(f" {letter} ", tone), name, verdict.words, hang=26)
    yield line("")


def _keys(place: Place, rebound: Rebound) -> Iterator[Line]:
    keys = keys_of(place, rebound)
    yield line(Span(PLACES[place], "title"))
    for description, actions in groupby(actions_of(place), lambda action: action.description):
        shown = " ".join(shown_key(key) for action in actions for key in keys[action.id]) or "no key"
        yield line(Span(f"  {pad(shown, max(9, cells(shown)))} ", "key"), description, hang=12)
    yield line("")


def legend_lines(timeline: Timeline, not_shown: Sequence[str] = ()) -> list[Line]:
    """Return what is not shown, the signs, the channels of each memory with their meaning, and the language of
    breakpoints.
    """
    left_out = [line(Span("Not shown", "title")), *(line("  ", one_line(each), hang=2) for each in not_shown)]
    return [
        *([*left_out, line("")] if not_shown else []),
        *_signs(_IN_LEGEND),
        *_channel_lines(timeline),
        line(Span("Breakpoints (b)", "title")),
        *paragraphs(GRAMMAR_HELP.rstrip(), indent=2),
    ]


def _channel_lines(timeline: Timeline) -> Iterator[Line]:
    """Yield a hit shows its rank in each channel that found it: ``dense 2 · keyword 6``."""
    for backend in timeline.backends:
        channels = timeline.description(backend).channels
        if not channels:
            continue
        yield line(
            Span(f"Retrieval channels of {one_line(backend)}", "title"),
            Span("  name and rank of a hit in it", "dim"),
        )
        width = max(len(one_line(name)) for name in channels)
        for name, words in channels.items():
            yield line(Span(f"  {pad(one_line(name), width)}  ", "key"), one_line(words), hang=width + 4)
        yield line("")
