"""memreplay: replays conversations beside what each memory architecture holds and retrieves.

From Python: :func:`run` replays, asks and scores; :func:`open` opens a recording. ``arun`` and ``aopen`` are the
same for coroutines. :func:`record` wraps a memory so that what an agent does with it is recorded, and :func:`turn`
marks what is said. Nothing else is imported until one of them is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memreplay.api.recorded import RecordedRun
    from memreplay.api.recorded import aopen_run as aopen
    from memreplay.api.recorded import open_run as open
    from memreplay.api.running import IncompleteRunError, arun, run
    from memreplay.capture.wrapping import record, turn
    from memreplay.errors import MemreplayError

__version__ = "0.1.0"

_PLACES = {
    "run": ("memreplay.api.running", "run"),
    "arun": ("memreplay.api.running", "arun"),
    "open": ("memreplay.api.recorded", "open_run"),
    "aopen": ("memreplay.api.recorded", "aopen_run"),
    "record": ("memreplay.capture.wrapping", "record"),
    "turn": ("memreplay.capture.wrapping", "turn"),
    "RecordedRun": ("memreplay.api.recorded", "RecordedRun"),
    "IncompleteRunError": ("memreplay.api.running", "IncompleteRunError"),
    "MemreplayError": ("memreplay.errors", "MemreplayError"),
}

__all__ = ["IncompleteRunError", "MemreplayError", "RecordedRun", "aopen", "arun", "open", "record", "run", "turn"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _PLACES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
