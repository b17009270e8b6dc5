"""The guided tour: ten keys on the demo, each with what to look at. It follows the user from screen to screen."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from platformdirs import user_data_path

from memory_backends.private_files import create_private_file, make_private_folder
from memreplay.paths import APPLICATION
from memreplay.tui.actions import Place
from memreplay.tui.terminal import Rebound, keys_of
from memreplay.views.text import shown_key


@dataclass(frozen=True)
class Step:
    """One key: the action that it carries out on a screen, and what to look at then."""

    key: str
    place: Place
    call: str
    look: str

    def key_now(self, rebound: Rebound) -> str:
        """Return the key with the user's own keys applied; the palette if they leave none."""
        id_ = f"{self.place}.{self.call}"
        if id_ not in rebound:
            return self.key
        keys = keys_of(self.place, rebound)[id_]
        return shown_key(keys[0]) if keys else "ctrl+p"


STEPS: Final[tuple[Step, ...]] = (
    Step("space", "replay", "step", "The next turn, at the left. + and ~ at the right mark what memories wrote."),
    Step("]", "replay", "next_eventful", "The next turn with an event. ◇ marks turns that a question is about."),
    Step("1", "replay", "digit(1)", "The first memory has the focus: its panels show keys, candidates and hits."),
    Step("M", "replay", "browser", "All that this memory holds now. Up and down select; the item is below."),
    Step("esc", "browser", "leave", "Back in the replay, at the same turn."),
    Step("G", "replay", "last", "The end. The answers, below the conversation: ✓ right, ✗ wrong, per memory."),
    Step("r", "replay", "results", "All answers. A wrong one is selected, with the stage that lost the fact."),
    Step("enter", "results", "why", "Why: each stage of this fact, and at the right the prompt as it was sent."),
    Step("w", "why", "write", "The turn where the fact was written, or should have been, and what was decided."),
    Step("backspace", "replay", "return", "Back again: every jump can be undone."),
)


class Tour:
    """The user's place in the tour; ``step`` is None while there is none."""

    def __init__(self) -> None:
        self._place: int | None = None

    @property
    def step(self) -> Step | None:
        return None if self._place is None or self._place >= len(STEPS) else STEPS[self._place]

    def start(self) -> None:
        self._place = 0

    def end(self) -> None:
        self._place = None

    def follow(self, place: str | None, call: str) -> bool:
        """Return the user carried out an action on a screen. Whether it was the one of this step."""
        step = self.step
        if step is None or self._place is None or (place, call) != (step.place, step.call):
            return False
        self._place += 1
        return True

    @property
    def title(self) -> str:
        number = len(STEPS) if self._place is None else self._place + 1
        return f"tour · {min(number, len(STEPS))} of {len(STEPS)}"

    def words(self, rebound: Rebound) -> str:
        """Return what was just done, and the key to press next; T ends the tour in the replay."""
        place = self._place or 0
        seen = (
            STEPS[place - 1].look if place else "Ten keys show what this program is for. T in the replay ends it."
        )
        step = self.step
        then = "That was the tour. ? lists all keys." if step is None else f"Press {step.key_now(rebound)}"
        return f"{seen}\n\n{then}"


def was_offered() -> bool:
    """Return whether the tour was offered before; from now on it was."""
    mark = _mark()
    if mark.exists():
        return True
    with suppress(OSError):
        make_private_folder(mark.parent)
        create_private_file(mark)
    return False


def _mark() -> Path:
    return user_data_path(APPLICATION, appauthor=False) / "tour-offered"
