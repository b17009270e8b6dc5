"""Which recordings there are, and what a new one is called."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from app.paths import demo_recording, recordings_folder


def recording_files() -> list[Path]:
    """The shipped demo, then the user's recordings, newest first."""
    folder = recordings_folder()
    demo = demo_recording()
    own = [path for path in folder.glob("*.sqlite3") if path.resolve() != demo.resolve()] if folder.is_dir() else []
    newest_first = sorted(own, key=lambda path: path.stat().st_mtime, reverse=True)
    return [path for path in (demo, *newest_first) if path.is_file()]


def new_recording_path() -> Path:
    """Where a new recording goes: named by the time of its start, to the millisecond."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]
    return recordings_folder() / f"{stamp}.sqlite3"
