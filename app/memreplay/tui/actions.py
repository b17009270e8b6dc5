"""Every action of every screen, in one table: the bindings, the help screen and the palette are made from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from textual.binding import Binding, BindingType

Place = Literal[
    "start", "replay", "panel", "results", "run", "tests", "why", "biography", "compare", "help", "pick", "prompt"
]

PLACES: Final[dict[Place, str]] = {
    "replay": "Replay",
    "panel": "In a panel",
    "results": "Results",
    "run": "Results of a whole run",
    "tests": "Results of tests",
    "why": "Why this answer",
    "biography": "Fact biography",
    "compare": "Two recordings",
    "start": "Start",
    "pick": "Choosing",
    "prompt": "Typing",
    "help": "Help",
}


@dataclass(frozen=True)
class Action:
    """Something that the user can do.

    ``call`` is the Textual action, ``keys`` what triggers it, ``label`` its word in the footer (none: it is not
    shown there), ``description`` a sentence for help and palette.
    """

    place: Place
    call: str
    keys: tuple[str, ...]
    label: str
    description: str

    @property
    def id(self) -> str:
        """What a key map names it by."""
        return f"{self.place}.{self.call}"

    @property
    def is_count(self) -> bool:
        """Whether it only begins a count, which means nothing by itself."""
        return self.description == _COUNT


_COUNT = "A count before a movement, as in vim: 10. goes ten turns on, 25G to turn 25."

ACTIONS: Final[tuple[Action, ...]] = (
    Action("replay", "step", (".", "space"), "step", "One turn on; at the live frontier, play the next turn."),
    Action("replay", "back", (",",), "back", "One turn back. Nothing is executed again."),
    Action("replay", "play", ("p",), "play", "Play on by itself; again: four times, sixteen times as fast, pause."),
    Action("replay", "last", ("G",), "all", "To the end; live: play all that is left, then ask the questions."),
    Action("replay", "first", ("g",), "", "To the beginning."),
    Action(
        "replay", "next_eventful", ("]",), "", "To the next turn with a write, a promotion, evidence or an error."
    ),
    Action("replay", "previous_eventful", ("[",), "", "To the previous such turn."),
    Action("replay", "next_session", ("}",), "", "To the next session."),
    Action("replay", "previous_session", ("{",), "", "To the beginning of this session, or the one before."),
    Action("replay", "go_to", ("ctrl+g",), "", "To a turn by its number."),
    Action(
        "replay",
        "write",
        ("w",),
        "who",
        "Who wrote this? To the turn and the command that wrote the selected line.",
    ),
    Action("replay", "return", ("backspace",), "", "Back to where you jumped from."),
    Action(
        "replay",
        "biography",
        ("f",),
        "",
        "The biography of the fact: the whole way of this turn through each memory.",
    ),
    Action(
        "replay",
        "compare",
        ("d",),
        "",
        "What changed: since the turn before, a bookmark, against another architecture, or off.",
    ),
    Action("replay", "beside", ("D",), "", "Before and after of the focused state, side by side."),
    Action("replay", "next_page", ("v",), "page", "The next page of panels: memory, retrieval, trace."),
    Action("replay", "significance", ("s",), "", "Colour the conversation by significance, or not."),
    Action(
        "replay",
        "watch",
        ("b",),
        "",
        "Break on a condition: a key, a place in a state, a turn's text, something retrieved.",
    ),
    Action("replay", "watches", ("B",), "", "The list of watches."),
    Action(
        "replay", "continue", ("c",), "", "On to the next turn at which a watch stops; a live run plays until then."
    ),
    Action("replay", "continue_back", ("C",), "", "Back to the previous turn at which a watch stops."),
    Action("replay", "search", ("/",), "search", "Search messages, states, hits and prompts of the whole session."),
    Action("replay", "next_match", ("n",), "", "The next match."),
    Action("replay", "previous_match", ("N",), "", "The previous match."),
    Action(
        "replay",
        "bookmark",
        ("m",),
        "",
        "Bookmark this turn, with a note; an empty name removes the bookmark here.",
    ),
    Action("replay", "bookmarks", ("apostrophe",), "", "The list of bookmarks, to go to one."),
    Action("replay", "ask", ("a",), "ask", "Ask a question of every architecture as memory stands here."),
    Action("replay", "stop", ("x",), "", "Stop what is being played or asked."),
    Action("replay", "digit(1)", ("1",), "", "Show and focus the first architecture."),
    Action("replay", "digit(2)", ("2",), "", "Show and focus the second architecture."),
    Action("replay", "digit(3)", ("3",), "", "Show and focus the third architecture."),
    Action("replay", "digit(4)", ("4",), "", "Show and focus the fourth architecture."),
    Action("replay", "digit(5)", ("5",), "", "Show and focus the fifth architecture."),
    *(Action("replay", f"digit({digit})", (str(digit),), "", _COUNT) for digit in (6, 7, 8, 9, 0)),
    Action("replay", "app.focus_next", ("tab",), "", "Focus the next panel."),
    Action("replay", "enlarge", ("+",), "", "Enlarge the focused panel; escape returns."),
    Action(
        "replay",
        "results",
        ("r",),
        "results",
        "Every question with every architecture's answer; of a run of tests, every test.",
    ),
    Action("replay", "run", ("R",), "", "Every question of every conversation of the run that this one is of."),
    Action("replay", "export", ("e",), "", "Export the screen as an SVG file."),
    Action("replay", "help", ("?",), "help", "All keys."),
    Action("replay", "leave", ("escape",), "", "Back to the start screen."),
    Action("replay", "app.quit", ("q",), "quit", "Quit. A live run is kept as interrupted."),
    Action("panel", "select_next", ("down", "j"), "", "Select the next line that leads somewhere."),
    Action("panel", "select_previous", ("up", "k"), "", "Select the previous such line."),
    Action(
        "panel",
        "follow",
        ("enter",),
        "",
        "Follow the selected line: to its turn, its answer, or the command that wrote it.",
    ),
    Action("results", "next", ("down", "j"), "", "The next question."),
    Action("results", "previous", ("up", "k"), "", "The previous question."),
    Action("results", "next_answer", ("right", "l"), "", "The next architecture's answer."),
    Action("results", "previous_answer", ("left", "h"), "", "The previous architecture's answer."),
    Action("results", "why", ("enter", "y"), "why", "Why the answer pointed at is what it is."),
    Action(
        "results", "filter", ("f",), "filter", "Only questions of one failure, or those that memories disagree on."
    ),
    Action("results", "jump", ("t",), "evidence", "Into the replay, at the turn that holds the answer."),
    Action("results", "run", ("R",), "whole run", "Every question of the whole run, in all its conversations."),
    Action("results", "leave", ("escape", "r"), "replay", "Back to the replay."),
    Action("results", "export", ("e",), "svg", "Export the screen as an SVG file."),
    Action("results", "help", ("?",), "help", "All keys."),
    Action("results", "app.quit", ("q",), "quit", "Quit."),
    Action("run", "next", ("down", "j"), "", "The next question, or the first of the next conversation."),
    Action("run", "previous", ("up", "k"), "", "The previous question of the run."),
    Action("run", "next_answer", ("right", "l"), "", "The next architecture's answer."),
    Action("run", "previous_answer", ("left", "h"), "", "The previous architecture's answer."),
    Action("run", "why", ("enter", "y"), "why", "Why the answer pointed at is what it is; escape leads back here."),
    Action(
        "run", "filter", ("f",), "filter", "Only questions of one failure, or of disagreement, in the whole run."
    ),
    Action(
        "run",
        "jump",
        ("t",),
        "evidence",
        "Into the replay of the question's conversation, at its evidence.",
    ),
    Action("run", "leave", ("escape", "R"), "back", "Back."),
    Action("run", "export", ("e",), "svg", "Export the screen as an SVG file."),
    Action("run", "help", ("?",), "help", "All keys."),
    Action("run", "app.quit", ("q",), "quit", "Quit."),
    Action("tests", "next", ("down", "j"), "", "The next test."),
    Action("tests", "previous", ("up", "k"), "", "The previous test."),
    Action("tests", "to_score", ("enter", "t"), "score", "Into the replay, where the test was scored."),
    Action("tests", "to_beginning", ("b",), "beginning", "Into the replay, where the test begins."),
    Action("tests", "leave", ("escape", "r"), "replay", "Back to the replay."),
    Action("tests", "export", ("e",), "svg", "Export the screen as an SVG file."),
    Action("tests", "help", ("?",), "help", "All keys."),
    Action("tests", "app.quit", ("q",), "quit", "Quit."),
    Action(
        "why",
        "write",
        ("w",),
        "the write",
        "To the write: of the selected line, or that which should have been there.",
    ),
    Action(
        "why", "next_architecture", ("right", "l"), "next", "The same question, answered by the next architecture."
    ),
    Action("why", "previous_architecture", ("left", "h"), "previous", "The same, by the previous architecture."),
    Action(
        "why", "biography", ("f",), "biography", "The biography of the fact: its whole way through this memory."
    ),
    Action("why", "app.focus_next", ("tab",), "prompt", "Focus the prompt, or what is said of it."),
    Action("why", "leave", ("escape", "backspace"), "back", "Back."),
    Action("why", "export", ("e",), "", "Export the screen as an SVG file."),
    Action("why", "help", ("?",), "help", "All keys."),
    Action("why", "app.quit", ("q",), "", "Quit."),
    Action("biography", "write", ("w",), "the write", "To the turn of the selected step in the replay."),
    Action("biography", "next_architecture", ("right", "l"), "next", "The same fact in the next architecture."),
    Action("biography", "previous_architecture", ("left", "h"), "previous", "The same fact in the previous one."),
    Action("biography", "leave", ("escape", "backspace"), "back", "Back."),
    Action("biography", "export", ("e",), "", "Export the screen as an SVG file."),
    Action("biography", "help", ("?",), "help", "All keys."),
    Action("compare", "next", ("down", "j"), "", "The next question."),
    Action("compare", "previous", ("up", "k"), "", "The previous question."),
    Action("compare", "open_left", ("1",), "open the first", "Open the first recording at this question."),
    Action("compare", "open_right", ("2",), "open the second", "Open the second recording at this question."),
    Action("compare", "leave", ("escape",), "back", "Back."),
    Action("compare", "export", ("e",), "", "Export the screen as an SVG file."),
    Action("compare", "help", ("?",), "help", "All keys."),
    Action("compare", "app.quit", ("q",), "quit", "Quit."),
    Action("start", "filter", ("/",), "filter", "Filter the conversations."),
    Action("start", "start", ("ctrl+s",), "start", "Start a live replay of the highlighted conversation."),
    Action("start", "run", ("R",), "whole run", "Every question of the highlighted recording, in one list."),
    Action("start", "help", ("?",), "help", "All keys."),
    Action("start", "app.quit", ("q",), "quit", "Quit."),
    Action("pick", "leave", ("escape",), "back", "Choose nothing."),
    Action("prompt", "leave", ("escape",), "back", "Type nothing."),
    Action("help", "leave", ("escape", "q", "?"), "back", "Back."),
)


_SHOWN: Final = {
    "escape": "esc",
    "ctrl+s": "^s",
    "ctrl+g": "^g",
    "apostrophe": "'",
    "backspace": "⌫",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}


def actions_of(place: Place) -> Iterator[Action]:
    """The actions of a screen, in the order of the table."""
    return (action for action in ACTIONS if action.place == place)


def bindings_of(place: Place) -> list[BindingType]:
    """The bindings of a screen: the first key of an action stands in the footer, the others work as well."""
    return [
        Binding(
            ",".join("comma" if key == "," else key for key in action.keys),
            action.call,
            action.label,
            show=bool(action.label),
            key_display=shown_key(action.keys[0]),
            tooltip=action.description,
            id=action.id,
        )
        for action in actions_of(place)
    ]


def shown_key(key: str) -> str:
    """A key as it is printed."""
    return _SHOWN.get(key, key)
