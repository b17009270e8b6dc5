"""Libraries that another one imports only because they are installed, and that the program does not need."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import FrameType, ModuleType

_SPARED = {
    "numpy": {"sqlite_utils.db", "fakeredis.model", "fakeredis.stack"},
    "pandas": {"sqlite_utils.db"},
    "pygments": {"httpx._main"},
}
"""Each with the modules that would import it: for numbers to store, sets of vectors in Redis, and a command line.

We use none of these, and each of the modules does without a library that is missing.
"""


def spare_imports() -> None:
    """From now on, those modules find these libraries missing; all others find them. numpy alone takes 13 MB.

    For a process of our own: in another's, sqlite_utils may be given such numbers.
    """
    sys.meta_path.insert(0, _Spared())


class _Spared(MetaPathFinder):
    """Finds nothing, and leaves everything else to the finders behind it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in _SPARED and _importer(sys._getframe(1)) in _SPARED[name]:
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)
        return None


def _importer(frame: FrameType | None) -> str:
    """The module whose import led to this frame of Python's import system."""
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "importlib":
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))
