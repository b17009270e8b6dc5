"""Sources of the screens: a conversation, live or recorded, and the results of a whole recorded run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from textual.content import Content

from memreplay.capture.assembling import bring_up_to_date, is_captured
from memreplay.conversations.catalog import ListedConversation
from memreplay.conversations.models import Conversation
from memreplay.conversations.registry import shipped_datasets
from memreplay.debugger.lifetime import Lifetime
from memreplay.errors import MemreplayError, RecordingError
from memreplay.paths import demo_recordings
from memreplay.recording.annotations import annotations_of
from memreplay.recording.branches import Branch
from memreplay.recording.damage import reporting_damage
from memreplay.recording.overview import Progress, RecordingOverview, is_being_written, overview_of
from memreplay.recording.reader import AnswerKey, Recording, RunStatus
from memreplay.scoring.run_comparison import AnswerRow, JudgedBy
from memreplay.scoring.verdicts import LABELS
from memreplay.settings import command_line, value_words
from memreplay.timeline.annotations import Annotations
from memreplay.timeline.event_store import EventArchive, EventSummary, OverlayArchive
from memreplay.timeline.timeline import Answer, AskKey, Timeline
from memreplay.tui.launch import RunHandle
from memreplay.views.panels.answers import (
    AnswersTable,
    Attributed,
    Labels,
    ListedQuestion,
    listed_questions,
    place_of,
)
from memreplay.views.panels.conversation import Mode
from memreplay.views.panels.results import ResultsChoice, labels_of
from memreplay.views.text import cells, one_line

_MOST_EXPORTED: Final = 12
_NOT_IN_A_FILE_NAME: Final = re.compile(r"[^\w.]+")
_SUMMARISED: Final[Mapping[str, str]] = {
    "model": "",
    "ablate": "without ",
    "extractor": "extractor ",
    "top_k": "top ",
    "context_tokens": "context ",
    "embedder": "",
    "reranker": "reranker ",
}
"""The settings in the header of a replay, each with the words before its value."""


@dataclass
class ReplayPlace:
    """The user's place in a replay, kept for the next visit. ``lives`` are the bars of lifetimes."""

    turn: int = 1
    lives: Mapping[str, Lifetime] = field(default_factory=dict)


@dataclass(frozen=True)
class ReplaySource:
    """A timeline, the architectures in it, and the settings of its run.

    A live one has a ``handle``, a recorded one the ``path`` of its file and its ``run_id``. Nobody closes that
    file, since a thread of a closed screen may still read it: it is closed with its last reader.
    """

    timeline: Timeline
    backends: tuple[str, ...]
    settings: Mapping[str, Any]
    load_annotations: Callable[[], Annotations]
    handle: RunHandle | None = None
    path: Path | None = None
    run_id: str = ""
    results: ResultsChoice = field(default_factory=ResultsChoice)
    """The user's choice of sorting, filter and place in its results."""
    place: ReplayPlace = field(default_factory=ReplayPlace)
    is_unfinished: bool = False
    """True if it is a recording of a run that was interrupted or killed."""
    follows: bool = False
    """True if it is the recording of a running agent that is looked at again and again."""
    left_out: tuple[str, ...] = ()
    """Sentences on what of a live conversation's file is not shown."""

    @classmethod
    def live(cls, conversation: Conversation, handle: RunHandle, left_out: Iterable[str] = ()) -> ReplaySource:
        """Return a conversation that has not been played yet."""
        return cls(
            Timeline(conversation),
            handle.backend_names,
            handle.settings.public(),
            load_annotations=lambda: handle.annotations(conversation.id),
            handle=handle,
            left_out=tuple(dict.fromkeys(left_out)),
        )

    @property
    def recorded_in(self) -> tuple[Path, str] | None:
        """Return the file and the id of the run; None for a live one that has not begun."""
        if self.handle is None:
            return None if self.path is None else (self.path, self.run_id)
        recorder = self.handle.recorder
        return None if recorder is None else (recorder.path, recorder.run_id)

    @property
    def annotations(self) -> Annotations:
        """Current bookmarks and breakpoints."""
        return self.load_annotations()

    @property
    def stopped_at(self) -> int | None:
        """Return the last turn that the memories of an interrupted recording heard; None of a whole one and a
        live one.
        """
        timeline = self.timeline
        if self.handle is not None or not self.can_be_rebuilt:
            return None
        return timeline.played if timeline.played < timeline.last_turn and timeline.backends else None

    @property
    def how_it_continues(self) -> str:
        """Return what continues an interrupted run: a key, or the command that started it without a screen."""
        return "--resume continues it" if self.settings.get("closed_book_asked_along") else "L continues it live"

    @property
    def mode(self) -> Mode:
        """Return how its turns arrive, which the header says."""
        return "live" if self.handle is not None else "following" if self.follows else "recorded"

    @property
    def shows_memory(self) -> bool:
        """Return whether it knows what memories hold: an imported run of another program does not."""
        return "imported_from" not in self.settings

    @property
    def is_captured(self) -> bool:
        """Return whether it shows a running agent: its memories are the agent's, and cannot be asked anew."""
        return is_captured(self.settings)

    @property
    def not_shown(self) -> str:
        """Return what of a file, or of the notes on a running agent, is not shown, in one sentence; empty if all
        is.
        """
        sentences, number = self.all_not_shown, len(self.all_not_shown) - 1
        more = f" (and {number} more {'kind' if number == 1 else 'kinds'}: K lists them)" if number > 0 else ""
        return f"{sentences[0]}{more}" if sentences else ""

    @property
    def all_not_shown(self) -> Sequence[str]:
        """Return all sentences on what is not shown."""
        return tuple(dict.fromkeys((*self.left_out, *(self.settings.get("not_shown") or ()))))

    @property
    def can_be_rebuilt(self) -> bool:
        """Return whether memories can be filled again with what was said."""
        return self.shows_memory and self.timeline.conversation.can_be_replayed

    @property
    def settings_in_short(self) -> str:
        """Return the most important settings in one line."""
        values = ((prefix, self.settings.get(name)) for name, prefix in _SUMMARISED.items())
        return " · ".join(prefix + value_words(value) for prefix, value in values if value)


