"""A document whose blocks grow while somebody reads it."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from memreplay.tui.document import LazyDocument
from memreplay.tui.terminal import TerminalApp
from memreplay.tui.text import Line, line
from memreplay.tui.widgets.document_view import DocumentView

BLOCKS = 30
HEIGHT = 20


def blocks(rows: int) -> LazyDocument:
    """Blocks of so many rows each, which begin with their number."""

    def made(index: int) -> list[Line]:
        return [line(f"block {index} "), *[line("more")] * (rows - 1)]

    return LazyDocument(BLOCKS, made, guessed=rows)


class Reading(App[None]):
    """Nothing but a document."""

    COMPONENT_CLASSES = TerminalApp.COMPONENT_CLASSES

    def compose(self) -> ComposeResult:
        yield DocumentView()


def rows_of(view: DocumentView) -> list[str]:
    """What is seen, row by row."""
    return ["".join(segment.text for segment in view.render_line(row)) for row in range(HEIGHT)]


def row_of(view: DocumentView, block: int) -> int:
    """The row of the screen on which a block begins."""
    return next(at for at, row in enumerate(rows_of(view)) if row.startswith(f"block {block} "))


@pytest.mark.parametrize("block", [0, 3, 9, 12])
async def test_a_block_in_view_stays_on_its_row_when_blocks_take_more_rows(block: int) -> None:
    app = Reading()
    async with app.run_test(size=(40, HEIGHT)) as pilot:
        view = app.query_one(DocumentView)
        view.renew(blocks(2))
        view.bring_into_view(block)
        await pilot.pause()
        before = row_of(view, block)
        view.renew(blocks(3))
        await pilot.pause()
        assert row_of(view, block) == before


async def test_a_block_that_would_end_out_of_view_is_brought_back() -> None:
    app = Reading()
    async with app.run_test(size=(40, HEIGHT)) as pilot:
        view = app.query_one(DocumentView)
        view.renew(blocks(2))
        view.bring_into_view(15)
        await pilot.pause()
        view.renew(blocks(6))
        await pilot.pause()
        assert row_of(view, 15) <= HEIGHT - 6
