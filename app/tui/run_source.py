"""A whole run of a recording, as its results are listed: all answers, and where each fact was lost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.recording.store import Recording
from app.replay.asks import Answer
from app.tui.replay_source import newest_run_of
from app.tui.views.answers import AnswersTable, Labels, Posed, posed_in
from app.tui.views.filters import labels_of


@dataclass(frozen=True)
class RecordedRun:
    """A run by its id, the ids of its conversations in their order, and all its questions with their answers."""

    id: str
    conversations: tuple[str, ...]
    table: AnswersTable


def newest_run(path: Path) -> RecordedRun:
    """A recording's newest run. It reads what was asked, and nothing else of what happened.

    Raises:
        RecordingError: it cannot be read.
    """
    recording = Recording.open(path)
    try:
        run = recording.run(newest_run_of(recording, path))
        ids = tuple(recording.conversation_ids(run.id))
        questions: list[Posed] = []
        answers: list[Answer] = []
        for id_ in ids:
            questions += posed_in(recording.conversation(run.id, id_))
            answers += recording.asks(run.id, id_)
    finally:
        recording.close()
    backends = dict.fromkeys([*run.settings.get("backend", ()), *(answer.asked.backend for answer in answers)])
    return RecordedRun(run.id, ids, AnswersTable(questions, answers, list(backends)))


def labels_in(path: Path, run_id: str, conversation_id: str) -> Labels:
    """What the answers of one conversation rest on, or where their facts were lost. May take long.

    Raises:
        RecordingError: it cannot be read.
    """
    recording = Recording.open(path)
    try:
        timeline = recording.timeline(run_id, conversation_id)
        return labels_of(timeline, AnswersTable.until(timeline, timeline.last_turn))
    finally:
        recording.close()
