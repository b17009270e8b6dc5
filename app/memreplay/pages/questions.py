"""The questions of a run with every answer, prompt and piece of evidence, as data for the script of a page.

Every line of a prompt is stored once: prompts of one conversation share most of their text, and a memory that puts
the whole conversation into each prompt would otherwise fill the page with copies of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from memory_backends.controls import CONTROLS
from memreplay.conversations.models import Conversation, Question
from memreplay.debugger.provenance import LineSource, PromptLine, prompt_lines
from memreplay.engine.events import ASK_KINDS, AnswerScored, QuestionAsked, ReplyReceived
from memreplay.recording.reader import Recording, RunInfo
from memreplay.scoring.comparisons import contestants_of
from memreplay.scoring.question_row import HitRow, QuestionRow
from memreplay.scoring.results import Results
from memreplay.timeline.timeline import Answer, AnswerIndex, Timeline
from memreplay.views.text import visible, visible_data

PREFIXES = ("A ", "B ")
"""The prefixes of the names of backends of the first and of the second run."""

RowKey = tuple[str, str, str]
"""Dataset, conversation and id of a question."""

_SIGNS: Final[dict[LineSource, str]] = {"frame": "f", "memory": "m", "distilled": "d", "evidence": "e"}


def row_key(row: QuestionRow) -> RowKey:
    return row.dataset, row.conversation, row.question_id


def without_prefix(backend: str) -> str:
    """Return the name of a backend in its own run."""
    for prefix in PREFIXES:
        backend = backend.removeprefix(prefix)
    return backend


@dataclass
class PromptTable:
    """``lines`` are all lines, ``prompts`` the messages of each prompt as a role and runs (first line, count)."""

    lines: list[str] = field(default_factory=list)
    prompts: list[list[Any]] = field(default_factory=list)
    _line_ids: dict[str, int] = field(default_factory=dict)
    _prompt_ids: dict[Any, int] = field(default_factory=dict)

    def add(self, roles: Sequence[str], lines: Iterable[PromptLine]) -> dict[str, Any]:
        """Add a prompt. Returns its number ``p``, its ``marks`` by line and the evidence turns ``at`` lines.

        ``marks`` are runs of a source and a count: ``f12m3e1``.
        """
        lines = list(lines)
        messages: list[list[Any]] = [[role, []] for role in roles]
        for line in lines:
            runs = messages[line.message][1]
            number = self._number(line.text)
            if runs and number == runs[-2] + runs[-1]:
                runs[-1] += 1
            else:
                runs += [number, 1]
        key = tuple((role, *runs) for role, runs in messages)
        if key not in self._prompt_ids:
            self._prompt_ids[key] = len(self.prompts)
            self.prompts.append(messages)
        marks = "".join(
            f"{_SIGNS[source]}{len(list(run))}" for source, run in groupby(line.source for line in lines)
        )
        at = {str(place): line.turns for place, line in enumerate(lines) if line.turns}
        return {"p": self._prompt_ids[key], "marks": marks, "at": at}

    def _number(self, text: str) -> int:
        number = self._line_ids.setdefault(text, len(self.lines))
        if number == len(self.lines):
            self.lines.append(text)
        return number


Asks = Mapping[tuple[str, str, str, int], Answer]
"""The answers of a conversation by backend, model, question and repeat."""


@dataclass(frozen=True)
class Source:
    """A run in an open recording. ``prefix`` stands before the names of its backends if a page shows two runs."""

    recording: Recording
    run: RunInfo
    prefix: str = ""

    def backends(self, timeline: Timeline) -> list[str]:
        """Return the memories of a conversation, without a baseline that the run added by itself."""
        return [name for name in timeline.backends if name in self.run.settings.get("backend", timeline.backends)]

    def conversations(self, ids: Sequence[str] | None = None) -> Iterator[tuple[Conversation, Asks]]:
        """Yield each conversation, or these, with its answers. One is in memory at a time."""
        for conversation_id in self.recording.conversation_ids(self.run.id) if ids is None else ids:
            index = AnswerIndex()
            for event in self.recording.events(self.run.id, conversation_id, ASK_KINDS):
                if isinstance(event, QuestionAsked | ReplyReceived | AnswerScored):
                    index.apply(event)
            asks = {
                (self.prefix + one.asked.backend, one.asked.model, one.asked.question_id, one.asked.repeat): one
                for one in index
                if not one.asked.by_hand
            }
            yield self.recording.conversation(self.run.id, conversation_id), asks


class Questions:
    """The questions of a report with all answers, as data for the script of the page."""

    def __init__(self, results: Results) -> None:
        self.distances: dict[RowKey, int] = {}
        self._names = {id(row): name for name, rows in contestants_of(results.questions).items() for row in rows}
        self._order = list(contestants_of(results.questions))
        self._controls = [
            self._order.index(name)
            for name, rows in contestants_of(results.questions).items()
            if without_prefix(rows[0].backend) in CONTROLS
        ]
        self._prompts = PromptTable()
        self._questions: dict[RowKey, dict[str, Any]] = {}
        self._rows: dict[RowKey, list[tuple[QuestionRow, dict[str, Any]]]] = {}
        for row in results.questions:
            key = row_key(row)
            self._questions.setdefault(key, _question_of(row))
            answer = _answer_of(row, self._order.index(self._names[id(row)]))
            self._rows.setdefault(key, []).append((row, answer))

    def add(self, conversation: Conversation, asks: Asks) -> None:
        """Add what the recording knows of a conversation's questions: evidence, options, prompts."""
        for question in conversation.questions:
            key = (conversation.dataset, conversation.id, question.id)
            for row, answer in self._rows.get(key, ()):
                ask = asks.get((row.backend, row.model, row.question_id, row.repeat))
                if ask is None:
                    continue
                self._questions[key] |= _details_of(question, conversation)
                answer |= self._prompts.add(
                    [message.role for message in ask.asked.prompt],
                    prompt_lines(conversation, ask.asked, question.evidence),
                )
                self._add_distance(key, question, conversation, ask.asked.turn)

    def _add_distance(self, key: RowKey, question: Question, conversation: Conversation, asked_at: int) -> None:
        said = [
            conversation.turns_by_id[turn].number for turn in question.evidence if turn in conversation.turns_by_id
        ]
        if said and question.evidence_role != "tempting":
            self.distances[key] = asked_at - min(said)

    def as_data(self) -> dict[str, Any]:
        questions = [
            {**question, "answers": [answer for _, answer in self._rows[key]]}
            for key, question in self._questions.items()
        ]
        data = {"backends": self._order, "controls": self._controls, "questions": questions}
        # Line numbers and roles, of which there may be millions, are ours.
        lines = [visible(line) for line in self._prompts.lines]
        return {**visible_data(data), "lines": lines, "prompts": self._prompts.prompts}


