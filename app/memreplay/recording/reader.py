"""Read a recording: its runs, their conversations and events."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple

import orjson
from pydantic import ValidationError
from sqlite_utils import Database

from memreplay.conversations.catalog import ListedConversation, length_of, listed
from memreplay.conversations.models import Conversation, Frozen
from memreplay.engine.events import (
    ASK_KINDS,
    AnswerJudged,
    AnswerScored,
    QuestionAsked,
    ReplayEvent,
    ReplyReceived,
)
from memreplay.errors import RecordingError
from memreplay.llm.judging import STAGE_RUBRICS, Judgement, Stage, Verdict
from memreplay.recording.annotations import labels_of_conversation
from memreplay.recording.bodies import EventRow, ask_from_row, event_from_row, resolve
from memreplay.recording.branches import Branch, branches_in
from memreplay.recording.connection import connect_read_only
from memreplay.recording.damage import reporting_damage
from memreplay.recording.event_store import RecordedArchive
from memreplay.timeline.timeline import AnswerIndex, AskKey, Timeline

RunStatus = Literal["running", "finished", "interrupted"]

UNFINISHED: Final[frozenset[RunStatus]] = frozenset({"running", "interrupted"})
"""Statuses of a run that was stopped, and of one that was killed or still records."""

ANY_STATUS: Final[frozenset[RunStatus]] = UNFINISHED | {"finished"}


AnswerKey = tuple[str, str, str, str, int]
"""Conversation, question id, backend, model and repeat."""


class RunInfo(Frozen):
    """A run of a recording. Times are ISO 8601 in UTC; ``settings`` hold no secrets.

    Runs that would ask the same questions in the same way have the same ``fingerprint``. ``branch`` says where a
    branch departs from another run; None for a trunk.
    """

    id: str
    started_at: str
    finished_at: str | None
    status: RunStatus
    version: str
    fingerprint: str
    settings: dict[str, Any]
    datasets: tuple[str, ...]
    branch: Branch | None = None


class ConversationSize(NamedTuple):
    """The numbers of turns and questions of a recorded conversation; ``conversing``: its turns are made by
    tests.
    """

    id: str
    turns: int
    questions: int
    conversing: bool


class Recording:
    """A recording, open for reading.

    ``warn`` is told, when a recording is closed, of numbers in it that could not be used.
    """

    warn: ClassVar[Callable[[str], None]] = staticmethod(
        partial(warnings.warn, category=RuntimeWarning, stacklevel=3)
    )

    def __init__(self, db: Database, path: Path) -> None:
        self._db = db
        self.path = path
        self._odd_numbers: Counter[str] = Counter()
        self.text = lru_cache(maxsize=4096)(self._read_text)
        self.part = lru_cache(maxsize=4096)(self._read_part)

    @classmethod
    def open(cls, path: Path) -> Recording:
        """Open a file.

        Raises:
            RecordingError: it is missing, is not a recording, is of another format, or holds no run yet.
        """
        return cls(connect_read_only(path), path)

    def runs(self) -> list[RunInfo]:
        """Return all runs, oldest first."""
        with reporting_damage(self.path):
            branches = branches_in(self._db)
            rows = self._db.query("select * from runs order by started_at, rowid")
            return [_run_info(row, branches.get(row["id"])) for row in rows]

    def run(self, run_id: str | None = None) -> RunInfo:
        """Return one run by its id, or the newest that is no branch.

        Raises:
            RecordingError: the recording does not have this run.
        """
        runs = [run for run in self.runs() if run_id == run.id or (run_id is None and run.branch is None)]
        if not runs:
            wanted = f"no run {run_id}" if run_id else "no run"
            known = ", ".join(run.id for run in self.runs())
            raise RecordingError(f"{self.path}: {wanted} in it" + (f"; it holds {known}" if known else ""))
        return runs[-1]

    def conversation_ids(self, run_id: str) -> list[str]:
        """Return the conversations of a run, in replay order."""
        query = "select id from conversations where run_id = ? order by position"
        return [row["id"] for row in self._query(query, run_id)]

    def listed_conversations(self, run_id: str) -> list[ListedConversation]:
        """Return the rows of a list of the conversations of a run, in replay order. Only first words are read.

        Raises:
            RecordingError: it cannot be read.
        """
        query = "select id, body from conversations where run_id = ? order by position"
        return [self._listed(row["id"], row["body"]) for row in self._query(query, run_id)]

    def _listed(self, id_: str, body: str) -> ListedConversation:
        """Return the row of a conversation; of a damaged one only its id, since the others can be opened."""
        try:
            with reporting_damage(self.path):
                written = orjson.loads(body)
                turns = written["turns"]
                spoken = [turn for turn in turns if turn["role"] != "other"]
                first = next((turn for turn in spoken if turn["role"] == "user"), spoken[0] if spoken else None)
                kept = {**written, "turns": [] if first is None else [first], "questions": []}
                row = listed(Conversation.model_validate(resolve(kept, self.text)))
        except RecordingError:
            return ListedConversation(id_)
        return replace(row, id=id_, length=length_of(None if written.get("conversing") else len(turns)))

    def conversation(self, run_id: str, conversation_id: str) -> Conversation:
        """Return a conversation as it was replayed.

        Raises:
            RecordingError: the run has no such conversation.
        """
        with reporting_damage(self.path):
            row = self._db.table("conversations").get(self.conversation_key(run_id, conversation_id))
            return Conversation.model_validate(resolve(orjson.loads(row["body"]), self.text))

    def events(
        self, run_id: str, conversation_id: str, kinds: tuple[str, ...] | None = None
    ) -> Iterator[ReplayEvent]:
        """Events of a conversation by position, then in recorded order; only these ``kinds`` if given."""
        condition = "" if kinds is None else f" and e.kind in {placeholders(kinds)}"
        return self._events(run_id, conversation_id, condition, kinds or ())

    def asks(self, run_id: str, conversation_id: str) -> AnswerIndex:
        """Return questions, replies and scores of a conversation, without hits, cuts and the text of prompts."""
        asks = AnswerIndex()
        condition = f" and e.kind in {placeholders(ASK_KINDS)}"
        with reporting_damage(self.path):
            for row in self._rows(run_id, conversation_id, condition, ASK_KINDS):
                event = ask_from_row(row, self)
                if isinstance(event, QuestionAsked | ReplyReceived | AnswerJudged | AnswerScored):
                    asks.apply(event)
        return asks

    def failures(self, run_id: str) -> dict[AnswerKey, tuple[str | None, str | None]]:
        """Return the failure labels that were stored with the scores of a run, and why they are uncertain, which
        formats before 7 do not have; empty if the run was never scored.
        """
        names = ["conversation", "question_id", "backend", "model", "repeat", "failure", "failure_doubt"]
        with reporting_damage(self.path):
            known = self._db.table("scores").columns_dict
            rows = self._db.table("scores").rows_where(
                "run_id = ?", [run_id], select=", ".join(name if name in known else "null" for name in names)
            )
            return {(a, b, c, d, e): (label, doubt) for a, b, c, d, e, label, doubt in map(dict.values, rows)}

    def sizes(self, run_id: str) -> list[ConversationSize]:
        """Return how long the conversations of a run are. Reads none of them."""
        query = (
            "select id, json_array_length(body, '$.turns'), json_array_length(body, '$.questions'),"
            " coalesce(json_extract(body, '$.conversing'), 0)"
            " from conversations where run_id = ? order by position"
        )
        with reporting_damage(self.path):
            rows = self._db.execute(query, [run_id]).fetchall()
        return [ConversationSize(id_, turns, asked, bool(conversing)) for id_, turns, asked, conversing in rows]

    def outcomes(self, run_id: str) -> dict[tuple[str, str], int]:
        """Return how many answers to scheduled questions each backend has with each outcome."""
        query = (
            "select e.backend, json_extract(e.body, '$.score.outcome'), count(*)"
            " from events e join conversations c on c.key = e.conversation"
            " where c.run_id = ? and e.kind = 'answer_scored' and not json_extract(e.body, '$.by_hand')"
            " group by 1, 2"
        )
        return {(backend, outcome): count for backend, outcome, count in self._db.execute(query, [run_id])}

    def turns_played(self, run_id: str, conversation_id: str) -> int:
        """Return the last turn of a conversation that was played; 0 if none was."""
        query = (
            "select max(e.turn) from events e join conversations c on c.key = e.conversation"
            " where c.run_id = ? and c.id = ? and e.kind = 'turn_played'"
        )
        return self._db.execute(query, [run_id, conversation_id]).fetchone()[0] or 0

    def labels(self, run_id: str, conversation_id: str) -> dict[AskKey, Verdict]:
        """Return the answers of a conversation that were labelled by hand."""
        return labels_of_conversation(self._db, self.conversation_key(run_id, conversation_id))

    def writes_and(self, run_id: str, conversation_id: str, kinds: tuple[str, ...]) -> Iterator[ReplayEvent]:
        """Store commands that changed a store, and events of these kinds, by position, then in recorded order."""
        condition = f" and (e.kind in {placeholders(kinds)} or e.kind = 'store_operated' and e.changes = 1)"
        return self._events(run_id, conversation_id, condition, kinds)

    def _events(
        self, run_id: str, conversation_id: str, condition: str, values: tuple[str, ...]
    ) -> Iterator[ReplayEvent]:
        for row in self._rows(run_id, conversation_id, condition, values):
            yield event_from_row(row, self)

    def _rows(
        self, run_id: str, conversation_id: str, condition: str, values: tuple[str, ...]
    ) -> Iterator[EventRow]:
        find = "select key from conversations where run_id = ? and id = ?"
        for (key,) in self._db.execute(find, [run_id, conversation_id]):
            self._refuse_impossible_turns(key, conversation_id)
        query = (
            "select c.id, e.backend, e.turn, e.kind, e.body from events e"
            " join conversations c on c.key = e.conversation"
            f" where c.run_id = ? and c.id = ?{condition} order by e.turn, e.key"
        )
        yield from map(EventRow._make, self._db.execute(query, [run_id, conversation_id, *values]))

    def archive(self, run_id: str, conversation_id: str) -> RecordedArchive:
        """Return the events of a conversation, read on demand while the recording is open.

        Raises:
            RecordingError: the run has no such conversation.
        """
        key = self.conversation_key(run_id, conversation_id)
        with reporting_damage(self.path):
            self._refuse_impossible_turns(key, conversation_id)
        return RecordedArchive(self._db, key, conversation_id, self)

    def _refuse_impossible_turns(self, key: int, conversation_id: str) -> None:
        """Raise RecordingError for an event before the first turn, or after the end of the conversation."""
        (turns,) = self._db.execute(
            "select json_array_length(body, '$.turns') from conversations where key = ?", [key]
        ).fetchone()
        (said,) = self._db.execute(
            "select count(*) from events where conversation = ? and kind = 'message_said'", [key]
        ).fetchone()
        # One aggregate a query: SQLite then takes it from the end of an index, instead of reading all of it.
        first, last = (
            self._db.execute(f"select {end}(turn) from events where conversation = ?", [key]).fetchone()[0]
            for end in ("min", "max")
        )
        if first is not None and not (first >= 0 and last <= (turns or 0) + said + 1):
            raise RecordingError(
                f"{self.path}: damaged: {conversation_id} has events at turns {first} to {last} of"
                f" {(turns or 0) + said}; expected what memreplay writes"
            )

    def timeline(self, run_id: str, conversation_id: str) -> Timeline:
        """Return a timeline that reads events on demand while the recording is open. Indexing them may take long.

        Raises:
            RecordingError: the run has no such conversation.
        """
        with reporting_damage(self.path):
            timeline = Timeline(
                self.conversation(run_id, conversation_id), archive=self.archive(run_id, conversation_id)
            )
        timeline.judge_stages(self.stage_judgements(run_id, conversation_id))
        return timeline

    def counterfactual_rows(self, run_id: str, conversation_id: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a conversation's re-asks, in the order of asking; none in a recording of an older
        format.
        """
        if "counterfactuals" in self._db.table_names():
            query = "select * from counterfactuals where conversation = ? order by key"
            yield from self._query(query, self.conversation_key(run_id, conversation_id))

    def rejudging_pairs(self, run_id: str) -> list[tuple[str, str]]:
        """Return the judges and rubrics of later judgements of replies; none in a recording of an older format."""
        if "rejudgements" not in self._db.table_names():
            return []
        rows = self._query(
            "select j.judge, j.rubric from rejudgements j join conversations c on c.key = j.conversation"
            f" where c.run_id = ? and j.rubric not in {placeholders(STAGE_RUBRICS)}"
            " group by j.judge, j.rubric order by min(j.rowid)",
            run_id,
            *STAGE_RUBRICS,
        )
        return [(row["judge"], row["rubric"]) for row in rows]

    def rejudgement_rows(
        self, run_id: str, conversation_id: str, judge: str, rubric: str
    ) -> Iterator[tuple[str, str, str, int, str]]:
        """Yield backend, model, question id, repeat and body of a judge's later judgements."""
        if "rejudgements" in self._db.table_names():
            query = "select * from rejudgements where conversation = ? and judge = ? and rubric = ? order by rowid"
            for row in self._query(query, self.conversation_key(run_id, conversation_id), judge, rubric):
                yield row["backend"], row["model"], row["question_id"], row["repeat"], row["body"]

    def stage_judgements(
        self, run_id: str, conversation_id: str
    ) -> dict[tuple[str, str, str, int], dict[Stage, Judgement]]:
        """Return what a judge of stages said, by backend, model, question id and repeat: of several the one asked
        last that gave a verdict.

        Raises:
            RecordingError: a judgement is damaged.
        """
        by_judge: dict[tuple[str, str, str, int], dict[str, dict[Stage, Judgement]]] = {}
        for ask, stage, judgement in self.stages_judged(run_id, conversation_id):
            if judgement.verdict is not None:
                judges = by_judge.setdefault(ask, {})
                judges[judgement.judge] = judges.pop(judgement.judge, {}) | {stage: judgement}
        return {ask: list(judges.values())[-1] for ask, judges in by_judge.items()}

    def stages_judged(
        self, run_id: str, conversation_id: str
    ) -> Iterator[tuple[tuple[str, str, str, int], Stage, Judgement]]:
        """Yield every judgement of a stage, those without a verdict too, in the order in which they came.

        Raises:
            RecordingError: a judgement is damaged.
        """
        if "rejudgements" not in self._db.table_names():
            return
        query = (
            f"select * from rejudgements where conversation = ? and rubric in {placeholders(STAGE_RUBRICS)}"
            " order by rowid"
        )
        for row in self._query(query, self.conversation_key(run_id, conversation_id), *STAGE_RUBRICS):
            ask = (row["backend"], row["model"], row["question_id"], row["repeat"])
            yield ask, STAGE_RUBRICS[row["rubric"]], judgement_in(row["body"], self.path, row["question_id"])

    def odd_number(self, field: str) -> None:
        """Count a number that cannot be one: it is read as unknown, or as 0."""
        self._odd_numbers[field] += 1

    @property
    def remark(self) -> str:
        """Return how many numbers could not be used so far, in a sentence; empty if all could."""
        if not self._odd_numbers:
            return ""
        named = ", ".join(f"{field} {count:,} times" for field, count in sorted(self._odd_numbers.items()))
        return f"{self.path}: numbers that are not finite, or out of range, were read as unknown: {named}"

    def close(self) -> None:
        self._db.close()
        if self._odd_numbers:
            Recording.warn(self.remark)

    def conversation_key(self, run_id: str, conversation_id: str) -> int:
        """Return the key of a conversation's row.

        Raises:
            RecordingError: the run has no such conversation.
        """
        query = "select key from conversations where run_id = ? and id = ?"
        for row in self._query(query, run_id, conversation_id):
            return int(row["key"])
        raise RecordingError(f"{self.path}: run {run_id} has no conversation {conversation_id}")

    def _query(self, query: str, *values: str | int) -> Iterator[dict[str, Any]]:
        with reporting_damage(self.path):
            yield from self._db.query(query, values)

    def _read_text(self, digest: str) -> str:
        # A long conversation has tens of thousands of texts, and a plain cursor is the fastest way to one.
        for (body,) in self._db.conn.execute("select body from texts where hash = ?", [digest]):
            return str(body)
        raise RecordingError(f"{self.path}: damaged: the text {digest} is missing")

    def raw_part(self, number: int) -> dict[str, Any]:
        """Return a part of events, with references in place of its long texts."""
        for (body,) in self._db.conn.execute("select body from parts where key = ?", [number]):
            part: dict[str, Any] = orjson.loads(body)
            return part
        raise RecordingError(f"{self.path}: damaged: the part {number} is missing")

    def _read_part(self, number: int) -> dict[str, Any]:
        part: dict[str, Any] = resolve(self.raw_part(number), self.text)
        return part


def judgement_in(body: str, path: Path, question_id: str) -> Judgement:
    """Return a stored judgement.

    Raises:
        RecordingError: it is damaged.
    """
    try:
        return Judgement.model_validate_json(body)
    except ValidationError:
        raise RecordingError(f"{path}: a judgement of question {question_id} is damaged") from None


def placeholders(values: Collection[str]) -> str:
    """``(?, ?, …)``, one for each value."""
    return f"({', '.join('?' * len(values))})"


def _run_info(row: dict[str, Any], branch: Branch | None) -> RunInfo:
    return RunInfo.model_validate(
        {
            **row,
            "branch": branch,
            "settings": orjson.loads(row["settings"]),
            "datasets": orjson.loads(row["datasets"]),
        }
    )
