"""A run in a recording: its questions, its figures, and its conversations turn by turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, overload

from memory_backends.base import Hit, Snapshot
from memreplay.api.outputs import check_report_outputs, write_report_files
from memreplay.batch.report import results_of_run
from memreplay.batch.writers import STANDARD_OUTPUT
from memreplay.capture.assembling import bring_up_to_date
from memreplay.conversations.models import Conversation, Turn
from memreplay.errors import RecordingError, UsageError
from memreplay.grading import Outcome
from memreplay.numbers import counted
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording, RunStatus
from memreplay.scoring.answer_key import AnswerKey, read_answer_key
from memreplay.scoring.attribution import Attribution, Attributor
from memreplay.scoring.question_row import QuestionRow, Tokens
from memreplay.scoring.results import BackendResults, Results
from memreplay.timeline.timeline import Answer, Timeline

if TYPE_CHECKING:
    import pandas

_MOST_CHARACTERS = 300

_MOST_ROWS = 60


def table_html(headings: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> str:
    """Return a table of at most 60 rows; longer cells are cut."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:_MOST_ROWS])
    left_out = len(rows) - _MOST_ROWS
    more = f"<p>{left_out:,} more rows</p>" if left_out > 0 else ""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    match value:
        case None:
            text = "–"
        case float():
            text = f"{value:.3f}"
        case _:
            text = str(value)
    if len(text) > _MOST_CHARACTERS:
        text = text[: _MOST_CHARACTERS - 1] + "…"
    return f"<td style='text-align:left'>{escape(text)}</td>"


def data_frame(rows: Iterable[dict[str, Any]]) -> pandas.DataFrame:
    """Return a pandas data frame with a row for each.

    Raises:
        UsageError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise UsageError("to_pandas() needs pandas: pip install pandas") from None
    return pandas.DataFrame(list(rows))


@dataclass(frozen=True)
class AskedQuestion:
    """A question that was put to one memory through one model, and what came of it.

    ``reply``, ``outcome`` and ``why`` are None where the run ended before. ``why.label`` names the stage that lost
    the fact, ``why.detail`` says what happened to it.
    """

    id: str
    text: str
    model: str
    repeat: int
    hits: tuple[Hit, ...]
    prompt: str
    reply: str | None
    error: str | None
    outcome: Outcome | None
    why: Attribution | None

    def _repr_html_(self) -> str:
        why = f"{self.why.label}: {self.why.detail}" if self.why is not None else None
        fields = (("question", self.text), ("reply", self.reply), ("outcome", self.outcome), ("why", why))
        return table_html(("", self.id), fields)


class MemoryAt:
    """One memory at one turn.

    ``questions`` are those that were asked of it there. ``hits``, ``prompt`` and ``why`` are about the question
    that was chosen, or the only one asked there; without any, ``hits`` are what the turn's read path returned.
    """

    def __init__(
        self,
        timeline: Timeline,
        attributor: Attributor,
        backend: str,
        turn: int,
        question: str | None,
        path: Path,
    ) -> None:
        self.backend = backend
        self.turn = turn
        self._timeline = timeline
        self._attributor = attributor
        self._chosen = question
        self._path = path

    @cached_property
    def snapshot(self) -> Snapshot:
        """Return all that its stores held, by the label of the store."""
        with reporting_damage(self._path):
            return self._timeline.snapshot_at(self.backend, self.turn)

    @property
    def state(self) -> dict[str, Any]:
        """Return the values under its keys: a text is a log, anything else a JSON state."""
        return {key: value for values in self.snapshot.values.values() for key, value in values.items()}

    @property
    def points(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return the payloads of its points, by collection and id."""
        collections = (each for found in self.snapshot.points.values() for each in found.items())
        return {name: {id_: dict(payload) for id_, payload in points.items()} for name, points in collections}

    @cached_property
    def questions(self) -> tuple[AskedQuestion, ...]:
        """Return the questions that were asked of it at this turn, in order."""
        with reporting_damage(self._path):
            return tuple(
                self._question(answer)
                for answer in self._timeline.answers()
                if answer.asked.backend == self.backend
                and answer.asked.turn == self.turn
                and self._chosen in (None, answer.asked.question_id)
            )

    def _question(self, answer: Answer) -> AskedQuestion:
        asked, received, scored = answer.asked, answer.received, answer.scored
        known = {question.id: question.text for question in self._timeline.conversation.questions}
        return AskedQuestion(
            id=asked.question_id,
            text=asked.typed or known.get(asked.question_id, ""),
            model=asked.model,
            repeat=asked.repeat,
            hits=asked.hits,
            prompt="\n\n".join(f"{message.role}: {message.content}" for message in asked.prompt),
            reply=received.reply.text if received is not None else None,
            error=answer.error,
            outcome=scored.score.outcome if scored is not None else None,
            why=self._attributor.attribute(answer),
        )

    def _the_question(self) -> AskedQuestion | None:
        if len(self.questions) > 1:
            names = ", ".join(
                dict.fromkeys(f"{one.id}" + (f" ({one.model})" if one.model else "") for one in self.questions)
            )
            raise UsageError(
                f"several questions were asked of {self.backend} at turn {self.turn}: {names}; choose one with"
                " at(question=ID), or go through .questions"
            )
        return self.questions[0] if self.questions else None

    @property
    def hits(self) -> tuple[Hit, ...] | None:
        """Return what it retrieved. None where nothing was asked, and the read path of ordinary turns is not on
        record.
        """
        asked = self._the_question()
        if asked is not None:
            return asked.hits
        with reporting_damage(self._path):
            perceived = self._timeline.perceived_at(self.backend, self.turn)
        return perceived.hits if perceived is not None and perceived.turn == self.turn else None

    @property
    def prompt(self) -> str | None:
        """Return the prompt as it was sent; None where nothing was asked."""
        asked = self._the_question()
        return asked.prompt if asked is not None else None

    @property
    def why(self) -> Attribution | None:
        """Return the stage that lost the fact, or what a right answer rests on; None where nothing was asked."""
        asked = self._the_question()
        return asked.why if asked is not None else None

    def __repr__(self) -> str:
        held = f"{counted(len(self.state), 'key')}, {counted(len(self.questions), 'question')}"
        return f"<{self.backend} at turn {self.turn}: {held}>"

    def _repr_html_(self) -> str:
        held = [("state", key, value) for key, value in self.state.items()]
        held += [
            ("point", f"{name}/{id_}", payload)
            for name, points in self.points.items()
            for id_, payload in points.items()
        ]
        return table_html(("", "key", "value"), held, f"{self.backend} at turn {self.turn}")


