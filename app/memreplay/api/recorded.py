"""A run in a recording: its questions, its figures, and its conversations turn by turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, overload

from memreplay.api.moments import RecordedConversation, data_frame, table_html
from memreplay.api.outputs import check_report_outputs, write_report_files
from memreplay.batch.report import results_of_run
from memreplay.batch.writers import STANDARD_OUTPUT
from memreplay.errors import RecordingError, UsageError
from memreplay.recording.bodies import reporting_damage
from memreplay.recording.reader import Recording, RunStatus
from memreplay.scoring.answer_key import AnswerKey, read_answer_key
from memreplay.scoring.question_row import QuestionRow, Tokens
from memreplay.scoring.results import BackendResults, Results

if TYPE_CHECKING:
    import pandas


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
        """A data frame with a row for each answer; tokens in columns of their own, as in CSV. Needs pandas."""
        return data_frame(_flat(row) for row in self._rows)

    def __repr__(self) -> str:
        return f"<{len(self)} answers>"

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
        """A data frame with a row for each backend. Needs pandas."""
        return data_frame(dict(zip(self._HEADINGS, row, strict=True)) for row in self._rows())

    def __repr__(self) -> str:
        shown = (f"{row[0]} {row[2]}/{row[3]}" + (f" ({row[4]} errors)" if row[4] else "") for row in self._rows())
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
        self._answer_key = answer_key
        self.path = recording.path
        self.id = self.info.id
        self.settings: dict[str, Any] = self.info.settings
        self.status: RunStatus = self.info.status
        self._closed = False

    @cached_property
    def results(self) -> Results:
        """Everything that ``results.json`` holds, computed on first use. Asks no model."""
        self._check_open()
        with reporting_damage(self.path):
            return results_of_run(self.recording, self.info, self._answer_key)

    @cached_property
    def questions(self) -> Questions:
        """The answers, in the order of the dataset."""
        return Questions(self.results.questions)

    @cached_property
    def summary(self) -> Summary:
        """The figures by backend."""
        return Summary(self.results)

    @property
    def conversations(self) -> tuple[str, ...]:
        """The ids of its conversations, in the order in which they were replayed."""
        self._check_open()
        return tuple(self.recording.conversation_ids(self.id))

    def conversation(self, conversation_id: str) -> RecordedConversation:
        """One of its conversations.

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
