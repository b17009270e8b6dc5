"""Every action of every screen, in one table: the source of the bindings, the help screen and the palette."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from textual.binding import Binding, BindingType

Place = Literal[
    "start", "replay", "panel", "results", "run", "tests", "why", "what_if", "biography", "browser",
    "compare", "regression", "two_whys", "duel", "ask", "beside", "help", "pick", "prompt", "review",
]  # fmt: skip

PLACES: Final[dict[Place, str]] = {
    "replay": "Replay",
    "panel": "In a panel",
    "results": "Results",
    "run": "Results of a whole run",
    "tests": "Results of tests",
    "why": "Why this answer",
    "what_if": "What if",
    "biography": "Fact biography",
    "browser": "Memory browser",
    "regression": "Two runs compared",
    "two_whys": "Two answers compared",
    "duel": "Retrieval duel",
    "ask": "Asking",
    "beside": "Before and after",
    "compare": "Tests of two recordings",
    "start": "Start",
    "review": "Drafted questions",
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
    def title(self) -> str:
        """What the palette lists and searches: the beginning of the description, with the other words for it."""
        words = _OTHER_WORDS.get(self.id)
        return f"{self._name} · {words}" if words else self._name

    @property
    def details(self) -> str:
        """What the description says beyond the title."""
        return self.description.removeprefix(self._name).strip(" .;:")

    @property
    def _name(self) -> str:
        return re.split(r"[.;:]", self.description)[0]

    @property
    def is_count(self) -> bool:
        """Whether the key is only the start of a count."""
        return self.description == _COUNT


_OTHER_WORDS: Final = {
    "replay.write": "provenance",
    "replay.biography": "life of a fact",
    "replay.beside": "diff",
    "replay.next_page": "operations, candidates",
    "replay.significance": "heat map, importance",
    "replay.watch": "watch",
    "replay.search": "find",
    "replay.bookmark": "mark, note",
    "replay.ask": "duel, retrieval",
    "replay.enlarge": "zoom, maximize",
    "replay.results": "results, scores, matrix",
    "replay.run": "results of the whole run",
    "replay.browser": "memory browser, stored",
    "replay.help": "help, legend",
    "results.breakdown": "category, location",
    "run.breakdown": "category, location",
    "results.words": "find, search",
    "run.words": "find, search",
}
"""Words that people look an action up by in the palette, where its description lacks them."""

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


def _moves(place: Place, what: str) -> tuple[Action, ...]:
    """Moving through a list of ``what``, with counts."""
    return (
        Action(place, "next", ("down", "j"), "", f"Select the next {what}; 10j moves by ten."),
        Action(place, "previous", ("up", "k"), "", f"Select the previous {what}."),
        Action(place, "page_down", ("pagedown", "ctrl+f"), "", "Move down by a page."),
        Action(place, "page_up", ("pageup", "ctrl+b"), "", "Move up by a page."),
        Action(place, "first", ("g", "home"), "", f"Select the first {what}."),
        Action(place, "last", ("G", "end"), "", f"Select the last {what}; 25G selects {what} 25."),
        *(Action(place, f"digit({digit})", (str(digit),), "", _COUNT) for digit in range(10)),
    )


def _matrix(place: Place) -> tuple[Action, ...]:
    """What the results of a conversation and of a whole run have in common."""
    return (
        *_moves(place, "question"),
        Action(place, "next_answer", ("right", "l"), "", "Select the answer of the next architecture."),
        Action(place, "previous_answer", ("left", "h"), "", "Select the answer of the previous architecture."),
        Action(place, "why", ("enter", "y"), "why", "Explain the selected answer; escape returns here."),
        Action(
            place,
            "write",
            ("w",),
            "",
            "Go to the write of the selected answer's evidence, or to where it should have happened.",
        ),
        Action(place, "next_wrong", ("n",), "next wrong", "Select the next wrong answer under this filter."),
        Action(place, "previous_wrong", ("N",), "", "Select the previous wrong answer under this filter."),
        Action(
            place,
            "filter",
            ("f",),
            "filter",
            "Show only questions with one failure, or those memories disagree on.",
        ),
        Action(place, "words", ("/",), "find", "Show only questions with some words; rag:cut finds what rag cut."),
        Action(place, "sort", ("s",), "sort", "Sort by any column; the same column again reverses the order."),
        Action(place, "reverse", ("S",), "", "Reverse the order."),
        Action(
            place, "breakdown", ("b",), "by type", "Break the scores down by type, category, location or salience."
        ),
        Action(place, "jump", ("t",), "", "Open the replay at the evidence of the selected question."),
    )


ACTIONS: Final[tuple[Action, ...]] = (
    Action("replay", "step", (".", "space"), "step", "Step one turn; at the live frontier, play one."),
    Action("replay", "back", (",",), "back", "Step back one turn. Nothing is executed again."),
    Action("replay", "play", ("p",), "", "Play; press again for 4×, then 16× speed, then pause."),
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
    Action(
        "replay",
        "ask",
        ("a",),
        "ask",
        "Ask every architecture a question at this turn, and compare the replies.",
    ),
    Action("replay", "fork", ("F",), "", "Fork here: change something, play on, compare; or open a branch."),
    Action("replay", "lifetimes", ("l",), "", "Show from when to when each memory knew the answer of a question."),
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
    *_matrix("results"),
    Action("results", "run", ("R",), "run", "Show every question of the whole run, in all conversations."),
    Action("results", "leave", ("escape", "r"), "back", "Return to the replay."),
    *_common("results", export="", quit=""),
    *_matrix("run"),
    Action("run", "leave", ("escape", "R"), "back", "Go back."),
    *_common("run", export="", quit=""),
    *_moves("tests", "test"),
    Action("tests", "why", ("y",), "why", "Show the selected test in full, and how it was graded."),
    Action("tests", "to_score", ("enter", "t"), "score", "Open the replay where the test was scored."),
    Action("tests", "to_beginning", ("b",), "beginning", "Open the replay where the test begins."),
    Action("tests", "leave", ("escape", "r"), "replay", "Return to the replay."),
    *_common("tests", export="svg", quit="quit"),
    Action(
        "why",
        "write",
        ("w",),
        "write",
        "Go to the write of the selected line, or to where it should have happened.",
    ),
    Action("why", "next_architecture", ("right", "l"), "", "Explain the next architecture's answer."),
    Action("why", "previous_architecture", ("left", "h"), "", "Explain the previous architecture's answer."),
    Action("why", "next_wrong", ("n",), "next wrong", "Explain the next wrong answer of the list you came from."),
    Action("why", "previous_wrong", ("N",), "", "Explain the previous wrong answer of that list."),
    Action("why", "duel", ("a",), "duel", "Compare what every memory replied and ranked for this question."),
    Action("why", "what_if", ("x",), "what if", "Ask a wrong answer again under one change at a time."),
    Action("why", "biography", ("f",), "fact", "Show the biography of the fact in this memory."),
    Action("why", "label_right", ("y",), "label", "Label this answer as right by hand; again removes the label."),
    Action("why", "label_wrong", ("Y",), "", "Label this answer as wrong by hand; again removes the label."),
    Action("why", "app.focus_next", ("tab",), "prompt", "Switch between explanation and prompt."),
    Action("why", "leave", ("escape", "backspace"), "back", "Go back."),
    *_common("why", export="", quit=""),
    Action("what_if", "next", ("down", "j"), "", "Select the next change."),
    Action("what_if", "previous", ("up", "k"), "", "Select the previous change."),
    Action("what_if", "ask", ("enter",), "ask", "Ask under the selected change."),
    Action("what_if", "ask_all", ("A",), "ask all", "Ask under every change that has no reply yet."),
    Action("what_if", "stop", ("x",), "", "Stop asking."),
    Action("what_if", "app.focus_next", ("tab",), "", "Switch between the two prompts."),
    Action("what_if", "leave", ("escape", "backspace"), "back", "Go back."),
    *_common("what_if", export="", quit=""),
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
    *_moves("regression", "change"),
    Action("regression", "why", ("enter", "y"), "why", "Explain both answers of a change, side by side."),
    Action("regression", "open_left", ("[",), "open 1", "Open the first recording at the evidence."),
    Action("regression", "open_right", ("]",), "open 2", "Open the second recording at the evidence."),
    Action("regression", "leave", ("escape",), "back", "Go back."),
    *_common("regression", export="", quit="quit"),
    Action("two_whys", "next_change", ("n",), "next", "Explain the next change."),
    Action("two_whys", "previous_change", ("N",), "previous", "Explain the previous change."),
    Action("two_whys", "app.focus_next", ("tab",), "other", "Switch between the two explanations."),
    Action("two_whys", "leave", ("escape", "backspace"), "back", "Go back."),
    *_common("two_whys", export="", quit=""),
    Action("duel", "next_architecture", ("right", "l", "tab"), "next", "Go to the next memory."),
    Action("duel", "previous_architecture", ("left", "h", "shift+tab"), "", "Go to the previous memory."),
    Action("duel", "more_hits", ("+",), "a hit more", "Cut the recorded candidates one hit later; asks no model."),
    Action("duel", "fewer_hits", ("-",), "one less", "Cut the recorded candidates one hit earlier."),
    Action("duel", "more_tokens", (">",), "256 tokens more", "Cut them at a budget of 256 tokens more."),
    Action("duel", "fewer_tokens", ("<",), "less", "Cut them at a budget of 256 tokens less."),
    Action("duel", "as_recorded", ("0",), "", "Return to the cut as it was recorded."),
    Action("duel", "why", ("y",), "why", "Explain the answer of this memory."),
    Action("duel", "leave", ("escape", "a", "backspace"), "back", "Go back."),
    *_common("duel", export="", quit=""),
    Action("compare", "next", ("down", "j"), "", "Select the next test."),
    Action("compare", "previous", ("up", "k"), "", "Select the previous test."),
    Action("compare", "open_left", ("1",), "open the first", "Open the first recording at this test."),
    Action("compare", "open_right", ("2",), "open the second", "Open the second recording at this test."),
    Action("compare", "leave", ("escape",), "back", "Go back."),
    *_common("compare", export="", quit="quit"),
    Action("start", "filter", ("/",), "filter", "Filter the conversations."),
    Action("start", "to_list", ("down",), "", "From the filter, go to the list of conversations."),
    Action("start", "leave", ("escape",), "", "Leave the filter and show all conversations again."),
    Action("start", "start", ("ctrl+s",), "start", "Start a live replay of the highlighted conversation."),
    Action("start", "mark", ("space",), "mark", "Mark the highlighted recording, to compare two of them."),
    Action("start", "compare", ("c",), "compare", "Compare the marked recordings: what was fixed, what broke."),
    Action("start", "run", ("R",), "whole run", "List every question of the highlighted recording."),
    Action("start", "app.tour", ("T",), "tour", "Start the guided tour: ten keys on the demo."),
    Action("start", "help", ("?",), "help", "Show all keys."),
    Action("start", "app.quit", ("q",), "quit", "Quit."),
    *_moves("review", "draft"),
    Action("review", "accept", ("y",), "accept", "Accept the selected draft, and go to the next open one."),
    Action("review", "reject", ("n",), "reject", "Reject the selected draft, and go to the next open one."),
    Action("review", "reopen", ("u",), "undo", "Leave the selected draft open again."),
    Action("review", "answer", ("a", "enter"), "edit answer", "Edit the expected answer of the selected draft."),
    Action("review", "question", ("c",), "edit question", "Edit the question of the selected draft."),
    Action("review", "next_open", ("o",), "next open", "Select the next draft without a decision."),
    Action("review", "scroll_down", ("J",), "", "Scroll down in the evidence."),
    Action("review", "scroll_up", ("K",), "", "Scroll up in the evidence."),
    *_common("review", export="", quit="save and quit"),
    Action("beside", "leave", ("escape", "q", "?"), "back", "Go back."),
    Action("ask", "leave", ("escape",), "back", "Ask nothing."),
    Action("pick", "leave", ("escape",), "back", "Cancel."),
    Action("prompt", "leave", ("escape",), "back", "Cancel."),
    Action("help", "search", ("/",), "search", "Search the help."),
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