def commands_of(source: ReplaySource) -> list[str]:
    """Return the commands that repeat a whole run without a screen, the last one the run itself.

    What it replayed and no shipped dataset holds is exported from the recording first.

    Raises:
        RecordingError: it cannot be read.
    """
    shipped = {entry.id for entry in shipped_datasets()}
    names, exported, commands = [source.timeline.conversation.dataset], [], []
    if source.recorded_in is not None:
        path, run_id = source.recorded_in
        with closing(Recording.open(path)) as recording, reporting_damage(path):
            names = list(recording.run(run_id).datasets)
            ids = recording.conversation_ids(run_id) if not shipped.issuperset(names) else []
            exported = [
                id_ for id_ in ids[:_MOST_EXPORTED] if recording.conversation(run_id, id_).dataset not in shipped
            ]
        for id_ in exported:
            words = ["memreplay", "datasets", "export", str(path), "--conversation", id_, "--output", _file_of(id_)]
            commands.append(shlex.join(words))
        if len(ids) > _MOST_EXPORTED:
            commands.append(f"# likewise the other {len(ids) - _MOST_EXPORTED:,} conversations of the run")
        names = [name for name in names if name in shipped] + [_file_of(id_) for id_ in exported]
    given = [word for name in dict.fromkeys(names) for word in ("--dataset", name)]
    values = command_line({**source.settings, "backend": source.backends})
    return [*commands, shlex.join(["memreplay", "--batch", *given, *values])]


def _file_of(conversation_id: str) -> str:
    return f"./{_NOT_IN_A_FILE_NAME.sub('-', conversation_id)}.json"


def recorded_conversations(path: Path) -> list[ListedConversation]:
    """Return the conversations in a recording's newest run.

    Raises:
        RecordingError: it cannot be read, or is empty.
    """
    bring_up_to_date(path)
    with closing(Recording.open(path)) as recording:
        return recording.listed_conversations(_newest_run(recording))


_EVENTS_BETWEEN_REPORTS = 8_000


class _ReportingArchive(OverlayArchive):
    """Tells how much of a recording has been indexed, as a share of its turns."""

    def __init__(self, below: EventArchive, turns: int, progress: Callable[[float], None]) -> None:
        super().__init__(below)
        self._turns = max(turns, 1)
        self._progress = progress

    def summaries(self) -> Iterator[EventSummary]:
        for number, summary in enumerate(super().summaries(), start=1):
            if number % _EVENTS_BETWEEN_REPORTS == 0:
                self._progress(min(1.0, summary.turn / self._turns))
            yield summary


