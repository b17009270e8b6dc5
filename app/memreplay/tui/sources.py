"""A whole run of a recording, as its results are listed: all answers, and where each fact was lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memreplay.conversations.models import Conversation
from memreplay.errors import RecordingError
from memreplay.paths import demo_recording
from memreplay.recording.reader import Recording
from memreplay.timeline.annotations import Annotations
from memreplay.timeline.event_store import OverlayArchive
from memreplay.timeline.timeline import Answer, Timeline
from memreplay.tui.launch import RunHandle
from memreplay.tui.panels.answers import AnswersTable, Labels, ListedQuestion, listed_questions
from memreplay.tui.panels.results import labels_of

if TYPE_CHECKING:
    from memreplay.recording.reader import Recording

_SHORT_NAMES: Final[Mapping[str, str]] = {
    "model": "",
    "ablate": "without ",
    "extractor": "extractor ",
    "top_k": "top ",
    "context_tokens": "context ",
    "embedder": "",
}


@dataclass(frozen=True)
class ReplaySource:
    """A timeline, the architectures in it, and how the run was set up. ``assembly`` is set for a live one.

    ``notebook`` gives the bookmarks and watches, ``path`` is the file that a recorded one is read from. Nobody
    closes that: a thread of a screen that was left may read it still. It goes with its last reader.
    """

    timeline: Timeline
    backends: tuple[str, ...]
    settings: Mapping[str, Any]
    notebook: Callable[[], Annotations]
    assembly: RunHandle | None = None
    path: Path | None = None

    @classmethod
    def live(cls, conversation: Conversation, assembly: RunHandle) -> ReplaySource:
        """A conversation that is still to be played."""
        return cls(
            Timeline(conversation),
            assembly.backend_names,
            assembly.settings.public(),
            notebook=lambda: assembly.annotations(conversation.id),
            assembly=assembly,
        )

    @property
    def annotations(self) -> Annotations:
        """Bookmarks and watches, as they stand now."""
        return self.notebook()

    @property
    def shows_memory(self) -> bool:
        """Whether anything is known of a memory: another program's run was recorded without."""
        return "imported_from" not in self.settings

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
    recording = _open(path)
    try:
        ids = recording.conversation_ids(newest_run_of(recording, path))
    finally:
        recording.close()
    if not ids:
        raise RecordingError(f"{path}: its newest run holds no conversation")
    return ids


def recorded(path: Path, conversation_id: str) -> ReplaySource:
    """A conversation of a recording's newest run, read as it is looked at. Its index may take long.

    Raises:
        RecordingError: it cannot be read.
    """
    from memreplay.recording.annotations import annotations_of

    recording = _open(path)
    try:
        run = recording.run(newest_run_of(recording, path))
        conversation = recording.conversation(run.id, conversation_id)
        timeline = Timeline(conversation, archive=OverlayArchive(recording.archive(run.id, conversation_id)))
        annotations = annotations_of(path, run.id, conversation_id, shipped=demo_recording())
    except BaseException:
        recording.close()
        raise
    chosen = tuple(name for name in timeline.backends if name in run.settings.get("backend", timeline.backends))
    return ReplaySource(timeline, chosen, run.settings, notebook=lambda: annotations, path=path)


def _open(path: Path) -> Recording:
    from memreplay.recording.reader import Recording

    return Recording.open(path)


def newest_run_of(recording: Recording, path: Path) -> str:
    """The id of the newest run that has a conversation.

    Raises:
        RecordingError: there is none.
    """
    runs = [run for run in recording.runs() if recording.conversation_ids(run.id)]
    if not runs:
        raise RecordingError(f"{path}: no run with a conversation in it")
    return runs[-1].id


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
        questions: list[ListedQuestion] = []
        answers: list[Answer] = []
        for id_ in ids:
            questions += listed_questions(recording.conversation(run.id, id_))
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
