"""The overview of a recording in a list: when, what, which memories, how far it got, and the scores."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Literal, NamedTuple

from filelock import FileLock, Timeout

from memory_backends.private_files import OWNERS_FILE
from memreplay.conversations.models import Frozen
from memreplay.errors import RecordingError
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording, RunInfo

Progress = Literal["finished", "interrupted", "running"]


class Share(NamedTuple):
    """A count out of a total."""

    done: int
    total: int

    def __str__(self) -> str:
        return f"{self.done:,}/{self.total:,}"


class RecordingOverview(Frozen):
    """The newest run of a recording that has a conversation.

    ``turns`` are those of its only conversation, ``conversations`` those that were played to their end. Each is
    None where the other applies, and both in a run of tests. ``answers`` counts scheduled questions of all
    memories, ``scores`` the right answers among those that were graded, by memory. ``datasets`` are the ids of the
    conversations. ``started_at`` is ISO 8601 in UTC.
    """

    started_at: str
    datasets: tuple[str, ...]
    backends: tuple[str, ...]
    models: tuple[str, ...]
    progress: Progress
    turns: Share | None
    conversations: Share | None
    answers: Share
    scores: Mapping[str, Share]

    @property
    def stopped_at(self) -> str:
        """Return how far an unfinished run got, in words."""
        if self.turns is not None and self.turns.done < self.turns.total:
            return f"at turn {self.turns.done} of {self.turns.total}"
        if self.conversations is not None and self.conversations.done < self.conversations.total:
            return f"at conversation {self.conversations.done} of {self.conversations.total}"
        return f"at answer {self.answers.done} of {self.answers.total}" if self.answers.total else ""


def overview_of(path: Path) -> RecordingOverview:
    """Read the overview. It counts, and loads neither conversations nor events.

    Raises:
        RecordingError: the file cannot be read, or has no run with a conversation.
    """
    with closing(Recording.open(path)) as recording, reporting_damage(path):
        runs = [run for run in recording.runs() if recording.conversation_ids(run.id)]
        if not runs:
            raise RecordingError(f"{path}: no run with a conversation in it")
        return _overview(recording, runs[-1])


def _overview(recording: Recording, run: RunInfo) -> RecordingOverview:
    conversations = recording.sizes(run.id)
    backends = tuple(run.settings.get("backend", ()))
    models, repeats = len(run.settings.get("model", ())) or 1, run.settings.get("repeats") or 1
    asked_along = ("closed_book",) if run.settings.get("closed_book_asked_along") else ()
    questions = sum(conversation.questions for conversation in conversations)
    outcomes = recording.outcomes(run.id)
    scores = {
        backend: Share(
            sum(count for (name, outcome), count in outcomes.items() if name == backend and outcome == "correct"),
            sum(count for (name, outcome), count in outcomes.items() if name == backend and outcome != "error"),
        )
        for backend in dict.fromkeys([*backends, *(name for name, _ in outcomes)])
    }
    turns = played = None
    if any(conversation.conversing for conversation in conversations):
        pass
    elif len(conversations) == 1:
        only = conversations[0]
        turns = Share(recording.turns_played(run.id, only.id), only.turns)
    else:
        played = Share(
            sum(recording.turns_played(run.id, one.id) >= one.turns for one in conversations),
            max(len(conversations), len(run.datasets)),
        )
    return RecordingOverview(
        started_at=run.started_at,
        datasets=tuple(conversation.id for conversation in conversations),
        backends=backends or tuple(scores),
        models=tuple(run.settings.get("model", ())),
        progress=progress_of(recording.path, run),
        turns=turns,
        conversations=played,
        answers=Share(sum(outcomes.values()), questions * models * repeats * len((*backends, *asked_along))),
        scores={name: share for name, share in scores.items() if share.total},
    )


def progress_of(path: Path, run: RunInfo) -> Progress:
    """Return the state of a run. One whose process was killed still says *running*; then nobody holds
    the file's lock.
    """
    if run.status != "running":
        return run.status
    return "running" if is_being_written(path) else "interrupted"


def is_being_written(recording: Path) -> bool:
    """Return whether a process holds the right to write a recording."""
    beside = recording.with_name(f".{recording.name}.lock")
    if not beside.exists():
        return False
    lock = FileLock(beside, timeout=0, mode=OWNERS_FILE, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        return True
    except (OSError, sqlite3.Error):
        return False
    lock.release()
    return False
