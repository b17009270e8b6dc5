"""In every theme text has a contrast of at least 4.5:1 with what is behind it, and marks one of 3:1."""

from __future__ import annotations

import pytest
from textual.color import Color
from textual.pilot import Pilot
from textual.theme import BUILTIN_THEMES
from textual.widgets import Input

from memreplay.tui.contrast import contrast
from memreplay.tui.launch import Launch
from tests.tui.conftest import open_app, open_replay, replay_of, until
from tests.tui.looking import explained

THEMES = sorted(name for name in BUILTIN_THEMES if not name.startswith("ansi"))
TEXT, MARK = 4.5, 3.0
_MARKS = frozenset("━┃┏┓┗┛█▊▎▁▂▃▄▅▆▇◆◇▶★×│·•┆")
_RULES = frozenset("─│╭╮╰╯┈▔▁ ")
"""Lines around panels, which tell nothing."""


def unreadable(pilot: Pilot[None]) -> list[str]:
    """Stretches of the screen with too little contrast, and how much they have."""
    found = []
    for strip in pilot.app.screen._compositor.render_strips():
        for segment in strip:
            shown = set(segment.text) - _RULES
            style = segment.style
            if not shown or style is None or style.color is None or style.bgcolor is None:
                continue
            measured = contrast(Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor))
            if measured < (MARK if shown <= _MARKS else TEXT):
                found.append(f"{segment.text.strip()!r} {measured:.1f}")
    return found


async def _wear(pilot: Pilot[None], theme: str) -> None:
    pilot.app.theme = theme
    await pilot.pause()


async def test_the_start_screen_can_be_read_in_every_theme(launch: Launch) -> None:
    async with open_app(launch, (120, 36)) as pilot:
        await until(pilot, lambda: pilot.app.screen.query_one("#datasets").option_count == 2)  # type: ignore[attr-defined]
        faults = {}
        for theme in THEMES:
            await _wear(pilot, theme)
            assert pilot.app.screen.query_one("#filter", Input).placeholder
            faults[theme] = unreadable(pilot)
        assert {theme: found for theme, found in faults.items() if found} == {}


async def test_a_replay_its_results_and_an_explanation_can_be_read_in_every_theme(recorded: Launch) -> None:
    async with open_replay(recorded, (120, 36)) as pilot:
        replay_of(pilot).move_to(6)
        faults: dict[str, list[str]] = {}
        for number, keys in enumerate(((), ("r", "down"), ("enter",), ("tab", "down"), ("a",), ("f",))):
            await pilot.press(*keys)
            if keys == ("enter",):
                await explained(pilot)
            # Every theme on every other screen, and every screen in every other theme: to change it takes long.
            for theme in THEMES[number % 2 :: 2]:
                await _wear(pilot, theme)
                faults[f"{theme} {keys}"] = unreadable(pilot)
        assert {theme: found for theme, found in faults.items() if found} == {}


@pytest.mark.parametrize(
    ("one", "other", "ratio"), [("white", "black", 21), ("white", "white", 1), ("#767676", "white", 4.54)]
)
def test_the_contrast_is_that_of_wcag(one: str, other: str, ratio: float) -> None:
    assert contrast(Color.parse(one), Color.parse(other)) == pytest.approx(ratio, abs=0.01)
