"""The run of a recording that is made of its journal: replaced as a whole whenever there are new notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from memreplay.conversations.models import Conversation
from memreplay.engine.events import ReplayEvent
from memreplay.recording.connection import connect_read_only, leave_wal, open_exclusively
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording, RunInfo
from memreplay.recording.run_rows import RunRows, insert_run, reporting_write_errors

CAPTURED: Final = "captured_until"
"""The setting of a captured run: the key of the last note that it was made of."""

_IDENTITY: Final = "captured"
_EVENTS_AT_ONCE = 256
"""A short transaction: an agent that takes notes meanwhile waits for it."""


def captured_until(path: Path) -> int | None:
    """Return the last note that the captured run of a recording was made of; None if there is no such run."""
    with closing(connect_read_only(path)) as db, reporting_damage(path):
        run = _captured_run(Recording(db, path))
        return None if run is None else int(run.settings[CAPTURED])


def _captured_run(recording: Recording) -> RunInfo | None:
    return next((run for run in recording.runs() if run.fingerprint == _IDENTITY), None)


def replace_captured_run(
    path: Path,
    until: int,
    dataset: str,
    changed: Iterable[tuple[Conversation, Sequence[ReplayEvent]]],
    settings: Callable[[], Mapping[str, Any]],
) -> None:
    """Replace these conversations of the captured run and their events; others stay, and bookmarks and labels.

    ``until`` is the last note that they were made of. The settings are asked for before and after
    the conversations.

    Raises:
        RecordingError: the file is in use or cannot be written.
    """
    with open_exclusively(path) as (db, lock), reporting_write_errors(path):
        # What is lost with the machine's power is made anew of the notes.
        db.execute("pragma synchronous = normal")
        run = _captured_run(Recording(db, path))
        unknown = {**settings(), CAPTURED: 0}
        rows = insert_run(db, path, unknown, (), _IDENTITY) if run is None else RunRows(db, path, run.id)
        for conversation, events in changed:
            new = rows.put_conversation(conversation, events)
            for first in range(0, len(new), _EVENTS_AT_ONCE):
                rows.insert_unnumbered(new[first : first + _EVENTS_AT_ONCE])
        rows.describe({**settings(), CAPTURED: until}, [dataset])
        rows.end("finished")
        leave_wal(db)
        db.close()
        lock.release()