class Moment(Mapping[str, MemoryAt]):
    """All memories at one turn, by backend."""

    def __init__(
        self, timeline: Timeline, attributor: Attributor, turn: int, question: str | None, path: Path
    ) -> None:
        self.turn = turn
        self._memories = {
            name: MemoryAt(timeline, attributor, name, turn, question, path) for name in timeline.backends
        }

    def __getitem__(self, backend: str) -> MemoryAt:
        if backend not in self._memories:
            raise UsageError(f"no memory named {backend} was run; there are {', '.join(self._memories)}")
        return self._memories[backend]

    def __iter__(self) -> Iterator[str]:
        return iter(self._memories)

    def __len__(self) -> int:
        return len(self._memories)


class RecordedConversation:
    """A conversation of a recorded run, at any of its turns."""

    def __init__(self, timeline: Timeline, path: Path) -> None:
        self._timeline = timeline
        self._path = path
        self._attributor = Attributor(timeline)

    @property
    def conversation(self) -> Conversation:
        """Return its sessions, turns and questions."""
        return self._timeline.conversation

    @property
    def turns(self) -> tuple[Turn, ...]:
        return self.conversation.turns

    @property
    def backends(self) -> tuple[str, ...]:
        """Return the memories that were run on it."""
        return tuple(self._timeline.backends)

    def at(self, turn: int | None = None, question: str | None = None) -> Moment:
        """Return its memories after a turn (1-based; 0 is before the first).

        Without a turn, where the question was asked; without either, at the end.

        Raises:
            UsageError: it has no such turn or question.
        """
        last = self._timeline.last_turn
        if question is not None:
            with reporting_damage(self._path):
                asked = [each.asked for each in self._timeline.answers() if each.asked.question_id == question]
            asked_at = sorted({each.turn for each in asked})
            if not asked_at:
                raise UsageError(f"no question {question} was asked in {self.conversation.id}")
            turn = asked_at[-1] if turn is None else turn
        turn = last if turn is None else turn
        if not 0 <= turn <= last:
            raise UsageError(f"{self.conversation.id} has no turn {turn}; expected 0 to {last}")
        return Moment(self._timeline, self._attributor, turn, question, self._path)

    def __repr__(self) -> str:
        return f"<{self.conversation.id}: {counted(len(self.turns), 'turn')}, {', '.join(self.backends)}>"

    def _repr_html_(self) -> str:
        rows = [(turn.number, self.conversation.label_of(turn), turn.text) for turn in self.turns]
        return table_html(("turn", "speaker", "text"), rows, self.conversation.id)


