"""Wrong answers that were asked again: each reply is on disk before it is graded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import orjson
from sqlite_utils import Database

from memreplay.conversations.models import Frozen
from memreplay.engine.events import QuestionAsked
from memreplay.grading import Score
from memreplay.llm.model import Reply
from memreplay.llm.prompts import context_of
from memreplay.recording.connection import leave_wal, open_exclusively
from memreplay.recording.damage import reporting_damage
from memreplay.recording.reader import Recording
from memreplay.recording.run_rows import reporting_write_errors
from memreplay.scoring.counterfactuals import Counterfactual
from memreplay.scoring.verdicts import Intervention

AskId = tuple[str, str, str, int]
"""Backend, model, question id and repeat."""

ReaskKey = tuple[str, str, str, int, Intervention]
"""The same, and the change."""


def ask_of(asked: QuestionAsked) -> AskId:
    return (asked.backend, asked.model, asked.question_id, asked.repeat)


_COLUMNS = "backend, model, question_id, repeat, intervention"


class Reask(Frozen):
    """A reply under one change. ``score`` is None until it is graded; ``context`` is what memory gave instead."""

    backend: str
    model: str
    question_id: str
    repeat: int
    intervention: Intervention
    context: str
    reply: Reply
    score: Score | None = None

    @property
    def ask(self) -> AskId:
        return (self.backend, self.model, self.question_id, self.repeat)

    @property
    def key(self) -> ReaskKey:
        return (*self.ask, self.intervention)

    @property
    def error(self) -> str | None:
        """Return why there is no reply, or why the rules failed to grade it."""
        return self.reply.error or (self.score.error if self.score is not None else None)

    @property
    def counterfactual(self) -> Counterfactual | None:
        """Return the counterfactual as it stands in the results; None before it is graded."""
        if self.score is None:
            return None
        is_error = self.score.outcome == "error"
        return Counterfactual(
            intervention=self.intervention,
            outcome=self.score.outcome,
            reply=self.reply.text,
            repaired=None if is_error else self.score.outcome == "correct",
            predicted=self.score.predicted,
            error=self.error,
        )


def reasks_in(
    recording: Recording, run_id: str, conversation_id: str, asked: Mapping[AskId, QuestionAsked]
) -> list[Reask]:
    """Return the recorded re-asks of a conversation; none in a recording of an older format.

    ``asked`` are the asks that they repeat, with their prompts.
    """
    with reporting_damage(recording.path):
        return [
            Reask(
                **{name: row[name] for name in ("backend", "model", "question_id", "repeat", "intervention")},
                context=unpacked(row["context"], context_of(base.prompt)),
                reply=Reply.model_validate_json(row["reply"]),
                score=Score.model_validate_json(row["score"]) if row["score"] else None,
            )
            for row in recording.counterfactual_rows(run_id, conversation_id)
            if (base := asked.get((row["backend"], row["model"], row["question_id"], row["repeat"]))) is not None
        ]


class ExclusiveStore:
    """A finished recording that this process alone may add to. Methods raise RecordingError if that fails."""

    def __init__(self, db: Database, path: Path) -> None:
        self._db, self._path = db, path
        self.recording = Recording(db, path)

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Self]:
        """Open a recording that exists, for this process alone.

        Raises:
            RecordingError: the file is missing, is not a recording, is in use, or cannot be written.
        """
        Recording.open(path).close()
        with open_exclusively(path) as (db, lock):
            try:
                yield cls(db, path)
                leave_wal(db)
            finally:
                db.close()
                lock.release()


class ReaskStore(ExclusiveStore):
    """Writes re-asks into a recording."""

    def add(self, run_id: str, reask: Reask, asked: QuestionAsked) -> None:
        """Store a reply; it is on disk when this returns. It replaces an earlier one to the same change."""
        row: dict[str, Any] = {
            "conversation": self.recording.conversation_key(run_id, asked.conversation),
            **reask.model_dump(include=set(_COLUMNS.split(", "))),
            "context": packed(reask.context, context_of(asked.prompt)),
            "reply": reask.reply.model_dump_json(),
        }
        names = ", ".join(row)
        values = ", ".join(f":{name}" for name in row)
        with reporting_write_errors(self._path):
            self._db.execute(f"insert or replace into counterfactuals ({names}) values ({values})", row)

    def grade(self, run_id: str, conversation_id: str, reasks: Iterable[Reask]) -> None:
        """Store the scores of stored replies, in one transaction."""
        key = self.recording.conversation_key(run_id, conversation_id)
        rows = [
            (each.score.model_dump_json(exclude_defaults=True), key, *each.key)
            for each in reasks
            if each.score is not None
        ]
        condition = " and ".join(f"{name} = ?" for name in _COLUMNS.split(", "))
        with reporting_write_errors(self._path), self._db.atomic():
            self._db.conn.executemany(
                f"update counterfactuals set score = ? where conversation = ? and {condition}", rows
            )


def packed(context: str, base: str) -> str:
    """Return a context as JSON: texts, and ranges ``[first, last]`` of lines of the recorded context, which it
    repeats.

    A log that is asked about ten times with one turn in another place is then not stored ten times.
    """
    lines = base.split("\n")
    places: dict[str, int] = {}
    for place, line in enumerate(lines):
        places.setdefault(line, place)
    parts: list[str | list[int]] = []
    for line in context.split("\n"):
        last = parts[-1] if parts else None
        if isinstance(last, list) and last[1] + 1 < len(lines) and lines[last[1] + 1] == line:
            last[1] += 1
        elif line in places:
            parts.append([places[line], places[line]])
        elif isinstance(last, str):
            parts[-1] = f"{last}\n{line}"
        else:
            parts.append(line)
    return orjson.dumps(parts).decode()


def unpacked(body: str, base: str) -> str:
    """Return the context that :func:`packed` was given."""
    lines = base.split("\n")
    parts: Sequence[str | list[int]] = orjson.loads(body)
    return "\n".join(part if isinstance(part, str) else "\n".join(lines[part[0] : part[1] + 1]) for part in parts)
