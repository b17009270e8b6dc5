"""What a replay screen plays: a conversation with its timeline, from a recording or about to be lived through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.conversations.models import Conversation
from app.errors import RecordingError
from app.recording.store import Recording
from app.replay.timeline import Timeline
from app.tui.launch import LiveAssembly

_SHORT_NAMES: Final[Mapping[str, str]] = {
    "model": "",
    "top_k": "top ",
    "context_tokens": "context ",
    "embedder": "",
}


@dataclass(frozen=True)
class ReplaySource:
    """A timeline, the architectures in it, and how the run was set up. ``assembly`` is set for a live one."""

    timeline: Timeline
    backends: tuple[str, ...]
    settings: Mapping[str, Any]
    assembly: LiveAssembly | None = None

    @classmethod
    def live(cls, conversation: Conversation, assembly: LiveAssembly) -> ReplaySource:
        """A conversation that is still to be played."""
        return cls(Timeline(conversation), assembly.backend_names, assembly.settings.public(), assembly)

    @property
    def settings_in_short(self) -> str:
        """The settings that a reader wants to see at a glance."""
        shown = []
        for name, prefix in _SHORT_NAMES.items():
            value = self.settings.get(name)
            if value:
                shown.append(
                    prefix + (", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
                )
        return " · ".join(shown)


def recorded_conversations(path: Path) -> list[str]:
    """Ids of the conversations in a recording's newest run.

    Raises:
        RecordingError: it cannot be read, or holds nothing.
    """
    recording = Recording.open(path)
    try:
        ids = recording.conversation_ids(_newest_run(recording, path))
    finally:
        recording.close()
    if not ids:
        raise RecordingError(f"{path}: its newest run holds no conversation")
    return ids


def recorded(path: Path, conversation_id: str) -> ReplaySource:
    """A conversation of a recording's newest run, with everything that happened in it. May take long.

    Raises:
        RecordingError: it cannot be read.
    """
    # It stays open: the timeline reads from it what is looked at.
    recording = Recording.open(path)
    run_id = _newest_run(recording, path)
    timeline = recording.timeline(run_id, conversation_id)
    return ReplaySource(timeline, tuple(timeline.backends), recording.run(run_id).settings)


def _newest_run(recording: Recording, path: Path) -> str:
    runs = [run for run in recording.runs() if recording.conversation_ids(run.id)]
    if not runs:
        raise RecordingError(f"{path}: no run with a conversation in it")
    return runs[-1].id
