"""Slow work that ends after its screen was closed."""

from __future__ import annotations

import asyncio

import pytest
from textual.app import App

from memreplay.tui.screens import PlaceScreen


class Waiting(PlaceScreen[None]):
    """A screen that waits for a thread."""

    picture_name = "waiting"


async def test_an_open_screen_gets_the_result() -> None:
    app: App[None] = App()
    async with app.run_test():
        screen = Waiting()
        await app.push_screen(screen)
        assert await screen.in_thread(max, 1, 2) == 2


async def test_a_screen_that_was_closed_meanwhile_is_not_touched() -> None:
    app: App[None] = App()
    async with app.run_test():
        screen = Waiting()
        await app.push_screen(screen)

        async def close() -> None:
            await app.pop_screen()

        loop = asyncio.get_running_loop()
        with pytest.raises(asyncio.CancelledError):
            await screen.in_thread(lambda: asyncio.run_coroutine_threadsafe(close(), loop).result())
