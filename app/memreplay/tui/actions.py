"""Every action of every screen, in one table: the source of the bindings, the help screen and the palette."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from textual.binding import Binding, BindingType

from memreplay.views.text import shown_key

Place = Literal[
    "start", "replay", "panel", "results", "tests", "why", "what_if", "writer", "biography", "browser",
    "regression", "two_whys", "duel", "ask", "beside", "help", "pick", "prompt", "review",
    "conversations", "budget",
]  # fmt: skip

PLACES: Final[dict[Place, str]] = {
    "replay": "Replay",
    "panel": "In a panel",
    "results": "Results",
    "tests": "Results of tests",
    "why": "Why this answer",
    "what_if": "What if",
    "writer": "The writer asked again",
    "biography": "Fact biography",
    "browser": "Memory browser",
    "regression": "Two runs compared",
    "two_whys": "Two answers compared",
    "duel": "Retrieval duel",
    "budget": "Budget curve",
    "ask": "Asking",
    "beside": "Before and after",
    "start": "Start",
    "review": "Drafted questions",
    "pick": "Choosing",
    "conversations": "Choosing a conversation",
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
        """Return the name of the action in a key map."""
        return f"{self.place}.{self.call}"

    @property
    def title(self) -> str:
        """Return what the palette lists and searches: the beginning of the description, with the other words for
        it.
        """
        words = _OTHER_WORDS.get(self.id)
        return f"{self._name} · {words}" if words else self._name

    @property
    def details(self) -> str:
        """Return what the description says beyond the title."""
        return self.description.removeprefix(self._name).strip(" .;:")

    @property
    def _name(self) -> str:
        return re.split(r"[.;:]", self.description)[0]

    @property
    def is_count(self) -> bool:
        """Return whether the key is only the start of a count."""
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
    "results.words": "find, search",
}
"""Words that people look an action up by in the palette, where its description lacks them."""

_COUNT = "A count before a movement, as in vim: 10. steps ten turns, 25G goes to turn 25."


Row = tuple[str, str, str, str]
"""An action in the table: its call, its keys separated by blanks, its label, and its description."""


def _at(place: Place, *rows: Row) -> tuple[Action, ...]:
    return tuple(Action(place, call, tuple(keys.split()), label, words) for call, keys, label, words in rows)


def _common(export: str = "", quit: str = "") -> tuple[Row, ...]:
    """Return the actions that most screens share, with their footer labels."""
    return (
        ("export", "e", export, "Export the screen as an SVG file."),
        ("help", "?", "help", "Show all keys."),
        ("app.quit", "q", quit, "Quit."),
    )


def _moves(what: str) -> tuple[Row, ...]:
    """Moving through a list of ``what``, with counts."""
    return (
        ("next", "down j", "", f"Select the next {what}; 10j moves by ten."),
        ("previous", "up k", "", f"Select the previous {what}."),
        ("page_down", "pagedown ctrl+f", "", "Move down by a page."),
        ("page_up", "pageup ctrl+b", "", "Move up by a page."),
        ("first", "g home", "", f"Select the first {what}."),
        ("last", "G end", "", f"Select the last {what}; 25G selects {what} 25."),
        *((f"digit({digit})", str(digit), "", _COUNT) for digit in range(10)),
    )


def _scrolls(what: str) -> tuple[Row, ...]:
    """Return the keys that scroll ``what`` stands beside a list."""
    return (
        ("scroll_down", "ctrl+d", "", f"Scroll down in {what}."),
        ("scroll_up", "ctrl+u", "", f"Scroll up in {what}."),
    )


def _tabs() -> tuple[Row, ...]:
    """Return the keys that switch between the tabs of the results; a tab's own key goes back."""
    return (
        ("conversation", "r", "", "Show the results of the selected question's conversation."),
        ("run", "R", "", "Show the results of the whole run, in all conversations."),
        ("against", "d", "", "Compare with a branch of this run, or with another recording."),
    )


def _changes() -> tuple[Row, ...]:
    """Return the keys of a list of changes, each of which can be asked."""
    return (
        ("next", "down j", "", "Select the next change."),
        ("previous", "up k", "", "Select the previous change."),
        ("ask", "enter", "ask", "Ask under the selected change."),
        ("ask_all", "A", "ask all", "Ask under every change that has no reply yet."),
        ("stop", "x", "", "Stop asking."),
    )