def _question_of(row: QuestionRow) -> dict[str, Any]:
    known = {
        "dataset": row.dataset,
        "conversation": row.conversation,
        "id": row.question_id,
        "text": row.question,
        "expected": row.expected,
        "kind": row.kind,
        "type": row.type,
        "category": row.category,
        "position": row.location,
        "salience": row.salience,
        "evidence": [{"id": turn} for turn in row.evidence],
    }
    return {name: value for name, value in known.items() if value is not None}


def _details_of(question: Question, conversation: Conversation) -> dict[str, Any]:
    evidence = []
    for turn_id in question.evidence:
        turn = conversation.turns_by_id.get(turn_id)
        entry = {"id": turn_id}
        if turn is not None:
            date = conversation.date_of(turn)
            entry |= {"speaker": conversation.label_of(turn), "text": turn.text}
            entry |= {"date": f"{date:%Y-%m-%d %H:%M}"} if date else {}
        evidence.append(entry)
    details: dict[str, Any] = {"evidence": evidence}
    if question.evidence_role == "tempting":
        details["tempting"] = True
    if question.choices:
        details |= {"choices": question.choices, "right": question.correct_index}
    return details


def _answer_of(row: QuestionRow, backend: int) -> dict[str, Any]:
    """Fields without a value are left out."""
    known = {
        "b": backend,
        "repeat": row.repeat or None,
        "outcome": row.outcome,
        "stage": row.failure,
        "detail": row.failure_detail,
        "predicted": row.predicted,
        "reply": row.reply if row.reply != row.predicted else None,
        "error": row.error,
        "decided": row.decided_by,
        "tokens": row.tokens.prompt if row.tokens else None,
        "cost": row.cost_usd,
        "ms": round(row.ms, 1) if row.ms is not None else None,
        "recall_ms": round(row.recall_ms, 1) if row.recall_ms is not None else None,
        "cut_tokens": row.cut_tokens or None,
        "evidence_in_prompt": row.evidence_in_prompt,
        "hits": [_hit(hit) for hit in row.hits],
    }
    return {name: value for name, value in known.items() if value is not None}


def _hit(hit: HitRow) -> list[Any]:
    """Rank, store, score, turns (else sources), tokens, whether it was in the prompt."""
    score = None if hit.score is None else round(hit.score, 4)
    return [hit.rank, hit.store, score, " ".join(hit.turns or hit.sources), hit.tokens, int(hit.in_prompt)]
