"""``memreplay recordings``: what the recordings hold, printed."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

from app.errors import RecordingError
from app.recording.damage import damage_told
from app.recording.files import recording_files
from app.recording.store import Recording, RunInfo


def list_recordings() -> None:
    """One line a run; a file that cannot be read is told on standard error."""
    for path in recording_files():
        try:
            with closing(Recording.open(path)) as recording:
                runs = recording.runs()
        except RecordingError as error:
            print(f"memreplay: {error}", file=sys.stderr)
            continue
        for run in runs:
            print(f"{path}\t{_line(run)}")


def show_recording(path: Path) -> None:
    """The runs of one file with their settings and conversations.

    Raises:
        RecordingError: it cannot be read.
    """
    with closing(Recording.open(path)) as recording, damage_told(path):
        for run in recording.runs():
            print(_line(run))
            for name, value in run.settings.items():
                print(f"  {name}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
            for conversation_id in recording.conversation_ids(run.id):
                print(f"  {_conversation_line(recording, run, conversation_id)}")


def _conversation_line(recording: Recording, run: RunInfo, conversation_id: str) -> str:
    def number_of(kind: str) -> int:
        return sum(1 for _ in recording.events(run.id, conversation_id, (kind,)))

    conversation = recording.conversation(run.id, conversation_id)
    if conversation.conversing:
        said, scored = number_of("message_said"), number_of("test_scored")
        return f"tests {conversation_id}: {said} turns, {scored} tests over"
    turns, questions, answers = len(conversation.turns), len(conversation.questions), number_of("answer_scored")
    return f"conversation {conversation_id}: {turns} turns, {questions} questions, {answers} answers"


def _line(run: RunInfo) -> str:
    return f"{run.id}\t{run.started_at}\t{run.status}\t{','.join(run.datasets)}"