def _about_the_answer(but: Place) -> tuple[Row, ...]:
    """Return the keys that switch to the other screens about an answer."""
    rows: tuple[Row, ...] = (
        ("why", "V", "why", "Explain this answer."),
        ("what_if", "i", "what if", "Ask a wrong answer again under one change at a time."),
        ("biography", "f", "fact", "Show the biography of the fact in this memory."),
        ("duel", "a", "duel", "Compare what every memory replied and ranked for this question."),
    )
    return tuple(row for row in rows if row[0] != but)


ACTIONS: Final[tuple[Action, ...]] = (
    *_at(
        "replay",
        ("step", ". space", "step", "Step one turn; at the live frontier, play one."),
        ("back", ",", "back", "Step back one turn. Nothing is executed again."),
        ("play", "p", "", "Play; press again for 4×, then 16× speed, then pause."),
        ("last", "G", "all", "Go to the end; live: play everything left, then ask the questions."),
        ("first", "g", "", "Go to the beginning."),
        ("next_eventful", "]", "", "Go to the next turn with a write, promotion, evidence or error."),
        ("previous_eventful", "[", "", "Go to the previous such turn."),
        ("next_session", "}", "", "Go to the next session."),
        ("previous_session", "{", "", "Go to the start of this or the previous session."),
        ("go_to", "ctrl+g", "", "Go to a turn by number."),
        ("write", "w", "who", "Who wrote this? Go to the command that wrote the selected line."),
        ("writer", "W", "", "Ask the writing model again about a fact that it lost at this turn."),
        ("return", "backspace", "", "Return to where you jumped from."),
        ("biography", "f", "", "Show the biography of a fact: the path of this turn through each memory."),
        ("compare", "d", "", "Diff against the previous turn, a bookmark, another architecture, or nothing."),
        ("browser", "M", "memory", "Browse everything that a memory holds at this turn, in full."),
        ("beside", "D", "", "Show the focused state before and after, side by side."),
        ("next_page", "v", "page", "Show the next page of panels: memory, retrieval, trace."),
        ("significance", "s", "", "Colour the conversation by significance, or stop doing so."),
        ("watch", "b", "", "Set a breakpoint on a key, a path in a state, a turn's text or a hit."),
        ("watches", "B", "", "List the breakpoints."),
        ("continue", "c", "", "Continue to the next breakpoint; a live run plays until it hits one."),
        ("continue_back", "C", "", "Go back to the previous turn that hits a breakpoint."),
        ("search", "/", "search", "Search all messages, states, hits and prompts."),
        ("next_match", "n", "", "Go to the next match."),
        ("previous_match", "N", "", "Go to the previous match."),
        ("bookmark", "m", "", "Bookmark this turn, with a note; an empty name removes the bookmark."),
        ("bookmarks", "apostrophe", "", "List the bookmarks, to go to one."),
        ("ask", "a", "ask", "Ask every architecture a question at this turn, and compare the replies."),
        ("fork", "F", "", "Fork here: change something, play on, compare; or open a branch."),
        ("lifetimes", "l", "", "Show from when to when each memory knew the answer of a question."),
        ("stop", "x", "", "Stop playing or asking."),
        *(
            (f"digit({number})", str(number), "", f"Show and focus the {ordinal} architecture.")
            for number, ordinal in enumerate(("first", "second", "third", "fourth", "fifth"), start=1)
        ),
        *((f"digit({digit})", str(digit), "", _COUNT) for digit in (6, 7, 8, 9, 0)),
        ("app.focus_next", "tab", "", "Focus the next panel."),
        ("enlarge", "+", "", "Enlarge the focused panel; escape returns."),
        ("results", "r", "results", "Show every question with every answer; for a run of tests, every test."),
        ("run", "R", "", "Show every question of every conversation in this run."),
        ("export", "e", "", "Export the screen as an SVG file."),
        ("app.tour", "T", "", "Start the guided tour, or end it."),
        ("help", "?", "help", "Show all keys."),
        ("go_live", "L", "", "Continue an interrupted recording live, from where it stopped."),
        ("legend", "K", "", "Show the legend: signs, retrieval channels, breakpoints."),
        ("headless", "H", "", "Show the command line that repeats this run headless."),
        ("leave", "escape", "", "Close search marks, bars or a diff; then go back. A live run asks first."),
        ("app.quit", "q", "quit", "Quit. A live run is saved as interrupted."),
    ),
    *_at(
        "panel",
        ("select_next", "down j", "", "Select the next line that leads somewhere."),
        ("select_previous", "up k", "", "Select the previous such line."),
        (
            "follow",
            "enter",
            "",
            "Follow the line to its turn, its answer or its write; open what stands behind a ▸.",
        ),
    ),
    *_at(
        "results",
        *_moves("question"),
        *_scrolls("the scores"),
        ("next_answer", "right l", "", "Select the answer of the next architecture."),
        ("previous_answer", "left h", "", "Select the answer of the previous architecture."),
        ("why", "enter", "why", "Explain the selected answer; escape returns here."),
        ("write", "w", "", "Go to the write of the evidence, or to where it should have happened."),
        ("next_wrong", "n", "wrong", "Select the next wrong answer under this filter."),
        ("previous_wrong", "N", "", "Select the previous wrong answer under this filter."),
        ("filter", "o", "only", "Show only questions with one failure, or those memories disagree on."),
        ("words", "/", "find", "Show only questions with some words; rag:cut finds what rag cut."),
        ("sort", "O", "order", "Sort by any column; the same column again reverses the order."),
        ("breakdown", "v", "types", "Break the scores down by type, category, location or salience."),
        ("jump", "[", "open", "Open the replay at the evidence of the selected question."),
        ("budget", "u", "budget", "Show how much reaches the prompt at which budget, for every memory."),
        *_tabs(),
        ("leave", "escape", "back", "Go back."),
        *_common(),
    ),
    *_at(
        "tests",
        *_moves("test"),
        *_scrolls("the scores"),
        ("why", "enter", "why", "Show the selected test in full, and how it was graded."),
        ("to_score", "[", "score", "Open the replay where the test was scored."),
        ("to_second", "]", "open 2", "Open the second recording, of two, where the test was scored."),
        ("to_beginning", "{", "beginning", "Open the replay where the test begins."),
        ("leave", "escape r", "replay", "Return to the replay."),
        *_common(export="svg", quit="quit"),
    ),
    *_at(
        "why",
        ("write", "w", "write", "Go to the write of the selected line, or to where it should have happened."),
        ("next_architecture", "right l", "", "Explain the next architecture's answer."),
        ("previous_architecture", "left h", "", "Explain the previous architecture's answer."),
        ("next_wrong", "n", "next wrong", "Explain the next wrong answer of the list you came from."),
        ("previous_wrong", "N", "", "Explain the previous wrong answer of that list."),
        *_about_the_answer("why"),
        ("writer", "W", "", "Ask the writing model again about a fact that it never wrote."),
        ("shrink", "S", "", "Find the smallest conversation that fails at the same stage, and save it."),
        ("keep", "t", "", "Keep a question that you marked as a dataset and a pytest test."),
        ("label_right", "y", "label", "Label this answer as right by hand; again removes the label."),
        ("label_wrong", "Y", "", "Label this answer as wrong by hand; again removes the label."),
        ("app.focus_next", "tab", "prompt", "Switch between explanation and prompt."),
        ("leave", "escape backspace", "back", "Go back."),
        *_common(),
    ),
    *_at(
        "what_if",
        *_changes(),
        *_about_the_answer("what_if"),
        ("app.focus_next", "tab", "", "Switch between the two prompts."),
        ("leave", "escape backspace", "back", "Go back."),
        *_common(),
    ),
    *_at(
        "writer",
        *_changes(),
        ("edit", "E", "try another", "Try another model, limit of tokens, or text of instructions too."),
        ("app.focus_next", "tab", "", "Focus the recorded call, to scroll it."),
        ("leave", "escape backspace", "back", "Go back."),
        *_common(),
    ),
    *_at(
        "biography",
        ("write", "w", "the write", "Open the replay at the turn of the selected step."),
        ("next_architecture", "right l", "next", "Show the fact in the next architecture."),
        ("previous_architecture", "left h", "previous", "Show it in the previous architecture."),
        *_about_the_answer("biography"),
        ("leave", "escape backspace", "back", "Go back."),
        ("export", "e", "", "Export the screen as an SVG file."),
        ("help", "?", "help", "Show all keys."),
    ),
    *_at(
        "browser",
        ("next", "down j", "", "Select the next item."),
        ("previous", "up k", "", "Select the previous item."),
        ("next_page", "pagedown", "", "Move down by a page."),
        ("previous_page", "pageup", "", "Move up by a page."),
        ("first", "home g", "", "Select the first item."),
        ("last", "end G", "", "Select the last item."),
        ("next_architecture", "right l", "memory", "Browse the next architecture's memory."),
        ("previous_architecture", "left h", "", "Browse the previous architecture's memory."),
        ("full_text", "enter", "full text", "Show the selected item alone, in full."),
        ("write", "w", "write", "Who wrote this? Open the replay at the write of the item."),
        ("search", "/", "search", "Show only items that hold a text; nothing typed shows all."),
        ("sort", "O", "order", "Sort by newest, oldest, most retrieved, or store."),
        ("diff", "d", "diff", "Diff against another turn or another architecture."),
        ("step", ". space", "", "See the memory one turn later."),
        ("back", ",", "", "See the memory one turn earlier."),
        ("app.focus_next", "tab", "", "Switch between the list and the details."),
        ("leave", "escape M", "back", "Return from the full text, then to the replay."),
        *_common(),
    ),
    *_at(
        "regression",
        *_moves("change"),
        *_scrolls("the scores"),
        ("why", "enter", "why", "Explain both answers of a change, side by side."),
        ("open_left", "[", "open 1", "Open the first recording at the evidence."),
        ("open_right", "]", "open 2", "Open the second recording at the evidence."),
        *_tabs(),
        ("leave", "escape", "back", "Go back."),
        *_common(quit="quit"),
    ),
    *_at(
        "two_whys",
        ("next_change", "n", "next", "Explain the next change."),
        ("previous_change", "N", "previous", "Explain the previous change."),
        ("app.focus_next", "tab", "other", "Switch between the two explanations."),
        ("leave", "escape backspace", "back", "Go back."),
        *_common(),
    ),
    *_at(
        "duel",
        ("next_architecture", "right l tab", "next", "Go to the next memory."),
        ("previous_architecture", "left h shift+tab", "", "Go to the previous memory."),
        ("more_hits", "+", "hit", "Cut the recorded candidates one hit later; asks no model."),
        ("fewer_hits", "-", "less", "Cut the recorded candidates one hit earlier."),
        ("more_tokens", ">", "tokens", "Cut them at a budget of 256 tokens more."),
        ("fewer_tokens", "<", "less", "Cut them at a budget of 256 tokens less."),
        ("as_recorded", "0", "", "Return to the cut as it was recorded."),
        *_about_the_answer("duel"),
        ("keep", "t", "test", "Say the answer of a question typed in: it is graded, and kept as a test."),
        ("leave", "escape a backspace", "back", "Go back."),
        *_common(),
    ),
    *_at(
        "budget",
        ("fewer_tokens", "left h <", "half", "Look at half the budget."),
        ("more_tokens", "right l >", "double", "Look at twice the budget."),
        ("more_hits", "+", "a hit more", "Cut the recorded rankings one hit later; asks no model."),
        ("fewer_hits", "-", "one less", "Cut them one hit earlier."),
        ("as_recorded", "0", "", "Return to the hits and the budget of the run."),
        (
            "settings",
            "tab",
            "curve or settings",
            "Compare settings by the recorded rankings, or draw the curve.",
        ),
        ("next", "down j", "scroll", "Scroll the settings down."),
        ("previous", "up k", "", "Scroll the settings up."),
        ("page_down", "pagedown ctrl+f", "", "Scroll the settings down by a page."),
        ("page_up", "pageup ctrl+b", "", "Scroll the settings up by a page."),
        ("first", "g home", "", "Scroll to the first setting."),
        ("last", "G end", "", "Scroll to the last line about the settings."),
        ("leave", "escape u backspace", "back", "Go back."),
        *_common(),
    ),
    *_at(
        "start",
        ("filter", "/", "filter", "Filter the conversations."),
        ("to_list", "down", "", "From the filter, go to the list of conversations."),
        ("leave", "escape", "", "Leave the filter and show all conversations again."),
        ("start", "ctrl+s", "start", "Start a live replay of the highlighted conversation."),
        ("mark", "space", "mark", "Mark the highlighted recording, to compare two of them."),
        ("compare", "d", "compare", "Compare the marked recordings: what was fixed, what broke."),
        ("run", "R", "whole run", "List every question of the highlighted recording."),
        ("app.tour", "T", "tour", "Start the guided tour: ten keys on the demo."),
        ("help", "?", "help", "Show all keys."),
        ("app.quit", "q", "quit", "Quit."),
    ),
    *_at(
        "review",
        *_moves("draft"),
        ("accept", "y", "accept", "Accept the selected draft, and go to the next open one."),
        ("reject", "n", "reject", "Reject the selected draft, and go to the next open one."),
        ("reopen", "u", "undo", "Leave the selected draft open again."),
        ("answer", "enter", "edit answer", "Edit the expected answer of the selected draft."),
        ("question", "E", "edit question", "Edit the question of the selected draft."),
        ("next_open", "]", "next open", "Select the next draft without a decision."),
        *_scrolls("the evidence"),
        *_common(quit="save and quit"),
    ),
    *_at("beside", ("leave", "escape q ?", "back", "Go back.")),
    *_at("ask", ("leave", "escape", "back", "Ask nothing.")),
    *_at("pick", ("leave", "escape", "back", "Cancel.")),
    *_at(
        "conversations",
        ("filter", "/", "filter", "Keep those with these words in title, first words, date or id."),
        ("to_list", "down", "", "From the filter, go to the list."),
        ("leave", "escape", "back", "Leave the filter and show all again; from the list, cancel."),
    ),
    *_at("prompt", ("leave", "escape", "back", "Cancel.")),
    *_at(
        "help",
        ("search", "/", "search", "Search the help."),
        ("app.tour", "T", "tour", "Start the guided tour: ten keys on the demo."),
        ("leave", "escape q ?", "back", "Go back."),
    ),
)


