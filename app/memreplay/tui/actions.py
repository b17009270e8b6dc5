"""Every action of every screen, in one table: the source of the bindings, the help screen and the palette."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from textual.binding import Binding, BindingType

Place = Literal[
    "start", "replay", "panel", "results", "run", "tests", "why", "biography", "browser", "compare", "help", "pick",
    "prompt",
]  # fmt: skip

PLACES: Final[dict[Place, str]] = {
    "replay": "Replay",
    "panel": "In a panel",
    "results": "Results",
    "run": "Results of a whole run",
    "tests": "Results of tests",
    "why": "Why this answer",
    "biography": "Fact biography",
    "browser": "Memory browser",
    "compare": "Two recordings",
    "start": "Start",
    "pick": "Choosing",
    "prompt": "Typing",
    "help": "Help",
}


@dataclass(frozen=True)
class Action:
    """Something that the user can do.

    ``call`` is the Textual action, ``label`` its footer label (an empty one hides it there), ``description`` a
    sentence for help and palette.
    """

    place: Place
    call: str
    keys: tuple[str, ...]
    label: str
    description: str

    @property
    def id(self) -> str:
        """The name of the action in a key map."""
        return f"{self.place}.{self.call}"

    @property
    def is_count(self) -> bool:
        """Whether the key is only the start of a count."""
        return self.description == _COUNT


_COUNT = "A count before a movement, as in vim: 10. steps ten turns, 25G goes to turn 25."


def _common(place: Place, *, export: str, quit: str) -> tuple[Action, ...]:
    """The actions that most screens share, with their footer labels."""
    return (
        Action(place, "export", ("e",), export, "Export the screen as an SVG file."),
        Action(place, "help", ("?",), "help", "Show all keys."),
        Action(place, "app.quit", ("q",), quit, "Quit."),
    )


def _architecture(number: int, ordinal: str) -> Action:
    return Action("replay", f"digit({number})", (str(number),), "", f"Show and focus the {ordinal} architecture.")


ACTIONS: Final[tuple[Action, ...]] = (
    Action("replay", "step", (".", "space"), "step", "Step one turn; at the live frontier, play one."),
    Action("replay", "back", (",",), "back", "Step back one turn. Nothing is executed again."),
    Action("replay", "play", ("p",), "play", "Play; press again for 4×, then 16× speed, then pause."),
    Action("replay", "last", ("G",), "all", "Go to the end; live: play everything left, then ask the questions."),
    Action("replay", "first", ("g",), "", "Go to the beginning."),
    Action(
        "replay",
        "next_eventful",
        ("]",),
        "",
        "Go to the next turn with a write, promotion, evidence or error.",
    ),
    Action("replay", "previous_eventful", ("[",), "", "Go to the previous such turn."),
    Action("replay", "next_session", ("}",), "", "Go to the next session."),
    Action("replay", "previous_session", ("{",), "", "Go to the start of this or the previous session."),
    Action("replay", "go_to", ("ctrl+g",), "", "Go to a turn by number."),
    Action("replay", "write", ("w",), "who", "Who wrote this? Go to the command that wrote the selected line."),
    Action("replay", "return", ("backspace",), "", "Return to where you jumped from."),
    Action(
        "replay",
        "biography",
        ("f",),
        "",
        "Show the biography of a fact: the path of this turn through each memory.",
    ),
    Action(
        "replay",
        "compare",
        ("d",),
        "",
        "Diff against the previous turn, a bookmark, another architecture, or nothing.",
    ),
    Action("replay", "browser", ("M",), "memory", "Browse everything that a memory holds at this turn, in full."),
    Action("replay", "beside", ("D",), "", "Show the focused state before and after, side by side."),
    Action("replay", "next_page", ("v",), "page", "Show the next page of panels: memory, retrieval, trace."),
    Action("replay", "significance", ("s",), "", "Colour the conversation by significance, or stop doing so."),
    Action("replay", "watch", ("b",), "", "Set a breakpoint on a key, a path in a state, a turn's text or a hit."),
    Action("replay", "watches", ("B",), "", "List the breakpoints."),
    Action(
        "replay", "continue", ("c",), "", "Continue to the next breakpoint; a live run plays until it hits one."
    ),
    Action("replay", "continue_back", ("C",), "", "Go back to the previous turn that hits a breakpoint."),
    Action("replay", "search", ("/",), "search", "Search all messages, states, hits and prompts."),
    Action("replay", "next_match", ("n",), "", "Go to the next match."),
    Action("replay", "previous_match", ("N",), "", "Go to the previous match."),
    Action(
        "replay", "bookmark", ("m",), "", "Bookmark this turn, with a note; an empty name removes the bookmark."
    ),
    Action("replay", "bookmarks", ("apostrophe",), "", "List the bookmarks, to go to one."),
    Action("replay", "ask", ("a",), "ask", "Ask every architecture a question about its memory at this turn."),
    Action("replay", "stop", ("x",), "", "Stop playing or asking."),
    *map(_architecture, range(1, 6), ("first", "second", "third", "fourth", "fifth")),
    *(Action("replay", f"digit({digit})", (str(digit),), "", _COUNT) for digit in (6, 7, 8, 9, 0)),
    Action("replay", "app.focus_next", ("tab",), "", "Focus the next panel."),
    Action("replay", "enlarge", ("+",), "", "Enlarge the focused panel; escape returns."),
    Action(
        "replay",
        "results",
        ("r",),
        "results",
        "Show every question with every answer; for a run of tests, every test.",
    ),
    Action("replay", "run", ("R",), "", "Show every question of every conversation in this run."),
    Action("replay", "export", ("e",), "", "Export the screen as an SVG file."),
    Action("replay", "app.tour", ("T",), "", "Start the guided tour, or end it."),
    Action("replay", "help", ("?",), "help", "Show all keys."),
    Action("replay", "go_live", ("L",), "", "Continue an interrupted recording live, from where it stopped."),
    Action("replay", "legend", ("K",), "", "Show the legend: signs, retrieval channels, breakpoints."),
    Action("replay", "headless", ("H",), "", "Show the command line that repeats this run headless."),
    Action("replay", "leave", ("escape",), "", "Return to the start screen; a live run asks first."),
    Action("replay", "app.quit", ("q",), "quit", "Quit. A live run is saved as interrupted."),
    Action("panel", "select_next", ("down", "j"), "", "Select the next line that leads somewhere."),
    Action("panel", "select_previous", ("up", "k"), "", "Select the previous such line."),
    Action(
        "panel", "follow", ("enter",), "", "Follow the line to its turn, its answer, or the command that wrote it."
    ),
    Action("results", "next", ("down", "j"), "", "Select the next question."),
    Action("results", "previous", ("up", "k"), "", "Select the previous question."),
    Action("results", "next_answer", ("right", "l"), "", "Select the next architecture's answer."),
    Action("results", "previous_answer", ("left", "h"), "", "Select the previous architecture's answer."),
    Action("results", "why", ("enter", "y"), "why", "Explain the selected answer."),
    Action(
        "results",
        "filter",
        ("f",),
        "filter",
        "Show only questions with one failure, or those memories disagree on.",
    ),
    Action("results", "jump", ("t",), "evidence", "Open the replay at the evidence of this question."),
    Action("results", "run", ("R",), "whole run", "Show every question of the whole run, in all conversations."),
    Action("results", "leave", ("escape", "r"), "replay", "Return to the replay."),
    *_common("results", export="svg", quit="quit"),
    Action("run", "next", ("down", "j"), "", "Select the next question, across conversations."),
    Action("run", "previous", ("up", "k"), "", "Select the previous question of the run."),
    Action("run", "next_answer", ("right", "l"), "", "Select the next architecture's answer."),
    Action("run", "previous_answer", ("left", "h"), "", "Select the previous architecture's answer."),
    Action("run", "why", ("enter", "y"), "why", "Explain the selected answer; escape returns here."),
    Action(
        "run", "filter", ("f",), "filter", "Show only questions of the run with one failure, or with disagreement."
    ),
    Action("run", "jump", ("t",), "evidence", "Open the replay of the conversation at the question's evidence."),
    Action("run", "leave", ("escape", "R"), "back", "Go back."),
    *_common("run", export="svg", quit="quit"),
    Action("tests", "next", ("down", "j"), "", "Select the next test."),
    Action("tests", "previous", ("up", "k"), "", "Select the previous test."),
    Action("tests", "to_score", ("enter", "t"), "score", "Open the replay where the test was scored."),
    Action("tests", "to_beginning", ("b",), "beginning", "Open the replay where the test begins."),
    Action("tests", "leave", ("escape", "r"), "replay", "Return to the replay."),
    *_common("tests", export="svg", quit="quit"),
    Action(
        "why",
        "write",
        ("w",),
        "the write",
        "Go to the write of the selected line, or to where it should have happened.",
    ),
    Action("why", "next_architecture", ("right", "l"), "next", "Explain the next architecture's answer."),
    Action(
        "why", "previous_architecture", ("left", "h"), "previous", "Explain the previous architecture's answer."
    ),
    Action("why", "biography", ("f",), "biography", "Show the biography of the fact in this memory."),
    Action("why", "label_right", ("y",), "right", "Label this answer as right by hand; again removes the label."),
    Action("why", "label_wrong", ("Y",), "wrong", "Label this answer as wrong by hand; again removes the label."),
    Action("why", "app.focus_next", ("tab",), "prompt", "Switch between explanation and prompt."),
    Action("why", "leave", ("escape", "backspace"), "back", "Go back."),
    *_common("why", export="", quit=""),
    Action("biography", "write", ("w",), "the write", "Open the replay at the turn of the selected step."),
    Action("biography", "next_architecture", ("right", "l"), "next", "Show the fact in the next architecture."),
    Action(
        "biography", "previous_architecture", ("left", "h"), "previous", "Show it in the previous architecture."
    ),
    Action("biography", "leave", ("escape", "backspace"), "back", "Go back."),
    Action("biography", "export", ("e",), "", "Export the screen as an SVG file."),
    Action("biography", "help", ("?",), "help", "Show all keys."),
    Action("browser", "next", ("down", "j"), "", "Select the next item."),
    Action("browser", "previous", ("up", "k"), "", "Select the previous item."),
    Action("browser", "next_page", ("pagedown",), "", "Move down by a page."),
    Action("browser", "previous_page", ("pageup",), "", "Move up by a page."),
    Action("browser", "first", ("home", "g"), "", "Select the first item."),
    Action("browser", "last", ("end", "G"), "", "Select the last item."),
    Action("browser", "next_architecture", ("right", "l"), "memory", "Browse the next architecture's memory."),
    Action("browser", "previous_architecture", ("left", "h"), "", "Browse the previous architecture's memory."),
    Action("browser", "full_text", ("enter",), "full text", "Show the selected item alone, in full."),
    Action("browser", "write", ("w",), "write", "Who wrote this? Open the replay at the write of the item."),
    Action("browser", "search", ("/",), "search", "Show only items that hold a text; nothing typed shows all."),
    Action("browser", "sort", ("s",), "sort", "Sort by newest, oldest, most retrieved, or store."),
    Action("browser", "diff", ("d",), "diff", "Diff against another turn or another architecture."),
    Action("browser", "step", (".", "space"), "", "See the memory one turn later."),
    Action("browser", "back", (",",), "", "See the memory one turn earlier."),
    Action("browser", "app.focus_next", ("tab",), "", "Switch between the list and the details."),
    Action("browser", "leave", ("escape", "M"), "back", "Return from the full text, then to the replay."),
    *_common("browser", export="", quit=""),
    Action("compare", "next", ("down", "j"), "", "Select the next question."),
    Action("compare", "previous", ("up", "k"), "", "Select the previous question."),
    Action("compare", "open_left", ("1",), "open the first", "Open the first recording at this question."),
    Action("compare", "open_right", ("2",), "open the second", "Open the second recording at this question."),
    Action("compare", "leave", ("escape",), "back", "Go back."),
    *_common("compare", export="", quit="quit"),
    Action("start", "filter", ("/",), "filter", "Filter the conversations."),
    Action("start", "to_list", ("down",), "", "From the filter, go to the list of conversations."),
    Action("start", "leave", ("escape",), "", "Leave the filter and show all conversations again."),
    Action("start", "start", ("ctrl+s",), "start", "Start a live replay of the highlighted conversation."),
    Action("start", "run", ("R",), "whole run", "List every question of the highlighted recording."),
    Action("start", "app.tour", ("T",), "tour", "Start the guided tour: ten keys on the demo."),
    Action("start", "help", ("?",), "help", "Show all keys."),
    Action("start", "app.quit", ("q",), "quit", "Quit."),
    Action("pick", "leave", ("escape",), "back", "Cancel."),
    Action("prompt", "leave", ("escape",), "back", "Cancel."),
    Action("help", "app.tour", ("T",), "tour", "Start the guided tour: ten keys on the demo."),
    Action("help", "leave", ("escape", "q", "?"), "back", "Go back."),
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
    """The bindings of a screen. The footer shows the first key of each action; the others work too."""
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
    """A key as shown on the screen."""
    return _SHOWN.get(key, key)
