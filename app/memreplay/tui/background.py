"""Slow work of a screen, done in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from textual.app import ScreenStackError
from textual.screen import Screen

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(screen: Screen[Any], work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of ``work``. Cancels the caller if the screen was closed in the meantime.

    Textual cancels the workers of a screen that closes, but a thread that has just ended can resume its worker
    before the cancellation reaches it, when the screen's widgets are already gone.
    """
    result = await asyncio.to_thread(work, *args, **kwargs)
    if not _is_open(screen):
        raise asyncio.CancelledError
    return result


def _is_open(screen: Screen[Any]) -> bool:
    try:
        return screen.is_running and screen in screen.app.screen_stack
    except ScreenStackError:
        return False
