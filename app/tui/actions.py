"""Every action of every screen, in one table: the bindings, the help screen and the palette are made from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from textual.binding import Binding, BindingType

Place = Literal["start", "replay", "results", "help", "pick"]

PLACES: Final[dict[Place, str]] = {
    "replay": "Replay",
    "results": "Results",
    "start": "Start",
    "pick": "Choosing",
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


ACTIONS: Final[tuple[Action, ...]] = (
    Action("replay", "step", (".", "space"), "step", "One turn on; at the live frontier, play the next turn."),
    Action("replay", "back", (",",), "back", "One turn back. Nothing is executed again."),
    Action("replay", "play", ("p",), "play", "Play on by itself, or pause."),
    Action("replay", "last", ("G",), "all", "To the end; live: play all that is left, then ask the questions."),
    Action("replay", "first", ("g",), "", "To the beginning."),
    Action("replay", "next_eventful", ("]",), "", "To the next turn at which a memory changed."),
    Action("replay", "previous_eventful", ("[",), "", "To the previous turn at which a memory changed."),
    Action("replay", "stop", ("x",), "", "Stop what is being played or asked."),
    Action("replay", "focus_architecture(1)", ("1",), "", "Show and focus the first architecture."),
    Action("replay", "focus_architecture(2)", ("2",), "", "Show and focus the second architecture."),
    Action("replay", "focus_architecture(3)", ("3",), "", "Show and focus the third architecture."),
    Action("replay", "focus_architecture(4)", ("4",), "", "Show and focus the fourth architecture."),
    Action("replay", "focus_architecture(5)", ("5",), "", "Show and focus the fifth architecture."),
    Action("replay", "app.focus_next", ("tab",), "", "Focus the next panel."),
    Action("replay", "enlarge", ("+",), "", "Enlarge the focused panel; escape returns."),
    Action("replay", "results", ("r",), "results", "Every question with every architecture's answer."),
    Action("replay", "export", ("e",), "", "Export the screen as an SVG file."),
    Action("replay", "help", ("?",), "help", "All keys."),
    Action("replay", "leave", ("escape",), "", "Back to the start screen."),
    Action("replay", "app.quit", ("q",), "quit", "Quit. A live run is kept as interrupted."),
    Action("results", "next", ("down", "j"), "", "The next question."),
    Action("results", "previous", ("up", "k"), "", "The previous question."),
    Action("results", "jump", ("enter",), "evidence", "Into the replay, at the turn that holds the answer."),
    Action("results", "leave", ("escape", "r"), "replay", "Back to the replay."),
    Action("results", "export", ("e",), "svg", "Export the screen as an SVG file."),
    Action("results", "help", ("?",), "help", "All keys."),
    Action("results", "app.quit", ("q",), "quit", "Quit."),
    Action("start", "filter", ("/",), "filter", "Filter the conversations."),
    Action("start", "start", ("ctrl+s",), "start", "Start a live replay of the highlighted conversation."),
    Action("start", "help", ("?",), "help", "All keys."),
    Action("start", "app.quit", ("q",), "quit", "Quit."),
    Action("pick", "leave", ("escape",), "back", "Choose nothing."),
    Action("help", "leave", ("escape", "q", "?"), "back", "Back."),
)


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
    return {"escape": "esc", "ctrl+s": "^s"}.get(key, key)
