"""Collecting garbage where nobody waits for it.

A replay keeps many objects for long: an index, caches, what was drawn. Python goes through all of them in search of
garbage whenever enough new ones came about, and a key pressed then waits a tenth of a second and more. So while
a replay is on the screen the old ones are only looked at when its user rests, and what is found alive is set apart.
"""

from __future__ import annotations

import gc

_RARELY = 500
"""Times that the middling old objects are looked at before the old ones are: without a rest for that long."""


class QuietGarbage:
    """Python's garbage collection while a replay is on the screen: :meth:`begin`, :meth:`rest`, :meth:`end`."""

    def __init__(self) -> None:
        self._usual: tuple[int, int, int] | None = None

    def begin(self) -> None:
        """A replay was loaded."""
        if self._usual is None:
            self._usual = gc.get_threshold()
            gc.set_threshold(*self._usual[:2], _RARELY)
        self.rest()

    def rest(self) -> None:
        """Nobody presses a key just now."""
        if self._usual is not None:
            gc.collect()
            gc.freeze()

    def end(self) -> None:
        """The replay was left: collect as ever, what was set apart as well."""
        if self._usual is not None:
            gc.set_threshold(*self._usual)
            gc.unfreeze()
            self._usual = None
