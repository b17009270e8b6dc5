"""Reading the screen and typing, for tests that walk through it."""

from __future__ import annotations

from textual.pilot import Pilot
from textual.widgets import Input

from memreplay.tui.screens.dialogs import TypingScreen
from memreplay.tui.screens.replay import ReplayScreen
from memreplay.tui.screens.why import WhyScreen
from memreplay.tui.widgets.architectures import PanelView
from memreplay.tui.widgets.lines_view import LinesView
from tests.tui.conftest import replay_of, until


def text_of(pilot: Pilot[None], selector: str) -> str:
    """The text of a view of the screen that is on top."""
    return pilot.app.screen.query_one(selector, LinesView).text


def found(pilot: Pilot[None]) -> str:
    """What the line below the strip says."""
    bar = replay_of(pilot).query_one("#found", LinesView)
    return bar.text if bar.display else ""


def header_of(pilot: Pilot[None]) -> str:
    """What the header of the replay says."""
    return replay_of(pilot).query_one("#header", LinesView).text


def panel_text(screen: ReplayScreen, backend: str, name: str) -> str:
    """The text of a panel of one architecture."""
    pane = next(pane for pane in screen.architectures.panes if pane.backend == backend)
    return next(view.text for view in pane.panels if view.panel.name == name)


def seen(view: LinesView) -> str:
    """The rows of a view that are on the screen."""
    rows = view.layout_now.rows_from(view.scroll_offset.y, view.scrollable_content_region.height)
    return "\n".join(row.text.rstrip() for row in rows if row is not None)


def selected_panel(screen: ReplayScreen) -> tuple[str, LinesView]:
    """The panel that has the focus, by its name."""
    view = screen.focused
    assert isinstance(view, PanelView)
    return view.panel.name, view


def questions_title(pilot: Pilot[None]) -> str:
    """The title of the list of questions."""
    return str(pilot.app.screen.query_one("#questions").border_title)


async def typed(pilot: Pilot[None], text: str) -> None:
    """Type into the one line that is open, and enter it."""
    await until(pilot, lambda: isinstance(pilot.app.screen, TypingScreen))
    pilot.app.screen.query_one(Input).value = text
    await pilot.press("enter")
    await pilot.pause()


async def explained(pilot: Pilot[None]) -> None:
    """Where the fact was lost has been worked out."""
    await until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen))
    await until(pilot, lambda: "the architectures" in text_of(pilot, "#verdict"))


async def rested(pilot: Pilot[None]) -> None:
    """Wait until the engine is idle."""
    player = replay_of(pilot).player
    assert player is not None
    await until(pilot, lambda: not player.busy)


def screen_rows(pilot: Pilot[None]) -> list[str]:
    """The rows of the whole screen as they are drawn, with what stays in sight behind a dialog."""
    return ["".join(segment.text for segment in strip) for strip in pilot.app.screen._compositor.render_strips()]
