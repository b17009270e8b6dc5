"""A gate that lets a changing number of tasks through at once, first come first served."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType


class HaltedError(Exception):
    """The run ends: whoever waited for its turn is sent away. Nothing was asked."""


class GivenUpError(HaltedError):
    """Asking this model again would not mend what is wrong. ``str(error)`` is a sentence: why, and what would."""


class Gate:
    """Used as ``async with gate:``. At most ``capacity()`` are inside; the others wait in the order of their
    coming.

    ``capacity`` is asked again whenever somebody comes or leaves, so it may change while the gate is in use.
    """

    def __init__(self, capacity: Callable[[], int]) -> None:
        self.inside = 0
        self._capacity = capacity
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._halted = False

    @property
    def waiting(self) -> int:
        """How many stand before the gate."""
        return len(self._waiting)

    async def __aenter__(self) -> None:
        """Wait for a place inside.

        Raises:
            HaltedError: the gate was closed for good.
        """
        if self._halted:
            raise HaltedError
        if not self._waiting and self.inside < self._capacity():
            self.inside += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._leave()
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Make room for the next."""
        self._leave()

    def halt(self) -> None:
        """Send away everybody who waits, and whoever comes later. Those inside go on."""
        self._halted = True
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(HaltedError())

    def _leave(self) -> None:
        self.inside -= 1
        while self._waiting and self.inside < self._capacity():
            turn = self._waiting.popleft()
            if not turn.done():
                self.inside += 1
                turn.set_result(None)
