"""Full-size overlays: help, made from the table of actions, and a state before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Input

from memreplay.tui.actions import PLACES, Place, actions_of, bindings_of, shown_key
from memreplay.tui.keys import Rebound, keys_of
from memreplay.tui.panels.answers import ANSWER_LEGEND, EVIDENCE_LEGEND, LABEL_WORDS, label_tone, stage_chip
from memreplay.tui.panels.conversation import SIGNIFICANCE_LEGEND
from memreplay.tui.panels.prompt import PROMPT_LEGEND
from memreplay.tui.panels.state_lines import sides
from memreplay.tui.panels.strip import STRIP_LEGEND
from memreplay.tui.text import Line, Span, cells, line, one_line, pad
from memreplay.tui.widgets.lines_view import LinesView


class BesideScreen(ModalScreen[None]):
    """A state in two aligned columns, before and after. ``titles`` name their positions."""

    PLACE: ClassVar[Place] = "beside"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def __init__(self, key: str, before: Any, after: Any, titles: tuple[str, str]) -> None:
        super().__init__()
        self._key = key
        self._columns = sides(before, after)
        self._titles = titles

    def compose(self) -> ComposeResult:
        with Horizontal(id="beside"):
            yield LinesView(id="before", classes="panel")
            yield LinesView(id="after", classes="panel")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        for name, title, lines in zip(("before", "after"), self._titles, self._columns, strict=True):
            view = self.query_one(f"#{name}", LinesView)
            view.border_title = Content(f"{title} · {one_line(self._key)}")
            view.show(lines)
        self.query_one("#after", LinesView).focus(scroll_visible=False)

    def action_leave(self) -> None:
        self.dismiss()


_SIGNS = (
    "+ added  − removed  ~ changed at this turn",
    "▶ the cursor  ◇ 2 evidence of question 2  ◆ evidence of the question you came from  × cut from the prompt",
    ANSWER_LEGEND,
    EVIDENCE_LEGEND,
    STRIP_LEGEND,
    SIGNIFICANCE_LEGEND,
    PROMPT_LEGEND,
)
_ABOUT_ANSWERS: frozenset[Place] = frozenset(["results", "run", "why", "duel", "regression", "two_whys"])
_WITH_PANELS: frozenset[Place] = frozenset(["replay", "why", "duel", "two_whys"])


class HelpScreen(ModalScreen[None]):
    """Signs and keys, those of the screen below first. Typing after / keeps only the lines with these words."""

    PLACE: ClassVar[Place] = "help"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PLACE)

    def compose(self) -> ComposeResult:
        with Vertical(id="helping"):
            yield Input(placeholder="/ to search the help", id="wanted", compact=True)
            yield LinesView(id="help")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        below = self.app.screen_stack[-2] if len(self.app.screen_stack) > 1 else None
        place: Place | None = getattr(below, "PLACE", None)
        self._lines = list(help_lines(place, getattr(self.app, "rebound", {})))
        here = f" · {PLACES[place].lower()}" if place in PLACES else ""
        self.query_one("#help", LinesView).border_title = Content(f"signs and keys{here}")
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
        wanted = self.query_one("#wanted", Input)
        if wanted.has_focus:
            wanted.value = ""
            self.query_one("#help", LinesView).focus()
        else:
            self.dismiss()


def _holding(lines: Sequence[Line], words: Sequence[str]) -> Iterator[Line]:
    """The lines with all words, each below its heading: the same key does something else on another screen."""
    heading: Line | None = None
    for each in lines:
        if each.spans and each.spans[0].tone == "title":
            heading = each
        elif _text(each):
            of_heading = "" if heading is None else _text(heading)
            if all(word in _text(each) or word in of_heading for word in words):
                if heading is not None:
                    yield heading
                    heading = None
                yield each


def _text(each: Line) -> str:
    return "".join(span.text for span in each.spans).casefold()


def help_lines(place: Place | None, rebound: Rebound) -> Iterator[Line]:
    """The legend first, then the keys of one screen, then those of all others."""
    if place in _ABOUT_ANSWERS:
        yield from [*_failure_labels(), *_signs()]
    else:
        yield from _signs()
    here = [place] if place in PLACES else []
    panels: list[Place] = ["panel"] if place in _WITH_PANELS else []
    first = [*here, *panels]
    for each in first:
        yield from _keys(each, rebound)
    yield line(Span("Everywhere", "title"))
    yield line(Span(f"  {pad('ctrl+p', 9)} ", "key"), "The command palette: every action by name, and the themes.")
    yield line("")
    if place not in _ABOUT_ANSWERS:
        yield from _failure_labels()
    for other in PLACES:
        if other not in first:
            yield from _keys(other, rebound)


def _signs() -> Iterator[Line]:
    yield line(Span("Signs", "title"))
    for signs in _SIGNS:
        yield line("  ", signs, hang=2)
    yield line("")


def _failure_labels() -> Iterator[Line]:
    yield line(Span("Which stage lost the fact", "title"))
    for label, words in LABEL_WORDS.items():
        letter, tone = stage_chip(label)
        name = Span(f" {pad(label.replace('_', ' '), 20)}", label_tone(label))
        yield line("  ", Span(f" {letter} ", tone), name, words, hang=26)
    yield line("")


def _keys(place: Place, rebound: Rebound) -> Iterator[Line]:
    keys = keys_of(place, rebound)
    yield line(Span(PLACES[place], "title"))
    for description, actions in groupby(actions_of(place), lambda action: action.description):
        shown = " ".join(shown_key(key) for action in actions for key in keys[action.id]) or "no key"
        yield line(Span(f"  {pad(shown, max(9, cells(shown)))} ", "key"), description, hang=12)
    yield line("")