def recorded(
    path: Path,
    conversation_id: str,
    run_id: str | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> ReplaySource:
    """Return a conversation of a run, by default a recording's newest. Indexing a long one takes seconds.

    ``progress`` is told the share of it that was indexed.

    Raises:
        RecordingError: it cannot be read.
    """
    recording = Recording.open(path)
    try:
        run = recording.run(run_id or _newest_run(recording))
        with reporting_damage(path):
            conversation = recording.conversation(run.id, conversation_id)
            events = recording.archive(run.id, conversation_id)
            archive = _ReportingArchive(events, len(conversation.turns), progress)
            timeline = Timeline(conversation, archive=archive)
            timeline.judge_stages(recording.stage_judgements(run.id, conversation_id))
            _refuse_lost_questions(path, conversation, timeline)
        annotations = annotations_of(path, run.id, conversation_id, shipped=demo_recordings())
    except BaseException:
        recording.close()
        raise
    backends = tuple(name for name in timeline.backends if name in run.settings.get("backend", timeline.backends))
    is_unfinished = run.status != "finished" and not is_being_written(path)
    return ReplaySource(
        timeline,
        backends,
        run.settings,
        load_annotations=lambda: annotations,
        path=path,
        run_id=run.id,
        is_unfinished=is_unfinished,
        left_out=(recording.remark,) if recording.remark else (),
    )


def _refuse_lost_questions(path: Path, conversation: Conversation, timeline: Timeline) -> None:
    """Raise RecordingError for an answer to a question that the conversation does not have."""
    questions = {question.id for question in conversation.questions}
    for answer in timeline.answers():
        if answer.asked.question_id not in questions and not answer.asked.by_hand:
            raise RecordingError(
                f"{path}: damaged: {conversation.id} has no question {answer.asked.question_id}, which"
                " was asked; expected what memreplay writes"
            )


def _newest_run(recording: Recording) -> str:
    """Return the id of the newest run that has a conversation."""
    runs = [run.id for run in recording.runs() if run.branch is None and recording.conversation_ids(run.id)]
    if not runs:
        raise RecordingError(f"{recording.path}: no run with a conversation in it")
    return runs[-1]


@dataclass(frozen=True)
class RecordedRun:
    """A run's id, the ids of its conversations in their order, and all its questions with their answers.

    It may be limited to one conversation. ``labels`` are the failure labels that were recorded with the scores,
    None if the run was never scored; ``datasets`` maps each conversation to its dataset; ``branch`` says where it
    departs from another run, if it does.
    """

    id: str
    settings: Mapping[str, Any]
    datasets: Mapping[str, str]
    status: RunStatus
    conversations: tuple[str, ...]
    table: AnswersTable
    labels: Labels | None
    branch: Branch | None


def recorded_run(path: Path, run_id: str | None = None, conversation_id: str | None = None) -> RecordedRun:
    """Return a run, by default a recording's newest, or only one of its conversations.

    Only questions and answers are read.

    Raises:
        RecordingError: it cannot be read.
    """
    with closing(Recording.open(path)) as recording, reporting_damage(path):
        run = recording.run(run_id or _newest_run(recording))
        ids = tuple(recording.conversation_ids(run.id)) if conversation_id is None else (conversation_id,)
        questions: list[ListedQuestion] = []
        answers: list[Answer] = []
        datasets = {}
        for id_ in ids:
            conversation = recording.conversation(run.id, id_)
            datasets[id_] = conversation.dataset
            questions += listed_questions(conversation)
            answers += recording.asks(run.id, id_)
        failures = recording.failures(run.id)
    backends = dict.fromkeys([*run.settings.get("backend", ()), *(answer.asked.backend for answer in answers)])
    table = AnswersTable(questions, answers, list(backends), run.settings.get("top_k"))
    labels = _labels_on_record(table, failures)
    return RecordedRun(run.id, run.settings, datasets, run.status, ids, table, labels, run.branch)


def rows_of(run: RecordedRun, labels: Labels) -> list[AnswerRow]:
    """Return the scored answers of a run as rows that can be compared with those of another."""
    judge = JudgedBy(model=str(run.settings.get("judge")), rubric="")
    return [
        AnswerRow(
            question_id=listed.question.id,
            dataset=run.datasets[listed.conversation],
            conversation=listed.conversation,
            backend=answer.asked.backend,
            model=answer.asked.model,
            repeat=answer.asked.repeat,
            question=listed.question.text,
            expected=listed.question.expected,
            predicted=answer.scored.score.predicted,
            outcome=answer.scored.score.outcome,
            error=answer.error,
            failure=known.label if (known := labels.get(place_of(answer))) is not None else None,
            decided_by=answer.scored.score.decided_by,
            grader=answer.scored.score.grader,
            judge=judge if answer.scored.score.grader is not None else None,
        )
        for listed in run.table.questions
        for system in run.table.systems
        for answer in run.table.repeats(listed, system)
        if answer.scored is not None
    ]


def _labels_on_record(
    table: AnswersTable, failures: Mapping[AnswerKey, tuple[str | None, str | None]]
) -> Labels | None:
    """Return the recorded labels of a table's answers; None unless each scored answer has been attributed."""
    labels: dict[tuple[str, AskKey], Attributed] = {}
    for answer in table.all_answers():
        if answer.scored is None:
            continue
        conversation, key = place_of(answer)
        recorded = (conversation, key.question_id, key.backend, key.model, key.repeat)
        if recorded not in failures:
            return None
        failure, doubt = failures[recorded]
        label = next((known for known in LABELS if known == failure), None)
        if label is not None:
            labels[conversation, key] = Attributed(label, doubt is not None)
    return labels


def labels_in(path: Path, run_id: str, conversation_id: str) -> Labels:
    """Return which stage lost the fact of each answer of a conversation. This takes seconds for a long one.

    Raises:
        RecordingError: it cannot be read.
    """
    with closing(Recording.open(path)) as recording, reporting_damage(path):
        timeline = recording.timeline(run_id, conversation_id)
        return labels_of(timeline, AnswersTable.until(timeline, timeline.last_turn))


_STYLES: Final[dict[Progress, str]] = {
    "finished": "$text-success",
    "interrupted": "$text-warning",
    "running": "$text-error bold",
}
_MOST_DATASETS = 3
_NAMED_BY_TIME: Final = re.compile(r"\d{8}-\d{6}(-\d+)?")
_WIDTH_OF_SCORES = 34


def described(path: Path) -> Content:
    """Rows for the name; state and date; what was replayed; the score of each memory. Reads the file."""
    try:
        bring_up_to_date(path)
        overview = overview_of(path)
    except MemreplayError as error:
        problem = one_line(str(error).removeprefix(f"{path}: "))
        return Content.assemble(
            (one_line(path.stem), "bold"), ("\n  cannot be read", "$text-error"), f"\n  {problem}"
        )
    state = overview.progress
    where = f" {overview.stopped_at}" if state != "finished" else ""
    name, content = one_line(path.stem), _few(overview.datasets)
    if _NAMED_BY_TIME.fullmatch(path.stem):
        # Nobody chose this name: what was replayed says more.
        name, content = " · ".join(filter(None, (content, one_line(", ".join(overview.models))))), name
    return Content.assemble(
        (name, "bold"),
        "\n  ",
        (f"{state}{where}", _STYLES[state]),
        # Where a run stopped takes a row: the list is narrow on a small screen.
        ("  " if state == "finished" else "\n  "),
        (_date(overview.started_at), "dim"),
        f"\n  {content}",
        *((f"\n  {row}", "dim") for row in _scores(overview)),
    )


def named_by_content(path: Path) -> str:
    """Return a recording in one line: its name, or what was replayed; its state and date. Reads the file."""
    return "  ".join(row.strip() for row in described(path).plain.splitlines()[:2])


def comparable(path: Path, others: Sequence[Path]) -> list[Path]:
    """Return those of the recordings whose newest run has a conversation of this one's. Reads the files."""
    own = _replayed_in(path)
    return [each for each in others if each != path and own & _replayed_in(each)]


def _replayed_in(path: Path) -> frozenset[str]:
    try:
        return frozenset(overview_of(path).datasets)
    except MemreplayError:
        return frozenset()


def _date(started_at: str) -> str:
    try:
        began = datetime.fromisoformat(started_at).astimezone()
    except ValueError:
        return one_line(started_at)
    return f"{began.day} {began:%b %Y %H:%M}"


def _few(datasets: Sequence[str]) -> str:
    shown = one_line(", ".join(datasets[:_MOST_DATASETS]))
    more = len(datasets) - _MOST_DATASETS
    return f"{shown} and {more:,} more" if more > 0 else shown


def _scores(overview: RecordingOverview) -> list[str]:
    """Return the memories with their scores, as many in a row as the list has room for on a small screen."""
    rows: list[str] = []
    for name in dict.fromkeys([*overview.backends, *overview.scores]):
        words = f"{one_line(name)} {overview.scores[name]}" if name in overview.scores else one_line(name)
        if rows and cells(rows[-1]) + cells(words) + 3 <= _WIDTH_OF_SCORES:
            rows[-1] += f" · {words}"
        else:
            rows.append(words)
    return rows