def actions_of(place: Place) -> Iterator[Action]:
    """Return the actions of a screen, in the order of the table."""
    return (action for action in ACTIONS if action.place == place)


LETTERS: Final[dict[str, tuple[str, str]]] = {
    "a": ("ask every memory, and see the answers side by side", "ask duel"),
    "A": ("ask under every change", "ask_all"),
    "b": ("set a breakpoint", "watch"),
    "B": ("list the breakpoints", "watches"),
    "c": ("continue to the next breakpoint", "continue"),
    "C": ("continue to the previous breakpoint", "continue_back"),
    "d": ("compare with something else", "compare against diff"),
    "D": ("before and after, side by side", "beside"),
    "e": ("export the screen as a picture", "export"),
    "E": ("edit what is asked", "edit question"),
    "f": ("the biography of a fact", "biography"),
    "F": ("fork here", "fork"),
    "g": ("the first one", "first"),
    "G": ("the last one", "last"),
    "h": ("left", "previous_answer previous_architecture fewer_tokens"),
    "H": ("the same run as a command line", "headless"),
    "i": ("what if: ask again under a change", "what_if"),
    "j": ("down", "next select_next"),
    "k": ("up", "previous select_previous"),
    "K": ("the legend of signs", "legend"),
    "l": ("right", "next_answer next_architecture more_tokens"),
    "L": ("go on live", "go_live"),
    "m": ("bookmark", "bookmark"),
    "M": ("everything that a memory holds", "browser"),
    "n": ("the next one of what is looked for", "next_match next_wrong next_change"),
    "N": ("the previous one of it", "previous_match previous_wrong previous_change"),
    "o": ("show only some", "filter"),
    "O": ("order by something else", "sort"),
    "p": ("play", "play"),
    "q": ("quit", "app.quit"),
    "r": ("the results of this conversation", "results conversation"),
    "R": ("the results of the whole run", "run"),
    "s": ("colour by significance", "significance"),
    "S": ("shrink to the smallest case", "shrink"),
    "t": ("keep as a test", "keep"),
    "T": ("the guided tour", "app.tour"),
    "u": ("the budget curve", "budget"),
    "v": ("the next view of the same", "next_page breakdown"),
    "V": ("why this answer", "why"),
    "w": ("the write: who wrote this", "write"),
    "W": ("ask the writing model again", "writer"),
    "x": ("stop", "stop"),
    "y": ("say that it is right", "label_right accept"),
    "Y": ("say that it is wrong", "label_wrong"),
}
"""Meaning of a letter on every screen that has it, and the calls that do it. The letter that opened a screen also
closes it."""

OTHER_MEANINGS: Final[dict[tuple[str, Place], str]] = {
    ("l", "replay"): "from when to when each memory knew an answer",
    ("n", "review"): "no: reject the draft",
    ("u", "review"): "undo: leave the draft open again",
}
"""The exceptions: on these screens a letter means something else."""


def bindings_of(place: Place) -> list[BindingType]:
    """Return the bindings of a screen. The footer shows the first key of each action; the others work too."""
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