class Questions(Sequence[QuestionRow]):
    """The answers of a run: a row for each question, backend, model and repeat, as in ``results.json``."""

    def __init__(self, rows: Sequence[QuestionRow]) -> None:
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, index: int) -> QuestionRow: ...
    @overload
    def __getitem__(self, index: slice) -> Questions: ...
    def __getitem__(self, index: int | slice) -> QuestionRow | Questions:
        return Questions(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with a row for each answer; tokens in columns of their own, as in CSV. Needs
        pandas.
        """
        return data_frame(_flat(row) for row in self._rows)

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'answer')}>"

    def _repr_html_(self) -> str:
        headings = ("question_id", "backend", "model", "question", "expected", "predicted", "outcome", "failure")
        return table_html(headings, [[getattr(row, name) for name in headings] for row in self._rows])


def _flat(row: QuestionRow) -> dict[str, Any]:
    tokens = {f"tokens_{name}": getattr(row.tokens, name, None) for name in Tokens.model_fields}
    return row.model_dump(exclude={"tokens"}) | tokens


class Summary(Mapping[str, BackendResults]):
    """The figures of a run by backend; by ``backend@model`` where the run has several models."""

    _HEADINGS = ("backend", "accuracy", "correct", "graded", "errors", "evidence_in_prompt", "cost_usd")

    def __init__(self, results: Results) -> None:
        self._results = results

    def __getitem__(self, name: str) -> BackendResults:
        return self._results.backends[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results.backends)

    def __len__(self) -> int:
        return len(self._results.backends)

    def _rows(self) -> list[tuple[object, ...]]:
        return [(name, each.accuracy, *_counts(each)) for name, each in self.items()]

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with a row for each backend. Needs pandas."""
        return data_frame(dict(zip(self._HEADINGS, row, strict=True)) for row in self._rows())

    def __repr__(self) -> str:
        shown = []
        for name, each in self.items():
            correct, graded, errors, *_ = _counts(each)
            shown.append(f"{name} {correct}/{graded}" + (f" ({counted(errors, 'error')})" if errors else ""))
        return f"<right of graded: {', '.join(shown)}>"

    def _repr_html_(self) -> str:
        return table_html(self._HEADINGS, self._rows())


def _counts(of: BackendResults) -> tuple[int, int, int, float | None, float | None]:
    return (
        sum(section.correct for section in of.sections),
        sum(section.graded for section in of.sections),
        sum(section.errors for section in of.sections),
        of.retrieval.evidence_in_prompt if of.retrieval is not None else None,
        of.cost_usd,
    )


class RecordedRun:
    """A run in a recording, open for reading. Close it, or use it in a ``with`` statement.

    ``path`` is the file, ``settings`` those of the run without secrets, ``status`` whether it finished.
    """

    def __init__(self, recording: Recording, run_id: str | None, answer_key: AnswerKey | None) -> None:
        self.recording = recording
        self.info = recording.run(run_id)
        self.answer_key = answer_key
        self.path = recording.path
        self.id = self.info.id
        self.settings: dict[str, Any] = self.info.settings
        self.status: RunStatus = self.info.status
        self._closed = False

    @cached_property
    def results(self) -> Results:
        """Return everything that ``results.json`` holds, computed on first use. Asks no model."""
        self._check_open()
        with reporting_damage(self.path):
            return results_of_run(self.recording, self.info, self.answer_key)

    @cached_property
    def questions(self) -> Questions:
        """Return the answers, in the order of the dataset."""
        return Questions(self.results.questions)

    @cached_property
    def summary(self) -> Summary:
        """Return the figures by backend."""
        return Summary(self.results)

    @property
    def conversations(self) -> tuple[str, ...]:
        """Return the ids of its conversations, in the order in which they were replayed."""
        self._check_open()
        return tuple(self.recording.conversation_ids(self.id))

    def conversation(self, conversation_id: str) -> RecordedConversation:
        """Return one of its conversations.

        Raises:
            RecordingError: the run has no such conversation.
        """
        self._check_open()
        return RecordedConversation(self.recording.timeline(self.id, conversation_id), self.path)

    def save(self, *paths: str | Path) -> None:
        """Write the results in the formats of ``--output``: .json, .csv, .md, .xml, .html.

        Raises:
            UsageError: a path cannot be written, or has another ending; nothing is written.
        """
        self._check_open()
        outputs = [str(path) for path in paths]
        if STANDARD_OUTPUT in outputs:
            raise UsageError("save() writes files; .results.to_json() is the text for standard output")
        check_report_outputs(outputs, inputs=(self.path,))
        write_report_files(self.recording, self.info, self.results, outputs)

    def close(self) -> None:
        """Close the recording. Results that were computed stay."""
        if not self._closed:
            self._closed = True
            self.recording.close()

    def _check_open(self) -> None:
        if self._closed:
            raise RecordingError(f"{self.path}: this run was closed; memreplay.open() opens it again")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    def __repr__(self) -> str:
        return f"<run {self.id} of {self.path}, {self.status}>"

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()


def open_run(path: str | Path, run: str | None = None, *, answer_key: str | Path | None = None) -> RecordedRun:
    """Open a recording at one of its runs, by default the newest. Asks no model.

    ``answer_key`` is a file of corrections, as for ``--answer-key``.

    Raises:
        RecordingError: it is not a recording, or has no such run.
    """
    key = read_answer_key(Path(answer_key)) if answer_key is not None else None
    if Path(path).is_file():
        bring_up_to_date(Path(path))
    recording = Recording.open(Path(path))
    try:
        return RecordedRun(recording, run, key)
    except BaseException:
        recording.close()
        raise


async def aopen_run(
    path: str | Path, run: str | None = None, *, answer_key: str | Path | None = None
) -> RecordedRun:
    """:func:`open_run` without blocking the event loop; the results are computed when it returns."""
    opened = await asyncio.to_thread(open_run, path, run, answer_key=answer_key)
    await asyncio.to_thread(lambda: opened.results)
    return opened
